//! The order of the end. Each step has a limit and names the thread that is late.

use std::time::{Duration, Instant};

use crossbeam_channel::bounded;

use super::wiring::Daemon;
use crate::store::Store;
use crate::thread::Spawner;

/// What running requests get of the time: a backend that hangs must leave some to the others.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// What the reconciler gets of the time to take its pictures down.
const CLEAR_WITHIN: Duration = Duration::from_secs(3);
/// What threads get of the time that look at disks.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// For the file of the socket and the last lines of the log: all but on a dead disk.
const LAST_WITHIN: Duration = Duration::from_millis(100);
/// What is kept of the time for the database, however late others are.
const CHECKPOINT_WITHIN: Duration = Duration::from_millis(500);

impl Daemon {
    /// Ends everything; with `clear` the wallpapers, too. Each step ends by its limit: whoever is
    /// late is named and left behind.
    pub(super) fn end(mut self, clear: bool, deadline: Instant) {
        log::info!("murald ends");
        let last = deadline;
        let deadline = deadline - CHECKPOINT_WITHIN;
        // First, so that who waits for a video is told while there still is a connection.
        self.transcoder.cancel();
        late(self.server.end(deadline.min(Instant::now() + ANSWER_WITHIN)));
        if let Some(watch) = self.watch {
            in_time("config", watch.end(deadline.min(Instant::now() + LOOK_WITHIN)));
        }
        in_time("parallax", self.parallax.end(deadline));
        in_time("outputs", self.outputs.end(deadline));
        in_time("battery", self.rest.end(deadline));
        in_time("playlist", self.playlists.end(deadline));
        // What it has in hand for an import may hang.
        self.transcoder.cancel_imports();
        late(self.transcoder.end(deadline));
        // One of its threads may look at a disk that does not answer: the others get their time.
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
        in_time("signals", self.signals.end(deadline));
        // On threads of their own: a disk that hangs cannot be told to hurry.
        let store = self.store;
        limited(&self.spawner, "checkpoint", last, move || close(&store));
        let socket = self.socket;
        limited(&self.spawner, "socket", last + LAST_WITHIN, move || drop(socket));
        let log = self.log;
        limited(&self.spawner, "log", last + LAST_WITHIN, move || drop(log));
        // Last of all: whoever gets the lock finds nothing of ours in the way.
        drop(self.locks);
    }
}

fn close(store: &Store) {
    if let Err(error) = store.checkpoint() {
        log::warn!("the database's log is left for the next start: {error}");
    }
}

/// Does what no deadline can be given to, for so long.
fn limited(
    spawner: &Spawner,
    name: &'static str,
    deadline: Instant,
    work: impl FnOnce() + Send + 'static,
) {
    match spawner.spawn(name, work) {
        Ok(thread) => in_time(name, thread.join_by(deadline)),
        Err(error) => log::warn!("{name} is left undone: {error}"),
    }
}

fn take_down(wallpaper: &crate::wallpaper::Handle, deadline: Instant) {
    let (done, told) = bounded(1);
    wallpaper.clear(Box::new(move |result| drop(done.try_send(result))));
    let until = deadline.min(Instant::now() + CLEAR_WITHIN);
    match told.recv_deadline(until) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => log::warn!("not all wallpapers were taken down: {failure}"),
        Err(_) => in_time("reconciler", false),
    }
}

/// What other programs read of wallpapers that are taken down.
fn remove_files(desktop: &crate::desktop::Handle, deadline: Instant) {
    let (done, told) = bounded(1);
    desktop.clear(Box::new(move || {
        // Nobody waits for it any more.
        done.try_send(()).ok();
    }));
    in_time("desktop", told.recv_deadline(deadline).is_ok());
}

fn late(threads: Vec<String>) {
    threads.iter().for_each(|thread| in_time(thread, false));
}

fn in_time(thread: &str, ended: bool) {
    if !ended {
        log::error!("the thread {thread} does not end in time and is left behind");
    }
}
