//! Reads events of files (inotify) and devices (uevents) from the kernel, and finds the paths to
//! watch for a file.
//!
//! Runs on the calling thread. Reading never blocks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use rustix::fs::inotify::{self, CreateFlags, Event, WatchFlags};
use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// Readable when something has happened to a watched file.
#[derive(Debug)]
pub(crate) struct Inotify(OwnedFd);

impl Inotify {
    /// Fails if the user's other programs have used up the instances.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let made = inotify::init(flags).map_err(|errno| match errno {
            // This error also means too many open files, but that limit is raised at start.
            Errno::MFILE => no_watches_left("instances=512"),
            errno => errno.into(),
        });
        Ok(Self(made?))
    }

    /// Watches a file or a directory; returns the descriptor that its events contain. A second call
    /// for the same path replaces the flags.
    pub(crate) fn watch(&self, path: &Path, what: WatchFlags) -> io::Result<i32> {
        inotify::add_watch(&self.0, path, what).map_err(|errno| match errno {
            Errno::NOSPC => no_watches_left("watches=524288"),
            errno => errno.into(),
        })
    }

    /// Ends a watch. The kernel has ended it already if its file is gone.
    pub(crate) fn unwatch(&self, watch: i32) {
        inotify::remove_watch(&self.0, watch).ok();
    }

    /// Reads all pending events.
    pub(crate) fn read(&self, mut each: impl FnMut(&Event<'_>)) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        while let Ok(event) = reader.next() {
            each(&event);
        }
    }
}

/// The user has used up the `instances` or `watches`; the text has the command that allows more.
fn no_watches_left(setting: &str) -> io::Error {
    let why = format!(
        "the kernel allows no more watches: run `sudo sysctl fs.inotify.max_user_{setting}`"
    );
    io::Error::new(io::ErrorKind::QuotaExceeded, why)
}

impl AsFd for Inotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Mask of the kernel's multicast group; udev's own events come later and have another format.
const KERNEL: u32 = 1;
/// Buffer size in bytes, larger than any message of the kernel.
const MESSAGE_MAX: usize = 8 << 10;

/// Readable when something has happened to any device.
#[derive(Debug)]
pub(crate) struct Uevents(OwnedFd);

impl Uevents {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            flags,
            Some(KOBJECT_UEVENT),
        )?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Self(socket))
    }

    /// Reads all pending events; returns whether any is about a device of this subsystem.
    pub(crate) fn drain(&self, subsystem: &str) -> bool {
        let mut buffer = [0; MESSAGE_MAX];
        let mut any = false;
        loop {
            match rustix::io::read(&self.0, &mut buffer) {
                Ok(length) => any |= is_about(&buffer[..length], subsystem),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return any,
                // The queue has overflowed, and matching events may be lost.
                Err(Errno::NOBUFS) => any = true,
                Err(_) => return true,
            }
        }
    }
}

impl AsFd for Uevents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A message is `ACTION@PATH`, then `NAME=VALUE` fields, each terminated by a zero byte.
fn is_about(message: &[u8], subsystem: &str) -> bool {
    let value = |field: &[u8]| field.strip_prefix(b"SUBSYSTEM=") == Some(subsystem.as_bytes());
    message.split(|&byte| byte == 0).any(value)
}

/// Maximum number of links to follow; the kernel has the same limit.
const MAX_LINKS: usize = 40;

/// The directories to watch so that no change of a file is missed, with the names in them that matter:
/// the file may be written, replaced or removed, a link on the way may be changed, and each directory
/// may disappear and return. If there are no names, only the removal of the directory matters.
///
/// Reads only links and file types on the way to the absolute path.
pub(crate) fn on_the_way_to(path: &Path) -> BTreeMap<PathBuf, BTreeSet<OsString>> {
    let mut directories = BTreeMap::<_, BTreeSet<_>>::new();
    let mut at = PathBuf::from("/");
    let mut rest = names(path);
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let found = fs::symlink_metadata(&next);
        if found.as_ref().is_ok_and(|found| found.is_dir()) && !rest.is_empty() {
            directories.entry(at).or_default();
            at = next;
            continue;
        }
        directories.entry(at.clone()).or_default().insert(name);
        links += 1;
        match (found, fs::read_link(&next)) {
            (Ok(_), Ok(target)) if links <= MAX_LINKS => {
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                let mut ahead = names(&target);
                ahead.append(&mut rest);
                rest = ahead;
            }
            // The end, missing, or of the wrong kind: its directory reports when that changes.
            _ => return directories,
        }
    }
    directories
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn uevents_are_filtered_by_subsystem() {
        let message = b"change@/devices/AC\0ACTION=change\0DEVPATH=/devices/AC\0\
            SUBSYSTEM=power_supply\0POWER_SUPPLY_ONLINE=0\0SEQNUM=4\0";
        assert!(is_about(message, "power_supply"));
        assert!(!is_about(message, "power"));
        assert!(!is_about(b"", "power_supply"));
        assert!(!is_about(
            b"add@/x\0X_SUBSYSTEM=power_supply\0SUBSYSTEM=usb",
            "power_supply"
        ));
    }

    #[test]
    fn reading_without_events_does_not_block() {
        // A sandbox may not allow such sockets; then there is nothing to test.
        if let Ok(uevents) = Uevents::new() {
            uevents.drain("no such subsystem");
        }
    }

    #[track_caller]
    fn check(root: &Path, path: &str, watched: &[(&str, &[&str])]) {
        let directories = on_the_way_to(&root.join(path));
        let under = |path: &Path| path.strip_prefix(root).ok().map(Path::to_owned);
        let found: Vec<_> = directories
            .iter()
            .filter_map(|(path, names)| Some((under(path)?, names.iter().cloned().collect())))
            .collect();
        let expected: Vec<(PathBuf, Vec<OsString>)> = watched
            .iter()
            .map(|(path, names)| (path.into(), names.iter().map(OsString::from).collect()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn watch_paths_cover_every_directory_and_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().canonicalize().unwrap();
        check(root, "a/b/c", &[("", &["a"])]);
        fs::create_dir_all(root.join("a/b")).unwrap();
        let steps: &[(&str, &[&str])] = &[("", &[]), ("a", &[]), ("a/b", &["c"])];
        check(root, "a/b/c", steps);
        fs::write(root.join("a/b/c"), "").unwrap();
        check(root, "a/b/c", steps);
        symlink("../a/b", root.join("a/link")).unwrap();
        let steps: &[(&str, &[&str])] = &[("", &[]), ("a", &["link"]), ("a/b", &["c"])];
        check(root, "a/link/c", steps);
        symlink(root.join("a/b/c"), root.join("d")).unwrap();
        let steps: &[(&str, &[&str])] = &[("", &["d"]), ("a", &[]), ("a/b", &["c"])];
        check(root, "d", steps);
        symlink("loop", root.join("loop")).unwrap();
        check(root, "loop", &[("", &["loop"])]);
    }
}
