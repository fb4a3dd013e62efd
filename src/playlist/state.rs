//! The place of a running playlist in its list, its pauses and its times: pure, and kept across
//! restarts.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::schedule::{ClockReading, Due, Rule};
use super::shuffle::Shuffle;
use super::spec::{Direction, PlaylistSpec};
use crate::clock::{Boottime, Deadlines};
use crate::color;
use crate::store::playlists::nearest_index;
use crate::wire::{ActivePlaylist, Mode, PauseReason, Timestamp};

/// Two results for the time of one change differ by less than this, unless the clock was set.
const SLACK: SignedDuration = SignedDuration::from_millis(50);

/// The state of a running playlist, or the last state of a stopped one, as the database stores it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PlaybackState {
    pub(super) index: usize,
    pub(super) image_id: i64,
    pub(super) paused: bool,
    /// Paused by battery, lock or idle, beside the user's own pause.
    pub(super) resting: bool,
    /// Resumed by a client although it is resting: it goes on until nothing pauses it.
    pub(super) resumed: bool,
    /// The declared monitors, including those that are not connected.
    pub(super) monitors: Vec<String>,
    /// The identity of each declared monitor, if it is known.
    pub(super) identities: BTreeMap<String, String>,
    pub(super) mode: Mode,
    /// In mode `each`: the images taken along with the present image, in order.
    pub(super) others: Vec<i64>,
    /// The index of the last of `others`, or of the present image if there are none.
    pub(super) last_index: usize,
    /// Plays on all monitors, including those that are connected later.
    pub(super) everywhere: bool,
    /// The monitors that need no request for the present image: it is shown, or a later request has
    /// replaced it there.
    pub(super) shown_on: Vec<String>,
    /// Microseconds since 1970, as are `changed_at` and `since_at`.
    started_at: i64,
    changed_at: i64,
    /// The boot that `since` belongs to.
    pub(super) boot_id: String,
    /// Boot time from which a timer counts, in nanoseconds.
    since: i64,
    /// The same in wall time, which is valid after a reboot.
    since_at: i64,
    /// The used part of the interval during a pause, in nanoseconds.
    spent: u64,
    /// The slot that was entered last, if the playlist has slots.
    pub(super) slot: Option<usize>,
    pub(super) shuffle: Option<Shuffle>,
}

impl PlaybackState {
    /// The state of a start: at the first item, at the last place, or in the present slot. The
    /// spec must not be empty.
    pub(super) fn start(
        spec: &PlaylistSpec,
        last: Option<Self>,
        now: &ClockReading,
        seed: u64,
    ) -> Self {
        let ids = spec.ids();
        let mut state = last.unwrap_or_default();
        let been = ids.contains(&state.image_id);
        (state.paused, state.resumed) = (false, false);
        state.others.clear();
        state.slot = None;
        state.started_at = micros(now);
        let first = spec.start_first.then_some(ids[0]);
        let index = if spec.start_first || !been {
            0
        } else {
            state.index_in(&ids)
        };
        state.put(spec, index);
        state.shuffle = state
            .shuffle
            .take()
            .filter(|_| spec.random && been && first.is_none());
        match &mut state.shuffle {
            Some(shuffle) => shuffle.edit(&ids),
            None if spec.random => {
                let first = first.or(been.then_some(ids[index]));
                state.shuffle = Some(Shuffle::new(&ids, first, seed));
            }
            None => {}
        }
        state.follow_shuffle(spec);
        if let Due::EnterSlot { slot, .. } = state.due_by_rule(spec, now) {
            state.enter_slot(spec, slot);
        }
        state.changed(now.boot, now);
        state
    }

    /// Before an edit: if images were replaced, moves to the replacements. They have the same
    /// content, so nothing needs to be shown.
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

    /// Adopts an edited list, which must not be empty. Returns whether the present image is gone
    /// or, in mode `each`, whether any monitor has another image now.
    pub(super) fn edit(&mut self, spec: &PlaylistSpec, seed: u64) -> bool {
        let ids = spec.ids();
        let before = self.index;
        let taken = self.taken();
        let index = self.index_in(&ids);
        let lost = ids[index] != self.image_id;
        self.index = index;
        self.image_id = ids[index];
        // A slot that keeps its image has been entered already.
        let at_slot = self.slot == Some(before) && !lost;
        self.slot = (at_slot && spec.has_slots()).then_some(index);
        match &mut self.shuffle {
            Some(shuffle) if spec.random => shuffle.edit(&ids),
            None if spec.random => self.shuffle = Some(Shuffle::new(&ids, Some(ids[index]), seed)),
            _ => self.shuffle = None,
        }
        // A random order replaces the images that are gone itself.
        let follows_shuffle = taken.iter().any(|id| !ids.contains(id));
        if self.shuffle.is_none() {
            // The image that replaces the first one is not shown a second time.
            let moved_up = if lost { Some(self.image_id) } else { None };
            self.others
                .retain(|id| ids.contains(id) && Some(*id) != moved_up);
        }
        self.last_index = match self.others.last() {
            Some(last) => nearest_index(ids.iter().copied(), *last, self.last_index),
            None => index,
        };
        if follows_shuffle {
            self.follow_shuffle(spec);
        }
        let lost = self.taken() != taken;
        if lost {
            self.shown_on.clear();
        }
        lost
    }

    /// After a restart: converts the start of a timer's interval to the boot time of this boot.
    pub(super) fn resume_after_restart(&mut self, now: &ClockReading, boot_id: &str) {
        if self.boot_id != boot_id || boot_id.is_empty() {
            let passed = micros(now)
                .saturating_sub(self.since_at)
                .max(0)
                .unsigned_abs();
            self.since = (now.boot - std::time::Duration::from_micros(passed)).as_nanos();
        }
        boot_id.clone_into(&mut self.boot_id);
    }

    pub(super) fn due(&self, spec: &PlaylistSpec, now: &ClockReading) -> Due {
        if self.is_held() || spec.is_waiting() {
            return Due::Wait(Deadlines::default());
        }
        self.due_by_rule(spec, now)
    }

    fn due_by_rule(&self, spec: &PlaylistSpec, now: &ClockReading) -> Due {
        let since = Boottime::from_nanos(self.since);
        spec.rule.due(since, self.slot, now)
    }

    /// Notes that the image has changed; timers count on from `since`.
    pub(super) fn changed(&mut self, since: Boottime, now: &ClockReading) {
        self.count_from(since, now);
        self.spent = 0;
        self.changed_at = micros(now);
    }

    /// Pauses it, or resumes it whatever pauses it.
    pub(super) fn set_paused(&mut self, paused: bool, now: &ClockReading) {
        self.hold(now, |state| {
            state.paused = paused;
            state.resumed = !paused && state.resting;
        });
    }

    pub(super) fn set_pause_by_session(&mut self, resting: bool, now: &ClockReading) {
        self.hold(now, |state| {
            (state.resting, state.resumed) = (resting, false)
        });
    }

    /// Whether a pause keeps it from changing by itself.
    pub(super) fn is_held(&self) -> bool {
        self.paused || self.resting && !self.resumed
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

    /// Whether both are of the same start of the playlist.
    pub(super) fn is_of_start(&self, other: &Self) -> bool {
        self.started_at == other.started_at
    }

    /// Goes to the place of another state. Its pauses, monitors and times stay.
    pub(super) fn go_to(&mut self, place: &Self) {
        self.index = place.index;
        self.image_id = place.image_id;
        self.others.clone_from(&place.others);
        self.last_index = place.last_index;
        self.shown_on.clone_from(&place.shown_on);
        self.slot.clone_from(&place.slot);
        self.shuffle.clone_from(&place.shuffle);
    }

    /// The index of the present image in a list that may have been edited.
    fn index_in(&self, ids: &[i64]) -> usize {
        nearest_index(ids.iter().copied(), self.image_id, self.index)
    }

    /// The images before and after the present one, if there are others that are no plain colours.
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
        let neighbours = match (&spec.rule, &self.shuffle) {
            (Rule::Slots(slots), _) => slots
                .at(&now.wall, now.location)
                .map_or((None, None), |slot| {
                    (slot.previous.and_then(id), slot.next.and_then(id))
                }),
            (_, shuffle) => {
                let after = || id(spec.beside(self.last_index, Direction::Forward));
                let next = shuffle
                    .as_ref()
                    .map_or_else(after, |shuffle| Some(shuffle.next()));
                (self.previous(spec, stride), next)
            }
        };
        let image = |id: Option<i64>| id.filter(|id| color::from_image_id(*id).is_none());
        (image(neighbours.0), image(neighbours.1))
    }

    /// The wall time of a timer's next change, unless the clock was set since the last one.
    fn beat(&self, spec: &PlaylistSpec) -> Option<jiff::Timestamp> {
        let Rule::Timer(interval) = spec.rule else {
            return None;
        };
        let since = jiff::Timestamp::from_microsecond(self.since_at).ok()?;
        since.checked_add(interval).ok()
    }

    pub(super) fn record(
        &self,
        spec: &PlaylistSpec,
        applied_to: Vec<String>,
        now: &ClockReading,
        resting: Option<PauseReason>,
    ) -> ActivePlaylist {
        let stride = self.stride(&applied_to);
        let color = color::from_image_id(self.image_id).map(color::hex);
        let (previous_image_id, next_image_id) = self.neighbours(spec, stride, now);
        let next_change_at = match self.due(spec, now) {
            // Nothing changes while no monitor is connected.
            _ if applied_to.is_empty() => None,
            Due::Wait(deadlines) => deadlines.wall.or_else(|| {
                let left = SignedDuration::try_from(deadlines.boot?.since(now.boot)).ok()?;
                let next = now.wall.timestamp().checked_add(left).ok()?;
                // The two clocks are read one after the other, so `next` varies a little: reports
                // one time for one change.
                let beat = self
                    .beat(spec)
                    .filter(|beat| beat.duration_until(next).abs() < SLACK);
                Some(beat.unwrap_or(next))
            }),
            Due::Step { .. } | Due::EnterSlot { .. } => None,
        };
        ActivePlaylist {
            playlist_id: spec.id,
            playlist_name: spec.name.clone(),
            playlist_type: spec.kind,
            current_index: self.index,
            current_image_id: (color.is_none() && !spec.items.is_empty()).then_some(self.image_id),
            current_color: color.filter(|_| !spec.items.is_empty()),
            previous_image_id,
            next_image_id,
            total_images: spec.items.len(),
            paused: self.paused,
            resting,
            resumed: self.resumed,
            started_at: Timestamp::from_micros(self.started_at),
            slot_started_at: Some(Timestamp::from_micros(self.changed_at)),
            next_change_at: next_change_at.map(Timestamp::from),
            monitors: self.monitors.clone(),
            applied_to,
            extend: self.mode == Mode::Extend,
            mode: self.mode,
            not_shown: None,
        }
    }
}

fn micros(now: &ClockReading) -> i64 {
    now.wall.timestamp().as_microsecond()
}
