//! Requests that wait for others to be carried out, and which of them may begin.
//!
//! Runs on the reconciler's thread. A backend that hangs holds only requests for its own monitors and
//! for its own worker, and so does one that has to show its pictures again; what concerns all monitors
//! is carried out alone, in its turn.

use super::Error;
use super::job::{Job, Purpose};
use super::plan::Step;
use super::reconciler::{Command, Reconciler};
use super::request::{Applied, Ask, Outcome, Reply, Request};
use super::worker_key::WorkerKey;

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

impl Reconciler {
    /// Puts a request behind those that it has to wait for, in place of those that it makes
    /// pointless.
    pub(super) fn enqueue(&mut self, mut request: Request, reply: Reply<Applied>) {
        let applied = match self.feasible(&request) {
            Ok((feasible, _)) => feasible.applied,
            Err(error) => {
                self.purge_if_gone(&error);
                return reply(Err(error));
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
        self.start_waiting();
    }

    pub(super) fn wait(&mut self, waiting: Waiting) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(waiting);
        } else {
            waiting.into_command().refuse(Error::Busy);
        }
    }

    /// Begins what waits and may, the oldest first.
    pub(super) fn start_waiting(&mut self) {
        while let Some(at) = (0..self.waiting.len()).find(|&at| self.may_begin(at)) {
            if let Some(waiting) = self.waiting.remove(at) {
                self.begin(waiting.into_command());
            }
        }
        // One that waits is asked for, and changes what there is to look at.
        if self.waiting.is_empty() && self.reconcile_again {
            self.reconcile();
        }
    }

    /// Whether a job has this worker busy, or is about to.
    pub(super) fn is_busy(&self, key: &WorkerKey) -> bool {
        let has = |job: &Job| match &job.purpose {
            Purpose::Restore(_) => job.left().any(|step| step.key() == key),
            _ => job.holds(key) || job.pending().contains(key),
        };
        self.jobs.iter().any(has)
    }

    /// Whether this step has to do with no output of a job's.
    pub(super) fn is_apart(&self, step: &Step) -> bool {
        let outputs = self.outputs_of(step);
        self.jobs.iter().all(|job| self.leaves_alone(job, &outputs))
    }

    fn may_begin(&self, at: usize) -> bool {
        let Some(Waiting::Set(_, applied, _)) = self.waiting.get(at) else {
            return at == 0 && self.jobs.is_empty();
        };
        let monitors: Vec<&str> = applied.monitors.iter().map(String::as_str).collect();
        let apart = |other: &Applied| are_apart(&other.monitors, &monitors);
        let overtakes = |other: &Waiting| matches!(other, Waiting::Set(_, old, _) if apart(old));
        !applied.keys().iter().any(|key| self.is_busy(key))
            && self.jobs.iter().all(|job| self.leaves_alone(job, &monitors))
            && self.waiting.iter().take(at).all(overtakes)
    }

    /// Takes from `steps` those that have an output in common with what is left for later, but for
    /// what is asked for: nobody may let go of a screen that the other has not covered yet.
    pub(super) fn with_dependants(
        &self,
        mut later: Vec<Step>,
        steps: &mut Vec<Step>,
        asked: &[WorkerKey],
    ) -> Vec<Step> {
        loop {
            let outputs: Vec<String> =
                later.iter().flat_map(|step| self.outputs_of(step)).map(str::to_owned).collect();
            let depends = |step: &mut Step| {
                !asked.contains(step.key()) && !are_apart(&outputs, &self.outputs_of(step))
            };
            let more: Vec<Step> = steps.extract_if(.., depends).collect();
            if more.is_empty() {
                return later;
            }
            later.extend(more);
        }
    }

    /// Steps that need not wait for each other: those of one backend stay together, and those that
    /// have an output in common, in their order.
    pub(super) fn groups(&self, steps: Vec<Step>) -> Vec<Vec<Step>> {
        let mut groups: Vec<Vec<(usize, Step)>> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            let outputs = self.outputs_of(&step);
            let belongs = |(_, other): &(usize, Step)| {
                other.key().backend == step.key().backend
                    || self.outputs_of(other).iter().any(|name| outputs.contains(name))
            };
            let joined = groups.extract_if(.., |group| group.iter().any(belongs)).flatten();
            let mut group: Vec<_> = joined.collect();
            group.push((number, step));
            groups.push(group);
        }
        let in_order = |mut group: Vec<(usize, Step)>| {
            group.sort_by_key(|(number, _)| *number);
            group.into_iter().map(|(_, step)| step).collect()
        };
        groups.into_iter().map(in_order).collect()
    }

    /// Whether a job will not change what is to be seen on these outputs.
    fn leaves_alone(&self, job: &Job, outputs: &[&str]) -> bool {
        match &job.purpose {
            Purpose::Apply(apply) => are_apart(&apply.applied.monitors, outputs),
            Purpose::Restore(_) => job.left().all(|step| {
                let touched = self.outputs_of(step);
                touched.iter().all(|name| !outputs.contains(name))
            }),
            Purpose::Activate { .. } | Purpose::Clear { .. } => false,
        }
    }

    /// Where a step may change something.
    fn outputs_of<'a>(&'a self, step: &'a Step) -> Vec<&'a str> {
        let placements = match step {
            Step::Show { placements, .. } => placements.as_slice(),
            Step::Clear { .. } => &[],
        };
        let current = self.current.get(step.key()).into_iter().flatten();
        placements.iter().chain(current).map(|placement| placement.output.name.as_str()).collect()
    }
}

fn are_apart(some: &[String], others: &[&str]) -> bool {
    some.iter().all(|name| !others.contains(&name.as_str()))
}
