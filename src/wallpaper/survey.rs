//! What the stage looks at before it decides: scene rows, their images, the connected outputs, and
//! the setters that could be used. Read afresh for every decision, so nothing here can be stale.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::backends::Kind;
use crate::compositor::Output;
use crate::config::BackendName;
use crate::store::scene::Hung;
use crate::store::{self, Store};
use crate::wire::{HistorySource, Image, Mode, Timestamp};

use super::Failure;
use super::job::Restored;
use super::orphan;
use super::plan::{self, Shown, Step};
use super::request::{Applied, Ask, Outcome, Request};
use super::scene::{self, Pictures};
use super::selection::{self, Candidate, NoChoice, Preference};
use super::targets::{NoTarget, Targets};

pub(super) struct Survey {
    pub(super) rows: Vec<Hung>,
    pub(super) pictures: Pictures,
    pub(super) outputs: std::sync::Arc<[Output]>,
    pub(super) available: Vec<Candidate>,
    pub(super) preference: Preference,
}

/// A request that can be carried out as things are.
pub(super) struct Feasible {
    pub(super) image: Image,
    pub(super) rows: Vec<Hung>,
    pub(super) for_all: bool,
    pub(super) applied: Applied,
    pub(super) source: HistorySource,
}

impl Survey {
    pub(super) fn connected(&self) -> Vec<&str> {
        self.outputs.iter().map(|output| output.name.as_str()).collect()
    }

    /// The whole scene as it should hang.
    pub(super) fn wanted(&self, shown: &Shown) -> Shown {
        let choose = |kind| selection::choose(&self.preference, &self.available, kind).ok();
        let mut wanted = scene::wanted(&self.rows, &self.pictures, &self.outputs, choose);
        plan::keep_hanging(shown, &mut wanted, &self.outputs);
        wanted
    }

    /// Puts rows into the scene in place of those of the same monitors.
    pub(super) fn with(mut self, image: &Image, rows: &[Hung]) -> Self {
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
    ) -> Result<Feasible, Failure> {
        let targets = self.targets(&request.targets);
        // That there is none is told before anything else.
        let image = match request.ask {
            Ask::Image(id) => {
                store.read(|c| store::images::get(c, id))?.ok_or(Failure::NoImage { id })?
            }
            Ask::Random => self.random(store, targets.as_ref().map_or(&[], |(found, _)| found))?,
        };
        if orphan::file_is_missing(&image.path) {
            return Err(Failure::FileGone { id: image.id, path: image.path });
        }
        let (monitors, skipped) = targets?;
        let kind = Kind::of(image.media_type, image.animated);
        let choice = match selection::choose(&self.preference, &self.available, kind) {
            Ok(choice) => choice,
            Err(NoChoice::None) => return Err(Failure::NoBackend { checked: checked() }),
            Err(NoChoice::Incompatible { backend }) => {
                return Err(Failure::Incompatible {
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
        let mode = scene::effective_mode(request.mode, kind);
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
    fn targets(&self, targets: &Targets) -> Result<(Vec<String>, Vec<String>), Failure> {
        targets.resolve(self.connected().into_iter()).map_err(|why| match why {
            NoTarget::Unknown { names, connected } => Failure::UnknownMonitors { names, connected },
            NoTarget::None => Failure::NoMonitor,
        })
    }

    /// One of the images that can be shown, evenly; not one that hangs there if there is another.
    /// Where none can be shown it is any, and the choice of its backend tells why not.
    fn random(&self, store: &Store, monitors: &[String]) -> Result<Image, Failure> {
        let ids = store.read(store::images::ids)?;
        let any = ids.first().map(|&(id, ..)| id).ok_or(Failure::EmptyLibrary)?;
        let can_show = |media_type, animated| {
            let kind = Kind::of(media_type, animated);
            selection::choose(&self.preference, &self.available, kind).is_ok()
        };
        let showable: Vec<i64> = ids
            .into_iter()
            .filter(|&(_, media_type, animated)| can_show(media_type, animated))
            .map(|(id, ..)| id)
            .collect();
        let hangs = |id: &i64| {
            self.rows.iter().any(|row| row.image_id == *id && monitors.contains(&row.monitor))
        };
        let others: Vec<i64> = showable.iter().copied().filter(|id| !hangs(id)).collect();
        let pool = if others.is_empty() { showable } else { others };
        let id = pool.get(below(pool.len())).copied().unwrap_or(any);
        store.read(|c| store::images::get(c, id))?.ok_or(Failure::NoImage { id })
    }

    /// The pictures that these steps hang anew, by image, mode and backend. A step that only moves
    /// or resizes what hangs is none.
    pub(super) fn restored(&self, shown: &Shown, steps: &[Step]) -> Vec<Restored> {
        let mut restored: Vec<Restored> = Vec::new();
        for step in steps {
            let Step::Show { seat, scene } = step else { continue };
            let backend = seat.backend;
            for hanging in scene {
                let name = &hanging.output.name;
                let before = shown.get(seat).into_iter().flatten();
                let hung = before.into_iter().any(|old| {
                    let same = old.image_id == hanging.image_id;
                    old.output.name == *name && same && old.extended_over == hanging.extended_over
                });
                let row = self.rows.iter().find(|row| row.monitor == *name);
                let (Some(row), false) = (row, hung) else { continue };
                let Some(image) = self.pictures.get(&row.image_id) else { continue };
                let row = Hung { backend: backend.to_string(), ..row.clone() };
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

fn rows(image: &Image, monitors: &[String], mode: Mode, backend: BackendName) -> Vec<Hung> {
    let set_at = Timestamp::now();
    let row = |monitor: &String| Hung {
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
