//! Why the daemon does not start, or ends.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use serde::Deserialize;

use super::doctor::daemon::get;
use crate::lock::Holder;
use crate::wire::Session;
use crate::{config, lock, paths, process, store};

#[derive(Debug)]
pub(crate) enum Error {
    Paths(paths::Error),
    Config(config::Error),
    /// A path of the configuration cannot be expanded.
    Setting {
        file: PathBuf,
        key: &'static str,
        source: paths::Error,
    },
    /// What is needed from the start lies on a disk that hangs.
    NoAnswer {
        path: PathBuf,
    },
    Log(flexi_logger::FlexiLoggerError),
    Lock(lock::Error),
    Store(store::Error),
    Process(process::Error),
    /// A thread or descriptor cannot be had.
    Start {
        what: &'static str,
        source: io::Error,
    },
    /// A thread panicked: the log has its words.
    Died {
        thread: String,
    },
}

impl Error {
    /// As `sysexits.h` numbers them (contract section 9).
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Lock(lock::Error::Running { .. } | lock::Error::InUse { .. }) => 75,
            // Nothing is wrong in the file.
            Self::Config(config::Error::NoAnswer { .. }) => 70,
            Self::Config(_) | Self::Setting { .. } | Self::Paths(_) => 78,
            _ => 70,
        }
    }

    /// What to do next, where it is not what the exit code says already.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Lock(lock::Error::Running { path, holder: Some(holder) }) => {
                unreached(path, holder)
            }
            Self::Lock(lock::Error::InUse { .. }) => {
                Some("set daemon.images_dir to a directory of its own".to_owned())
            }
            Self::Paths(_) => Some("set HOME to your home directory".to_owned()),
            Self::Store(store::Error::Newer { .. }) => Some(
                "start the murald that wrote it, or `murald library restore` brings back the newest \
                 backup that this one can read"
                    .to_owned(),
            ),
            // What the user can mend has its own words.
            Self::Store(error) if !error.is_storage() => Some(
                "`murald library check` tells what is wrong, `murald library restore` brings back \
                 the last backup"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// What to do about a daemon that the usual socket does not reach: it takes nobody in, listens
/// elsewhere, or its socket was removed.
fn unreached(lock: &Path, holder: &Holder) -> Option<String> {
    let pid = holder.pid;
    match &holder.socket {
        None => Some(format!("try again once process {pid} has ended")),
        Some(_) if holder.is_stuck() => Some(format!(
            "it takes nobody in: `kill -9 {pid}` ends it, and leaves its wallpapers, if that stays so"
        )),
        Some(_) if !holder.answers() => {
            Some(format!("its socket is gone: `kill -HUP {pid}` makes it listen again"))
        }
        Some(socket) if socket.with_extension("lock") != lock => {
            let socket = socket.display();
            Some(format!(
                "`murald --socket {socket} status` shows it, `murald --socket {socket} stop` ends it"
            ))
        }
        Some(socket) => other_session(socket),
    }
}

#[derive(Deserialize)]
struct Info {
    session: Option<Session>,
}

/// What to do about a daemon that draws in another session than this one.
fn other_session(socket: &Path) -> Option<String> {
    let session = get::<Info>(socket, "info")?.session?;
    session.is_another(|name| std::env::var_os(name)).then(|| {
        format!("it draws in {session}, not in this one: `murald stop`, then start it here")
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paths(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Setting { file, key, source } => {
                write!(f, "{}: daemon.{key}: {source}", file.display())
            }
            Self::NoAnswer { path } => {
                write!(f, "the disk of {} does not answer", path.display())
            }
            Self::Log(_) => f.write_str("cannot start the log"),
            Self::Lock(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::Start { what, .. } => write!(f, "cannot start {what}"),
            Self::Died { thread } => {
                write!(f, "the thread {thread} died; the daemon ends to be started afresh")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Paths(error) => error.source(),
            Self::Config(error) => error.source(),
            Self::Setting { source, .. } => source.source(),
            Self::Log(source) => Some(source),
            Self::Lock(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Process(error) => error.source(),
            Self::Start { source, .. } => Some(source),
            Self::NoAnswer { .. } | Self::Died { .. } => None,
        }
    }
}
