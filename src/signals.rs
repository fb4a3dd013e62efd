//! Receives signals and passes them to `main`.
//!
//! The thread `signals` blocks until a signal arrives. A second SIGTERM or SIGINT ends the process
//! at once, unless it follows within 100 ms: a process group and its leader are often signalled
//! together. SIGUSR1, SIGUSR2 and SIGALRM have no effect. SIGXFSZ has none, so that a write beyond
//! `ulimit -f` fails with an error.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
/// Signals within this time are one.
const TOGETHER: Duration = Duration::from_millis(100);

/// Starts the thread; `hear` is called for each signal and must not block.
pub(crate) fn start(
    spawner: &Spawner,
    hear: impl Fn(Signal) + Send + 'static,
) -> io::Result<Signals> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, TWICE, Arc::clone(&told))?;
    }
    for signal in [SIGUSR1, SIGUSR2, SIGALRM, libc::SIGXFSZ] {
        // Handled rather than ignored, as children would inherit the latter.
        flag::register(signal, Arc::default())?;
    }
    let mut signals = Waiting::new([SIGTERM, SIGINT, SIGHUP])?;
    let waiting = signals.handle();
    let thread = spawner.spawn("signals", move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                hear(Signal::Reload);
                continue;
            }
            hear(Signal::End);
            std::thread::sleep(TOGETHER);
            told.store(true, Ordering::SeqCst);
        }
    })?;
    Ok(OwnedThread::new(CloseOnDrop(waiting), thread))
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
