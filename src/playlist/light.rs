//! Light and dark: the mode that decides between them, and the clients that wait for their pictures.

use super::error::{Error, Reply};
use super::schedule::ClockReading;
use super::slots::{tone_at, tone_changes_at};
use crate::store::{self, Store};
use crate::wire::{Appearance, AppearanceMode, Tone};

/// Clients that may wait for a change of light and dark; one more is refused with [`Error::Busy`].
const WAITING: usize = 64;

pub(super) struct Light {
    mode: AppearanceMode,
    /// Light or dark as last published, or as found at the start.
    published: Option<Appearance>,
    /// Whether the log has warned that no location is set.
    pub(super) warned_of_location: bool,
    /// Clients that wait for the pictures of a change.
    waiting: Vec<Reply<Appearance>>,
}

impl Light {
    pub(super) fn new() -> Self {
        Self {
            mode: AppearanceMode::Auto,
            published: None,
            warned_of_location: false,
            waiting: Vec::new(),
        }
    }

    pub(super) fn load(&mut self, store: &Store) -> Result<(), store::Error> {
        self.mode = store.read(store::appearance::mode)?;
        Ok(())
    }

    pub(super) fn tone(&self, now: &ClockReading) -> Tone {
        tone_at(self.mode, &now.wall, now.location)
    }

    /// When the tone changes next.
    pub(super) fn changes_at(&self, now: &ClockReading) -> Option<jiff::Timestamp> {
        tone_changes_at(self.mode, &now.wall, now.location)
    }

    pub(super) fn appearance(&self, now: &ClockReading) -> Appearance {
        Appearance {
            mode: self.mode,
            now: self.tone(now),
        }
    }

    /// Sets the mode; the client waits for [`Self::answer`].
    pub(super) fn set(&mut self, store: &Store, mode: AppearanceMode, reply: Reply<Appearance>) {
        if self.waiting.len() >= WAITING {
            return reply(Err(Error::Busy));
        }
        if mode != self.mode {
            if let Err(error) = store.write(|c| store::appearance::set(c, mode)) {
                return reply(Err(error.into()));
            }
            self.mode = mode;
        }
        self.waiting.push(reply);
    }

    pub(super) fn answer(&mut self, appearance: Appearance) {
        let waiting = self.waiting.drain(..);
        waiting.for_each(|reply| reply(Ok(appearance)));
    }

    /// Notes what is to be published; returns whether it has changed.
    pub(super) fn note(&mut self, appearance: Appearance) -> bool {
        let before = self.published.replace(appearance);
        before.is_some_and(|before| before != appearance)
    }

    /// At the end of the daemon.
    pub(super) fn refuse_waiting(self) {
        let waiting = self.waiting.into_iter();
        waiting.for_each(|reply| reply(Err(Error::Ending)));
    }
}
