//! Colour profiles of photographs: from three primaries and their curves to sRGB.
//!
//! That is how cameras and telephones describe a wider range of colours (Display P3, Adobe RGB).
//! Profiles of another kind, tables and inks among them, are left alone, as are those that say
//! sRGB in other words. What sRGB cannot show is clipped.

use std::sync::LazyLock;

/// Longer ones are tables.
pub(super) const PROFILE_MAX: usize = 1 << 20;
/// XYZ under D50, which profiles are written for, to linear sRGB; Bradford's adaptation.
const TO_SRGB: [[f32; 3]; 3] = [
    [3.133_856, -1.616_866_7, -0.490_614_6],
    [-0.978_768_4, 1.916_141_5, 0.033_454],
    [0.071_945_3, -0.228_991_4, 1.405_242_7],
];
/// Steps of light that sRGB's levels are looked up by: fine enough for the darkest.
const LIGHTS: usize = 1 << 14;
/// Profiles that change no colour by more than that are sRGB.
const SAME: u8 = 2;

static LEVELS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let level = |light: f32| match light {
        light if light <= 0.003_130_8 => light * 12.92,
        light => 1.055 * light.powf(1.0 / 2.4) - 0.055,
    };
    (0..=LIGHTS).map(|at| (level(at as f32 / LIGHTS as f32) * 255.0).round() as u8).collect()
});

/// What makes sRGB of a picture's colours.
#[derive(Clone, Debug)]
pub(super) struct Conversion {
    /// The light of each level of red, green and blue.
    lights: [Vec<f32>; 3],
    /// From these lights to those of sRGB.
    matrix: [[f32; 3]; 3],
}

impl Conversion {
    /// None where there is nothing to be done, or nothing that we do.
    pub(super) fn of(profile: &[u8]) -> Option<Self> {
        if profile.get(16..20)? != b"RGB " || profile.get(20..24)? != b"XYZ " {
            return None;
        }
        let primaries = [b"rXYZ", b"gXYZ", b"bXYZ"].map(|name| xyz(tag(profile, name)?));
        let curves = [b"rTRC", b"gTRC", b"bTRC"].map(|name| curve(tag(profile, name)?));
        let ([Some(r), Some(g), Some(b)], [Some(cr), Some(cg), Some(cb)]) = (primaries, curves)
        else {
            return None;
        };
        let matrix = TO_SRGB.map(|row| {
            [r, g, b].map(|column| row.iter().zip(column).map(|(a, b)| a * b).sum::<f32>())
        });
        let conversion = Self { lights: [cr, cg, cb], matrix };
        conversion.changes_anything().then_some(conversion)
    }

    /// Of a pixel's first three bytes.
    pub(super) fn apply(&self, pixel: &mut [u8]) {
        let mut light = [0.0; 3];
        for ((light, &level), lights) in light.iter_mut().zip(&*pixel).zip(&self.lights) {
            *light = lights[usize::from(level)];
        }
        for (level, row) in pixel.iter_mut().zip(&self.matrix) {
            let sum = row[0] * light[0] + row[1] * light[1] + row[2] * light[2];
            *level = LEVELS[(sum.clamp(0.0, 1.0) * LIGHTS as f32 + 0.5) as usize];
        }
    }

    fn changes_anything(&self) -> bool {
        let parts = [0, 60, 128, 200, 255];
        let all = parts.iter().flat_map(|&r| parts.iter().map(move |&g| (r, g)));
        all.flat_map(|(r, g)| parts.iter().map(move |&b| [r, g, b])).any(|before| {
            let mut after = before;
            self.apply(&mut after);
            before.iter().zip(after).any(|(a, b)| a.abs_diff(b) > SAME)
        })
    }
}

/// The content of a tag.
fn tag<'a>(profile: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    const TABLE: usize = 128;
    let count = number(profile, TABLE)?.min(200);
    let entries = profile.get(TABLE + 4..)?.chunks_exact(12).take(count as usize);
    let entry = entries.into_iter().find(|entry| entry.starts_with(name))?;
    let (from, length) = (number(entry, 4)? as usize, number(entry, 8)? as usize);
    profile.get(from..from.checked_add(length)?)
}

fn xyz(content: &[u8]) -> Option<[f32; 3]> {
    let content = content.strip_prefix(b"XYZ ")?;
    Some([fixed(content, 4)?, fixed(content, 8)?, fixed(content, 12)?])
}

/// The light of each of the 256 levels.
fn curve(content: &[u8]) -> Option<Vec<f32>> {
    let levels = (0..=255).map(|level| level as f32 / 255.0);
    let lights: Vec<f32> = match content.get(..4)? {
        b"curv" => {
            let count = number(content, 8)? as usize;
            let values = content.get(12..12_usize.checked_add(count.checked_mul(2)?)?)?;
            let values: Vec<u16> =
                values.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
            match values[..] {
                [] => levels.collect(),
                [gamma] => levels.map(|level| level.powf(f32::from(gamma) / 256.0)).collect(),
                _ => levels.map(|level| between(&values, level)).collect(),
            }
        }
        b"para" => {
            let shape = Shape::read(content)?;
            levels.map(|level| shape.light(level)).collect()
        }
        _ => return None,
    };
    lights.iter().all(|light| light.is_finite()).then_some(lights)
}

/// Between the two nearest values of a table.
fn between(values: &[u16], level: f32) -> f32 {
    let place = level * (values.len() - 1) as f32;
    let (low, part) = (place as usize, place.fract());
    let high = (low + 1).min(values.len() - 1);
    let (low, high) = (f32::from(values[low]), f32::from(values[high]));
    (low + (high - low) * part) / 65_535.0
}

/// A curve given by up to seven numbers: `(a x + b)^g + e` from `d` on, `c x + f` below.
struct Shape([f32; 7]);

impl Shape {
    fn read(content: &[u8]) -> Option<Self> {
        let kind = u16::from_be_bytes(content.get(8..10)?.try_into().ok()?);
        let given = |at: usize| fixed(content, 12 + 4 * at);
        // g a b c d e f
        let mut all = [given(0)?, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let count = *[1, 3, 4, 5, 7].get(usize::from(kind))?;
        for (at, value) in all.iter_mut().enumerate().take(count) {
            *value = given(at)?;
        }
        let [_, a, b, c, d, e, f] = &mut all;
        match kind {
            // Below, the first two know only nothing, and what is at the border.
            1 => *d = -*b / *a,
            2 => (*d, *e, *f, *c) = (-*b / *a, *c, *c, 0.0),
            _ => {}
        }
        Some(Self(all))
    }

    fn light(&self, x: f32) -> f32 {
        let [g, a, b, c, d, e, f] = self.0;
        if x >= d { (a * x + b).max(0.0).powf(g) + e } else { c * x + f }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Sixteen bits before the point, sixteen behind it.
fn fixed(bytes: &[u8], at: usize) -> Option<f32> {
    Some(number(bytes, at)? as i32 as f32 / 65_536.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile with these primaries (x, y, z under D50) and one curve for all.
    fn profile(primaries: [[f32; 3]; 3], curve: &[u8]) -> Vec<u8> {
        let mut tags: Vec<(&[u8; 4], Vec<u8>)> = Vec::new();
        for (name, xyz) in [b"rXYZ", b"gXYZ", b"bXYZ"].into_iter().zip(primaries) {
            let mut content = b"XYZ \0\0\0\0".to_vec();
            xyz.iter().for_each(|part| content.extend(((part * 65_536.0) as i32).to_be_bytes()));
            tags.push((name, content));
        }
        tags.extend([b"rTRC", b"gTRC", b"bTRC"].map(|name| (name, curve.to_vec())));
        let mut bytes = vec![0; 16];
        bytes.extend(b"RGB XYZ ");
        bytes.resize(128, 0);
        bytes.extend((tags.len() as u32).to_be_bytes());
        let mut place = bytes.len() + 12 * tags.len();
        for (name, content) in &tags {
            bytes.extend(*name);
            bytes.extend((place as u32).to_be_bytes());
            bytes.extend((content.len() as u32).to_be_bytes());
            place += content.len();
        }
        tags.iter().for_each(|(_, content)| bytes.extend(content));
        bytes
    }

    const SRGB: [[f32; 3]; 3] =
        [[0.4361, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7139]];
    const P3: [[f32; 3]; 3] =
        [[0.5151, 0.2412, -0.0011], [0.2919, 0.6922, 0.0419], [0.1572, 0.0666, 0.7841]];

    /// sRGB's own curve, as profiles of telephones have it.
    fn para() -> Vec<u8> {
        let mut bytes = b"para\0\0\0\0\0\x03\0\0".to_vec();
        for value in [2.4_f32, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.04045] {
            bytes.extend(((value * 65_536.0) as i32).to_be_bytes());
        }
        bytes
    }

    #[test]
    fn wide_colours_become_those_of_srgb() {
        let conversion = Conversion::of(&profile(P3, &para())).unwrap();
        let check = |from: [u8; 3], expected: [u8; 3]| {
            let mut pixel = from;
            conversion.apply(&mut pixel);
            let near = pixel.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1);
            assert!(near, "{from:?} is {pixel:?}, not {expected:?}");
        };
        check([0; 3], [0; 3]);
        check([255; 3], [255; 3]);
        check([128; 3], [128; 3]);
        check([255, 0, 0], [255, 0, 0]);
        // By CSS Color 4: color(display-p3 0.5 0.4 0.3).
        check([128, 102, 77], [132, 101, 74]);
    }

    #[test]
    fn what_says_srgb_or_nothing_is_left_alone() {
        assert!(Conversion::of(&profile(SRGB, &para())).is_none());
        // Gamma 2.2 is near enough to sRGB's curve for us only in a wider range of colours.
        let gamma = b"curv\0\0\0\0\0\0\0\x01\x02\x33";
        assert!(Conversion::of(&profile(P3, gamma)).is_some());
        let table = [b"curv\0\0\0\0\0\0\0\x03".as_slice(), &[0, 0, 0x36, 0, 0xff, 0xff]].concat();
        assert!(Conversion::of(&profile(P3, &table)).is_some());
        assert!(Conversion::of(b"").is_none());
        let whole = profile(P3, &para());
        for length in 0..whole.len() {
            assert!(Conversion::of(&whole[..length]).is_none(), "{length}");
        }
        // Damage is no panic.
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            if let Some(conversion) = Conversion::of(&damaged) {
                conversion.apply(&mut [1, 200, 90]);
            }
        }
    }
}
