//! Named threads that are joined on drop, and whose panics are reported.
//!
//! Every thread of the daemon is started here. A panic is logged with the thread's name and sent to the
//! holder of the [`Deaths`] of its [`Spawner`] (`main`, which then shuts the daemon down in order). A
//! [`Thread`] is joined when it is dropped, so the channel or socket that makes it stop must be dropped
//! before: declare the sender above the thread in a handle.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

/// The kernel cuts names after 15 bytes.
const NAME_MAX: usize = 15;
/// Enough for every actor; pages that are not touched cost nothing.
const STACK: usize = 1 << 20;

/// The names of the threads that panicked.
pub type Deaths = Receiver<String>;

/// Starts threads; all clones report to the same [`Deaths`].
#[derive(Clone, Debug)]
pub struct Spawner {
    deaths: Sender<String>,
}

impl Spawner {
    pub fn new() -> (Self, Deaths) {
        // One death ends the daemon; those after the eighth are only logged.
        let (deaths, receiver) = bounded(8);
        (Self { deaths }, receiver)
    }

    /// Starts a thread. `name` has at most 15 bytes.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let deaths = self.deaths.clone();
        let died = move |name: &str| {
            // Full means that the end has begun already.
            deaths.try_send(name.to_owned()).ok();
        };
        start(name, STACK, body, died)
    }
}

/// Starts one of many of its kind, with a stack of so many bytes: its panic is logged, and is the end of
/// what it had in hand alone.
pub(crate) fn expendable(
    name: &str,
    stack: usize,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    start(name, stack, body, |_| ())
}

fn start(
    name: &str,
    stack: usize,
    body: impl FnOnce() + Send + 'static,
    died: impl FnOnce(&str) + Send + 'static,
) -> io::Result<Thread> {
    debug_assert!(name.len() <= NAME_MAX, "thread name too long: {name}");
    let owned = name.to_owned();
    let (ended, end) = bounded::<()>(0);
    let builder = std::thread::Builder::new().name(owned.clone()).stack_size(stack);
    let handle = builder.spawn(move || {
        let _ended = ended;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            log::error!("thread {owned} died: {}", panic_text(&*panic));
            died(&owned);
        }
    })?;
    Ok(Thread { name: name.to_owned(), handle: Some(handle), end })
}

/// A running thread, joined on drop.
#[derive(Debug)]
pub struct Thread {
    name: String,
    handle: Option<JoinHandle<()>>,
    end: Receiver<()>,
}

impl Thread {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn has_ended(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the thread has ended. Past the deadline it is left behind and `false` returned:
    /// only for the end of the process.
    pub fn join_by(mut self, deadline: Instant) -> bool {
        // Nothing is ever sent: the channel closes when the thread ends.
        let late = matches!(
            self.end.recv_deadline(deadline),
            Err(crossbeam_channel::RecvTimeoutError::Timeout)
        );
        if late {
            self.handle = None;
        }
        !late
    }

    /// Lets it run for itself: nobody can wait for what hangs on a dead disk.
    pub fn leave(mut self) {
        self.handle = None;
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // The body's panic was caught and reported inside.
            handle.join().ok();
        }
    }
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_panic_is_reported_under_the_thread_s_name() {
        let (spawner, deaths) = Spawner::new();
        let thread = spawner.spawn("doomed", || panic!("on purpose")).unwrap();
        assert_eq!(deaths.recv_timeout(Duration::from_secs(60)).as_deref(), Ok("doomed"));
        drop(thread);
    }

    #[test]
    fn a_panic_of_an_expendable_thread_ends_that_thread_alone() {
        let thread = expendable("one-of-many", 64 << 10, || panic!("on purpose")).unwrap();
        assert!(thread.join_by(Instant::now() + Duration::from_secs(60)));
    }

    #[test]
    fn a_late_thread_is_left_behind() {
        let (spawner, _deaths) = Spawner::new();
        let (release, released) = bounded::<()>(0);
        let thread = spawner
            .spawn("late", move || {
                released.recv().ok();
            })
            .unwrap();
        assert!(!thread.join_by(Instant::now() + Duration::from_millis(20)));
        drop(release);
    }
}
