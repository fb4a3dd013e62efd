//! The file system watches for the configuration file, by the crate notify.
//!
//! A watcher has a thread and one mask, so there are two: one for the file and the directories that
//! hold its names, and one for their parents, which reports moves only. Programs that read other files,
//! or write in the home directory, wake neither.

use std::io;
use std::path::{Path, PathBuf};

use crossbeam_channel::Sender;
use notify::event::{AccessKind, CreateKind, EventKind, EventKindMask, ModifyKind};
use notify::{Config, ErrorKind, Event, INotifyWatcher, RecursiveMode, Watcher};

use crate::sys::WatchPaths;

/// `ACCESS_CLOSE`: a new file is often written and closed before it can be watched itself.
/// `MODIFY_META`: it may become readable.
const CONTENT: EventKindMask = EventKindMask::CORE.union(EventKindMask::ACCESS_CLOSE);

/// The phase of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditPhase {
    Done,
    /// Another program may have the file open for writing.
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
    /// Watches nothing yet. Events go to `sender`; if it is full, they are dropped.
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

    /// Watches the file that a path leads to now, and the names on the way.
    pub(super) fn follow(&mut self, path: &Path) -> notify::Result<()> {
        /// If paths change faster than this, another event is waiting.
        const TRIES: usize = 8;
        let mut before = None;
        for _ in 0..TRIES {
            self.paths = WatchPaths::on_the_way_to(path);
            // Files created between the look and the watch are found by the next look.
            if before.as_ref() == Some(&self.paths) {
                break;
            }
            // Also if the names are the same: they may name other files.
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

    /// The phase of the edit after an event; `None` if the event belongs to no edit.
    pub(super) fn phase(&self, event: &Event) -> Option<EditPhase> {
        if event.need_rescan() {
            return Some(EditPhase::Done);
        }
        // For a directory itself, only its removal matters, not its mode.
        let goes = !matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
        let is_way = |path: &PathBuf| self.paths.directories.contains_key(path);
        if !event.paths.iter().any(|path| self.is_name(path) || (goes && is_way(path))) {
            return None;
        }
        Some(match event.kind {
            EventKind::Modify(ModifyKind::Data(_)) => EditPhase::Open,
            // A new file is empty at first, because its creator is still writing.
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
            // Fails if the kernel has removed the watch already.
            self.watcher.unwatch(&path).ok();
        }
        for path in &paths {
            match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                Err(error) if !is_gone(&error) => return Err(error),
                // Removed again, or not readable: the parent directory's watch reports it.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use crossbeam_channel::{Receiver, unbounded};
    use notify::event::{AccessMode, DataChange, Flag, MetadataKind, RemoveKind, RenameMode};

    use super::*;

    struct Room {
        root: PathBuf,
        watches: Watches,
        _events: Receiver<notify::Result<Event>>,
        _directory: tempfile::TempDir,
    }

    /// `link` leads to `a/file`.
    fn room(watched: &str) -> Room {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        symlink("a/file", root.join("link")).unwrap();
        let (sender, events) = unbounded();
        let mut watches = Watches::new(&sender).unwrap();
        watches.follow(&root.join(watched)).unwrap();
        Room { root, watches, _events: events, _directory: directory }
    }

    impl Room {
        fn event(&self, kind: EventKind, path: &str) -> Event {
            Event::new(kind).add_path(self.root.join(path))
        }
    }

    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Read));
    const MADE: EventKind = EventKind::Create(CreateKind::File);
    const MADE_FOLDER: EventKind = EventKind::Create(CreateKind::Folder);
    const MOVED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
    const ALLOWED: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::Any);

    #[test]
    fn event_says_how_far_an_edit_of_the_file_is() {
        let room = room("a/file");
        let phase = |kind, path| room.watches.phase(&room.event(kind, path));
        for (kind, expected) in [
            (WRITTEN, Some(EditPhase::Open)),
            (MADE, Some(EditPhase::Open)),
            (OPENED, None),
            (CLOSED, Some(EditPhase::Done)),
            (MADE_FOLDER, Some(EditPhase::Done)),
            (MOVED, Some(EditPhase::Done)),
            (ALLOWED, Some(EditPhase::Done)),
            (REMOVED, Some(EditPhase::Done)),
        ] {
            assert_eq!(phase(kind, "a/file"), expected, "{kind:?}");
            for other in ["a/other", "file", "link", "a/file/in"] {
                assert_eq!(phase(kind, other), None, "{kind:?} of {other}");
            }
        }
        // Of a directory on the way only that it goes.
        for directory in ["a", ""] {
            assert_eq!(phase(MOVED, directory), Some(EditPhase::Done));
            assert_eq!(phase(REMOVED, directory), Some(EditPhase::Done));
            assert_eq!(phase(ALLOWED, directory), None);
        }
        assert_eq!(room.watches.phase(&Event::new(REMOVED)), None);
        let missed = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(room.watches.phase(&missed), Some(EditPhase::Done));
        let two = room.event(MOVED, "a/other").add_path(room.root.join("a/file"));
        assert_eq!(room.watches.phase(&two), Some(EditPhase::Done));
    }

    #[test]
    fn name_on_the_way_is_of_the_edit_where_it_is_a_link() {
        let room = room("link");
        let watches = &room.watches;
        for path in ["link", "a/file"] {
            assert_eq!(watches.phase(&room.event(MADE, path)), Some(EditPhase::Open), "{path}");
        }
        assert_eq!(watches.phase(&room.event(MADE, "a/other")), None);
        let leads = |path| watches.leads_elsewhere(&room.event(MOVED, path));
        assert!(leads("link") && leads("a") && leads(""));
        assert!(!leads("a/file"), "the watch on its directory still sees it");
        assert!(!leads("a/other") && !leads("other"));
        assert!(!watches.leads_elsewhere(&Event::new(MOVED)));
        let missed = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert!(watches.leads_elsewhere(&missed));
    }

    #[test]
    fn only_where_names_matter_all_is_seen() {
        let room = room("link");
        let sees_all = [room.root.clone(), room.root.join("a"), room.root.join("a/file")];
        let Watches { content, moves, .. } = &room.watches;
        assert_eq!(content.paths, sees_all);
        assert!(moves.paths.contains(&PathBuf::from("/")));
        assert!(sees_all.iter().all(|path| !moves.paths.contains(path)));
    }

    #[test]
    fn what_is_gone_again_is_no_fault() {
        let mut room = room("a/file");
        let gone = room.root.join("a/gone");
        room.watches.content.set(vec![gone.clone(), gone.join("in it")]).unwrap();
        // The kernel takes no such name.
        room.watches.content.set(vec!["no\0name".into()]).unwrap_err();
        let io = |kind: io::ErrorKind| notify::Error::io(kind.into());
        assert!(is_gone(&notify::Error::path_not_found()));
        for kind in
            [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::PermissionDenied]
        {
            assert!(is_gone(&io(kind)), "{kind:?}");
        }
        assert!(!is_gone(&io(io::ErrorKind::StorageFull)));
        assert!(!is_gone(&notify::Error::new(ErrorKind::MaxFilesWatch)));
    }
}
