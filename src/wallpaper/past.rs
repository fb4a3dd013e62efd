//! What an earlier daemon left: pictures that hang, and the setters that show them.
//!
//! Runs on the stage's thread. What hangs is noted in the runtime directory after each step, beside
//! the records of the setters. So the next daemon also keeps pictures that have left the library,
//! and ends setters of ours that nothing is wanted of any more. A note is about what the records
//! say still runs; without one, nothing is lost but that.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backends::{Hanging, REGISTRY, Setters};
use crate::config::BackendName;
use crate::process::plain_name;

use super::plan::Shown;
use super::seat::Seat;
use super::stage::Stage;
use super::survey::Survey;

pub(super) struct Past {
    path: PathBuf,
    /// As noted, until there are outputs to compare it with.
    noted: Option<Shown>,
    /// Whose setters run, and nobody has seen to them yet.
    pub(super) left: BTreeSet<Seat>,
    /// Recalled, and not told of yet.
    pub(super) untold: BTreeSet<Seat>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    backend: BackendName,
    output: Option<String>,
    scene: Vec<Hanging>,
}

impl Past {
    /// Before any setter is started.
    pub(super) fn open(setters: &Setters) -> Self {
        let path = setters.roster.directory().join("hanging.json");
        let noted = fs::read(&path).ok().and_then(|bytes| {
            let entries: Vec<Entry> = serde_json::from_slice(&bytes).ok()?;
            let seat =
                |entry: Entry| (Seat { backend: entry.backend, output: entry.output }, entry.scene);
            Some(entries.into_iter().map(seat).collect())
        });
        let left =
            setters.roster.left().into_iter().filter_map(|(backend, output)| {
                Some(Seat { backend: backend.parse().ok()?, output })
            });
        let left = left.collect();
        Self { path, noted: Some(noted.unwrap_or_default()), left, untold: BTreeSet::new() }
    }

    /// Notes what hangs now.
    pub(super) fn note(&self, shown: &Shown) {
        if shown.is_empty() {
            // Where there is none, that was so before.
            fs::remove_file(&self.path).ok();
            return;
        }
        let entry = |(seat, scene): (&Seat, &Vec<Hanging>)| Entry {
            backend: seat.backend,
            output: seat.output.clone(),
            scene: scene.clone(),
        };
        let entries: Vec<Entry> = shown.iter().map(entry).collect();
        let part = self.path.with_extension("part");
        let noted = serde_json::to_vec(&entries)
            .map_err(io::Error::from)
            .and_then(|bytes| fs::write(&part, bytes))
            .and_then(|()| fs::rename(&part, &self.path));
        if let Err(error) = noted {
            // Only pictures that leave the library depend on it.
            log::debug!("what hangs is not noted: {error}");
        }
    }
}

impl Stage {
    /// Takes what an earlier daemon left for what is shown, once outputs are there. Its seats are
    /// shown again at the next look, so that their setters are taken over.
    pub(super) fn recall(&mut self, survey: &Survey) {
        // Those of the survey: what is planned by it must not come before.
        let outputs = &survey.outputs;
        if outputs.is_empty() {
            return;
        }
        let Some(noted) = self.past.noted.take() else { return };
        for (seat, mut scene) in noted {
            scene.retain(|hanging| outputs.iter().any(|one| one.name == hanging.output.name));
            // feh leaves no process: the X server keeps its pictures.
            let hangs = seat.backend == BackendName::Feh || self.past.left.contains(&seat);
            if hangs && !scene.is_empty() {
                self.past.left.remove(&seat);
                self.past.untold.insert(seat.clone());
                self.stale.insert(seat.clone());
                self.shown.insert(seat, scene);
            }
        }
        let wanted = survey.wanted(&self.shown);
        // What else is left goes once all that it may cover is covered by others.
        let is_covered = |seat: &Seat| {
            let others = || wanted.iter().filter(|(other, _)| *other != seat);
            let mut served = outputs.iter().filter(|output| seat.serves(&output.name));
            served.all(|output| {
                let mut hung = others().flat_map(|(_, scene)| scene);
                hung.any(|hanging| hanging.output.name == output.name)
            })
        };
        let left = std::mem::take(&mut self.past.left).into_iter();
        let left = left.filter(|seat| !wanted.contains_key(seat));
        let (covered, left): (BTreeSet<Seat>, _) = left.partition(is_covered);
        self.past.left = left;
        self.shown.extend(covered.into_iter().map(|seat| (seat, Vec::new())));
        let used = wanted.keys().chain(self.shown.keys()).chain(&self.past.left);
        sweep(&self.setters, &used.cloned().collect());
        self.look_again = true;
    }
}

/// Removes the caches of seats that nothing is left or wanted of.
fn sweep(setters: &Setters, used: &BTreeSet<Seat>) {
    for entry in REGISTRY {
        let cache = setters.cache_of(entry.name, None);
        let seats: Vec<&Seat> = used.iter().filter(|seat| seat.backend == entry.name).collect();
        if seats.is_empty() {
            // Mostly there is none.
            fs::remove_dir_all(&cache).ok();
        } else if entry.apart {
            let names: Vec<String> =
                seats.iter().flat_map(|seat| &seat.output).map(|name| plain_name(name)).collect();
            for other in fs::read_dir(&cache).into_iter().flatten().flatten() {
                if names.iter().all(|name| **name != *other.file_name()) {
                    fs::remove_dir_all(other.path()).ok();
                }
            }
        }
    }
}
