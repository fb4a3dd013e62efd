//! The colours of all images in CIELAB, in hundredths: no two colours of three bytes have the same
//! place there, and the rounding moves a ΔE by less than 0.02.

use super::DocId;
use super::bitmap::Bitmap;
use super::lab_grid::{LabGrid, Place, Reach};
use crate::color::{self, Lab, Rgb, lab};

/// Steps to a unit of Lab.
const STEPS: f32 = 100.0;
/// What makes a and b of every real colour positive, in steps.
const ORIGIN: [f32; 3] = [0.0, 9_000.0, 11_000.0];
/// ΔE76 that holds every pair of real colours: those are 259 apart at most (green, blue).
const FARTHEST: f32 = 300.0;

/// Group, and saturation in thousandths: how `hue` sorts.
pub(super) type Hue = (u8, u16);

/// A colour and how far from it counts: `#hex~maxDeltaE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub color: Rgb,
    /// ΔE76
    pub within: f32,
}

#[derive(Debug, Default)]
pub(super) struct Palettes {
    places: Vec<Place>,
    /// Where each image's begin.
    starts: Vec<u32>,
}

impl Palettes {
    /// The palette of the next image, whose hue group is known; returns how it sorts.
    pub(super) fn push(&mut self, colors: &[Rgb], group: u8) -> Hue {
        self.starts.push(self.places.len() as u32);
        let mut saturation = None;
        for &rgb in colors {
            let lab = lab(rgb);
            self.places.push(steps(lab));
            // The first that is no grey has decided the group.
            if saturation.is_none() && !color::is_grey(lab) {
                saturation = Some(color::hsl(rgb).saturation);
            }
        }
        (group, (saturation.unwrap_or_default() * 1000.0) as u16)
    }

    /// Leaves the images that have exactly this colour.
    pub(super) fn exactly(&self, color: Rgb, among: &mut Bitmap) {
        let place = steps(lab(color));
        among.retain(|doc| self.of(doc).contains(&place));
    }

    /// Leaves those some colour of which is near this one.
    pub(super) fn near(&self, near: Near, among: &mut Bitmap) {
        self.around(&[steps(lab(near.color))], near.within, among);
    }

    /// Leaves those some colour of which is near some colour of `doc`.
    pub(super) fn similar(&self, doc: DocId, within: f32, among: &mut Bitmap) {
        self.around(self.of(doc), within, among);
    }

    /// Leaves those some colour of which is near one of these.
    fn around(&self, of: &[Place], within: f32, among: &mut Bitmap) {
        let steps = f64::from(within.min(FARTHEST)) * f64::from(STEPS);
        let limit = (steps * steps) as u32;
        let grid = LabGrid::around(of, limit);
        let is_near = |place: &Place| match grid.reach(*place) {
            Reach::None => false,
            Reach::Whole => true,
            Reach::Part => of.iter().any(|&other| distance(*place, other) <= limit),
        };
        among.retain(|doc| self.of(doc).iter().any(is_near));
    }

    /// How far the colours of `reference` are, in the mean, from the nearest of another's (ΔE76).
    pub(super) fn unlikeness(&self, reference: DocId, other: DocId) -> f64 {
        let (of, other) = (self.of(reference), self.of(other));
        let nearest = |&color: &Place| other.iter().map(|&one| distance(color, one)).min();
        let all = of.iter().map(|color| f64::from(nearest(color).unwrap_or(u32::MAX)).sqrt());
        all.sum::<f64>() / of.len().max(1) as f64
    }

    fn of(&self, doc: DocId) -> &[Place] {
        let doc = doc as usize;
        let end = self.starts.get(doc + 1).map_or(self.places.len(), |&start| start as usize);
        &self.places[self.starts[doc] as usize..end]
    }

    pub(super) fn shrink(&mut self) {
        self.places.shrink_to_fit();
        self.starts.shrink_to_fit();
    }
}

/// The square of a distance, in steps.
fn distance(one: Place, other: Place) -> u32 {
    one.iter().zip(other).map(|(&one, other)| u32::from(one.abs_diff(other)).pow(2)).sum()
}

fn steps(Lab { l, a, b }: Lab) -> Place {
    let mut place = [0; 3];
    for (to, (from, origin)) in place.iter_mut().zip([l, a, b].into_iter().zip(ORIGIN)) {
        *to = (from * STEPS + origin).round() as u16;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_colours_have_places_of_their_own() {
        let parts = || (0..=254_u8).step_by(6).chain([254]);
        for r in parts() {
            for (g, b) in parts().flat_map(|g| parts().map(move |b| (g, b))) {
                let place = steps(lab([r, g, b]));
                for other in 1..8 {
                    let next = [r + (other & 1), g + (other >> 1 & 1), b + (other >> 2)];
                    assert_ne!(place, steps(lab(next)), "{r} {g} {b} and {next:?}");
                }
            }
        }
    }

    #[test]
    fn every_pair_of_colours_is_within_the_farthest() {
        let corner = |at: u8| [at & 1, at >> 1 & 1, at >> 2].map(|part| part * 255);
        for (one, other) in (0..8).flat_map(|one| (0..8).map(move |other| (one, other))) {
            let mut palettes = Palettes::default();
            palettes.push(&[corner(one)], 0);
            let mut found = Bitmap::default();
            found.set(0);
            palettes.near(Near { color: corner(other), within: 1e9 }, &mut found);
            assert_eq!(found.count(), 1, "{one} {other}");
            palettes.near(Near { color: corner(other), within: 0.0 }, &mut found);
            assert_eq!(found.count(), usize::from(one == other), "{one} {other}");
        }
    }
}
