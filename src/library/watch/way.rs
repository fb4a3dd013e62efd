//! The way to a directory: every part of its path that may be replaced, or led elsewhere if it is a link.
//!
//! The kernel is asked for these alone: a program that writes to files beside them wakes nobody. The look
//! that lists the directory asks, as a disk on the way may hang; the thread `watch` reads the answers.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::WatchFlags;

use crate::sys::{Inotify, WatchPaths};

/// A directory that goes away itself.
const SELF: WatchFlags = WatchFlags::DELETE_SELF
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// One in which a name may be given to something else.
const NAMES: WatchFlags =
    SELF.union(WatchFlags::CREATE).union(WatchFlags::DELETE).union(WatchFlags::MOVE);
/// Somebody who moves things faster than this has an event waiting for us.
const TRIES: usize = 8;

pub(super) struct Way {
    inotify: Inotify,
    /// The names that matter, in any of the directories: one too many costs a look.
    names: BTreeSet<OsString>,
}

impl Way {
    /// To nowhere yet.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { inotify: Inotify::new()?, names: BTreeSet::new() })
    }

    /// Watches the way to one more directory, whether it is there or not. Fails if the kernel allows no
    /// more watches.
    pub(super) fn add(&mut self, directory: &Path) -> io::Result<()> {
        let mut before = None;
        for _ in 0..TRIES {
            let paths = WatchPaths::on_the_way_to(directory);
            // What was made between the look and the watch shows in the next look.
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
                    // Gone again, or not ours to watch: the directory above tells of it.
                    _ => {}
                }
            }
            before = Some(paths);
        }
        Ok(())
    }

    /// Whether any of it may lead elsewhere since this was asked last. Never blocks.
    pub(super) fn has_changed(&self) -> bool {
        let mut changed = false;
        self.inotify.read(|event| {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            // Without a name it is the directory itself, or more than the kernel tells of.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_part_of_a_way_tells_and_nothing_beside_it() {
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
            ("what was all of it", &|| fs::remove_dir_all(root.join("b")).unwrap()),
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
}
