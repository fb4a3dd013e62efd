//! How the place of a playlist moves: to the next item or the one before, past items that cannot be
//! shown, and in mode `each` to as many items as there are monitors. Pure.

use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::store::playlists::{Item, nearest_index};
use crate::wire::Mode;

impl PlaybackState {
    /// The images of the present step; the first is the playlist's present image.
    pub(super) fn taken(&self) -> Vec<i64> {
        std::iter::once(self.image_id)
            .chain(self.others.iter().copied())
            .collect()
    }

    /// Whether these are all images of the present step.
    pub(super) fn has_taken(&self, images: &[i64]) -> bool {
        let taken = self.taken();
        images.iter().all(|id| taken.contains(id))
    }

    /// Steps forward or back, and takes `stride` items: one, unless each monitor has its own.
    pub(super) fn step(&mut self, spec: &PlaylistSpec, direction: Direction, stride: usize) {
        let before = 1 + self.others.len();
        match (&mut self.shuffle, direction) {
            (Some(shuffle), Direction::Forward) => {
                let mut taken = Vec::new();
                for _ in 0..stride {
                    taken.push(shuffle.forward_past(&taken, &|_| true).0);
                }
                self.set_group(spec, &taken);
            }
            (Some(shuffle), Direction::Backward) => {
                for _ in 0..before {
                    shuffle.backward();
                }
                let taken = shuffle.latest(stride);
                self.set_group(spec, &taken);
            }
            (None, direction) => {
                self.others.clear();
                let first = match direction {
                    Direction::Forward => spec.beside(self.last_index, Direction::Forward),
                    Direction::Backward => (0..stride).fold(self.index, |index, _| {
                        spec.beside(index, Direction::Backward)
                    }),
                };
                self.put(spec, first);
                self.fill(spec, stride, &|_| true);
            }
        }
        self.shown_on.clear();
    }

    /// In mode `each`: steps `number` monitors, while the others keep the images `kept`. The new images
    /// are the last ones of [`Self::taken`].
    pub(super) fn step_alone(
        &mut self,
        spec: &PlaylistSpec,
        direction: Direction,
        kept: &[i64],
        number: usize,
    ) {
        let taken = self.taken();
        let mut group = kept.to_vec();
        let is_other = |item: &Item| !taken.contains(&item.image_id);
        let none_is_other = !spec.items.iter().any(is_other);
        let fits = |item: &Item| none_is_other || is_other(item);
        for _ in 0..number {
            match direction {
                Direction::Forward => {
                    self.take(spec, &fits);
                    group.extend(self.others.last());
                }
                Direction::Backward => {
                    let own = taken.iter().find(|id| !kept.contains(id));
                    group.push(self.before(spec, *own.unwrap_or(&self.image_id), &fits));
                }
            }
        }
        self.set_group(spec, &group);
    }

    /// The image that comes before this one and fits.
    fn before(&mut self, spec: &PlaylistSpec, id: i64, fits: &dyn Fn(&Item) -> bool) -> i64 {
        let mut index = spec.items.index_of(id).unwrap_or(self.index);
        for _ in 0..spec.items.len() {
            index = match &mut self.shuffle {
                Some(shuffle) => spec.items.index_of(shuffle.backward()).unwrap_or(index),
                None => spec.beside(index, Direction::Backward),
            };
            if fits(&spec.items[index]) {
                break;
            }
        }
        spec.items[index].image_id
    }

    /// The first image that a step back would take; none if a random order remembers no earlier one.
    pub(super) fn previous(&self, spec: &PlaylistSpec, stride: usize) -> Option<i64> {
        match &self.shuffle {
            Some(shuffle) if shuffle.steps() <= 1 + self.others.len() => return None,
            _ => {}
        }
        let mut before = self.clone();
        before.step(spec, Direction::Backward, stride);
        Some(before.image_id)
    }

    /// In mode `each`, takes more items that fit until there are `number`; returns the new ones.
    pub(super) fn fill(
        &mut self,
        spec: &PlaylistSpec,
        number: usize,
        fits: &dyn Fn(&Item) -> bool,
    ) -> Vec<i64> {
        let missing = number.saturating_sub(1 + self.others.len());
        let more = if self.mode == Mode::Each { missing } else { 0 };
        let before = self.others.len();
        for _ in 0..more {
            self.take(spec, fits);
        }
        self.others[before..].to_vec()
    }

    /// Takes the next item that fits, if there is one; returns the indices of those that it skips.
    fn take(&mut self, spec: &PlaylistSpec, fits: &dyn Fn(&Item) -> bool) -> Vec<usize> {
        let taken = self.taken();
        let (index, left) = match &mut self.shuffle {
            Some(shuffle) => {
                let indices = spec.items.indices();
                let index = |id: &i64| indices.get(id).copied();
                let (id, left) = shuffle.forward_past(&taken, &|id| {
                    index(&id).is_some_and(|index| fits(&spec.items[index]))
                });
                (
                    index(&id).unwrap_or(self.last_index),
                    left.iter().filter_map(index).collect(),
                )
            }
            None => {
                let (last, number) = (self.last_index, spec.items.len());
                let ahead = (1..=number).map(|steps| (last + steps) % number);
                let left: Vec<usize> = ahead
                    .take_while(|&index| !fits(&spec.items[index]))
                    .collect();
                let before = left.last().copied().unwrap_or(last);
                (spec.beside(before, Direction::Forward), left)
            }
        };
        self.others.push(spec.items[index].image_id);
        self.last_index = index;
        left
    }

    /// Replaces the items that cannot be shown; returns the indices of those that it skips. At
    /// least one item must fit.
    pub(super) fn replace_refused(
        &mut self,
        spec: &PlaylistSpec,
        fits: &dyn Fn(&Item) -> bool,
    ) -> Vec<usize> {
        let number = 1 + self.others.len();
        let mut left = Vec::new();
        let mut kept: Vec<i64> = Vec::new();
        for id in self.taken() {
            match spec.items.index_of(id) {
                Some(index) if !fits(&spec.items[index]) => {
                    left.push(index);
                    if let Some(shuffle) = &mut self.shuffle {
                        shuffle.leave(id);
                    }
                }
                _ => kept.push(id),
            }
        }
        while kept.len() < number {
            left.extend(self.take(spec, fits));
            kept.extend(self.others.last());
        }
        self.set_group(spec, &kept);
        self.shown_on.clear();
        left
    }

    /// After a change of the random order: takes its latest images.
    pub(super) fn follow_shuffle(&mut self, spec: &PlaylistSpec) {
        let Some(shuffle) = &mut self.shuffle else {
            return;
        };
        let taken = shuffle.latest(1 + self.others.len());
        self.set_group(spec, &taken);
    }

    fn set_group(&mut self, spec: &PlaylistSpec, taken: &[i64]) {
        let Some((&first, others)) = taken.split_first() else {
            return;
        };
        let position = |id: i64, near: usize| {
            let ids = spec.items.iter().map(|item| item.image_id);
            nearest_index(ids, id, near)
        };
        self.others = others.to_vec();
        self.index = position(first, self.index);
        self.image_id = first;
        self.last_index = position(taken[taken.len() - 1], self.last_index);
    }

    /// Skips an item that cannot be shown, and all up to the next one that fits; there must be one.
    /// Returns the indices of the skipped items.
    pub(super) fn skip(
        &mut self,
        spec: &PlaylistSpec,
        direction: Direction,
        fits: &dyn Fn(&Item) -> bool,
    ) -> Vec<usize> {
        let mut left = Vec::new();
        if let Some(shuffle) = &mut self.shuffle {
            let indices = spec.items.indices();
            let index = |id: &i64| indices.get(id).copied();
            let ids = shuffle.skip(direction == Direction::Backward, &|id| {
                index(&id).is_some_and(|index| fits(&spec.items[index]))
            });
            left.extend(ids.iter().filter_map(index));
        } else {
            for _ in 0..spec.items.len() {
                if fits(&spec.items[self.index]) {
                    break;
                }
                left.push(self.index);
                self.put(spec, spec.beside(self.index, direction));
            }
        }
        self.follow_shuffle(spec);
        self.shown_on.clear();
        left
    }

    pub(super) fn enter_slot(&mut self, spec: &PlaylistSpec, slot: usize) {
        self.slot = Some(slot);
        self.others.clear();
        self.put(spec, slot);
    }

    pub(super) fn put(&mut self, spec: &PlaylistSpec, index: usize) {
        self.index = index;
        if self.others.is_empty() {
            self.last_index = index;
        }
        self.image_id = spec.items[index].image_id;
    }
}
