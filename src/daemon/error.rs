//! Defines the errors of starting and running the daemon, with hints for the user.
//!
//! To give a hint, the error may ask the running daemon, with a time limit.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error_chain::chain;
use crate::lock::Holder;
use crate::wire::{Session, unix};
use crate::{config, lock, paths, process, store};

/// Time limit; a daemon answers such requests within milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_MAX: u64 = 1 << 20;
/// The next step if the database is of a newer version.
pub(super) const NEWER: &str = "start the newer murald, or run `murald library restore` for the newest backup \
    that this version can read";

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Paths(paths::Error),
    #[error(transparent)]
    Config(config::Error),
    /// A path of the configuration cannot be expanded.
    #[error("{}: daemon.{key}: {}", file.display(), chain(problem))]
    Setting {
        file: PathBuf,
        key: &'static str,
        problem: paths::Error,
    },
    #[error("cannot start the log")]
    Log(#[source] flexi_logger::FlexiLoggerError),
    #[error(transparent)]
    Lock(lock::Error),
    #[error(transparent)]
    Store(store::Error),
    #[error(transparent)]
    Process(process::Error),
    /// No thread or descriptor is available.
    #[error("cannot start {what}")]
    Start {
        what: &'static str,
        source: io::Error,
    },
    /// A thread panicked: the log has the message.
    #[error("thread {thread} died; the daemon exits so that it can be restarted")]
    Died { thread: String },
}

impl Error {
    /// Returns the exit code, from `sysexits.h`.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Lock(lock::Error::Running { .. } | lock::Error::InUse { .. }) => 75,
            // The file itself is not wrong.
            Self::Config(config::Error::NoAnswer { .. }) => 70,
            Self::Config(_) | Self::Setting { .. } | Self::Paths(_) => 78,
            _ => 70,
        }
    }

    /// Returns the next step for the user, unless the message names it already.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Lock(lock::Error::Running {
                path,
                holder: Some(holder),
            }) => unreached(path, holder),
            Self::Lock(lock::Error::InUse { .. }) => {
                Some("set daemon.images_dir to a directory that no other daemon uses".to_owned())
            }
            Self::Paths(_) => Some("set HOME to your home directory".to_owned()),
            Self::Store(store::Error::Newer { .. }) => Some(NEWER.to_owned()),
            // Storage errors that the user can fix say so themselves.
            Self::Store(error) if !error.is_storage() => {
                Some("run `murald library check`, then `murald library restore`".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns the next step if the running daemon cannot be reached at the usual socket: it accepts no
/// connections, uses another socket, or its socket was removed.
fn unreached(lock: &Path, holder: &Holder) -> Option<String> {
    let pid = holder.pid;
    match &holder.socket {
        None => Some(format!("try again when process {pid} has exited")),
        Some(_) if holder.is_stuck() => Some(format!(
            "it does not accept connections: if that persists, run `kill -9 {pid}` (its wallpapers stay)"
        )),
        Some(_) if !holder.answers() => Some(format!(
            "its socket is missing: run `kill -HUP {pid}` to restore it"
        )),
        Some(socket) if socket.with_extension("lock") != lock => {
            let socket = socket.display();
            Some(format!(
                "run `murald --socket {socket} status` to see it, `murald --socket {socket} stop` to stop it"
            ))
        }
        Some(socket) => other_session(socket),
    }
}

#[derive(Deserialize)]
struct DrawnSession {
    session: Option<Session>,
}

/// Returns the next step if the running daemon draws in another session.
fn other_session(socket: &Path) -> Option<String> {
    let session = get::<DrawnSession>(socket, "info")?.session?;
    session.is_another(|name| std::env::var_os(name)).then(|| {
        format!("it draws in {session}, not in this one: run `murald stop`, then start it here")
    })
}

/// Sends a GET request to the daemon at a socket; `None` if it does not answer.
pub(super) fn get<T: DeserializeOwned>(socket: &Path, what: &str) -> Option<T> {
    let asked = unix::agent(socket, None).get(format!("http://localhost/{what}"));
    // Do not wait for a daemon that hangs.
    let mut answer = asked
        .config()
        .timeout_global(Some(PATIENCE))
        .build()
        .call()
        .ok()?;
    let body = answer
        .body_mut()
        .with_config()
        .limit(ANSWER_MAX)
        .read_to_vec()
        .ok()?;
    serde_json::from_slice(&body).ok()
}
