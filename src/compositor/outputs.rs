//! Provides the list of outputs, and the thread `outputs` that keeps it up to date.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::CompositorPlace;
use super::search::{FoundCompositor, Search, Stream};
use super::{Compositor, Output, Session, wayland, x11};
use crate::kernel::Kernel;
use crate::paths::Env;
use crate::sys::{Cancel, CancelOnDrop, Gate, Waker, lock};
use crate::thread::{OwnedThread, Spawner};
use crate::wire;

/// How long a request that offers a session waits; a compositor lists its outputs within milliseconds.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

/// The connected outputs. Cloneable; all clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    state: Arc<Mutex<OutputsState>>,
    looked: Gate,
    /// Wakes the search for a compositor when a session is offered.
    waker: Option<Arc<Waker>>,
}

#[derive(Debug, Default)]
struct OutputsState {
    /// `daemon.compositor`; `None` for `auto`.
    wanted: Option<Compositor>,
    /// The session of a command, to be used while there is none.
    offered: Option<CompositorPlace>,
    /// The place where a compositor is looked for.
    sought: String,
    session: Option<Session>,
    /// The number of sessions so far; a compositor that restarts begins another.
    sessions: u64,
    outputs: Arc<[Output]>,
    /// The session lets clients draw backgrounds: X11, or Wayland with wlr-layer-shell.
    has_backgrounds: bool,
    subscribers: Vec<Sender<()>>,
}

impl Outputs {
    /// The outputs in the compositor's own order, which is that of RandR's monitor list over X11.
    pub fn list(&self) -> Arc<[Output]> {
        Arc::clone(&self.lock().outputs)
    }

    /// The compositor that runs; `None` while there is none.
    pub fn session(&self) -> Option<Session> {
        self.lock().session.clone()
    }

    /// Uses the session of a command if there is none, and waits until its outputs are listed. A
    /// daemon may outlive its session, and one that cron or ssh has started never had any.
    pub(crate) fn offer(&self, session: &wire::Session) {
        let place = CompositorPlace::from_session(session);
        let told = {
            let mut state = self.lock();
            let fits = state
                .wanted
                .is_none_or(|wanted| wanted == place.compositor());
            if state.session.is_some() || !fits || !place.is_there() {
                return;
            }
            log::info!("using {session}, in which a command was run");
            state.sought = place.to_string();
            state.offered = Some(place);
            let (tell, told) = bounded(1);
            state.subscribers.push(tell);
            told
        };
        if let Some(waker) = &self.waker {
            waker.wake();
        }
        // A compositor that does not answer is reported by the request itself.
        told.recv_timeout(LISTED_WITHIN).ok();
    }

    pub(super) fn take_offered(&self) -> Option<CompositorPlace> {
        self.lock().offered.take()
    }

    /// Opens when the compositor has listed its outputs for the first time, or cannot be reached.
    pub(crate) fn looked(&self) -> &Gate {
        &self.looked
    }

    /// The number of the current session. A compositor that was started again has another number.
    pub(crate) fn session_number(&self) -> u64 {
        self.lock().sessions
    }

    /// The place where the compositor is looked for, for messages.
    pub fn sought(&self) -> String {
        self.lock().sought.clone()
    }

    /// Whether the session lets clients draw backgrounds.
    pub fn has_backgrounds(&self) -> bool {
        self.lock().has_backgrounds
    }

    /// Sends a message after every change. Several changes may cause one message, so what counts is what
    /// [`Self::list`] returns then.
    pub fn subscribe(&self) -> Receiver<()> {
        let (sender, receiver) = bounded(1);
        self.lock().subscribers.push(sender);
        receiver
    }

    /// Sets the session and its outputs. Wakes subscribers only if something is different.
    pub(super) fn publish(
        &self,
        session: Option<&Session>,
        outputs: Vec<Output>,
        has_backgrounds: bool,
    ) {
        let mut state = self.lock();
        let is_known = state.has_backgrounds == has_backgrounds;
        if is_known && state.session.as_ref() == session && *state.outputs == *outputs {
            return self.looked.open();
        }
        state.has_backgrounds = has_backgrounds;
        state.sessions += u64::from(state.session.is_none() && session.is_some());
        state.session = session.cloned();
        state.outputs = outputs.into();
        self.looked.open();
        // A full channel holds a message that was not received yet.
        state
            .subscribers
            .retain(|to| !matches!(to.try_send(()), Err(e) if e.is_disconnected()));
    }

    #[cfg(test)]
    pub(super) fn before_look() -> Self {
        Self {
            looked: Gate::closed(),
            ..Self::default()
        }
    }

    /// Outputs without a compositor, for tests of other modules.
    #[cfg(test)]
    pub(crate) fn fixed(session: Session, outputs: Vec<Output>) -> Self {
        let fixed = Self::default();
        fixed.publish(Some(&session), outputs, true);
        fixed
    }

    fn lock(&self) -> MutexGuard<'_, OutputsState> {
        lock(&self.state)
    }
}

/// Owns the thread, which ends at once when this is dropped.
pub struct Watch {
    outputs: Outputs,
    thread: OwnedThread<CancelOnDrop>,
}

impl Watch {
    /// `wanted` is `daemon.compositor`, `None` for `auto`. Returns at once: the outputs are listed as
    /// soon as the compositor answers.
    pub fn start(
        spawner: &Spawner,
        kernel: &Kernel,
        wanted: Option<Compositor>,
        env: &Env,
    ) -> io::Result<Self> {
        let stop = Cancel::new()?;
        let waker = Arc::new(Waker::new()?);
        let outputs = Outputs {
            looked: Gate::closed(),
            waker: Some(Arc::clone(&waker)),
            ..Outputs::default()
        };
        let place = CompositorPlace::find(wanted, env);
        outputs.lock().wanted = wanted;
        outputs.lock().sought = match wanted {
            Some(_) => format!("{place}; daemon.compositor is set"),
            None => place.to_string(),
        };
        let theirs = outputs.clone();
        let until = stop.clone();
        let search = Search::new(place, kernel.clone(), waker);
        let thread = spawner.spawn("outputs", move || watch(&theirs, search, &until))?;
        Ok(Self {
            outputs,
            thread: OwnedThread::new(CancelOnDrop(stop), thread),
        })
    }

    pub fn outputs(&self) -> Outputs {
        self.outputs.clone()
    }

    /// Ends the thread; returns false if it misses the deadline.
    pub fn end(self, deadline: Instant) -> bool {
        self.thread.end(deadline)
    }
}

fn watch(outputs: &Outputs, mut search: Search, stop: &Cancel) {
    while let Some(FoundCompositor { session, stream }) =
        search.next(stop, (outputs.looked(), &|| outputs.take_offered()))
    {
        let mut listed = false;
        let mut publish = |list: Vec<Output>, has_backgrounds: bool| {
            if !listed {
                log::info!(
                    "found {} outputs over {}",
                    list.len(),
                    session.compositor().as_str()
                );
            }
            listed = true;
            outputs.publish(Some(&session), list, has_backgrounds);
        };
        let end = match stream {
            Stream::Wayland(stream, socket) => wayland::follow(stream, &socket, stop, &mut publish),
            Stream::X11(stream) => x11::follow(stream, stop, &mut publish),
        };
        if stop.is_cancelled() {
            return;
        }
        if let Err(error) = end {
            log::warn!("lost the connection to the compositor: {error}");
        }
        outputs.publish(None, Vec::new(), false);
        if listed {
            search.begin_again();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_merged_and_sent_only_for_changes() {
        let session = Session::X11 {
            display: ":7".to_owned(),
        };
        let outputs = Outputs::before_look();
        outputs.publish(Some(&session), Vec::new(), true);
        let opened = outputs.looked().opened().try_recv();
        assert!(opened.is_err_and(|error| error.is_disconnected()));
        let ring = outputs.subscribe();
        drop(outputs.subscribe());
        outputs.publish(Some(&session), Vec::new(), true);
        assert!(ring.try_recv().is_err());
        outputs.publish(Some(&session), Vec::new(), false);
        assert!(
            ring.try_recv().is_ok(),
            "it has no place for backgrounds any more"
        );
        outputs.publish(None, Vec::new(), false);
        outputs.publish(Some(&session), Vec::new(), false);
        assert!(ring.try_recv().is_ok());
        assert!(ring.try_recv().is_err());
        assert_eq!(outputs.lock().subscribers.len(), 1);
        assert_eq!(outputs.session_number(), 2, "it ended and began again");
    }
}
