//! What the reconciler is told by its handle.

use crossbeam_channel::{Receiver, select};

use super::Error;
use super::handle::LOOK_WITHIN;
use super::request::{Activated, Applied, Reply, Request};
use crate::library::Content;
use crate::sys::Gate;

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

impl Mailbox {
    /// Returns when the outputs have been looked at, at the end, or after a second.
    pub(super) fn wait_for_look(&self, outputs: &Gate) {
        select! {
            recv(outputs.opened()) -> _ => {},
            recv(self.end) -> _ => {},
            default(LOOK_WITHIN) => {},
        }
    }
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
