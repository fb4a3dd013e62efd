//! Random order: pure, and kept across restarts.
//!
//! Each round is a permutation of all images: every one is shown once before any a second time. No
//! image comes twice in a row, across rounds either, as long as there is another. The way that was
//! come is remembered, so that stepping back goes back on it, and on again where one went back.
//!
//! The order is never written down. In each round an image has a key, which follows from its id and
//! the round's seed, and they are shown in the order of their keys: what is kept is the seed, how far
//! the round has come, and the few images that have another key than their own. So it costs the same
//! to keep a hundred thousand images as ten, and images may come and go between any two steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Steps remembered; older ones are forgotten.
const REMEMBERED: usize = 1000;
/// Images with another key than their own. Late images beyond these wait for the next round.
const MOVED_MAX: usize = 1000;
/// Before every key: where a round begins, and where an image is put that a round has had.
const BEGINNING: Key = (0, i64::MAX);

/// A place in a round. The id decides between keys that are the same by chance.
type Key = (u64, i64);

/// The order of one playlist's images, by their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shuffle {
    /// The way that was come, the present image last. Never empty.
    trail: Vec<i64>,
    /// Images that were stepped back from, the nearest last.
    back: Vec<i64>,
    /// The seed of this round; the next one's follows from it.
    seed: u64,
    /// How far this round has come.
    position: Key,
    /// Images that have another key in this round than their own.
    moved: BTreeMap<i64, u64>,
    /// All images, sorted, each once. Empty after a restart, until the list is known.
    #[serde(skip)]
    all: Arc<[i64]>,
}

impl Shuffle {
    /// Begins with an image, or with none given at random. `ids` is not empty and may name an image
    /// several times.
    pub(super) fn new(ids: &[i64], first: Option<i64>, seed: u64) -> Self {
        let (trail, back, moved) = (Vec::new(), Vec::new(), BTreeMap::new());
        let all = sorted(ids);
        let mut shuffle = Self { trail, back, seed, position: BEGINNING, moved, all };
        match first.filter(|first| shuffle.has(*first)) {
            Some(first) => {
                shuffle.moved.insert(first, 0);
                shuffle.trail.push(first);
            }
            None => drop(shuffle.draw(&|_| true)),
        }
        shuffle
    }

    pub(super) fn current(&self) -> i64 {
        self.trail.last().copied().unwrap_or_default()
    }

    /// The image that [`Self::forward`] would show.
    pub(super) fn next(&self) -> i64 {
        self.clone().forward()
    }

    /// How many images are on the way that was come, with the present one.
    pub(super) fn steps(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn forward(&mut self) -> i64 {
        self.forward_past(&[], &|_| true).0
    }

    /// Forward to one that fits and is none of these, as long as there is another; those that it has
    /// left because they do not fit.
    pub(super) fn forward_past(
        &mut self,
        taken: &[i64],
        fits: &dyn Fn(i64) -> bool,
    ) -> (i64, Vec<i64>) {
        let mut left = Vec::new();
        while let Some(id) = self.back.pop_if(|id| !fits(*id)) {
            left.push(id);
        }
        let is_new = |id: &i64| !taken.contains(id) && fits(*id);
        if let Some(id) = self.back.pop() {
            self.trail.push(id);
        } else if self.all.iter().any(is_new) {
            let passed = self.draw(&|id| is_new(&id));
            for id in passed {
                if !taken.contains(&id) {
                    left.push(id);
                } else if self.moved.len() < MOVED_MAX {
                    // It was shown a moment ago: its turn in this round comes later.
                    let key = self.key_behind(self.position.0, id);
                    self.moved.insert(id, key);
                }
            }
        } else {
            left.extend(self.draw(fits));
        }
        if self.trail.len() > REMEMBERED {
            self.trail.remove(0);
        }
        (self.current(), left)
    }

    /// The latest so many of the way, the present image last; it is lengthened where it is shorter.
    pub(super) fn latest(&mut self, number: usize) -> Vec<i64> {
        while self.trail.len() < number {
            let trail = self.trail.clone();
            let first = trail.first().copied();
            let before = self
                .take_last(&|id| !trail.contains(&id))
                .or_else(|| self.take_last(&|id| Some(id) != first));
            let Some(before) = before else { break };
            self.trail.insert(0, before);
        }
        let from = self.trail.len().saturating_sub(number);
        self.trail[from..].iter().copied().cycle().take(number).collect()
    }

    /// Takes the present image back as if it had not come.
    pub(super) fn leave(&mut self, id: i64) {
        if self.trail.len() > 1 {
            if let Some(at) = self.trail.iter().rposition(|&other| other == id) {
                self.trail.remove(at);
            }
            self.trail.dedup();
        }
    }

    /// Back the way that was come. At its beginning, the image that would be shown last is taken
    /// from what lies ahead: there is always another one, and none is shown twice for it.
    pub(super) fn backward(&mut self) -> i64 {
        if self.all.len() < 2 {
            return self.current();
        }
        if self.trail.len() < 2 {
            let current = self.current();
            if let Some(before) = self.take_last(&|id| id != current) {
                self.trail.insert(0, before);
            }
        }
        self.back.extend(self.trail.pop());
        self.tidy();
        self.current()
    }

    /// Leaves an image that cannot be shown, and those after it that do not fit either, as if they
    /// had not come: the way back does not lead over them. Gives them back in their order. Something
    /// fits.
    pub(super) fn skip(&mut self, backward: bool, fits: &dyn Fn(i64) -> bool) -> Vec<i64> {
        let mut left = Vec::new();
        left.extend(self.trail.pop());
        if backward {
            while let Some(id) = self.trail.pop_if(|id| !fits(*id)) {
                left.push(id);
            }
            if self.trail.is_empty() {
                let before = self.take_last(fits);
                self.trail.extend(before);
            }
        } else {
            while let Some(id) = self.back.pop_if(|id| !fits(*id)) {
                left.push(id);
            }
            match self.back.pop() {
                Some(id) => self.trail.push(id),
                None => left.extend(self.draw(fits)),
            }
        }
        self.tidy();
        left
    }

    /// Takes over an edited list: what is gone is forgotten, what is new comes in this round.
    /// If the present image is gone, its successor takes its place.
    pub(super) fn edit(&mut self, ids: &[i64]) {
        let old = std::mem::replace(&mut self.all, sorted(ids));
        let all = Arc::clone(&self.all);
        let stays = |id: &i64| all.binary_search(id).is_ok();
        let lost = !stays(&self.current());
        self.trail.retain(stays);
        self.back.retain(stays);
        self.moved.retain(|id, _| stays(id));
        if !old.is_empty() {
            all.iter().filter(|id| old.binary_search(id).is_err()).for_each(|&id| self.join(id));
        }
        if lost {
            match self.back.pop() {
                Some(id) => self.trail.push(id),
                None => drop(self.draw(&|_| true)),
            }
        }
        self.tidy();
    }

    /// Has an image in the place of another, on the way and in this round.
    pub(super) fn replace(&mut self, old: i64, new: i64) {
        let key = (self.key(old).0, new);
        if self.position.1 == old {
            self.position = key;
        }
        self.moved.remove(&old);
        if self.moved.len() < MOVED_MAX {
            self.moved.insert(new, key.0);
        }
        let was = |id: &&mut i64| **id == old;
        self.trail.iter_mut().chain(&mut self.back).filter(was).for_each(|id| *id = new);
        let ids = self.all.iter().map(|&id| if id == old { new } else { id });
        self.all = sorted(&ids.collect::<Vec<_>>());
    }

    /// An image that comes while the round runs has a place in what is left of it, anywhere.
    fn join(&mut self, id: i64) {
        if self.key(id) <= self.position && self.moved.len() < MOVED_MAX {
            let key = self.key_behind(self.position.0, id);
            self.moved.insert(id, key);
        }
    }

    /// Shows the next image of the round, or of a new one where this is over, that fits and is
    /// another than the present one; stays where there is none. Gives back those that it has passed
    /// over because they do not fit.
    fn draw(&mut self, fits: &dyn Fn(i64) -> bool) -> Vec<i64> {
        let current = self.current();
        let mut passed = Vec::new();
        for _ in 0..2 {
            let from = self.position;
            let ahead = self.all.iter().map(|&id| self.key(id)).filter(|key| *key > from);
            let (mut next, mut unfit) = (None::<Key>, Vec::new());
            for key in ahead.filter(|&(_, id)| id != current) {
                if next.is_some_and(|next| next < key) {
                    continue;
                }
                if fits(key.1) { next = Some(key) } else { unfit.push(key) }
            }
            unfit.retain(|key| next.is_none_or(|next| *key < next));
            unfit.sort_unstable();
            passed.extend(unfit.into_iter().map(|(_, id)| id));
            if let Some(next) = next {
                // It is shown now: its turn comes later.
                let key = self.key(current);
                if key > from && key < next && self.has(current) {
                    let key = self.key_behind(next.0, current);
                    self.moved.insert(current, key);
                }
                self.position = next;
                self.trail.push(next.1);
                break;
            }
            self.begin_round();
        }
        if self.trail.is_empty() {
            self.trail.extend(self.all.first());
        }
        passed
    }

    fn begin_round(&mut self) {
        self.seed = mixed(self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.position = BEGINNING;
        self.moved.clear();
    }

    /// The fitting image that would be shown last in this round, which has had it then; where none lies
    /// ahead, the last of those that were shown, and the next time the one before it.
    fn take_last(&mut self, fits: &dyn Fn(i64) -> bool) -> Option<i64> {
        let fitting = self.all.iter().filter(|id| fits(**id));
        let (_, id) = fitting.map(|&id| self.key(id)).max()?;
        if self.moved.len() < MOVED_MAX {
            self.moved.insert(id, 0);
        }
        Some(id)
    }

    /// No image twice in a row, on the way, after one between them was taken out.
    fn tidy(&mut self) {
        self.trail.dedup();
        self.back.dedup();
        let current = self.current();
        self.back.pop_if(|id| *id == current);
    }

    fn has(&self, id: i64) -> bool {
        self.all.binary_search(&id).is_ok()
    }

    /// The key of an image in this round.
    fn key(&self, id: i64) -> Key {
        let own = || mixed(mixed(id.cast_unsigned()) ^ self.seed).max(1);
        // Mostly there are none.
        let moved = if self.moved.is_empty() { None } else { self.moved.get(&id).copied() };
        (moved.unwrap_or_else(own), id)
    }

    /// A key anywhere behind another.
    fn key_behind(&self, low: u64, id: i64) -> u64 {
        let random = mixed(mixed(id.cast_unsigned()).wrapping_add(self.seed));
        let room = u64::MAX - low;
        // Below `room`, evenly as far as 64 bits go.
        let far = ((u128::from(random) * u128::from(room)) >> 64) as u64;
        (low + far).saturating_add(1)
    }
}

/// The splitmix64 of a number: another for each, in no order.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn sorted(ids: &[i64]) -> Arc<[i64]> {
    let mut all = ids.to_vec();
    all.sort_unstable();
    all.dedup();
    all.into()
}

#[cfg(test)]
mod tests;
