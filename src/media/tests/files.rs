//! Encodes one picture in every format, for the tests.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageBuffer, ImageFormat, Rgb};

use crate::wire::Format;

/// Draws soft shapes in many colours, which survive lossy coding.
pub(super) fn scene(width: u32, height: u32) -> ImageBuffer<Rgb<u8>, Vec<u8>> {
    ImageBuffer::from_fn(width, height, |x, y| {
        let (u, v) = (x as f32 / width as f32, y as f32 / height as f32);
        let wave = |k: f32, p: f32| ((u * k + v * (k - 1.0) + p).sin() * 0.5 + 0.5) * 255.0;
        if v < 0.3 {
            Rgb([30, 90, 200])
        } else {
            Rgb([wave(3.0, 0.0) as u8, wave(2.0, 1.0) as u8, 60])
        }
    })
}

pub(super) fn coded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

pub(super) fn jpeg(picture: &ImageBuffer<Rgb<u8>, Vec<u8>>, quality: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, quality)
        .encode_image(picture)
        .unwrap();
    bytes
}

pub(super) fn gif_of(
    frames: &[(u16, u16, Vec<u8>)],
    canvas: (u16, u16),
    palette: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = gif::Encoder::new(&mut bytes, canvas.0, canvas.1, palette).unwrap();
    for (width, height, indices) in frames {
        let frame = gif::Frame {
            width: *width,
            height: *height,
            buffer: indices.into(),
            ..Default::default()
        };
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    bytes
}

pub(super) fn apng(frames: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 8, 4);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_animated(frames, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    (0..frames).for_each(|n| writer.write_image_data(&[n as u8 * 90; 96]).unwrap());
    writer.finish().unwrap();
    bytes
}

pub(super) fn webp_animation(frames: i32) -> Vec<u8> {
    let config = webp::WebPConfig::new().unwrap();
    let mut encoder = webp::AnimEncoder::new(40, 20, &config);
    let pixels: Vec<_> = (0..frames)
        .map(|n| vec![n as u8 * 90 + 20; 40 * 20 * 3])
        .collect();
    for (number, frame) in pixels.iter().enumerate() {
        encoder.add_frame(webp::AnimFrame::from_rgb(
            frame,
            40,
            20,
            100 * number as i32,
        ));
    }
    encoder.encode().to_vec()
}

/// Encodes a picture in every lossless format.
pub(super) fn lossless(picture: &ImageBuffer<Rgb<u8>, Vec<u8>>) -> Vec<(Format, Vec<u8>)> {
    let dynamic = DynamicImage::ImageRgb8(picture.clone());
    let (width, height) = picture.dimensions();
    let webp = webp::Encoder::from_rgb(picture, width, height)
        .encode_lossless()
        .to_vec();
    vec![
        (Format::Png, coded(&dynamic, ImageFormat::Png)),
        (Format::Bmp, coded(&dynamic, ImageFormat::Bmp)),
        (Format::Tiff, coded(&dynamic, ImageFormat::Tiff)),
        (Format::Webp, webp),
    ]
}

pub(super) fn all(picture: &ImageBuffer<Rgb<u8>, Vec<u8>>) -> Vec<(Format, Vec<u8>)> {
    let (width, height) = picture.dimensions();
    let mut files = lossless(picture);
    files.push((Format::Jpg, jpeg(picture, 92)));
    files.push((
        Format::Webp,
        webp::Encoder::from_rgb(picture, width, height)
            .encode(90.0)
            .to_vec(),
    ));
    let indices = picture
        .pixels()
        .map(|p| (p[0] >> 5 << 5) | (p[1] >> 5 << 2) | p[2] >> 6);
    let palette: Vec<_> = (0..=255_u8)
        .flat_map(|i| [i & 0xe0, i << 3 & 0xe0, i << 6])
        .collect();
    let frame = (width as u16, height as u16, indices.collect());
    files.push((
        Format::Gif,
        gif_of(&[frame], (width as u16, height as u16), &palette),
    ));
    files
}
