//! Tests requests against a library on disk and simulated monitors: what they plan and write. No worker
//! runs.

mod picks;
mod requests;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, unbounded};

use super::feasible::Feasible;
use super::picture::Wishes;
use super::reconciler::follow_monitors;
use super::request::Targets;
use super::request::{Applied, Ask, Reply, Request};
use super::scene;
use super::slots::Slots;
use super::worker_key::Placements;
use super::world_state::WorldState;
use super::{Backends, Error};
use crate::compositor::{Output, Outputs, Session};
use crate::config::{BackendName, Config};
use crate::decode::Decoder;
use crate::events::EventBus;
use crate::kernel::Kernel;
use crate::paths::{Dirs, Env};
use crate::process::{ProcessRecords, Versions};
use crate::store::images::{self, NewImage};
use crate::store::{Store, history};
use crate::thread::Spawner;
use crate::wire::{Format, HistoryEntry, HistorySource, Mode, Source};

pub(super) struct Room {
    pub(super) directory: tempfile::TempDir,
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) backends: Backends,
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

pub(super) fn outputs(names: &[&str]) -> Vec<Output> {
    names.iter().map(|name| Output::plain(name)).collect()
}

/// A request for these monitors, or for all if none is named.
pub(super) fn request(ask: Ask, monitors: &[&str]) -> Request {
    let targets = Targets::from_names(names(monitors));
    Request {
        mode: Mode::Clone,
        ..Request::new(ask, targets, Source::Manual)
    }
}

/// A reply, and the receiver of its result.
pub(super) fn reply<T: Send + 'static>() -> (Reply<T>, Receiver<Result<T, Error>>) {
    let (told, answer) = unbounded();
    (Box::new(move |result| drop(told.send(result))), answer)
}

impl Room {
    /// A library with these outputs and only the builtin backend.
    pub(super) fn new(outputs: Vec<Output>) -> Self {
        Self::with(outputs, &[], |_| ())
    }

    /// A library with these outputs, these programs on `PATH` and changed settings.
    pub(super) fn with(
        outputs: Vec<Output>,
        programs: &[&str],
        settings: impl Fn(&mut Config),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["bin", "library", "processes"] {
            fs::create_dir(at(name)).unwrap();
        }
        let (path, home) = (at("bin"), directory.path().to_owned());
        let env = Env::new(move |name| match name {
            "PATH" => Some(path.clone().into()),
            "HOME" => Some(home.clone().into()),
            _ => None,
        });
        let mut config = Config::default();
        settings(&mut config);
        let config = Arc::new(config);
        let (spawner, _) = Spawner::new();
        let decoder = Decoder::start(Default::default(), &spawner).unwrap();
        let backends = Backends {
            decoder,
            settings: Arc::new(move || Arc::clone(&config)),
            outputs: Outputs::fixed(
                Session::Wayland {
                    socket: at("socket"),
                },
                outputs,
            ),
            records: ProcessRecords::open(&at("processes")).unwrap(),
            kernel: Kernel::start(&spawner).unwrap(),
            spawner,
            cache: at("cache"),
            dirs: Dirs::new(env).unwrap(),
            versions: Versions::default(),
            own_program: None,
        };
        let store = Store::open(&at("murald.sqlite3")).unwrap();
        let room = Self {
            directory,
            store,
            bus: EventBus::new(),
            backends,
        };
        programs.iter().for_each(|program| room.install(program));
        room
    }

    /// Puts a program on `PATH`, which does nothing.
    pub(super) fn install(&self, program: &str) {
        let path = self.directory.path().join("bin").join(program);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("library").join(name)
    }

    /// Adds a picture that is wider than high, with a file.
    pub(super) fn add(&self, name: &str) -> i64 {
        self.add_as(name, |_| ())
    }

    pub(super) fn add_as(&self, name: &str, change: impl Fn(&mut NewImage)) -> i64 {
        let mut image = NewImage {
            name: name.to_owned(),
            path: self.path(name),
            format: Format::Png,
            width: 40,
            height: 30,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: 1,
            checksum: std::array::from_fn(|at| name.as_bytes()[at % name.len()]),
            colors: Vec::new(),
            hue_group: 99,
            folder_id: None,
            source_path: "/from".into(),
            in_place: false,
            web: None,
        };
        change(&mut image);
        fs::write(&image.path, name).unwrap();
        self.store.write(|c| images::insert(c, &image)).unwrap()
    }

    pub(super) fn world(&self) -> WorldState {
        follow_monitors(&self.store, &self.backends.outputs.list()).unwrap();
        WorldState::read(&self.store, &self.backends, None).unwrap()
    }

    pub(super) fn feasible(&self, request: &Request) -> Result<Feasible, Error> {
        let wishes = Wishes::new();
        self.world()
            .feasible(&self.store, request, &wishes, &BTreeSet::new())
    }

    /// Writes a request as if it had been carried out.
    pub(super) fn set(&self, request: Request) -> Applied {
        let mut feasible = self.feasible(&request).unwrap();
        let written = feasible.commit(&self.store, &request, |_| false);
        written.unwrap();
        feasible.applied
    }

    /// The image of each monitor in the rows.
    pub(super) fn rows(&self) -> BTreeMap<String, i64> {
        let rows = self.store.read(crate::store::assignments::all).unwrap();
        rows.into_iter()
            .map(|row| (row.monitor, row.image_id))
            .collect()
    }

    /// The newest first.
    pub(super) fn history(&self) -> Vec<HistoryEntry> {
        let query = history::HistoryQuery {
            limit: 99,
            ..Default::default()
        };
        self.store.read(|c| history::list(c, &query)).unwrap()
    }
}

/// What the assignments require, by worker.
pub(super) fn desired(world: &WorldState) -> Placements {
    let desired = scene::desired(world, &Wishes::new(), &Slots::default());
    let mut all = Placements::new();
    for wanted in desired.into_values() {
        let placements = all.entry(wanted.key).or_default();
        placements.push(wanted.placement);
    }
    all
}

/// The image for each monitor.
pub(super) fn images_of(applied: &Applied) -> Vec<(&str, i64)> {
    applied
        .images
        .iter()
        .map(|(monitor, id)| (monitor.as_str(), *id))
        .collect()
}

#[test]
fn builtin_is_used_if_the_preferred_backend_is_not_available() {
    let active = |programs: &[&str]| {
        Room::with(outputs(&["A"]), programs, |_| ())
            .world()
            .active()
    };
    assert_eq!(active(&[]), Some(BackendName::Builtin));
    assert_eq!(active(&["swaybg"]), Some(BackendName::Builtin));
    let awww = ["swaybg", "awww", "awww-daemon"];
    assert_eq!(active(&awww), Some(BackendName::Awww));
    let others = |programs: &[&str]| {
        let room = Room::with(outputs(&["A"]), programs, |config| {
            config.builtin.enabled = false
        });
        room.world().active()
    };
    assert_eq!(others(&[]), None);
    assert_eq!(others(&["swaybg"]), Some(BackendName::Swaybg));
}
