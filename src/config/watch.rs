//! The thread `config`: notices edits of the file and has each read once.
//!
//! It sleeps until an event arrives (`watches`); programs that read other files do not wake it. It
//! waits with a deadline only during an edit. While another program has the file open, requests that
//! change it wait, too (`file::Writer`). It never reads or writes the file itself.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use notify::{ErrorKind, Event};
use rustix::io::Errno;

use super::handle::Settled;
use super::watches::{EditPhase, Watches};
use super::{ConfigHandle, Error};
use crate::paths::{Presence, presence};
use crate::sys::no_watches_left;
use crate::thread::{Spawner, Thread};

/// The delay from a change until the file is read: editors make several changes in a row.
const SETTLE: Duration = Duration::from_millis(250);
/// The delay from the last write until the file is read even if it is still open, missing, empty or
/// broken: the edit is reported within two seconds.
pub(super) const LAST: Duration = Duration::from_millis(1800);
/// Events that wait for the thread. Others are dropped, because the thread reads the file in any case.
const EVENTS: usize = 64;

/// The running watch; dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    // Declared above the thread: it closes before the thread is joined.
    end: Sender<()>,
    thread: Thread,
}

impl Watch {
    pub fn start(config: ConfigHandle, spawner: &Spawner) -> Result<Self, Error> {
        let (sender, events) = bounded(EVENTS);
        let path = config.path().to_owned();
        let watched = Watches::new(&sender).and_then(|mut watches| {
            // In this thread: no edit is missed from here on, and a system without watches left is
            // reported at once.
            watches.follow(&path)?;
            Ok(watches)
        });
        let watches = watched.map_err(|error| Error::Watch { source: why(error) })?;
        config.refresh(false);
        let written = Instant::now();
        let mut watcher = Watcher { config, path, watches, events, due: None, written };
        // Nothing is ever sent: it closes.
        let (end, ended) = bounded(0);
        let thread = spawner.spawn("config", move || watcher.run(&ended));
        let thread = thread.map_err(|source| Error::Watch { source })?;
        Ok(Self { end, thread })
    }

    /// Ends the thread by the deadline; false if it is late.
    pub fn end(self, deadline: Instant) -> bool {
        drop(self.end);
        self.thread.join_by(deadline)
    }
}

/// The kernel's reason, with what to do about a limit.
fn why(error: notify::Error) -> io::Error {
    match error.kind {
        ErrorKind::MaxFilesWatch => no_watches_left("watches"),
        ErrorKind::Io(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            no_watches_left("instances")
        }
        ErrorKind::Io(error) => error,
        _ => io::Error::other(error),
    }
}

struct Watcher {
    config: ConfigHandle,
    path: PathBuf,
    watches: Watches,
    events: Receiver<notify::Result<Event>>,
    /// When the current edit is read.
    due: Option<Instant>,
    /// When the file was last written.
    written: Instant,
}

impl Watcher {
    fn run(&mut self, end: &Receiver<()>) {
        loop {
            let due = self.due.map_or_else(never, at);
            select! {
                recv(self.events) -> event => match event {
                    Ok(event) => self.on_event(event),
                    Err(_) => {
                        let path = self.path.display();
                        return self.config.is_unwatched(&format!("{path} is no longer watched"));
                    }
                },
                recv(due) -> _ => self.take_up(),
                recv(end) -> _ => return,
            }
        }
    }

    /// Handles the events that have arrived since, too: a close ends an edit that a write began.
    fn on_event(&mut self, first: notify::Result<Event>) {
        let (mut last, mut leads_elsewhere) = (None, false);
        for event in std::iter::once(first).chain(self.events.try_iter()) {
            let (phase, elsewhere) = match event {
                Ok(event) => (self.watches.phase(&event), self.watches.leads_elsewhere(&event)),
                Err(error) => {
                    let path = self.path.display();
                    log::warn!("changes of {path} may have been missed: {error}");
                    (Some(EditPhase::Done), true)
                }
            };
            last = phase.or(last);
            leads_elsewhere |= elsewhere;
        }
        let Some(phase) = last else { return };
        self.written = Instant::now();
        let is_open = phase == EditPhase::Open;
        let due = self.written + if is_open { LAST } else { SETTLE };
        self.due = Some(due);
        self.config.is_being_written(is_open.then_some(due));
        if leads_elsewhere {
            self.follow();
        }
    }

    fn take_up(&mut self) {
        // Another file may have the name now: follow it once per edit. Files created between the last
        // event and their watch are found by looking again.
        self.follow();
        let last = self.written + LAST;
        let settled = self.config.refresh(Instant::now() < last);
        self.due = (settled == Settled::Perhaps).then_some(last);
    }

    fn follow(&mut self) {
        if presence(&self.path) == Presence::NoAnswer {
            let path = self.path.display();
            return self.config.is_unwatched(&format!("the disk of {path} does not answer"));
        }
        match self.watches.follow(&self.path) {
            Ok(()) => self.config.is_watched(),
            Err(error) => {
                self.config.is_unwatched(&format!("cannot watch {}: {error}", self.path.display()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use crossbeam_channel::unbounded;
    use notify::event::{AccessKind, AccessMode, DataChange, EventKind, ModifyKind, RenameMode};
    use serde_json::json;

    use super::super::file;
    use super::*;
    use crate::events::EventBus;

    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const MOVED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));

    struct Room {
        directory: tempfile::TempDir,
        watcher: Watcher,
        /// What comes behind the event in hand.
        more: Sender<notify::Result<Event>>,
    }

    /// `link` leads to the file `one`; what the kernel says of them is not heard.
    fn room() -> Room {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["one", "two"] {
            fs::write(root.join(name), "").unwrap();
        }
        symlink(root.join("one"), root.join("link")).unwrap();
        let path = root.join("link");
        let config = ConfigHandle::open(path.clone(), EventBus::new()).unwrap();
        let (unheard, _) = unbounded();
        let mut watches = Watches::new(&unheard).unwrap();
        watches.follow(&path).unwrap();
        let (more, events) = unbounded();
        let written = Instant::now();
        let watcher = Watcher { config, path, watches, events, due: None, written };
        Room { directory, watcher, more }
    }

    impl Room {
        fn event(&self, kind: EventKind, name: &str) -> notify::Result<Event> {
            let root = self.directory.path().canonicalize().unwrap();
            Ok(Event::new(kind).add_path(root.join(name)))
        }

        /// These in one go; how long the edit is given then.
        fn on(&mut self, events: &[(EventKind, &str)]) -> Option<Duration> {
            self.watcher.due = None;
            for &(kind, name) in &events[1..] {
                self.more.send(self.event(kind, name)).unwrap();
            }
            let (kind, name) = events[0];
            self.watcher.on_event(self.event(kind, name));
            self.watcher.due.map(|due| due - self.watcher.written)
        }

        /// Whether events of the other file would be heard.
        fn follows_two(&self) -> bool {
            let event = self.event(WRITTEN, "two").unwrap();
            self.watcher.watches.phase(&event).is_some()
        }

        fn turn_the_link(&self) {
            let root = self.directory.path();
            fs::remove_file(root.join("link")).unwrap();
            symlink(root.join("two"), root.join("link")).unwrap();
        }
    }

    #[test]
    fn edit_is_waited_for_as_long_as_somebody_may_write() {
        let mut room = room();
        assert_eq!(room.on(&[(WRITTEN, "one")]), Some(LAST));
        assert_eq!(room.on(&[(CLOSED, "one")]), Some(SETTLE));
        assert_eq!(room.on(&[(WRITTEN, "one"), (CLOSED, "one")]), Some(SETTLE));
        assert_eq!(room.on(&[(WRITTEN, "one"), (CLOSED, "other")]), Some(LAST));
        assert_eq!(room.on(&[(CLOSED, "other")]), None);
        // One that was missed may have been any.
        room.watcher.on_event(Err(notify::Error::generic("on purpose")));
        assert_eq!(room.watcher.due, Some(room.watcher.written + SETTLE));
    }

    #[test]
    fn change_waits_for_who_writes_the_file() {
        let mut room = room();
        let whole = fs::read_to_string(&room.watcher.path).unwrap();
        let (half, _) = whole.split_once("[hooks]").unwrap();
        let change = |config: &ConfigHandle| {
            let body = json!({"app": {"theme": "x"}});
            config.patch(body.as_object().unwrap()).map(|_| ())
        };
        // Half of it is a file that could be used.
        assert!(half.contains("[backend]"), "{half}");
        fs::write(&room.watcher.path, half).unwrap();
        room.on(&[(WRITTEN, "one")]);
        // However slow this machine is.
        room.watcher.config.is_being_written(Some(Instant::now() + Duration::from_secs(600)));
        let refused = change(&room.watcher.config).unwrap_err();
        assert!(matches!(refused, Error::BeingWritten { .. }), "{refused}");
        assert!(matches!(room.watcher.config.can_change(), Err(Error::BeingWritten { .. })));
        assert_eq!(fs::read_to_string(&room.watcher.path).unwrap(), half);
        std::thread::scope(|scope| {
            let config = room.watcher.config.clone();
            let changing = scope.spawn(move || {
                loop {
                    match change(&config) {
                        Err(Error::BeingWritten { .. }) => {}
                        other => return other.unwrap(),
                    }
                }
            });
            fs::write(&room.watcher.path, &whole).unwrap();
            room.on(&[(CLOSED, "one")]);
            changing.join().unwrap();
        });
        let changed = fs::read_to_string(&room.watcher.path).unwrap();
        assert!(changed.contains("[hooks]") && changed.contains("theme = \"x\""), "{changed}");
    }

    #[test]
    fn change_is_not_made_where_its_file_is_begun_meanwhile() {
        let room = room();
        let before = fs::read_to_string(&room.watcher.path).unwrap();
        let config = room.watcher.config.clone();
        let _pauses = file::on_pause(move |pause| {
            if pause == file::Pause::Filled {
                config.is_being_written(Some(Instant::now() + Duration::from_secs(600)));
            }
        });
        let body = json!({"app": {"theme": "x"}});
        let refused = room.watcher.config.patch(body.as_object().unwrap()).unwrap_err();
        assert!(matches!(refused, Error::BeingWritten { .. }), "{refused}");
        assert_eq!(fs::read_to_string(&room.watcher.path).unwrap(), before);
    }

    #[test]
    fn link_that_leads_elsewhere_is_followed_at_once() {
        let mut room = room();
        room.turn_the_link();
        room.on(&[(WRITTEN, "one"), (CLOSED, "one")]);
        assert!(!room.follows_two(), "nothing says so");
        room.on(&[(MOVED, "link"), (CLOSED, "one")]);
        assert!(room.follows_two());
    }

    #[test]
    fn file_that_may_be_on_its_way_is_looked_at_once_more() {
        let mut room = room();
        let sound = fs::read_to_string(&room.watcher.path).unwrap();
        let later = Instant::now() + Duration::from_secs(600);
        let mut due = |text: &str, written: Instant| {
            fs::write(&room.watcher.path, text).unwrap();
            room.watcher.written = written;
            room.watcher.take_up();
            room.watcher.due
        };
        assert_eq!(due(&format!("{sound}# more"), later), None);
        assert_eq!(due("[app", later), Some(later + LAST));
        assert_eq!(due("[app", Instant::now().checked_sub(LAST).unwrap()), None);
        assert_eq!(due(&sound, later), None);
    }

    #[test]
    fn other_file_of_the_same_name_is_watched_once_an_edit_is_taken_up() {
        let mut room = room();
        room.turn_the_link();
        room.watcher.config.is_unwatched("on purpose");
        assert_eq!(room.watcher.config.warnings().len(), 1);
        room.watcher.take_up();
        assert!(room.follows_two());
        assert_eq!(room.watcher.config.warnings(), [""; 0], "it is watched again");
    }
}
