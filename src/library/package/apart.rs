//! Reads a package's own disk on a thread that may hang with the disk. The package then fails, and the
//! next imports go on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::super::Error;
use crate::thread;

/// Work that makes no progress for this long counts as hanging.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(30);
/// The maximum number of threads. There are so many only if disks hang; then other packages fail.
const RUNNING_MAX: usize = 64;
const STACK: usize = 1 << 20;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Counts a thread until it ends.
struct Running;

impl Running {
    fn begin() -> Self {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs `look` on a thread of its own. `look` must count its signs of life, and is given up if it
/// counts none for `silent_for`. Its thread then ends when the disk answers, or with the daemon.
pub(super) fn apart<T: Send + 'static>(
    source: &Path,
    silent_for: Duration,
    look: impl FnOnce(&AtomicU64) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let no_answer = || Error::NoAnswer {
        path: source.to_owned(),
    };
    if RUNNING.load(Ordering::Acquire) >= RUNNING_MAX {
        return Err(no_answer());
    }
    let signs = Arc::new(AtomicU64::new(0));
    let (result, done) = bounded(1);
    let counted = Arc::clone(&signs);
    let running = Running::begin();
    let body = move || {
        let _running = running;
        // The send fails if the look was given up.
        result.send(look(&counted)).ok();
    };
    let started = thread::expendable("package", STACK, body);
    started.map_err(Error::file("read", source))?.leave();
    let mut before = 0;
    loop {
        match done.recv_timeout(silent_for) {
            Ok(result) => return result,
            // The thread has panicked and logged the panic.
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Ended),
            Err(RecvTimeoutError::Timeout) => match signs.load(Ordering::Acquire) {
                now if now != before => before = now,
                _ => return Err(no_answer()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_that_hangs_is_abandoned_but_a_slow_one_is_not() {
        let (path, silent_for) = (Path::new("/p"), Duration::from_millis(300));
        let (release, hold) = bounded::<()>(0);
        let hung = apart(path, silent_for, move |_| {
            hold.recv().ok();
            Ok(())
        });
        assert!(matches!(hung, Err(Error::NoAnswer { .. })), "{hung:?}");
        drop(release);
        let slow = apart(path, Duration::from_secs(2), |signs| {
            let (_never, tick) = bounded::<()>(0);
            for _ in 0..8 {
                signs.fetch_add(1, Ordering::AcqRel);
                tick.recv_timeout(Duration::from_millis(400)).ok();
            }
            Ok(7)
        });
        assert_eq!(slow.unwrap(), 7);
    }
}
