//! Stops the daemon in order. Each step has a time limit and logs the threads that exceed it.
//!
//! Runs in the thread `main`.

use std::time::{Duration, Instant};

use crossbeam_channel::bounded;

use super::wiring::{Base, Daemon};
use crate::store::Store;
use crate::thread::Spawner;

/// The limit for running requests: a backend that hangs must leave time for the others.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The limit for the reconciler to remove its wallpapers.
const CLEAR_WITHIN: Duration = Duration::from_secs(3);
/// The limit for threads that read disks.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// The limit for the socket's file and the last lines of the log, which hang only on a dead disk.
const LAST_WITHIN: Duration = Duration::from_millis(100);
/// The time that is reserved for the database, however late others are.
const CHECKPOINT_WITHIN: Duration = Duration::from_millis(500);

impl Daemon {
    /// Stops everything; with `clear` also removes the wallpapers. A thread that exceeds its limit is
    /// logged and abandoned.
    pub(super) fn end(mut self, clear: bool, deadline: Instant) {
        log::info!("shutting down");
        let last = deadline;
        let deadline = deadline - CHECKPOINT_WITHIN;
        // First, so that clients that wait for a video get an answer on an open connection.
        self.transcoder.cancel();
        self.decoder.end_clients();
        late(self.server.end(deadline.min(Instant::now() + ANSWER_WITHIN)));
        if let Some(watch) = self.watch {
            in_time("config", watch.end(deadline.min(Instant::now() + LOOK_WITHIN)));
        }
        in_time("parallax", self.parallax.end(deadline));
        in_time("outputs", self.outputs.end(deadline));
        in_time("battery", self.pause.end(deadline));
        in_time("playlist", self.playlists.end(deadline));
        // Its job for an import may hang.
        self.transcoder.cancel_imports();
        self.decoder.end_imports();
        late(self.transcoder.end(deadline));
        // One of its threads may wait for a disk that does not answer: the others get their time.
        late(self.imports.end(deadline.min(Instant::now() + LOOK_WITHIN)));
        if clear {
            take_down(&self.wallpaper, deadline);
        }
        in_time("reconciler", self.reconciler.end(deadline));
        if clear {
            remove_files(&self.desktop, deadline);
        }
        late(self.desktop_owner.end(deadline));
        in_time("database", self.upkeep.end(deadline));
        let Base { spawner, store, signals, log, locks, .. } = self.base;
        in_time("signals", signals.end(deadline));
        // On threads of their own: an access to a disk that hangs cannot be interrupted.
        limited(&spawner, "checkpoint", last, move || close(&store));
        let socket = self.socket;
        limited(&spawner, "socket", last + LAST_WITHIN, move || drop(socket));
        limited(&spawner, "log", last + LAST_WITHIN, move || drop(log));
        // Last, so that the next daemon finds nothing of ours in the way.
        drop(locks);
    }
}

fn close(store: &Store) {
    if let Err(error) = store.checkpoint() {
        log::warn!("cannot complete the database's log, the next start does: {error}");
    }
}

/// Runs work that takes no deadline on a thread of its own, and waits until the deadline.
fn limited(
    spawner: &Spawner,
    name: &'static str,
    deadline: Instant,
    work: impl FnOnce() + Send + 'static,
) {
    match spawner.spawn(name, work) {
        Ok(thread) => in_time(name, thread.join_by(deadline)),
        Err(error) => log::warn!("{name} failed: {error}"),
    }
}

fn take_down(wallpaper: &crate::wallpaper::Handle, deadline: Instant) {
    let (done, told) = bounded(1);
    wallpaper.clear(Box::new(move |result| drop(done.try_send(result))));
    let until = deadline.min(Instant::now() + CLEAR_WITHIN);
    match told.recv_deadline(until) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => log::warn!("not all wallpapers were removed: {failure}"),
        Err(_) => in_time("reconciler", false),
    }
}

/// Removes the files that other programs read, after the wallpapers were removed.
fn remove_files(desktop: &crate::desktop::Handle, deadline: Instant) {
    let (done, told) = bounded(1);
    desktop.clear(Box::new(move || {
        // The receiver may be gone after the deadline.
        done.try_send(()).ok();
    }));
    in_time("desktop", told.recv_deadline(deadline).is_ok());
}

fn late(threads: Vec<String>) {
    threads.iter().for_each(|thread| in_time(thread, false));
}

fn in_time(thread: &str, ended: bool) {
    if !ended {
        log::error!("timed out waiting for thread {thread}; continuing without it");
    }
}
