//! Handles changed settings and images, pauses, and changes of the sound.

use super::Reconciler;
use crate::backends::Placement;
use crate::events::Message;
use crate::wallpaper::Error;
use crate::wallpaper::paused_outputs::PausedOutputs;
use crate::wallpaper::request::Targets;
use crate::wallpaper::slots::Scene;
use crate::wallpaper::sound::{self, AskedSound};
use crate::wallpaper::worker_key::WorkerKey;
use crate::wire::{EventKind, GalleryDomain, SoundChange};

/// The events that may change what is to be shown.
pub(super) const OF_LIBRARY: [EventKind; 4] = [
    EventKind::GalleryChanged,
    EventKind::PlaylistImageChanged,
    EventKind::PlaylistStarted,
    EventKind::PlaylistStopped,
];

impl Reconciler {
    /// Handles the changes since the last call.
    pub(super) fn on_settings(&mut self) {
        let Some(changes) = self.status.take_changes() else {
            return;
        };
        let pause = &mut self.inputs.pause;
        changes
            .paused
            .into_iter()
            .for_each(|reason| pause.set(reason));
        pause.covered = changes.covered.or(pause.covered.take());
        let is_noted = changes.anything || changes.workspaces;
        if !is_noted && !changes.buried && !changes.rewritten {
            return self.apply_pause();
        }
        self.note_event();
        if changes.deactivated {
            self.inputs.activated = None;
        }
        if changes.anything {
            self.inputs.refusals.clear();
        }
        let now = self.selection();
        let activated = self.inputs.activated;
        self.inputs.activated = activated.filter(|activated| activated.settings == now);
        if changes.buried {
            self.slots.bury();
        }
        // A picture that is being shown just now may use the old settings.
        self.slots
            .note_due(|key| changes.backends.contains(&key.backend));
        if is_noted {
            self.slots.note_reason();
        }
        self.turn();
    }

    /// Looks at everything again after a change of the library or of a playlist.
    pub(super) fn on_library(&mut self, message: Message) {
        // All are read: a full buffer would lose the last.
        let more = self.inputs.library.receiver().try_iter();
        let mut all = std::iter::once(message).chain(more);
        let is_about = all.any(|one| one.domain != Some(GalleryDomain::History));
        all.for_each(drop);
        if is_about {
            self.note_event();
            self.turn();
        }
    }

    /// Tells the workers which videos and HTML wallpapers to pause; the others play. Does not wait for
    /// the workers.
    pub(super) fn apply_pause(&self) {
        let pause = &self.inputs.pause;
        let mut all = PausedOutputs::new();
        for (key, slot) in self.slots.iter().filter(|_| pause.is_known()) {
            let (scene, ticket) = match &slot.sent {
                Some(order) => (&order.scene, order.ticket),
                None => (&slot.shown, None),
            };
            let paused = self.paused(scene, ticket);
            self.workers.pause(key, paused.keys().cloned().collect());
            all.extend(paused);
        }
        self.status.set_paused(all);
    }

    /// The outputs of a worker that are paused. The monitors of its request play.
    pub(super) fn paused(&self, scene: &Scene, ticket: Option<u64>) -> PausedOutputs {
        let ticket = self.tickets.get(ticket);
        let asking = ticket.map_or(&[][..], |ticket| &ticket.feasible.applied.monitors);
        self.inputs.pause.paused(scene.values(), asking)
    }

    /// Asks the workers to change the sound on these monitors. Only the workers know whether a video has
    /// sound.
    pub(in crate::wallpaper) fn ask_for_sound(
        &mut self,
        targets: &Targets,
        change: SoundChange,
    ) -> Result<AskedSound, Error> {
        let (monitors, missing) = self.world()?.targets(targets)?;
        if !missing.is_empty() {
            return Err(Error::UnknownMonitors {
                names: missing,
                connected: monitors,
            });
        }
        let named = *targets != Targets::All;
        let videos = monitors.iter();
        let all = videos.map(|monitor| sound::video_on(&self.slots, monitor));
        let (can, cannot): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
        if can.is_empty() || (named && !cannot.is_empty()) {
            return Err(Error::no_sound(cannot.into_iter().filter_map(Result::err)));
        }
        let ask = |(key, video): (&WorkerKey, &Placement)| {
            let answer = self.workers.sound(key, change).ok_or(Error::Busy)?;
            Ok((video.output.name.clone(), video.image_id, answer))
        };
        let asked = can.into_iter().flatten().map(ask);
        let asked = asked.collect::<Result<_, Error>>()?;
        Ok(AskedSound { named, asked })
    }
}
