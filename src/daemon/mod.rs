//! The only place that sees all rooms: wiring, supervision, the order of the end.
//!
//! Runs in the thread `main`, which then waits for signals, for clients that want the daemon to
//! stop, and for the death of a thread. It never waits for a room but at the end, with a limit.

mod database;
mod doctor;
mod end;
mod error;
mod options;
mod paths;
mod rest;
mod take_down;
mod terminal;
mod wiring;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clock;
use crate::config;
use crate::http::Stop;
use crate::lock::Holder;
use crate::memory;
use crate::paths::{Dirs, Env};
use crate::process;
use crate::signals::Signal;
use crate::systemd::Notifier;
use crossbeam_channel::select;

pub(crate) use database::{check as check_database, restore as restore_database};
pub(crate) use doctor::examine;
pub(crate) use error::Error;
pub(crate) use options::Options;
pub(crate) use take_down::take_down;

use paths::DaemonPaths;
use wiring::{Daemon, Wakes};

/// How long the end may take in all.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Runs the daemon until it is told to stop.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let started = Instant::now();
    memory::restrain();
    process::keep_files_private();
    let zone = clock::forget_unusable_zone();
    let env = Env::process();
    let notifier = Notifier::new(&env);
    let (mut daemon, wakes) = Daemon::build(options, &env, started)?;
    if let Some(zone) = zone {
        log::warn!("TZ is {zone:?}, which is no file: the zone of the system counts");
    }
    // Whoever starts us may show a picture as soon as we are ready.
    daemon.wallpaper.wait_for_look();
    notifier.ready();
    log::info!("murald {} is up", env!("CARGO_PKG_VERSION"));
    if options.is_watched(&env) {
        terminal::greet(&daemon);
    } else if options.detached {
        terminal::let_go();
    }
    let reason = supervise(&mut daemon, &wakes);
    notifier.stopping();
    daemon.end(reason.as_ref().is_ok_and(|stop| stop.clear), Instant::now() + END_WITHIN);
    reason.map(drop)
}

/// Reads a file of settings as the start would, without a start: its warnings.
pub(crate) fn check(file: &Path) -> Result<Vec<String>, Error> {
    let settings = config::check(file).map_err(Error::Config)?;
    let dirs = Dirs::of_process().map_err(Error::Paths)?;
    DaemonPaths::new(&settings.daemon, file, &dirs, &Options::default())?;
    Ok(settings.warnings)
}

/// Where the daemon listens that has the library of a configuration, if it answers.
pub(crate) fn listens_at(config: Option<&Path>) -> Option<PathBuf> {
    let dirs = Dirs::of_process().ok()?;
    let file = config.map_or_else(|| dirs.config_file(), Path::to_owned);
    // Without a file, or with one that cannot be read, a daemon may run with the defaults.
    let settings = config::check(&file).unwrap_or_default();
    let paths = DaemonPaths::new(&settings.daemon, &file, &dirs, &Options::default()).ok()?;
    let holder = Holder::of(&paths.database)?;
    holder.answers().then_some(holder.socket?)
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
