//! Palettes as columns: exact colours, and CIELAB in hundredths for distances.
//!
//! The rounding moves a ΔE by less than 0.02.

use super::bits::Bits;
use super::{Entry, Slot};
use crate::color::{Rgb, lab};

/// Colours of an image at most.
const MOST: usize = 8;
/// Steps to a unit of Lab.
const STEPS: f32 = 100.0;

/// A colour and how far from it counts: `#hex~maxDeltaE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub color: Rgb,
    /// ΔE76
    pub within: f32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Palette {
    count: u8,
    rgb: [Rgb; MOST],
    lab: [[i16; 3]; MOST],
}

#[derive(Debug, Default)]
pub(super) struct Palettes(Vec<Palette>);

impl Palettes {
    pub(super) fn grow(&mut self) {
        self.0.push(Palette::default());
    }

    pub(super) fn set(&mut self, slot: Slot, colors: &[Rgb]) {
        let mut palette = Palette { count: colors.len().min(MOST) as u8, ..Palette::default() };
        for (at, &rgb) in colors.iter().take(MOST).enumerate() {
            palette.rgb[at] = rgb;
            palette.lab[at] = steps(rgb);
        }
        self.0[slot as usize] = palette;
    }

    /// The images of `among` that have exactly this colour.
    pub(super) fn exactly(&self, color: Rgb, among: &Bits) -> Bits {
        self.keep(among, |palette| palette.rgb().contains(&color))
    }

    pub(super) fn near(&self, near: Near, among: &Bits) -> Bits {
        let (of, limit) = (steps(near.color), limit(near.within));
        self.keep(among, |palette| palette.lab().iter().any(|&lab| distance(lab, of) <= limit))
    }

    /// Those some colour of which is near some colour of `entry`.
    pub(super) fn similar(&self, entry: &Entry, within: f32, among: &Bits) -> Bits {
        let of: Vec<[i16; 3]> = entry.colors.iter().map(|&rgb| steps(rgb)).collect();
        let limit = limit(within);
        let close = |lab: &[i16; 3]| of.iter().any(|&other| distance(*lab, other) <= limit);
        self.keep(among, |palette| palette.lab().iter().any(close))
    }

    fn keep(&self, among: &Bits, fits: impl Fn(&Palette) -> bool) -> Bits {
        among.iter().filter(|&slot| fits(&self.0[slot as usize])).collect()
    }
}

impl Palette {
    fn rgb(&self) -> &[Rgb] {
        &self.rgb[..usize::from(self.count)]
    }

    fn lab(&self) -> &[[i16; 3]] {
        &self.lab[..usize::from(self.count)]
    }
}

fn steps(rgb: Rgb) -> [i16; 3] {
    let lab = lab(rgb);
    [lab.l, lab.a, lab.b].map(|value| (value * STEPS).round() as i16)
}

/// The square of a distance, in steps.
fn limit(within: f32) -> i64 {
    let steps = f64::from(within) * f64::from(STEPS);
    // Farther than black is from white is everything.
    (steps * steps).min(1e12) as i64
}

fn distance(one: [i16; 3], other: [i16; 3]) -> i64 {
    let square = |at: usize| {
        let difference = i32::from(one[at]) - i32::from(other[at]);
        i64::from(difference * difference)
    };
    square(0) + square(1) + square(2)
}
