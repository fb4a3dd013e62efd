//! The thread that paints, so that the loop never waits for a file.
//!
//! At most one at a time is listened to: what one has painted that was called off is dropped.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::message::Outcome;
use super::paint::{Painted, STACK, Task, paint};
use crate::memory;
use crate::sys::{Cancel, CancelOnDrop};
use crate::thread;

/// What came of a painting.
type Finished = Result<Vec<Painted>, Outcome>;

/// A painting that is on its way.
pub(super) struct Painting {
    pub(super) tasks: Vec<Task>,
    result: Receiver<Finished>,
    /// Set once the result is there, or will never be.
    done: Cancel,
    stop: Arc<AtomicBool>,
}

impl Painting {
    pub(super) fn start(tasks: Vec<Task>) -> io::Result<Self> {
        let done = Cancel::new()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (send, result) = channel();
        let theirs = CancelOnDrop(done.clone());
        let work = Work { tasks: tasks.clone(), send, done: theirs, stop: stop.clone() };
        // One that is called off ends by itself.
        thread::expendable("paint", STACK, move || work.run())?.leave();
        Ok(Self { tasks, result, done, stop })
    }

    /// Readable once there is something to take.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    /// What was painted; none while that goes on.
    pub(super) fn take(&self) -> Option<Finished> {
        let lost = || Outcome::Refused("the painting thread has failed".to_owned());
        self.done.is_cancelled().then(|| self.result.recv().unwrap_or_else(|_| Err(lost())))
    }
}

impl Drop for Painting {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Work {
    tasks: Vec<Task>,
    // Before `done`: fields are dropped in this order.
    send: Sender<Finished>,
    /// Also of a thread that has died.
    done: CancelOnDrop,
    stop: Arc<AtomicBool>,
}

impl Work {
    fn run(self) {
        let painted = paint(&self.tasks, &|| self.stop.load(Ordering::Relaxed));
        // Nobody listens to one that was called off.
        self.send.send(painted).ok();
        drop(self.done);
        memory::trim();
    }
}
