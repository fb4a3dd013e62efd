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

use crate::backends::{Backends, Placement, REGISTRY, registration};
use crate::compositor::{Compositor, Output};
use crate::config::BackendName;
use crate::paths;
use crate::process::plain_name;

use super::plan::Placements;
use super::worker_key::WorkerKey;

pub(super) struct Recovery {
    path: PathBuf,
    /// As noted, until there are outputs to compare it with.
    noted: Option<Placements>,
    /// Whose backends run, and nobody has seen to them yet.
    left: BTreeSet<WorkerKey>,
    /// Recalled, and not told of yet.
    unannounced: BTreeSet<WorkerKey>,
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

    /// What an earlier daemon left on these outputs, once there are any, and once only. Its workers
    /// are to be told to show it again, so that they take their processes over.
    pub(super) fn recall(
        &mut self,
        outputs: &[Output],
        running: Option<Compositor>,
    ) -> Option<Placements> {
        if outputs.is_empty() {
            return None;
        }
        let mut recalled = self.noted.take()?;
        recalled.retain(|key, placements| {
            placements.retain(|placement| outputs.iter().any(|o| o.name == placement.output.name));
            // Over X11 there is no process left: the server keeps its pictures.
            let on_root =
                running == Some(Compositor::X11) && registration(key.backend).stays_on_root;
            (on_root || self.left.contains(key)) && !placements.is_empty()
        });
        self.left.retain(|key| !recalled.contains_key(key));
        self.unannounced.extend(recalled.keys().cloned());
        Some(recalled)
    }

    /// Those of whose processes nothing is desired, once all that they may cover is covered by
    /// others.
    pub(super) fn take_covered(
        &mut self,
        desired: &Placements,
        outputs: &[Output],
    ) -> BTreeSet<WorkerKey> {
        let is_covered = |key: &WorkerKey| {
            let others = || desired.iter().filter(|(other, _)| *other != key);
            let mut served = outputs.iter().filter(|output| key.serves(&output.name));
            served.all(|output| {
                let mut shown = others().flat_map(|(_, placements)| placements);
                shown.any(|placement| placement.output.name == output.name)
            })
        };
        let left = std::mem::take(&mut self.left).into_iter();
        let undesired = left.filter(|key| !desired.contains_key(key));
        let (covered, left) = undesired.partition(is_covered);
        self.left = left;
        covered
    }

    /// All whose processes nobody has seen to.
    pub(super) fn take_left(&mut self) -> BTreeSet<WorkerKey> {
        std::mem::take(&mut self.left)
    }

    /// Whether it shows what was recalled, and nobody was told of it yet.
    pub(super) fn is_unannounced(&self, key: &WorkerKey) -> bool {
        self.unannounced.contains(key)
    }

    pub(super) fn announced(&mut self, key: &WorkerKey) {
        self.unannounced.remove(key);
    }

    /// Removes the caches of workers that nothing is left or desired of; `used` are the others.
    pub(super) fn sweep<'a>(
        &'a self,
        backends: &Backends,
        used: impl Iterator<Item = &'a WorkerKey>,
    ) {
        if !paths::answers_in(&backends.cache) {
            return;
        }
        let used: BTreeSet<&WorkerKey> = used.chain(&self.left).collect();
        for entry in REGISTRY {
            let cache = backends.cache_of(entry.name, None);
            let mut keys = used.iter().filter(|key| key.backend == entry.name).peekable();
            if keys.peek().is_none() {
                // Mostly there is none.
                fs::remove_dir_all(&cache).ok();
            } else if entry.apart {
                let names: Vec<String> =
                    keys.filter_map(|key| key.output.as_deref()).map(plain_name).collect();
                for other in fs::read_dir(&cache).into_iter().flatten().flatten() {
                    if names.iter().all(|name| **name != *other.file_name()) {
                        fs::remove_dir_all(other.path()).ok();
                    }
                }
            }
        }
    }
}
