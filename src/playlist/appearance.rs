//! Light or dark: pure, from what was said and, where that is the sun, from the time and the place.

use jiff::{Timestamp, Zoned};

use super::slots::{Slot, Slots};
use super::sun::Place;
use crate::wire::{AppearanceMode, DayTime, SunEvent, Tone};

pub(super) fn tone(mode: AppearanceMode, wall: &Zoned, place: Option<Place>) -> Tone {
    match mode {
        AppearanceMode::Light => Tone::Light,
        AppearanceMode::Dark => Tone::Dark,
        AppearanceMode::Auto => match slot(wall, place).map(|slot| slot.index) {
            Some(1) => Tone::Dark,
            _ => Tone::Light,
        },
    }
}

/// When it is the other one.
pub(super) fn changes_at(
    mode: AppearanceMode,
    wall: &Zoned,
    place: Option<Place>,
) -> Option<Timestamp> {
    slot(wall, place).filter(|_| mode == AppearanceMode::Auto)?.ends
}

/// From sunrise on it is light, from sunset on dark.
fn slot(wall: &Zoned, place: Option<Place>) -> Option<Slot> {
    let (rise, set) = (DayTime::Sun(SunEvent::Sunrise, 0), DayTime::Sun(SunEvent::Sunset, 0));
    Slots::Day(vec![(rise, 0), (set, 1)]).at(wall, place)
}
