//! Finds the compositor's socket, and waits for one that does not exist yet or does not answer.
//!
//! It watches the directory of the sockets, so nothing runs while nothing happens. A socket appears
//! before its owner listens on it, so a few tries follow each event at growing intervals. If the
//! directory cannot be watched, it looks every half minute.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::WatchFlags;
use x11rb::reexports::x11rb_protocol::parse_display::{ConnectAddress, parse_display};

use super::x_server::{X11Stream, is_xwayland};
use super::{Compositor, CompositorPlace, Session};
use crate::kernel::{Kernel, Notice, Subscriber};
use crate::paths::Env;
use crate::sys::{Cancel, Gate, Waker, connect, poll_until};

/// The first pause between tries; each one after is twice as long.
const PAUSE: Duration = Duration::from_millis(20);
/// Seven tries take 2.5 s: a compositor that has made its socket listens by then.
const TRIES: u32 = 7;
const UNWATCHED_PAUSE: Duration = Duration::from_secs(30);
/// Events by which a socket or its directory appears.
const APPEARS: WatchFlags = WatchFlags::CREATE.union(WatchFlags::MOVED_TO);

/// A compositor that has accepted our connection.
pub(super) struct FoundCompositor {
    pub(super) session: Session,
    pub(super) stream: Stream,
}

pub(super) enum Stream {
    /// A Wayland socket, with the path that it leads to.
    Wayland(UnixStream, PathBuf),
    X11(X11Stream),
}

pub(super) struct Search {
    place: CompositorPlace,
    kernel: Kernel,
    /// The directory of the sockets; None if it cannot be watched.
    watch: Option<Subscriber>,
    /// Readable when a session was offered, or a socket was made.
    waker: Arc<Waker>,
    tries: u32,
}

impl Search {
    pub(super) fn new(place: CompositorPlace, kernel: Kernel, waker: Arc<Waker>) -> Self {
        Self {
            place,
            kernel,
            watch: None,
            waker,
            tries: 0,
        }
    }

    /// Resets the number of tries after a good connection.
    pub(super) fn begin_again(&mut self) {
        self.tries = 0;
    }

    /// Waits for the next connection; `None` if the wait is cancelled. The gate opens if the first try
    /// fails, since there may be no compositor for hours.
    pub(super) fn next(
        &mut self,
        stop: &Cancel,
        (looked, offered): (&Gate, &dyn Fn() -> Option<CompositorPlace>),
    ) -> Option<FoundCompositor> {
        loop {
            if let Some(place) = offered() {
                (self.place, self.tries) = (place, 0);
            }
            let is_watched = self.watch.is_some();
            if self.tries == 0 || !is_watched {
                // Before the first try, or a socket made in between would be missed.
                self.watch = self.watch();
            }
            if self.tries > 0 {
                self.pause(stop, is_watched);
            }
            if stop.is_cancelled() {
                return None;
            }
            self.tries += 1;
            match self.place.connect() {
                Ok(found) => {
                    self.watch = None;
                    return Some(found);
                }
                Err(error) => {
                    looked.open();
                    if self.tries == 1 {
                        log::info!("no Wayland or X11 session yet ({error}); waiting for one");
                    }
                }
            }
        }
    }

    /// Waits until the next try is due, a socket has been made, or the wait is cancelled. `is_watched`:
    /// since before the last try.
    fn pause(&mut self, stop: &Cancel, is_watched: bool) {
        let pause = if self.tries <= TRIES {
            Some(PAUSE * (1 << (self.tries - 1)))
        } else {
            (!is_watched).then_some(UNWATCHED_PAUSE)
        };
        let until = pause.map(|pause| Instant::now() + pause);
        let mut fds = [
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(&*self.waker, PollFlags::IN),
        ];
        poll_until(&mut fds, until).ok();
        if !fds[1].revents().is_empty() {
            self.waker.reset();
            self.tries = 0;
        }
    }

    /// Watches the directory of the sockets, and the path to it.
    fn watch(&self) -> Option<Subscriber> {
        let directory = self.place.directory()?;
        let place = self.place.clone();
        let waker = Arc::clone(&self.waker);
        let sockets = directory.clone();
        let mut subscriber = self.kernel.subscribe(move |notice: &Notice<'_>| {
            let name = notice.path.file_name();
            // Without a name, a directory on the way has appeared.
            if notice.path == sockets || name.is_none_or(|name| place.may_be(name)) {
                waker.wake();
            }
        });
        let mut watches = subscriber.watch();
        if !directory.is_dir() {
            watches.follow(&directory, APPEARS);
        }
        watches.directory(&directory, APPEARS);
        watches.finish().is_ok().then_some(subscriber)
    }
}

/// Connects to the compositor, without waiting for one.
pub(crate) fn reach(wanted: Option<Compositor>, env: &Env) -> io::Result<Session> {
    Ok(CompositorPlace::find(wanted, env).connect()?.session)
}

impl CompositorPlace {
    /// The directory of the compositor's sockets.
    fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Wayland { named, directory } => named
                .as_deref()
                .and_then(Path::parent)
                .map(Path::to_owned)
                .or(directory.clone()),
            Self::X11 { display, .. } => x11_socket(display)?.parent().map(Path::to_owned),
        }
    }

    /// Whether a socket of this name may be the one.
    fn may_be(&self, name: &OsStr) -> bool {
        match self {
            Self::Wayland { named, .. } => {
                let named = named.as_deref().and_then(Path::file_name);
                is_wayland_socket(name) || named == Some(name)
            }
            Self::X11 { .. } => name.as_bytes().starts_with(b"X"),
        }
    }

    /// Whether a compositor listens there.
    pub(super) fn is_there(&self) -> bool {
        self.connect().is_ok()
    }

    fn connect(&self) -> io::Result<FoundCompositor> {
        match self {
            Self::Wayland { named, directory } => {
                let others = directory
                    .iter()
                    .flat_map(|directory| wayland_sockets(directory));
                let mut last = io::Error::new(io::ErrorKind::NotFound, "no socket found");
                for socket in named.iter().cloned().chain(others) {
                    match connect(&socket) {
                        Ok(stream) => {
                            let stream = Stream::Wayland(stream, socket.clone());
                            return Ok(FoundCompositor {
                                session: Session::Wayland { socket },
                                stream,
                            });
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Self::X11 { display, directory } => {
                let wayland = Self::Wayland {
                    named: None,
                    directory: directory.clone(),
                };
                if directory.is_some()
                    && is_xwayland(display)
                    && let Ok(found) = wayland.connect()
                {
                    return Ok(found);
                }
                let stream = Stream::X11(X11Stream::connect(display)?);
                let display = display.clone();
                Ok(FoundCompositor {
                    session: Session::X11 { display },
                    stream,
                })
            }
        }
    }
}

/// The socket of an X server on this machine.
pub(super) fn x11_socket(display: &str) -> Option<PathBuf> {
    let parsed = parse_display(Some(display)).ok()?;
    parsed
        .connect_instruction()
        .find_map(|address| match address {
            ConnectAddress::Socket(path) => Some(PathBuf::from(path.as_str())),
            _ => None,
        })
}

fn is_wayland_socket(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"wayland-") && !name.ends_with(b".lock")
}

/// The Wayland sockets of a directory, by name.
fn wayland_sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries
        .map(|entry| entry.file_name())
        .filter(|name| is_wayland_socket(name))
        .collect();
    names.sort();
    names.into_iter().map(|name| directory.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use crossbeam_channel::bounded;

    use super::*;
    use crate::thread::Spawner;

    fn search(place: CompositorPlace) -> Search {
        let (spawner, _deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        Search::new(place, kernel, Arc::new(Waker::new().unwrap()))
    }

    /// Searches a fresh directory while `then` happens in it; returns the socket that was found.
    fn found(named: Option<&str>, then: impl FnOnce(&Path)) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let place = CompositorPlace::Wayland {
            named: named.map(|name| dir.path().join(name)),
            directory: Some(dir.path().to_owned()),
        };
        let (spawner, _deaths) = Spawner::new();
        let stop = Cancel::new().unwrap();
        let (tell, told) = bounded(1);
        let theirs = stop.clone();
        let thread = spawner
            .spawn("search", move || {
                let found = search(place).next(&theirs, (&Gate::default(), &|| None));
                tell.send(found.map(|found| found.session)).unwrap();
            })
            .unwrap();
        then(dir.path());
        let session = told
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|_| {
                stop.cancel();
                None
            });
        drop(thread);
        match session? {
            Session::Wayland { socket } => Some(socket.file_name()?.to_str()?.to_owned()),
            Session::X11 { .. } => None,
        }
    }

    #[test]
    fn existing_or_new_socket_is_found() {
        let mut kept = Vec::new();
        let mut listen = |dir: &Path, name: &str| {
            kept.push(UnixListener::bind(dir.join(name)).unwrap());
        };
        assert_eq!(
            found(None, |dir| listen(dir, "wayland-1")).as_deref(),
            Some("wayland-1")
        );
        assert_eq!(
            found(Some("odd"), |dir| listen(dir, "odd")).as_deref(),
            Some("odd")
        );
        // The session in the environment has ended, and another one has started.
        let stale = |dir: &Path| {
            drop(UnixListener::bind(dir.join("wayland-0")).unwrap());
            fs::write(dir.join("wayland-2.lock"), "").unwrap();
            listen(dir, "wayland-2");
        };
        assert_eq!(
            found(Some("wayland-0"), stale).as_deref(),
            Some("wayland-2")
        );
    }

    #[test]
    fn directory_of_the_sockets_may_appear_later() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("user/run");
        let place = CompositorPlace::Wayland {
            named: None,
            directory: Some(run.clone()),
        };
        let mut search = search(place);
        let begun = Instant::now();
        let (looks, waits) = bounded(0);
        let offered = move || {
            looks.send(()).ok();
            None
        };
        let found = std::thread::spawn(move || {
            let stop = Cancel::new().unwrap();
            search.next(&stop, (&Gate::default(), &offered)).is_some()
        });
        // All further tries need an event.
        (0..TRIES + 2).for_each(|_| waits.recv().unwrap());
        drop(waits);
        fs::create_dir_all(&run).unwrap();
        let _socket = UnixListener::bind(run.join("wayland-1")).unwrap();
        assert!(found.join().unwrap());
        assert!(begun.elapsed() < UNWATCHED_PAUSE, "found without an event");
    }

    #[test]
    fn first_failed_try_opens_the_gate() {
        let place = CompositorPlace::Wayland {
            named: Some("/nowhere/wayland-0".into()),
            directory: None,
        };
        let (spawner, _deaths) = Spawner::new();
        let stop = Cancel::new().unwrap();
        let gate = Gate::closed();
        let theirs = stop.clone();
        let looked = gate.clone();
        let search = move || {
            let found = search(place).next(&theirs, (&gate, &|| None));
            assert!(found.is_none());
        };
        let thread = spawner.spawn("search", search);
        let opened = looked.opened().recv_timeout(Duration::from_secs(60));
        assert!(opened.is_err_and(|error| error.is_disconnected()));
        stop.cancel();
        drop(thread);
    }

    #[test]
    fn wait_is_cancelled_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = CompositorPlace::Wayland {
            named: None,
            directory: Some(dir.path().to_owned()),
        };
        let mut search = Search {
            tries: TRIES + 1,
            ..search(place)
        };
        let (spawner, _deaths) = Spawner::new();
        let stop = Cancel::new().unwrap();
        let theirs = stop.clone();
        let thread = spawner.spawn("search", move || {
            assert!(search.next(&theirs, (&Gate::default(), &|| None)).is_none())
        });
        stop.cancel();
        assert!(
            thread
                .unwrap()
                .join_by(Instant::now() + Duration::from_secs(60))
        );
    }
}
