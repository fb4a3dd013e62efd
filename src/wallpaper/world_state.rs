//! The state that the reconciler reads before it decides: the assignments, their images, the connected
//! outputs, and the backends that could be used. Read afresh for every decision, so nothing here
//! can be stale.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::backends::{Backends, Kind, Placement, REGISTRY, Registration, registration};
use crate::compositor::Output;
use crate::config::BackendName;
use crate::media::PlainColors;
use crate::store::assignments::Assignment;
use crate::store::workspaces::{self, WorkspacePicture};
use crate::store::{self, Store};
use crate::wire::{HistoryEntry, Image, MediaType};

use super::assignments::{self, Fallbacks, Pictures};
use super::backend_choice::{self, Candidate, Choice, FoundBackends, NoChoice, Preference};
use super::jobs::{Picture, PlanState};
use super::links::Links;
use super::orphan;
use super::plan::{self, Placements, Step, WorkerKey};
use super::previous::shown_before;
use super::request::Targets;
use super::{Error, Remedy};

pub(super) struct WorldState {
    rows: Vec<Assignment>,
    pictures: Pictures,
    outputs: Arc<[Output]>,
    available: Vec<Candidate>,
    preference: Preference,
    /// The assigned images whose files are missing and whose rows are kept.
    missing: BTreeSet<i64>,
    pub(super) colors: PlainColors,
    /// The pictures of workspaces, which are shown instead of assignments.
    workspaces: Vec<WorkspacePicture>,
    pub(super) backends: Backends,
    /// [`Store::generation`] before the rows were read.
    generation: u64,
}

impl WorldState {
    pub(super) fn read(
        store: &Store,
        backends: &Backends,
        activated: Option<BackendName>,
    ) -> Result<Self, store::Error> {
        let (generation, outputs) = (store.generation(), backends.outputs.list());
        let (mut rows, mut fallbacks, mut images) = store.read(|connection| {
            let rows = store::assignments::all(connection)?;
            let fallbacks = Fallbacks {
                playlist_shows: store::playlists::shows_everywhere(connection)?,
                default: store::assignments::default(connection)?,
                for_all: store::assignments::for_every_monitor(connection)?,
                seen: store::monitors::seen(connection)?,
            };
            let ids = store::assignments::image_ids(connection)?;
            let images = store::images::all_assigned(connection, &ids)?;
            Ok::<_, store::Error>((rows, fallbacks, images))
        })?;
        let mut ours = outputs.to_vec();
        for monitor in store.read(store::assignments::without_image)? {
            if store::playlists::is_about_to_show(store, &monitor)? {
                ours.retain(|output| output.name != monitor);
            } else if let Some((entry, image)) = shown_before(store, &monitor, None, 1)? {
                rows.push(of_entry(monitor, entry));
                images.push(image);
            } else {
                fallbacks.seen.retain(|name| *name != monitor);
            }
        }
        let colors = PlainColors::new(&backends.dirs.cache());
        images.iter_mut().for_each(|image| colors.supply(image));
        let missing = images.iter().filter(|image| orphan::lacks_file(image));
        let missing = missing.map(|image| image.id).collect();
        let pictures: Pictures = images
            .into_iter()
            .map(|image| (image.id, Arc::new(image)))
            .collect();
        let preference = Preference::with_activated(&(backends.settings)(), activated);
        let available = backend_choice::candidates(backends);
        fallbacks.adopt(&mut rows, &ours);
        let backends = backends.clone();
        let workspaces = Vec::new();
        Ok(Self {
            rows,
            pictures,
            outputs,
            available,
            preference,
            missing,
            colors,
            workspaces,
            backends,
            generation,
        })
    }

    /// Removes backends that were installed while the builtin one is in use; returns their names.
    pub(super) fn keep_found(
        &mut self,
        found: &FoundBackends,
        draws_itself: bool,
    ) -> Vec<BackendName> {
        found.keep(&mut self.available, draws_itself)
    }

    /// The backend in use, if one shows everything.
    pub(super) fn active(&self) -> Option<BackendName> {
        backend_choice::active(&self.preference, &self.available)
    }

    /// The inputs of plans that are made by this state.
    pub(super) fn plan_state(&self, events: u64) -> PlanState {
        PlanState {
            events,
            generation: self.generation,
            outputs: Arc::clone(&self.outputs),
        }
    }

    pub(super) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    pub(super) fn is_connected(&self, monitor: &str) -> bool {
        self.outputs.iter().any(|output| output.name == monitor)
    }

    /// Shows the picture of a workspace instead of an assignment.
    pub(super) fn show_workspace(&mut self, picture: WorkspacePicture, mut image: Image) {
        self.colors.supply(&mut image);
        self.pictures.insert(image.id, Arc::new(image));
        self.workspaces.push(picture);
    }

    /// The pictures of workspaces, which are shown instead of assignments.
    pub(super) fn over_assignments(&self) -> &[WorkspacePicture] {
        &self.workspaces
    }

    /// The workspace whose picture hides the assignment of a monitor.
    pub(super) fn hidden_by(&self, monitor: &str) -> Option<&WorkspacePicture> {
        self.workspaces
            .iter()
            .find(|picture| picture.row.monitor == monitor)
    }

    /// The assignments as shown, by monitor, with the pictures of workspaces in place.
    fn shown_rows(&self) -> Vec<Assignment> {
        let pictures = self.workspaces.iter().map(|picture| picture.row.clone());
        workspaces::over(self.rows.clone(), pictures)
    }

    pub(super) fn connected(&self) -> Vec<&str> {
        self.outputs
            .iter()
            .map(|output| output.name.as_str())
            .collect()
    }

    /// Everything that should be shown.
    pub(super) fn desired(&self, current: &Placements) -> Placements {
        let choose = |kind| backend_choice::choose(&self.preference, &self.available, kind).ok();
        let rows = self.shown_rows();
        let mut desired = assignments::desired(&rows, &self.pictures, &self.outputs, choose);
        self.exclude_missing(&mut desired);
        plan::keep_current(current, &mut desired, &self.outputs);
        self.lay_out(&mut desired);
        desired
    }

    /// Sets the outputs that each stretched picture spans. An output on which a workspace hides the
    /// picture counts, so that the others keep their part. A picture that has left the library has no
    /// assignments, so the outputs that show it count.
    fn lay_out(&self, desired: &mut Placements) {
        let shown: Vec<_> = desired.values().flatten().cloned().collect();
        for placement in desired.values_mut().flatten() {
            let (id, over) = (placement.image_id, placement.extended_over.clone());
            let is_spanned = |output: &&Output| {
                let mut shown = shown.iter().filter(|one| one.output.name == output.name);
                shown.any(|one| one.image_id == id && one.extended_over == over)
                    || self
                        .row(&output.name)
                        .is_some_and(|row| row.image_id == id && row.together == over)
            };
            placement.span = match over.is_empty() {
                true => Vec::new(),
                false => self.outputs.iter().filter(is_spanned).cloned().collect(),
            };
        }
    }

    /// Removes pictures whose files are missing and not retained, so that the others are shown.
    fn exclude_missing(&self, desired: &mut Placements) {
        for (key, placements) in desired.iter_mut() {
            let cache = self.backends.cache_of(key.backend, key.output.as_deref());
            let links = Links::new(&cache);
            placements.retain(|placement| {
                !self.missing.contains(&placement.image_id) || links.has(placement)
            });
        }
        desired.retain(|_, placements| !placements.is_empty());
    }

    /// Replaces the assignments of the monitors of these pictures.
    pub(super) fn with(mut self, pictures: &[Picture]) -> Self {
        for Picture { image, rows, .. } in pictures {
            self.pictures.insert(image.id, Arc::clone(image));
            self.rows
                .retain(|row| rows.iter().all(|new| new.monitor != row.monitor));
            self.rows.extend(rows.iter().cloned());
        }
        self
    }

    /// The backend that covers every output, if one of the shown or `new` images needs it.
    pub(super) fn covering<'a>(
        &'a self,
        new: impl Iterator<Item = (&'a Image, &'a [String])>,
    ) -> Option<BackendName> {
        let mut images: BTreeMap<&str, &Image> = BTreeMap::new();
        for name in self.connected() {
            let image = self
                .shown_row(name)
                .and_then(|row| self.pictures.get(&row.image_id));
            images.extend(image.map(|image| (name, &**image)));
        }
        for (image, monitors) in new {
            let seen = monitors
                .iter()
                .filter(|monitor| self.hidden_by(monitor).is_none());
            images.extend(seen.map(|monitor| (monitor.as_str(), image)));
        }
        let choose = |image: &&Image| {
            let kind = Kind::of(image.media_type, image.animated);
            let choice = backend_choice::choose(&self.preference, &self.available, kind).ok()?;
            registration(choice.backend)
                .covers_all
                .then_some(choice.backend)
        };
        images.values().find_map(choose)
    }

    /// Chooses the backend for an image.
    pub(super) fn choose(&self, image: &Image, kind: Kind) -> Result<Choice, Error> {
        self.choose_for(kind, (image.media_type, image.library_id(), &image.name))
    }

    /// The same, also for a file that has no id yet.
    pub(super) fn choose_for(
        &self,
        kind: Kind,
        (media_type, image_id, name): (MediaType, Option<i64>, &str),
    ) -> Result<Choice, Error> {
        backend_choice::choose(&self.preference, &self.available, kind).map_err(|why| match why {
            NoChoice::None => Error::no_backend(&self.backends),
            NoChoice::Incompatible { backend } => Error::Incompatible {
                backend,
                kind,
                media_type,
                image_id,
                image_name: name.to_owned(),
                remedy: self.remedy(kind),
            },
        })
    }

    /// The backends that can show content of this kind here, or could if they were installed.
    fn remedy(&self, kind: Kind) -> Remedy {
        let installed: Vec<BackendName> = self
            .available
            .iter()
            .filter(|one| one.kinds.contains(&kind))
            .map(|one| one.name)
            .collect();
        if !installed.is_empty() {
            return Remedy::Activate(installed);
        }
        let would = |entry: &&Registration| {
            self.backends.fits(entry) && self.backends.kinds(entry).contains(&kind)
        };
        let would: Vec<BackendName> = REGISTRY
            .iter()
            .filter(would)
            .map(|entry| entry.name)
            .collect();
        if would.is_empty() {
            Remedy::None
        } else {
            Remedy::Install(would)
        }
    }

    /// The images of connected monitors that are not shown and that no available backend can show, with
    /// the reason. If there is no backend at all, that is reported elsewhere.
    pub(super) fn unshowable(&self, current: &Placements) -> Vec<(&str, &Image, Error)> {
        let mut found = Vec::new();
        for output in self.outputs.iter() {
            let name = output.name.as_str();
            let image = self
                .shown_row(name)
                .and_then(|row| self.pictures.get(&row.image_id))
                .map(|image| &**image);
            let mut shown = current.values().flatten();
            let Some(image) = image.filter(|image| {
                shown.all(|one| (&*one.output.name, one.image_id) != (name, image.id))
            }) else {
                continue;
            };
            let kind = Kind::of(image.media_type, image.animated);
            if let Err(why @ Error::Incompatible { .. }) = self.choose(image, kind) {
                found.push((name, image, why));
            }
        }
        found
    }

    pub(super) fn can_show(&self, media_type: MediaType, animated: bool) -> bool {
        let kind = Kind::of(media_type, animated);
        backend_choice::choose(&self.preference, &self.available, kind).is_ok()
    }

    /// The assignment of a monitor.
    pub(super) fn row(&self, monitor: &str) -> Option<&Assignment> {
        self.rows.iter().find(|row| row.monitor == monitor)
    }

    /// The assignment of a monitor, or the picture of a workspace that hides it.
    pub(super) fn shown_row(&self, monitor: &str) -> Option<&Assignment> {
        self.hidden_by(monitor)
            .map(|picture| &picture.row)
            .or_else(|| self.row(monitor))
    }

    /// The connected monitors among the targets, and those that are skipped.
    pub(super) fn targets(&self, targets: &Targets) -> Result<(Vec<String>, Vec<String>), Error> {
        targets
            .resolve(self.connected().into_iter())
            .map_err(|why| match why {
                // Without a session there are no monitors either.
                Error::NoMonitor if self.backends.compositor().is_none() => {
                    Error::no_backend(&self.backends)
                }
                why => why,
            })
    }

    /// The pictures that these steps show again, grouped by image, look and backend, including rewritten
    /// ones. Placements that are only moved or resized do not count.
    pub(super) fn restored(&self, current: &Placements, steps: &[Step]) -> Vec<Picture> {
        let look = |row: &Assignment| (row.mode, row.fit, row.position);
        let mut restored: Vec<Picture> = Vec::new();
        for Step { key, placements } in steps {
            let backend = key.backend;
            for placement in placements {
                let name = &placement.output.name;
                let before = current
                    .get(key)
                    .and_then(|old| plan::same_picture(old, placement));
                let was_shown = match before {
                    Some(before) if before.content == placement.content => continue,
                    before => before.is_some() || drawn_by_another(current, key, placement),
                };
                let Some(row) = self.shown_row(name) else {
                    continue;
                };
                let of_workspace = self.hidden_by(name).is_some();
                let Some(image) = self.pictures.get(&row.image_id) else {
                    continue;
                };
                let row = Assignment {
                    backend: backend.to_string(),
                    ..row.clone()
                };
                let group = restored.iter_mut().find(|group| {
                    group.image.id == image.id
                        && (group.backend, group.was_shown) == (backend, was_shown)
                        && group.of_workspace == of_workspace
                        && look(&group.rows[0]) == look(&row)
                });
                match group {
                    Some(group) => group.rows.push(row),
                    None => {
                        let (image, rows) = (Arc::clone(image), vec![row]);
                        restored.push(Picture {
                            image,
                            backend,
                            rows,
                            was_shown,
                            of_workspace,
                        });
                    }
                }
            }
        }
        restored
    }
}

/// The assignment of a monitor that shows an entry of its history again.
fn of_entry(monitor: String, entry: HistoryEntry) -> Assignment {
    Assignment {
        monitor,
        image_id: entry.image_id,
        mode: entry.mode,
        together: entry.monitors,
        backend: entry.backend,
        set_at: entry.set_at,
        fit: entry.fit,
        position: entry.position,
        sound: None,
    }
}

/// Whether the monitor shows the same image by another backend.
fn drawn_by_another(current: &Placements, key: &WorkerKey, placement: &Placement) -> bool {
    let others = current
        .iter()
        .filter(|(other, _)| other.backend != key.backend);
    let is_same = |one: &Placement| {
        (&one.output.name, one.image_id) == (&placement.output.name, placement.image_id)
    };
    others.flat_map(|(_, shown)| shown).any(is_same)
}
