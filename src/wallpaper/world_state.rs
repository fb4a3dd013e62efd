//! The state that the reconciler reads before it decides: the assignments, their images, the connected
//! outputs, and the backends that could be used. Read afresh for every decision, so nothing here
//! can be stale.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backends::{Backends, Kind, REGISTRY, Registration, registration};
use crate::compositor::Output;
use crate::config::BackendName;
use crate::media::PlainColors;
use crate::store::assignments::Assignment;
use crate::store::workspaces::WorkspacePicture;
use crate::store::{self, Store};
use crate::wire::{Image, MediaType, Source};

use super::backend_choice::{self, Candidate, Choice, NoChoice, Preference};
use super::fallbacks::Fallbacks;
use super::missing_file;
use super::picture::Wishes;
use super::previous::shown_before;
use super::request::Targets;
use super::slots::Slots;
use super::{Error, Remedy};

/// The images of the assignments by id.
pub(super) type Pictures = BTreeMap<i64, Arc<Image>>;

pub(super) struct WorldState {
    rows: Vec<Assignment>,
    /// The same, with other pictures for connected monitors whose own files cannot be read.
    pub(super) scene: Vec<Assignment>,
    /// Monitors whose images were deleted, except where a playlist is about to show another.
    deleted: Vec<String>,
    pub(super) pictures: Pictures,
    pub(super) outputs: Arc<[Output]>,
    pub(super) available: Vec<Candidate>,
    preference: Preference,
    pub(super) colors: PlainColors,
    /// The pictures of workspaces, which are shown instead of assignments.
    pub(super) over_assignments: Vec<WorkspacePicture>,
    pub(super) backends: Backends,
    /// [`Store::generation`] before the rows were read.
    pub(super) generation: u64,
}

impl WorldState {
    pub(super) fn read(
        store: &Store,
        backends: &Backends,
        activated: Option<BackendName>,
    ) -> Result<Self, store::Error> {
        let generation = store.generation();
        let outputs = backends.outputs.list();
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
        let missing = missing_file::without_file(&images);
        let is_missing = |row: &Assignment| missing.contains(&row.image_id);
        fallbacks.default = fallbacks.default.filter(|row| !is_missing(row));
        fallbacks.for_all = fallbacks.for_all.filter(|row| !is_missing(row));
        let unreadable: Vec<_> = rows.extract_if(.., |row| is_missing(row)).collect();
        let mut deleted = store.read(store::assignments::without_image)?;
        let lacking = unreadable.iter().map(|row| &row.monitor).chain(&deleted);
        let mut ours = outputs.to_vec();
        for monitor in lacking {
            if store::playlists::is_about_to_show(store, monitor)? {
                ours.retain(|output| output.name != *monitor);
            } else if let Some(before) = shown_before(store, monitor, None, 1)? {
                rows.push(before.row);
                images.push(before.image);
            } else {
                fallbacks.seen.retain(|name| name != monitor);
            }
        }
        fallbacks.adopt(&mut rows, &ours);
        let scene = rows.clone();
        rows.retain(|row| unreadable.iter().all(|own| own.monitor != row.monitor));
        rows.extend(unreadable);
        deleted.retain(|name| ours.iter().any(|output| output.name == *name));
        let colors = PlainColors::new(&backends.dirs.cache());
        for image in &mut images {
            // A failure is in the log, and the backend reports the missing file.
            colors.supply(image).ok();
        }
        let pictures = images.into_iter().map(|image| (image.id, Arc::new(image)));
        Ok(Self {
            rows,
            scene,
            deleted,
            pictures: pictures.collect(),
            outputs,
            available: backend_choice::candidates(backends),
            preference: Preference::from_config(&(backends.settings)(), activated),
            colors,
            over_assignments: Vec::new(),
            backends: backends.clone(),
            generation,
        })
    }

    /// The backend in use, if one shows everything.
    pub(super) fn active(&self) -> Option<BackendName> {
        backend_choice::active(&self.preference, &self.available)
    }

    /// Whether the picture of a monitor was deleted or cannot be read, and nothing stands in for it.
    pub(super) fn has_lost_picture(&self, monitor: &str, slots: &Slots) -> bool {
        self.deleted.iter().any(|name| name == monitor)
            || slots
                .on(monitor)
                .any(|(_, shown)| missing_file::file_is_missing(&shown.path))
    }

    pub(super) fn is_connected(&self, monitor: &str) -> bool {
        self.outputs.iter().any(|output| output.name == monitor)
    }

    /// The workspace whose picture hides the assignment of a monitor.
    pub(super) fn hidden_by(&self, monitor: &str) -> Option<&WorkspacePicture> {
        self.over_assignments
            .iter()
            .find(|picture| picture.row.monitor == monitor)
    }

    /// The names of the connected monitors.
    pub(super) fn connected(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(|output| output.name.as_str())
    }

    /// The backend for a kind of content.
    pub(super) fn choice(&self, kind: Kind) -> Option<Choice> {
        backend_choice::choose(&self.preference, &self.available, kind).ok()
    }

    /// The backend that covers every output, if one of the shown images or the `new` ones of monitors
    /// needs it.
    pub(super) fn covering<'a>(
        &'a self,
        wishes: &'a Wishes,
        new: impl Iterator<Item = (&'a str, &'a Image)>,
    ) -> Option<BackendName> {
        let mut images: BTreeMap<&str, &Image> = BTreeMap::new();
        for name in self.connected() {
            let image = self
                .shown_row(name)
                .and_then(|row| self.pictures.get(&row.image_id));
            let wish = wishes.get(name).filter(|_| self.hidden_by(name).is_none());
            let image = wish.map(|wish| &wish.image).or(image);
            images.extend(image.map(|image| (name, &**image)));
        }
        images.extend(new.filter(|(monitor, _)| self.hidden_by(monitor).is_none()));
        let choose = |image: &&Image| {
            let choice = self.choice(Kind::from_image(image))?;
            registration(choice.backend)
                .covers_all
                .then_some(choice.backend)
        };
        images.values().find_map(choose)
    }

    /// Chooses the backend for an image.
    pub(super) fn choose(&self, image: &Image) -> Result<Choice, Error> {
        let kind = Kind::from_image(image);
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
    pub(super) fn unshowable(&self, slots: &Slots) -> Vec<(&str, &Image, Error)> {
        let mut found = Vec::new();
        for name in self.connected() {
            let row = self.shown_row(name);
            let image = row.and_then(|row| self.pictures.get(&row.image_id));
            let is_shown = |image: &Image| slots.on(name).any(|(_, one)| one.image_id == image.id);
            let Some(image) = image.filter(|image| !is_shown(image)) else {
                continue;
            };
            if let Err(why @ Error::Incompatible { .. }) = self.choose(image) {
                found.push((name, &**image, why));
            }
        }
        found
    }

    /// The assignment of a monitor.
    pub(super) fn row(&self, monitor: &str) -> Option<&Assignment> {
        self.rows.iter().find(|row| row.monitor == monitor)
    }

    /// Why a picture is shown in place of the monitor's assignment; none if it is the assignment.
    pub(super) fn shown_instead(&self, shown: &Assignment) -> Option<Source> {
        if self.hidden_by(&shown.monitor).is_some() {
            return Some(Source::Workspace);
        }
        let own = self.row(&shown.monitor);
        let is_other = own.is_some_and(|own| own.image_id != shown.image_id);
        is_other.then_some(Source::Restore)
    }

    /// The assignment of a monitor, or the picture of a workspace that hides it.
    pub(super) fn shown_row(&self, monitor: &str) -> Option<&Assignment> {
        let hidden = self.hidden_by(monitor).map(|picture| &picture.row);
        let mut scene = self.scene.iter();
        hidden
            .or_else(|| scene.find(|row| row.monitor == monitor))
            .or_else(|| self.row(monitor))
    }

    /// The connected monitors among the targets, and those that are skipped.
    pub(super) fn targets(&self, targets: &Targets) -> Result<(Vec<String>, Vec<String>), Error> {
        targets.resolve(self.connected()).map_err(|why| match why {
            // Without a session there are no monitors either.
            Error::NoMonitor if self.backends.compositor().is_none() => {
                Error::no_backend(&self.backends)
            }
            why => why,
        })
    }
}
