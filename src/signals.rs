//! Signals, which only wake `main`.
//!
//! The thread `signals` blocks until one comes and passes it on. A second SIGTERM or SIGINT ends the
//! process at once. SIGUSR1, SIGUSR2 and SIGALRM do nothing: somebody means another program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals as Waiting};

use crate::thread::{Spawner, Thread};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM or SIGINT
    End,
    /// SIGHUP
    Reload,
}

/// The owner of the thread: it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Signals {
    waiting: Handle,
    thread: Option<Thread>,
}

/// The exit code of a process that is told to end a second time, as a shell reports SIGTERM.
const TWICE: i32 = 128 + SIGTERM;

impl Signals {
    /// `hear` is called for each signal; it must not block.
    pub(crate) fn start(
        spawner: &Spawner,
        hear: impl Fn(Signal) + Send + 'static,
    ) -> io::Result<Self> {
        let told = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // In this order: the first signal finds the flag down, and raises it.
            flag::register_conditional_shutdown(signal, TWICE, Arc::clone(&told))?;
            flag::register(signal, Arc::clone(&told))?;
        }
        for signal in [SIGUSR1, SIGUSR2, SIGALRM] {
            // Handled, not ignored: children would inherit that.
            flag::register(signal, Arc::default())?;
        }
        let mut signals = Waiting::new([SIGTERM, SIGINT, SIGHUP])?;
        let waiting = signals.handle();
        let thread = spawner.spawn("signals", move || {
            for signal in signals.forever() {
                hear(if signal == SIGHUP { Signal::Reload } else { Signal::End });
            }
        })?;
        Ok(Self { waiting, thread: Some(thread) })
    }

    /// Ends the thread by the deadline; false where it is late.
    pub(crate) fn end(mut self, deadline: Instant) -> bool {
        self.waiting.close();
        self.thread.take().is_none_or(|thread| thread.join_by(deadline))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.waiting.close();
    }
}
