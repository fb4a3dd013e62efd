//! Where a running playlist stands and how it moves on: pure, and kept across restarts.

use std::collections::HashMap;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::schedule::{Rule, Standing, Verdict};
use super::shuffle::Shuffle;
use crate::clock::{Boottime, Deadlines, Now};
use crate::store::playlists::{Item, Place, Score};
use crate::wire::{ActivePlaylist, PlaylistOrder, PlaylistType, Timestamp};

/// Less than anybody sets a clock by.
const SLACK: SignedDuration = SignedDuration::from_millis(50);

/// A playlist as it is played.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tune {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) kind: PlaylistType,
    pub(super) rule: Rule,
    random: bool,
    start_first: bool,
    pub(super) items: Vec<Item>,
    /// Where each image comes first, for those in random order.
    places: HashMap<i64, usize>,
}

/// Which way a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Backward,
}

/// The state of a playlist that runs, or ran last, as it is written into the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Course {
    #[serde(flatten)]
    pub(super) place: Place,
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
    /// While paused: how much of the interval is used, in nanoseconds.
    spent: u64,
    /// The slot that was last taken up, where there are slots.
    slot: Option<usize>,
    shuffle: Option<Shuffle>,
}

impl From<Score> for Tune {
    fn from(score: Score) -> Self {
        let Score { id, name, configuration, items } = score;
        let rule = Rule::of(&configuration, items.iter().map(Item::minutes));
        let random =
            configuration.order == PlaylistOrder::Random && !matches!(rule, Rule::Slots(_));
        let places = items.iter().enumerate().rev().filter(|_| random);
        Self {
            id,
            name,
            kind: configuration.kind,
            places: places.map(|(index, item)| (item.image_id, index)).collect(),
            random,
            rule,
            start_first: configuration.always_start_on_first_image,
            items,
        }
    }
}

impl Tune {
    fn ids(&self) -> Vec<i64> {
        self.items.iter().map(|item| item.image_id).collect()
    }

    /// The next item in the list's own order, or the one before.
    fn beside(&self, index: usize, way: Way) -> usize {
        let number = self.items.len().max(1);
        match way {
            Way::Forward => (index + 1) % number,
            Way::Backward => (index + number - 1) % number,
        }
    }
}

impl Course {
    /// A start: at the beginning, where it last was, or in the slot that it is time for. The tune
    /// is not empty.
    pub(super) fn begin(tune: &Tune, last: Option<Self>, now: &Now, seed: u64) -> Self {
        let ids = tune.ids();
        let mut course = last.unwrap_or_default();
        let been = ids.contains(&course.place.image_id);
        course.place.paused = false;
        course.slot = None;
        course.started_at = micros(now);
        let first = tune.start_first.then_some(ids[0]);
        let index =
            if tune.start_first || !been { 0 } else { course.place.locate(ids.iter().copied()) };
        course.put(tune, index);
        course.shuffle = course.shuffle.take().filter(|_| tune.random && been && first.is_none());
        match &mut course.shuffle {
            Some(shuffle) => shuffle.edit(&ids),
            None if tune.random => {
                let first = first.or(been.then_some(ids[index]));
                course.shuffle = Some(Shuffle::new(&ids, first, seed));
            }
            None => {}
        }
        course.follow_shuffle(tune);
        if let Verdict::TakeUp { slot, .. } = tune.rule.judge(course.standing(), now) {
            course.take_up(tune, slot);
        }
        course.changed(now.boot, now);
        course
    }

    /// The declared monitors that are connected.
    pub(super) fn applied_to(&self, connected: &[String]) -> Vec<String> {
        let declared = &self.place.monitors;
        declared.iter().filter(|name| connected.contains(name)).cloned().collect()
    }

    /// Declares connected monitors that came later, where it plays on all; whether there were any.
    pub(super) fn join(&mut self, connected: &[String]) -> bool {
        let before = self.place.monitors.len();
        if self.everywhere {
            let new = connected.iter().filter(|name| !self.place.monitors.contains(name));
            let new: Vec<String> = new.cloned().collect();
            self.place.monitors.extend(new);
        }
        self.place.monitors.len() > before
    }

    /// Takes over an edited list, which is not empty; whether the image is gone that it stood at.
    pub(super) fn edit(&mut self, tune: &Tune, seed: u64) -> bool {
        let ids = tune.ids();
        let before = self.place.clone();
        let index = before.locate(ids.iter().copied());
        let lost = ids[index] != before.image_id;
        self.place.index = index;
        self.place.image_id = ids[index];
        // A slot that still has its image is taken up already.
        let at_slot = self.slot == Some(before.index) && !lost;
        self.slot = (at_slot && matches!(tune.rule, Rule::Slots(_))).then_some(index);
        match &mut self.shuffle {
            Some(shuffle) if tune.random => shuffle.edit(&ids),
            None if tune.random => self.shuffle = Some(Shuffle::new(&ids, Some(ids[index]), seed)),
            _ => self.shuffle = None,
        }
        if lost {
            self.shown_on.clear();
        }
        self.follow_shuffle(tune);
        lost
    }

    /// After a restart: brings what a timer counts from onto this run's clock.
    pub(super) fn resume_after_restart(&mut self, now: &Now, boot_id: &str) {
        if self.boot_id != boot_id || boot_id.is_empty() {
            let passed = micros(now).saturating_sub(self.since_at).max(0).unsigned_abs();
            self.since = (now.boot - std::time::Duration::from_micros(passed)).as_nanos();
        }
        boot_id.clone_into(&mut self.boot_id);
    }

    pub(super) fn judge(&self, tune: &Tune, now: &Now) -> Verdict {
        if self.place.paused {
            return Verdict::Wait(Deadlines::default());
        }
        tune.rule.judge(self.standing(), now)
    }

    fn standing(&self) -> Standing {
        Standing { since: Boottime::from_nanos(self.since), slot: self.slot }
    }

    pub(super) fn step(&mut self, tune: &Tune, way: Way) {
        match (&mut self.shuffle, way) {
            (Some(shuffle), Way::Forward) => drop(shuffle.forward()),
            (Some(shuffle), Way::Backward) => drop(shuffle.backward()),
            (None, way) => self.put(tune, tune.beside(self.place.index, way)),
        }
        self.follow_shuffle(tune);
        self.shown_on.clear();
    }

    /// Leaves an item that cannot be shown.
    pub(super) fn skip(&mut self, tune: &Tune, way: Way) {
        match &mut self.shuffle {
            Some(shuffle) => drop(shuffle.skip(way == Way::Backward)),
            None => self.put(tune, tune.beside(self.place.index, way)),
        }
        self.follow_shuffle(tune);
        self.shown_on.clear();
    }

    pub(super) fn take_up(&mut self, tune: &Tune, slot: usize) {
        self.slot = Some(slot);
        self.put(tune, slot);
        self.shown_on.clear();
    }

    /// Notes that the image has changed; timers count on from `since`.
    pub(super) fn changed(&mut self, since: Boottime, now: &Now) {
        self.count_from(since, now);
        self.spent = 0;
        self.changed_at = micros(now);
    }

    pub(super) fn pause(&mut self, now: &Now) {
        if !self.place.paused {
            self.place.paused = true;
            let spent = now.boot.since(Boottime::from_nanos(self.since));
            self.spent = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        }
    }

    pub(super) fn resume(&mut self, now: &Now) {
        if self.place.paused {
            self.place.paused = false;
            self.count_from(now.boot - std::time::Duration::from_nanos(self.spent), now);
        }
    }

    fn count_from(&mut self, since: Boottime, now: &Now) {
        self.since = since.as_nanos();
        let passed = i64::try_from(now.boot.since(since).as_micros()).unwrap_or(i64::MAX);
        self.since_at = micros(now).saturating_sub(passed);
    }

    fn put(&mut self, tune: &Tune, index: usize) {
        self.place.index = index;
        self.place.image_id = tune.items[index].image_id;
    }

    fn follow_shuffle(&mut self, tune: &Tune) {
        let Some(shuffle) = &self.shuffle else { return };
        let current = shuffle.current();
        if tune.items[self.place.index].image_id != current
            && let Some(&index) = tune.places.get(&current)
        {
            self.put(tune, index);
        }
    }

    /// The images before and after, where there are others.
    fn neighbours(&self, tune: &Tune, now: &Now) -> (Option<i64>, Option<i64>) {
        let id = |index: usize| tune.items.get(index).map(|item| item.image_id);
        if tune.items.len() < 2 {
            return (None, None);
        }
        match (&tune.rule, &self.shuffle) {
            (Rule::Slots(slots), _) => slots
                .at(&now.wall)
                .map_or((None, None), |slot| (slot.previous.and_then(id), slot.next.and_then(id))),
            (_, Some(shuffle)) => (shuffle.previous(), Some(shuffle.next())),
            (_, None) => {
                let beside = |way| id(tune.beside(self.place.index, way));
                (beside(Way::Backward), beside(Way::Forward))
            }
        }
    }

    /// When a timer's next change is by the clock on the wall, unless that was set meanwhile.
    fn beat(&self, tune: &Tune) -> Option<jiff::Timestamp> {
        let Rule::Timer(interval) = tune.rule else { return None };
        let since = jiff::Timestamp::from_microsecond(self.since_at).ok()?;
        since.checked_add(interval).ok()
    }

    pub(super) fn record(&self, tune: &Tune, applied_to: Vec<String>, now: &Now) -> ActivePlaylist {
        let (previous_image_id, next_image_id) = self.neighbours(tune, now);
        let next_change_at = match self.judge(tune, now) {
            // Nothing changes while no monitor is there.
            _ if applied_to.is_empty() => None,
            Verdict::Wait(deadlines) => deadlines.wall.or_else(|| {
                let left = SignedDuration::try_from(deadlines.boot?.since(now.boot)).ok()?;
                let next = now.wall.timestamp().checked_add(left).ok()?;
                // The two clocks are read one after the other: the same change is told as the same.
                let beat = self.beat(tune).filter(|beat| beat.duration_until(next).abs() < SLACK);
                Some(beat.unwrap_or(next))
            }),
            Verdict::Step { .. } | Verdict::TakeUp { .. } => None,
        };
        ActivePlaylist {
            playlist_id: tune.id,
            playlist_name: tune.name.clone(),
            playlist_type: tune.kind,
            current_index: self.place.index,
            current_image_id: self.place.image_id,
            previous_image_id,
            next_image_id,
            total_images: tune.items.len(),
            paused: self.place.paused,
            started_at: Timestamp::from_micros(self.started_at),
            slot_started_at: Some(Timestamp::from_micros(self.changed_at)),
            next_change_at: next_change_at.map(Timestamp::from),
            monitors: self.place.monitors.clone(),
            applied_to,
            extend: self.place.extend,
        }
    }
}

fn micros(now: &Now) -> i64 {
    now.wall.timestamp().as_microsecond()
}
