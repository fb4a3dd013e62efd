//! What the reconciler looks at before it decides: the assignments, their images, the connected outputs, and
//! the backends that could be used. Read afresh for every decision, so nothing here can be stale.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::backends::{Backends, Kind};
use crate::compositor::Output;
use crate::config::{BackendName, SelectionMode};
use crate::events::EventBus;
use crate::random;
use crate::store::assignments::Assignment;
use crate::store::index::Query;
use crate::store::{self, Store};
use crate::wire::{Image, Mode, OrphanReason, Timestamp};

use super::Error;
use super::assignments::{self, Fallbacks, Pictures};
use super::job::{Feasible, Restored};
use super::orphan;
use super::plan::{self, Placements, Step};
use super::request::{Applied, Ask, Outcome, Request};
use super::retained::Retained;
use super::selection::{self, Candidate, Found, NoChoice, Preference};
use super::targets::{NoTarget, Targets};

pub(super) struct WorldState {
    rows: Vec<Assignment>,
    pictures: Pictures,
    outputs: Arc<[Output]>,
    available: Vec<Candidate>,
    preference: Preference,
    /// Of those that are assigned, the images whose files are missing and whose rows are kept.
    missing: BTreeSet<i64>,
    backends: Backends,
}

impl WorldState {
    /// Reads what there is, and purges assigned images whose files are gone.
    pub(super) fn read(
        store: &Store,
        bus: &EventBus,
        backends: &Backends,
        activated: Option<BackendName>,
    ) -> Result<Self, store::Error> {
        let (mut rows, mut fallbacks, pictures) = store.read(|connection| {
            let rows = store::assignments::all(connection)?;
            let fallbacks = Fallbacks {
                playlist_runs: store::playlists::runs_everywhere(connection)?,
                default: store::assignments::default(connection)?,
                for_all: store::assignments::for_every_monitor(connection)?,
                seen: store::monitors::seen(connection)?,
            };
            let assigned = rows.iter().chain(&fallbacks.default).chain(&fallbacks.for_all);
            let ids: Vec<i64> = assigned.map(|row| row.image_id).collect();
            let images = store::images::by_ids(connection, &ids)?;
            let pictures: Pictures = images.into_iter().map(|image| (image.id, image)).collect();
            Ok::<_, store::Error>((rows, fallbacks, pictures))
        })?;
        let mut missing = BTreeSet::new();
        for image in pictures.values().filter(|image| orphan::file_is_missing(&image.path)) {
            if orphan::is_gone(image)
                && orphan::purge(store, bus, image.id, OrphanReason::FileMissing)?
            {
                let stays = |row: &Assignment| row.image_id != image.id;
                rows.retain(stays);
                fallbacks.default = fallbacks.default.filter(stays);
                fallbacks.for_all = fallbacks.for_all.filter(stays);
            } else {
                missing.insert(image.id);
            }
        }
        let mut preference = Preference::of(&(backends.settings)());
        if let Some(backend) = activated {
            preference.selection = SelectionMode::Fixed;
            preference.fixed = backend;
        }
        let candidate =
            |entry| Candidate { kinds: backends.kinds(entry), ..Candidate::from(entry) };
        let available = backends.available().into_iter().map(candidate).collect();
        let outputs = backends.outputs.list();
        fallbacks.adopt(&mut rows, &outputs);
        let backends = backends.clone();
        Ok(Self { rows, pictures, outputs, available, preference, missing, backends })
    }

    /// Leaves out backends that have come while murald draws by itself.
    pub(super) fn keep_found(&mut self, found: &Found, draws_itself: bool) {
        found.keep(&mut self.available, draws_itself);
    }

    /// The backend that is in use where one shows everything.
    pub(super) fn active(&self) -> Option<BackendName> {
        selection::active(&self.preference, &self.available)
    }

    pub(super) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    fn connected(&self) -> Vec<&str> {
        self.outputs.iter().map(|output| output.name.as_str()).collect()
    }

    /// All that should be shown.
    pub(super) fn desired(&self, current: &Placements) -> Placements {
        let choose = |kind| selection::choose(&self.preference, &self.available, kind).ok();
        let mut desired = assignments::desired(&self.rows, &self.pictures, &self.outputs, choose);
        self.leave_out_missing(&mut desired);
        plan::keep_current(current, &mut desired, &self.outputs);
        desired
    }

    /// What nothing can show must not keep a backend from showing the rest.
    fn leave_out_missing(&self, desired: &mut Placements) {
        for (key, placements) in desired.iter_mut() {
            let cache = self.backends.cache_of(key.backend, key.output.as_deref());
            let retained = Retained::new(&cache);
            placements.retain(|placement| {
                !self.missing.contains(&placement.image_id) || retained.has(placement)
            });
        }
        desired.retain(|_, placements| !placements.is_empty());
    }

    /// Puts rows into the assignments in place of those of the same monitors.
    pub(super) fn with(mut self, image: &Image, rows: &[Assignment]) -> Self {
        self.pictures.insert(image.id, image.clone());
        self.rows.retain(|row| rows.iter().all(|new| new.monitor != row.monitor));
        self.rows.extend(rows.iter().cloned());
        self
    }

    /// Checks a request against what is there.
    pub(super) fn feasible(
        &self,
        store: &Store,
        request: &Request,
        checked: impl FnOnce() -> Vec<String>,
    ) -> Result<Feasible, Error> {
        let targets = self.targets(&request.targets);
        // That there is none is told before anything else.
        let image = match request.ask {
            Ask::Image(id) => {
                store.read(|c| store::images::get(c, id))?.ok_or(Error::NoImage { id })?
            }
            Ask::Random => {
                let monitors = targets.as_ref().map_or(&[][..], |(found, _)| found);
                self.random(store, monitors, request.filter.as_deref())?
            }
        };
        if orphan::file_is_missing(&image.path) {
            let away = image.in_place;
            return Err(Error::FileGone { id: image.id, path: image.path, away });
        }
        let (monitors, skipped) = targets?;
        let kind = Kind::of(image.media_type, image.animated);
        let choice = match selection::choose(&self.preference, &self.available, kind) {
            Ok(choice) => choice,
            Err(NoChoice::None) => return Err(Error::NoBackend { checked: checked() }),
            Err(NoChoice::Incompatible { backend }) => {
                return Err(Error::Incompatible {
                    backend,
                    kind,
                    media_type: image.media_type,
                    image_id: image.id,
                    image_name: image.name,
                });
            }
        };
        let backend = choice.backend;
        let note = (choice.kind != kind)
            .then(|| format!("{backend} shows stills only: this is the first frame"));
        let mode = assignments::effective_mode(request.mode, kind);
        let rows = rows(&image, &monitors, mode, backend);
        let applied = Applied {
            outcome: Outcome::Set,
            image_id: image.id,
            monitors,
            skipped,
            mode,
            backend,
            warnings: Vec::new(),
            note,
        };
        let for_all = request.targets == Targets::All;
        let connected = self.outputs.iter().map(|output| output.name.clone()).collect();
        let source = request.source.clone();
        Ok(Feasible { image, rows, for_all, applied, source, connected })
    }

    /// The connected monitors that are meant, and those that are skipped.
    fn targets(&self, targets: &Targets) -> Result<(Vec<String>, Vec<String>), Error> {
        targets.resolve(self.connected().into_iter()).map_err(|why| match why {
            NoTarget::Unknown { names, connected } => Error::UnknownMonitors { names, connected },
            NoTarget::None => Error::NoMonitor,
        })
    }

    /// One of the images that can be shown, evenly; not one that is shown there if there is another.
    /// Where none can be shown it is any, and the choice of its backend tells why not.
    fn random(
        &self,
        store: &Store,
        monitors: &[String],
        filter: Option<&Query>,
    ) -> Result<Image, Error> {
        let mut ids = store.read(store::images::ids)?;
        if ids.is_empty() {
            return Err(Error::EmptyLibrary);
        }
        // Those on a disk that is away are passed over, unless all are.
        if ids.iter().any(|(id, ..)| !store.is_missing(*id)) {
            ids.retain(|(id, ..)| !store.is_missing(*id));
        }
        if let Some(filter) = filter {
            let passing: HashSet<i64> = store.find_all(filter)?.into_iter().collect();
            ids.retain(|(id, ..)| passing.contains(id));
        }
        let any = ids.first().map(|&(id, ..)| id).ok_or(Error::NoMatch)?;
        let can_show = |media_type, animated| {
            let kind = Kind::of(media_type, animated);
            selection::choose(&self.preference, &self.available, kind).is_ok()
        };
        let showable: Vec<i64> = ids
            .into_iter()
            .filter(|&(_, media_type, animated)| can_show(media_type, animated))
            .map(|(id, ..)| id)
            .collect();
        let is_shown = |id: &i64| {
            self.rows.iter().any(|row| row.image_id == *id && monitors.contains(&row.monitor))
        };
        let others: Vec<i64> = showable.iter().copied().filter(|id| !is_shown(id)).collect();
        let pool = if others.is_empty() { showable } else { others };
        let id = pool.get(random::below(pool.len())).copied().unwrap_or(any);
        store.read(|c| store::images::get(c, id))?.ok_or(Error::NoImage { id })
    }

    /// The pictures that these steps show anew, by image, mode and backend. A step that only moves
    /// or resizes what is shown is none.
    pub(super) fn restored(&self, current: &Placements, steps: &[Step]) -> Vec<Restored> {
        let mut restored: Vec<Restored> = Vec::new();
        for step in steps {
            let Step::Show { key, placements } = step else { continue };
            let backend = key.backend;
            for placement in placements {
                let name = &placement.output.name;
                let before = current.get(key).into_iter().flatten();
                let was_shown = before.into_iter().any(|old| {
                    let same = old.image_id == placement.image_id;
                    old.output.name == *name && same && old.extended_over == placement.extended_over
                });
                let row = self.rows.iter().find(|row| row.monitor == *name);
                let (Some(row), false) = (row, was_shown) else { continue };
                let Some(image) = self.pictures.get(&row.image_id) else { continue };
                let row = Assignment { backend: backend.to_string(), ..row.clone() };
                let group = restored.iter_mut().find(|group| {
                    group.image.id == image.id
                        && group.backend == backend
                        && group.rows[0].mode == row.mode
                });
                match group {
                    Some(group) => group.rows.push(row),
                    None => {
                        restored.push(Restored { image: image.clone(), backend, rows: vec![row] })
                    }
                }
            }
        }
        restored
    }
}

fn rows(image: &Image, monitors: &[String], mode: Mode, backend: BackendName) -> Vec<Assignment> {
    let set_at = Timestamp::now();
    let row = |monitor: &String| Assignment {
        monitor: monitor.clone(),
        image_id: image.id,
        mode,
        together: monitors.to_vec(),
        backend: backend.to_string(),
        set_at,
    };
    monitors.iter().map(row).collect()
}
