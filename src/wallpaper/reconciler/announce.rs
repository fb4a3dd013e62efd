//! Writes what is shown into the database, and publishes it, as well as what cannot be shown.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Reconciler;
use crate::backends::{self, Placement};
use crate::config::BackendName;
use crate::error_chain::chain;
use crate::store::{self, Connection, images};
use crate::wallpaper::Error;
use crate::wallpaper::picture::Changed;
use crate::wallpaper::request::Applied;
use crate::wallpaper::scene::Desired;
use crate::wallpaper::slots::Scene;
use crate::wallpaper::tickets::{End, Ticket};
use crate::wallpaper::worker_key::WorkerKey;
use crate::wallpaper::workspaces::Refusal;
use crate::wallpaper::world_state::WorldState;
use crate::wire::{ApplyFailure, Event, GalleryDomain, Image, SetStatus, Timestamp};

impl Reconciler {
    /// Answers a request that has ended.
    pub(super) fn conclude(&mut self, ticket: Ticket, end: End) {
        match end {
            End::Settled => self.settled(ticket),
            End::Superseded => {
                let outcome = SetStatus::Superseded;
                let applied = ticket.feasible.applied;
                (ticket.reply)(Ok(Applied { outcome, ..applied }));
            }
            End::Failed(error) => self.refuse(&ticket.request, &error, ticket.reply),
        }
    }

    /// Writes the rows of a request that has settled, and publishes it.
    fn settled(&mut self, mut ticket: Ticket) {
        let mut changed = match ticket.commit(&self.tools.store) {
            Ok(changed) => changed,
            Err(error) => return self.refuse(&ticket.request, &error, ticket.reply),
        };
        let monitors = &ticket.feasible.applied.monitors;
        self.tickets.note_written(ticket.revision, monitors);
        self.inputs.pause.note_asked(monitors);
        self.note_settled(&ticket);
        let by_hook = self.status.is_by_hook(&ticket.request);
        changed
            .iter_mut()
            .for_each(|one| one.change.by_hook = by_hook);
        if changed.is_empty() {
            let domain = GalleryDomain::History;
            self.tools.bus.publish(&Event::GalleryChanged { domain });
        }
        let applied = ticket.feasible.applied;
        let reply = ticket.reply;
        self.publish_changes(changed, move || reply(Ok(applied)));
    }

    fn note_settled(&mut self, ticket: &Ticket) {
        let applied = &ticket.feasible.applied;
        // A monitor that shows the picture of a workspace has no backend here.
        for (monitor, backend) in &applied.backends {
            let is_its = |(key, shown): &(&WorkerKey, &Placement)| {
                key.backend == *backend && applied.images.get(monitor) == Some(&shown.image_id)
            };
            let shown = self.slots.on(monitor).find(is_its);
            if let Some((key, shown)) = shown.filter(|_| !ticket.is_replaced(monitor)) {
                self.announced.note(key.clone(), shown.clone());
            }
        }
    }

    /// Writes and publishes the pictures that are shown without a request.
    pub(super) fn announce(&mut self, world: &WorldState, desired: &Desired) {
        let open = (&self.slots, &self.tickets);
        let mut changed = Vec::new();
        for picture in self.announced.news(world, desired, open) {
            match picture.commit_restored(&self.tools.store) {
                Ok(one) => changed.push(one),
                Err(error) => {
                    log::error!("cannot save the current wallpapers: {}", chain(&error));
                    continue;
                }
            }
            for wanted in picture.monitors().filter_map(|name| desired.get(name)) {
                let key = wanted.key.clone();
                let placement = wanted.placement.clone();
                self.announced.note(key, placement);
            }
        }
        if !changed.is_empty() {
            self.publish_changes(changed, || ());
        }
    }

    /// Publishes changes once the files for other programs are up to date, then calls `answer`.
    pub(super) fn publish_changes(
        &self,
        changed: Vec<Changed>,
        answer: impl FnOnce() + Send + 'static,
    ) {
        let (changes, events): (Vec<_>, Vec<_>) = changed
            .into_iter()
            .map(|one| (one.change, one.events))
            .unzip();
        let bus = self.tools.bus.clone();
        let publish = move || {
            events.iter().flatten().for_each(|event| bus.publish(event));
            answer();
        };
        self.tools.desktop.changed(changes, Box::new(publish));
    }

    /// Reports each picture once that no available backend can show any more, for example because a
    /// program was removed.
    pub(super) fn announce_unshowable(&mut self, world: &WorldState) {
        let no_compositor = self.tools.backends.compositor().is_none();
        if no_compositor || self.waiting.activation.is_some() {
            return;
        }
        let found = world.unshowable(&self.slots);
        let mut reported = Vec::new();
        for (monitor, image, why) in self.announced.note_unshowable(found) {
            let Error::Incompatible { backend, .. } = why else {
                continue;
            };
            let error = why.to_string();
            let failure = failure(image, backend.as_str(), error.clone());
            self.status.note_failure([monitor].into_iter(), failure);
            if !reported.contains(&image.id) {
                reported.push(image.id);
                log::warn!("{error}; no other backend can either");
                let backend = backend.to_string();
                let event = Event::WallpaperRestoreFailed { backend, error };
                self.tools.bus.publish(&event);
            }
        }
    }

    /// Writes which workspaces hide assignments now.
    pub(super) fn note_workspaces(&mut self, world: &WorldState) {
        let now = &world.over_assignments;
        if self.inputs.workspaces == *now {
            return;
        }
        let noted = self
            .tools
            .store
            .note(|c| store::workspaces::replace(c, now));
        match noted {
            Ok(()) => self.inputs.workspaces.clone_from(now),
            // The next turn tries again.
            Err(error) => log::error!(
                "cannot save the wallpapers of workspaces: {}",
                chain(&error)
            ),
        }
    }

    /// Answers a request whose picture could not be shown.
    pub(super) fn apply_failed(&self, ticket: Ticket, source: backends::Error) {
        let applied = &ticket.feasible.applied;
        let backend = applied.backend;
        let image_id = applied.image.id;
        for picture in &ticket.feasible.pictures {
            let failure = failure(&picture.image, &picture.rows[0].backend, chain(&source));
            self.status.note_failure(picture.monitors(), failure);
        }
        self.tools.bus.publish(&Event::WallpaperApplyFailed {
            image_id,
            error: source.to_string(),
            backend: backend.to_string(),
        });
        (ticket.reply)(Err(Error::Backend { backend, source }));
    }

    /// Reports an outage once, and sets the time for each retry.
    pub(super) fn restore_failed(
        &mut self,
        key: &WorkerKey,
        blamed: &[Placement],
        error: &backends::Error,
    ) {
        self.note_failures(key, blamed.iter(), &chain(error));
        self.refuse_for_workspaces(blamed, error);
        let is_news = self.slots.backoffs.is_news(key);
        let backend = key.backend;
        if is_news {
            self.tools.bus.publish(&Event::WallpaperRestoreFailed {
                backend: backend.to_string(),
                error: error.to_string(),
            });
        }
        if matches!(error, backends::Error::Unavailable(_)) {
            let retry = self.slots.backoffs.of(key).failed(Instant::now());
            if is_news || retry.is_none() {
                let message = format!("{backend} does not start: {error}");
                self.report_unavailable(Some(backend), message, retry.is_some());
            }
        }
    }

    /// Shows the assignment again if the picture of a workspace cannot be shown in its place.
    fn refuse_for_workspaces(&mut self, blamed: &[Placement], error: &backends::Error) {
        let Some(world) = self.world.take() else {
            return;
        };
        for placement in blamed {
            let monitor = &placement.output.name;
            let id = placement.image_id;
            let hidden = world.hidden_by(monitor).map(|picture| &picture.row);
            let row = hidden.filter(|row| row.image_id == id);
            if let Some((row, image)) = row.zip(world.pictures.get(&id)) {
                let refusal = Refusal::new(image, row.set_at, error.to_string());
                self.inputs.refusals.insert(monitor.clone(), refusal);
            }
        }
    }

    /// Gives a worker up until the next change, and notes why the screen is empty.
    pub(super) fn given_up(&self, key: &WorkerKey, pictures: &Scene, why: &str) {
        let message = format!("{key} {why}: not restarting it until the next change");
        log::error!("{message}");
        self.note_failures(key, pictures.values(), &message);
        self.report_unavailable(Some(key.backend), message, false);
    }

    fn note_failures<'a>(
        &self,
        key: &WorkerKey,
        pictures: impl Iterator<Item = &'a Placement>,
        why: &str,
    ) {
        let mut monitors: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        for placement in pictures {
            let of_image = monitors.entry(placement.image_id).or_default();
            of_image.push(&placement.output.name);
        }
        for (id, monitors) in monitors {
            let read = |connection: &Connection| images::assigned(connection, id);
            if let Ok(Some(image)) = self.tools.store.read(read) {
                let failure = failure(&image, key.backend.as_str(), why.to_owned());
                self.status.note_failure(monitors.into_iter(), failure);
            }
        }
    }

    /// Reports that a backend does not work, or that there is none.
    fn report_unavailable(&self, backend: Option<BackendName>, message: String, retrying: bool) {
        let checked = match backend {
            Some(_) => Vec::new(),
            None => self.tools.backends.programs(None),
        };
        self.tools.bus.publish(&Event::BackendUnavailable {
            message,
            backend: backend.map(|backend| backend.to_string()),
            retrying,
            checked,
        });
    }

    /// Notes the backend in use; reports it once if there is none any more.
    pub(super) fn note_active(&self, world: &WorldState) {
        let backends = &self.tools.backends;
        // Without a compositor it is not known which backends fit. A backend that is being activated is
        // in use once it shows everything.
        if backends.compositor().is_none() || self.waiting.activation.is_some() {
            return;
        }
        if self.status.set_active(world.active()) {
            let message = Error::no_backend(backends).to_string();
            log::warn!("{message}");
            self.report_unavailable(None, message, false);
        }
    }

    /// Makes what the backends show visible to other threads and the next daemon.
    pub(super) fn publish_current(&self) {
        let shown = self.slots.shown();
        self.recovery.note(&shown);
        self.status.set_shown(shown);
    }
}

fn failure(image: &Image, backend: &str, error: String) -> ApplyFailure {
    ApplyFailure {
        image_id: image.id,
        image_name: image.name.clone(),
        backend: backend.to_owned(),
        error,
        at: Timestamp::now(),
    }
}
