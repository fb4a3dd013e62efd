//! Reports changes of files: one instance of inotify for all subscribers.
//!
//! A subscriber adds its watches on its own thread, as the disk may not answer. An event names a watch,
//! and a watch may stand for several paths and subscribers: two directories may be watched through each
//! other, or one may lie on the path to another. Opening and reading a file causes no event.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::inotify::{Event, ReadFlags, WatchFlags};

use crate::sys::{Inotify, lock, on_the_way_to};

/// The path of a change that may concern any file.
pub(crate) const ANYWHERE: &str = "/";
/// Events of names in a directory that may lead elsewhere or be read now.
pub(crate) const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ATTRIB);
/// Events of a file or directory that is itself moved or deleted.
const SELF: WatchFlags = WatchFlags::DELETE_SELF.union(WatchFlags::MOVE_SELF);
/// How often a path that keeps changing is watched again. After that, an event of the last change waits.
const TRIES: usize = 8;

/// A change of files.
pub(crate) struct Notice<'a> {
    /// Something has happened at this path, or anywhere below it.
    pub(crate) path: &'a Path,
    /// Whether a program may still be writing the file.
    pub(crate) is_unfinished: bool,
}

type Hear = Arc<dyn Fn(&Notice<'_>) + Send + Sync>;

/// What a watch is for.
struct Interest {
    subscriber: u64,
    /// The number of the subscriber's round that added the watch.
    round: u64,
    /// The path by which the file or directory is known.
    path: PathBuf,
    /// The only names that matter, of a directory on the path to a watched one: they may lead elsewhere
    /// now. None if all names matter.
    names: Option<BTreeSet<OsString>>,
    events: WatchFlags,
}

impl Interest {
    fn is_in(&self, event: &Event<'_>) -> bool {
        let own = ReadFlags::from_bits_retain(self.events.bits());
        let always = ReadFlags::IGNORED | ReadFlags::UNMOUNT;
        let name = event.file_name().map(name);
        // Without a name, the event is about the directory itself.
        let is_named = |names: &BTreeSet<OsString>| name.is_none_or(|name| names.contains(name));
        event.events().intersects(own | always) && self.names.as_ref().is_none_or(is_named)
    }

    fn path_of(&self, event: &Event<'_>) -> PathBuf {
        match (&self.names, event.file_name()) {
            (Some(_), _) => ANYWHERE.into(),
            (None, Some(of)) => self.path.join(name(of)),
            (None, None) => self.path.clone(),
        }
    }
}

fn name(of: &std::ffi::CStr) -> &OsStr {
    OsStr::from_bytes(of.to_bytes())
}

/// The watches of all subscribers.
pub(super) struct Files {
    epoll: Arc<OwnedFd>,
    token: u64,
    /// Made for the first watch. The kernel may allow none now and one later.
    inotify: Mutex<Option<Arc<Inotify>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    subscribers: HashMap<u64, Hear>,
    interests: HashMap<i32, Vec<Interest>>,
    /// How many watches were ended.
    ended: u64,
}

impl Files {
    /// Events of the descriptor get this token.
    pub(super) fn new(epoll: Arc<OwnedFd>, token: u64) -> Self {
        Self {
            epoll,
            token,
            inotify: Mutex::default(),
            state: Mutex::default(),
        }
    }

    fn inotify(&self) -> io::Result<Arc<Inotify>> {
        let mut inotify = lock(&self.inotify);
        if let Some(made) = &*inotify {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(Inotify::new()?);
        let data = EventData::new_u64(self.token);
        epoll::add(&self.epoll, &made, data, EventFlags::IN)?;
        Ok(Arc::clone(inotify.insert(made)))
    }

    /// Adds a watch. `how`: further flags for the kernel.
    fn add(&self, interest: Interest, how: WatchFlags) -> io::Result<()> {
        let inotify = self.inotify()?;
        let flags = interest.events | how | WatchFlags::MASK_ADD;
        loop {
            let ended = lock(&self.state).ended;
            // Without the lock, as the disk may not answer. An event in between is of a change before
            // the directory is listed.
            let watch = match inotify.watch(&interest.path, flags) {
                Ok(watch) => watch,
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => return Err(error),
                // Deleted again, or not ours to watch: the directory above reports it.
                Err(_) => return Ok(()),
            };
            let mut state = lock(&self.state);
            // Another subscriber may have ended the same watch in between.
            if state.ended == ended {
                state.insert(watch, interest);
                return Ok(());
            }
        }
    }

    /// Ends the watches of a subscriber, except those of this round.
    fn forget(&self, subscriber: u64, except: Option<u64>) {
        let Some(inotify) = lock(&self.inotify).clone() else {
            return;
        };
        let is_kept = |one: &Interest| one.subscriber != subscriber || except == Some(one.round);
        let mut state = lock(&self.state);
        let State {
            interests, ended, ..
        } = &mut *state;
        interests.retain(|watch, interests| {
            interests.retain(is_kept);
            if interests.is_empty() {
                inotify.unwatch(*watch);
                *ended += 1;
            }
            !interests.is_empty()
        });
    }

    /// Reads all pending events and calls the subscribers.
    pub(super) fn read(&self) {
        let Some(inotify) = lock(&self.inotify).clone() else {
            return;
        };
        inotify.read(|event| {
            let told = lock(&self.state).told(event);
            // Without the lock: a subscriber may end its watches.
            for (hear, path) in told {
                hear(&Notice {
                    path: &path,
                    is_unfinished: is_unfinished(event.events()),
                });
            }
        });
    }
}

/// A new file is empty at first, because its creator is still writing.
fn is_unfinished(events: ReadFlags) -> bool {
    let is_new = events.contains(ReadFlags::CREATE) && !events.contains(ReadFlags::ISDIR);
    is_new || events.contains(ReadFlags::MODIFY)
}

impl State {
    fn insert(&mut self, watch: i32, interest: Interest) {
        let known = self.interests.entry(watch).or_default();
        let is_it = |one: &&mut Interest| {
            one.subscriber == interest.subscriber && one.names.is_some() == interest.names.is_some()
        };
        match known.iter_mut().find(is_it) {
            None => known.push(interest),
            Some(one) if one.round < interest.round => *one = interest,
            Some(one) => {
                one.events |= interest.events;
                if let Some(names) = &mut one.names {
                    names.extend(interest.names.into_iter().flatten());
                }
            }
        }
    }

    /// The subscribers of an event, with the path as each knows it.
    fn told(&mut self, event: &Event<'_>) -> Vec<(Hear, PathBuf)> {
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            log::info!("the kernel dropped change events; rescanning");
            let all = self.subscribers.values();
            return all
                .map(|hear| (Arc::clone(hear), ANYWHERE.into()))
                .collect();
        }
        let interests = self.interests.get(&event.wd()).into_iter().flatten();
        let with = interests.filter(|one| one.is_in(event));
        let told = with.filter_map(|one| {
            let hear = self.subscribers.get(&one.subscriber)?;
            Some((Arc::clone(hear), one.path_of(event)))
        });
        let told = told.collect();
        if event.events().contains(ReadFlags::IGNORED) {
            self.interests.remove(&event.wd());
            // If it was added just now and is not noted yet, it is added again.
            self.ended += 1;
        }
        told
    }
}

/// A thread that watches files; dropping this ends its watches.
pub(crate) struct Subscriber {
    files: Arc<Files>,
    id: u64,
    rounds: u64,
}

impl Subscriber {
    pub(super) fn new(files: &Arc<Files>, hear: Hear) -> Self {
        let mut state = lock(&files.state);
        state.last += 1;
        let id = state.last;
        state.subscribers.insert(id, hear);
        drop(state);
        Self {
            files: Arc::clone(files),
            id,
            rounds: 0,
        }
    }

    /// Begins to watch again. The earlier watches stay until [`Watches::finish`].
    pub(crate) fn watch(&mut self) -> Watches {
        self.rounds += 1;
        Watches {
            files: Arc::clone(&self.files),
            subscriber: self.id,
            round: self.rounds,
            refused: None,
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        lock(&self.files.state).subscribers.remove(&self.id);
        self.files.forget(self.id, None);
    }
}

/// The watches that a subscriber adds in one round.
pub(crate) struct Watches {
    files: Arc<Files>,
    subscriber: u64,
    round: u64,
    refused: Option<io::Error>,
}

impl Watches {
    /// Watches all names in a directory.
    pub(crate) fn directory(&mut self, path: &Path, events: WatchFlags) {
        self.add(path, None, events, WatchFlags::ONLYDIR);
    }

    /// Watches a file, whatever its names are.
    pub(crate) fn file(&mut self, path: &Path, events: WatchFlags) {
        self.add(path, None, events, WatchFlags::empty());
    }

    /// Watches the path to a directory or file and its links, whether it is there or not, for these
    /// events of the names on it.
    pub(crate) fn follow(&mut self, path: &Path, events: WatchFlags) {
        let mut before = None;
        for _ in 0..TRIES {
            let directories = on_the_way_to(path);
            // A file made between the look and the watch shows in the next look.
            if before.as_ref() == Some(&directories) {
                break;
            }
            for (directory, names) in &directories {
                let events = if names.is_empty() {
                    WatchFlags::empty()
                } else {
                    events
                };
                self.add(directory, Some(names.clone()), events, WatchFlags::ONLYDIR);
            }
            before = Some(directories);
        }
    }

    fn add(
        &mut self,
        path: &Path,
        names: Option<BTreeSet<OsString>>,
        events: WatchFlags,
        how: WatchFlags,
    ) {
        let interest = Interest {
            subscriber: self.subscriber,
            round: self.round,
            path: path.to_owned(),
            names,
            events: events | SELF,
        };
        if let Err(error) = self.files.add(interest, how) {
            self.refused.get_or_insert(error);
        }
    }

    /// Ends the watches of earlier rounds. Fails if the kernel did not allow all watches of this one.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.files.forget(self.subscriber, Some(self.round));
        self.keep_earlier()
    }

    /// Like [`Self::finish`], for watches that end by themselves (`ONESHOT`): the others need not be
    /// searched for them.
    pub(crate) fn keep_earlier(self) -> io::Result<()> {
        self.refused.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::super::Kernel;
    use super::*;
    use crate::thread::Spawner;

    struct Room {
        kernel: Kernel,
        heard: Arc<Mutex<Vec<PathBuf>>>,
        subscriber: Subscriber,
    }

    impl Room {
        fn new(kernel: &Kernel) -> Self {
            let heard = Arc::<Mutex<Vec<PathBuf>>>::default();
            let theirs = Arc::clone(&heard);
            let hear = move |notice: &Notice<'_>| lock(&theirs).push(notice.path.to_owned());
            Self {
                kernel: kernel.clone(),
                heard,
                subscriber: kernel.subscribe(hear),
            }
        }

        fn watch(&mut self, add: impl FnOnce(&mut Watches)) {
            let mut watches = self.subscriber.watch();
            add(&mut watches);
            watches.finish().unwrap();
        }

        fn heard(&self) -> Vec<PathBuf> {
            self.kernel.read();
            let mut heard = std::mem::take(&mut *lock(&self.heard));
            heard.dedup();
            heard
        }
    }

    const NOTHING: [PathBuf; 0] = [];
    const FILES: WatchFlags = NAMES.union(WatchFlags::CLOSE_WRITE);

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
            let mut room = Room::new(&Kernel::unattended());
            room.watch(|watches| watches.follow(&link.join("d"), NAMES));
            for beside in ["x", "a/x", "b/x", "b/c/x", "b/c/d/x"].map(|name| root.join(name)) {
                if fs::write(&beside, "").is_ok() {
                    fs::remove_file(&beside).unwrap();
                }
            }
            assert_eq!(room.heard(), NOTHING, "before {what}");
            change();
            assert_eq!(room.heard(), [PathBuf::from(ANYWHERE)], "{what}");
            assert_eq!(room.heard(), NOTHING, "once for {what}");
        }
    }

    #[test]
    fn each_subscriber_hears_of_its_own_events_by_its_own_path() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let kernel = Kernel::unattended();
        let [mut one, mut two, mut three] = [(); 3].map(|()| Room::new(&kernel));
        one.watch(|watches| watches.directory(&real, FILES));
        two.watch(|watches| watches.directory(&link, FILES));
        three.watch(|watches| watches.directory(&real, WatchFlags::MODIFY));
        let file = real.join("a");
        drop(fs::File::create(&file).unwrap());
        assert_eq!(three.heard(), NOTHING, "not written");
        assert_eq!(one.heard(), [&*file]);
        assert_eq!(two.heard(), [link.join("a")]);
        fs::write(&file, "x").unwrap();
        assert_eq!(three.heard(), [&*file]);
        one.heard();
        fs::read(&file).unwrap();
        assert_eq!(one.heard(), NOTHING, "only read");
        // Watches that a round does not add again end.
        two.heard();
        two.watch(|watches| watches.directory(directory.path(), FILES));
        fs::remove_file(&file).unwrap();
        assert_eq!(one.heard(), [file]);
        assert_eq!(two.heard(), NOTHING);
        drop(one);
        fs::write(real.join("b"), "x").unwrap();
        assert_eq!(three.heard(), [real.join("b")]);
    }

    #[test]
    fn directory_that_is_written_all_the_time_is_watched_again_after_each_event() {
        let directory = tempfile::tempdir().unwrap();
        let (spawner, _deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let mut room = Room::new(&kernel);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    fs::write(directory.path().join("log"), "x").unwrap();
                }
            });
            for round in 0..1000 {
                let once = WatchFlags::MODIFY | WatchFlags::ONESHOT;
                room.watch(|watches| watches.directory(directory.path(), once));
                let end = Instant::now() + Duration::from_secs(60);
                while lock(&room.heard).is_empty() {
                    if Instant::now() > end {
                        is_done.store(true, Ordering::Relaxed);
                        panic!("no event in round {round}");
                    }
                    std::thread::yield_now();
                }
                lock(&room.heard).clear();
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
