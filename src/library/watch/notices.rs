//! Reports changes in watched directories: the thread `watch` reads one inotify instance for all of
//! them, and the table of mounts.
//!
//! Each directory's own thread adds its watches, as its disk may not answer. An event names a watch, and
//! a watch may stand for several paths: the same directory may be watched twice, or lie on the path to
//! another one. Opening and reading a file causes no event. Nothing here reads rows.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{Event, ReadFlags, WatchFlags};

use super::watched::{ANYWHERE, WatchList};
use crate::sys::{Cancel, CancelOnDrop, Inotify, WatchPaths, lock, no_watches_left, poll_until};
use crate::thread::{Spawner, Thread};

/// Events of a directory that is itself moved or deleted.
const SELF: WatchFlags = WatchFlags::DELETE_SELF
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// The same, and events of names in the directory that may lead elsewhere or be read now.
const NAMES: WatchFlags = SELF
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ATTRIB);
/// The same, and files that were written.
const FILES: WatchFlags = NAMES.union(WatchFlags::CLOSE_WRITE);
/// How often a path that keeps changing is watched again. After that, an event of the last change waits.
const TRIES: usize = 8;

/// What a watch is for.
struct Interest {
    /// The watched directory, and the number of its walk that added the watch.
    walk: (u64, u64),
    /// The path by which the directory is known.
    path: PathBuf,
    /// The only names that matter, of a directory on the path to the watched one: they may lead
    /// elsewhere now. None if its files are watched.
    names: Option<BTreeSet<OsString>>,
}

/// The watches of all directories.
pub(super) struct Notices {
    inotify: Inotify,
    interests: Mutex<HashMap<i32, Vec<Interest>>>,
}

impl Notices {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            inotify: Inotify::new()?,
            interests: Mutex::default(),
        }))
    }

    fn add(&self, interest: Interest) -> io::Result<()> {
        let what = match &interest.names {
            None => FILES,
            Some(names) if names.is_empty() => SELF,
            Some(_) => NAMES,
        };
        // Without the lock, as the disk may not answer. An event in between is of a change before the
        // directory is listed.
        let watch = match self.inotify.watch(&interest.path, what) {
            Ok(watch) => watch,
            Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => return Err(error),
            // Gone again, or not ours to watch: the directory above reports it.
            Err(_) => return Ok(()),
        };
        let mut interests = lock(&self.interests);
        let known = interests.entry(watch).or_default();
        let is_it = |one: &&mut Interest| {
            one.walk.0 == interest.walk.0 && one.names.is_some() == interest.names.is_some()
        };
        match (known.iter_mut().find(is_it), interest.names) {
            (None, names) => known.push(Interest { names, ..interest }),
            (Some(one), names) if one.walk.1 < interest.walk.1 => {
                *one = Interest { names, ..interest };
            }
            (Some(one), names) => one.names.iter_mut().for_each(|known| {
                known.extend(names.iter().flatten().cloned());
            }),
        }
        Ok(())
    }

    /// Ends the watches of a directory, except those that its walk of this number has added.
    pub(super) fn forget(&self, directory: u64, except: Option<u64>) {
        let is_kept =
            |one: &Interest| one.walk.0 != directory || except.is_some_and(|it| one.walk.1 == it);
        lock(&self.interests).retain(|watch, interests| {
            interests.retain(is_kept);
            if interests.is_empty() {
                self.inotify.unwatch(*watch);
            }
            !interests.is_empty()
        });
    }

    /// Calls `tell` with the directory and the path of each change; without a directory if events were
    /// lost. `tell` must not block.
    fn read(&self, tell: &dyn Fn(Option<u64>, &Path)) {
        let mut interests = lock(&self.interests);
        self.inotify.read(|event: &Event<'_>| {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                log::info!("the kernel dropped change events; rescanning");
                return tell(None, Path::new(ANYWHERE));
            }
            let name = event.file_name();
            let name = name.map(|name| OsStr::from_bytes(name.to_bytes()));
            for one in interests.get(&event.wd()).into_iter().flatten() {
                let directory = Some(one.walk.0);
                match (&one.names, name) {
                    (None, Some(name)) => tell(directory, &one.path.join(name)),
                    (None, None) => tell(directory, &one.path),
                    // Without a name, the event is about the directory itself.
                    (Some(names), name) if name.is_none_or(|name| names.contains(name)) => {
                        tell(directory, Path::new(ANYWHERE));
                    }
                    _ => {}
                }
            }
            if event.events().contains(ReadFlags::IGNORED) {
                interests.remove(&event.wd());
            }
        });
    }

    /// The body of the thread `watch`. `tell` is called as by [`Self::read`]; mounted and unmounted
    /// disks may concern any directory.
    pub(super) fn run(&self, end: &Cancel, tell: &dyn Fn(Option<u64>, &Path)) {
        let mounts = File::open("/proc/self/mountinfo");
        let mounts = mounts.inspect_err(|error| log::warn!("cannot notice mounted disks: {error}"));
        let mounts = mounts.ok();
        loop {
            let mut fds = vec![
                PollFd::new(end, PollFlags::IN),
                PollFd::new(&self.inotify, PollFlags::IN),
            ];
            fds.extend(
                mounts
                    .as_ref()
                    .map(|file| PollFd::new(file, PollFlags::PRI)),
            );
            if let Err(error) = poll_until(&mut fds, None) {
                log::error!("stopped watching directories: {error}");
                return;
            }
            let changed =
                |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::PRI | PollFlags::ERR);
            let is_mounted = fds.get(2).is_some_and(changed);
            if end.is_cancelled() {
                return;
            }
            self.read(tell);
            if is_mounted {
                tell(None, Path::new(ANYWHERE));
            }
        }
    }
}

/// The events of the kernel, from when a directory is watched.
#[derive(Clone)]
pub(super) struct Kernel {
    spawner: Spawner,
    directories: WatchList,
    started: Arc<Mutex<Option<Started>>>,
}

struct Started {
    notices: Arc<Notices>,
    /// Above the thread, which it ends.
    _end: CancelOnDrop,
    _thread: Thread,
}

impl Kernel {
    pub(super) fn new(spawner: Spawner, directories: WatchList) -> Self {
        Self {
            spawner,
            directories,
            started: Arc::default(),
        }
    }

    /// None if the kernel allows no more instances of inotify.
    pub(super) fn notices(&self) -> Option<Arc<Notices>> {
        let mut started = lock(&self.started);
        if started.is_none() && !self.directories.all().is_empty() {
            let start = || -> std::io::Result<Started> {
                let (notices, end) = (Notices::new()?, Cancel::new()?);
                let told = self.directories.clone();
                let until = end.clone();
                let read = Arc::clone(&notices);
                let body = move || read.run(&until, &|one, path| told.changed(one, path));
                let thread = self.spawner.spawn("watch", body)?;
                Ok(Started {
                    notices,
                    _end: CancelOnDrop(end),
                    _thread: thread,
                })
            };
            let failed = |error: &_| log::warn!("cannot notice changes of files: {error}");
            *started = start().inspect_err(failed).ok();
        }
        started.as_ref().map(|it| Arc::clone(&it.notices))
    }

    /// Ends the thread, if it was started.
    pub(super) fn end(&self) {
        let started = lock(&self.started).take();
        drop(started);
    }
}

/// The watches that one walk of a directory adds.
pub(super) struct Watches {
    /// None if the kernel allows no more instances.
    notices: Option<Arc<Notices>>,
    walk: (u64, u64),
    /// Why not everything is watched, for people.
    pub(super) refused: Option<String>,
}

impl Watches {
    pub(super) fn new(notices: Option<Arc<Notices>>, walk: (u64, u64)) -> Self {
        let refused = notices.is_none().then(|| too_many("instances"));
        Self {
            notices,
            walk,
            refused,
        }
    }

    /// Watches the files of a directory, if the kernel allows one more.
    pub(super) fn files(&mut self, directory: &Path) {
        self.add(directory, None);
    }

    /// Watches the path to a directory or file and its links, whether it is there or not.
    pub(super) fn follow(&mut self, path: &Path) {
        let mut before = None;
        for _ in 0..TRIES {
            let paths = WatchPaths::on_the_way_to(path);
            // A file made between the look and the watch shows in the next look.
            if before.as_ref() == Some(&paths) {
                break;
            }
            for (on_the_way, names) in &paths.directories {
                self.add(on_the_way, Some(names.clone()));
            }
            before = Some(paths);
        }
    }

    fn add(&mut self, path: &Path, names: Option<BTreeSet<OsString>>) {
        let Some(notices) = &self.notices else { return };
        let path = path.to_owned();
        let walk = self.walk;
        if notices.add(Interest { walk, path, names }).is_err() {
            self.refused.get_or_insert_with(|| too_many("watches"));
        }
    }

    /// Ends the watches of earlier walks.
    pub(super) fn finish(&self) {
        if let Some(notices) = &self.notices {
            notices.forget(self.walk.0, Some(self.walk.1));
        }
    }
}

fn too_many(what: &str) -> String {
    format!(
        "{}; until then, changes are found only at start, on SIGHUP and by `murald library scan`",
        no_watches_left(what)
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn heard(notices: &Notices) -> Vec<(Option<u64>, PathBuf)> {
        let heard = RefCell::new(Vec::new());
        notices.read(&|directory, path| heard.borrow_mut().push((directory, path.to_owned())));
        let mut heard = heard.into_inner();
        heard.dedup();
        heard
    }

    #[test]
    fn changes_on_the_way_are_noticed_and_other_files_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let (link, real) = (root.join("a/link"), root.join("b/c/d"));
        fs::create_dir(root.join("a")).unwrap();
        fs::create_dir_all(real.join("in")).unwrap();
        symlink(root.join("b/c"), &link).unwrap();
        let readable = fs::Permissions::from_mode(0o755);
        let changes: [(&str, &dyn Fn()); 7] = [
            ("its end, which may be read now", &|| {
                fs::set_permissions(&real, readable.clone()).unwrap();
            }),
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
            let notices = Notices::new().unwrap();
            let mut watches = Watches::new(Some(Arc::clone(&notices)), (7, 1));
            watches.follow(&link.join("d"));
            for beside in ["x", "a/x", "b/x", "b/c/x", "b/c/d/x"].map(|name| root.join(name)) {
                if fs::write(&beside, "").is_ok() {
                    fs::remove_file(&beside).unwrap();
                }
            }
            assert_eq!(heard(&notices), [], "before {what}");
            change();
            let told = heard(&notices);
            assert_eq!(told, [(Some(7), ANYWHERE.into())], "{what}");
            assert_eq!(heard(&notices), [], "once for {what}");
        }
    }

    #[test]
    fn each_directory_hears_of_a_file_by_its_own_path_until_a_walk_misses_it() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let notices = Notices::new().unwrap();
        let watch = |path: &Path, walk| {
            let mut watches = Watches::new(Some(Arc::clone(&notices)), walk);
            watches.files(path);
            watches.finish();
        };
        watch(&real, (1, 1));
        watch(&link, (2, 1));
        fs::write(real.join("a"), "x").unwrap();
        let (one, two) = ((Some(1), real.join("a")), (Some(2), link.join("a")));
        let told = heard(&notices);
        assert!(told.contains(&one) && told.contains(&two), "{told:?}");
        fs::read(real.join("a")).unwrap();
        assert_eq!(heard(&notices), [], "only read");
        watch(directory.path(), (2, 2));
        fs::remove_file(real.join("a")).unwrap();
        assert_eq!(heard(&notices), [one]);
        notices.forget(1, None);
        fs::write(real.join("b"), "x").unwrap();
        assert_eq!(heard(&notices), []);
    }
}
