//! Draws pictures like photographs, always the same: light and shade, a few coloured shapes, noise.
//! Also compares a screenshot with such a picture.

use std::fs;
use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::{Rgb, RgbImage};

use super::dice::Dice;

/// Width and height as shown: landscape, portrait, square, wide.
const SIZES: [(u32, u32); 6] = [
    (800, 450),
    (640, 480),
    (450, 800),
    (480, 480),
    (1000, 320),
    (600, 400),
];

/// The grid for comparisons: means over these fields hide noise and scaling.
const FIELDS: (u32, u32) = (16, 9);
/// Number of samples per field, horizontally and vertically.
const SAMPLES: u32 = 12;

pub struct Photograph {
    pub path: PathBuf,
    /// The picture as it should be shown.
    pub picture: RgbImage,
}

/// Writes `count` files `photo-00.jpg` and so on into a directory. Every fifth is stored rotated,
/// with an EXIF orientation, like a photo from a camera held upright.
pub fn take(directory: &Path, count: u32) -> Vec<Photograph> {
    fs::create_dir_all(directory).unwrap();
    let one = |number| {
        let picture = draw(number);
        let path = directory.join(format!("photo-{number:02}.jpg"));
        fs::write(
            &path,
            if number % 5 == 4 {
                upright(&picture)
            } else {
                jpeg(&picture)
            },
        )
        .unwrap();
        Photograph { path, picture }
    };
    (0..count).map(one).collect()
}

fn draw(number: u32) -> RgbImage {
    let (width, height) = SIZES[number as usize % SIZES.len()];
    let mut dice = Dice(u64::from(number) + 1);
    let (sky, ground) = (color(&mut dice), color(&mut dice));
    let mut things = Vec::new();
    for _ in 0..5 {
        let color = color(&mut dice);
        let mut below = |sides: u32| dice.below(sides.into()) as u32;
        let at = (below(width) as f32, below(height) as f32);
        things.push((at, (below(height / 3) + height / 10) as f32, color));
    }
    let mut grain = Dice(u64::from(number) + 1000);
    let mut picture = RgbImage::new(width, height);
    for (x, y, pixel) in picture.enumerate_pixels_mut() {
        let depth = y as f32 / height as f32;
        let inside = things.iter().rev().find(|((left, top), size, _)| {
            (x as f32 - left).powi(2) + (y as f32 - top).powi(2) < size * size
        });
        let grain = grain.below(17) as f32 - 8.0;
        *pixel = Rgb(std::array::from_fn(|part| {
            let ground = sky[part] * (1.0 - depth) + ground[part] * depth;
            let shade = x as f32 / width as f32 * 40.0 - 20.0;
            let seen = inside.map_or(ground, |(_, _, color)| color[part]);
            (seen + shade + grain) as u8
        }));
    }
    picture
}

fn color(dice: &mut Dice) -> [f32; 3] {
    std::array::from_fn(|_| dice.below(256) as f32)
}

fn jpeg(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 88)
        .encode_image(picture)
        .unwrap();
    bytes
}

/// Encodes a picture rotated to the left, with an EXIF orientation that rotates it to the right.
pub fn upright(picture: &RgbImage) -> Vec<u8> {
    let plain = jpeg(&image::imageops::rotate270(picture));
    // One TIFF entry: Orientation (0x112), type SHORT, count 1, value 6.
    let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut bytes = plain[..2].to_vec();
    bytes.extend([0xff, 0xe1]);
    bytes.extend((exif.len() as u16 + 2).to_be_bytes());
    bytes.extend(exif);
    bytes.extend(&plain[2..]);
    bytes
}

/// Returns the difference between a screenshot and the picture scaled to cover it: the mean over
/// all fields, in levels of 255.
pub fn distance(shot: &RgbImage, picture: &RgbImage) -> f32 {
    let scale = f32::max(
        shot.width() as f32 / picture.width() as f32,
        shot.height() as f32 / picture.height() as f32,
    );
    let (width, height) = (shot.width() as f32 / scale, shot.height() as f32 / scale);
    let left = (picture.width() as f32 - width) / 2.0;
    let top = (picture.height() as f32 - height) / 2.0;
    let seen = fields(shot, (0.0, 0.0, shot.width() as f32, shot.height() as f32));
    let expected = fields(picture, (left, top, width, height));
    let differences = seen
        .iter()
        .zip(&expected)
        .map(|(one, other)| (one - other).abs());
    differences.sum::<f32>() / seen.len() as f32
}

/// Returns the mean colours of the fields in a part of a picture (left, top, width, height).
fn fields(picture: &RgbImage, (left, top, width, height): (f32, f32, f32, f32)) -> Vec<f32> {
    let (columns, rows) = FIELDS;
    let one = |field: u32| -> [f32; 3] {
        let (column, row) = (field % columns, field / columns);
        let mut sum = [0; 3];
        for sample in 0..SAMPLES * SAMPLES {
            let across = (column * SAMPLES + sample % SAMPLES) as f32 + 0.5;
            let down = (row * SAMPLES + sample / SAMPLES) as f32 + 0.5;
            let x = left + across / (columns * SAMPLES) as f32 * width;
            let y = top + down / (rows * SAMPLES) as f32 * height;
            let pixel = picture.get_pixel(x as u32, y as u32).0;
            sum.iter_mut()
                .zip(pixel)
                .for_each(|(sum, part)| *sum += u32::from(part));
        }
        sum.map(|sum| sum as f32 / (SAMPLES * SAMPLES) as f32)
    };
    (0..columns * rows).flat_map(one).collect()
}
