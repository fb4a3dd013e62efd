//! When the sun rises and sets: pure, in the minutes of a local day.
//!
//! Where it does not, in the polar day and night, and where the place is not known, the day begins at
//! 06:00 and ends at 18:00.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sunrise::{Coordinates, DawnType, SolarDay, SolarEvent};

use crate::wire::{DayTime, SunEvent};

/// Minutes since midnight.
const MORNING: i32 = 6 * 60;
const EVENING: i32 = 18 * 60;
const LAST: i32 = 24 * 60 - 1;

/// Where the sun is looked at from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place(Coordinates);

impl Place {
    /// In degrees; none unless both are there and on the globe.
    pub(crate) fn new(latitude: Option<f64>, longitude: Option<f64>) -> Option<Self> {
        Coordinates::new(latitude?, longitude?).map(Self)
    }
}

/// The minute since midnight at which a time of day begins on a local day, within the day.
pub(super) fn minute(time: DayTime, day: Date, zone: &TimeZone, place: Option<Place>) -> u16 {
    let (event, offset) = match time {
        DayTime::Clock(minute) => return minute,
        DayTime::Sun(event, offset) => (event, offset),
    };
    let found = place.and_then(|place| {
        // Without twilight's end there may still be a sunrise.
        let other = match event {
            SunEvent::Dawn => SunEvent::Sunrise,
            SunEvent::Dusk => SunEvent::Sunset,
            other => other,
        };
        of_day(event, day, zone, place).or_else(|| of_day(other, day, zone, place))
    });
    let usual = match event {
        SunEvent::Dawn | SunEvent::Sunrise => MORNING,
        SunEvent::Sunset | SunEvent::Dusk => EVENING,
    };
    let minute = found.unwrap_or(usual) + i32::from(offset);
    u16::try_from(minute.clamp(0, LAST)).unwrap_or_default()
}

/// The minute of a local day at which something happens. A traveller's zone may be far from the
/// place: then it is the place's day before or after that has it.
fn of_day(event: SunEvent, day: Date, zone: &TimeZone, Place(place): Place) -> Option<i32> {
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
        let seconds = SolarDay::new(place, date).event_time(event)?.timestamp();
        // To the nearest minute.
        let at = Timestamp::from_second(seconds + 30).ok()?.to_zoned(zone.clone());
        Some((at.date(), i32::from(at.hour()) * 60 + i32::from(at.minute())))
    };
    let found: Vec<(Date, i32)> = days.into_iter().flatten().filter_map(local).collect();
    let same = found.iter().find(|(date, _)| *date == day);
    // On one day in many years it falls between two days: then it is at the edge of this one.
    let edge = || match found.first()? {
        (date, _) if *date < day => Some(0),
        _ => Some(LAST),
    };
    same.map(|&(_, minute)| minute).or_else(edge)
}

#[cfg(test)]
mod tests;
