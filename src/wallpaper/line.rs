//! Requests that wait for others to be carried out, and which of them may begin.
//!
//! Runs on the stage's thread. A setter that hangs holds only requests for its own monitors and
//! for its own backend; what concerns all monitors is carried out alone, in its turn.

use super::Failure;
use super::job::{Job, Purpose};
use super::request::{Applied, Ask, Outcome, Reply, Request};
use super::stage::{Command, Stage};
use crate::config::BackendName;

/// Requests that wait while others are carried out; one more is refused.
const WAITING: usize = 32;

/// What waits while a job is in hand.
pub(super) enum Waiting {
    /// With what it will answer.
    Set(Request, Applied, Reply<Applied>),
    Other(Command),
}

impl Waiting {
    pub(super) fn into_command(self) -> Command {
        match self {
            Self::Set(request, _, reply) => Command::Set(request, reply),
            Self::Other(command) => command,
        }
    }
}

impl Stage {
    /// Puts a request behind those that it has to wait for, in place of those that it makes
    /// pointless.
    pub(super) fn line_up(&mut self, mut request: Request, reply: Reply<Applied>) {
        let applied = match self.feasible(&request) {
            Ok((feasible, _)) => feasible.applied,
            Err(failure) => {
                self.purge_if_gone(&failure);
                return reply(Err(failure));
            }
        };
        // What a random request picked stays picked.
        request.ask = Ask::Image(applied.image_id);
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                Waiting::Set(old, applied, reply) if request.targets.covers(&old.targets) => {
                    reply(Ok(Applied { outcome: Outcome::Superseded, ..applied }));
                }
                waiting => self.waiting.push_back(waiting),
            }
        }
        self.wait(Waiting::Set(request, applied, reply));
        self.go_on();
    }

    pub(super) fn wait(&mut self, waiting: Waiting) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(waiting);
        } else {
            waiting.into_command().refuse(Failure::Busy);
        }
    }

    /// Begins what waits and may, the oldest first.
    pub(super) fn go_on(&mut self) {
        while let Some(at) = (0..self.waiting.len()).find(|&at| self.may_begin(at)) {
            if let Some(waiting) = self.waiting.remove(at) {
                self.begin(waiting.into_command());
            }
        }
        // One that waits is asked for, and changes what there is to look at.
        if self.waiting.is_empty() && self.jobs.is_empty() && self.look_again {
            self.look();
        }
    }

    /// Whether a job has this backend in hand, or is about to.
    pub(super) fn is_busy(&self, backend: BackendName) -> bool {
        let has = |job: &Job| job.backend() == Some(backend) || job.pending() == Some(backend);
        self.jobs.iter().any(has)
    }

    fn may_begin(&self, at: usize) -> bool {
        let Some(Waiting::Set(_, applied, _)) = self.waiting.get(at) else {
            return at == 0 && self.jobs.is_empty();
        };
        let apart = |other: &Applied| are_apart(&other.monitors, &applied.monitors);
        let passes = |job: &Purpose| matches!(job, Purpose::Hang(hang) if apart(&hang.applied));
        let overtakes = |other: &Waiting| matches!(other, Waiting::Set(_, old, _) if apart(old));
        !self.is_busy(applied.backend)
            && self.jobs.iter().all(|job| passes(&job.purpose))
            && self.waiting.iter().take(at).all(overtakes)
    }
}

fn are_apart(some: &[String], others: &[String]) -> bool {
    some.iter().all(|name| !others.contains(name))
}
