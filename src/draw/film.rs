//! A picture that moves: its frames, painted one ahead of the one that is shown.
//!
//! Each output that shows one has a thread, which waits while nobody asks for the next frame: what is
//! covered or switched off costs nothing. It ends when its other end is dropped.

use std::io::{self, BufReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use super::paint::{self, Task};
use super::storage::Storage;
use crate::media;
use crate::paths::open_regular;
use crate::sys::Waker;

pub(super) struct Film {
    frames: Receiver<(Storage, Duration)>,
    waker: Arc<Waker>,
}

/// What there is of the next frame.
pub(super) enum NextFrame {
    /// And how long it stays.
    Ready(Arc<Storage>, Duration),
    NotYet,
    /// The file has gone or is damaged: the last frame stays.
    Never,
}

impl Film {
    pub(super) fn start(task: Task) -> io::Result<Self> {
        let (send, frames) = sync_channel(1);
        let waker = Arc::new(Waker::new()?);
        let ring = Ring(Arc::clone(&waker));
        std::thread::Builder::new().name("film".to_owned()).spawn(move || {
            // The decoders may panic on hostile bytes: then the last frame stays.
            catch_unwind(AssertUnwindSafe(|| while run(&task, &send, &ring) {})).ok();
            drop((send, ring));
        })?;
        Ok(Self { frames, waker })
    }

    pub(super) fn next(&self) -> NextFrame {
        self.waker.reset();
        match self.frames.try_recv() {
            Ok((frame, stays)) => NextFrame::Ready(Arc::new(frame), stays),
            Err(TryRecvError::Empty) => NextFrame::NotYet,
            Err(TryRecvError::Disconnected) => NextFrame::Never,
        }
    }
}

impl AsFd for Film {
    /// Readable when there is something new about the next frame.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Rings when it is dropped, too: then there will be no more frames.
struct Ring(Arc<Waker>);

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Once through the file; whether to begin again.
fn run(task: &Task, send: &SyncSender<(Storage, Duration)>, ring: &Ring) -> bool {
    let Ok(file) = open_regular(Path::new(&task.wanted.path)) else { return false };
    let mut file = BufReader::new(file);
    let Ok(probe) = media::probe(&mut file) else { return false };
    let (natural, mut count) = ((probe.width, probe.height), 0_u32);
    let mut is_wanted = true;
    let gone_through = probe.frames(&mut file, &mut |picture, stays| {
        let sent = paint::frame(&picture, natural, task)
            .is_ok_and(|frame| send.send((frame, stays)).is_ok());
        ring.0.wake();
        (count, is_wanted) = (count.saturating_add(1), sent);
        sent
    });
    // What is sound of a damaged one goes on moving.
    is_wanted && count > if gone_through.is_ok() { 0 } else { 1 }
}
