//! Carries out the reconciler's jobs: sends the orders of a job, to one backend at a time, and handles
//! the reports.

use std::sync::Arc;
use std::time::Instant;

use crate::backends;
use crate::error_chain::chain;

use super::Reconciler;
use crate::wallpaper::Error;
use crate::wallpaper::assignments;
use crate::wallpaper::backoff::Restart;
use crate::wallpaper::jobs::{Failed, Job, PendingApply, Picture, Purpose};
use crate::wallpaper::plan::WorkerKey;
use crate::wallpaper::plan::{self, Step};
use crate::wallpaper::queue::Jobs;
use crate::wallpaper::request::Activated;
use crate::wallpaper::worker::{Done, News, Order, Report};
use crate::wire::{Event, GalleryDomain};

impl Reconciler {
    /// Sends the orders of the job's next steps, which are all of one backend. Finishes the job if no
    /// steps are left.
    pub(super) fn start(&mut self, mut job: Job) {
        // Another job may have begun to use a worker that this one is to leave.
        let (asked, mut steps) = (job.pending(), Vec::from(std::mem::take(&mut job.steps)));
        self.leave(&mut steps, &asked, Jobs::is_held);
        job.steps = steps.into();
        let steps = job.next_steps();
        if steps.is_empty() {
            return self.finish(job);
        }
        self.note_event_of(&mut job);
        let transition = job.transition();
        let asking = job.asked_for().to_vec();
        self.jobs.push(job);
        for Step { key, placements } in steps {
            let order = if placements.is_empty() {
                (Order::Clear, None)
            } else {
                self.stale.remove(&key);
                let rewritten = plan::rewritten(&self.current, &key, &placements);
                let paused = || {
                    self.pause
                        .paused(&placements, &asking)
                        .into_keys()
                        .collect()
                };
                let paused = self.pause.is_known().then(paused);
                let (renew, transition) = (self.renew.remove(&key), transition.clone());
                (
                    Order::Show {
                        placements,
                        transition,
                        rewritten,
                        renew,
                    },
                    paused,
                )
            };
            let may_work = self.backoffs.may_work(&key, Instant::now());
            if let Err(error) = self.workers.give(&key, order, may_work) {
                self.done(&key, Err(error));
            }
        }
    }

    pub(super) fn on_report(&mut self, report: Report) {
        if !self.workers.know(&report) {
            return;
        }
        let key = report.key;
        match report.news {
            News::Done(result) => self.done(&key, result),
            News::Unseen(unseen) => {
                self.backoffs.forget_refusals();
                self.note_unseen(&key, unseen);
            }
            News::Lost => self.lost(&key),
            News::Panicked => self.panicked(&key),
        }
        // A pause may have begun or ended in the meantime, or a video that should play was not shown.
        if self.jobs.is_empty() {
            self.apply_pause();
        }
        self.start_waiting();
    }

    /// Handles a step that is done or has failed.
    fn done(&mut self, key: &WorkerKey, result: Result<Done, backends::Error>) {
        let Some(mut job) = self.jobs.take(key) else {
            return;
        };
        self.note_event_of(&mut job);
        let step = job
            .in_progress
            .extract_if(.., |step| step.key == *key)
            .next();
        match result {
            Ok(Done { warnings, unseen }) => {
                job.is_seen = true;
                job.warn(warnings);
                self.note_unseen(key, unseen);
                if let Some(step) = &step {
                    self.note_unreported(step, &job);
                    self.renew_buried(step);
                }
                self.step_done(step);
                if let Purpose::Restore(restored) = &mut job.purpose {
                    let shown = restored
                        .iter_mut()
                        .filter_map(|picture| picture.split_off(key));
                    self.commit_restored(&shown.collect::<Vec<_>>());
                }
            }
            Err(error) => {
                let outdated = step.as_ref().is_some_and(|step| self.is_outdated(step));
                let outputs = step
                    .as_ref()
                    .map(|step| plan::names(&step.placements))
                    .unwrap_or_default();
                log::warn!(
                    "{key}: {error}{}",
                    if outdated {
                        " (outputs have changed)"
                    } else {
                        ""
                    }
                );
                job.failures.push(Failed {
                    key: key.clone(),
                    error,
                    outdated,
                    outputs,
                });
            }
        }
        if !job.in_progress.is_empty() {
            self.jobs.push(job);
        } else if job.failures.is_empty() {
            self.replan(&mut job);
            self.start(job);
        } else {
            self.steps_failed(job);
        }
    }

    /// Notes the outputs on which a worker's picture is not visible yet. A later plan removes the
    /// pictures that were kept for the others.
    fn note_unseen(&mut self, key: &WorkerKey, unseen: Vec<String>) {
        let before = match unseen.is_empty() {
            true => self.unseen.remove(key),
            false => self.unseen.insert(key.clone(), unseen),
        };
        let changed = before.as_ref() != self.unseen.get(key);
        self.events += u64::from(changed);
        self.reconcile_again |= before.is_some() && changed;
    }

    /// Restarts the pictures that are not visible yet and may lie beneath the new surfaces of a step.
    fn renew_buried(&mut self, step: &Step) {
        let buried = assignments::buried(step, &self.unseen);
        self.reconcile_again |= !buried.is_empty();
        self.stale.extend(buried.iter().cloned());
        self.renew.extend(buried);
    }

    fn step_done(&mut self, step: Option<Step>) {
        let Some(Step { key, placements }) = step else {
            return;
        };
        let backend = key.backend;
        if placements.is_empty() {
            self.current.remove(&key);
            // A worker that shows nothing needs no thread.
            self.workers.end(&key);
        } else {
            self.events += u64::from(!self.backoffs.may_try(&key));
            self.backoffs.of(&key).over();
            self.current.insert(key, placements);
        }
        self.publish_current(backend);
    }

    /// Counts an event of this job, which may invalidate the plans of all other jobs.
    fn note_event_of(&mut self, job: &mut Job) {
        let own = job
            .planned_for
            .as_mut()
            .filter(|planned| planned.events == self.events);
        self.events += 1;
        if let Some(planned) = own {
            planned.events = self.events;
        }
    }

    /// Whether the remaining steps of a job are still valid.
    fn is_current(&self, job: &Job) -> bool {
        job.planned_for.as_ref().is_some_and(|planned| {
            (planned.events, planned.generation) == (self.events, self.store.generation())
                && Arc::ptr_eq(&planned.outputs, &self.backends.outputs.list())
        })
    }

    /// Plans the remaining steps again if anything has changed since they were planned.
    fn replan(&mut self, job: &mut Job) {
        if self.is_current(job) {
            return;
        }
        let apply = match &job.purpose {
            Purpose::Apply(apply) => apply,
            Purpose::Clear { .. } => return,
            Purpose::Restore(_) | Purpose::Activate { .. } => {
                let before = job.steps.len();
                job.steps
                    .retain(|step| !assignments::uncovers(step, &self.current, &self.unseen));
                self.reconcile_again |= job.steps.len() < before;
                return;
            }
        };
        match self.world_state() {
            Ok(world) => {
                job.planned_for = Some(world.plan_state(self.events));
                let (mut steps, desired) = self.steps_of(apply, world);
                for key in job.pending() {
                    plan::force(&mut steps, &desired, &key);
                }
                self.leave(&mut steps, &apply.keys(), |_, key| {
                    job.gave_up.contains(key)
                });
                job.steps = steps.into();
            }
            Err(error) => log::error!("cannot read the current wallpapers: {}", chain(&error)),
        }
    }

    /// Handles the failed steps of a job.
    fn steps_failed(&mut self, mut job: Job) {
        let failures = std::mem::take(&mut job.failures);
        // The picture of a failed worker depends on when it failed, so the worker gets an order again.
        self.stale
            .extend(failures.iter().map(|failed| failed.key.clone()));
        self.reconcile_again |= failures.iter().any(|failed| failed.outdated);
        if let Some(failed) = failures.iter().find(|failed| job.needs(&failed.key)) {
            return self.needed_failed(job, failed);
        }
        // No worker may leave an output that a failed worker should have covered.
        let of = |failed: &Failed| (failed.key.clone(), failed.outputs.clone());
        let uncovered = failures.iter().map(of).collect();
        job.steps
            .retain(|step| !assignments::uncovers(step, &self.current, &uncovered));
        match &mut job.purpose {
            Purpose::Apply(_) | Purpose::Activate { .. } => {
                job.gave_up
                    .extend(failures.into_iter().map(|failed| failed.key));
            }
            Purpose::Restore(restored) => self.pictures_failed(restored, &failures),
            Purpose::Clear { failed, .. } => {
                let refused = |first: Failed| Error::Backend {
                    backend: first.key.backend,
                    source: first.error,
                };
                *failed = failures.into_iter().next().map(refused);
            }
        }
        self.start(job);
    }

    /// Handles the failure of a worker that the request or activation needs.
    fn needed_failed(
        &mut self,
        job: Job,
        Failed {
            key,
            error,
            outdated,
            ..
        }: &Failed,
    ) {
        if *outdated && self.is_connected(key, job.asked_for()) {
            return self.plan_again(job, key, error);
        }
        // The old pictures are shown again if a step has changed the screen. The failed one may have
        // changed a part of what its worker shows.
        self.reconcile_again |= job.is_seen || self.current.contains_key(key);
        if let Purpose::Activate { before, .. } = &job.purpose {
            self.activated = *before;
        }
        match job.purpose {
            Purpose::Apply(apply) => self.apply_failed(*apply, error.clone()),
            _ => job.refuse(Error::Backend {
                backend: key.backend,
                source: error.clone(),
            }),
        }
    }

    /// Handles failures of restored pictures.
    fn pictures_failed(&mut self, restored: &mut [Picture], failures: &[Failed]) {
        for failed in failures {
            let mut is_tried_again = failed.outdated;
            for lost in restored
                .iter_mut()
                .filter_map(|picture| picture.split_off(&failed.key))
            {
                self.note_failure(&lost, &failed.error);
                self.refuse_for_workspace(&lost, failed);
                is_tried_again |= lost.of_workspace;
            }
            if !is_tried_again {
                self.backoffs.of(&failed.key).refused();
            }
        }
        self.restore_failed(failures);
    }

    /// Whether an output of a step has gone or changed since the step was planned.
    fn is_outdated(&self, step: &Step) -> bool {
        let outputs = self.backends.outputs.list();
        !step
            .placements
            .iter()
            .all(|placement| outputs.contains(&placement.output))
    }

    fn is_connected(&self, key: &WorkerKey, monitors: &[String]) -> bool {
        let outputs = self.backends.outputs.list();
        let there = |name: &String| outputs.iter().any(|output| output.name == *name);
        monitors.iter().any(|name| key.serves(name) && there(name))
    }

    /// Plans the job once more, for the outputs that are connected now.
    fn plan_again(&mut self, mut job: Job, key: &WorkerKey, error: &backends::Error) {
        job.planned_for = None;
        job.steps.push_back(Step {
            key: key.clone(),
            placements: Vec::new(),
        });
        self.replan(&mut job);
        if job.planned_for.is_none() {
            // The database cannot be read: the step without placements would clear the screen.
            let source = error.clone();
            return job.refuse(Error::Backend {
                backend: key.backend,
                source,
            });
        }
        self.start(job);
    }

    /// Handles the unexpected exit of a worker's process, with which its pictures are gone.
    fn lost(&mut self, key: &WorkerKey) {
        self.events += 1;
        let lost = self.current.remove(key).unwrap_or_default();
        self.unseen.remove(key);
        self.publish_current(key.backend);
        match self.backoffs.of(key).died(Instant::now()) {
            Restart::AtOnce => {
                log::warn!("{key} exited unexpectedly; restarting it");
                self.reconcile();
            }
            Restart::At(_) => {
                log::warn!("{key} exited unexpectedly again; restarting it shortly");
            }
            Restart::Never => self.given_up(key, &lost, "keeps exiting unexpectedly"),
        }
    }

    /// Handles the panic of a worker. Another worker adopts what it shows.
    fn panicked(&mut self, key: &WorkerKey) {
        self.events += 1;
        self.workers.end(key);
        let goes_on = self.backoffs.of(key).panicked(Instant::now());
        if self.current.contains_key(key) {
            self.stale.insert(key.clone());
        }
        let why = "internal error, see the log";
        self.done(key, Err(backends::Error::Unavailable(why.to_owned())));
        if goes_on {
            self.reconcile_again = true;
        } else {
            let left = self.current.get(key).cloned().unwrap_or_default();
            self.given_up(key, &left, "keeps failing with an internal error");
        }
    }

    fn finish(&mut self, job: Job) {
        match job.purpose {
            Purpose::Apply(mut apply) => match apply.commit(&self.store, &self.current) {
                Ok(mut changed) => {
                    self.pause.note_asked(&apply.feasible.applied.monitors);
                    let asked = &apply.feasible.applied.images;
                    self.unreported.retain(|(key, name), _| {
                        let shown = self.current.get(key).into_iter().flatten();
                        let mut shown = shown.filter(|one| one.output.name == *name);
                        !shown.any(|one| asked.get(name) == Some(&one.image_id))
                    });
                    if changed.is_empty() {
                        let domain = GalleryDomain::History;
                        self.bus.publish(&Event::GalleryChanged { domain });
                    }
                    let by_hook = self.status.is_by_hook(&apply.request.source);
                    changed
                        .iter_mut()
                        .for_each(|one| one.change.by_hook |= by_hook);
                    for picture in &apply.feasible.pictures {
                        self.status.note_shown(picture.monitors(), false);
                    }
                    let PendingApply {
                        feasible, reply, ..
                    } = *apply;
                    self.publish_changes(changed, move || reply(Ok(feasible.applied)));
                }
                Err(error) => {
                    // The pictures in the database are shown again, as they would be at the next start.
                    self.reconcile_again = true;
                    let taken_back = apply.feasible.pictures.iter().flat_map(Picture::monitors);
                    self.status.note_taken_back(taken_back);
                    self.refuse(&apply.request, &error, apply.reply);
                }
            },
            Purpose::Restore(_) => {}
            Purpose::Activate {
                backend,
                restored,
                warnings,
                reply,
                ..
            } => {
                self.status.set_active(Some(backend), &[]);
                let changed = self.committed(&restored);
                self.publish_changes(changed, move || reply(Ok(Activated { backend, warnings })));
            }
            Purpose::Clear { failed, reply } => reply(failed.map_or(Ok(()), Err)),
        }
    }
}
