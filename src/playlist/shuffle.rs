//! Random order: pure, and kept across restarts.
//!
//! Each round is a permutation of all images: each is shown once before any is shown again. No
//! image comes twice in a row, even across rounds, as long as there is another. The shown images
//! are remembered: steps back lead over them, and steps forward then return the same way.
//!
//! The order is never stored. Each image has a key in a round, computed from its id and the round's
//! seed, and images are shown in the order of their keys. Stored are the seed, the position in the
//! round, and the few keys that were changed. A hundred thousand images therefore cost as little
//! to keep as ten, and images may come and go between any two steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Shown images that are remembered; older ones are forgotten.
const REMEMBERED: usize = 1000;
/// Images with a changed key. Late images beyond these wait for the next round.
const MOVED_MAX: usize = 1000;
/// The position where a round begins. An image with the key 0 lies before it: the round has had it.
const BEGINNING: Key = (0, i64::MAX);

/// A place in a round. The id decides between equal keys.
type Key = (u64, i64);

/// The order of one playlist's images, by their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shuffle {
    /// The shown images, the present one last. Never empty.
    trail: Vec<i64>,
    /// Images that were stepped back from, the next one forward last.
    back: Vec<i64>,
    /// The seed of this round; the next round's is computed from it.
    seed: u64,
    /// The position in this round.
    position: Key,
    /// The changed keys of this round.
    moved: BTreeMap<i64, u64>,
    /// All images, sorted, each once. Empty after a restart, until the list is known.
    #[serde(skip)]
    all: Arc<[i64]>,
}

impl Shuffle {
    /// Begins with `first`, or with a random image. `ids` is not empty and may name an image
    /// several times.
    pub(super) fn new(ids: &[i64], first: Option<i64>, seed: u64) -> Self {
        let (trail, back, moved) = (Vec::new(), Vec::new(), BTreeMap::new());
        let all = sorted(ids);
        let mut shuffle = Self {
            trail,
            back,
            seed,
            position: BEGINNING,
            moved,
            all,
        };
        match first.filter(|first| shuffle.has(*first)) {
            Some(first) => {
                shuffle.moved.insert(first, 0);
                shuffle.trail.push(first);
            }
            None => {
                shuffle.forward();
            }
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

    /// How many shown images are remembered, including the present one.
    pub(super) fn steps(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn forward(&mut self) -> i64 {
        self.forward_past(&[], &|_| true).0
    }

    /// Steps to an image that fits and is not in `taken`, as long as there is one. Also returns the
    /// images that it skips because they do not fit.
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
                    // It was shown a moment ago: moves it to a later place in this round.
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

    /// The latest `number` of the shown images, the present one last. If fewer are remembered, puts
    /// others before them.
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
        self.trail[from..]
            .iter()
            .copied()
            .cycle()
            .take(number)
            .collect()
    }

    /// Removes an image from the shown ones, as if it had not come.
    pub(super) fn leave(&mut self, id: i64) {
        if self.trail.len() > 1 {
            if let Some(at) = self.trail.iter().rposition(|&other| other == id) {
                self.trail.remove(at);
            }
            self.trail.dedup();
        }
    }

    /// Steps back. If no earlier image is remembered, steps to the one that this round would show
    /// last; the round then counts it as shown.
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

    /// Leaves an image that cannot be shown, and those after it that do not fit either, and removes
    /// them from the shown ones: steps back do not lead over them. Returns them in order. At least
    /// one image must fit.
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
            left.extend(self.forward_past(&[], fits).1);
        }
        self.tidy();
        left
    }

    /// Adopts an edited list: removes images that are gone, and adds new ones to this round. If the
    /// present image is gone, its successor replaces it.
    pub(super) fn edit(&mut self, ids: &[i64]) {
        let old = std::mem::replace(&mut self.all, sorted(ids));
        let all = Arc::clone(&self.all);
        let stays = |id: &i64| all.binary_search(id).is_ok();
        let lost = !stays(&self.current());
        self.trail.retain(stays);
        self.back.retain(stays);
        self.moved.retain(|id, _| stays(id));
        if !old.is_empty() {
            all.iter()
                .filter(|id| old.binary_search(id).is_err())
                .for_each(|&id| self.join(id));
        }
        if lost {
            self.forward();
        }
        self.tidy();
    }

    /// Replaces an image with another, among the shown ones and in this round.
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
        self.trail
            .iter_mut()
            .chain(&mut self.back)
            .filter(was)
            .for_each(|id| *id = new);
        let ids = self.all.iter().map(|&id| if id == old { new } else { id });
        self.all = sorted(&ids.collect::<Vec<_>>());
    }

    /// Gives a new image a random place in the remainder of the round, unless it has one there.
    fn join(&mut self, id: i64) {
        if self.key(id) <= self.position && self.moved.len() < MOVED_MAX {
            let key = self.key_behind(self.position.0, id);
            self.moved.insert(id, key);
        }
    }

    /// Shows the next image that fits and is not the present one, from this round or, if it is
    /// over, from a new one; stays if there is none. Returns the images that it skips because they
    /// do not fit.
    fn draw(&mut self, fits: &dyn Fn(i64) -> bool) -> Vec<i64> {
        let current = self.current();
        let mut passed = Vec::new();
        for _ in 0..2 {
            let from = self.position;
            let ahead = self
                .all
                .iter()
                .map(|&id| self.key(id))
                .filter(|key| *key > from);
            let mut next = None::<Key>;
            let mut unfit = Vec::new();
            for key in ahead.filter(|&(_, id)| id != current) {
                if next.is_some_and(|next| next < key) {
                    continue;
                }
                if fits(key.1) {
                    next = Some(key)
                } else {
                    unfit.push(key)
                }
            }
            unfit.retain(|key| next.is_none_or(|next| *key < next));
            unfit.sort_unstable();
            passed.extend(unfit.into_iter().map(|(_, id)| id));
            if let Some(next) = next {
                // The present image would have come before: moves it to a later place.
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

    /// Returns the fitting image that this round would show last, and counts it as shown. If all
    /// were shown, returns them backward from the latest.
    fn take_last(&mut self, fits: &dyn Fn(i64) -> bool) -> Option<i64> {
        let fitting = self.all.iter().filter(|id| fits(**id));
        let (_, id) = fitting.map(|&id| self.key(id)).max()?;
        if self.moved.len() < MOVED_MAX {
            self.moved.insert(id, 0);
        }
        Some(id)
    }

    /// Removes repetitions, which arise when the image between two equal ones is removed.
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
        // Usually no key is changed.
        let moved = if self.moved.is_empty() {
            None
        } else {
            self.moved.get(&id).copied()
        };
        (moved.unwrap_or_else(own), id)
    }

    /// A random key behind another.
    fn key_behind(&self, low: u64, id: i64) -> u64 {
        let random = mixed(mixed(id.cast_unsigned()).wrapping_add(self.seed));
        let room = u64::MAX - low;
        // Below `room`, uniformly as far as 64 bits allow.
        let far = ((u128::from(random) * u128::from(room)) >> 64) as u64;
        (low + far).saturating_add(1)
    }
}

/// The splitmix64 hash of a number.
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
