//! Compares our decoders with others on every variety of each format: `tests/conformance` makes the
//! files and has other programs decode them. `cargo test` compares some of them, `tests/conformance/run`
//! all.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use murald::internals::media::{Picture, probe};
use serde::Deserialize;

/// A file, and how another program decodes it.
#[derive(Deserialize)]
struct Case {
    file: String,
    /// The other program.
    peer: String,
    /// Its pixels, RGBA; `None` if it refuses the file.
    reference: Option<String>,
    size: (u32, u32),
    /// Pixels for each side of a JPEG block: 8 decodes the whole picture, less a smaller one.
    side: u32,
    /// Number of frames that are compared.
    frames: usize,
    /// The least likeness in dB; `None` if each pixel must be the same.
    least: Option<f64>,
    /// The known difference between us and the peer, or a part of our message if we refuse the file.
    why: Option<String>,
}

/// Our result for a case.
enum Outcome {
    /// Likeness in dB.
    Alike(f64),
    Refused(String),
}

fn check(format: &str) {
    let place = tempfile::tempdir().unwrap();
    let wrong = wrong(&compared(place.path(), "part", format));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn jpeg_decodes_as_libjpeg_turbo_does() {
    check("jpeg");
}

#[test]
fn png_decodes_as_libpng_does() {
    check("png");
}

#[test]
fn gif_decodes_as_imagemagick_does() {
    check("gif");
}

#[test]
fn webp_decodes_as_libwebp_does() {
    check("webp");
}

#[test]
fn bmp_decodes_as_imagemagick_does() {
    check("bmp");
}

#[test]
fn tiff_decodes_as_libtiff_does() {
    check("tiff");
}

#[test]
#[ignore = "takes minutes: tests/conformance/run"]
fn every_variety_decodes_as_other_programs_do() {
    let formats = std::env::var("CONFORMANCE_FORMATS").unwrap();
    let mut all = String::new();
    for format in formats.split_whitespace() {
        let place = tempfile::tempdir().unwrap();
        let outcomes = compared(place.path(), "whole", format);
        println!("{}", table(format, &outcomes));
        all += &wrong(&outcomes);
    }
    assert!(all.is_empty(), "{all}");
}

/// Makes the files of a format, and decodes each.
fn compared(place: &Path, extent: &str, format: &str) -> Vec<(Case, Outcome)> {
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/make.py");
    // Debian's Python, as Pillow is installed for that one only.
    let made = Command::new("/usr/bin/python3")
        .arg("-B")
        .arg(make)
        .arg(place)
        .args([extent, format])
        .output();
    let made = made.unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let cases = fs::read_to_string(place.join("cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&cases).unwrap();
    assert!(cases.len() > 10, "{format}: {} cases", cases.len());
    let outcome = |case: Case| {
        let outcome = outcome(place, &case);
        (case, outcome)
    };
    cases.into_iter().map(outcome).collect()
}

fn outcome(place: &Path, case: &Case) -> Outcome {
    let mut input = Cursor::new(fs::read(place.join(&case.file)).unwrap());
    let pixels = match pixels(&mut input, case) {
        Ok(pixels) => pixels,
        Err(error) => {
            let why = error
                .source()
                .map_or(error.to_string(), |why| format!("{error}: {why}"));
            return Outcome::Refused(why);
        }
    };
    let Some(reference) = &case.reference else {
        return Outcome::Alike(0.0);
    };
    let expected = fs::read(place.join(reference)).unwrap();
    Outcome::Alike(likeness(&pixels, expected.as_chunks().0))
}

/// RGBA pixels of the compared frames; empty if a frame has the wrong size.
fn pixels(input: &mut Cursor<Vec<u8>>, case: &Case) -> Result<Vec<[u8; 4]>, Box<dyn Error>> {
    let probe = probe(input)?;
    let target = match case.side {
        8 => (1 << 14, 1 << 14),
        // Decoders leave half as much again for the resize that follows, so this decodes to `size`.
        _ => (case.size.0 * 2 / 3, case.size.1 * 2 / 3),
    };
    let (mut pixels, mut sound) = (Vec::new(), true);
    let mut add = |picture: Picture| {
        sound &= (picture.width(), picture.height()) == case.size;
        let channels = if picture.has_alpha() { 4 } else { 3 };
        let own = picture.pixels().chunks_exact(channels);
        pixels.extend(own.map(|own| [own[0], own[1], own[2], *own.get(3).unwrap_or(&255)]));
    };
    if case.frames == 1 {
        add(probe.decode(input, target)?.upright());
    } else {
        let mut left = case.frames;
        probe.frames(input, &mut |picture, _| {
            add(picture);
            left -= 1;
            left > 0
        })?;
    }
    Ok(if sound { pixels } else { Vec::new() })
}

/// Likeness of two pictures in dB; infinite if they are the same. The colour of transparent pixels is
/// ignored.
fn likeness(ours: &[[u8; 4]], theirs: &[[u8; 4]]) -> f64 {
    if ours.len() != theirs.len() {
        return f64::NEG_INFINITY;
    }
    let seen = |&[r, g, b, alpha]: &[u8; 4]| {
        [r, g, b].map(|color| f64::from(color) * f64::from(alpha) / 255.0)
    };
    let square = |(ours, theirs): (&[u8; 4], &[u8; 4])| {
        let alpha = f64::from(ours[3].abs_diff(theirs[3])).powi(2);
        seen(ours)
            .iter()
            .zip(seen(theirs))
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>()
            + alpha
    };
    let error = ours.iter().zip(theirs).map(square).sum::<f64>() / (4 * theirs.len()) as f64;
    if error == 0.0 {
        f64::INFINITY
    } else {
        10.0 * (255.0 * 255.0 / error).log10()
    }
}

/// A line for each case with an unexpected outcome.
fn wrong(outcomes: &[(Case, Outcome)]) -> String {
    let mut lines = String::new();
    for (case, outcome) in outcomes {
        let what = match (outcome, &case.reference, &case.why) {
            (Outcome::Refused(_), None, _) => continue,
            (Outcome::Refused(said), Some(_), Some(why)) if said.contains(why) => continue,
            (Outcome::Refused(said), Some(_), _) => format!("refused: {said}"),
            (Outcome::Alike(_), None, _) => format!("taken, which {} refuses", case.peer),
            (Outcome::Alike(alike), Some(_), why) => {
                let least = case.least.unwrap_or(f64::INFINITY);
                if *alike >= least || why.is_some() {
                    continue;
                }
                format!("{alike:.1} dB at {}/8", case.side)
            }
        };
        writeln!(lines, "{}: {what} (beside {})", case.file, case.peer).unwrap();
    }
    lines
}

/// A line for each decoded size: how many cases, the worst likeness, and how many are refused.
fn table(format: &str, outcomes: &[(Case, Outcome)]) -> String {
    let mut lines = String::new();
    let mut sides = BTreeMap::<_, Vec<_>>::new();
    for (case, outcome) in outcomes {
        sides
            .entry(8 - case.side)
            .or_default()
            .push((case, outcome));
    }
    for cases in sides.values() {
        let side = cases[0].0.side;
        let alike = cases.iter().filter_map(|(case, outcome)| match outcome {
            Outcome::Alike(alike) if case.reference.is_some() => Some((*alike, &case.file)),
            _ => None,
        });
        let mut alike: Vec<_> = alike.collect();
        alike.sort_by(|a, b| a.0.total_cmp(&b.0));
        let same = alike
            .iter()
            .filter(|(alike, _)| alike.is_infinite())
            .count();
        let both = cases
            .iter()
            .filter(|(case, _)| case.reference.is_none())
            .count();
        let refused = cases.len() - both - alike.len();
        let worst = alike
            .first()
            .map_or("-".to_owned(), |(db, file)| format!("{db:.1} dB, {file}"));
        writeln!(
            lines,
            "{format:5} {side}/8  {} compared, {same} the same, worst {worst}; \
             {refused} refused by us alone, {both} by both",
            alike.len()
        )
        .unwrap();
    }
    lines
}
