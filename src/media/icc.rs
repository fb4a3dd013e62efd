//! Converts images from their colour profiles to sRGB.
//!
//! Cameras and phones describe wider gamuts with a profile (Display P3, Adobe RGB), and printers
//! their inks (CMYK). Profiles equal to sRGB, and profiles of another kind than the image, are
//! ignored. Colours outside sRGB are clipped.

use std::fmt;
use std::sync::Arc;

use moxcms::{
    CicpColorPrimaries, CicpProfile, ColorProfile, DataColorSpace, Layout, MatrixCoefficients,
    ToneReprCurve, TransferCharacteristics, Transform8BitExecutor, TransformOptions,
};

use crate::color::linear;

/// In bytes; printer profiles have half a megabyte to three.
pub(super) const PROFILE_MAX: usize = 4 << 20;
/// Maximum difference per channel at which a profile counts as sRGB.
const SAME: u8 = 2;
/// Number of pixels converted at a time.
const PIXELS: usize = 4096;

/// The kind of samples in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Samples {
    Gray,
    Rgb,
    /// 255 is the full amount of an ink.
    Cmyk,
}

/// The colour profile of an image.
#[derive(Clone)]
pub(super) struct Profile {
    icc: Arc<ColorProfile>,
    samples: Samples,
}

/// Converts samples of a file to sRGB.
pub(super) struct Conversion {
    transform: Arc<Transform8BitExecutor>,
    /// Channels of a pixel, before and after the conversion.
    from: usize,
    to: usize,
}

impl Profile {
    /// Returns `None` if the profile is damaged, or not for such samples.
    pub(super) fn read(bytes: &[u8], samples: Samples) -> Option<Self> {
        if bytes.len() > PROFILE_MAX {
            return None;
        }
        let icc = ColorProfile::new_from_slice(bytes).ok()?;
        let is_hdr = |points: &CicpProfile| light(points.transfer_characteristics).is_some();
        if let Some(points) = icc.cicp.filter(is_hdr) {
            let (primaries, transfer) = (points.color_primaries, points.transfer_characteristics);
            return Self::from_code_points((primaries as u8, transfer as u8));
        }
        let fits = match samples {
            Samples::Gray => icc.color_space == DataColorSpace::Gray,
            Samples::Rgb => icc.color_space == DataColorSpace::Rgb,
            Samples::Cmyk => icc.color_space == DataColorSpace::Cmyk,
        };
        fits.then(|| Self {
            icc: Arc::new(icc),
            samples,
        })
    }

    /// Creates the profile for H.273's code points of primaries and transfer function.
    pub(super) fn from_code_points((primaries, transfer): (u8, u8)) -> Option<Self> {
        let mut icc = ColorProfile::new_srgb();
        icc.cicp = None;
        // Returns false for all (moxcms 0.8), but stores the values that it supports.
        icc.update_rgb_colorimetry_from_cicp(CicpProfile {
            color_primaries: CicpColorPrimaries::try_from(primaries).ok()?,
            transfer_characteristics: TransferCharacteristics::try_from(transfer).ok()?,
            matrix_coefficients: MatrixCoefficients::Identity,
            full_range: true,
        });
        if let Some(light) = light(icc.cicp?.transfer_characteristics) {
            icc.cicp = None;
            let tones = Some(tones(light));
            (icc.red_trc, icc.green_trc, icc.blue_trc) = (tones.clone(), tones.clone(), tones);
        }
        Some(Self {
            icc: Arc::new(icc),
            samples: Samples::Rgb,
        })
    }

    /// Returns the conversion for a decoder that produces inks, which cannot be converted later.
    pub(super) fn of_inks(&self) -> Option<Conversion> {
        if self.samples == Samples::Cmyk {
            self.conversion(Layout::Rgba, Layout::Rgb)
        } else {
            None
        }
    }

    /// Converts decoded pixels with three channels, or four with alpha, to sRGB. Inks are converted
    /// by the decoder already.
    pub(super) fn convert(&self, pixels: &mut [u8], channels: usize) {
        let layout = if channels == 4 {
            Layout::Rgba
        } else {
            Layout::Rgb
        };
        match self.samples {
            Samples::Cmyk => {}
            Samples::Rgb => {
                if let Some(conversion) = self.conversion(layout, layout) {
                    conversion.apply_in_place(pixels);
                }
            }
            Samples::Gray => {
                let Some(conversion) = self.conversion(Layout::Gray, Layout::Rgb) else {
                    return;
                };
                let mut levels = [0; 256];
                let mut colors = [0; 3 * 256];
                levels
                    .iter_mut()
                    .zip(0..=255)
                    .for_each(|(level, value)| *level = value);
                conversion.apply(&levels, &mut colors);
                for pixel in pixels.chunks_exact_mut(channels) {
                    let at = 3 * usize::from(pixel[0]);
                    pixel[..3].copy_from_slice(&colors[at..at + 3]);
                }
            }
        }
    }

    /// Whether its colours differ from sRGB.
    pub(super) fn changes_anything(&self) -> bool {
        let layout = match self.samples {
            Samples::Gray => Layout::Gray,
            Samples::Rgb => Layout::Rgb,
            Samples::Cmyk => Layout::Rgba,
        };
        self.conversion(layout, Layout::Rgb).is_some()
    }

    /// Returns `None` if there is nothing to convert, or the conversion is not supported.
    fn conversion(&self, from: Layout, to: Layout) -> Option<Conversion> {
        let srgb = ColorProfile::new_srgb();
        let options = TransformOptions::default();
        let transform = self
            .icc
            .create_transform_8bit(from, &srgb, to, options)
            .ok()?;
        let conversion = Conversion {
            transform,
            from: from.channels(),
            to: to.channels(),
        };
        (self.samples != Samples::Rgb || conversion.changes_anything()).then_some(conversion)
    }
}

/// Returns the light of a signal for HDR screens, relative to a white of 203 cd/m² (ITU-R BT.2408);
/// `None` for other transfer functions.
fn light(transfer: TransferCharacteristics) -> Option<fn(f32) -> f32> {
    match transfer {
        // PQ (SMPTE ST 2084).
        TransferCharacteristics::Smpte2084 => Some(|value| {
            let root = value.powf(1.0 / 78.843_75);
            let ratio = (root - 0.835_937_5).max(0.0) / (18.851_563 - 18.687_5 * root);
            ratio.powf(1.0 / 0.159_301_76) * 10_000.0 / 203.0
        }),
        // ITU-R BT.2100, on a screen of 1000 cd/m²; its gamma is applied to each channel.
        TransferCharacteristics::Hlg => Some(|value| {
            let scene = match value {
                0.5.. => (((value - 0.559_910_7) / 0.178_832_77).exp() + 0.284_668_9) / 12.0,
                _ => value * value / 3.0,
            };
            scene.powf(1.2) * 1000.0 / 203.0
        }),
        _ => None,
    }
}

/// The tone curve of such a signal. Values brighter than the middle tones are compressed by a Möbius
/// curve. The result is about as bright as that of ffmpeg with the filter in `transcode`.
fn tones(light: fn(f32) -> f32) -> ToneReprCurve {
    // Compresses from 0.4 on, so that 2.5 becomes white.
    let pressed = |light: f32| match light {
        0.4.. => (1.24 * (light - 0.129) / (light + 0.44)).min(1.0),
        _ => light,
    };
    // Screens have a gamma of 2.4.
    let shown = |at: u16| linear(255.0 * pressed(light(f32::from(at) / 1023.0)).powf(1.0 / 2.4));
    ToneReprCurve::Lut((0..1024).map(|at| (shown(at) * 65_535.0) as u16).collect())
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("samples", &self.samples)
            .finish_non_exhaustive()
    }
}

impl Conversion {
    /// Converts whole pixels.
    pub(super) fn apply(&self, from: &[u8], to: &mut [u8]) {
        debug_assert_eq!(from.len() / self.from, to.len() / self.to);
        // Fails only if a length is not a multiple of the channels.
        self.transform.transform(from, to).ok();
    }

    fn apply_in_place(&self, pixels: &mut [u8]) {
        let mut before = Vec::with_capacity(PIXELS * self.from);
        for pixels in pixels.chunks_mut(PIXELS * self.from) {
            before.clear();
            before.extend_from_slice(pixels);
            self.apply(&before, pixels);
        }
    }

    fn changes_anything(&self) -> bool {
        let parts = [0, 60, 128, 200, 255];
        let all = parts
            .iter()
            .flat_map(|&r| parts.iter().map(move |&g| (r, g)));
        let all = all.flat_map(|(r, g)| parts.iter().map(move |&b| [r, g, b, 255]));
        let before: Vec<u8> = all
            .flat_map(|color| color.into_iter().take(self.from))
            .collect();
        let mut after = before.clone();
        self.apply_in_place(&mut after);
        before.iter().zip(after).any(|(a, b)| a.abs_diff(b) > SAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a profile with these primaries (XYZ under D50) and one curve for all channels.
    fn profile(primaries: [[f32; 3]; 3], curve: &[u8]) -> Vec<u8> {
        let xyz = |xyz: [f32; 3]| {
            let mut content = b"XYZ \0\0\0\0".to_vec();
            xyz.iter()
                .for_each(|part| content.extend(((part * 65_536.0) as i32).to_be_bytes()));
            content
        };
        let mut tags: Vec<(&[u8; 4], Vec<u8>)> = vec![(b"wtpt", xyz([0.9642, 1.0, 0.8249]))];
        tags.extend(
            [b"rXYZ", b"gXYZ", b"bXYZ"]
                .into_iter()
                .zip(primaries.map(xyz)),
        );
        tags.extend([b"rTRC", b"gTRC", b"bTRC"].map(|name| (name, curve.to_vec())));
        let mut bytes = vec![0; 128];
        bytes[8] = 4;
        bytes[12..24].copy_from_slice(b"mntrRGB XYZ ");
        bytes[36..40].copy_from_slice(b"acsp");
        bytes.extend((tags.len() as u32).to_be_bytes());
        let mut place = bytes.len() + 12 * tags.len();
        for (name, content) in &tags {
            bytes.extend(*name);
            bytes.extend((place as u32).to_be_bytes());
            bytes.extend((content.len() as u32).to_be_bytes());
            place += content.len();
        }
        tags.iter().for_each(|(_, content)| bytes.extend(content));
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    const SRGB: [[f32; 3]; 3] = [
        [0.4361, 0.2225, 0.0139],
        [0.3851, 0.7169, 0.0971],
        [0.1431, 0.0606, 0.7139],
    ];
    const P3: [[f32; 3]; 3] = [
        [0.5151, 0.2412, -0.0011],
        [0.2919, 0.6922, 0.0419],
        [0.1572, 0.0666, 0.7841],
    ];

    /// sRGB's own curve, as in the profiles of phones.
    fn para() -> Vec<u8> {
        let mut bytes = b"para\0\0\0\0\0\x03\0\0".to_vec();
        for value in [2.4_f32, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.04045] {
            bytes.extend(((value * 65_536.0) as i32).to_be_bytes());
        }
        bytes
    }

    fn converted(profile: &[u8], pixel: [u8; 3]) -> [u8; 3] {
        let mut pixel = pixel;
        if let Some(profile) = Profile::read(profile, Samples::Rgb) {
            profile.convert(&mut pixel, 3);
        }
        pixel
    }

    #[test]
    fn wide_gamut_colors_are_converted_to_srgb() {
        let check = |from: [u8; 3], expected: [u8; 3]| {
            let pixel = converted(&profile(P3, &para()), from);
            let near = pixel.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1);
            assert!(near, "{from:?} is {pixel:?}, not {expected:?}");
        };
        check([0; 3], [0; 3]);
        check([255; 3], [255; 3]);
        check([128; 3], [128; 3]);
        check([255, 0, 0], [255, 0, 0]);
        // From CSS Color 4: color(display-p3 0.5 0.4 0.3).
        check([128, 102, 77], [132, 101, 74]);
    }

    #[test]
    fn code_points_make_a_profile() {
        let converted = |points| {
            let mut pixel = [128, 102, 77];
            Profile::from_code_points(points)?.convert(&mut pixel, 3);
            Some(pixel)
        };
        // Display P3 and sRGB, both with sRGB's curve; then undefined code points.
        assert!(
            converted((12, 13))
                .unwrap()
                .iter()
                .zip([132, 101, 74])
                .all(|(a, b)| a.abs_diff(b) < 2)
        );
        assert_eq!(converted((1, 13)), Some([128, 102, 77]));
        assert_eq!([converted((3, 13)), converted((1, 200))], [None; 2]);
    }

    /// Compares with ffmpeg:
    /// `zscale=t=linear:npl=203,zscale=p=bt709,tonemap=mobius,zscale=t=bt709`.
    #[test]
    fn hdr_is_as_bright_as_with_ffmpeg() {
        let check = |transfer, levels: [(u8, u8); 6]| {
            let profile = Profile::from_code_points((9, transfer)).unwrap();
            for (value, expected) in levels {
                let mut pixel = [value; 3];
                profile.convert(&mut pixel, 3);
                let near = pixel.iter().all(|level| level.abs_diff(expected) < 8);
                assert!(near, "{transfer}: {value} is {pixel:?}, not {expected}");
            }
        };
        check(
            16,
            [
                (56, 46),
                (80, 78),
                (100, 114),
                (128, 180),
                (148, 230),
                (180, 255),
            ],
        );
        check(
            18,
            [
                (40, 45),
                (80, 89),
                (128, 143),
                (180, 212),
                (200, 238),
                (255, 255),
            ],
        );
    }

    #[test]
    fn srgb_and_unsuitable_profiles_change_nothing() {
        let changes = |profile: &[u8]| converted(profile, [200, 90, 30]) != [200, 90, 30];
        assert!(!changes(&profile(SRGB, &para())));
        assert!(changes(&profile(P3, b"curv\0\0\0\0\0\0\0\x01\x02\x33")));
        let table = [
            b"curv\0\0\0\0\0\0\0\x03".as_slice(),
            &[0, 0, 0x36, 0, 0xff, 0xff],
        ]
        .concat();
        assert!(changes(&profile(P3, &table)));
        assert!(!changes(b""));
        let whole = profile(P3, &para());
        assert!(Profile::read(&whole, Samples::Gray).is_none());
        assert!(Profile::read(&whole, Samples::Cmyk).is_none());
    }

    #[test]
    fn damaged_profiles_cause_no_panic() {
        let whole = profile(P3, &para());
        for at in 0..whole.len() {
            converted(&whole[..at], [1, 200, 90]);
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            converted(&damaged, [1, 200, 90]);
        }
    }
}
