//! What every backend is made with: where its processes are recorded, who tells of their end, and
//! where it may put files.

use std::path::PathBuf;

use crossbeam_channel::Sender;

use super::Error;
use crate::compositor::Outputs;
use crate::process::{self, Launch, Reaper, Roster, Setter};

pub(super) struct Context {
    pub roster: Roster,
    pub reaper: Reaper,
    /// Rung when one of its processes has ended.
    pub tell: Sender<()>,
    pub outputs: Outputs,
    /// For converted copies; made by whoever writes the first.
    pub cache: PathBuf,
}

impl Context {
    /// The executable, or why there is none.
    pub(super) fn program(&self, name: &str) -> Result<PathBuf, Error> {
        process::which(name)
            .ok_or_else(|| Error::Unavailable(format!("there is no {name} on PATH")))
    }

    /// A command line that reaches the compositor, also one that came up after us.
    pub(super) fn launch(&self, program: impl Into<PathBuf>) -> Launch {
        let launch = Launch::new(program);
        match self.outputs.session() {
            Some(session) => {
                let (name, value) = session.environment();
                launch.env(name, value)
            }
            None => launch,
        }
    }

    /// Has the end of a process told.
    pub(super) fn watch(&self, setter: &Setter) -> Result<(), Error> {
        self.reaper
            .watch(setter.child(), &self.tell)
            .map_err(|error| Error::Unavailable(format!("cannot watch its process: {error}")))
    }
}

impl From<process::Error> for Error {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::Cancelled => Self::Cancelled,
            error => match std::error::Error::source(&error) {
                Some(source) => Self::Unavailable(format!("{error}: {source}")),
                None => Self::Unavailable(error.to_string()),
            },
        }
    }
}
