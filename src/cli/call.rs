//! A parsed command line: the verb's values by name, the global flags and the connection. Also the
//! functions that the command gets from `main`, since a client sees neither the daemon nor its database.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Error;
use super::connection::{self, Connection};
use super::error::Exit;
use super::template::{Template, written};
use super::terminal::variable;
use crate::paths::{Dirs, Env};
use crate::sys::is_listened_on;
use crate::wire::{DatabaseReport, Finding};

/// A verb's input.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) globals: Globals,
    /// Values by the name of the argument or flag: flags in the order of the line, then arguments.
    pub(super) values: Vec<(&'static str, Value)>,
    /// None in tests of parsers.
    pub(super) host: Option<&'static Host>,
    /// The connection to the daemon, once there was a request.
    pub(super) connection: OnceCell<Connection>,
}

/// The functions of `main` for work that a client cannot do.
#[derive(Debug)]
pub(crate) struct Host {
    /// All settings of the configuration.
    pub settings: fn() -> Vec<Setting>,
    /// Finds the socket of the daemon that has the library of a configuration (`None`: the default one).
    pub listens_at: fn(Option<&Path>) -> Option<PathBuf>,
    /// Runs the daemon until it is stopped.
    pub run: fn(Start) -> Result<(), Error>,
    /// Examines everything that wallpapers need.
    pub examine: fn(Start) -> Vec<Finding>,
    /// Stops the processes that an earlier daemon has left running, and returns their number.
    pub take_down: fn(Start) -> Result<usize, Error>,
    /// Reads a file of settings for its warnings.
    pub check_config: fn(&Path) -> Result<Vec<String>, Error>,
    /// Checks the whole database that a file of settings names.
    pub check_database: fn(&Path) -> Result<DatabaseReport, Error>,
    /// Restores a backup of that database (`None`: the newest intact one). Returns the path of the
    /// backup, and that of the old database.
    pub restore_database: fn(&Path, Option<&Path>) -> Result<Restored, Error>,
}

/// A backup, and the database that was there before.
pub(crate) type Restored = (PathBuf, Option<PathBuf>);

/// A setting of the configuration, as far as a command line needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The name of the section, such as `backend.swaybg`.
    pub section: String,
    pub key: &'static str,
    /// The allowed values, if these are a few words.
    pub words: Vec<&'static str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Globals {
    pub(super) config: Option<PathBuf>,
    pub(super) log_level: Option<String>,
    pub(super) socket: Option<PathBuf>,
    pub(super) output: OutputOptions,
}

/// How the result is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputOptions {
    pub(super) json: bool,
    pub(super) format: Option<Template>,
    pub(super) quiet: bool,
}

/// The environment variable that tells a daemon to close its outputs once it is ready.
pub(super) const DETACHED: &str = "MURALD_DETACHED";

/// The daemon's command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    pub config: Option<PathBuf>,
    /// One of `debug`, `info`, `warn`, `error`.
    pub log_level: Option<String>,
    /// From `--socket`, else from `MURALD_SOCKET`.
    pub socket: Option<PathBuf>,
    /// A command has started the daemon and waits until it is ready; no program reads its output after
    /// that.
    pub detached: bool,
}

impl Start {
    pub(super) fn from_call(call: &Call) -> Self {
        let from_env = || variable("MURALD_SOCKET").map(PathBuf::from);
        let Globals {
            config,
            log_level,
            socket,
            ..
        } = call.globals.clone();
        // The daemon may change its directory; the user meant the path as seen from here.
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self {
            config: config.map(absolute),
            log_level,
            socket: socket.or_else(from_env).map(absolute),
            detached: variable(DETACHED).is_some(),
        }
    }
}

impl Call {
    pub(super) fn connect(&self) -> Result<Connection, Error> {
        if let Some(known) = self.connection.get() {
            return Ok(known.clone());
        }
        let mut socket = connection::socket(self.globals.socket.clone(), &Env::process())?;
        if !self.names_socket() && !is_listened_on(&socket) {
            socket = self.elsewhere().unwrap_or(socket);
        }
        Ok(self
            .connection
            .get_or_init(|| Connection::new(&socket))
            .clone())
    }

    /// Whether the user has given the daemon's socket.
    pub(super) fn names_socket(&self) -> bool {
        self.globals.socket.is_some() || variable("MURALD_SOCKET").is_some()
    }

    /// The socket of the daemon that has locked the library, if any.
    pub(super) fn elsewhere(&self) -> Option<PathBuf> {
        (self.host?.listens_at)(self.globals.config.as_deref())
    }

    pub(super) fn host(&self) -> &'static Host {
        self.host.expect("main gives it")
    }

    /// The daemon's configuration file.
    pub(super) fn config_file(&self) -> Result<PathBuf, Error> {
        if let Some(path) = &self.globals.config {
            return Ok(path.clone());
        }
        let dirs = Dirs::from_process();
        let failed = |error| Error::new(Exit::Config, "no configuration file").because(error);
        Ok(dirs.map_err(failed)?.config_file())
    }

    /// The problems of the configuration file; an error if the daemon would not start with it.
    pub(super) fn config_problems(&self) -> Result<Vec<String>, Error> {
        let path = self.config_file()?;
        let check = self.host().check_config;
        let warnings = if path.exists() {
            check(&path)?
        } else {
            Vec::new()
        };
        Ok(warnings
            .iter()
            .map(|warning| format!("{}, {warning}", path.display()))
            .collect())
    }

    /// All settings of the configuration.
    pub(super) fn settings(&self) -> Vec<Setting> {
        self.host.map_or_else(Vec::new, |host| (host.settings)())
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.values
            .iter()
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value)
    }

    /// All values given under a name that may be repeated.
    pub(super) fn all(&self, name: &str) -> Vec<&Value> {
        self.values
            .iter()
            .filter(|(given, _)| *given == name)
            .map(|(_, value)| value)
            .collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(Value::as_str)
    }

    /// An argument that the table requires, as text.
    pub(super) fn word(&self, name: &str) -> String {
        written(self.value(name).expect("the table requires it"))
    }

    /// The values as a query parameter: lists with commas, words that were given one by one with spaces.
    /// `NAME=word` is the word if there is a value.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        if let Some((name, word)) = name.split_once('=') {
            return self.has(name).then(|| word.to_owned());
        }
        let given: Vec<String> = self.all(name).into_iter().map(written).collect();
        (!given.is_empty()).then(|| given.join(" "))
    }
}
