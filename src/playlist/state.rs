//! The position of a running playlist and how it moves on: pure, and kept across restarts.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::schedule::{ClockReading, Due, LastChange, Rule};
use super::shuffle::Shuffle;
use super::spec::{Direction, PlaylistSpec};
use crate::clock::{Boottime, Deadlines};
use crate::store::playlists::{Item, nearest_index};
use crate::wire::{ActivePlaylist, Mode, Rest, Timestamp};

/// Less than anybody sets a clock by.
const SLACK: SignedDuration = SignedDuration::from_millis(50);

/// The state of a playlist that runs, or ran last, as it is written into the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PlaybackState {
    pub(super) index: usize,
    pub(super) image_id: i64,
    pub(super) paused: bool,
    /// Paused by battery, lock or idle, beside the user's own pause.
    pub(super) resting: bool,
    /// As declared; those that are not connected wait.
    pub(super) monitors: Vec<String>,
    /// Which monitors these are, where that is known.
    pub(super) identities: BTreeMap<String, String>,
    pub(super) mode: Mode,
    /// In mode `each`: what was taken along with the present image, in order.
    pub(super) others: Vec<i64>,
    /// The index of the last of them.
    pub(super) last_index: usize,
    /// It plays on all monitors, those that come later too.
    pub(super) everywhere: bool,
    /// The monitors that have been seen to with the present image.
    pub(super) shown_on: Vec<String>,
    /// Microseconds since 1970, as are `changed_at` and `since_at`.
    started_at: i64,
    changed_at: i64,
    /// The run of the machine that `since` belongs to.
    pub(super) boot_id: String,
    /// Boot time from which a timer counts, in nanoseconds.
    since: i64,
    /// The same by the other clock, for another run of the machine.
    since_at: i64,
    /// The used part of the interval during a pause, in nanoseconds.
    spent: u64,
    /// The slot that was last taken up, where there are slots.
    slot: Option<usize>,
    pub(super) shuffle: Option<Shuffle>,
}

impl PlaybackState {
    /// A start: at the beginning, where it last was, or in the slot that it is time for. The spec
    /// is not empty.
    pub(super) fn start(
        spec: &PlaylistSpec,
        last: Option<Self>,
        now: &ClockReading,
        seed: u64,
    ) -> Self {
        let ids = spec.ids();
        let mut state = last.unwrap_or_default();
        let been = ids.contains(&state.image_id);
        state.paused = false;
        state.others.clear();
        state.slot = None;
        state.started_at = micros(now);
        let first = spec.start_first.then_some(ids[0]);
        let index = if spec.start_first || !been { 0 } else { state.index_in(&ids) };
        state.put(spec, index);
        state.shuffle = state.shuffle.take().filter(|_| spec.random && been && first.is_none());
        match &mut state.shuffle {
            Some(shuffle) => shuffle.edit(&ids),
            None if spec.random => {
                let first = first.or(been.then_some(ids[index]));
                state.shuffle = Some(Shuffle::new(&ids, first, seed));
            }
            None => {}
        }
        state.follow_shuffle(spec);
        if let Due::EnterSlot { slot, .. } = spec.rule.due(state.last_change(), now) {
            state.enter_slot(spec, slot);
        }
        state.changed(now.boot, now);
        state
    }

    /// The declared monitors that are connected.
    pub(super) fn applied_to(&self, connected: &[String]) -> Vec<String> {
        self.monitors.iter().filter(|name| connected.contains(name)).cloned().collect()
    }

    /// Declares connected monitors that came later, where it plays on all; whether there were any.
    pub(super) fn join(&mut self, connected: &[String]) -> bool {
        let before = self.monitors.len();
        if self.everywhere {
            let new = connected.iter().filter(|name| !self.monitors.contains(name));
            let new: Vec<String> = new.cloned().collect();
            self.monitors.extend(new);
        }
        self.monitors.len() > before
    }

    /// Before an edit: where images have others in their places, it stands at these. They have the
    /// same content, so there is nothing else to be shown.
    pub(super) fn follow_replaced(&mut self, before: &[i64], now: &[i64]) {
        if before.len() != now.len() {
            return;
        }
        for (&old, &new) in before.iter().zip(now).filter(|(old, new)| old != new) {
            if now.contains(&old) || before.contains(&new) {
                continue;
            }
            let taken = std::iter::once(&mut self.image_id).chain(&mut self.others);
            taken.filter(|id| **id == old).for_each(|id| *id = new);
            if let Some(shuffle) = &mut self.shuffle {
                shuffle.replace(old, new);
            }
        }
    }

    /// Takes over an edited list, which is not empty; whether the image is gone that it stood at, or
    /// where each monitor has its own, whether one of them has another now.
    pub(super) fn edit(&mut self, spec: &PlaylistSpec, seed: u64) -> bool {
        let ids = spec.ids();
        let (before, taken) = (self.index, self.taken());
        let index = self.index_in(&ids);
        let lost = ids[index] != self.image_id;
        self.index = index;
        self.image_id = ids[index];
        // A slot that still has its image is taken up already.
        let at_slot = self.slot == Some(before) && !lost;
        self.slot = (at_slot && spec.has_slots()).then_some(index);
        match &mut self.shuffle {
            Some(shuffle) if spec.random => shuffle.edit(&ids),
            None if spec.random => self.shuffle = Some(Shuffle::new(&ids, Some(ids[index]), seed)),
            _ => self.shuffle = None,
        }
        // A random order has its own successor for what is gone.
        if self.shuffle.is_none() {
            // Nor is one that takes the place of the first shown twice.
            let moved_up = if lost { Some(self.image_id) } else { None };
            self.others.retain(|id| ids.contains(id) && Some(*id) != moved_up);
        }
        self.last_index = match self.others.last() {
            Some(last) => nearest_index(ids.iter().copied(), *last, self.last_index),
            None => index,
        };
        self.follow_shuffle(spec);
        let lost = self.taken() != taken;
        if lost {
            self.shown_on.clear();
        }
        lost
    }

    /// After a restart: brings what a timer counts from onto this run's clock.
    pub(super) fn resume_after_restart(&mut self, now: &ClockReading, boot_id: &str) {
        if self.boot_id != boot_id || boot_id.is_empty() {
            let passed = micros(now).saturating_sub(self.since_at).max(0).unsigned_abs();
            self.since = (now.boot - std::time::Duration::from_micros(passed)).as_nanos();
        }
        boot_id.clone_into(&mut self.boot_id);
    }

    pub(super) fn due(&self, spec: &PlaylistSpec, now: &ClockReading) -> Due {
        if self.is_held() || spec.is_waiting() {
            return Due::Wait(Deadlines::default());
        }
        spec.rule.due(self.last_change(), now)
    }

    fn last_change(&self) -> LastChange {
        LastChange { since: Boottime::from_nanos(self.since), slot: self.slot }
    }

    /// Skips an item that cannot be shown, and all up to one that fits, which there is. Returns
    /// where those are that were left.
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

    /// Notes that the image has changed; timers count on from `since`.
    pub(super) fn changed(&mut self, since: Boottime, now: &ClockReading) {
        self.count_from(since, now);
        self.spent = 0;
        self.changed_at = micros(now);
    }

    pub(super) fn set_paused(&mut self, paused: bool, now: &ClockReading) {
        self.hold(now, |state| state.paused = paused);
    }

    pub(super) fn set_resting(&mut self, resting: bool, now: &ClockReading) {
        self.hold(now, |state| state.resting = resting);
    }

    /// Nothing changes by itself.
    fn is_held(&self) -> bool {
        self.paused || self.resting
    }

    /// Changes a pause: a timer keeps the used part of its interval, and counts on from there once
    /// nothing pauses it.
    fn hold(&mut self, now: &ClockReading, change: impl FnOnce(&mut Self)) {
        let before = self.is_held();
        change(self);
        match (before, self.is_held()) {
            (false, true) => {
                let spent = now.boot.since(Boottime::from_nanos(self.since));
                self.spent = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
            }
            (true, false) => {
                self.count_from(now.boot - std::time::Duration::from_nanos(self.spent), now);
            }
            _ => {}
        }
    }

    fn count_from(&mut self, since: Boottime, now: &ClockReading) {
        self.since = since.as_nanos();
        let passed = i64::try_from(now.boot.since(since).as_micros()).unwrap_or(i64::MAX);
        self.since_at = micros(now).saturating_sub(passed);
    }

    /// Its index in a list that may have been edited.
    fn index_in(&self, ids: &[i64]) -> usize {
        nearest_index(ids.iter().copied(), self.image_id, self.index)
    }

    pub(super) fn put(&mut self, spec: &PlaylistSpec, index: usize) {
        self.index = index;
        if self.others.is_empty() {
            self.last_index = index;
        }
        self.image_id = spec.items[index].image_id;
    }

    /// The images before and after, where there are others.
    fn neighbours(
        &self,
        spec: &PlaylistSpec,
        stride: usize,
        now: &ClockReading,
    ) -> (Option<i64>, Option<i64>) {
        let id = |index: usize| spec.items.get(index).map(|item| item.image_id);
        if spec.items.len() < 2 {
            return (None, None);
        }
        match (&spec.rule, &self.shuffle) {
            (Rule::Slots(slots), _) => slots
                .at(&now.wall, now.place)
                .map_or((None, None), |slot| (slot.previous.and_then(id), slot.next.and_then(id))),
            (_, shuffle) => {
                let last = if self.others.is_empty() { self.index } else { self.last_index };
                let after = || id(spec.beside(last, Direction::Forward));
                let next = shuffle.as_ref().map_or_else(after, |shuffle| Some(shuffle.next()));
                (self.previous(spec, stride), next)
            }
        }
    }

    /// The wall time of a timer's next change, unless the clock was set in between.
    fn beat(&self, spec: &PlaylistSpec) -> Option<jiff::Timestamp> {
        let Rule::Timer(interval) = spec.rule else { return None };
        let since = jiff::Timestamp::from_microsecond(self.since_at).ok()?;
        since.checked_add(interval).ok()
    }

    pub(super) fn record(
        &self,
        spec: &PlaylistSpec,
        applied_to: Vec<String>,
        now: &ClockReading,
        resting: Option<Rest>,
    ) -> ActivePlaylist {
        let stride = self.stride(&applied_to);
        let (previous_image_id, next_image_id) = self.neighbours(spec, stride, now);
        let next_change_at = match self.due(spec, now) {
            // Nothing changes while no monitor is there.
            _ if applied_to.is_empty() => None,
            Due::Wait(deadlines) => deadlines.wall.or_else(|| {
                let left = SignedDuration::try_from(deadlines.boot?.since(now.boot)).ok()?;
                let next = now.wall.timestamp().checked_add(left).ok()?;
                // The two clocks are read one after the other: the same change is told as the same.
                let beat = self.beat(spec).filter(|beat| beat.duration_until(next).abs() < SLACK);
                Some(beat.unwrap_or(next))
            }),
            Due::Step { .. } | Due::EnterSlot { .. } => None,
        };
        ActivePlaylist {
            playlist_id: spec.id,
            playlist_name: spec.name.clone(),
            playlist_type: spec.kind,
            current_index: self.index,
            current_image_id: (!spec.items.is_empty()).then_some(self.image_id),
            previous_image_id,
            next_image_id,
            total_images: spec.items.len(),
            paused: self.paused,
            resting,
            started_at: Timestamp::from_micros(self.started_at),
            slot_started_at: Some(Timestamp::from_micros(self.changed_at)),
            next_change_at: next_change_at.map(Timestamp::from),
            monitors: self.monitors.clone(),
            applied_to,
            extend: self.mode == Mode::Extend,
            mode: self.mode,
        }
    }
}

fn micros(now: &ClockReading) -> i64 {
    now.wall.timestamp().as_microsecond()
}
