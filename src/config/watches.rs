//! What the kernel is asked to watch, through the crate notify.
//!
//! Its watchers sleep in threads of their own and have one mask each, so there are two: one for the
//! directories where names matter and for the file, and one for directories on the way to those, of
//! which only a move matters. A program that reads beside the file wakes neither, and one that writes
//! in the home directory does not either.

use std::io;
use std::path::{Path, PathBuf};

use crossbeam_channel::Sender;
use notify::event::{AccessKind, CreateKind, EventKind, EventKindMask, ModifyKind};
use notify::{Config, ErrorKind, Event, INotifyWatcher, RecursiveMode, Watcher};

use super::watch_paths::WatchPaths;

/// `ACCESS_CLOSE`: a new file is often written and closed before it can be watched itself.
/// `MODIFY_META`: it may become readable.
const CONTENT: EventKindMask = EventKindMask::CORE.union(EventKindMask::ACCESS_CLOSE);

/// How far an edit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditPhase {
    Done,
    /// Somebody may have it open for writing.
    Open,
}

/// Dropping it ends the watch.
pub(super) struct Watches {
    content: Watched,
    moves: Watched,
    paths: WatchPaths,
}

struct Watched {
    watcher: INotifyWatcher,
    paths: Vec<PathBuf>,
}

impl Watches {
    /// Of nothing yet. Events go to `sender`; one that is full has enough to wake its reader.
    pub(super) fn new(sender: &Sender<notify::Result<Event>>) -> notify::Result<Self> {
        let watched = |mask| {
            let sender = sender.clone();
            let handler = move |event| drop(sender.try_send(event));
            let config = Config::default().with_event_kinds(mask);
            let watcher = INotifyWatcher::new(handler, config)?;
            Ok::<_, notify::Error>(Watched { watcher, paths: Vec::new() })
        };
        Ok(Self {
            content: watched(CONTENT)?,
            moves: watched(EventKindMask::MODIFY_NAME)?,
            paths: WatchPaths::default(),
        })
    }

    /// Watches where a path leads now, and what is under these names now.
    pub(super) fn follow(&mut self, path: &Path) -> notify::Result<()> {
        /// Somebody who moves things faster than this has an event waiting for us.
        const TRIES: usize = 8;
        let mut before = None;
        for _ in 0..TRIES {
            self.paths = WatchPaths::on_the_way_to(path);
            // What was made between the look and the watch shows in the next look.
            if before.as_ref() == Some(&self.paths) {
                break;
            }
            // Also where the names are the same: another file may be under them.
            let (names, way): (Vec<_>, Vec<_>) =
                self.paths.directories.iter().partition(|(_, names)| !names.is_empty());
            let path_of = |(path, _): (&PathBuf, _)| path.clone();
            self.moves.set(way.into_iter().map(path_of).collect())?;
            let names = names.into_iter().map(path_of);
            self.content.set(names.chain(self.paths.file.clone()).collect())?;
            before = Some(self.paths.clone());
        }
        Ok(())
    }

    /// Whether the path may lead elsewhere after an event, so that edits could go unseen. A file that is
    /// replaced under its name is still seen by its directory's watch.
    pub(super) fn leads_elsewhere(&self, event: &Event) -> bool {
        let is_file = |path: &PathBuf| self.paths.file.as_ref() == Some(path);
        let is_on_the_way =
            |path: &PathBuf| self.is_name(path) || self.paths.directories.contains_key(path);
        event.need_rescan() || event.paths.iter().any(|path| !is_file(path) && is_on_the_way(path))
    }

    /// How far an edit is after an event; `None` where the event is none of one.
    pub(super) fn phase(&self, event: &Event) -> Option<EditPhase> {
        if event.need_rescan() {
            return Some(EditPhase::Done);
        }
        // Of a directory itself only that it goes, not what it is allowed.
        let goes = !matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
        let is_way = |path: &PathBuf| self.paths.directories.contains_key(path);
        if !event.paths.iter().any(|path| self.is_name(path) || (goes && is_way(path))) {
            return None;
        }
        Some(match event.kind {
            EventKind::Modify(ModifyKind::Data(_)) => EditPhase::Open,
            // A new file is empty at first, and whoever made it is still writing.
            EventKind::Create(kind) if kind != CreateKind::Folder => EditPhase::Open,
            EventKind::Access(AccessKind::Open(_)) => return None,
            _ => EditPhase::Done,
        })
    }

    /// The file, or a name on the way to it that could become another.
    fn is_name(&self, path: &PathBuf) -> bool {
        let names = path.parent().and_then(|parent| self.paths.directories.get(parent));
        let is_name = names.zip(path.file_name()).is_some_and(|(names, name)| names.contains(name));
        is_name || self.paths.file.as_ref() == Some(path)
    }
}

impl Watched {
    fn set(&mut self, paths: Vec<PathBuf>) -> notify::Result<()> {
        for path in std::mem::take(&mut self.paths) {
            // Fails where the kernel has given it up already.
            self.watcher.unwatch(&path).ok();
        }
        for path in &paths {
            match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                Err(error) if !is_gone(&error) => return Err(error),
                // Gone again, or not ours to watch: the directory above tells of it.
                _ => {}
            }
        }
        self.paths = paths;
        Ok(())
    }
}

fn is_gone(error: &notify::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => {
            matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
        }
        _ => false,
    }
}
