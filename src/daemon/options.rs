//! What the command line says to the daemon.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use crate::config::LogLevel;
use crate::paths::Env;

#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Instead of `$XDG_CONFIG_HOME/murald/config.toml`.
    pub config: Option<PathBuf>,
    /// Before `MURALD_LOG` and `daemon.log_level`.
    pub log_level: Option<LogLevel>,
    /// Instead of `daemon.socket_path`.
    pub socket: Option<PathBuf>,
    /// It was started by a command, which reads its outputs until it is ready.
    pub detached: bool,
}

impl Options {
    /// Whether somebody looks on who has not asked for the log.
    pub(super) fn is_watched(&self, env: &Env) -> bool {
        let asked = self.log_level.is_some() || env.var("MURALD_LOG").is_some();
        !asked && !self.detached && io::stderr().is_terminal()
    }
}
