//! What the reconciler looks at before it decides: the assignments, their images, the connected outputs, and
//! the backends that could be used. Read afresh for every decision, so nothing here can be stale.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::backends::Kind;
use crate::compositor::Output;
use crate::config::BackendName;
use crate::store::assignments::Assignment;
use crate::store::{self, Store};
use crate::wire::{HistorySource, Image, Mode, Timestamp};

use super::Error;
use super::assignments::{self, Pictures};
use super::job::Restored;
use super::orphan;
use super::plan::{self, Placements, Step};
use super::request::{Applied, Ask, Outcome, Request};
use super::selection::{self, Candidate, NoChoice, Preference};
use super::targets::{NoTarget, Targets};

pub(super) struct WorldState {
    pub(super) rows: Vec<Assignment>,
    pub(super) pictures: Pictures,
    pub(super) outputs: std::sync::Arc<[Output]>,
    pub(super) available: Vec<Candidate>,
    pub(super) preference: Preference,
}

/// A request that can be carried out as things are.
pub(super) struct Feasible {
    pub(super) image: Image,
    pub(super) rows: Vec<Assignment>,
    pub(super) for_all: bool,
    pub(super) applied: Applied,
    pub(super) source: HistorySource,
}

impl WorldState {
    pub(super) fn connected(&self) -> Vec<&str> {
        self.outputs.iter().map(|output| output.name.as_str()).collect()
    }

    /// All that should be shown.
    pub(super) fn desired(&self, current: &Placements) -> Placements {
        let choose = |kind| selection::choose(&self.preference, &self.available, kind).ok();
        let mut desired = assignments::desired(&self.rows, &self.pictures, &self.outputs, choose);
        plan::keep_current(current, &mut desired, &self.outputs);
        desired
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
            Ask::Random => self.random(store, targets.as_ref().map_or(&[], |(found, _)| found))?,
        };
        if orphan::file_is_missing(&image.path) {
            return Err(Error::FileGone { id: image.id, path: image.path });
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
        Ok(Feasible { image, rows, for_all, applied, source: request.source.clone() })
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
    fn random(&self, store: &Store, monitors: &[String]) -> Result<Image, Error> {
        let ids = store.read(store::images::ids)?;
        let any = ids.first().map(|&(id, ..)| id).ok_or(Error::EmptyLibrary)?;
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
        let id = pool.get(below(pool.len())).copied().unwrap_or(any);
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

/// A random number below `end`, from the keys that the standard library draws for its hash maps.
fn below(end: usize) -> usize {
    let random = RandomState::new().build_hasher().finish();
    (random % (end.max(1) as u64)) as usize
}
