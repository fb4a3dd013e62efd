//! Handles the commands that wait until everything is shown or removed: activations, `settle` and
//! `clear`.

use super::Reconciler;
use crate::backends::{self, registration};
use crate::config::{BackendName, SelectionMode};
use crate::wallpaper::Error;
use crate::wallpaper::inputs::{Activating, Activation, MOST};
use crate::wallpaper::request::{Activated, Reply};
use crate::wallpaper::scene::{Desired, Wanted};
use crate::wallpaper::worker_key::WorkerKey;

impl Reconciler {
    /// Makes a backend the one in use. Until the settings say so too, it is remembered here.
    pub(in crate::wallpaper) fn activate(&mut self, name: &str, reply: Reply<Activated>) {
        if self.waiting.later.len() == MOST {
            return reply(Err(Error::Busy));
        }
        self.waiting.later.push_back((name.to_owned(), reply));
        if self.begin_activation() {
            self.turn();
        }
    }

    /// Begins the next activation, if none is in progress; returns whether one has begun.
    fn begin_activation(&mut self) -> bool {
        while self.waiting.activation.is_none() {
            let Some((name, reply)) = self.waiting.later.pop_front() else {
                return false;
            };
            let backend = match self.usable(&name) {
                Ok(backend) => backend,
                Err(error) => {
                    reply(Err(error));
                    continue;
                }
            };
            self.inputs.found.forget();
            let settings = self.selection();
            let activation = Activation { backend, settings };
            let before = self.inputs.activated.replace(activation);
            self.world = None;
            self.slots.backoffs.free(backend);
            self.slots.note_reason();
            self.waiting.activation = Some(Activating {
                backend,
                before,
                warnings: Vec::new(),
                reply,
            });
            return true;
        }
        false
    }

    /// The backend of this name, if it can be used here.
    fn usable(&self, name: &str) -> Result<BackendName, Error> {
        let unknown = |_| Error::UnknownBackend {
            name: name.to_owned(),
        };
        let backend: BackendName = name.parse().map_err(unknown)?;
        let backends = &self.tools.backends;
        let mut available = backends.available().into_iter();
        if available.any(|entry| entry.name == backend) {
            return Ok(backend);
        }
        Err(Error::NotUsable {
            backend,
            checked: backends.programs(Some(backend)),
            missing: backends.missing(registration(backend)),
            lack: backends.unavailable_reason(),
        })
    }

    /// The backend that the settings choose.
    pub(super) fn selection(&self) -> (BackendName, SelectionMode) {
        let settings = (self.tools.backends.settings)();
        (settings.backend.kind, settings.backend.selection_mode)
    }

    /// Whether the desired worker shows something on each output and no other worker is about to leave
    /// it. Pictures change all the time, so they do not count.
    pub(super) fn is_activated(&self, desired: &Desired) -> bool {
        let shows = |(output, wanted): (&String, &Wanted)| {
            let own = self.slots.get(&wanted.key);
            let is_there = own.is_some_and(|slot| slot.done > 0 && slot.shown.contains_key(output));
            let mut others = self.slots.iter().filter(|(key, _)| **key != wanted.key);
            is_there
                && others.all(|(_, slot)| slot.sent.is_none() || !slot.shown.contains_key(output))
        };
        self.waiting.activation.is_some() && (self.slots.are_idle() || desired.iter().all(shows))
    }

    /// Returns to the backend before, because the activated one has failed.
    pub(super) fn activation_failed(
        &mut self,
        activation: Activating,
        key: &WorkerKey,
        error: &backends::Error,
    ) {
        self.inputs.activated = activation.before;
        self.world = None;
        (activation.reply)(Err(Error::Backend {
            backend: key.backend,
            source: error.clone(),
        }));
    }

    /// Replies once everything that should be shown is shown or has failed.
    pub(in crate::wallpaper) fn settle(&mut self, reply: Reply<()>) {
        if self.waiting.settles.len() == MOST {
            return reply(Err(Error::Busy));
        }
        self.waiting.settles.push(reply);
        self.turn();
    }

    /// Removes all wallpapers. A backend that hangs cannot prevent that: the orders in flight are ended,
    /// and new workers adopt the processes.
    pub(in crate::wallpaper) fn clear(&mut self, reply: Reply<()>) {
        self.refuse_all(&Error::Ending);
        for key in self.slots.abandon() {
            self.workers.end(&key);
        }
        self.adopt_left();
        self.inputs.is_cleared = true;
        self.slots.note_reason();
        self.waiting.clears.push(reply);
        self.turn();
    }

    /// Answers the commands that need not wait any more; returns whether another activation has begun.
    pub(super) fn answer_waiting(&mut self, is_activated: bool) -> bool {
        if let Some(activation) = self.waiting.activation.take_if(|_| is_activated) {
            let Activating {
                backend,
                warnings,
                reply,
                ..
            } = activation;
            self.status.set_active(Some(backend));
            let answer = move || reply(Ok(Activated { backend, warnings }));
            self.publish_changes(Vec::new(), answer);
        }
        if self.slots.are_idle() && self.tickets.is_empty() && self.waiting.activation.is_none() {
            for reply in std::mem::take(&mut self.waiting.settles) {
                self.publish_changes(Vec::new(), move || reply(Ok(())));
            }
            for reply in std::mem::take(&mut self.waiting.clears) {
                let failed = self.waiting.not_cleared.clone();
                reply(failed.map_or(Ok(()), Err));
            }
        }
        self.begin_activation()
    }
}
