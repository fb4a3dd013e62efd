//! When a playlist changes: pure, from its rule, where it stands, and what time it is.
//!
//! A timer runs over boot time. Slots of the day and of the week begin at points in time that local
//! wall-clock minutes map to: a minute that summer time leaps over begins where the leap ends, one
//! that comes twice begins the first time. So the order of slots is the order of their beginnings,
//! and none is ever begun twice.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};

use crate::clock::{Boottime, Deadlines, Now};
use crate::wire::{PlaylistConfiguration, PlaylistType};

/// A change that comes later than this was missed: by suspend, a clock that was set, or a daemon
/// that did not run.
pub(super) const LATE: Duration = Duration::from_secs(2);

/// What moves a playlist on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Manual,
    Timer(Duration),
    Slots(Slots),
}

/// The slots of a day, or of a week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slots {
    /// Minutes since midnight and the images that begin then, sorted. Not empty.
    Day(Vec<(u16, usize)>),
    /// How many images there are: the first is Sunday's, the last serves all days that are left.
    Week(usize),
}

/// The slot that a point in time lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// Of the image.
    pub(super) index: usize,
    pub(super) began: Timestamp,
    /// The images of the slots before and after; none where all slots have the same.
    pub(super) previous: Option<usize>,
    pub(super) next: Option<usize>,
    /// When the next one begins.
    pub(super) ends: Option<Timestamp>,
}

/// Where a running playlist stands in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastChange {
    /// When its image last changed. Timers count from here.
    pub(super) since: Boottime,
    /// The slot that it last took up; none where it came by another rule.
    pub(super) slot: Option<usize>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing before these.
    Wait(Deadlines),
    /// The timer has run out. With the time that it should have.
    Step { due: Boottime, missed: bool },
    /// Another slot has begun.
    EnterSlot { slot: usize, missed: bool },
}

impl Rule {
    /// `times` are the minutes of the images in their order; those without one have no slot.
    pub(super) fn of(
        configuration: &PlaylistConfiguration,
        times: impl ExactSizeIterator<Item = Option<u16>>,
    ) -> Self {
        match configuration.kind {
            PlaylistType::Manual => Self::Manual,
            PlaylistType::Timer => Self::Timer(Duration::from_secs(configuration.interval.into())),
            PlaylistType::DayOfWeek => Self::Slots(Slots::Week(times.len())),
            PlaylistType::TimeOfDay => {
                let slots = times.enumerate().filter_map(|(index, time)| Some((time?, index)));
                let mut slots: Vec<_> = slots.collect();
                slots.sort_unstable();
                // Without any there is nothing that could begin.
                if slots.is_empty() { Self::Manual } else { Self::Slots(Slots::Day(slots)) }
            }
        }
    }

    /// Whether it is a timer of which a whole interval fits into this span.
    pub(super) fn is_timer_within(&self, span: Duration) -> bool {
        matches!(self, Self::Timer(interval) if *interval <= span)
    }

    /// Looks what is due. The caller does not ask while the playlist is paused.
    pub(super) fn due(&self, last_change: LastChange, now: &Now) -> Due {
        match self {
            Self::Manual => Due::Wait(Deadlines::default()),
            Self::Timer(interval) => {
                let due = last_change.since + *interval;
                if due > now.boot {
                    return Due::Wait(Deadlines { boot: Some(due), wall: None });
                }
                Due::Step { due, missed: now.boot.since(due) > LATE }
            }
            Self::Slots(slots) => {
                let Some(slot) = slots.at(&now.wall) else {
                    return Due::Wait(Deadlines::default());
                };
                let wait = Due::Wait(Deadlines { boot: None, wall: slot.ends });
                let wall = now.wall.timestamp();
                let soon = slot.ends.is_some_and(|ends| wall.duration_until(ends) <= late());
                // A clock that is set back by a moment does not fetch the slot before.
                let ahead = soon && last_change.slot.is_some() && last_change.slot == slot.next;
                if last_change.slot == Some(slot.index) || ahead {
                    return wait;
                }
                let missed = wall.duration_since(slot.began) > late();
                Due::EnterSlot { slot: slot.index, missed }
            }
        }
    }
}

fn late() -> jiff::SignedDuration {
    jiff::SignedDuration::from_secs(LATE.as_secs() as i64)
}

/// The beginning of a slot, in the order of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    day: Date,
    /// Which of the day's.
    number: usize,
}

impl Slots {
    /// None only at the ends of the calendar.
    pub(super) fn at(&self, now: &Zoned) -> Option<Slot> {
        let zone = now.time_zone();
        let mark = self.last_before(now)?;
        let (index, began) = (self.image(mark), self.begins(mark, zone)?);
        let other = |mark: &Mark| self.image(*mark) != index;
        // A leap may hold all of a day's, a week has the same image on six days at most.
        let most = self.marks() + 8;
        let after = std::iter::successors(self.after(mark), |mark| self.after(*mark)).take(most);
        let before = std::iter::successors(self.before(mark), |mark| self.before(*mark)).take(most);
        // Of several that begin in one leap, only the last is ever seen.
        let seen = |mark: &Mark| {
            let after = self.after(*mark).and_then(|after| self.begins(after, zone));
            after.is_none_or(|after| self.begins(*mark, zone) < Some(after))
        };
        let next = after.into_iter().find(|mark| other(mark) && seen(mark));
        let earlier = |mark: &Mark| self.begins(*mark, zone) < Some(began);
        let previous = before.into_iter().find(|mark| other(mark) && earlier(mark));
        Some(Slot {
            index,
            began,
            previous: previous.map(|mark| self.image(mark)),
            next: next.map(|mark| self.image(mark)),
            ends: next.and_then(|mark| self.begins(mark, zone)),
        })
    }

    /// The last mark that is not ahead. Marks begin in their order, so that each day can be halved.
    fn last_before(&self, now: &Zoned) -> Option<Mark> {
        let (zone, wall) = (now.time_zone(), now.timestamp());
        // Tomorrow: a clock set back at midnight comes to the same day twice.
        let mut day = now.date().tomorrow().unwrap_or(now.date());
        for _ in 0..4 {
            let begun = |number: usize| {
                self.begins(Mark { day, number }, zone).is_some_and(|begins| begins <= wall)
            };
            let (mut low, mut high) = (0, self.marks());
            while low < high {
                let middle = low.midpoint(high);
                if begun(middle) { low = middle + 1 } else { high = middle }
            }
            if let Some(number) = low.checked_sub(1) {
                return Some(Mark { day, number });
            }
            day = day.yesterday().ok()?;
        }
        None
    }

    /// How many begin in a day.
    fn marks(&self) -> usize {
        match self {
            Self::Day(slots) => slots.len(),
            Self::Week(_) => 1,
        }
    }

    fn image(&self, mark: Mark) -> usize {
        match self {
            Self::Day(slots) => slots[mark.number].1,
            Self::Week(images) => {
                let day = usize::from(mark.day.weekday().to_sunday_zero_offset().unsigned_abs());
                day.min(images.saturating_sub(1))
            }
        }
    }

    fn begins(&self, mark: Mark, zone: &TimeZone) -> Option<Timestamp> {
        let minute = match self {
            Self::Day(slots) => slots[mark.number].0,
            Self::Week(_) => 0,
        };
        begins(zone, mark.day, minute)
    }

    fn after(&self, Mark { day, number }: Mark) -> Option<Mark> {
        if number + 1 < self.marks() {
            return Some(Mark { day, number: number + 1 });
        }
        Some(Mark { day: day.tomorrow().ok()?, number: 0 })
    }

    fn before(&self, Mark { day, number }: Mark) -> Option<Mark> {
        if let Some(number) = number.checked_sub(1) {
            return Some(Mark { day, number });
        }
        Some(Mark { day: day.yesterday().ok()?, number: self.marks() - 1 })
    }
}

/// When a minute of a local day begins: where it does not exist, when the clock has leapt over it;
/// where it comes twice, the first time.
fn begins(zone: &TimeZone, day: Date, minute: u16) -> Option<Timestamp> {
    let time = day.at(0, 0, 0, 0).checked_add(i64::from(minute).minutes()).ok()?;
    match zone.to_ambiguous_timestamp(time).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(time).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(time).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // Read with the offset that is yet to come, it lies before the leap.
            let before = after.to_timestamp(time).ok()?;
            zone.following(before).next().map(|leap| leap.timestamp())
        }
    }
}

#[cfg(test)]
mod tests;
