//! Watches one directory through the kernel: changes in it (with the crate notify), the links that
//! lead to it, and the table of mounts.
//!
//! The thread that lists a directory adds the watches, and knows which the kernel refused. notify's
//! thread may hang with the disk; each watched directory has one of its own. Opening and reading a file
//! causes no event. Nothing here reads rows.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use notify::event::{EventKind, EventKindMask, ModifyKind, RenameMode};
use notify::{Config, ErrorKind, INotifyWatcher, RecursiveMode, Watcher};
use rustix::fs::inotify::WatchFlags;

use super::settings::ANYWHERE;
use crate::sys::{Inotify, WatchPaths, no_watches_left};

/// The watches of one directory. Dropping them ends them.
pub(super) struct Notices {
    kernel: Option<(INotifyWatcher, Way)>,
    /// Why not everything is watched, for people.
    refused: Option<String>,
}

impl Notices {
    /// Watches nothing yet. `tell` is called with the path of each event, and with [`ANYWHERE`] if
    /// events were lost; it must not block.
    pub(super) fn new(tell: impl Fn(PathBuf) + Send + 'static) -> Self {
        let mask = EventKindMask::CREATE
            | EventKindMask::REMOVE
            | EventKindMask::MODIFY_NAME
            | EventKindMask::ACCESS_CLOSE;
        let handler = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if !event.need_rescan() => {
                // A rename within the directory is reported once more, with both paths.
                let again = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
                let is_new = |_: &PathBuf| event.kind != EventKind::Any && event.kind != again;
                let paths = event.paths.into_iter().filter(is_new);
                paths.for_each(&tell);
            }
            _ => {
                log::info!("the kernel dropped change events; rescanning");
                tell(PathBuf::from(ANYWHERE));
            }
        };
        let watcher = INotifyWatcher::new(handler, Config::default().with_event_kinds(mask));
        match (watcher, Way::new()) {
            (Ok(watcher), Ok(way)) => Self {
                kernel: Some((watcher, way)),
                refused: None,
            },
            _ => Self {
                kernel: None,
                refused: Some(too_many("instances")),
            },
        }
    }

    /// Watches a directory, if the kernel allows one more.
    pub(super) fn watch(&mut self, directory: &Path) {
        let Some((watcher, _)) = &mut self.kernel else {
            return;
        };
        let watched = watcher.watch(directory, RecursiveMode::NonRecursive);
        if let Err(error) = watched
            && matches!(error.kind, ErrorKind::MaxFilesWatch)
        {
            self.refused.get_or_insert_with(|| too_many("watches"));
        }
    }

    /// Watches the path to a directory and its links, as far as the kernel allows.
    pub(super) fn follow(&mut self, directory: &Path) {
        let Some((_, way)) = &mut self.kernel else {
            return;
        };
        if way.add(directory).is_err() {
            self.refused.get_or_insert_with(|| too_many("watches"));
        }
    }

    pub(super) fn way(&self) -> Option<&Way> {
        self.kernel.as_ref().map(|(_, way)| way)
    }

    pub(super) fn refused(&self) -> Option<String> {
        self.refused.clone()
    }
}

fn too_many(what: &str) -> String {
    format!(
        "{}; until then, changes are found only at start, on SIGHUP and by `murald library scan`",
        no_watches_left(what)
    )
}

/// Events of a directory that is itself moved or deleted.
const SELF: WatchFlags = WatchFlags::DELETE_SELF
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// The same, and events of names in the directory that may lead elsewhere now.
const NAMES: WatchFlags = SELF
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE);
/// How often a path that keeps changing is watched again. After that, an event of the last change waits.
const TRIES: usize = 8;

pub(super) struct Way {
    inotify: Inotify,
    /// The names that matter, in any of the directories. A false match only costs a look.
    names: BTreeSet<OsString>,
}

impl Way {
    /// A way without watches.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            inotify: Inotify::new()?,
            names: BTreeSet::new(),
        })
    }

    /// Watches the way to one more directory, whether it is there or not. Fails if the kernel allows no
    /// more watches.
    pub(super) fn add(&mut self, directory: &Path) -> io::Result<()> {
        let mut before = None;
        for _ in 0..TRIES {
            let paths = WatchPaths::on_the_way_to(directory);
            // A file made between the look and the watch shows in the next look.
            if before.as_ref() == Some(&paths) {
                break;
            }
            for (on_the_way, names) in &paths.directories {
                self.names.extend(names.iter().cloned());
                let what = if names.is_empty() { SELF } else { NAMES };
                match self.inotify.watch(on_the_way, what) {
                    Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                        return Err(error);
                    }
                    // Gone again, or not ours to watch: the directory above reports it.
                    _ => {}
                }
            }
            before = Some(paths);
        }
        Ok(())
    }

    /// Whether a watched path may lead elsewhere since the last call. Never blocks.
    pub(super) fn has_changed(&self) -> bool {
        let mut changed = false;
        self.inotify.read(|event| {
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            // An event without a name is about the directory itself, or the kernel's queue was full.
            changed |= name.is_none_or(|name| self.names.contains(name));
        });
        changed
    }
}

impl AsFd for Way {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

const TABLE: &str = "/proc/self/mountinfo";

pub(super) struct Mounts(File);

impl Mounts {
    pub(super) fn open() -> io::Result<Self> {
        File::open(TABLE).map(Self)
    }

    /// The mounts that matter to a directory.
    pub(super) fn of(directory: &Path) -> Vec<String> {
        of(&fs::read_to_string(TABLE).unwrap_or_default(), directory)
    }
}

/// A mount by its root and its mount point. The same disk may have another number when it is mounted
/// again.
pub(super) type Mounted = (String, PathBuf);

pub(super) fn mounted(mounts: &[String]) -> BTreeSet<Mounted> {
    let one = |mount: &String| {
        let mut fields = mount.split(' ').skip(3).map(plain);
        Some((fields.next()?, PathBuf::from(fields.next()?)))
    };
    mounts.iter().filter_map(one).collect()
}

impl AsFd for Mounts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn of(table: &str, directory: &Path) -> Vec<String> {
    let matters = |line: &&str| {
        let point = line
            .split(' ')
            .nth(4)
            .map(|point| PathBuf::from(plain(point)));
        point.is_some_and(|point| directory.starts_with(&point) || point.starts_with(directory))
    };
    // Only the first five fields: the optional ones change with other mounts.
    let lines = table.lines().filter(matters);
    lines
        .map(|line| line.split(' ').take(5).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Decodes a path of the table, in which spaces, tabs, newlines and backslashes are octal.
fn plain(point: &str) -> String {
    let codes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    codes.iter().fold(point.to_owned(), |text, (code, plain)| {
        text.replace(code, plain)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn changes_on_the_way_are_noticed_and_other_files_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let (link, real) = (root.join("a/link"), root.join("b/c/d"));
        fs::create_dir(root.join("a")).unwrap();
        fs::create_dir_all(real.join("in")).unwrap();
        symlink(root.join("b/c"), &link).unwrap();
        let changes: [(&str, &dyn Fn()); 6] = [
            ("the link", &|| {
                symlink(root.join("b"), root.join("new")).unwrap();
                fs::rename(root.join("new"), &link).unwrap();
                fs::remove_file(&link).unwrap();
                symlink(root.join("b/c"), &link).unwrap();
            }),
            ("where the link lies", &|| {
                fs::rename(root.join("a"), root.join("a.old")).unwrap();
                fs::rename(root.join("a.old"), root.join("a")).unwrap();
            }),
            ("a directory above", &|| {
                fs::rename(root.join("b"), root.join("b.old")).unwrap();
                fs::rename(root.join("b.old"), root.join("b")).unwrap();
            }),
            ("its end", &|| fs::rename(&real, root.join("d")).unwrap()),
            ("its end, which comes", &|| fs::create_dir(&real).unwrap()),
            ("what was all of it", &|| {
                fs::remove_dir_all(root.join("b")).unwrap()
            }),
        ];
        for (what, change) in changes {
            let mut way = Way::new().unwrap();
            way.add(&link.join("d")).unwrap();
            for beside in ["x", "a/x", "b/x", "b/c/x", "b/c/d/x"].map(|name| root.join(name)) {
                if fs::write(&beside, "").is_ok() {
                    fs::remove_file(&beside).unwrap();
                }
            }
            assert!(!way.has_changed(), "before {what}");
            change();
            assert!(way.has_changed(), "{what}");
            assert!(!way.has_changed(), "once for {what}");
        }
    }

    #[test]
    fn mounts_on_the_way_and_inside_matter() {
        let table = "1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /home/u/My\\040Walls rw - ext4 b rw\n\
                     3 1 8:3 / /mnt rw - ext4 c rw\n4 2 8:4 / /home/u/My\\040Walls/nas rw - nfs d rw";
        let numbers = |directory: &str| -> String {
            of(table, Path::new(directory))
                .iter()
                .map(|line| &line[..1])
                .collect()
        };
        assert_eq!(numbers("/home/u/My Walls"), "124");
        assert_eq!(numbers("/mnt/x"), "13");
        assert_eq!(numbers("/srv"), "1");
        let walls = ("/".to_owned(), PathBuf::from("/home/u/My Walls"));
        assert!(mounted(&of(table, Path::new("/home/u/My Walls"))).contains(&walls));
    }
}
