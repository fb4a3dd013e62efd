//! The colours of all images in CIELAB, in hundredths: no two colours of three bytes have the same
//! place there, and the rounding moves a ΔE by less than 0.02.

use super::DocId;
use super::bitmap::{Bitmap, WORD, docs};
use super::nearness::{Comparison, Place, Slot, compare, near};
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

/// The palettes of all images, those of a word of a [`Bitmap`] together, so that many are looked at
/// in one step.
#[derive(Debug, Default)]
pub(super) struct Palettes {
    /// Of each word as many as its largest palette has colours; where another has fewer, its first
    /// stands there again.
    slots: Vec<Slot>,
    words: Vec<Word>,
    /// How many colours each image has.
    counts: Vec<u8>,
}

#[derive(Debug)]
struct Word {
    /// Where its slots end, and the next one's begin.
    end: u32,
    /// The images that have colours.
    colored: u64,
}

impl Palettes {
    /// The palette of the next image, whose hue group is known; returns how it sorts.
    pub(super) fn push(&mut self, colors: &[Rgb], group: u8) -> Hue {
        // Nobody's palette has as many.
        let labs: Vec<Lab> = colors.iter().take(u8::MAX.into()).map(|&rgb| lab(rgb)).collect();
        self.add(&labs.iter().copied().map(steps).collect::<Vec<_>>());
        // The first that is no grey has decided the group.
        let colored = colors.iter().zip(&labs).find(|(_, lab)| !color::is_grey(**lab));
        let saturation = colored.map_or(0.0, |(&rgb, _)| color::hsl(rgb).saturation);
        (group, (saturation * 1000.0) as u16)
    }

    /// Into the last word, whose images have more slots by then if they need them.
    fn add(&mut self, places: &[Place]) {
        let (doc, at) = (self.counts.len() as DocId, self.counts.len() % WORD);
        self.counts.push(places.len() as u8);
        if at == 0 {
            self.words.push(Word { end: self.slots.len() as u32, colored: 0 });
        }
        let begin = self.begin(doc);
        while self.slots.len() - begin < places.len() {
            let first = self.slots.get(begin);
            self.slots.push(first.copied().unwrap_or([[0; WORD]; 3]));
        }
        let Some((&first, word)) = places.first().zip(self.words.last_mut()) else { return };
        word.end = self.slots.len() as u32;
        word.colored |= 1 << at;
        let places = places.iter().copied().chain(std::iter::repeat(first));
        for (slot, place) in self.slots[begin..].iter_mut().zip(places) {
            slot.iter_mut().zip(place).for_each(|(part, of)| part[at] = of);
        }
    }

    /// Leaves the images that have exactly this colour.
    pub(super) fn exactly(&self, color: Rgb, among: &mut Bitmap) {
        self.around(steps(lab(color)), 0, among);
    }

    /// Leaves those some colour of which is near this one.
    pub(super) fn near(&self, near: Near, among: &mut Bitmap) {
        self.around(steps(lab(near.color)), limit(near.within), among);
    }

    /// Leaves those some colour of which is near this one.
    fn around(&self, place: Place, limit: i32, among: &mut Bitmap) {
        among.retain_words(|first, _| {
            let (slots, colored) = self.word(first);
            near(slots, place, limit) & colored
        });
    }

    /// Leaves those some colour of which is near some colour of the reference, and tells of each how far
    /// the reference's colours are from its own in all, where that is no more than `most`. Who is told
    /// says what that is from then on.
    pub(super) fn similar(
        &self,
        reference: &[Place],
        within: f32,
        among: &mut Bitmap,
        mut most: f32,
        mut tell: impl FnMut(DocId, f32) -> f32,
    ) {
        let limit = limit(within);
        among.retain_words(|first, word| {
            let (slots, colored) = self.word(first);
            let Comparison { near, alike, sums } = compare(slots, reference, limit, most);
            let found = near & word & colored;
            for doc in docs(first, found & alike) {
                most = tell(doc, sums[(doc - first) as usize]);
            }
            found
        });
    }

    /// The colours of an image, for [`Self::similar`].
    pub(super) fn reference(&self, doc: DocId) -> Vec<Place> {
        let (slots, at) = (self.word(doc).0, doc as usize % WORD);
        let own = slots.iter().take(self.counts[doc as usize].into());
        own.map(|slot| slot.map(|part| part[at])).collect()
    }

    /// The slots of the word of an image, and the images of it that have colours.
    fn word(&self, doc: DocId) -> (&[Slot], u64) {
        let Word { end, colored } = self.words[doc as usize / WORD];
        (&self.slots[self.begin(doc)..end as usize], colored)
    }

    fn begin(&self, doc: DocId) -> usize {
        let before = (doc as usize / WORD).checked_sub(1);
        before.map_or(0, |before| self.words[before].end as usize)
    }

    pub(super) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.words.shrink_to_fit();
        self.counts.shrink_to_fit();
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
