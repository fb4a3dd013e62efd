//! The jobs in progress: which workers and which outputs they have to do with.

use super::job::{Job, Purpose};
use super::plan::{Placements, Step, are_apart, outputs_of};
use super::worker_key::WorkerKey;

/// More than one only where none stands in another's way.
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

    /// Takes out the one that has this worker busy.
    pub(super) fn take(&mut self, key: &WorkerKey) -> Option<Job> {
        let at = self.running.iter().position(|job| job.holds(key))?;
        Some(self.running.remove(at))
    }

    pub(super) fn take_all(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.running)
    }

    /// Whether each has its own monitors, so that others can be seen to meanwhile.
    pub(super) fn are_partial(&self) -> bool {
        let is_partial = |job: &Job| matches!(job.purpose, Purpose::Apply(_) | Purpose::Restore(_));
        self.running.iter().all(is_partial)
    }

    pub(super) fn activate(&self) -> bool {
        self.running.iter().any(|job| matches!(job.purpose, Purpose::Activate { .. }))
    }

    /// Whether one has this worker busy, or is about to.
    pub(super) fn is_busy(&self, key: &WorkerKey) -> bool {
        let has = |job: &Job| match &job.purpose {
            Purpose::Restore(_) => job.left().any(|step| step.key() == key),
            _ => job.holds(key) || job.pending().contains(key),
        };
        self.running.iter().any(has)
    }

    /// Whether none will change what is to be seen on these outputs.
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

    /// What is shown once the orders that are given are carried out. Plans begin from there: what
    /// was shown before a job says nothing about what it leaves to do.
    pub(super) fn expected(&self, current: &Placements) -> Placements {
        let mut expected = current.clone();
        for step in self.running.iter().flat_map(|job| &job.in_progress) {
            match step {
                Step::Show { key, placements } => {
                    drop(expected.insert(key.clone(), placements.clone()));
                }
                Step::Clear { key } => drop(expected.remove(key)),
            }
        }
        expected
    }
}
