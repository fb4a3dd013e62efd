//! Light and dark mode on the thread `playlist`: stores the mode, publishes an event when light or
//! dark begins, and answers clients when the pictures for it are shown.
//!
//! Playlists that follow light and dark find out by themselves what is due.

use super::error::{Error, Reply};
use super::player::{Player, RunningPlaylist};
use super::schedule::Rule;
use crate::store;
use crate::wire::{Appearance, AppearanceMode, Event, PlaylistType};

/// Clients that wait for the pictures of a change; one more is refused with [`Error::Busy`].
const WAITING: usize = 64;

impl Player {
    pub(super) fn appearance(&self) -> Appearance {
        Appearance { mode: self.mode, now: self.clock_reading().tone }
    }

    /// Writes what decides from now on; the playlists change with it. Answers when their pictures are
    /// up, or have failed.
    pub(super) fn set_appearance(&mut self, mode: AppearanceMode, reply: Reply<Appearance>) {
        if self.waiting.len() >= WAITING {
            return reply(Err(Error::Busy));
        }
        if mode != self.mode {
            if let Err(error) = self.store.write(|c| store::appearance::set(c, mode)) {
                return reply(Err(error.into()));
            }
            self.mode = mode;
        }
        self.waiting.push(reply);
        self.run_all_due();
    }

    /// Answers those who wait for pictures of light or dark, where none is on its way.
    pub(super) fn answer_waiting(&mut self) {
        let is_on_its_way = |(id, one): (&i64, &RunningPlaylist)| {
            one.spec.kind == PlaylistType::Appearance
                && (!self.asked(*id).is_empty() || self.has_pending_change(*id))
        };
        if self.waiting.is_empty() || self.running.iter().any(is_on_its_way) {
            return;
        }
        let appearance = self.appearance();
        std::mem::take(&mut self.waiting).into_iter().for_each(|reply| reply(Ok(appearance)));
    }

    /// Tells of light and dark if it has changed.
    pub(super) fn tell_appearance(&mut self) {
        let appearance = self.appearance();
        let before = self.told.replace(appearance);
        if before.is_some_and(|before| before != appearance) {
            let Appearance { mode, now } = appearance;
            self.bus.publish(&Event::AppearanceChanged { mode, now });
        }
    }

    /// Says once that the sun cannot be followed, each time that it becomes so.
    pub(super) fn warn_of_lost_place(&mut self) {
        let follows = |one: &&RunningPlaylist| match &one.spec.rule {
            Rule::Slots(slots) => slots.follow_the_sun(),
            _ => false,
        };
        let lost =
            (self.running.values().find(follows)).filter(|_| self.clock_reading().place.is_none());
        if let Some(one) = lost.filter(|_| !self.warned_of_place) {
            log::warn!(
                "playlist {:?} follows the sun, but location.latitude and location.longitude are not \
                 set; using 06:00 and 18:00",
                one.spec.name
            );
        }
        self.warned_of_place = lost.is_some();
    }
}
