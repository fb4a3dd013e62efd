//! Tests every format from file to pixels: complete, truncated, rotated and hostile files.

mod files;

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ExtendedColorType, ImageBuffer, ImageEncoder, ImageFormat, Rgb, Rgba};

use super::decoder::Note;
use super::exif::tests::block;
use super::{Cut, Error, Picture, Probe, Tile, palette, probe};
use crate::color::{hex, lab};
use crate::wire::Format;
use files::{all, apng, coded, gif_of, jpeg, lossless, scene, webp_animation};

fn probed(bytes: &[u8]) -> Result<Probe, Error> {
    probe(&mut Cursor::new(bytes))
}

fn thumbnail(bytes: &[u8], side: u32) -> Result<Picture, Error> {
    let mut input = Cursor::new(bytes);
    Ok(probe(&mut input)?
        .thumbnail(&mut input, (side, side))?
        .picture)
}

#[test]
fn every_format_is_known_and_decoded() {
    let picture = scene(320, 200);
    for (format, bytes) in all(&picture) {
        let probe = probed(&bytes).unwrap();
        assert_eq!(
            (probe.format, probe.width, probe.height),
            (format, 320, 200)
        );
        assert!(!probe.animated, "{format}");
        let small = thumbnail(&bytes, 100).unwrap();
        assert_eq!((small.width(), small.height()), (100, 63), "{format}");
        let sky = lab(small.pixels()[..3].try_into().unwrap());
        assert!(
            sky.distance(lab([30, 90, 200])) < 25.0,
            "{format}: {:?}",
            &small.pixels()[..3]
        );
        // A thumbnail is not larger than the image.
        assert_eq!(thumbnail(&bytes, 500).unwrap().width(), 320);
    }
}

#[test]
fn lossless_formats_give_the_same_pixels_and_palette() {
    let picture = scene(1501, 997);
    let mut files = lossless(&picture).into_iter();
    let (_, first) = files.next().unwrap();
    let first = thumbnail(&first, 500).unwrap();
    for (format, bytes) in files {
        let other = thumbnail(&bytes, 500).unwrap();
        assert!(other.pixels() == first.pixels(), "{format}");
        assert_eq!(palette(&other), palette(&first));
    }
    // A lossy file has nearly the same colours, possibly in another order if shares are similar.
    let lossy = palette(&thumbnail(&jpeg(&picture, 90), 500).unwrap());
    for color in palette(&first) {
        let near = |&other: &[u8; 3]| lab(other).distance(lab(color)) < 3.0;
        assert!(
            lossy.iter().any(near),
            "{} is not among {lossy:?}",
            hex(color)
        );
    }
}

#[test]
fn truncated_files_are_refused() {
    let picture = scene(160, 90);
    let mut files = all(&picture);
    files.push((Format::Png, apng(3)));
    files.push((Format::Webp, webp_animation(3)));
    for (format, bytes) in files {
        assert!(thumbnail(&bytes, 50).is_ok(), "{format}");
        // An animation without its end marker is refused, too.
        let animated = probed(&bytes).unwrap().animated;
        let lacks_end = |keep: usize| match format {
            _ if animated => false,
            Format::Jpg => keep >= bytes.len() - 2,
            Format::Gif => keep >= bytes.len() - 1,
            Format::Png => keep >= bytes.len() - 12,
            _ => false,
        };
        for keep in (0..bytes.len())
            .step_by(bytes.len() / 61 + 1)
            .chain([bytes.len() - 1])
        {
            let cut = thumbnail(&bytes[..keep], 50);
            let taken = cut.is_ok();
            assert_eq!(
                taken,
                lacks_end(keep),
                "{format} of {} bytes, {keep} kept",
                bytes.len()
            );
        }
    }
}

#[test]
fn missing_end_marker_is_accepted_with_a_note() {
    let picture = scene(160, 90);
    for (format, bytes) in all(&picture) {
        let end = match format {
            Format::Jpg => 2,
            Format::Gif => 1,
            Format::Png => 12,
            _ => continue,
        };
        let whole = probed(&bytes).unwrap();
        let cut = probed(&bytes[..bytes.len() - end]).unwrap();
        assert_eq!(
            (whole.note, cut.note),
            (None, Some(Note::NoEnd)),
            "{format}"
        );
        let of = |bytes| thumbnail(bytes, 500).unwrap();
        assert_eq!(
            of(&bytes).pixels(),
            of(&bytes[..bytes.len() - end]).pixels(),
            "{format}"
        );
    }
}

#[test]
fn jpeg_without_huffman_tables_uses_the_standard_ones() {
    // The encoder uses the standard tables; remove them.
    let mut bytes = jpeg(&scene(64, 40), 90);
    let whole = thumbnail(&bytes, 500).unwrap();
    while let Some(at) = bytes.windows(2).position(|two| two == [0xff, 0xc4]) {
        let length = usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
        bytes.drain(at..at + 2 + length);
    }
    assert_eq!(probed(&bytes).unwrap().note, Some(Note::NoTables));
    assert_eq!(thumbnail(&bytes, 500).unwrap().pixels(), whole.pixels());
}

#[test]
fn jpeg_with_missing_data_is_refused() {
    let bytes = jpeg(&scene(640, 400), 90);
    // Half of the file, with an end marker.
    let half = [&bytes[..bytes.len() / 2], &[0xff, 0xd9]].concat();
    let half = thumbnail(&half, 50).map(drop);
    assert!(matches!(half, Err(Error::Damaged { .. })), "{half:?}");
}

#[test]
fn data_after_a_jpeg_is_ignored() {
    let mut bytes = jpeg(&scene(64, 40), 90);
    bytes.extend(b"a camera's trailer \xff\xd8");
    assert!(thumbnail(&bytes, 100).is_ok());
}

#[test]
fn damaged_files_cause_errors_but_no_panic() {
    for (format, bytes) in all(&scene(64, 48)) {
        for at in 0..bytes.len().min(400) {
            for value in [0xff, bytes[at] ^ 0x10] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let result = std::panic::catch_unwind(|| thumbnail(&damaged, 32).map(drop));
                assert!(result.is_ok(), "{format}: byte {at} as {value}");
            }
        }
    }
}

#[test]
fn animations_are_recognised() {
    let palette = [0, 0, 0, 255, 255, 255];
    let check = |bytes: &[u8], animated, size| {
        let probe = probed(bytes).unwrap();
        assert_eq!(
            (probe.animated, (probe.width, probe.height)),
            (animated, size)
        );
        assert_eq!(thumbnail(bytes, 500).unwrap().width(), size.0);
    };
    let frame = || (6, 4, vec![1; 24]);
    check(&gif_of(&[frame()], (6, 4), &palette), false, (6, 4));
    check(&gif_of(&[frame(), frame()], (6, 4), &palette), true, (6, 4));
    check(&gif_of(&[frame(), frame()], (9, 5), &palette), true, (9, 5));
    check(&apng(1), false, (8, 4));
    check(&apng(3), true, (8, 4));
    check(&webp_animation(3), true, (40, 20));
}

#[test]
fn gif_small_first_frame_leaves_the_rest_transparent() {
    let bytes = gif_of(&[(2, 1, vec![1, 1])], (3, 2), &[0, 0, 0, 9, 8, 7]);
    let shown = thumbnail(&bytes, 500).unwrap();
    let row = [9, 8, 7, 255, 9, 8, 7, 255, 0, 0, 0, 0];
    assert_eq!(shown.pixels()[..12], row);
    assert_eq!(shown.pixels()[12..], [0; 12]);
}

#[test]
fn exif_orientation_is_applied() {
    let jpeg = |orientation: u8| {
        let plain = jpeg(&scene(64, 32), 95);
        let exif = block(orientation);
        let length = (exif.len() as u16 + 2).to_be_bytes();
        [&plain[..2], &[0xff, 0xe1], &length, &exif, &plain[2..]].concat()
    };
    let upright = probed(&jpeg(1)).unwrap();
    assert_eq!((upright.width, upright.height), (64, 32));
    // The sky fills a third of the image along one edge; check on which side it is shown.
    let check = |orientation, size, sky: (u32, u32)| {
        let bytes = jpeg(orientation);
        let probe = probed(&bytes).unwrap();
        assert_eq!((probe.width, probe.height), size, "{orientation}");
        let shown = thumbnail(&bytes, 500).unwrap();
        let at = (sky.1 * shown.width() + sky.0) as usize * 3;
        let pixel = lab(shown.pixels()[at..at + 3].try_into().unwrap());
        assert!(pixel.distance(lab([30, 90, 200])) < 15.0, "{orientation}");
    };
    check(1, (64, 32), (32, 1));
    check(3, (64, 32), (32, 30));
    check(6, (32, 64), (30, 32));
    check(8, (32, 64), (1, 32));
}

#[test]
fn orientation_is_read_from_every_format() {
    let plain = jpeg(&scene(640, 400), 95);
    let exif = block(6);
    let length = (exif.len() as u16 + 2).to_be_bytes();
    let turned = [&plain[..2], &[0xff, 0xe1], &length, &exif, &plain[2..]].concat();
    let check = |bytes: &[u8], expected| {
        let probe = probe(&mut Cursor::new(bytes)).unwrap();
        assert_eq!((probe.format, probe.is_upright()), expected);
    };
    check(&turned, (Format::Jpg, false));
    check(&plain, (Format::Jpg, true));
    for (format, bytes) in all(&scene(20, 10)) {
        check(&bytes, (format, true));
    }
}

/// Creates a little-endian TIFF with these entries.
fn tiff(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = b"II*\0\x0a\0\0\0\x01\0".to_vec();
    bytes.extend((entries.len() as u16).to_le_bytes());
    for &(tag, value) in entries {
        let kind = if value > u32::from(u16::MAX) { 4 } else { 3 };
        bytes.extend([u16::to_le_bytes(tag), [kind, 0], [1, 0], [0, 0]].concat());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn tiff_fill_order_2_is_left_to_the_transcoder() {
    // One pixel of 8 bits. The tags are width, height, bits, no compression, black is zero, fill
    // order, strip offset, rows and bytes.
    let tiff = |order| {
        let size = [(256, 1), (257, 1), (258, 8)];
        let strip = [(273, 8), (278, 1), (279, 1)];
        tiff(&[&size[..], &[(259, 1), (262, 1), (266, order)], &strip].concat())
    };
    assert_eq!(thumbnail(&tiff(1), 9).unwrap().pixels(), [1; 3]);
    let why = thumbnail(&tiff(2), 9).unwrap_err().to_string();
    let expected = "murald cannot decode this variety of TIFF; only ffmpeg may: \
                    reversed bit order (FillOrder 2)";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn tiff_that_ffmpeg_decodes_wrongly_is_refused() {
    // A grey pixel of 4 bits, which the `image` crate does not decode; ffmpeg ignores tiles and
    // orientation.
    let strip = [(273, 8), (278, 1), (279, 1)];
    let of = |more: &[(u16, u32)], place: &[(u16, u32)]| {
        let picture = [(256, 1), (257, 1), (258, 4), (259, 1), (262, 1)];
        thumbnail(&tiff(&[&picture, more, place].concat()), 9).unwrap_err()
    };
    let plain = of(&[], &strip);
    assert!(matches!(plain, Error::NeedsTranscoder { .. }), "{plain}");
    for refused in [
        of(&[], &[(322, 16), (323, 16), (324, 8), (325, 1)]),
        of(&[(274, 6)], &strip),
    ] {
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    }
}

#[test]
fn tiff_of_ycc_is_read_by_its_strips_and_tiles() {
    for file in [
        &include_bytes!("tests/ycc-strips.tiff")[..],
        include_bytes!("tests/ycc-tiles.tiff"),
    ] {
        let picture = thumbnail(file, 40).unwrap();
        assert_eq!((picture.width(), picture.height()), (40, 24));
        for (at, expected) in [(3 * 45, [200, 40, 30]), (3 * (22 * 40 + 35), [30, 60, 190])] {
            let found = &picture.pixels()[at..at + 3];
            let is_near = |(found, expected): (&u8, u8)| found.abs_diff(expected) < 6;
            assert!(found.iter().zip(expected).all(is_near), "{found:?}");
        }
    }
}

#[test]
fn tiff_goes_to_ffmpeg_only_if_ffmpeg_is_right() {
    let check = |changes: &[(u16, u32)], is_right| {
        let mut entries = vec![
            (256, 1),
            (257, 1),
            (258, 4),
            (259, 1),
            (262, 1),
            (273, 8),
            (277, 1),
            (278, 1),
            (279, 1),
        ];
        entries.retain(|(tag, _)| changes.iter().all(|(changed, _)| tag != changed));
        entries.extend(changes);
        entries.sort_unstable();
        let error = thumbnail(&tiff(&entries), 9).unwrap_err();
        let is_left = matches!(error, Error::NeedsTranscoder { .. });
        assert_eq!(is_left, is_right, "{changes:?}: {error}");
        assert!(
            is_left || matches!(error, Error::Unsupported { .. }),
            "{error}"
        );
    };
    let [bits, compression, photometric, order, samples] = [258, 259, 262, 266, 277];
    let format = 339;
    check(&[], true);
    check(&[(compression, 5)], true);
    check(&[(order, 2)], false);
    check(&[(order, 2), (compression, 5)], true);
    check(&[(order, 2), (bits, 8)], true);
    check(&[(photometric, 3)], true);
    // Integers of 32 bits without a word about their format, half floats, signed integers, Lab.
    check(&[(photometric, 2), (samples, 3), (bits, 32)], false);
    check(
        &[(photometric, 2), (samples, 3), (bits, 16), (format, 3)],
        false,
    );
    check(&[(bits, 8), (format, 2)], false);
    check(&[(photometric, 8), (samples, 3), (bits, 8)], false);
}

#[test]
fn tiff_with_more_values_than_bytes_is_refused_before_it_is_read() {
    let fields = [
        (256, 1),
        (257, 1),
        (258, 8),
        (259, 1),
        (262, 1),
        (273, 8),
        (278, 1),
        (279, 1),
    ];
    let with_count = |field: usize, count: u32| {
        let mut file = tiff(&fields);
        file[12 + 12 * field + 4..][..4].copy_from_slice(&count.to_le_bytes());
        thumbnail(&file, 9)
    };
    assert_eq!(with_count(4, 1).unwrap().pixels(), [1; 3]);
    for field in 0..fields.len() {
        let refused = with_count(field, 0x0056_8e70).unwrap_err();
        assert!(
            matches!(refused, Error::Truncated(Format::Tiff)),
            "{field}: {refused}"
        );
    }
}

#[test]
fn size_check_does_not_overflow() {
    let mut huge = apng(1);
    huge[16..24].fill(0xff);
    assert!(matches!(
        probed(&huge),
        Err(Error::TooLarge {
            width: u32::MAX,
            height: u32::MAX
        })
    ));
}

#[test]
fn sixteen_bits_grey_and_alpha() {
    let check = |picture: DynamicImage, expected: &[u8]| {
        for format in [ImageFormat::Png, ImageFormat::Tiff] {
            let shown = thumbnail(&coded(&picture, format), 500).unwrap();
            assert_eq!(&shown.pixels()[..expected.len()], expected, "{format:?}");
        }
    };
    check(
        ImageBuffer::from_pixel(5, 5, image::Luma([200_u8])).into(),
        &[200, 200, 200],
    );
    check(
        ImageBuffer::from_pixel(5, 5, image::Luma([0x1234_u16])).into(),
        &[0x12; 3],
    );
    check(
        ImageBuffer::from_pixel(5, 5, Rgb([0x1122_u16, 0x3344, 0xffff])).into(),
        &[0x11, 0x33, 0xff],
    );
    check(
        ImageBuffer::from_pixel(5, 5, Rgba([1_u8, 2, 3, 128])).into(),
        &[1, 2, 3, 128],
    );
}

#[test]
fn bombs_are_refused_by_their_header() {
    // A PNG of 30000 × 30000 pixels with one bit each: a hundred kilobytes of zeros.
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 30_000, 30_000);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&vec![0; 3750 * 30_000]).unwrap();
    writer.finish().unwrap();
    assert!(matches!(
        probed(&bytes),
        Err(Error::TooLarge {
            width: 30_000,
            height: 30_000
        })
    ));

    let mut flat = jpeg(&scene(16, 16), 50);
    let frame = flat.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    flat[frame + 5..frame + 9].fill(0xff);
    assert!(matches!(probed(&flat), Err(Error::TooLarge { .. })));
}

#[test]
fn non_pictures_are_refused_with_a_reason() {
    let check = |bytes: &[u8], message: &str| {
        assert_eq!(probed(bytes).unwrap_err().to_string(), message);
    };
    check(b"", "the file is empty");
    check(b"hello", "not a supported image or video");
    check(
        b"\xff\x0a",
        "murald needs another program to decode JPEG XL files",
    );
    check(b"\x89PNG\r\n\x1a\n", "the PNG is truncated");
}

#[test]
fn slices_show_their_part() {
    // The left half is red, the right half blue; the monitors have different densities.
    let halves = ImageBuffer::from_fn(400, 100, |x, _| {
        if x < 200 {
            Rgb([255, 0, 0])
        } else {
            Rgb([0, 0, 255_u8])
        }
    });
    let bytes = coded(&DynamicImage::ImageRgb8(halves), ImageFormat::Png);
    let left = Tile {
        x: 0,
        y: 0,
        width: 200,
        height: 100,
        pixels: (400, 200),
    };
    let right = Tile {
        x: 200,
        pixels: (100, 50),
        ..left
    };
    let mut input = Cursor::new(&bytes[..]);
    let cut = Cut {
        tiles: vec![left, right],
        ..Cut::WHOLE
    };
    let slices = probe(&mut input).unwrap().slices(&mut input, &cut).unwrap();
    for (slice, (size, color)) in slices
        .iter()
        .zip([((400, 200), [255, 0, 0]), ((100, 50), [0, 0, 255])])
    {
        let shown = image::load_from_memory(slice).unwrap().into_rgb8();
        assert_eq!(shown.dimensions(), size);
        // The filter reads across the edge, so that both monitors show one continuous image.
        let inner = shown
            .enumerate_pixels()
            .filter(|(x, ..)| (8..size.0 - 8).contains(x));
        assert!(inner.into_iter().all(|(.., pixel)| pixel.0 == color));
    }
}

#[test]
fn large_jpegs_are_scaled_while_decoding() {
    let (width, height) = (4200, 3000);
    let grey = vec![90; width as usize * height as usize];
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, 50);
    encoder
        .write_image(&grey, width, height, ExtendedColorType::L8)
        .unwrap();
    let shown = thumbnail(&bytes, 500).unwrap();
    assert_eq!((shown.width(), shown.height()), (500, 357));
    assert!(shown.pixels().iter().all(|&value| value.abs_diff(90) < 3));
    assert!(thumbnail(&bytes[..bytes.len() - 99], 500).is_err());
}

#[test]
fn alpha_channel_of_an_opaque_image_is_dropped() {
    let check = |alpha: u8, has_alpha| {
        let picture = ImageBuffer::from_pixel(5, 5, Rgba([1_u8, 2, 3, alpha]));
        let bytes = webp::Encoder::from_rgba(&picture, 5, 5)
            .encode_lossless()
            .to_vec();
        let shown = thumbnail(&bytes, 500).unwrap();
        assert_eq!(
            (shown.has_alpha(), &shown.pixels()[..3]),
            (has_alpha, &[1, 2, 3][..])
        );
    };
    check(255, false);
    check(128, true);
}

#[test]
fn bmp_with_zero_alpha_everywhere_is_opaque() {
    let check = |alphas: [u8; 2], has_alpha| {
        let mut picture = ImageBuffer::from_pixel(2, 1, Rgba([1_u8, 2, 3, alphas[0]]));
        picture.put_pixel(1, 0, Rgba([4, 5, 6, alphas[1]]));
        let shown = thumbnail(&coded(&picture.into(), ImageFormat::Bmp), 9).unwrap();
        assert_eq!(
            (shown.has_alpha(), &shown.pixels()[..3]),
            (has_alpha, &[1, 2, 3][..])
        );
    };
    check([0, 0], false);
    check([255, 255], false);
    check([128, 0], true);
}
