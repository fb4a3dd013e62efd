//! The order of the end. Each step has a limit and names the thread that is late.

use std::time::{Duration, Instant};

use crossbeam_channel::bounded;

use super::wiring::House;

/// What running requests get of the time: a setter that hangs must leave some to the others.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// What the stage gets of the time to take its pictures down.
const CLEAR_WITHIN: Duration = Duration::from_secs(3);

impl House {
    /// Ends everything; with `clear` the wallpapers, too.
    pub(super) fn end(mut self, clear: bool, deadline: Instant) {
        log::info!("murald ends");
        // First, so that who waits for a video is told while there still is a connection.
        self.films.cancel();
        for thread in self.server.end(deadline.min(Instant::now() + ANSWER_WITHIN)) {
            late(&thread);
        }
        drop(self.watch);
        self.parallax.end();
        drop(self.outputs);
        if !self.playlists.end(deadline) {
            late("playlist");
        }
        // What it has in hand for an import may hang.
        self.films.cancel_imports();
        for thread in self.films.end(deadline) {
            late(&thread);
        }
        for thread in self.imports.end(deadline) {
            late(&thread);
        }
        if clear {
            take_down(&self.walls, deadline);
        }
        if !self.stage.end(deadline) {
            late("stage");
        }
        if let Err(error) = self.store.checkpoint() {
            log::warn!("the database's log is left for the next start: {error}");
        }
        drop(self.signals);
        drop(self.socket);
        drop(self.log);
        // Last of all: whoever gets the lock finds nothing of ours in the way.
        drop(self.locks);
    }
}

fn take_down(walls: &crate::wallpaper::Walls, deadline: Instant) {
    let (done, told) = bounded(1);
    walls.clear(Box::new(move |result| drop(done.try_send(result))));
    let until = deadline.min(Instant::now() + CLEAR_WITHIN);
    match told.recv_deadline(until) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => log::warn!("not all wallpapers were taken down: {failure}"),
        Err(_) => late("stage"),
    }
}

fn late(thread: &str) {
    log::error!("the thread {thread} does not end in time and is left behind");
}
