//! The thread `config`: sees edits of the file, and has each taken up once.
//!
//! It sleeps until something that was asked for happens (`watches`): other programs that read beside
//! the file do not wake it. Only while an edit is in flight does it wait with a deadline. It never
//! writes, and never reads the file itself.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use notify::Event;

use super::handle::Settled;
use super::watches::{EditPhase, Watches};
use super::{ConfigHandle, Error};
use crate::paths::{Presence, presence};
use crate::thread::{Spawner, Thread};

/// From the end of a change to when it is taken up: editors make several in a row.
const SETTLE: Duration = Duration::from_millis(250);
/// From the last write to when the file counts as it is, even if somebody has it open still, or it
/// is missing, empty or broken: within two seconds that is told.
const LAST: Duration = Duration::from_millis(1800);
/// Events that wait for the thread. What does not fit is no loss: it looks at the file in any case.
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
            // In this thread: from here on no edit goes unseen, and a system without watches left
            // says so at once.
            watches.follow(&path)?;
            Ok(watches)
        });
        let watches = watched.map_err(|source| Error::Watch { source })?;
        config.refresh(false);
        let written = Instant::now();
        let mut watcher = Watcher { config, path, watches, events, due: None, written };
        // Nothing is ever sent: it closes.
        let (end, ended) = bounded(0);
        let thread = spawner.spawn("config", move || watcher.run(&ended));
        let thread = thread.map_err(|source| Error::Watch { source: source.into() })?;
        Ok(Self { end, thread })
    }

    /// Ends the thread by the deadline; false where it is late.
    pub fn end(self, deadline: Instant) -> bool {
        drop(self.end);
        self.thread.join_by(deadline)
    }
}

struct Watcher {
    config: ConfigHandle,
    path: PathBuf,
    watches: Watches,
    events: Receiver<notify::Result<Event>>,
    /// When the edit that is in flight is taken up.
    due: Option<Instant>,
    /// When it was last seen to go on.
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

    /// With those that came meanwhile: a close ends what a write began.
    fn on_event(&mut self, first: notify::Result<Event>) {
        let (mut last, mut leads_elsewhere) = (None, false);
        for event in std::iter::once(first).chain(self.events.try_iter()) {
            let (phase, elsewhere) = match event {
                Ok(event) => (self.watches.phase(&event), self.watches.leads_elsewhere(&event)),
                Err(error) => {
                    let path = self.path.display();
                    log::warn!("the watch on {path} may have missed something: {error}");
                    (Some(EditPhase::Done), true)
                }
            };
            last = phase.or(last);
            leads_elsewhere |= elsewhere;
        }
        let Some(phase) = last else { return };
        self.written = Instant::now();
        self.due = Some(self.written + if phase == EditPhase::Open { LAST } else { SETTLE });
        if leads_elsewhere {
            self.follow();
        }
    }

    fn take_up(&mut self) {
        // Another file may be under the name now: once for all that an edit replaced. What was made
        // between the last event and its watch is found by looking again.
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
