//! Receives signals and passes them to `main`.
//!
//! The thread `signals` blocks until a signal arrives. A second SIGTERM or SIGINT ends the process
//! at once. SIGUSR1, SIGUSR2 and SIGALRM have no effect.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals as Waiting};

use crate::thread::{OwnedThread, Spawner};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM or SIGINT.
    End,
    /// SIGHUP.
    Reload,
}

/// Owns the thread, which ends when this is dropped.
pub(crate) type Signals = OwnedThread<CloseOnDrop>;

/// Ends the wait for signals when it is dropped.
#[derive(Debug)]
pub(crate) struct CloseOnDrop(Handle);

/// The exit code after a second signal, as a shell reports SIGTERM.
const TWICE: i32 = 128 + SIGTERM;

/// Starts the thread; `hear` is called for each signal and must not block.
pub(crate) fn start(
    spawner: &Spawner,
    hear: impl Fn(Signal) + Send + 'static,
) -> io::Result<Signals> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        // In this order, the first signal finds the flag unset and sets it.
        flag::register_conditional_shutdown(signal, TWICE, Arc::clone(&told))?;
        flag::register(signal, Arc::clone(&told))?;
    }
    for signal in [SIGUSR1, SIGUSR2, SIGALRM] {
        // Handled rather than ignored, as children would inherit the latter.
        flag::register(signal, Arc::default())?;
    }
    let mut signals = Waiting::new([SIGTERM, SIGINT, SIGHUP])?;
    let waiting = signals.handle();
    let thread = spawner.spawn("signals", move || {
        for signal in signals.forever() {
            hear(if signal == SIGHUP {
                Signal::Reload
            } else {
                Signal::End
            });
        }
    })?;
    Ok(OwnedThread::new(CloseOnDrop(waiting), thread))
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
