//! `stop --clear` without a daemon: what the last one has left on the screen goes, in the command's own
//! process.

use std::time::Duration;

use super::error::Error;
use super::options::Options;
use super::paths::DaemonPaths;
use crate::config::ConfigHandle;
use crate::desktop;
use crate::events::EventBus;
use crate::lock::Lock;
use crate::paths::Dirs;
use crate::process::ProcessRecords;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Ends the processes that are on record as murald's, and removes what other programs read of the
/// wallpapers; how many processes those were. An error if a daemon runs.
pub(crate) fn take_down(options: &Options) -> Result<usize, Error> {
    let dirs = Dirs::of_process().map_err(Error::Paths)?;
    let config = options.config.clone().unwrap_or_else(|| dirs.config_file());
    let config = ConfigHandle::read(config, EventBus::for_startup()).map_err(Error::Config)?;
    let paths = DaemonPaths::new(&config.current().daemon, config.path(), &dirs, options)?;
    // A daemon that starts meanwhile would take the processes over.
    let _lock = Lock::take(&paths.socket, None).map_err(Error::Lock)?;
    let ended = ProcessRecords::at(&paths.backends).end_all(GRACE);
    desktop::remove_files(dirs.state());
    Ok(ended)
}
