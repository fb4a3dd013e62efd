//! Writes what is shown into the database, and publishes it, as well as what cannot be shown. Adopts
//! what an earlier daemon left on the outputs.
//!
//! Runs on the reconciler's thread. A request writes its own rows only. What the same steps show on
//! other monitors, such as new ones, is written and reported by the next plan for all outputs.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::backends::{self, Placement};
use crate::config::BackendName;
use crate::error_chain::chain;
use crate::store::{self, Connection, images};
use crate::wire::{ApplyFailure, Event, Image, Timestamp};

use super::Reconciler;
use crate::wallpaper::Error;
use crate::wallpaper::jobs::{Changed, Failed, Job, PendingApply, Picture, Purpose};
use crate::wallpaper::plan::WorkerKey;
use crate::wallpaper::plan::{self, Placements, Step};
use crate::wallpaper::world_state::WorldState;

impl Reconciler {
    /// Counts what an earlier daemon left on the outputs as shown, once there are outputs. Takes the
    /// outputs from `world`, so that nothing is planned by `world` before this.
    pub(super) fn recall(&mut self, world: &WorldState) {
        let Some(recalled) = self
            .recovery
            .recall(world.outputs(), self.backends.compositor())
        else {
            return;
        };
        self.stale.extend(recalled.keys().cloned());
        for (key, placements) in &recalled {
            let place = |one: &Placement| ((key.clone(), one.output.name.clone()), None);
            self.unreported.extend(placements.iter().map(place));
        }
        self.current.extend(recalled);
        let desired = self.desired(world);
        let covered = self.recovery.take_covered(&desired, world.outputs());
        self.current
            .extend(covered.into_iter().map(|key| (key, Vec::new())));
        self.recovery
            .sweep(&self.backends, desired.keys().chain(self.current.keys()));
        self.reconcile_again = true;
    }

    /// Notes the pictures that a step of a request shows beside those that the request asks for. Other
    /// jobs report their pictures as soon as these are shown.
    pub(super) fn note_unreported(&mut self, Step { key, placements }: &Step, job: &Job) {
        if !matches!(job.purpose, Purpose::Apply(_)) {
            return self.unreported.retain(|(worker, _), _| worker != key);
        }
        let reported = self.reported();
        let others = placements
            .iter()
            .filter(|one| !job.asks(&one.output.name, one.image_id));
        for placement in others {
            let before = reported
                .get(key)
                .and_then(|before| plan::same_picture(before, placement));
            if before.is_none_or(|before| before.content != placement.content) {
                let place = (key.clone(), placement.output.name.clone());
                self.unreported
                    .entry(place)
                    .or_insert_with(|| before.cloned());
                self.reconcile_again = true;
            }
        }
    }

    /// The placements that have been reported as shown.
    pub(super) fn reported(&self) -> Placements {
        let mut reported = self.current.clone();
        for ((key, name), before) in &self.unreported {
            let Some(placements) = reported.get_mut(key) else {
                continue;
            };
            placements.retain(|one| one.output.name != *name);
            placements.extend(before.clone());
        }
        reported
    }

    /// Records pictures that were not reported, and that these steps leave as they are.
    pub(super) fn report_unreported(&mut self, world: &WorldState, steps: &[Step]) {
        // Steps in progress, and failed ones that wait for a retry, count too.
        let is_planned = |key: &&WorkerKey| {
            let is_step = steps.iter().any(|step| step.key == **key);
            is_step || self.stale.contains(*key) || self.jobs.is_busy(key)
        };
        let keys = self.unreported.keys().map(|(key, _)| key);
        let planned: BTreeSet<WorkerKey> = keys.filter(is_planned).cloned().collect();
        let is_meant = |one: &Placement| {
            world
                .shown_row(&one.output.name)
                .is_some_and(|row| row.image_id == one.image_id)
        };
        let mut shown = Vec::new();
        for (key, name) in self
            .unreported
            .keys()
            .filter(|(key, _)| !planned.contains(key))
        {
            let placements = self.current.get(key).into_iter().flatten();
            let placements = placements.filter(|one| one.output.name == *name && is_meant(one));
            let placements = placements.cloned().collect();
            shown.push(Step {
                key: key.clone(),
                placements,
            });
        }
        let pictures = world.restored(&self.reported(), &shown);
        self.unreported.retain(|(key, _), _| planned.contains(key));
        self.commit_restored(&pictures);
    }

    /// Reports each picture once that no available backend can show any more, for example because a
    /// program was removed.
    pub(super) fn report_unshowable(&mut self, world: &WorldState) {
        if self.backends.compositor().is_none() || self.jobs.activate() {
            return;
        }
        let found = world.unshowable(&self.current);
        let mut reported = BTreeSet::new();
        for (monitor, image, why) in &found {
            if self.unshowable.get(*monitor) == Some(&image.id) {
                continue;
            }
            let Error::Incompatible { backend, .. } = why else {
                continue;
            };
            let error = why.to_string();
            self.status.note_failure(
                [*monitor].into_iter(),
                failure(image, *backend, error.clone()),
            );
            if reported.insert(image.id) {
                log::warn!("{error}; no other backend can either");
                let backend = backend.to_string();
                self.bus
                    .publish(&Event::WallpaperRestoreFailed { backend, error });
            }
        }
        self.unshowable = found
            .iter()
            .map(|(monitor, image, _)| ((*monitor).to_owned(), image.id))
            .collect();
    }

    /// Writes which workspaces hide assignments now. An assignment that is visible again keeps its
    /// reason.
    pub(super) fn note_workspaces(&mut self, world: &WorldState) {
        let (before, now) = (&self.workspaces, world.over_assignments());
        if before == now {
            return;
        }
        let left = before.iter().map(|picture| picture.row.monitor.as_str());
        self.status
            .note_taken_back(left.filter(|monitor| world.hidden_by(monitor).is_none()));
        if let Err(error) = self.store.note(|c| store::workspaces::replace(c, now)) {
            // The next plan tries again.
            return log::error!(
                "cannot save the wallpapers of workspaces: {}",
                chain(&error)
            );
        }
        self.workspaces = now.to_vec();
    }

    pub(super) fn commit_restored(&self, restored: &[Picture]) {
        let changed = self.committed(restored);
        if !changed.is_empty() {
            self.publish_changes(changed, || ());
        }
    }

    pub(super) fn committed(&self, restored: &[Picture]) -> Vec<Changed> {
        let commit = |picture: &Picture| {
            // A rewritten file or another backend does not change the reason why an image is shown.
            if !picture.was_shown && !picture.of_workspace {
                self.status.note_shown(picture.monitors(), true);
            }
            let committed = picture.commit_restored(&self.store);
            let failed = |error: &store::Error| {
                log::error!("cannot save the current wallpapers: {}", chain(error));
            };
            committed.inspect_err(failed).ok()
        };
        restored.iter().filter_map(commit).collect()
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
        let bus = self.bus.clone();
        let publish = move || {
            events.iter().flatten().for_each(|event| bus.publish(event));
            answer();
        };
        self.desktop.changed(changes, Box::new(publish));
    }
}

impl Reconciler {
    pub(super) fn apply_failed(&self, apply: PendingApply, error: backends::Error) {
        let backend = apply.feasible.applied.backend;
        let image_id = apply.feasible.applied.image.id;
        for picture in &apply.feasible.pictures {
            self.note_failure(picture, &error);
            self.status.note_taken_back(picture.monitors());
        }
        self.bus.publish(&Event::WallpaperApplyFailed {
            image_id,
            error: error.to_string(),
            backend: backend.to_string(),
        });
        (apply.reply)(Err(Error::Backend {
            backend,
            source: error,
        }));
    }

    pub(super) fn note_failure(&self, picture: &Picture, error: &backends::Error) {
        let failure = failure(&picture.image, picture.backend, chain(error));
        self.status.note_failure(picture.monitors(), failure);
    }

    /// Reports an outage once, and sets the time for each retry. A failure because
    /// outputs came or went in between is no outage.
    pub(super) fn restore_failed(&mut self, failures: &[Failed]) {
        let real: Vec<&Failed> = failures.iter().filter(|failed| !failed.outdated).collect();
        let Some(Failed {
            key: WorkerKey { backend, .. },
            error,
            ..
        }) = real.first()
        else {
            return;
        };
        let text = error.to_string();
        let now = Instant::now();
        let (mut is_news, mut is_out, mut retrying) = (false, false, false);
        for Failed { key, error, .. } in real {
            let backoff = self.backoffs.of(key);
            is_news |= backoff.is_news();
            if matches!(error, backends::Error::Unavailable(_)) {
                is_out = true;
                retrying |= backoff.failed(now).is_some();
            }
        }
        if is_news {
            self.bus.publish(&Event::WallpaperRestoreFailed {
                backend: backend.to_string(),
                error: text.clone(),
            });
        }
        if is_out && (is_news || !retrying) {
            let message = format!("{backend} does not start: {text}");
            self.report_unavailable(*backend, message, retrying);
        }
    }

    /// Gives a worker up until the next change, and notes why the screen is empty.
    pub(super) fn given_up(&self, key: &WorkerKey, pictures: &[Placement], why: &str) {
        let message = format!("{key} {why}: not restarting it until the next change");
        log::error!("{message}");
        for placement in pictures {
            let read = |connection: &Connection| images::assigned(connection, placement.image_id);
            let Ok(Some(image)) = self.store.read(read) else {
                continue;
            };
            let failure = failure(&image, key.backend, message.clone());
            self.status
                .note_failure([&*placement.output.name].into_iter(), failure);
        }
        self.report_unavailable(key.backend, message, false);
    }

    fn report_unavailable(&self, backend: BackendName, message: String, retrying: bool) {
        let (backend, checked) = (Some(backend.to_string()), Vec::new());
        self.bus.publish(&Event::BackendUnavailable {
            message,
            backend,
            retrying,
            checked,
        });
    }

    /// Notes the backend in use; reports it once if there is none any more.
    pub(super) fn note_active(&self, world: &WorldState) {
        // Without a compositor it is not known which backends fit. A backend that is being activated is
        // in use once it shows everything.
        if self.backends.compositor().is_none() || self.jobs.activate() {
            return;
        }
        let active = world.active();
        let checked = if active.is_none() {
            self.backends.programs(None)
        } else {
            Vec::new()
        };
        if self.status.set_active(active, &checked) {
            let message = Error::no_backend(&self.backends).to_string();
            log::warn!("{message}");
            let event = Event::BackendUnavailable {
                message,
                backend: None,
                retrying: false,
                checked,
            };
            self.bus.publish(&event);
        }
    }

    /// Makes what a backend shows visible to other threads and the next daemon.
    pub(super) fn publish_current(&self, backend: BackendName) {
        self.recovery.note(&self.current);
        let of_it = self
            .current
            .iter()
            .filter(|(key, _)| key.backend == backend);
        let shown: Vec<Placement> = of_it
            .flat_map(|(_, placements)| placements)
            .cloned()
            .collect();
        self.status.set_current(backend, shown);
    }
}

fn failure(image: &Image, backend: BackendName, error: String) -> ApplyFailure {
    let (image_id, image_name) = (image.id, image.name.clone());
    let (backend, at) = (backend.to_string(), Timestamp::now());
    ApplyFailure {
        image_id,
        image_name,
        backend,
        error,
        at,
    }
}
