//! Runs the daemon: start, supervision and end. The only module that uses all the others.
//!
//! Runs in the thread `main`, which then waits for signals, for clients that stop the daemon, and for
//! the death of a thread. It waits for other threads only at the end, with a limit.

mod doctor;
mod end;
mod error;
mod offline;
mod options;
mod pause;
mod wiring;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::http::Stop;
use crate::paths::Dirs;
use crate::signals::Signal;
use crate::systemd::Notifier;
use crate::{clock, memory, process, wallpaper};
use crossbeam_channel::select;

pub(crate) use doctor::examine;
pub(crate) use error::Error;
pub(crate) use offline::{check, check_database, listens_at, restore_database, take_down};
pub(crate) use options::Options;

use wiring::{Daemon, Wakes};

/// The limit for the end as a whole.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Runs the daemon until it is told to stop.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let started = Instant::now();
    memory::restrain();
    process::keep_files_private();
    let zone = clock::forget_unusable_zone();
    let dirs = Dirs::of_process().map_err(Error::Paths)?;
    let notifier = Notifier::new(dirs.env());
    let is_watched = options.is_watched(dirs.env());
    let (mut daemon, wakes) = Daemon::build(options, dirs, started)?;
    if let Some(zone) = zone {
        log::warn!("ignoring TZ={zone:?}: no such time zone; using the system's");
    }
    // Clients may set a wallpaper as soon as we are ready.
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
    daemon.end(reason.as_ref().is_ok_and(|stop| stop.clear), Instant::now() + END_WITHIN);
    reason.map(drop)
}

/// Waits for the reason to end.
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

/// Prints the status of a ready daemon on a terminal, in place of the log.
fn greet(daemon: &Daemon) {
    let mut lines = vec![
        format!("murald {} is ready on {}", env!("CARGO_PKG_VERSION"), daemon.address().display()),
        format!("backend: {}", backend(daemon)),
        format!("monitors: {}", monitors(daemon)),
    ];
    lines.extend(daemon.base.config.warnings().into_iter().map(|text| format!("warning: {text}")));
    // The terminal may have gone.
    writeln!(io::stderr(), "{}", lines.join("\n")).ok();
}

/// The backend that is used, or will be; without one, the reason.
fn backend(daemon: &Daemon) -> String {
    let available = daemon.backends.available();
    let wanted = daemon.base.config.current().backend.kind;
    let first = || available.iter().find(|one| one.name == wanted).or(available.first());
    if let Some(name) = daemon.wallpaper.status().active.or_else(|| Some(first()?.name)) {
        return name.to_string();
    }
    format!("none: {}", wallpaper::Error::no_backend(&daemon.backends))
}

fn monitors(daemon: &Daemon) -> String {
    let names: Vec<_> =
        daemon.outputs.outputs().list().iter().map(|output| output.name.clone()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Closes the outputs of a daemon that a command has started, because the command has exited.
fn let_go() {
    let done = OpenOptions::new().write(true).open("/dev/null").and_then(|null| {
        rustix::stdio::dup2_stdout(&null)?;
        Ok(rustix::stdio::dup2_stderr(&null)?)
    });
    if let Err(error) = done {
        log::warn!("cannot close the outputs: {error}");
    }
}
