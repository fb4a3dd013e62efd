//! The wait until frames of a film are seen, however long that takes, and then the end of the process
//! that it replaces.
//!
//! A thread of its own, where the output is off or covered while its film is changed; it waits for a
//! word of the new process, and ends with the first frame, with that process, or when it is told to. It
//! ends no process but after a frame, and one that stops itself once the new one has: it shows
//! nothing either, and would come back over it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::Sender;

use super::screen::Screen;
use super::watch::Watch;
use crate::backends::Error;
use crate::sys::{Cancel, CancelOnDrop, lock};
use crate::thread::{Spawner, Thread};

#[derive(Debug)]
pub(super) struct Handover {
    cancel: CancelOnDrop,
    seen: Arc<AtomicBool>,
    /// What it has not ended.
    old: Arc<Mutex<Option<Screen>>>,
    _thread: Thread,
}

impl Handover {
    /// Ends `old` once `new` tells of frames that were seen, and says so on `tell`. Where no thread can
    /// be had it stays: it is on record, and the next daemon ends it.
    pub(super) fn start(
        spawner: &Spawner,
        mut new: Watch,
        old: Option<Screen>,
        tell: Sender<()>,
    ) -> Option<Self> {
        let cancel = Cancel::new().ok()?;
        let seen = Arc::new(AtomicBool::new(false));
        let old = Arc::new(Mutex::new(old));
        let (until, is_seen, its) = (cancel.clone(), Arc::clone(&seen), Arc::clone(&old));
        let wait = move || {
            let end_stopping = || {
                if let Some(old) = lock(&its).take_if(|old| old.stops_itself()) {
                    old.end();
                }
            };
            if new.wait(&until, end_stopping) {
                if let Some(old) = lock(&its).take() {
                    old.end();
                }
                is_seen.store(true, Ordering::SeqCst);
                // A full channel has it looked at as well.
                tell.try_send(()).ok();
            }
        };
        let thread = spawner.spawn("mpv-handover", wait);
        let thread = thread.inspect_err(|error| log::error!("no thread for a handover: {error}"));
        Some(Self { cancel: CancelOnDrop(cancel), seen, old, _thread: thread.ok()? })
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }

    /// Has what is to be ended stand still meanwhile, or go on.
    pub(super) fn rest(&self, rests: bool, cancel: &Cancel) -> Result<(), Error> {
        lock(&self.old).as_mut().map_or(Ok(()), |screen| screen.rest(rests, cancel))
    }

    /// Stops waiting, and gives back what still runs.
    pub(super) fn settle(self) -> Option<Screen> {
        self.cancel.0.cancel();
        lock(&self.old).take()
    }
}
