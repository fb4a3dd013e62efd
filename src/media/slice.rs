//! Cuts images for monitors: for a single one, or for several that one image spans (mode `extend`).

use png::{BitDepth, ColorType, Compression, Encoder};
use serde::{Deserialize, Serialize};

use super::canvas::over;
use super::decoder::Input;
use super::error::Error;
use super::exif::Orientation;
use super::picture::{Picture, Region};
use super::probe::Probe;
use super::samples::drop_alpha;
use crate::wire::Position;

/// A monitor's area in the layout, and its resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tile {
    /// In units of the layout.
    pub x: i32,
    pub y: i32,
    pub width: u32,
    pub height: u32,
    /// The size of the slice in pixels, after the output's transform.
    pub pixels: (u32, u32),
}

/// Which part of an image to show, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cut {
    /// The monitors that the image spans; if empty, the whole image is kept at its own size.
    pub tiles: Vec<Tile>,
    /// The visible part if the aspect ratios of image and monitors differ.
    pub position: Position,
    /// The background colour behind transparent pixels; `None` keeps the transparency.
    pub fill: Option<[u8; 3]>,
    /// Fills each monitor by repeating the image, pixel for pixel.
    pub repeats: bool,
}

impl Cut {
    pub const WHOLE: Self = Self {
        tiles: Vec::new(),
        position: Position::CENTER,
        fill: None,
        repeats: false,
    };

    /// Whether the image is neither cropped nor given a background.
    pub fn is_whole(&self) -> bool {
        self.tiles.is_empty() && self.fill.is_none()
    }
}

impl Probe {
    /// Scales the image to cover all tiles, and returns the part for each tile at its resolution,
    /// as PNG files in the order of the tiles.
    pub fn slices(&self, input: &mut dyn Input, cut: &Cut) -> Result<Vec<Vec<u8>>, Error> {
        let (width, height) = (self.width, self.height);
        let whole = [Tile {
            x: 0,
            y: 0,
            width,
            height,
            pixels: (width, height),
        }];
        let tiles = if cut.tiles.is_empty() {
            &whole[..]
        } else {
            &cut.tiles
        };
        let size = if cut.repeats {
            (width, height)
        } else {
            wanted((width, height), tiles)
        };
        let mut picture = self.decode(input, size)?.upright();
        if let (Some(fill), true) = (cut.fill, picture.has_alpha()) {
            picture = flattened(&picture, fill);
        }
        let extent = picture.extent();
        let slice = |tile: &Tile| {
            if cut.repeats {
                return repeated(&picture, tile.pixels).png();
            }
            let region = region(extent, tiles, tile, cut.position);
            picture
                .cut(region, tile.pixels.0.max(1), tile.pixels.1.max(1))
                .png()
        };
        tiles.iter().map(slice).collect()
    }
}

/// Returns the size to decode an image of this size for, so that no slice is upscaled
/// unnecessarily.
fn wanted(size: (u32, u32), tiles: &[Tile]) -> (u32, u32) {
    let bounds = Bounds::from_tiles(tiles);
    let density = density(tiles);
    let scale = bounds.scale((f64::from(size.0), f64::from(size.1))) * density;
    let side = |length: u32| (f64::from(length) * scale.min(1.0)).ceil() as u32;
    (side(size.0), side(size.1))
}

/// Returns the largest number of pixels per layout unit.
fn density(tiles: &[Tile]) -> f64 {
    let density = |tile: &Tile| {
        let unit = |pixels: u32, length: u32| f64::from(pixels) / f64::from(length.max(1));
        unit(tile.pixels.0, tile.width).max(unit(tile.pixels.1, tile.height))
    };
    tiles.iter().map(density).fold(1.0, f64::max)
}

/// Returns the size of all tiles together in pixels, at the resolution of the densest tile.
pub(crate) fn extent(tiles: &[Tile]) -> (u32, u32) {
    let bounds = Bounds::from_tiles(tiles);
    let density = density(tiles);
    (
        (bounds.width * density) as u32,
        (bounds.height * density) as u32,
    )
}

/// Composites an upright picture over a colour.
pub(crate) fn flattened(picture: &Picture, [red, green, blue]: [u8; 3]) -> Picture {
    let pixels = picture.pixels().as_chunks().0.iter();
    let over = |pixel: &[u8; 4]| over(*pixel, [red, green, blue, 255]);
    let mut pixels = pixels.flat_map(over).collect();
    drop_alpha(&mut pixels);
    let size = (picture.width(), picture.height());
    Picture::new(size, 3, pixels, Orientation::NoTransforms).covering(picture.extent())
}

/// Repeats the picture from the top left corner, up to this size.
fn repeated(picture: &Picture, (width, height): (u32, u32)) -> Picture {
    let channels = if picture.has_alpha() { 4 } else { 3 };
    let rows = picture
        .pixels()
        .chunks_exact(picture.width() as usize * channels)
        .cycle();
    let row = |row: &[u8]| {
        row.iter()
            .copied()
            .cycle()
            .take(width as usize * channels)
            .collect()
    };
    let pixels = rows
        .take(height as usize)
        .flat_map::<Vec<u8>, _>(row)
        .collect();
    Picture::new((width, height), channels, pixels, Orientation::NoTransforms)
}

struct Bounds {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Bounds {
    fn from_tiles(tiles: &[Tile]) -> Self {
        let edge = |of: fn(&Tile) -> i64, pick: fn(i64, i64) -> i64| {
            tiles.iter().map(of).reduce(pick).unwrap_or(0) as f64
        };
        let left = edge(|t| i64::from(t.x), i64::min);
        let top = edge(|t| i64::from(t.y), i64::min);
        let right = edge(|t| i64::from(t.x) + i64::from(t.width), i64::max);
        let bottom = edge(|t| i64::from(t.y) + i64::from(t.height), i64::max);
        Self {
            left,
            top,
            width: (right - left).max(1.0),
            height: (bottom - top).max(1.0),
        }
    }

    /// Returns the layout units per pixel of a picture that covers the bounds.
    fn scale(&self, (width, height): (f64, f64)) -> f64 {
        (self.width / width).max(self.height / height)
    }
}

/// Returns the part of a picture of this size that `tile` shows.
fn region(size: (f64, f64), tiles: &[Tile], tile: &Tile, position: Position) -> Region {
    let bounds = Bounds::from_tiles(tiles);
    let scale = bounds.scale(size);
    // The offset of the visible part, which the layout covers.
    let left = (size.0 - bounds.width / scale) * position.x();
    let top = (size.1 - bounds.height / scale) * position.y();
    // Rounding must not lead outside the picture.
    let (x, width) = inside(
        left + (f64::from(tile.x) - bounds.left) / scale,
        f64::from(tile.width.max(1)) / scale,
        size.0,
    );
    let (y, height) = inside(
        top + (f64::from(tile.y) - bounds.top) / scale,
        f64::from(tile.height.max(1)) / scale,
        size.1,
    );
    Region {
        x,
        y,
        width,
        height,
    }
}

fn inside(start: f64, length: f64, limit: f64) -> (f64, f64) {
    let start = start.clamp(0.0, limit);
    (start, length.min(limit - start))
}

impl Picture {
    /// Encodes the picture as PNG, fast rather than small, as the file is only read a few times.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        let failed = |error: png::EncodingError| Error::Encode(Box::new(error));
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width(), self.height());
        encoder.set_color(if self.has_alpha() {
            ColorType::Rgba
        } else {
            ColorType::Rgb
        });
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fastest);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(self.pixels()).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(x: i32, y: i32, width: u32, height: u32) -> Tile {
        Tile {
            x,
            y,
            width,
            height,
            pixels: (width, height),
        }
    }

    #[test]
    fn regions_cover_the_tiles_at_their_position() {
        let check_at = |position, size, tiles: &[Tile], expected: &[(f64, f64, f64, f64)]| {
            for (tile, &(x, y, width, height)) in tiles.iter().zip(expected) {
                assert_eq!(
                    region(size, tiles, tile, position),
                    Region {
                        x,
                        y,
                        width,
                        height
                    }
                );
            }
        };
        let check = |size, tiles: &[Tile], expected: &[(f64, f64, f64, f64)]| {
            check_at(Position::CENTER, size, tiles, expected);
        };
        let at = |position: &str, expected| {
            let one = [tile(0, 0, 200, 100)];
            check_at(position.parse().unwrap(), (400.0, 300.0), &one, &[expected]);
        };
        at("top-left", (0.0, 0.0, 400.0, 200.0));
        at("bottom-right", (0.0, 100.0, 400.0, 200.0));
        at("0%,25%", (0.0, 25.0, 400.0, 200.0));
        // Two monitors side by side with the picture's aspect ratio.
        check(
            (400.0, 100.0),
            &[tile(0, 0, 200, 100), tile(200, 0, 200, 100)],
            &[(0.0, 0.0, 200.0, 100.0), (200.0, 0.0, 200.0, 100.0)],
        );
        // The picture is taller: its middle is shown.
        check(
            (400.0, 300.0),
            &[tile(0, 0, 200, 100), tile(200, 0, 200, 100)],
            &[(0.0, 100.0, 200.0, 100.0), (200.0, 100.0, 200.0, 100.0)],
        );
        // A gap, an offset, negative coordinates, and a picture of half the layout's size.
        check(
            (200.0, 100.0),
            &[tile(-200, 0, 100, 100), tile(0, 100, 200, 100)],
            &[(0.0, 0.0, 50.0, 50.0), (100.0, 50.0, 100.0, 50.0)],
        );
    }

    #[test]
    fn picture_is_repeated_from_the_top_left() {
        let pixels = vec![1, 2, 3, 4, 5, 6];
        let pair = Picture::new((2, 1), 3, pixels, Orientation::NoTransforms);
        let row = [1, 2, 3, 4, 5, 6, 1, 2, 3];
        assert_eq!(repeated(&pair, (3, 2)).pixels(), [row, row].concat());
    }

    #[test]
    fn dense_monitors_need_more_pixels() {
        let dense = Tile {
            pixels: (3840, 2160),
            ..tile(0, 0, 1920, 1080)
        };
        let plain = tile(1920, 0, 1920, 1080);
        assert_eq!(wanted((7680, 2160), &[dense, plain]), (7680, 2160));
        assert_eq!(wanted((7680, 2160), &[plain]), (3840, 1080));
        assert_eq!(wanted((100, 100), &[plain]), (100, 100));
    }
}
