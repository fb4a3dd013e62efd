//! The end of old processes once frames of the new one are seen, however long that takes.
//!
//! A thread for each output that is off or covered while its film is changed; it waits for a word of
//! the new process, and ends with the first frame, with that process, or when it is told to. It ends
//! no process but after a frame.

use crossbeam_channel::{Receiver, bounded};

use super::Screen;
use super::ipc::Ipc;
use crate::sys::Cancel;
use crate::thread::{Spawner, Thread};

#[derive(Debug)]
pub(super) struct Handover {
    cancel: Cancel,
    /// What it has not ended.
    left: Receiver<Vec<Screen>>,
    _thread: Thread,
}

impl Handover {
    /// Ends `old` once `new` tells of frames that were seen. Where no thread can be had both stay:
    /// they are on record, and the next daemon ends the older one.
    pub(super) fn start(spawner: &Spawner, mut new: Ipc, old: Vec<Screen>) -> Option<Self> {
        if old.is_empty() {
            return None;
        }
        let cancel = Cancel::new().ok()?;
        let (send, left) = bounded(1);
        let theirs = cancel.clone();
        let wait = move || {
            let mut old = old;
            if new.wait_until_seen(&theirs) {
                old.drain(..).for_each(Screen::end);
            }
            // Nobody may be left to take them: then the next daemon does.
            send.send(old).ok();
        };
        let thread = spawner.spawn("mpv-handover", wait);
        let thread = thread.inspect_err(|error| log::error!("no thread for a handover: {error}"));
        Some(Self { cancel, left, _thread: thread.ok()? })
    }

    /// Stops waiting, and gives back what still runs, the oldest first.
    pub(super) fn settle(self) -> Vec<Screen> {
        self.cancel.cancel();
        self.left.recv().unwrap_or_default()
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // Before the thread is joined.
        self.cancel.cancel();
    }
}
