//! A parsed command line: the verb's values by name, the global flags and the connection.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Error;
use super::connection::{self, Connection};
use super::template::{Template, written};
use super::terminal::variable;
use crate::paths::Env;
use crate::sys::is_listened_on;

/// A verb's input.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) globals: Globals,
    /// Values by the name of the argument or flag: flags in the order of the line, then arguments.
    pub(super) values: Vec<(&'static str, Value)>,
    /// All settings of the configuration, for verbs about settings.
    pub(super) settings: fn() -> Vec<Setting>,
    /// Finds the socket of the daemon that has this user's library.
    pub(super) elsewhere: Elsewhere,
    /// The connection to the daemon, once there was a request.
    pub(super) connection: OnceCell<Connection>,
}

/// Finds the socket of the daemon that has the library of a configuration (none: the usual one).
pub(crate) type Elsewhere = fn(Option<&Path>) -> Option<PathBuf>;

/// A setting of the configuration, as far as a command line needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// `backend.swaybg`
    pub section: String,
    pub key: &'static str,
    /// The values that it may have, if they are a few words.
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

impl Call {
    pub(super) fn connect(&self) -> Result<Connection, Error> {
        if let Some(known) = self.connection.get() {
            return Ok(known.clone());
        }
        let mut socket = connection::socket(self.globals.socket.clone(), &Env::process())?;
        if !self.names_socket() && !is_listened_on(&socket) {
            socket = self.elsewhere().unwrap_or(socket);
        }
        Ok(self.connection.get_or_init(|| Connection::new(&socket)).clone())
    }

    /// Whether the user has said where the daemon listens.
    pub(super) fn names_socket(&self) -> bool {
        self.globals.socket.is_some() || variable("MURALD_SOCKET").is_some()
    }

    /// The socket of the daemon that has the library, as its lock says.
    pub(super) fn elsewhere(&self) -> Option<PathBuf> {
        (self.elsewhere)(self.globals.config.as_deref())
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(given, _)| *given == name).map(|(_, value)| value)
    }

    /// All values given under a name that may be repeated.
    pub(super) fn all(&self, name: &str) -> Vec<&Value> {
        self.values.iter().filter(|(given, _)| *given == name).map(|(_, value)| value).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(Value::as_str)
    }

    /// The items of a list with commas.
    pub(super) fn listed(&self, name: &str) -> &[Value] {
        self.value(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// An argument that the table requires, as text.
    pub(super) fn word(&self, name: &str) -> String {
        written(self.value(name).expect("the table requires it"))
    }

    /// The values as a query parameter: lists with commas, words that were given one by one with spaces.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        let given: Vec<String> = self.all(name).into_iter().map(written).collect();
        (!given.is_empty()).then(|| given.join(" "))
    }
}

impl Default for Call {
    fn default() -> Self {
        Self {
            globals: Globals::default(),
            values: Vec::new(),
            settings: Vec::new,
            elsewhere: |_| None,
            connection: OnceCell::new(),
        }
    }
}
