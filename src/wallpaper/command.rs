//! What the reconciler is told by its handle.

use crossbeam_channel::Receiver;

use super::Error;
use super::request::{Activated, Applied, Reply, Request};
use crate::library::Content;

pub(super) enum Command {
    Set(Request, Reply<Applied>),
    /// Whether such a file could be shown so.
    Check(Request, Content, Reply<()>),
    Activate(String, Reply<Activated>),
    Clear(Reply<()>),
}

/// What the reconciler listens to, beside outputs and its workers.
pub(super) struct Mailbox {
    pub(super) commands: Receiver<Command>,
    /// Rings when something has changed; what stands in the status.
    pub(super) changed: Receiver<()>,
    /// Closes at the end.
    pub(super) end: Receiver<()>,
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Set(_, reply) => reply(Err(error)),
            Self::Activate(_, reply) => reply(Err(error)),
            Self::Check(_, _, reply) | Self::Clear(reply) => reply(Err(error)),
        }
    }
}
