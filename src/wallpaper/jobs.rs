//! A job of the reconciler: its steps, and the rows, history entries and events of its pictures.
//!
//! Runs on the thread `reconciler`, which writes rows here once the pictures are shown. Backends are
//! never called from here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::Error;
use super::plan::WorkerKey;
use super::plan::{Placements, Step};
use super::request::{Activated, Applied, Reply, Request};
use crate::backends;
use crate::compositor::Output;
use crate::config::{BackendName, SelectionMode};
use crate::desktop::WallpaperChange;
use crate::store::assignments::Assignment;
use crate::store::{self, Connection, Store};
use crate::wire::{Event, GalleryDomain, HistorySource, Image, Mode, Source};

pub(super) struct Job {
    /// Steps of one backend that are carried out in parallel.
    pub(super) in_progress: Vec<Step>,
    /// The steps after them.
    pub(super) steps: VecDeque<Step>,
    pub(super) purpose: Purpose,
    /// Failures of the steps that were in progress together.
    pub(super) failures: Vec<Failed>,
    /// `None`: the remaining steps are planned again before the job continues.
    pub(super) planned_for: Option<PlanState>,
    /// A step is done and has changed the screen.
    pub(super) is_seen: bool,
    /// Workers that failed to leave outputs that other workers cover by now.
    pub(super) gave_up: BTreeSet<WorkerKey>,
}

/// The inputs of a plan: its steps are still right while these are the same.
pub(super) struct PlanState {
    /// The number of events so far that have changed what is shown or should be, without the job's own.
    pub(super) events: u64,
    /// [`Store::generation`] before the rows were read.
    pub(super) generation: u64,
    pub(super) outputs: Arc<[Output]>,
}

/// A step that failed.
pub(super) struct Failed {
    pub(super) key: WorkerKey,
    pub(super) error: backends::Error,
    /// An output of the step has gone or changed since it was planned.
    pub(super) outdated: bool,
    /// The outputs on which it should have shown something.
    pub(super) outputs: Vec<String>,
}

pub(super) enum Purpose {
    Apply(Box<PendingApply>),
    /// Outputs, settings or processes have changed, without a request. Holds the pictures that are still
    /// to be shown again.
    Restore(Vec<Picture>),
    Activate {
        backend: BackendName,
        /// The backend that was activated before, in case this one fails.
        before: Option<Activation>,
        restored: Vec<Picture>,
        warnings: Vec<String>,
        reply: Reply<Activated>,
    },
    Clear {
        failed: Option<Error>,
        reply: Reply<()>,
    },
}

/// A backend that was activated, but is not yet the one in the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    pub(super) backend: BackendName,
    /// The settings at that time. Once they change, they take precedence.
    pub(super) settings: (BackendName, SelectionMode),
}

/// A request in progress.
pub(super) struct PendingApply {
    /// The request as it was sent; `feasible` is its plan.
    pub(super) request: Request,
    pub(super) feasible: Feasible,
    pub(super) reply: Reply<Applied>,
}

/// The plan of a request that can be carried out.
pub(super) struct Feasible {
    /// At least one; several if the monitors show different pictures.
    pub(super) pictures: Vec<Picture>,
    /// For all monitors, including later ones.
    pub(super) for_all: bool,
    /// For a step back: each monitor, and the history entry that it goes back to.
    pub(super) walk: Vec<(String, i64)>,
    pub(super) applied: Applied,
    /// The connected monitors, which count as seen once the request is written.
    pub(super) connected: Vec<String>,
}

/// A change that is written and must still be published.
pub(super) struct Changed {
    pub(super) change: WallpaperChange,
    pub(super) events: Vec<Event>,
}

/// A picture, and the rows of the monitors that show it.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) image: Arc<Image>,
    pub(super) backend: BackendName,
    /// The rows to write once the picture is shown; at least one. For a picture that is shown again,
    /// only the backend in them is new.
    pub(super) rows: Vec<Assignment>,
    /// The picture was shown before, with an older content of its file or by another backend.
    pub(super) was_shown: bool,
    /// A workspace shows it in place of the assignment.
    pub(super) of_workspace: bool,
}

impl Job {
    pub(super) fn new(steps: VecDeque<Step>, purpose: Purpose) -> Self {
        Self {
            in_progress: Vec::new(),
            steps,
            purpose,
            failures: Vec::new(),
            planned_for: None,
            is_seen: false,
            gave_up: BTreeSet::new(),
        }
    }

    /// Moves the next steps, all of one backend, to `in_progress` and returns them; none if the job is
    /// done.
    pub(super) fn next_steps(&mut self) -> Vec<Step> {
        let backend = self.steps.front().map(|step| step.key.backend);
        let others = self
            .steps
            .iter()
            .position(|step| Some(step.key.backend) != backend);
        self.in_progress = self
            .steps
            .drain(..others.unwrap_or(self.steps.len()))
            .collect();
        self.in_progress.clone()
    }

    /// Whether a step of this worker is in progress.
    pub(super) fn holds(&self, key: &WorkerKey) -> bool {
        self.in_progress.iter().any(|step| step.key == *key)
    }

    fn asked(&self) -> Option<&PendingApply> {
        match &self.purpose {
            Purpose::Apply(apply) => Some(apply),
            _ => None,
        }
    }

    /// Adds warnings to the answer, or logs them if the job is no request.
    pub(super) fn warn(&mut self, warnings: Vec<String>) {
        let known = match &mut self.purpose {
            Purpose::Apply(apply) => &mut apply.feasible.applied.warnings,
            Purpose::Activate { warnings, .. } => warnings,
            Purpose::Restore(_) | Purpose::Clear { .. } => {
                return warnings.iter().for_each(|warning| log::warn!("{warning}"));
            }
        };
        for warning in warnings {
            if !known.contains(&warning) {
                known.push(warning);
            }
        }
    }

    /// The steps that are not done.
    pub(super) fn left(&self) -> impl Iterator<Item = &Step> {
        self.in_progress.iter().chain(&self.steps)
    }

    /// The transition that was asked for.
    pub(super) fn transition(&self) -> Option<String> {
        self.asked()?.request.transition.clone()
    }

    /// The connected monitors of the request; none for other jobs.
    pub(super) fn asked_for(&self) -> &[String] {
        self.asked()
            .map_or(&[], |apply| &apply.feasible.applied.monitors)
    }

    /// Whether the request asks for this image on this monitor.
    pub(super) fn asks(&self, monitor: &str, image_id: i64) -> bool {
        let is_it =
            |apply: &PendingApply| apply.feasible.applied.images.get(monitor) == Some(&image_id);
        self.asked().is_some_and(is_it)
    }

    /// Whether the request or activation fails if this worker fails.
    pub(super) fn needs(&self, key: &WorkerKey) -> bool {
        match &self.purpose {
            Purpose::Apply(apply) => apply.keys().contains(key),
            Purpose::Activate { backend, .. } => key.backend == *backend,
            Purpose::Restore(_) | Purpose::Clear { .. } => false,
        }
    }

    /// The workers that have yet to show what the request asks for.
    pub(super) fn pending(&self) -> Vec<WorkerKey> {
        let mut keys = self.asked().map(PendingApply::keys).unwrap_or_default();
        keys.retain(|key| self.steps.iter().any(|step| step.key == *key));
        keys
    }

    /// Answers the client of a job that cannot be completed.
    pub(super) fn refuse(self, error: Error) {
        match self.purpose {
            Purpose::Apply(apply) => (apply.reply)(Err(error)),
            Purpose::Activate { reply, .. } => reply(Err(error)),
            Purpose::Clear { reply, .. } => reply(Err(error)),
            Purpose::Restore(_) => {}
        }
    }
}

impl PendingApply {
    /// The workers that show the pictures of the request.
    pub(super) fn keys(&self) -> Vec<WorkerKey> {
        self.feasible.applied.keys()
    }

    /// Writes rows and history in one transaction; returns the changes to publish. Fails if an image was
    /// deleted in the meantime. A picture that a workspace hides is written but not published.
    pub(super) fn commit(
        &mut self,
        store: &Store,
        current: &Placements,
    ) -> Result<Vec<Changed>, Error> {
        let Request {
            source, by_hook, ..
        } = &self.request;
        let Feasible {
            pictures,
            for_all,
            applied,
            connected,
            walk,
        } = &mut self.feasible;
        store.write(|transaction| -> Result<(), Error> {
            let of_library = |image: &&mut Arc<Image>| image.library_id().is_some();
            for image in pictures
                .iter_mut()
                .map(|one| &mut one.image)
                .filter(of_library)
            {
                let row = store::images::get(transaction, image.id)?;
                *image = row.map(Arc::new).ok_or(Error::NoImage { id: image.id })?;
                if applied.image.id == image.id {
                    applied.image = Arc::clone(image);
                }
            }
            for row in pictures.iter().flat_map(|picture| &picture.rows) {
                store::assignments::put(transaction, row)?;
                // Every change other than a step back resets the monitor's position in the history.
                store::history::end_cursor(transaction, &row.monitor)?;
            }
            for (monitor, entry) in &*walk {
                store::history::put_cursor(transaction, monitor, *entry)?;
            }
            if *for_all {
                let any = &pictures[0].rows[0];
                store::assignments::put_for_every_monitor(transaction, any)?;
            }
            store::monitors::note_seen(transaction, connected)?;
            pictures
                .iter()
                .try_for_each(|one| one.enter(transaction, source, applied))?;
            Ok(())
        })?;
        let of = |picture: &Picture| {
            let rows = picture
                .rows
                .iter()
                .filter(|row| !is_hidden(row, current))
                .cloned()
                .collect();
            let seen = Picture {
                rows,
                image: Arc::clone(&picture.image),
                ..*picture
            };
            let images = picture.images(applied);
            (!seen.rows.is_empty()).then(|| seen.changed(source.kind, images))
        };
        let mut changed: Vec<Changed> = pictures.iter().filter_map(of).collect();
        changed
            .iter_mut()
            .for_each(|one| one.change.by_hook = *by_hook);
        if let Some(last) = changed.last_mut() {
            last.events.push(Event::GalleryChanged {
                domain: GalleryDomain::History,
            });
        }
        Ok(changed)
    }
}

/// Whether a monitor shows another image than its assignment.
fn is_hidden(row: &Assignment, current: &Placements) -> bool {
    let shown = || {
        current
            .values()
            .flatten()
            .filter(|one| one.output.name == row.monitor)
    };
    shown().next().is_some() && shown().all(|one| one.image_id != row.image_id)
}

impl Picture {
    pub(super) fn monitors(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.monitor.as_str())
    }

    fn names(&self) -> Vec<String> {
        self.monitors().map(str::to_owned).collect()
    }

    /// The image of each monitor, if each monitor has its own.
    fn images(&self, applied: &Applied) -> BTreeMap<String, i64> {
        match self.rows[0].mode {
            Mode::Each => applied.images.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// Writes its entry into the history.
    fn enter(
        &self,
        transaction: &Connection,
        source: &HistorySource,
        applied: &Applied,
    ) -> Result<(), store::Error> {
        let row = &self.rows[0];
        store::history::insert(
            transaction,
            &store::history::NewEntry {
                image_id: self.image.id,
                image_name: &self.image.name,
                monitors: &self.names(),
                mode: row.mode,
                set_at: row.set_at,
                source,
                backend: self.backend.as_str(),
                fit: row.fit,
                position: row.position,
                images: &self.images(applied),
            },
        )
    }

    /// Splits off the monitors on which this worker shows the picture.
    pub(super) fn split_off(&mut self, key: &WorkerKey) -> Option<Self> {
        let serves = |row: &mut Assignment| key.serves(&row.monitor);
        let rows: Vec<Assignment> = match self.backend == key.backend {
            true => self.rows.extract_if(.., serves).collect(),
            false => Vec::new(),
        };
        (!rows.is_empty()).then(|| Self {
            rows,
            image: Arc::clone(&self.image),
            ..*self
        })
    }

    /// Writes which backend shows the picture now, without a history entry; returns the change to
    /// publish. Writes nothing for the picture of a workspace.
    pub(super) fn commit_restored(&self, store: &Store) -> Result<Changed, store::Error> {
        if self.of_workspace {
            return Ok(self.changed(Source::Workspace, BTreeMap::new()));
        }
        store.write(|transaction| {
            self.rows
                .iter()
                .try_for_each(|row| store::assignments::put(transaction, row))
        })?;
        let own = |row: &Assignment| (row.monitor.clone(), row.image_id);
        let each = self.rows.iter().filter(|row| row.mode == Mode::Each);
        Ok(self.changed(Source::Restore, each.map(own).collect()))
    }

    fn changed(&self, source: Source, images: BTreeMap<String, i64>) -> Changed {
        let Self {
            image,
            backend,
            rows,
            ..
        } = self;
        let event = Event::WallpaperChanged {
            image_id: image.id,
            media_type: image.media_type,
            path: image.library_path(),
            tags: image.tags.clone(),
            monitors: self.names(),
            mode: rows[0].mode,
            source,
            backend: backend.to_string(),
            colors: image.color_texts(),
            image_name: image.name.clone(),
            color: image.color(),
            images,
        };
        let change = WallpaperChange {
            image: Arc::clone(image),
            shown: rows
                .iter()
                .map(|row| (row.monitor.clone(), row.set_at))
                .collect(),
            backend: backend.to_string(),
            source,
            by_hook: false,
        };
        Changed {
            change,
            events: vec![event],
        }
    }
}
