//! The colours of all images in CIELAB, in hundredths: no two colours of three bytes have the same
//! place there, and the rounding moves a ΔE by less than 0.02.

use std::ops::Range;

use super::DocId;
use super::bitmap::{Bitmap, FEW, WORD};
use super::nearness::{Comparison, LANES, Place, Reference, Row, distance, mark};
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
    /// L, a and b of all colours, a plane each: the compiler has several compared at once.
    planes: [Vec<i16>; 3],
    /// Where each image's end.
    ends: Vec<u32>,
}

impl Palettes {
    /// The palette of the next image, whose hue group is known; returns how it sorts.
    pub(super) fn push(&mut self, colors: &[Rgb], group: u8) -> Hue {
        let mut saturation = None;
        for &rgb in colors {
            let lab = lab(rgb);
            self.planes.iter_mut().zip(steps(lab)).for_each(|(plane, part)| plane.push(part));
            // The first that is no grey has decided the group.
            if saturation.is_none() && !color::is_grey(lab) {
                saturation = Some(color::hsl(rgb).saturation);
            }
        }
        self.ends.push(self.planes[0].len() as u32);
        (group, (saturation.unwrap_or_default() * 1000.0) as u16)
    }

    /// Leaves the images that have exactly this colour.
    pub(super) fn exactly(&self, color: Rgb, among: &mut Bitmap) {
        self.around(steps(lab(color)), 0, among);
    }

    /// Leaves those some colour of which is near this one.
    pub(super) fn near(&self, near: Near, among: &mut Bitmap) {
        self.around(steps(lab(near.color)), limit(near.within), among);
    }

    /// Leaves those some colour of which is near some colour of the reference, and tells of each how
    /// far the reference's colours are from its own in all.
    pub(super) fn similar(
        &self,
        reference: &Reference,
        within: f32,
        among: &mut Bitmap,
        mut tell: impl FnMut(DocId, f32),
    ) {
        let limit = limit(within);
        let mut compared = [Comparison::default(); WORD];
        among.retain_words(|first, word| {
            reference.compare(self.row(first), word, &mut compared);
            Bitmap::fitting(first, word, |doc| {
                let (least, sum) = compared[(doc - first) as usize];
                let is_near = least <= limit;
                if is_near {
                    tell(doc, sum);
                }
                is_near
            })
        });
    }

    /// The colours of an image, for [`Self::similar`].
    pub(super) fn reference(&self, doc: DocId) -> Reference {
        Reference::new(self.of(doc).collect())
    }

    /// Leaves those some colour of which is near this one.
    fn around(&self, place: Place, limit: i32, among: &mut Bitmap) {
        let mut near = Vec::new();
        among.retain_words(|first, word| {
            if word.count_ones() <= FEW {
                let is_near = |doc| self.of(doc).any(|own| distance(own, place) <= limit);
                return Bitmap::fitting(first, word, is_near);
            }
            let Row { planes, begin, ends } = self.row(first);
            let range = begin as usize..ends[ends.len() - 1] as usize;
            // Behind the last, so that a palette is always a part of LANES.
            near.resize(range.len() + LANES, 0);
            mark(&mut near, planes.map(|plane| &plane[range.clone()]), place, limit);
            let (mut left, mut start) = (0, begin);
            for (at, &end) in ends.iter().enumerate() {
                left |=
                    u64::from(any(&near, (start - begin) as usize..(end - begin) as usize)) << at;
                start = end;
            }
            left
        });
    }

    fn of(&self, doc: DocId) -> impl Iterator<Item = Place> {
        let range = self.begin(doc) as usize..self.ends[doc as usize] as usize;
        range.map(|at| self.planes.each_ref().map(|plane| plane[at]))
    }

    /// The palettes of a word of images.
    fn row(&self, first: DocId) -> Row<'_> {
        let (begin, ends) = (self.begin(first), &self.ends[first as usize..]);
        let planes = self.planes.each_ref().map(Vec::as_slice);
        Row { planes, begin, ends: &ends[..ends.len().min(WORD)] }
    }

    fn begin(&self, doc: DocId) -> u32 {
        doc.checked_sub(1).map_or(0, |before| self.ends[before as usize])
    }

    pub(super) fn shrink(&mut self) {
        self.planes.iter_mut().for_each(Vec::shrink_to_fit);
        self.ends.shrink_to_fit();
    }
}

/// Whether a flag of some is set.
fn any(flags: &[u8], some: Range<usize>) -> bool {
    match flags[some.start..].first_chunk() {
        Some(&chunk) if some.len() <= LANES => {
            let unused = 8 * (LANES - some.len()) as u32;
            u64::from_le_bytes(chunk) & u64::MAX.checked_shr(unused).unwrap_or(0) != 0
        }
        _ => flags[some].iter().any(|&flag| flag != 0),
    }
}

/// The square of a distance (ΔE76), in steps.
fn limit(within: f32) -> i32 {
    let steps = f64::from(within.min(FARTHEST)) * f64::from(STEPS);
    (steps * steps) as i32
}

fn steps(Lab { l, a, b }: Lab) -> Place {
    let mut place = [0; 3];
    for (to, (from, origin)) in place.iter_mut().zip([l, a, b].into_iter().zip(ORIGIN)) {
        *to = (from * STEPS + origin).round() as i16;
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
