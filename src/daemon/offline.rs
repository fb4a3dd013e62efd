//! Commands that work without a daemon, in the command's own process: checking settings, checking and
//! restoring the database, and removing the wallpapers of the last daemon.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::Error;
use super::options::{DaemonPaths, Options, wanted_compositor};
use crate::backends;
use crate::compositor::{self, Session};
use crate::config::{self, ConfigHandle};
use crate::desktop;
use crate::events::EventBus;
use crate::lock::{Holder, Lock};
use crate::paths::Dirs;
use crate::process::ProcessRecords;
use crate::store::{self, backup};
use crate::wire::DatabaseReport;

/// Reads a configuration file as the start would; returns its warnings.
pub(crate) fn check(file: &Path) -> Result<Vec<String>, Error> {
    let settings = config::check(file).map_err(Error::Config)?;
    let dirs = Dirs::from_process().map_err(Error::Paths)?;
    DaemonPaths::new(&settings.daemon, file, &dirs, &Options::default())?;
    Ok(settings.warnings)
}

/// How long to wait for a daemon to create its socket again.
const BOUND_WITHIN: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the socket of the daemon that uses the library of a configuration, if it answers. A daemon
/// whose socket was removed with its directory creates it again.
pub(crate) fn listens_at(config: Option<&Path>) -> Option<PathBuf> {
    let dirs = Dirs::from_process().ok()?;
    let file = config.map_or_else(|| dirs.config_file(), Path::to_owned);
    // If the file is missing or cannot be read, a daemon may run with the defaults.
    let settings = config::check(&file).unwrap_or_default();
    let paths = DaemonPaths::new(&settings.daemon, &file, &dirs, &Options::default()).ok()?;
    let holder = Holder::find(&paths.database)?;
    let socket = holder.socket.clone()?;
    if fs::symlink_metadata(&socket).is_err() {
        let process = Pid::from_raw(holder.pid.cast_signed())?;
        kill_process(process, Signal::HUP).ok()?;
        let until = Instant::now() + BOUND_WITHIN;
        while !holder.answers() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }
    holder.answers().then_some(socket)
}

/// Checks the whole database that a configuration file names.
pub(crate) fn check_database(config: &Path) -> Result<DatabaseReport, Error> {
    Ok(store::check(&database_of(config)?))
}

/// Restores the database from a backup, by default the newest intact one. Fails if a daemon has it
/// open. Returns the backup and the new path of the old database.
pub(crate) fn restore_database(
    config: &Path,
    from: Option<&Path>,
) -> Result<(PathBuf, Option<PathBuf>), Error> {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let database = database_of(config)?;
    let _lock = Lock::take(&database, None).map_err(Error::Lock)?;
    let restored = backup::restore(&database, from).map_err(Error::Store)?;
    Ok((restored.from, restored.aside))
}

fn database_of(config: &Path) -> Result<PathBuf, Error> {
    let dirs = Dirs::from_process().map_err(Error::Paths)?;
    let config =
        ConfigHandle::read(config.to_owned(), EventBus::for_startup()).map_err(Error::Config)?;
    let settings = config.current();
    DaemonPaths::new(&settings.daemon, config.path(), &dirs, &Options::default())
        .map(|paths| paths.database)
}

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Kills the recorded processes of the last daemon, clears the root window of an X server, and removes
/// the files that other programs read. Returns the number of wallpapers. Fails if a daemon is running.
pub(crate) fn take_down(options: &Options) -> Result<usize, Error> {
    let dirs = Dirs::from_process().map_err(Error::Paths)?;
    let config = options.config.clone().unwrap_or_else(|| dirs.config_file());
    let config = ConfigHandle::read(config, EventBus::for_startup()).map_err(Error::Config)?;
    let paths = DaemonPaths::new(&config.current().daemon, config.path(), &dirs, options)?;
    // The locks keep out a daemon that starts now and would adopt the processes. The second lock
    // detects a daemon that runs with another socket.
    let _socket = Lock::take(&paths.socket, None).map_err(Error::Lock)?;
    let _database = Lock::take(&paths.database, None).map_err(Error::Lock)?;
    let mut ended = ProcessRecords::read_only(&paths.backends).end_all(GRACE);
    let wanted = wanted_compositor(&config.current());
    if let Ok(Session::X11 { display }) = compositor::reach(wanted, dirs.env()) {
        ended += usize::from(backends::clear_root(&display));
    }
    desktop::remove_files(dirs.state());
    Ok(ended)
}
