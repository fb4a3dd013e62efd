//! Palettes as columns: exact colours, and CIELAB in hundredths for distances.
//!
//! The rounding moves a ΔE by less than 0.02. All places of a palette are looked at together:
//! the compiler makes vector instructions of it. A place without a colour holds one that is farther
//! from every real one than real ones are from each other.

use super::bits::Bits;
use super::cells::{Cells, Place};
use super::{Entry, Slot};
use crate::color::{PALETTE_MAX, Rgb, lab};

/// Steps to a unit of Lab.
const STEPS: f32 = 100.0;
/// In steps. It is 309 ΔE away from every real colour; those are 259 apart at most (green, blue).
const NOWHERE: Place = [32_000, 25_000, 25_000];
/// ΔE76 that holds every pair of real colours, and none with [`NOWHERE`].
const FARTHEST: f32 = 300.0;
/// ΔE76 from which on a look at every palette is quicker than one into so many cells.
const WIDE: f32 = 40.0;
/// No colour of three bytes.
const NO_COLOR: u32 = u32::MAX;

/// A colour and how far from it counts: `#hex~maxDeltaE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub color: Rgb,
    /// ΔE76
    pub within: f32,
}

/// L, a and b of all places.
type Places = [[i16; PALETTE_MAX]; 3];

#[derive(Debug, Default)]
pub(super) struct Palettes {
    exact: Vec<[u32; PALETTE_MAX]>,
    lab: Vec<Places>,
    cells: Cells,
}

impl Palettes {
    pub(super) fn grow(&mut self) {
        self.exact.push([NO_COLOR; PALETTE_MAX]);
        self.lab.push(NOWHERE.map(|part| [part; PALETTE_MAX]));
    }

    pub(super) fn set(&mut self, slot: Slot, colors: &[Rgb]) {
        let (exact, places) = (&mut self.exact[slot as usize], &mut self.lab[slot as usize]);
        for at in 0..PALETTE_MAX {
            let before = places.map(|part| part[at]);
            if before != NOWHERE {
                self.cells.remove(slot, before);
            }
            let color = colors.get(at);
            exact[at] = color.map_or(NO_COLOR, |&rgb| number(rgb));
            let place = color.map_or(NOWHERE, |&rgb| steps(rgb));
            places.iter_mut().zip(place).for_each(|(part, step)| part[at] = step);
            if place != NOWHERE {
                self.cells.add(slot, place);
            }
        }
    }

    /// Leaves the images that have exactly this colour.
    pub(super) fn exactly(&self, color: Rgb, among: &mut Bits) {
        let color = number(color);
        among.retain(|slot| {
            let same = |count: u32, &other: &u32| count + u32::from(other == color);
            self.exact[slot as usize].iter().fold(0, same) > 0
        });
    }

    pub(super) fn near(&self, near: Near, among: &mut Bits) {
        self.around(&[steps(near.color)], near.within, among);
    }

    /// Leaves those some colour of which is near some colour of `entry`.
    pub(super) fn similar(&self, entry: &Entry, within: f32, among: &mut Bits) {
        let of: Vec<Place> = entry.colors.iter().map(|&rgb| steps(rgb)).collect();
        self.around(&of, within, among);
    }

    /// Leaves those some colour of which is near one of these.
    fn around(&self, of: &[Place], within: f32, among: &mut Bits) {
        let limit = limit(within);
        if within < WIDE && among.count() > self.lab.len() / 8 {
            let mut found = Bits::default();
            of.iter().for_each(|&place| self.cells.near(place, limit, &mut found));
            among.and(&found);
        } else {
            among.retain(|slot| {
                let places = &self.lab[slot as usize];
                of.iter().any(|&place| is_near(places, place, limit))
            });
        }
    }
}

/// Whether some place is near; `limit` is the square of a distance in steps.
fn is_near(places: &Places, of: Place, limit: u32) -> bool {
    let mut distances = [0_u32; PALETTE_MAX];
    for (part, of) in places.iter().zip(of) {
        for (distance, &place) in distances.iter_mut().zip(part) {
            let step = i32::from(place) - i32::from(of);
            // At most 36,000 squared, and three of them: below 2^32.
            *distance += (step * step) as u32;
        }
    }
    // All of them, without a way out: that is quicker than to stop at the first.
    distances.iter().fold(0, |near, &distance| near | u32::from(distance <= limit)) > 0
}

fn number([r, g, b]: Rgb) -> u32 {
    u32::from_be_bytes([0, r, g, b])
}

fn steps(rgb: Rgb) -> Place {
    let lab = lab(rgb);
    [lab.l, lab.a, lab.b].map(|value| (value * STEPS).round() as i16)
}

/// The square of a distance, in steps.
fn limit(within: f32) -> u32 {
    let steps = f64::from(within.min(FARTHEST)) * f64::from(STEPS);
    (steps * steps) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_a_colour_is_near_nothing() {
        let mut palettes = Palettes::default();
        palettes.grow();
        let parts = [0, 1, 64, 128, 254, 255];
        for color in parts.iter().flat_map(|&r| parts.iter().map(move |&g| (r, g))) {
            for &b in &parts {
                let color = [color.0, color.1, b];
                let mut found = Bits::from_iter([0]);
                palettes.near(Near { color, within: 1e9 }, &mut found);
                assert_eq!(found.count(), 0, "{color:?}");
                let mut found = Bits::from_iter([0]);
                let mut one = Palettes::default();
                one.grow();
                one.set(0, &[[0, 0, 255]]);
                one.near(Near { color, within: 1e9 }, &mut found);
                assert_eq!(found.count(), 1, "{color:?}");
            }
        }
    }
}
