//! What an earlier daemon left: pictures that are shown, and the backends that show them.
//!
//! Runs on the reconciler's thread. What is shown is noted in the runtime directory after each step, beside
//! the records of the backends. So the next daemon also keeps pictures that have left the library,
//! and ends backends of ours that nothing is desired of any more. A note is about what the records
//! say still runs; without one, nothing is lost but that.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backends::{Backends, Placement, REGISTRY};
use crate::config::BackendName;
use crate::process::plain_name;

use super::plan::Placements;
use super::reconciler::Reconciler;
use super::worker_key::WorkerKey;
use super::world_state::WorldState;

pub(super) struct Recovery {
    path: PathBuf,
    /// As noted, until there are outputs to compare it with.
    noted: Option<Placements>,
    /// Whose backends run, and nobody has seen to them yet.
    pub(super) left: BTreeSet<WorkerKey>,
    /// Recalled, and not told of yet.
    pub(super) unannounced: BTreeSet<WorkerKey>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    backend: BackendName,
    output: Option<String>,
    placements: Vec<Placement>,
}

impl Recovery {
    /// Before any backend is started.
    pub(super) fn open(backends: &Backends) -> Self {
        let path = backends.records.directory().join("current.json");
        let noted = fs::read(&path).ok().and_then(|bytes| {
            let entries: Vec<Entry> = serde_json::from_slice(&bytes).ok()?;
            let key = |entry: Entry| {
                (WorkerKey { backend: entry.backend, output: entry.output }, entry.placements)
            };
            Some(entries.into_iter().map(key).collect())
        });
        let left = backends.records.left().into_iter().filter_map(|(backend, output)| {
            Some(WorkerKey { backend: backend.parse().ok()?, output })
        });
        let left = left.collect();
        Self { path, noted: Some(noted.unwrap_or_default()), left, unannounced: BTreeSet::new() }
    }

    /// Notes what is shown now.
    pub(super) fn note(&self, current: &Placements) {
        if current.is_empty() {
            // Where there is none, that was so before.
            fs::remove_file(&self.path).ok();
            return;
        }
        let entry = |(key, placements): (&WorkerKey, &Vec<Placement>)| Entry {
            backend: key.backend,
            output: key.output.clone(),
            placements: placements.clone(),
        };
        let entries: Vec<Entry> = current.iter().map(entry).collect();
        let part = self.path.with_extension("part");
        let noted = serde_json::to_vec(&entries)
            .map_err(io::Error::from)
            .and_then(|bytes| fs::write(&part, bytes))
            .and_then(|()| fs::rename(&part, &self.path));
        if let Err(error) = noted {
            // Only pictures that leave the library depend on it.
            log::debug!("what is shown is not noted: {error}");
        }
    }
}

impl Reconciler {
    /// Takes what an earlier daemon left for what is shown, once outputs are there. Its workers
    /// are told to show it again, so that their backends are taken over.
    pub(super) fn recall(&mut self, world: &WorldState) {
        // Those of the world state: what is planned by it must not come before.
        let outputs = &world.outputs;
        if outputs.is_empty() {
            return;
        }
        let Some(noted) = self.recovery.noted.take() else { return };
        for (key, mut placements) in noted {
            placements
                .retain(|placement| outputs.iter().any(|one| one.name == placement.output.name));
            // feh leaves no process: the X server keeps its pictures.
            let is_shown = key.backend == BackendName::Feh || self.recovery.left.contains(&key);
            if is_shown && !placements.is_empty() {
                self.recovery.left.remove(&key);
                self.recovery.unannounced.insert(key.clone());
                self.stale.insert(key.clone());
                self.current.insert(key, placements);
            }
        }
        let desired = world.desired(&self.current);
        // What else is left goes once all that it may cover is covered by others.
        let is_covered = |key: &WorkerKey| {
            let others = || desired.iter().filter(|(other, _)| *other != key);
            let mut served = outputs.iter().filter(|output| key.serves(&output.name));
            served.all(|output| {
                let mut shown = others().flat_map(|(_, placements)| placements);
                shown.any(|placement| placement.output.name == output.name)
            })
        };
        let left = std::mem::take(&mut self.recovery.left).into_iter();
        let left = left.filter(|key| !desired.contains_key(key));
        let (covered, left): (BTreeSet<WorkerKey>, _) = left.partition(is_covered);
        self.recovery.left = left;
        self.current.extend(covered.into_iter().map(|key| (key, Vec::new())));
        let used = desired.keys().chain(self.current.keys()).chain(&self.recovery.left);
        sweep(&self.backends, &used.cloned().collect());
        self.reconcile_again = true;
    }
}

/// Removes the caches of workers that nothing is left or desired of.
fn sweep(backends: &Backends, used: &BTreeSet<WorkerKey>) {
    for entry in REGISTRY {
        let cache = backends.cache_of(entry.name, None);
        let keys: Vec<&WorkerKey> = used.iter().filter(|key| key.backend == entry.name).collect();
        if keys.is_empty() {
            // Mostly there is none.
            fs::remove_dir_all(&cache).ok();
        } else if entry.apart {
            let names: Vec<String> =
                keys.iter().flat_map(|key| &key.output).map(|name| plain_name(name)).collect();
            for other in fs::read_dir(&cache).into_iter().flatten().flatten() {
                if names.iter().all(|name| **name != *other.file_name()) {
                    fs::remove_dir_all(other.path()).ok();
                }
            }
        }
    }
}
