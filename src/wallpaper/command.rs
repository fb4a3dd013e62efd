//! What the reconciler is told by its handle.

use super::Error;
use super::request::{Activated, Applied, Reply, Request};

pub(super) enum Command {
    Set(Request, Reply<Applied>),
    Activate(String, Reply<Activated>),
    Clear(Reply<()>),
    /// What changed stands in the status.
    SettingsChanged,
    End,
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Set(_, reply) => reply(Err(error)),
            Self::Activate(_, reply) => reply(Err(error)),
            Self::Clear(reply) => reply(Err(error)),
            Self::SettingsChanged | Self::End => {}
        }
    }
}
