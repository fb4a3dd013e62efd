//! Adopts what an earlier daemon left: pictures that are shown, and the backends that show them.
//!
//! Runs on the reconciler's thread. After each step, what is shown is written to a note in the runtime
//! directory, beside the records of the backends' processes. With the note, the next daemon also keeps
//! pictures that have left the library, and stops backends that are no longer needed. The note is only
//! used for backends that still run according to the records, and for pictures that the X server keeps.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::backends::{Backends, Placement, REGISTRY, registration};
use crate::compositor::{Compositor, Output};
use crate::paths;
use crate::process::plain_name;

use super::worker_key::{Placements, WorkerKey};

pub(super) struct Recovery {
    path: PathBuf,
    /// The note of the earlier daemon, until there are outputs to compare it with.
    noted: Option<Placements>,
    /// Workers of an earlier daemon whose processes run and were neither adopted nor stopped yet.
    left: BTreeSet<WorkerKey>,
}

impl Recovery {
    /// Reads the note. Must be called before any backend is started.
    pub(super) fn open(backends: &Backends) -> Self {
        let path = backends.records.directory().join("current.json");
        let noted = fs::read(&path).ok().and_then(|bytes| {
            let entries: Vec<(WorkerKey, Vec<Placement>)> = serde_json::from_slice(&bytes).ok()?;
            Some(entries.into_iter().collect())
        });
        let left = backends
            .records
            .left()
            .into_iter()
            .filter_map(|(backend, output)| {
                Some(WorkerKey {
                    backend: backend.parse().ok()?,
                    output,
                })
            });
        let left = left.collect();
        Self {
            path,
            noted: Some(noted.unwrap_or_default()),
            left,
        }
    }

    /// Notes what is shown now.
    pub(super) fn note(&self, current: &Placements) {
        if current.is_empty() {
            // Fails if there is no note, which does not matter.
            fs::remove_file(&self.path).ok();
            return;
        }
        let noted = serde_json::to_vec(&current.iter().collect::<Vec<_>>())
            .map_err(io::Error::from)
            .and_then(|bytes| paths::replace(&self.path, &bytes));
        if let Err(error) = noted {
            // Only pictures that have left the library depend on the note.
            log::debug!("cannot record the current wallpapers: {error}");
        }
    }

    /// Returns what an earlier daemon left on these outputs, once only and not before there are outputs.
    /// The workers need an order to show it again, so that they adopt their processes.
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
            placements.retain_mut(|placement| {
                let output = outputs.iter().find(|one| one.name == placement.output.name);
                // The note does not have the number, and what was noted is there still.
                placement.output.instance = output.map_or(0, |output| output.instance);
                output.is_some()
            });
            // Over X11 no process is left, as the server keeps the pictures.
            let on_root =
                running == Some(Compositor::X11) && registration(key.backend).stays_on_root;
            (on_root || self.left.contains(key)) && !placements.is_empty()
        });
        self.left.retain(|key| !recalled.contains_key(key));
        Some(recalled)
    }

    /// Takes all workers from `left`.
    pub(super) fn take_left(&mut self) -> BTreeSet<WorkerKey> {
        std::mem::take(&mut self.left)
    }

    /// Removes the caches of workers that are neither in `left` nor in `used`.
    pub(super) fn sweep<'a>(
        &'a self,
        backends: &Backends,
        used: impl Iterator<Item = &'a WorkerKey>,
    ) {
        let used: BTreeSet<&WorkerKey> = used.chain(&self.left).collect();
        for entry in REGISTRY.iter() {
            let cache = backends.cache_of(entry.name, None);
            let mut keys = used
                .iter()
                .filter(|key| key.backend == entry.name)
                .peekable();
            if keys.peek().is_none() {
                // Fails if there is no cache, which is usual.
                fs::remove_dir_all(&cache).ok();
            } else if entry.apart {
                let names: Vec<String> = keys
                    .filter_map(|key| key.output.as_deref())
                    .map(plain_name)
                    .collect();
                for other in fs::read_dir(&cache).into_iter().flatten().flatten() {
                    if names.iter().all(|name| **name != *other.file_name()) {
                        fs::remove_dir_all(other.path()).ok();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
impl Recovery {
    /// Counts these processes as running, as the records of an earlier daemon would.
    pub(super) fn add_processes(&mut self, keys: impl Iterator<Item = WorkerKey>) {
        self.left.extend(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName::{self, Feh, Mpvpaper, Swaybg};
    use crate::wallpaper::tests::{Room, outputs};
    use crate::wallpaper::worker_key::tests::placement;

    fn of(entries: &[(BackendName, &str)]) -> Placements {
        let mut all = Placements::new();
        for &(backend, output) in entries {
            all.entry(WorkerKey::new(backend, output))
                .or_default()
                .push(placement(output, 1));
        }
        all
    }

    fn keys(entries: &[(BackendName, &str)]) -> BTreeSet<WorkerKey> {
        entries
            .iter()
            .map(|&(backend, output)| WorkerKey::new(backend, output))
            .collect()
    }

    /// A recovery as if the processes of these workers still ran.
    fn with_left(room: &Room, left: &[(BackendName, &str)]) -> Recovery {
        Recovery {
            left: keys(left),
            ..Recovery::open(&room.backends)
        }
    }

    #[test]
    fn noted_picture_is_recalled_once_if_its_process_runs() {
        let room = Room::new(Vec::new());
        let noted = of(&[(Swaybg, "A"), (Swaybg, "GONE"), (Mpvpaper, "B"), (Feh, "A")]);
        Recovery::open(&room.backends).note(&noted);
        let mut recovery = with_left(&room, &[(Swaybg, "A"), (Mpvpaper, "C"), (Mpvpaper, "GONE")]);
        let wayland = Some(Compositor::Wayland);
        assert_eq!(
            recovery.recall(&[], wayland),
            None,
            "there may be outputs later"
        );
        let outputs = outputs(&["A", "B", "C"]);
        assert_eq!(
            recovery.recall(&outputs, wayland),
            Some(of(&[(Swaybg, "A")]))
        );
        assert_eq!(recovery.recall(&outputs, wayland), None);
        // The others are not adopted.
        assert_eq!(
            recovery.take_left(),
            keys(&[(Mpvpaper, "C"), (Mpvpaper, "GONE")])
        );
        assert_eq!(recovery.take_left(), BTreeSet::new());
    }

    #[test]
    fn picture_that_the_x_server_keeps_is_recalled_without_a_process() {
        let room = Room::new(Vec::new());
        Recovery::open(&room.backends).note(&of(&[(Feh, "A"), (Swaybg, "A")]));
        let outputs = outputs(&["A"]);
        let recall = |running| with_left(&room, &[]).recall(&outputs, running).unwrap();
        assert_eq!(recall(Some(Compositor::X11)), of(&[(Feh, "A")]));
        assert_eq!(recall(Some(Compositor::Wayland)), Placements::new());
        assert_eq!(recall(None), Placements::new());
    }

    #[test]
    fn note_is_removed_when_nothing_is_shown() {
        let room = Room::new(Vec::new());
        let recovery = with_left(&room, &[]);
        recovery.note(&of(&[(Feh, "A")]));
        assert!(recovery.path.exists());
        recovery.note(&Placements::new());
        assert!(!recovery.path.exists());
        recovery.note(&Placements::new());
        fs::write(&recovery.path, "no JSON").unwrap();
        let mut again = with_left(&room, &[(Feh, "A")]);
        assert_eq!(
            again.recall(&outputs(&["A"]), None),
            Some(Placements::new())
        );
    }

    #[test]
    fn unused_caches_are_removed() {
        let room = Room::new(Vec::new());
        let backends = &room.backends;
        let all = [
            (Swaybg, "A"),
            (Feh, "A"),
            (Mpvpaper, "A"),
            (Mpvpaper, "B"),
            (Mpvpaper, "C/1"),
        ];
        let cache = |(backend, output): (BackendName, &str)| {
            let key = WorkerKey::new(backend, output);
            backends.cache_of(key.backend, key.output.as_deref())
        };
        for one in all {
            fs::create_dir_all(cache(one)).unwrap();
        }
        let there = || all.map(|one| cache(one).exists());
        let sweep = |left: &[(BackendName, &str)], used: &[(BackendName, &str)]| {
            let used = keys(used);
            with_left(&room, left).sweep(backends, used.iter());
        };
        sweep(&[(Mpvpaper, "A")], &[(Swaybg, "A"), (Mpvpaper, "C/1")]);
        assert_eq!(there(), [true, false, true, false, true]);
        sweep(&[], &[(Swaybg, "B")]);
        assert_eq!(there(), [true, false, false, false, false]);
    }
}
