//! Which monitors a playlist is shown on, and which item each monitor has: pure.
//!
//! A declared monitor that moves to another connector is followed there, if its identity is known.
//! In mode `each` a step takes as many items as there are monitors.

use std::collections::BTreeMap;

use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::store::playlists::{Item, nearest_index};
use crate::wallpaper::Applied;
use crate::wire::Mode;

impl PlaybackState {
    /// How many items a step takes.
    pub(super) fn stride(&self, connected: &[String]) -> usize {
        match self.mode {
            Mode::Each => self.applied_to(connected).len().max(1),
            Mode::Individual | Mode::Clone | Mode::Extend => 1,
        }
    }

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

    /// Notes the monitors that show an image of the present step, or on which a later request has
    /// replaced it.
    pub(super) fn note_shown(&mut self, applied: &Applied) {
        let is_present = |(_, id): &(&String, &i64)| self.has_taken(&[**id]);
        let shown = applied.images.iter().filter(is_present);
        let shown = shown.map(|(monitor, _)| monitor);
        let shown: Vec<String> = shown.chain(&applied.overtaken).cloned().collect();
        self.shown_on.extend(shown);
        self.shown_on.sort_unstable();
        self.shown_on.dedup();
    }

    /// Steps forward or back, and takes `stride` items: one, unless each monitor has its own.
    pub(super) fn step(&mut self, spec: &PlaylistSpec, direction: Direction, stride: usize) {
        let before = 1 + self.others.len();
        let last = if self.others.is_empty() {
            self.index
        } else {
            self.last_index
        };
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
                    Direction::Forward => spec.beside(last, Direction::Forward),
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
        let (taken, mut group) = (self.taken(), kept.to_vec());
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
        let last = if self.others.is_empty() {
            self.index
        } else {
            self.last_index
        };
        let (index, left) = match &mut self.shuffle {
            Some(shuffle) => {
                let indices = spec.items.indices();
                let index = |id: &i64| indices.get(id).copied();
                let (id, left) = shuffle.forward_past(&taken, &|id| {
                    index(&id).is_some_and(|index| fits(&spec.items[index]))
                });
                (
                    index(&id).unwrap_or(last),
                    left.iter().filter_map(index).collect(),
                )
            }
            None => {
                let number = spec.items.len();
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
        let (number, mut left) = (1 + self.others.len(), Vec::new());
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
}

impl PlaybackState {
    /// Moves the declared monitors to the connectors that lead to them in `now`, which maps
    /// connectors to the identities of monitors. Returns whether anything has changed.
    pub(super) fn follow_identities(&mut self, now: &BTreeMap<String, String>) -> bool {
        let place = |name: &String| {
            let own = self.identities.get(name);
            let there = own.and_then(|own| now.iter().find(|(_, identity)| *identity == own));
            there.map_or_else(|| name.clone(), |(to, _)| to.clone())
        };
        let places = |names: &[String]| {
            let mut places: Vec<String> = Vec::new();
            for name in names.iter().map(place) {
                if !places.contains(&name) {
                    places.push(name);
                }
            }
            places
        };
        let (monitors, mut shown_on) = (places(&self.monitors), places(&self.shown_on));
        shown_on.sort_unstable();
        let identity = |name: &String| {
            let known = now.get(name).or_else(|| self.identities.get(name))?;
            Some((name.clone(), known.clone()))
        };
        let identities = monitors.iter().filter_map(identity).collect();
        let before = (&self.monitors, &self.shown_on, &self.identities);
        let is_new = before != (&monitors, &shown_on, &identities);
        (self.monitors, self.shown_on, self.identities) = (monitors, shown_on, identities);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::field_reassign_with_default, reason = "the others are private")]
    fn declared_monitors_follow_to_other_connectors() {
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let mut state = PlaybackState::default();
        state.monitors = names(&["A", "B"]);
        state.shown_on = names(&["A"]);
        let mut check = |now: &[(&str, &str)], monitors: &[&str], shown_on: &[&str], is_new| {
            let now = now
                .iter()
                .map(|(n, id)| ((*n).to_owned(), (*id).to_owned()))
                .collect();
            assert_eq!(state.follow_identities(&now), is_new, "{now:?}");
            assert_eq!(
                (&state.monitors, &state.shown_on),
                (&names(monitors), &names(shown_on))
            );
        };
        check(&[("A", "one"), ("B", "two")], &["A", "B"], &["A"], true);
        check(&[("A", "one"), ("B", "two")], &["A", "B"], &["A"], false);
        check(&[("A", "two"), ("B", "one")], &["B", "A"], &["B"], true);
        check(&[("A", "two")], &["B", "A"], &["B"], false);
        check(&[("A", "two"), ("C", "one")], &["C", "A"], &["C"], true);
        // A monitor without an identity is known by its connector.
        check(&[], &["C", "A"], &["C"], false);
    }
}
