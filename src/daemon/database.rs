//! The database without the daemon: what the command looks at and restores, in its own process.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::options::Options;
use super::paths::DaemonPaths;
use crate::config::ConfigHandle;
use crate::events::EventBus;
use crate::lock::Lock;
use crate::paths::Dirs;
use crate::store::{self, backup};
use crate::wire::DatabaseReport;

/// Looks at all of the database that a daemon with this file of settings has, or would have.
pub(crate) fn check(config: &Path) -> Result<DatabaseReport, Error> {
    Ok(store::check(&place(config)?))
}

/// Restores it from a backup, or from the newest that is sound, where no daemon has it open: where
/// from, and where the old one is now.
pub(crate) fn restore(
    config: &Path,
    from: Option<&Path>,
) -> Result<(PathBuf, Option<PathBuf>), Error> {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let database = place(config)?;
    let _lock = Lock::take(&database, None).map_err(Error::Lock)?;
    let restored = backup::restore(&database, from).map_err(Error::Store)?;
    Ok((restored.from, restored.aside))
}

fn place(config: &Path) -> Result<PathBuf, Error> {
    let dirs = Dirs::of_process().map_err(Error::Paths)?;
    let config =
        ConfigHandle::read(config.to_owned(), EventBus::for_startup()).map_err(Error::Config)?;
    let settings = config.current();
    DaemonPaths::new(&settings.daemon, config.path(), &dirs, &Options::default())
        .map(|paths| paths.database)
}
