//! Requests that wait for others to be carried out, and which of them may begin: pure.
//!
//! A backend that hangs delays only requests for its own monitors or its own worker, as does a
//! backend that has to show its pictures again. A request for all monitors is carried out alone.

use std::collections::VecDeque;

use super::Error;
use super::handle::Command;
use super::jobs::Jobs;
use super::plan::{Placements, are_apart};
use super::request::{Applied, Ask, Reply, Request};
use crate::wire::SetStatus;

/// Requests that wait while others are carried out; one more is refused.
const WAITING: usize = 32;

#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<WaitingRequest>,
}

enum WaitingRequest {
    /// A request, with its answer.
    Set(Request, Applied, Reply<Applied>),
    Other(Command),
}

impl WaitingRequest {
    fn into_command(self) -> Command {
        match self {
            Self::Set(request, _, reply) => Command::Set(request, reply),
            Self::Other(command) => command,
        }
    }
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Puts a request behind those that it has to wait for, in place of those that it makes
    /// pointless. `applied` is what it will answer.
    pub(super) fn push_set(
        &mut self,
        mut request: Request,
        applied: Applied,
        reply: Reply<Applied>,
    ) {
        request.settle(&applied);
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                WaitingRequest::Set(old, applied, reply) if request.supersedes(&old) => {
                    // Three steps back at once lead three pictures further back.
                    if let (Ask::Back(steps), Ask::Back(before)) = (&mut request.ask, &old.ask) {
                        *steps = steps.saturating_add(*before);
                    }
                    reply(Ok(Applied { outcome: SetStatus::Superseded, ..applied }));
                }
                waiting => self.waiting.push_back(waiting),
            }
        }
        self.push_waiting(WaitingRequest::Set(request, applied, reply));
    }

    pub(super) fn push(&mut self, command: Command) {
        self.push_waiting(WaitingRequest::Other(command));
    }

    fn push_waiting(&mut self, waiting: WaitingRequest) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(waiting);
        } else {
            waiting.into_command().refuse(Error::Busy);
        }
    }

    /// Takes out the oldest that may begin beside what is in progress.
    pub(super) fn pop(&mut self, jobs: &Jobs, current: &Placements) -> Option<Command> {
        let at = (0..self.waiting.len()).find(|&at| self.may_begin(at, jobs, current))?;
        self.waiting.remove(at).map(WaitingRequest::into_command)
    }

    fn may_begin(&self, at: usize, jobs: &Jobs, current: &Placements) -> bool {
        let Some(WaitingRequest::Set(_, applied, _)) = self.waiting.get(at) else {
            return at == 0 && jobs.is_empty();
        };
        let monitors: Vec<&str> = applied.monitors.iter().map(String::as_str).collect();
        let apart = |other: &Applied| are_apart(&other.monitors, &monitors);
        let overtakes =
            |other: &WaitingRequest| matches!(other, WaitingRequest::Set(_, old, _) if apart(old));
        !applied.keys().iter().any(|key| jobs.is_busy(key))
            && jobs.leave_alone(&monitors, current)
            && self.waiting.iter().take(at).all(overtakes)
    }

    /// Answers all that wait.
    pub(super) fn refuse(&mut self, error: &Error) {
        for waiting in std::mem::take(&mut self.waiting) {
            waiting.into_command().refuse(error.clone());
        }
    }
}
