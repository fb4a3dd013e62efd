//! What is known about a watched directory itself, and how that is reported.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::compare::{Found, Root};
use super::walk::Scope;
use super::watched::Status;
use crate::wire::WatchState;

#[derive(Default)]
pub(super) struct State {
    root: Root,
    /// Whether all known files have vanished at once.
    is_away: bool,
    /// Why the kernel does not report all changes, if so.
    refused: Option<String>,
    unnamed: BTreeSet<PathBuf>,
    /// Files and directories that the last look could not read.
    unread: BTreeSet<PathBuf>,
    /// How many images are kept without a time limit.
    kept: usize,
}

impl State {
    pub(super) fn set_root(&mut self, root: &Root) {
        self.root = root.clone();
    }

    pub(super) fn set_away(&mut self, is_away: bool) {
        self.is_away = is_away;
    }

    pub(super) fn set_kept(&mut self, kept: usize) {
        self.kept = kept;
    }

    /// Notes whether the kernel allowed all watches.
    pub(super) fn set_watched(&mut self, watched: io::Result<()>) {
        self.refused = watched.err().map(|error| {
            format!(
                "{error}; until then, changes are found only at start, on SIGHUP and by `murald library scan`"
            )
        });
    }

    /// Notes what a look could not read or name.
    pub(super) fn note(&mut self, scope: &Scope, found: &Found) {
        self.unnamed.retain(|path| !scope.has(path));
        self.unnamed.extend(found.unnamed.iter().cloned());
        self.unread.retain(|path| !scope.has(path));
        self.unread.extend(found.unread.iter().cloned());
    }

    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Whether the directory is there, with files that are known.
    pub(super) fn is_there(&self) -> bool {
        self.root == Root::There && !self.is_away
    }

    /// The state for people. `failed`: files that the imports could not read. `is_busy`: whether files
    /// are still to be read.
    pub(super) fn status<'p>(
        &'p self,
        directory: &Path,
        failed: impl Iterator<Item = &'p PathBuf>,
        is_busy: bool,
    ) -> Status {
        let unread: BTreeSet<&PathBuf> = self.unread.iter().chain(failed).collect();
        let (state, message) = match &self.root {
            Root::Closed(why) => (WatchState::Unreadable, Some(why.clone())),
            Root::Missing => {
                let why = "the directory does not exist; its images are kept";
                (WatchState::Away, Some(why.to_owned()))
            }
            Root::There if self.is_away => {
                let why = "all its files disappeared at once; their images are kept until the files return or `murald watch remove --forget` removes them";
                (WatchState::Away, Some(why.to_owned()))
            }
            Root::There => self.there(directory, &unread, is_busy),
        };
        Status {
            state,
            message,
            unreadable: unread.len(),
        }
    }

    /// The state of a directory that is there, and what is known about its files.
    fn there(
        &self,
        directory: &Path,
        unread: &BTreeSet<&PathBuf>,
        is_busy: bool,
    ) -> (WatchState, Option<String>) {
        let first = unread.first().map(|path| {
            let inside = path.strip_prefix(directory).unwrap_or(path);
            inside.display()
        });
        let unread = first.map(|first| match unread.len() {
            1 => format!("cannot read {first}"),
            some => format!("cannot read {first} and {} more", some - 1),
        });
        let kept = match self.kept {
            0 => None,
            1 => Some("1 file is missing; its image is kept".to_owned()),
            some => Some(format!("{some} files are missing; their images are kept")),
        };
        let unnamed = match self.unnamed.len() {
            0 => None,
            _ if is_busy => None,
            1 => Some("skipped 1 file: its name is not UTF-8".to_owned()),
            some => Some(format!("skipped {some} files: their names are not UTF-8")),
        };
        let state = if self.refused.is_some() || unread.is_some() {
            WatchState::Partial
        } else {
            WatchState::Watched
        };
        let notes = [self.refused.clone(), unread, kept, unnamed].into_iter();
        let notes: Vec<String> = notes.flatten().collect();
        let notes = notes.join("; ");
        (state, Some(notes).filter(|notes| !notes.is_empty()))
    }
}
