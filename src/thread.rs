//! Starts named threads, which are joined when dropped and whose panics are reported.
//!
//! All threads of the daemon are started here. A panic is logged with the thread's name and sent to
//! the [`Deaths`] of its [`Spawner`], which `main` receives to shut the daemon down. As dropping a
//! [`Thread`] joins it, the channel or socket that makes it stop must be dropped before, as an
//! [`OwnedThread`] does.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::sys::lock;

/// The kernel truncates names after 15 bytes.
const NAME_MAX: usize = 15;
/// Stack size in bytes; untouched pages cost nothing.
const STACK: usize = 1 << 20;

/// The names of the threads that panicked.
pub type Deaths = Receiver<String>;

/// Starts threads; clones report to the same [`Deaths`].
#[derive(Clone, Debug)]
pub struct Spawner {
    deaths: Sender<String>,
}

impl Spawner {
    pub fn new() -> (Self, Deaths) {
        // The first panic ends the daemon; those after the eighth are only logged.
        let (deaths, receiver) = bounded(8);
        (Self { deaths }, receiver)
    }

    /// Starts a thread. `name` has at most 15 bytes.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let deaths = self.deaths.clone();
        let died = move |name: &str| {
            // If the channel is full, the daemon is shutting down already.
            deaths.try_send(name.to_owned()).ok();
        };
        start(name, STACK, body, died)
    }
}

/// Starts a thread whose panic is logged but does not end the daemon. `stack` is the stack size in
/// bytes.
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
    let builder = std::thread::Builder::new()
        .name(owned.clone())
        .stack_size(stack);
    let handle = builder.spawn(move || {
        let _ended = ended;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            log::error!("thread {owned} died: {}", panic_text(&*panic));
            died(&owned);
        }
    })?;
    Ok(Thread {
        name: name.to_owned(),
        handle: Some(handle),
        end,
    })
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

    /// Waits until the thread has ended. If it has not by the deadline, detaches it and returns
    /// `false`; only for the shutdown of the process.
    pub fn join_by(mut self, deadline: Instant) -> bool {
        // Nothing is ever sent: the channel is disconnected when the thread ends.
        let late = matches!(
            self.end.recv_deadline(deadline),
            Err(crossbeam_channel::RecvTimeoutError::Timeout)
        );
        if late {
            self.handle = None;
        }
        !late
    }

    /// Detaches the thread, as it may hang on a dead disk.
    pub fn leave(mut self) {
        self.handle = None;
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // A panic was caught and reported in the thread.
            handle.join().ok();
        }
    }
}

/// Waits until these threads have ended; returns the names of those that are late.
pub(crate) fn join_all(
    threads: impl IntoIterator<Item = Thread>,
    deadline: Instant,
) -> Vec<String> {
    let late = threads.into_iter().filter_map(|thread| {
        let name = thread.name().to_owned();
        (!thread.join_by(deadline)).then_some(name)
    });
    late.collect()
}

/// A thread that ends when `stop` is dropped. Dropping this ends the thread and joins it.
#[derive(Debug)]
pub struct OwnedThread<S> {
    // Declared above the thread, so that it is dropped before the thread is joined.
    stop: S,
    thread: Thread,
}

impl<S> OwnedThread<S> {
    pub(crate) fn new(stop: S, thread: Thread) -> Self {
        Self { stop, thread }
    }

    /// Ends the thread; returns `false` if it is still running at the deadline.
    pub fn end(self, deadline: Instant) -> bool {
        drop(self.stop);
        self.thread.join_by(deadline)
    }
}

/// A thread that settings turn on and off, until it is ended for good.
pub(crate) struct Toggle<K, S>(Mutex<ToggleState<K, S>>);

enum ToggleState<K, S> {
    Off,
    On(K, OwnedThread<S>),
    /// The daemon ends, so nothing is started any more.
    Ended,
}

impl<K: PartialEq, S> Toggle<K, S> {
    pub(crate) fn off() -> Self {
        Self(Mutex::new(ToggleState::Off))
    }

    /// Starts or ends the thread as wanted. A thread that it ends has exited when it returns, which
    /// takes no time.
    pub(crate) fn set(
        &self,
        wanted: Option<K>,
        start: impl FnOnce(&K) -> io::Result<OwnedThread<S>>,
    ) {
        let mut state = lock(&self.0);
        match &*state {
            ToggleState::Ended => return,
            ToggleState::On(key, _) if wanted.as_ref() == Some(key) => return,
            ToggleState::Off | ToggleState::On(..) => *state = ToggleState::Off,
        }
        if let Some(key) = wanted {
            match start(&key) {
                Ok(thread) => *state = ToggleState::On(key, thread),
                Err(error) => log::error!("cannot start a thread for the settings: {error}"),
            }
        }
    }

    /// Ends the thread for good; returns `false` if it is still running at the deadline.
    pub(crate) fn end(&self, deadline: Instant) -> bool {
        match std::mem::replace(&mut *lock(&self.0), ToggleState::Ended) {
            ToggleState::On(_, thread) => thread.end(deadline),
            ToggleState::Off | ToggleState::Ended => true,
        }
    }
}

/// Returns the message of a panic.
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
    fn panic_is_reported_with_the_name_of_the_thread() {
        let (spawner, deaths) = Spawner::new();
        let thread = spawner.spawn("doomed", || panic!("on purpose")).unwrap();
        assert_eq!(
            deaths.recv_timeout(Duration::from_secs(60)).as_deref(),
            Ok("doomed")
        );
        drop(thread);
    }

    #[test]
    fn panic_of_an_expendable_thread_ends_only_that_thread() {
        let thread = expendable("one-of-many", 64 << 10, || panic!("on purpose")).unwrap();
        assert!(thread.join_by(Instant::now() + Duration::from_secs(60)));
    }

    #[test]
    fn late_thread_is_detached() {
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
