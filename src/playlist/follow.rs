//! Light and dark on the thread `playlist`: what was said is kept, and everybody is told when it is the
//! other one. Playlists that go by it find out by themselves what is due.

use super::appearance;
use super::error::Error;
use super::player::Player;
use crate::clock::Deadlines;
use crate::store;
use crate::wire::{Appearance, AppearanceMode, Event};

impl Player {
    /// What to be woken for, all in all.
    pub(super) fn deadlines(&self) -> Deadlines {
        let now = self.now();
        let wall = appearance::changes_at(self.mode, &now.wall, now.place);
        self.playlist_deadlines().or(Deadlines { boot: None, wall })
    }

    pub(super) fn appearance(&self) -> Appearance {
        Appearance { mode: self.mode, now: self.now().tone }
    }

    /// Writes what decides from now on; the playlists change with it.
    pub(super) fn set_appearance(&mut self, mode: AppearanceMode) -> Result<Appearance, Error> {
        if mode != self.mode {
            self.store.write(|c| store::appearance::set(c, mode))?;
            self.mode = mode;
        }
        self.run_all_due();
        Ok(self.appearance())
    }

    /// Tells of light and dark if it has changed, and makes all changes that are due.
    pub(super) fn run_all_due(&mut self) {
        let appearance = self.appearance();
        let before = self.told.replace(appearance);
        if before.is_some_and(|before| before != appearance) {
            let Appearance { mode, now } = appearance;
            self.bus.publish(&Event::AppearanceChanged { mode, now });
        }
        self.run_due();
    }
}
