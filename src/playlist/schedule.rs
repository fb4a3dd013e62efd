//! Decides when a playlist changes: pure, from its rule, its last change and the time.
//!
//! A timer runs over boot time. Slots of the day and of the week go by the wall clock.

use std::time::Duration;

use jiff::Zoned;

use super::slots::{Location, Slots};
use crate::clock::{self, Boottime, Deadlines};
use crate::store::playlists::Item;
use crate::wire::{PlaylistConfiguration, PlaylistType, Tone};

/// A change that is later than this was missed: the machine was suspended, the clock was set, or no
/// daemon ran.
pub(super) const LATE: Duration = Duration::from_secs(2);

/// The rule that moves a playlist on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Manual,
    Timer(Duration),
    Slots(Slots),
    /// The images of light and dark.
    Appearance {
        light: Option<usize>,
        dark: Option<usize>,
    },
}

/// The next thing to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing is due before these.
    Wait(Deadlines),
    /// The timer has run out; `due` is when it did.
    Step { due: Boottime, missed: bool },
    /// Another slot has begun.
    EnterSlot { slot: usize, missed: bool },
}

impl Rule {
    /// Items without a time have no slot in a day.
    pub(super) fn from_configuration(
        configuration: &PlaylistConfiguration,
        items: &[Item],
    ) -> Self {
        match configuration.kind {
            PlaylistType::Manual => Self::Manual,
            PlaylistType::Timer => Self::Timer(Duration::from_secs(configuration.interval.into())),
            PlaylistType::DayOfWeek => Self::Slots(Slots::Week(items.len())),
            PlaylistType::Appearance => {
                let of = |tone| items.iter().position(|item| item.when == Some(tone));
                Self::Appearance {
                    light: of(Tone::Light),
                    dark: of(Tone::Dark),
                }
            }
            PlaylistType::TimeOfDay => {
                let slots = items.iter().enumerate();
                let slots: Vec<_> = slots
                    .filter_map(|(index, item)| Some((item.day_time()?, index)))
                    .collect();
                // Without slots nothing can begin.
                if slots.is_empty() {
                    Self::Manual
                } else {
                    Self::Slots(Slots::Day(slots))
                }
            }
        }
    }

    /// Whether the clock or light and dark decide which image is shown, instead of steps.
    pub(super) fn has_slots(&self) -> bool {
        matches!(self, Self::Slots(_) | Self::Appearance { .. })
    }

    /// Whether it is a timer with an interval that fits into this span.
    pub(super) fn is_timer_within(&self, span: Duration) -> bool {
        matches!(self, Self::Timer(interval) if *interval <= span)
    }

    /// Returns what is due. A timer counts from `since`; `last` is the slot that was entered last, none
    /// if the image came by another rule. Not called while the playlist is paused.
    pub(super) fn due(&self, since: Boottime, last: Option<usize>, now: &ClockReading) -> Due {
        match self {
            Self::Manual => Due::Wait(Deadlines::default()),
            Self::Timer(interval) => {
                let due = since + *interval;
                if due > now.boot {
                    return Due::Wait(Deadlines {
                        boot: Some(due),
                        wall: None,
                    });
                }
                Due::Step {
                    due,
                    missed: now.boot.since(due) > LATE,
                }
            }
            Self::Appearance { light, dark } => {
                let index = if now.tone == Tone::Light {
                    *light
                } else {
                    *dark
                };
                match index.filter(|_| last != index) {
                    Some(slot) => Due::EnterSlot {
                        slot,
                        missed: false,
                    },
                    None => Due::Wait(Deadlines::default()),
                }
            }
            Self::Slots(slots) => {
                let Some(slot) = slots.at(&now.wall, now.location) else {
                    return Due::Wait(Deadlines::default());
                };
                let wait = Due::Wait(Deadlines {
                    boot: None,
                    wall: slot.ends,
                });
                let wall = now.wall.timestamp();
                let soon = slot
                    .ends
                    .is_some_and(|ends| wall.duration_until(ends) <= late());
                // A clock that is set back by a moment does not bring back the slot before.
                let ahead = soon && last.is_some() && last == slot.next;
                if last == Some(slot.index) || ahead {
                    return wait;
                }
                let missed = wall.duration_since(slot.began) > late();
                Due::EnterSlot {
                    slot: slot.index,
                    missed,
                }
            }
        }
    }
}

fn late() -> jiff::SignedDuration {
    jiff::SignedDuration::from_secs(LATE.as_secs() as i64)
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClockReading {
    pub(super) boot: Boottime,
    /// In the zone of the system.
    pub(super) wall: Zoned,
    /// The location for sunrise and sunset; none unless the settings give it.
    pub(super) location: Option<Location>,
    /// Whether it is light or dark.
    pub(super) tone: Tone,
}

impl ClockReading {
    /// The tone is light until the player sets it.
    pub(super) fn read(location: Option<Location>) -> Self {
        let clock::Now { boot, wall } = clock::Now::read();
        Self {
            boot,
            wall,
            location,
            tone: Tone::Light,
        }
    }
}

#[cfg(test)]
mod tests;
