//! Handles, in the reconciler, changed settings and images, pauses, and changes of the sound.

use super::Reconciler;
use crate::backends::{Placement, registration};
use crate::config::{BackendName, SelectionMode};
use crate::events::Message;
use crate::store;
use crate::wallpaper::Error;
use crate::wallpaper::handle::Command;
use crate::wallpaper::jobs::{Activation, Failed, Job, Picture, Purpose};
use crate::wallpaper::paused_outputs::PausedOutputs;
use crate::wallpaper::plan::{self, WorkerKey};
use crate::wallpaper::request::{Activated, Reply, Targets};
use crate::wallpaper::sound::{self, AskedSound};
use crate::wallpaper::workspaces::Refusal;
use crate::wire::{EventKind, GalleryDomain, SoundChange};

/// The events that may change what is to be shown.
pub(super) const OF_LIBRARY: [EventKind; 4] = [
    EventKind::GalleryChanged,
    EventKind::PlaylistImageChanged,
    EventKind::PlaylistStarted,
    EventKind::PlaylistStopped,
];

impl Reconciler {
    /// Handles the changes since the last call, and plans again if necessary.
    pub(super) fn on_settings(&mut self) {
        let Some(changes) = self.status.take_changes() else {
            return;
        };
        let is_pause = changes.paused.is_some() || changes.covered.is_some();
        changes
            .paused
            .into_iter()
            .for_each(|reason| self.pause.set(reason));
        self.pause.covered = changes.covered.or(self.pause.covered.take());
        if is_pause {
            self.apply_pause();
        }
        let shows = |image: &i64| {
            self.current
                .values()
                .flatten()
                .any(|one| one.image_id == *image)
        };
        // A job may be about to show one of them.
        let may_show = |image: &i64| !self.jobs.is_empty() || shows(image);
        let is_noted = changes.anything || changes.workspaces;
        if !is_noted && !changes.rewritten.iter().any(may_show) {
            return;
        }
        if changes.deactivated {
            self.activated = None;
        }
        if changes.anything {
            self.refusals.clear();
        }
        let is_changed = |key: &&WorkerKey| changes.backends.contains(&key.backend);
        // A picture that is being shown just now may use the old settings.
        let shown = self.jobs.expected(&self.current);
        self.stale.extend(shown.keys().filter(is_changed).cloned());
        let now = self.selection();
        self.activated = self.activated.filter(|activated| activated.settings == now);
        self.reconcile();
    }

    /// Replies once everything that should be shown is shown or has failed.
    pub(super) fn settle(&mut self, reply: Reply<()>) {
        if self.reconcile_again {
            self.reconcile();
        }
        match self.jobs.is_empty() {
            true => self.publish_changes(Vec::new(), move || reply(Ok(()))),
            false => self.queue.push(Command::Settle(reply)),
        }
    }

    /// Shows the assignment again if the picture of a workspace cannot be shown in its place.
    pub(super) fn refuse_for_workspace(&mut self, lost: &Picture, failed: &Failed) {
        // After a change of outputs, the step is planned again.
        if !lost.of_workspace || failed.outdated {
            return;
        }
        for row in &lost.rows {
            let refusal = Refusal::of(&lost.image, row.set_at, failed.error.to_string());
            self.refusals.insert(row.monitor.clone(), refusal);
        }
        self.reconcile_again = true;
    }

    /// Plans again if a shown image was deleted, or if the wallpaper of a workspace may have changed.
    pub(super) fn on_library(&mut self, message: Message) {
        // All are read: a full buffer would lose the last.
        let more = self.library.receiver().try_iter();
        let domains: Vec<_> = std::iter::once(message)
            .chain(more)
            .map(|one| one.domain)
            .collect();
        let is_about = |domain: &_| *domain != Some(GalleryDomain::History);
        let has_workspaces = !(self.backends.settings)().workspaces.is_empty();
        let is_deleted = || {
            let deleted = self.store.read(store::assignments::without_image);
            deleted.is_ok_and(|monitors| !monitors.is_empty())
        };
        if domains.iter().any(is_about) && (has_workspaces || is_deleted()) {
            self.reconcile();
        }
    }

    /// Tells the workers which videos and HTML wallpapers to pause; the others play. Does not wait for
    /// the workers.
    pub(super) fn apply_pause(&self) {
        let mut all = PausedOutputs::new();
        for (key, shown) in self.current.iter().filter(|_| self.pause.is_known()) {
            let paused = self.pause.paused(shown, &[]);
            self.workers.pause(key, paused.keys().cloned().collect());
            all.extend(paused);
        }
        self.status.set_paused(all);
    }

    /// Makes a backend the one in use. Until the settings say so too, it is remembered here.
    pub(super) fn activate(&mut self, name: &str, reply: Reply<Activated>) {
        let Ok(backend) = name.parse::<BackendName>() else {
            return reply(Err(Error::UnknownBackend {
                name: name.to_owned(),
            }));
        };
        if self
            .backends
            .available()
            .iter()
            .all(|entry| entry.name != backend)
        {
            let checked = self.backends.programs(Some(backend));
            let missing = self.backends.missing(registration(backend));
            let lack = self.backends.unavailable_reason();
            return reply(Err(Error::NotUsable {
                backend,
                checked,
                missing,
                lack,
            }));
        }
        self.found.forget();
        let settings = self.selection();
        let before = self.activated.replace(Activation { backend, settings });
        let world = match self.world_state() {
            Ok(world) => world,
            Err(error) => {
                self.activated = before;
                return reply(Err(error.into()));
            }
        };
        self.recall(&world);
        let steps = plan::steps(&self.current, &self.desired(&world));
        let restored = world.restored(&self.current, &steps);
        let warnings = Vec::new();
        let purpose = Purpose::Activate {
            backend,
            before,
            restored,
            warnings,
            reply,
        };
        self.start(Job::new(steps.into(), purpose));
    }

    /// The backend that the settings choose.
    fn selection(&self) -> (BackendName, SelectionMode) {
        let settings = (self.backends.settings)();
        (settings.backend.kind, settings.backend.selection_mode)
    }
}

impl Reconciler {
    /// Asks the workers to change the sound on these monitors. Only the workers know whether a video has
    /// sound.
    pub(super) fn ask_for_sound(
        &self,
        targets: &Targets,
        change: SoundChange,
    ) -> Result<AskedSound, Error> {
        let (monitors, missing) = self.read_world()?.targets(targets)?;
        if !missing.is_empty() {
            return Err(Error::UnknownMonitors {
                names: missing,
                connected: monitors,
            });
        }
        let named = *targets != Targets::All;
        let all = monitors
            .iter()
            .map(|monitor| sound::video_on(&self.current, monitor));
        let (can, cannot): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
        if can.is_empty() || (named && !cannot.is_empty()) {
            return Err(Error::no_sound(cannot.into_iter().filter_map(Result::err)));
        }
        let ask = |(key, video): (&WorkerKey, &Placement)| {
            let answer = self.workers.sound(key, change).ok_or(Error::Busy)?;
            Ok((video.output.name.clone(), video.image_id, answer))
        };
        let asked = can
            .into_iter()
            .flatten()
            .map(ask)
            .collect::<Result<_, Error>>()?;
        Ok(AskedSound { named, asked })
    }
}
