//! Holds the jobs in progress and the waiting commands, and decides which command may begin. Pure.
//!
//! A backend that hangs or shows its pictures again delays only requests for its own monitors or its own
//! worker. A request for all monitors is carried out alone.

use std::collections::VecDeque;

use super::Error;
use super::handle::Command;
use super::jobs::{Job, Purpose};
use super::plan::{Placements, Step, WorkerKey, are_apart, outputs_of};
use super::request::{Applied, Ask, Reply, Request};
use crate::wire::SetStatus;

/// How many commands may wait; one more is refused.
const WAITING: usize = 32;

#[derive(Default)]
pub(super) struct Queue {
    /// The waiting commands, the oldest first. A request for a picture has the answer that is planned
    /// for it.
    waiting: VecDeque<(Command, Option<Applied>)>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends a request, and removes the waiting ones that it supersedes. `applied` is its planned
    /// answer.
    pub(super) fn push_set(
        &mut self,
        mut request: Request,
        applied: Applied,
        reply: Reply<Applied>,
    ) {
        request.settle(&applied);
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                (Command::Set(old, reply), Some(applied)) if request.supersedes(&old) => {
                    // Three steps back at once lead three pictures further back.
                    if let (Ask::Back(steps), Ask::Back(before)) = (&mut request.ask, &old.ask) {
                        *steps = steps.saturating_add(*before);
                    }
                    reply(Ok(Applied {
                        outcome: SetStatus::Superseded,
                        ..applied
                    }));
                }
                waiting => self.waiting.push_back(waiting),
            }
        }
        self.push_waiting(Command::Set(request, reply), Some(applied));
    }

    pub(super) fn push(&mut self, command: Command) {
        self.push_waiting(command, None);
    }

    fn push_waiting(&mut self, command: Command, applied: Option<Applied>) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back((command, applied));
        } else {
            command.refuse(Error::Busy);
        }
    }

    /// Removes and returns the oldest command that may begin beside the jobs in progress.
    pub(super) fn pop(&mut self, jobs: &Jobs, current: &Placements) -> Option<Command> {
        let at = (0..self.waiting.len()).find(|&at| self.may_begin(at, jobs, current))?;
        self.waiting.remove(at).map(|(command, _)| command)
    }

    fn may_begin(&self, at: usize, jobs: &Jobs, current: &Placements) -> bool {
        let Some((_, Some(applied))) = self.waiting.get(at) else {
            return at == 0 && jobs.is_empty();
        };
        let monitors: Vec<&str> = applied.monitors.iter().map(String::as_str).collect();
        let apart = |other: &Applied| are_apart(&other.monitors, &monitors);
        let overtakes = |(_, other): &(_, Option<Applied>)| other.as_ref().is_some_and(apart);
        !applied.keys().iter().any(|key| jobs.is_busy(key))
            && jobs.leave_alone(&monitors, current)
            && self.waiting.iter().take(at).all(overtakes)
    }

    /// Refuses all waiting commands.
    pub(super) fn refuse(&mut self, error: &Error) {
        for (command, _) in std::mem::take(&mut self.waiting) {
            command.refuse(error.clone());
        }
    }
}

/// The jobs in progress; several only if none affects another.
#[derive(Default)]
pub(super) struct Jobs {
    running: Vec<Job>,
}

impl Jobs {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn push(&mut self, job: Job) {
        self.running.push(job);
    }

    /// Removes and returns the job with a step of this worker in progress.
    pub(super) fn take(&mut self, key: &WorkerKey) -> Option<Job> {
        let at = self.running.iter().position(|job| job.holds(key))?;
        Some(self.running.remove(at))
    }

    pub(super) fn take_all(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.running)
    }

    /// Whether each job is for some monitors only, so that others can be changed at the same time.
    pub(super) fn are_partial(&self) -> bool {
        let is_partial = |job: &Job| matches!(job.purpose, Purpose::Apply(_) | Purpose::Restore(_));
        self.running.iter().all(is_partial)
    }

    pub(super) fn activate(&self) -> bool {
        self.running
            .iter()
            .any(|job| matches!(job.purpose, Purpose::Activate { .. }))
    }

    /// Whether a step of this worker is in progress.
    pub(super) fn is_held(&self, key: &WorkerKey) -> bool {
        self.running.iter().any(|job| job.holds(key))
    }

    /// Whether a job uses this worker, or is about to.
    pub(super) fn is_busy(&self, key: &WorkerKey) -> bool {
        let has = |job: &Job| match &job.purpose {
            Purpose::Restore(_) => job.left().any(|step| step.key == *key),
            _ => job.holds(key) || job.pending().contains(key),
        };
        self.running.iter().any(has)
    }

    /// Whether no job will change what these outputs show.
    pub(super) fn leave_alone(&self, outputs: &[&str], current: &Placements) -> bool {
        self.running.iter().all(|job| match &job.purpose {
            Purpose::Apply(apply) => are_apart(&apply.feasible.applied.monitors, outputs),
            Purpose::Restore(_) => job
                .left()
                .flat_map(|step| outputs_of(step, current))
                .all(|name| !outputs.contains(&name)),
            Purpose::Activate { .. } | Purpose::Clear { .. } => false,
        })
    }

    /// The placements once the orders in progress are carried out. Plans start from these, because the
    /// placements before a job do not show what remains to be done after it.
    pub(super) fn expected(&self, current: &Placements) -> Placements {
        let mut expected = current.clone();
        for Step { key, placements } in self.running.iter().flat_map(|job| &job.in_progress) {
            match placements.is_empty() {
                true => drop(expected.remove(key)),
                false => drop(expected.insert(key.clone(), placements.clone())),
            }
        }
        expected
    }
}
