//! The colours of all images in CIELAB, in hundredths: no two colours of three bytes have the same
//! place there, and the rounding moves a ΔE by less than 0.02.

use std::ops::Range;

use super::DocId;
use super::bitmap::{Bitmap, WORD};
use crate::color::{self, Lab, Rgb, lab};

/// L, a and b of a colour, none below zero, in steps of a hundredth.
type Place = [i16; 3];

/// Steps to a unit of Lab.
const STEPS: f32 = 100.0;
/// What makes a and b of every real colour positive, in steps.
const ORIGIN: [f32; 3] = [0.0, 9_000.0, 11_000.0];
/// ΔE76 that holds every pair of real colours: those are 259 apart at most (green, blue).
const FARTHEST: f32 = 300.0;

/// Colours that are compared at once, at the cost of one: most palettes have no more.
const LANES: usize = 8;
/// Of so few images in a word of the bitmap, each is looked at by itself.
const FEW: u32 = 8;

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
    /// Where each image's begin.
    starts: Vec<u32>,
}

/// The colours of an image, to be compared with all others': a plane for each part, too.
pub(super) struct Reference {
    /// Of [`LANES`] colours, and how many of them are used.
    lanes: Vec<([[f32; LANES]; 3], usize)>,
    colors: usize,
}

impl Palettes {
    /// The palette of the next image, whose hue group is known; returns how it sorts.
    pub(super) fn push(&mut self, colors: &[Rgb], group: u8) -> Hue {
        self.starts.push(self.planes[0].len() as u32);
        let mut saturation = None;
        for &rgb in colors {
            let lab = lab(rgb);
            self.planes.iter_mut().zip(steps(lab)).for_each(|(plane, part)| plane.push(part));
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
        self.around(&[place], 0, among);
    }

    /// Leaves those some colour of which is near this one.
    pub(super) fn near(&self, near: Near, among: &mut Bitmap) {
        self.around(&[steps(lab(near.color))], limit(near.within), among);
    }

    /// Leaves those some colour of which is near some colour of `doc`.
    pub(super) fn similar(&self, doc: DocId, within: f32, among: &mut Bitmap) {
        let of: Vec<Place> = self.of(doc).collect();
        self.around(&of, limit(within), among);
    }

    /// Leaves those some colour of which is near one of these.
    fn around(&self, of: &[Place], limit: i32, among: &mut Bitmap) {
        let mut near = Vec::new();
        let is_near =
            |doc| self.of(doc).any(|one| of.iter().any(|&other| distance(one, other) <= limit));
        among.retain_words(|first, word| {
            if word.count_ones() <= FEW {
                return Bitmap::fitting(first, word, is_near);
            }
            let last = (first as usize + WORD).min(self.starts.len()) - 1;
            let range = self.range(first).start..self.range(last as DocId).end;
            let planes = self.planes.each_ref().map(|plane| &plane[range.clone()]);
            near.clear();
            // Behind the last, so that a palette is always a part of LANES.
            near.resize(range.len() + LANES, 0);
            of.iter().for_each(|&place| mark(&mut near, planes, place, limit));
            let mut left = 0;
            for doc in first..=last as DocId {
                let Range { start, end } = self.range(doc);
                left |=
                    u64::from(any(&near, start - range.start..end - range.start)) << (doc - first);
            }
            left
        });
    }

    /// The colours of an image, for [`Self::unlikeness`].
    pub(super) fn reference(&self, doc: DocId) -> Reference {
        let of: Vec<Place> = self.of(doc).collect();
        let lanes = |colors: &[Place]| {
            let value =
                |lane, at: usize| colors.get(lane).map_or(0.0, |c: &Place| f32::from(c[at]));
            let part = |at| std::array::from_fn(|lane| value(lane, at));
            ([part(0), part(1), part(2)], colors.len())
        };
        Reference { lanes: of.chunks(LANES).map(lanes).collect(), colors: of.len() }
    }

    /// How far the colours of `reference` are, in the mean, from the nearest of another's (ΔE76 in
    /// steps).
    pub(super) fn unlikeness(&self, reference: &Reference, other: DocId) -> f32 {
        let range = self.range(other);
        let [l, a, b] = self.planes.each_ref().map(|plane| &plane[range.clone()]);
        let mut sum = 0.0;
        for (colors, used) in &reference.lanes {
            let mut nearest = [f32::MAX; LANES];
            for ((&l, &a), &b) in l.iter().zip(a).zip(b) {
                let (l, a, b) = (f32::from(l), f32::from(a), f32::from(b));
                let lanes = nearest.iter_mut().zip(&colors[0]).zip(&colors[1]).zip(&colors[2]);
                for (((nearest, of_l), of_a), of_b) in lanes {
                    let (l, a, b) = (of_l - l, of_a - a, of_b - b);
                    let square = l * l + a * a + b * b;
                    *nearest = if square < *nearest { square } else { *nearest };
                }
            }
            sum += nearest[..*used].iter().map(|square| square.sqrt()).sum::<f32>();
        }
        sum / reference.colors.max(1) as f32
    }

    fn of(&self, doc: DocId) -> impl Iterator<Item = Place> {
        self.range(doc).map(|at| self.planes.each_ref().map(|plane| plane[at]))
    }

    fn range(&self, doc: DocId) -> Range<usize> {
        let doc = doc as usize;
        let end = self.starts.get(doc + 1).map_or(self.planes[0].len(), |&start| start as usize);
        self.starts[doc] as usize..end
    }

    pub(super) fn shrink(&mut self) {
        self.planes.iter_mut().for_each(Vec::shrink_to_fit);
        self.starts.shrink_to_fit();
    }
}

/// Flags those that are no farther from a place.
fn mark(near: &mut [u8], [l, a, b]: [&[i16]; 3], place: Place, limit: i32) {
    for (((near, &l), &a), &b) in near.iter_mut().zip(l).zip(a).zip(b) {
        *near |= u8::from(distance([l, a, b], place) <= limit);
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

/// The square of a distance, in steps. Written out: the loops over it are to be taken several at once
/// whatever the compiler is told to do between the parts of a crate.
#[inline(always)]
fn distance(one: Place, other: Place) -> i32 {
    // Both are positive: the difference has sixteen bits as well, which makes the product cheap.
    let l = i32::from(one[0].wrapping_sub(other[0]));
    let a = i32::from(one[1].wrapping_sub(other[1]));
    let b = i32::from(one[2].wrapping_sub(other[2]));
    l * l + a * a + b * b
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
