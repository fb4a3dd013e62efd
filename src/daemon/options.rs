//! Resolves command-line options, the paths in the configuration and the settings of the log.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use log::LevelFilter;

use super::error::Error;
use crate::compositor::Compositor;
use crate::config::{self, LogLevel};
use crate::error_chain::chain;
use crate::lock::{self, Lock};
use crate::paths::{self, Dirs, Env};
use crate::store::{Store, images};
use crate::wire::InfoPaths;
use crate::{digest, logging};

#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Replaces `$XDG_CONFIG_HOME/murald/config.toml`.
    pub config: Option<PathBuf>,
    /// Overrides `MURALD_LOG` and `daemon.log_level`.
    pub log_level: Option<LogLevel>,
    /// Replaces `daemon.socket_path`.
    pub socket: Option<PathBuf>,
    /// The daemon was started by a command, which reads its output until it is ready.
    pub detached: bool,
}

impl Options {
    /// Whether stderr is the terminal of a user who has not asked for the log.
    pub(super) fn is_watched(&self, env: &Env) -> bool {
        let asked = self.log_level.is_some() || env.var("MURALD_LOG").is_some();
        !asked && !self.detached && io::stderr().is_terminal()
    }
}

/// The paths of `[daemon]`, expanded.
pub(super) struct DaemonPaths {
    pub(super) socket: PathBuf,
    pub(super) images: PathBuf,
    pub(super) thumbnails: PathBuf,
    pub(super) database: PathBuf,
    pub(super) log: PathBuf,
    /// The directory of records and files that backends need while they run.
    pub(super) backends: PathBuf,
    /// The directory for slices and converted copies.
    pub(super) cache: PathBuf,
}

impl DaemonPaths {
    pub(super) fn new(
        daemon: &config::Daemon,
        file: &Path,
        dirs: &Dirs,
        options: &Options,
    ) -> Result<Self, Error> {
        let expand = |key, written: &str| {
            let file = file.to_owned();
            dirs.expand(written)
                .map_err(|problem| Error::Setting { file, key, problem })
        };
        let socket = match &options.socket {
            Some(path) => path.clone(),
            None => dirs
                .expand_socket(&daemon.socket_path)
                .map_err(|problem| Error::Setting {
                    file: file.to_owned(),
                    key: "socket_path",
                    problem,
                })?,
        };
        let runtime = dirs.runtime().map_err(Error::Paths)?.join("murald");
        Ok(Self {
            backends: runtime.join(records_directory(&socket)),
            socket,
            images: expand("images_dir", &daemon.images_dir)?,
            thumbnails: expand("thumbnails_dir", &daemon.thumbnails_dir)?,
            database: expand("database_dir", &daemon.database_dir)?.join("murald.sqlite3"),
            log: expand("log_file", &daemon.log_file)?,
            cache: dirs.cache().join("backends"),
        })
    }

    /// Returns the paths as clients get them.
    pub(super) fn info(&self, config: &Path, dirs: &Dirs) -> InfoPaths {
        let text = |path: &Path| {
            let absolute = std::path::absolute(path);
            absolute
                .as_deref()
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned()
        };
        InfoPaths {
            socket: text(&self.socket),
            config: text(config),
            images: text(&self.images),
            thumbnails: text(&self.thumbnails),
            database: text(&self.database),
            log: text(&self.log),
            state: text(&dirs.state()),
        }
    }
}

pub(super) fn log_settings(
    daemon: &config::Daemon,
    paths: &DaemonPaths,
    options: &Options,
    env: &Env,
) -> logging::Settings {
    let from_env = || env.var("MURALD_LOG")?.to_str()?.parse().ok();
    let level: LogLevel = options
        .log_level
        .or_else(from_env)
        .unwrap_or(daemon.log_level);
    logging::Settings {
        level: match level {
            LogLevel::Debug => LevelFilter::Debug,
            LogLevel::Info => LevelFilter::Info,
            LogLevel::Warn => LevelFilter::Warn,
            LogLevel::Error => LevelFilter::Error,
        },
        file: paths.log.clone(),
        max_size: u64::from(daemon.log_max_size_mb) << 20,
        backups: daemon.log_max_backups,
    }
}

pub(super) fn wanted_compositor(settings: &config::Config) -> Option<Compositor> {
    // `None` means any that runs.
    match settings.daemon.compositor {
        config::Compositor::Auto => None,
        config::Compositor::Wayland => Some(Compositor::Wayland),
        config::Compositor::X11 => Some(Compositor::X11),
    }
}

/// Locks the library's files against other daemons, which would remove files that are not in their
/// databases. Returns `None` if the directory cannot be locked, for example on an unmounted disk,
/// where no file can be removed either.
pub(super) fn lock_images(directory: &Path, store: &Store) -> Result<Option<Lock>, Error> {
    let unlocked = |why: &str| {
        log::warn!(
            "cannot lock {} against other daemons: {why}",
            directory.display()
        );
        Ok(None)
    };
    // The directory of a library with images must not be created again: its disk may be unmounted.
    if store.read(images::count).is_ok_and(|images| images == 0) {
        // The import reports why the directory cannot be created.
        paths::make_directories(directory).ok();
    }
    match Lock::take_directory(directory) {
        Ok(lock) => Ok(Some(lock)),
        Err(error @ lock::Error::InUse { .. }) => Err(Error::Lock(error)),
        Err(error) => unlocked(&chain(&error)),
    }
}

/// Returns the name of the directory for records of backends. Each socket has its own, so that two
/// daemons of one user do not adopt each other's backends.
fn records_directory(socket: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    format!(
        "backends-{}",
        digest::short(socket.as_os_str().as_bytes(), 6)
    )
}
