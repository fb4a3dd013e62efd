//! The slots of a day and of a week: in which slot a point in time lies, and when the next begins.
//! Pure.
//!
//! Slots begin at points in time that local wall-clock minutes map to. A minute that summer time
//! skips begins where the gap ends; a minute that comes twice begins the first time. So slots are
//! in the order of their beginnings, and no slot begins twice. Sunrise and sunset are at a
//! different minute each day, so their order among the slots may change.
//!
//! The sun rises at 06:00 and sets at 18:00 in the polar day and night, and if the location is not
//! known.

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};
use sunrise::{Coordinates, DawnType, SolarDay, SolarEvent};

use crate::wire::{AppearanceMode, DayTime, SunEvent, Tone};

/// The slots of a day, or of a week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slots {
    /// Times of the day and the images that begin then, in any order. Not empty.
    Day(Vec<(DayTime, usize)>),
    /// The number of images: the first is Sunday's, the last serves all remaining days.
    Week(usize),
}

/// The slot that a point in time lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The index of the image.
    pub(super) index: usize,
    pub(super) began: Timestamp,
    /// The images of the slots before and after; none if all slots have the same image.
    pub(super) previous: Option<usize>,
    pub(super) next: Option<usize>,
    /// When the next slot begins.
    pub(super) ends: Option<Timestamp>,
}

/// The beginning of a slot, and the index of its image.
type Mark = (Timestamp, usize);

impl Slots {
    /// Whether the sun decides when some of them begin.
    pub(super) fn follow_the_sun(&self) -> bool {
        matches!(self, Self::Day(slots)
            if slots.iter().any(|(time, _)| matches!(time, DayTime::Sun(..))))
    }

    /// None only at the ends of the calendar.
    pub(super) fn at(&self, now: &Zoned, location: Option<Location>) -> Option<Slot> {
        // A gap may hold all marks of a day, and a week has the same image on at most six days.
        let days = match self {
            Self::Day(_) => 2,
            Self::Week(_) => 8,
        };
        // Tomorrow counts: a clock set back over midnight returns to a day after the next has started.
        let first = now.date().checked_sub(days.days()).unwrap_or(Date::MIN);
        let all = first.series(1.day()).take(2 * days as usize + 1);
        let marks: Vec<Mark> = all
            .flat_map(|day| self.marks(day, now.time_zone(), location))
            .collect();
        let begun = marks.partition_point(|&(begins, _)| begins <= now.timestamp());
        let (before, after) = marks.split_at(begun);
        let &(began, index) = before.last()?;
        // If several begin in one gap, only the last is ever seen.
        let is_seen = |at: &usize| after.get(at + 1).is_none_or(|next| after[*at].0 < next.0);
        let next = (0..after.len())
            .filter(is_seen)
            .map(|at| after[at])
            .find(|it| it.1 != index);
        let is_earlier = |&&(begins, image): &&Mark| image != index && begins < began;
        let previous = before
            .iter()
            .rev()
            .find(is_earlier)
            .map(|&(_, image)| image);
        let ends = next.map(|(begins, _)| begins);
        Some(Slot {
            index,
            began,
            previous,
            next: next.map(|(_, image)| image),
            ends,
        })
    }

    /// The marks of a day, in order. If two begin at the same minute, the later one is seen.
    fn marks(&self, day: Date, zone: &TimeZone, location: Option<Location>) -> Vec<Mark> {
        let mut minutes = match self {
            Self::Day(slots) => slots
                .iter()
                .map(|&(time, index)| (minute_of(time, day, zone, location), index))
                .collect(),
            Self::Week(images) => {
                let weekday = usize::from(day.weekday().to_sunday_zero_offset().unsigned_abs());
                vec![(0, weekday.min(images.saturating_sub(1)))]
            }
        };
        minutes.sort_unstable();
        let mark = |(minute, index)| Some((begins(zone, day, minute)?, index));
        minutes.into_iter().filter_map(mark).collect()
    }
}

/// When a minute of a local day begins: at the end of the gap if the clock skips it, and the first
/// time if it comes twice.
pub(super) fn begins(zone: &TimeZone, day: Date, minute: u16) -> Option<Timestamp> {
    let time = day
        .at(0, 0, 0, 0)
        .checked_add(i64::from(minute).minutes())
        .ok()?;
    match zone.to_ambiguous_timestamp(time).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(time).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(time).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // With the later offset, the time lies before the gap.
            let before = after.to_timestamp(time).ok()?;
            zone.following(before).next().map(|leap| leap.timestamp())
        }
    }
}

/// Minutes since midnight.
const MORNING: i32 = 6 * 60;
const EVENING: i32 = 18 * 60;
const LAST: i32 = 24 * 60 - 1;

/// The location for sunrise and sunset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Location(Coordinates);

impl Location {
    /// In degrees; none unless both are given and lie on the globe.
    pub(crate) fn new(latitude: Option<f64>, longitude: Option<f64>) -> Option<Self> {
        Coordinates::new(latitude?, longitude?).map(Self)
    }
}

/// The minute since midnight at which a time of day begins on a local day, within the day.
pub(super) fn minute_of(
    time: DayTime,
    day: Date,
    zone: &TimeZone,
    location: Option<Location>,
) -> u16 {
    let (event, offset) = match time {
        DayTime::Clock(minute) => return minute,
        DayTime::Sun(event, offset) => (event, offset),
    };
    let found = location.and_then(|location| {
        // A day may have a sunrise without a dawn.
        let other = match event {
            SunEvent::Dawn | SunEvent::Sunrise => SunEvent::Sunrise,
            SunEvent::Dusk | SunEvent::Sunset => SunEvent::Sunset,
        };
        minute_of_event(event, day, zone, location)
            .or_else(|| minute_of_event(other, day, zone, location))
    });
    let usual = match event {
        SunEvent::Dawn | SunEvent::Sunrise => MORNING,
        SunEvent::Sunset | SunEvent::Dusk => EVENING,
    };
    let minute = found.unwrap_or(usual) + i32::from(offset);
    u16::try_from(minute.clamp(0, LAST)).unwrap_or_default()
}

/// Whether the sun rises and sets at a location on the local day.
pub(super) fn has_sunrise(wall: &Zoned, location: Location) -> bool {
    [SunEvent::Sunrise, SunEvent::Sunset]
        .into_iter()
        .all(|event| minute_of_event(event, wall.date(), wall.time_zone(), location).is_some())
}

/// The minute of a local day at which a solar event happens. If the zone is far from the location, the
/// event may belong to the location's day before or after.
fn minute_of_event(
    event: SunEvent,
    day: Date,
    zone: &TimeZone,
    Location(location): Location,
) -> Option<i32> {
    let event = match event {
        SunEvent::Sunrise => SolarEvent::Sunrise,
        SunEvent::Sunset => SolarEvent::Sunset,
        SunEvent::Dawn => SolarEvent::Dawn(DawnType::Civil),
        SunEvent::Dusk => SolarEvent::Dusk(DawnType::Civil),
    };
    let days = [Some(day), day.yesterday().ok(), day.tomorrow().ok()];
    let local = |solar: Date| {
        let date = chrono::NaiveDate::from_ymd_opt(
            solar.year().into(),
            solar.month().unsigned_abs().into(),
            solar.day().unsigned_abs().into(),
        )?;
        let seconds = SolarDay::new(location, date).event_time(event)?.timestamp();
        // To the nearest minute.
        let at = Timestamp::from_second(seconds + 30)
            .ok()?
            .to_zoned(zone.clone());
        Some((
            at.date(),
            i32::from(at.hour()) * 60 + i32::from(at.minute()),
        ))
    };
    let found: Vec<(Date, i32)> = days.into_iter().flatten().filter_map(local).collect();
    let same = found.iter().find(|(date, _)| *date == day);
    // On rare days the event falls between two days: it is put at the edge of this one.
    let edge = || match found.first()? {
        (date, _) if *date < day => Some(0),
        _ => Some(LAST),
    };
    same.map(|&(_, minute)| minute).or_else(edge)
}

pub(super) fn tone_at(mode: AppearanceMode, wall: &Zoned, location: Option<Location>) -> Tone {
    match mode {
        AppearanceMode::Light => Tone::Light,
        AppearanceMode::Dark => Tone::Dark,
        AppearanceMode::Auto => match daylight_slot(wall, location).map(|slot| slot.index) {
            Some(1) => Tone::Dark,
            _ => Tone::Light,
        },
    }
}

/// When the tone changes next.
pub(super) fn tone_changes_at(
    mode: AppearanceMode,
    wall: &Zoned,
    location: Option<Location>,
) -> Option<Timestamp> {
    daylight_slot(wall, location)
        .filter(|_| mode == AppearanceMode::Auto)?
        .ends
}

/// Slot 0, light, begins at sunrise; slot 1, dark, at sunset.
fn daylight_slot(wall: &Zoned, location: Option<Location>) -> Option<Slot> {
    let (rise, set) = (
        DayTime::Sun(SunEvent::Sunrise, 0),
        DayTime::Sun(SunEvent::Sunset, 0),
    );
    Slots::Day(vec![(rise, 0), (set, 1)]).at(wall, location)
}

#[cfg(test)]
mod tests;
