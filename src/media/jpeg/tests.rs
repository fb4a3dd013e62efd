//! Compares the decoder with libjpeg-turbo, whose pixels are stored beside the samples as PNG
//! (those of inks are from Pillow), and tests what is refused.

use super::*;
use crate::media::png;
use std::io::Cursor;

macro_rules! samples {
    ($($name:literal)+) => {
        &[$(Sample {
            name: $name,
            data: include_bytes!(concat!("samples/", $name, ".jpg")),
            pixels: include_bytes!(concat!("samples/", $name, ".png")),
        }),+]
    };
}

struct Sample {
    name: &'static str,
    data: &'static [u8],
    pixels: &'static [u8],
}

const SAMPLES: &[Sample] = samples!(
    "halved" "upright" "wide" "progressive" "grey-progressive" "restarts" "inks" "scan-each"
    "scan-each-restarts" "fine-chroma" "fine-progressive" "mixed" "quarter" "high" "thirds"
    "plain-rgb" "cmyk" "ycck"
);

fn sample(name: &str) -> &'static [u8] {
    SAMPLES
        .iter()
        .find(|sample| sample.name == name)
        .unwrap()
        .data
}

fn looked(data: &[u8]) -> Result<Jpeg, Error> {
    read(&mut Cursor::new(data)).map(|(_, jpeg)| jpeg)
}

fn decoded_by(data: &[u8], details: &Jpeg, plan: Plan) -> Result<Vec<u8>, Error> {
    let mut pixels = Vec::new();
    let mut take = |row: &[u8]| pixels.extend_from_slice(row);
    decoder::decode((data, &details.frame), plan, &mut take)?;
    Ok(pixels)
}

/// Decodes to RGB with `side` samples per block side.
fn decoded(data: &[u8], side: u32) -> Result<Vec<u8>, Error> {
    let details = looked(data)?;
    decoded_by(data, &details, details.plan(side))
}

/// Returns the similarity of two pictures as PSNR in dB; above 40, differences are invisible.
fn likeness(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
    let error = a.iter().zip(b).map(square).sum::<f64>() / a.len() as f64;
    10.0 * (255.0 * 255.0 / error).log10()
}

/// Returns the range of each scan's data.
fn scans(data: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut scans = Vec::<std::ops::Range<usize>>::new();
    let mut at = 2;
    while let Some(next) = bits::marker(data, at) {
        if let Some(open) = scans.last_mut().filter(|scan| scan.end == 0)
            && !matches!(data[next + 1], 0xd0..=0xd7)
        {
            open.end = next;
        }
        at = next + 2;
        if !matches!(data[next + 1], 0xd0..=0xd9) {
            let length = usize::from(u16::from_be_bytes([data[at], data[at + 1]]));
            at += length;
            if data[next + 1] == START_OF_SCAN {
                scans.push(at..0);
            }
        }
    }
    scans
}

#[test]
fn pixels_match_libjpeg_turbo() {
    for Sample { name, data, pixels } in SAMPLES {
        let mut input = Cursor::new(*pixels);
        let header = png::open(&mut input).unwrap();
        let goal = Goal {
            ample: header.size,
            enough: header.size,
        };
        let expected = png::decode(&header, &mut input, goal).unwrap();
        let likeness = likeness(&decoded(data, 8).unwrap(), expected.pixels());
        assert!(likeness > 45.0, "{name}: {likeness:.1} dB");
    }
}

#[test]
fn scaled_decoding_matches_the_averaged_full_size() {
    for Sample { name, data, .. } in SAMPLES {
        let frame = looked(data).unwrap().frame;
        let all = decoded(data, 8).unwrap();
        let scaled = [1, 2, 4].into_iter().filter(|_| !frame.has_thirds());
        for side in scaled {
            let mut shrink = Shrink::new(frame.size, 3, 8 / side);
            shrink.rows(&all);
            let averaged = shrink.finish(Orientation::NoTransforms);
            assert_eq!(frame.scaled(side), (averaged.width(), averaged.height()));
            let likeness = likeness(&decoded(data, side).unwrap(), averaged.pixels());
            // The last row and column also stand for pixels beyond the edge, which matters more in
            // small pictures.
            let enough = if frame.size.0 > 100 { 36.0 } else { 27.0 };
            assert!(likeness > enough, "{name} at {side}: {likeness:.1} dB");
        }
    }
}

/// The files of a pair differ only in their scans, which jpegtran has rearranged.
#[test]
fn progressive_scans_give_the_same_pixels_as_a_single_scan() {
    let restarts = include_bytes!("samples/fine-progressive-restarts.jpg");
    let pairs = [
        (sample("progressive"), sample("halved")),
        (restarts, sample("fine-chroma")),
    ];
    for (at, (scans, plain)) in pairs.into_iter().enumerate() {
        assert!(looked(scans).unwrap().frame.progressive);
        for side in [1, 2, 4, 8] {
            let same = decoded(scans, side).unwrap() == decoded(plain, side).unwrap();
            assert!(same, "pair {at} at {side}");
        }
    }
}

#[test]
fn truncated_file_with_an_end_marker_is_refused() {
    for Sample { name, data, .. } in SAMPLES {
        for part in 1..32 {
            let mut cut = data[..data.len() * part / 32].to_vec();
            cut.extend([0xff, END_OF_IMAGE]);
            assert!(decoded(&cut, 8).is_err(), "{name}: {part} of 32");
            // The end of a skipped scan is not checked.
            let skips = looked(data).unwrap().frame.progressive;
            assert!(
                skips || decoded(&cut, 1).is_err(),
                "{name}: {part} of 32, at an eighth"
            );
        }
    }
}

#[test]
fn missing_scan_is_refused() {
    for name in [
        "scan-each",
        "progressive",
        "fine-progressive",
        "grey-progressive",
    ] {
        let data = sample(name);
        let scans = scans(data);
        assert!(scans.len() > 2, "{name}");
        for scan in &scans {
            // Remove the scan with its header, which ends where its data begin.
            let start = data[..scan.start]
                .windows(2)
                .rposition(|two| two == [0xff, START_OF_SCAN]);
            let without = [&data[..start.unwrap()], &data[scan.end..]].concat();
            assert!(decoded(&without, 8).is_err(), "{name}: {scan:?}");
        }
    }
}

#[test]
fn damaged_data_cause_no_panic() {
    for Sample { data, .. } in SAMPLES {
        let size = looked(data).unwrap().frame.size;
        for at in (0..data.len()).step_by(data.len() / 50) {
            let mut damaged = data.to_vec();
            damaged[at] ^= 1 << (at % 8);
            // The caller limits the size.
            if looked(&damaged).is_ok_and(|details| details.frame.size == size) {
                decoded(&damaged, if at % 2 == 0 { 1 } else { 8 })
                    .map(drop)
                    .ok();
            }
        }
    }
}

#[test]
fn unneeded_scans_are_skipped() {
    let data = sample("progressive");
    // The last scan refines high frequencies of luma.
    let last = scans(data).pop().unwrap();
    let mut spoilt = data.to_vec();
    spoilt[last].fill(0);
    assert!(decoded(data, 1).unwrap() == decoded(&spoilt, 1).unwrap());
    let whole = decoded(&spoilt, 8);
    assert!(whole.is_err() || whole.unwrap() != decoded(data, 8).unwrap());
}

/// Sets all quantisers to 1, so that the last bits of coefficients are invisible.
fn with_small_steps(data: &[u8]) -> Vec<u8> {
    let mut finer = data.to_vec();
    let mut at = 2;
    while let Some(next) = bits::marker(data, at).filter(|&next| data[next + 1] != START_OF_SCAN) {
        let length = usize::from(u16::from_be_bytes([data[next + 2], data[next + 3]]));
        at = next + 2 + length;
        if data[next + 1] == 0xdb {
            // Each table follows its number.
            finer[next + 4..at]
                .chunks_exact_mut(65)
                .for_each(|table| table[1..].fill(1));
        }
    }
    finer
}

#[test]
fn invisible_refinement_scans_are_skipped() {
    let (data, plain) = (
        with_small_steps(sample("progressive")),
        with_small_steps(sample("halved")),
    );
    let last = scans(&data).pop().unwrap();
    let mut spoilt = data.clone();
    spoilt[last].fill(0);
    for side in [1, 2, 4] {
        let found = decoded(&data, side).unwrap();
        assert!(found == decoded(&spoilt, side).unwrap(), "at {side}");
        let likeness = likeness(&found, &decoded(&plain, side).unwrap());
        assert!(likeness > 45.0, "at {side}: {likeness:.1} dB");
    }
    assert!(decoded(&data, 8).unwrap() == decoded(&plain, 8).unwrap());
    let whole = decoded(&spoilt, 8);
    assert!(whole.is_err() || whole.unwrap() != decoded(&data, 8).unwrap());
}

#[test]
fn unsupported_varieties_are_named() {
    let check = |data: &[u8], expected: &str| {
        let why = looked(data).unwrap_err();
        assert_eq!(
            why.to_string(),
            format!("this variety of JPEG is not supported: {expected}")
        );
    };
    check(
        include_bytes!("samples/arithmetic.jpg"),
        "arithmetic coding",
    );
    let halved = sample("halved");
    let frame = halved
        .windows(2)
        .position(|two| two == [0xff, 0xc0])
        .unwrap();
    let with = |at: usize, value: u8| {
        let mut data = halved.to_vec();
        data[frame + at] = value;
        data
    };
    check(&with(1, 0xc3), "lossless coding");
    check(&with(1, 0xc5), "hierarchical coding");
    check(&with(4, 12), "12 bits per sample");
    check(&with(9, 2), "2 components");
    let mut odd = with(11, 0x31);
    odd[frame + 14] = 0x21;
    check(
        &odd,
        "sampling factors that are not multiples of each other",
    );
}

#[test]
fn scan_bombs_are_refused_by_their_headers() {
    let data = sample("grey-progressive");
    let scans = scans(data);
    let [.., last] = &scans[..] else {
        panic!("no scan")
    };
    let start = data[..last.start]
        .windows(2)
        .rposition(|two| two == [0xff, START_OF_SCAN]);
    let scan = &data[start.unwrap()..last.end];
    let with = |more: usize| {
        let mut all = data[..last.end].to_vec();
        (0..more).for_each(|_| all.extend(scan));
        all.extend([0xff, END_OF_IMAGE]);
        all
    };
    assert!(looked(&with(200 - scans.len())).is_ok());
    let why = looked(&with(201 - scans.len())).unwrap_err().to_string();
    assert!(why.ends_with("more than 200 scans"), "{why}");
    // Fewer scans, but of a large picture.
    let mut large = with(30);
    let frame = large
        .windows(2)
        .position(|two| two == [0xff, 0xc2])
        .unwrap();
    large[frame + 5..frame + 9].copy_from_slice(&[50, 200, 50, 200]);
    let why = looked(&large).unwrap_err().to_string();
    assert!(
        why.ends_with("more blocks in its scans than murald decodes"),
        "{why}"
    );
}

#[test]
fn single_scan_decoding_needs_memory_for_a_few_rows() {
    let data = sample("halved");
    let mut large = looked(data).unwrap().frame;
    large.size = (12_000, 12_000);
    let plan = Plan {
        side: 8,
        buffered: false,
        output: Output::Colors,
    };
    assert!(large.memory(&plan) < 2 << 20, "{}", large.memory(&plan));
    assert!(
        large.memory(&Plan {
            buffered: true,
            ..plan
        }) > 12_000 * 12_000 * 2
    );
}
