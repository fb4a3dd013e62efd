//! Runs the daemon: starts, supervises and stops it. The only module that uses all others.
//!
//! Runs on the thread `main`, which waits for signals, for clients that stop the daemon, and for
//! panics of threads. It waits for other threads only during the shutdown, with a limit.

mod doctor;
mod error;
mod offline;
mod options;
mod settings;
mod wiring;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, select};

use self::wiring::{Base, Daemon, Wakes};
use crate::http::Stop;
use crate::paths::Dirs;
use crate::signals::Signal;
use crate::store::Store;
use crate::systemd::Notifier;
use crate::thread::{Spawner, Thread, join_all};
use crate::{clock, config, memory, process, wallpaper};

pub(crate) use doctor::examine;
pub(crate) use error::Error;
pub(crate) use offline::{check, check_database, listens_at, restore_database, take_down};
pub(crate) use options::Options;

/// Time limit for the whole shutdown.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Runs the daemon until it is told to stop.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let started = Instant::now();
    memory::restrain();
    process::keep_files_private();
    let zone = clock::forget_unusable_zone();
    let dirs = Dirs::from_process().map_err(Error::Paths)?;
    let notifier = Notifier::new(dirs.env());
    let is_watched = options.is_watched(dirs.env());
    let (mut daemon, wakes) = Daemon::build(options, dirs, started)?;
    if let Some(zone) = zone {
        log::warn!("ignoring TZ={zone:?}: no such time zone; using the system's");
    }
    // Clients may set a wallpaper as soon as the daemon is ready.
    daemon.wallpaper.wait_for_look();
    notifier.ready();
    log::info!("murald {} started", env!("CARGO_PKG_VERSION"));
    if is_watched {
        greet(&daemon);
    } else if options.detached {
        let_go();
    }
    let reason = supervise(&mut daemon, &wakes);
    notifier.stopping();
    daemon.end(
        reason.as_ref().is_ok_and(|stop| stop.clear),
        Instant::now() + END_WITHIN,
    );
    reason.map(drop)
}

/// Waits for the reason to stop.
fn supervise(daemon: &mut Daemon, wakes: &Wakes) -> Result<Stop, Error> {
    loop {
        select! {
            recv(wakes.signals) -> signal => match signal {
                Ok(Signal::Reload) => daemon.reload(),
                Ok(Signal::End) | Err(_) => return Ok(Stop { clear: false }),
            },
            recv(wakes.stops) -> stop => return Ok(stop.unwrap_or(Stop { clear: false })),
            recv(wakes.deaths) -> name => {
                return Err(Error::Died { thread: name.unwrap_or_default() });
            }
        }
    }
}

/// Prints the status of a ready daemon on a terminal; the log is not printed there.
fn greet(daemon: &Daemon) {
    let mut lines = vec![
        format!(
            "murald {} is ready on {}",
            env!("CARGO_PKG_VERSION"),
            daemon.address().display()
        ),
        format!("backend: {}", backend(daemon)),
        format!("monitors: {}", monitors(daemon)),
        "Ctrl-C or `murald stop` stops it".to_owned(),
    ];
    lines.extend(
        daemon
            .base
            .config
            .warnings()
            .into_iter()
            .map(|text| format!("warning: {text}")),
    );
    // The terminal may have gone.
    writeln!(io::stderr(), "{}", lines.join("\n")).ok();
}

/// Returns the backend that is or will be used, or the reason why there is none.
fn backend(daemon: &Daemon) -> String {
    let wanted = daemon.base.config.current().backend.kind;
    let first = || Some(daemon.backends.available_or_first(wanted)?.name);
    if let Some(name) = daemon.wallpaper.status().active.or_else(first) {
        return name.to_string();
    }
    format!("none: {}", wallpaper::Error::no_backend(&daemon.backends))
}

fn monitors(daemon: &Daemon) -> String {
    let names: Vec<_> = daemon
        .outputs
        .outputs()
        .list()
        .iter()
        .map(|output| output.name.clone())
        .collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Closes stderr of a daemon that a command has started: the command waits for the end of that
/// pipe. Such a daemon's stdout is /dev/null, so no new descriptor is needed.
fn let_go() {
    if let Err(error) = rustix::stdio::dup2_stderr(rustix::stdio::stdout()) {
        log::warn!("cannot close standard error: {error}");
    }
}

/// Time limit for running requests: a backend that hangs must leave time for the others.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Time limit for the reconciler to remove the wallpapers.
const CLEAR_WITHIN: Duration = Duration::from_secs(3);
/// Time limit for removing the socket and writing the last log lines, which block only on a dead
/// disk.
const LAST_WITHIN: Duration = Duration::from_millis(100);
/// Time reserved for the database, however late other threads are.
const CHECKPOINT_WITHIN: Duration = Duration::from_millis(500);

impl Daemon {
    /// Stops everything; with `clear`, also removes the wallpapers. A thread that exceeds its time
    /// limit is logged and abandoned.
    fn end(mut self, clear: bool, deadline: Instant) {
        log::info!("shutting down");
        let last = deadline;
        let deadline = deadline - CHECKPOINT_WITHIN;
        // First, so that clients that wait for a video get an answer on an open connection.
        self.transcoder.cancel();
        self.decoder.end_clients();
        late(
            self.server
                .end(deadline.min(Instant::now() + ANSWER_WITHIN)),
        );
        // Threads that may wait for a disk that does not answer are joined last: the others must
        // still get time.
        let mut on_disks: Vec<Thread> = self.watch.into_iter().map(config::Watch::end).collect();
        in_time("parallax", self.parallax.end(deadline));
        in_time("workspaces", self.workspaces.end(deadline));
        in_time("outputs", self.outputs.end(deadline));
        in_time("logs", self.logs.end(deadline));
        in_time("battery", self.pause.end(deadline));
        in_time("playlist", self.playlists.end(deadline));
        // An import may wait for its jobs.
        self.decoder.end_imports();
        on_disks.extend(self.transcoder.end());
        on_disks.extend(self.imports.end());
        if clear {
            remove_wallpapers(&self.wallpaper, deadline);
        }
        in_time("reconciler", self.reconciler.end(deadline));
        if clear {
            remove_files(&self.desktop, deadline);
        }
        late(self.desktop_owner.end(deadline));
        in_time("database", self.upkeep.end(deadline));
        let Base {
            spawner,
            store,
            signals,
            log,
            locks,
            ..
        } = self.base;
        in_time("signals", signals.end(deadline));
        late(join_all(on_disks, deadline));
        // Run on separate threads, as an access to a disk that hangs cannot be interrupted.
        limited(&spawner, "checkpoint", last, move || close(&store));
        let socket = self.socket;
        limited(&spawner, "socket", last + LAST_WITHIN, move || drop(socket));
        limited(&spawner, "log", last + LAST_WITHIN, move || drop(log));
        // Dropped last, so that the next daemon finds everything closed.
        drop(locks);
    }
}

fn close(store: &Store) {
    if let Err(error) = store.checkpoint() {
        log::warn!("cannot checkpoint the database; the next start will: {error}");
    }
}

/// Runs work that takes no deadline on a separate thread, and waits until the deadline.
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

fn remove_wallpapers(wallpaper: &crate::wallpaper::Handle, deadline: Instant) {
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
