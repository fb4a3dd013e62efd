//! The films and pages that we have paused: known by their files, as the host is told of them, and noted
//! on disk, so that the next daemon has them go on.
//!
//! Runs on the worker's thread. A host that has no use for a pause answers that all is well, and goes
//! on.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::client::Client;
use crate::backends::Error;
use crate::paths;

pub(super) struct Rest {
    note: PathBuf,
    /// What we have paused.
    paused: BTreeSet<String>,
    /// Those of them that were loaded again since, and play.
    loaded: BTreeSet<String>,
}

impl Rest {
    /// What an earlier daemon has paused is ours to have go on.
    pub(super) fn open(directory: &Path) -> Self {
        let note = directory.join("wal-qt.paused");
        let noted = fs::read(&note).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { note, paused: noted.unwrap_or_default(), loaded: BTreeSet::new() }
    }

    /// The host loads a file, and plays it.
    pub(super) fn loaded(&mut self, source: &str) {
        if self.paused.contains(source) {
            self.loaded.insert(source.to_owned());
        }
    }

    /// There is no host any more.
    pub(super) fn forget(&mut self) {
        self.paused.clear();
        self.loaded.clear();
        fs::remove_file(&self.note).ok();
    }

    /// Whether these stand still, and no others.
    pub(super) fn is(&self, wanted: &BTreeSet<String>) -> bool {
        self.paused == *wanted && self.loaded.is_disjoint(wanted)
    }

    /// Pauses these, and has those go on that it has paused and that are not among them.
    pub(super) fn pause(
        &mut self,
        client: &Client,
        wanted: &BTreeSet<String>,
    ) -> Result<(), Error> {
        for source in self.paused.difference(wanted) {
            match client.playback(source, false) {
                // It shows that no longer, or knows of no pause.
                Err(Error::Refused(why)) => log::debug!("{why}"),
                told => told?,
            }
        }
        let fresh: Vec<&String> = wanted
            .iter()
            .filter(|source| !self.paused.contains(*source) || self.loaded.contains(*source))
            .collect();
        // Before they stand still: else, after a kill, nobody would have them go on.
        if let Err(error) = self.write(wanted) {
            let why = format!("what is paused cannot be noted: {}: {error}", self.note.display());
            return Err(Error::Unavailable(why));
        }
        for source in fresh {
            client.playback(source, true)?;
        }
        self.paused.clone_from(wanted);
        self.loaded.clear();
        Ok(())
    }

    fn write(&self, paused: &BTreeSet<String>) -> io::Result<()> {
        if paused.is_empty() {
            return match fs::remove_file(&self.note) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        paths::replace(&self.note, &serde_json::to_vec(paused)?)
    }
}
