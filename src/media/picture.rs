//! Stores decoded pixels, scales them and applies the orientation.

use fast_image_resize as fir;
use fir::images::{TypedImage, TypedImageRef};
use fir::pixels::{U8x3, U8x4};
use fir::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};
use image::{DynamicImage, RgbImage, RgbaImage};

use super::exif::{self, Orientation};
use super::icc::Profile;

/// 8-bit RGB or RGBA (not premultiplied), row by row.
#[derive(Clone, Debug)]
pub struct Picture {
    width: u32,
    height: u32,
    /// The part of the pixels that the image covers: less than all if the last column or row is the
    /// average of an incomplete box.
    extent: (f64, f64),
    channels: usize,
    pixels: Vec<u8>,
    /// The orientation that is not applied to the pixels yet.
    orientation: Orientation,
}

/// A part of an upright picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Region {
    fn from_size((width, height): (f64, f64)) -> Self {
        let (x, y) = (0.0, 0.0);
        Self {
            x,
            y,
            width,
            height,
        }
    }
}

impl Picture {
    /// Creates a picture that covers all its pixels.
    pub(super) fn new(
        (width, height): (u32, u32),
        channels: usize,
        pixels: Vec<u8>,
        orientation: Orientation,
    ) -> Self {
        debug_assert_eq!(pixels.len(), width as usize * height as usize * channels);
        Self {
            width,
            height,
            extent: (f64::from(width), f64::from(height)),
            channels,
            pixels,
            orientation,
        }
    }

    /// Limits the picture to a part of its pixels, from the top left.
    pub(super) fn covering(self, extent: (f64, f64)) -> Self {
        Self { extent, ..self }
    }

    /// The stored width in pixels, before the orientation is applied.
    pub fn width(&self) -> u32 {
        self.width
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    pub fn has_alpha(&self) -> bool {
        self.channels == 4
    }

    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Bytes per pixel.
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the picture upright and scaled to this size.
    pub fn resized(&self, width: u32, height: u32) -> Self {
        let whole = Region::from_size(self.extent);
        let (width, height) = exif::size(self.orientation, (width, height));
        self.scaled(whole, width, height, FilterType::Lanczos3)
            .upright()
    }

    /// Returns the picture no larger than `side`, by averaging boxes: without ringing or new
    /// colours. The orientation is not applied.
    pub(super) fn averaged(&self, side: u32) -> Self {
        let (width, height) = fit((self.width, self.height), (side, side));
        if (width, height) == (self.width, self.height) {
            return self.clone();
        }
        let whole = Region::from_size(self.extent);
        self.scaled(whole, width, height, FilterType::Box)
    }

    /// Scales a part of an upright picture to a new size.
    pub fn cut(&self, region: Region, width: u32, height: u32) -> Self {
        debug_assert_eq!(self.orientation, Orientation::NoTransforms);
        self.scaled(region, width, height, FilterType::Lanczos3)
    }

    /// Whether [`Self::cut`] with these arguments would return an equal picture.
    pub fn is(&self, region: Region, width: u32, height: u32) -> bool {
        let size = (f64::from(self.width), f64::from(self.height));
        region == Region::from_size(size) && (self.width, self.height) == (width, height)
    }

    /// Converts the colours to sRGB.
    pub(super) fn convert(&mut self, profile: &Profile) {
        profile.convert(&mut self.pixels, self.channels);
    }

    /// Applies the orientation to the pixels.
    pub fn upright(self) -> Self {
        if self.orientation == Orientation::NoTransforms {
            return self;
        }
        let whole = (self.extent.0.floor() as u32, self.extent.1.floor() as u32);
        if whole != (self.width, self.height) {
            // Rotated, the incomplete boxes would be at the wrong edge.
            let (width, height) = exif::size(self.orientation, whole);
            return self.resized(width, height);
        }
        let (width, height, pixels) = (self.width, self.height, self.pixels);
        let sound = "as many bytes as pixels, by construction";
        let mut turned: DynamicImage = match self.channels {
            4 => RgbaImage::from_raw(width, height, pixels)
                .expect(sound)
                .into(),
            _ => RgbImage::from_raw(width, height, pixels)
                .expect(sound)
                .into(),
        };
        turned.apply_orientation(self.orientation);
        let size = (turned.width(), turned.height());
        let pixels = turned.into_bytes();
        Self::new(size, self.channels, pixels, Orientation::NoTransforms)
    }

    /// The part of the pixels that the image covers.
    pub fn extent(&self) -> (f64, f64) {
        self.extent
    }

    fn scaled(&self, region: Region, width: u32, height: u32, filter: FilterType) -> Self {
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(filter))
            .crop(region.x, region.y, region.width, region.height);
        let pixels = match self.channels {
            4 => self.resample::<U8x4>(&options, width, height),
            _ => self.resample::<U8x3>(&options, width, height),
        };
        Self::new((width, height), self.channels, pixels, self.orientation)
    }

    /// Resizes pixels of type `P`. Everywhere in this file the type is fixed: `Resizer::resize`, which
    /// chooses it, would add code for 13 types to the executable.
    fn resample<P: PixelTrait>(&self, options: &ResizeOptions, width: u32, height: u32) -> Vec<u8> {
        let mut pixels = vec![0; width as usize * height as usize * self.channels];
        let sound = "as many bytes as pixels, by construction";
        let source = TypedImageRef::<P>::from_buffer(self.width, self.height, &self.pixels);
        let mut target = TypedImage::from_buffer(width, height, &mut pixels).expect(sound);
        Resizer::new()
            .resize_typed(&source.expect(sound), &mut target, options)
            .expect("a region inside the source");
        pixels
    }
}

/// Returns the largest size with the same aspect ratio that fits into `frame`, not larger than
/// `size`, and at least one pixel per side.
pub(crate) fn fit(size: (u32, u32), frame: (u32, u32)) -> (u32, u32) {
    let (w, h) = (f64::from(size.0), f64::from(size.1));
    let scale = (f64::from(frame.0) / w)
        .min(f64::from(frame.1) / h)
        .min(1.0);
    let side = |length: f64, most: u32| ((length * scale).round() as u32).clamp(1, most.max(1));
    (side(w, frame.0), side(h, frame.1))
}

/// Standard deviation of the kernel for enlarging, in pixels of the reduced picture.
const DEVIATION: f64 = 0.8;

/// Applies a Gaussian blur with this standard deviation: reduces the picture and enlarges it again
/// with a Gaussian kernel, a hundred times faster than a kernel of full size.
pub(crate) fn blur(
    from: &[u8],
    (width, height): (u32, u32),
    deviation: f64,
    into: &mut [u8],
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // The bilinear filter of the reduction has a variance of 1/6 in reduced pixels.
    let factor = deviation / (DEVIATION * DEVIATION + 1.0 / 6.0).sqrt();
    let small = |side: u32| (f64::from(side) / factor).round().max(1.0) as u32;
    let using = |filter| {
        ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(filter))
            .use_alpha(false)
    };
    let gauss = fir::Filter::new(
        "gauss",
        |x| (x * x / (-2.0 * DEVIATION * DEVIATION)).exp(),
        2.8,
    )?;
    let from = TypedImageRef::<U8x4>::from_buffer(width, height, from)?;
    let mut reduced = TypedImage::<U8x4>::new(small(width), small(height));
    let mut into = TypedImage::<U8x4>::from_buffer(width, height, into)?;
    let mut resizer = Resizer::new();
    resizer.resize_typed(&from, &mut reduced, &using(FilterType::Bilinear))?;
    resizer.resize_typed(&reduced, &mut into, &using(FilterType::Custom(gauss)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_size_keeps_the_ratio_and_never_grows() {
        let check = |size, frame, expected| assert_eq!(fit(size, frame), expected, "{size:?}");
        check((3840, 2160), (500, 500), (500, 281));
        check((2160, 3840), (500, 500), (281, 500));
        check((100, 50), (500, 500), (100, 50));
        check((65535, 1), (500, 500), (500, 1));
        check((3840, 2160), (1280, 720), (1280, 720));
        check((3000, 3000), (1280, 720), (720, 720));
    }

    #[test]
    fn upright_picture_starts_with_its_top_left_pixel() {
        let check = |value, (x, y): (u8, u8)| {
            // Each pixel has its index as its value.
            let pixels = (0..6).flat_map(|at| [at; 3]).collect();
            let orientation = Orientation::from_exif(value).unwrap();
            let picture = Picture::new((3, 2), 3, pixels, orientation).upright();
            assert_eq!(picture.pixels()[0], 3 * y + x, "{value}");
            let size = (picture.width(), picture.height());
            assert_eq!(size, if value < 5 { (3, 2) } else { (2, 3) }, "{value}");
        };
        check(1, (0, 0));
        check(2, (2, 0));
        check(3, (2, 1));
        check(4, (0, 1));
        check(5, (0, 0));
        check(6, (0, 1));
        check(7, (2, 1));
        check(8, (2, 0));
    }

    #[test]
    fn resized_picture_is_upright() {
        // Red above blue, rotated by 90 degrees: red is shown on the right.
        let pixels = [[255, 0, 0], [0, 0, 255]].concat();
        let picture = Picture::new((1, 2), 3, pixels, Orientation::Rotate90);
        let shown = picture.resized(2, 1);
        assert_eq!((shown.width(), shown.height()), (2, 1));
        assert_eq!(shown.pixels(), [0, 0, 255, 255, 0, 0]);
    }
}
