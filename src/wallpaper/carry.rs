//! How the stage carries jobs out: orders to one backend at a time for each, and what follows from
//! the reports.

use std::time::Instant;

use crossbeam_channel::bounded;

use crate::backends;
use crate::wire::Event;

use super::Failure;
use super::backoff::Backoff;
use super::job::{Failed, Hang, Job, Purpose, Restored};
use super::plan::{self, Step};
use super::request::Activated;
use super::seat::Seat;
use super::stage::{Stage, chain};
use super::worker::{News, Order, Report, Worker};

impl Stage {
    /// Gives the orders for the job's next steps, all of one backend at once; without any left, the
    /// job is done.
    pub(super) fn start(&mut self, mut job: Job) {
        let Some(backend) = job.steps.front().map(|step| step.seat().backend) else {
            return self.finish(job);
        };
        let others = job.steps.iter().position(|step| step.seat().backend != backend);
        job.in_hand = job.steps.drain(..others.unwrap_or(job.steps.len())).collect();
        let steps = job.in_hand.clone();
        self.jobs.push(job);
        for step in steps {
            let (seat, order) = match step {
                Step::Show { seat, scene } => (seat, Order::Show(scene)),
                Step::Clear { seat } => (seat, Order::Clear),
            };
            let given = self.worker(&seat).map(|worker| worker.give(order));
            let why = match given {
                Ok(true) => continue,
                Ok(false) => "its thread has just ended".to_owned(),
                Err(error) => error.to_string(),
            };
            self.done(&seat, Err(backends::Error::Unavailable(format!("cannot use it: {why}"))));
        }
    }

    fn worker(&mut self, seat: &Seat) -> std::io::Result<&Worker> {
        if !self.workers.contains_key(seat) {
            let may_work = |backoff: &Backoff| backoff.may_work(Instant::now());
            if !self.backoffs.get(seat).is_none_or(may_work) {
                let why = "it failed several times within a minute by a mistake of murald";
                return Err(std::io::Error::other(why));
            }
            // One ring is enough: the worker looks at all its processes.
            let (ring, told) = bounded(1);
            let (setters, output) = (&self.setters, seat.output.as_deref());
            let made = setters
                .build(seat.backend, output, ring)
                .ok_or_else(|| std::io::Error::other("it is not registered"))?;
            let cache = setters.cache_of(seat.backend, output);
            let report = self.report.clone();
            self.workers_made += 1;
            let of = (seat.clone(), self.workers_made);
            let worker = Worker::start(&self.spawner, of, made, &cache, told, report)?;
            self.workers.insert(seat.clone(), worker);
        }
        Ok(&self.workers[seat])
    }

    pub(super) fn hear(&mut self, report: Report) {
        let Report { seat, worker, news } = report;
        if self.workers.get(&seat).is_none_or(|known| known.number != worker) {
            return;
        }
        match news {
            News::Done(result) => self.done(&seat, result),
            News::Lost => self.lost(&seat),
            News::Panicked => self.panicked(&seat),
        }
        self.go_on();
    }

    /// A step that was in hand is done, or has failed.
    fn done(&mut self, seat: &Seat, result: Result<Vec<String>, backends::Error>) {
        let Some(at) = self.jobs.iter().position(|job| job.holds(seat)) else { return };
        let mut job = self.jobs.remove(at);
        let step = job.in_hand.extract_if(.., |step| step.seat() == seat).next();
        match result {
            Ok(warnings) => {
                job.is_seen = true;
                job.warn(warnings);
                self.step_done(step);
                if let Purpose::Restore(restored) = &mut job.purpose {
                    let hang = restored.iter_mut().filter_map(|picture| picture.split_off(seat));
                    self.commit_restored(&hang.collect::<Vec<_>>());
                }
            }
            Err(error) => {
                let outdated = step.is_some_and(|step| self.is_outdated(&step));
                log::warn!(
                    "{seat}: {error}{}",
                    if outdated { " (outputs have changed)" } else { "" }
                );
                job.failures.push(Failed { seat: seat.clone(), error, outdated });
            }
        }
        if !job.in_hand.is_empty() {
            self.jobs.push(job);
        } else if job.failures.is_empty() {
            self.replan(&mut job);
            self.start(job);
        } else {
            self.steps_failed(job);
        }
    }

    fn step_done(&mut self, step: Option<Step>) {
        let backend = match step {
            Some(Step::Show { seat, scene }) => {
                self.backoffs.entry(seat.clone()).or_default().over();
                self.stale.remove(&seat);
                self.past.untold.remove(&seat);
                let backend = seat.backend;
                self.shown.insert(seat, scene);
                backend
            }
            Some(Step::Clear { seat }) => {
                self.shown.remove(&seat);
                // A seat that shows nothing needs no thread.
                self.workers.remove(&seat);
                seat.backend
            }
            None => return,
        };
        self.note_hung(backend);
    }

    /// Other jobs may have changed what is shown since the steps were planned.
    fn replan(&mut self, job: &mut Job) {
        let Purpose::Hang(hang) = &job.purpose else { return };
        match self.survey() {
            Ok(survey) => {
                let (mut steps, wanted) = self.steps_of(hang, survey);
                for seat in job.pending() {
                    plan::insist(&mut steps, &wanted, &seat);
                }
                steps.retain(|step| !job.gave_up.contains(step.seat()));
                job.steps = steps.into();
            }
            Err(error) => log::error!("cannot read the scene: {}", chain(&error)),
        }
    }

    /// Some of the steps that were in hand have failed.
    fn steps_failed(&mut self, mut job: Job) {
        let failures = std::mem::take(&mut job.failures);
        let Some(Failed { seat, error, .. }) = failures.first() else { return self.start(job) };
        let backend = seat.backend;
        // What is to be seen then depends on when it failed.
        self.stale.extend(failures.iter().map(|failed| failed.seat.clone()));
        self.look_again |= failures.iter().any(|failed| failed.outdated);
        match job.purpose {
            Purpose::Hang(hang) => {
                let seats = hang.seats();
                let mine = failures.iter().find(|failed| seats.contains(&failed.seat));
                if let Some(Failed { seat, error, outdated }) = mine {
                    if *outdated && self.is_connected(seat, &hang.applied.monitors) {
                        let seat = seat.clone();
                        job.purpose = Purpose::Hang(hang);
                        return self.try_anew(job, &seat);
                    }
                    // What hung before hangs again where the others have let go of it.
                    self.look_again |= job.is_seen;
                    return self.refuse(*hang, error.clone());
                }
                // One that should have let go of a screen that another covers by now.
                job.gave_up.extend(failures.into_iter().map(|failed| failed.seat));
                job.purpose = Purpose::Hang(hang);
            }
            Purpose::Activate { backend: wanted, before, reply, .. } if wanted == backend => {
                self.activated = before;
                self.look_again |= job.is_seen;
                return reply(Err(Failure::Setter { backend, source: error.clone() }));
            }
            Purpose::Activate { .. } => {
                job.gave_up.extend(failures.into_iter().map(|failed| failed.seat));
            }
            Purpose::Restore(ref mut restored) => {
                for failed in &failures {
                    restored.iter_mut().for_each(|picture| drop(picture.split_off(&failed.seat)));
                }
                self.restore_failed(&failures);
            }
            Purpose::Clear { ref mut failed, .. } => {
                *failed = Some(Failure::Setter { backend, source: error.clone() });
            }
        }
        self.start(job);
    }

    fn refuse(&self, hang: Hang, error: backends::Error) {
        let backend = hang.applied.backend;
        self.hub.publish(&Event::WallpaperApplyFailed {
            image_id: hang.image.id,
            error: error.to_string(),
            backend: backend.to_string(),
        });
        (hang.reply)(Err(Failure::Setter { backend, source: error }));
    }

    /// Tells of an outage once, and sets the time for each to be tried again. What failed because
    /// outputs came or went meanwhile is no outage.
    fn restore_failed(&mut self, failures: &[Failed]) {
        let real: Vec<&Failed> = failures.iter().filter(|failed| !failed.outdated).collect();
        let Some(Failed { seat: Seat { backend, .. }, error, .. }) = real.first() else { return };
        let text = error.to_string();
        let now = Instant::now();
        let (mut is_news, mut is_out, mut retrying) = (false, false, false);
        for Failed { seat, error, .. } in real {
            let backoff = self.backoffs.entry(seat.clone()).or_default();
            is_news |= backoff.is_news();
            if matches!(error, backends::Error::Unavailable(_)) {
                is_out = true;
                retrying |= backoff.failed(now).is_some();
            }
        }
        if is_news {
            self.hub.publish(&Event::WallpaperRestoreFailed {
                backend: backend.to_string(),
                error: text.clone(),
            });
        }
        if is_out && (is_news || !retrying) {
            self.hub.publish(&Event::BackendUnavailable {
                message: format!("{backend} does not start: {text}"),
                backend: Some(backend.to_string()),
                retrying,
                checked: Vec::new(),
            });
        }
    }

    /// Whether outputs have come, gone or changed since a step was planned.
    fn is_outdated(&self, step: &Step) -> bool {
        let Step::Show { scene, .. } = step else { return false };
        let outputs = self.setters.outputs.list();
        !scene.iter().all(|hanging| outputs.contains(&hanging.output))
    }

    fn is_connected(&self, seat: &Seat, monitors: &[String]) -> bool {
        let outputs = self.setters.outputs.list();
        let there = |name: &String| outputs.iter().any(|output| output.name == *name);
        monitors.iter().any(|name| seat.serves(name) && there(name))
    }

    /// Plans what was asked for once more, for the outputs that are there by now.
    fn try_anew(&mut self, mut job: Job, seat: &Seat) {
        job.steps.push_back(Step::Show { seat: seat.clone(), scene: Vec::new() });
        self.replan(&mut job);
        self.start(job);
    }

    /// A process ended by itself, and its pictures with it.
    fn lost(&mut self, seat: &Seat) {
        self.shown.remove(seat);
        self.note_hung(seat.backend);
        let backoff = self.backoffs.entry(seat.clone()).or_default();
        if backoff.died(Instant::now()) {
            log::warn!("{seat} ended by itself: showing its pictures again");
            self.look();
            return;
        }
        self.given_up(seat, "keeps ending by itself");
    }

    /// A worker died by a mistake of ours. Another takes over what it shows.
    fn panicked(&mut self, seat: &Seat) {
        self.workers.remove(seat);
        let goes_on = self.backoffs.entry(seat.clone()).or_default().panicked(Instant::now());
        if self.shown.contains_key(seat) {
            self.stale.insert(seat.clone());
        }
        let why = "its thread failed by a mistake of murald, which the log tells of";
        self.done(seat, Err(backends::Error::Unavailable(why.to_owned())));
        if goes_on {
            self.look_again = true;
        } else {
            self.given_up(seat, "keeps failing by a mistake of murald");
        }
    }

    fn given_up(&self, seat: &Seat, why: &str) {
        let message = format!("{seat} {why}: it is left alone until the next change");
        log::error!("{message}");
        self.hub.publish(&Event::BackendUnavailable {
            message,
            backend: Some(seat.backend.to_string()),
            retrying: false,
            checked: Vec::new(),
        });
    }

    fn finish(&mut self, job: Job) {
        match job.purpose {
            Purpose::Hang(hang) => {
                let result = hang.commit(&self.store, &self.hub);
                let applied = hang.applied;
                (hang.reply)(result.map(|()| applied).map_err(Failure::from));
            }
            Purpose::Restore(_) => {}
            Purpose::Activate { backend, restored, reply, .. } => {
                self.commit_restored(&restored);
                self.note_activated(backend);
                reply(Ok(Activated { backend }));
            }
            Purpose::Clear { failed, reply } => reply(failed.map_or(Ok(()), Err)),
        }
    }

    fn commit_restored(&self, restored: &[Restored]) {
        for picture in restored {
            if let Err(error) = picture.commit(&self.store, &self.hub) {
                log::error!("the scene cannot be written: {}", chain(&error));
            }
        }
    }

    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.backoffs.values().filter_map(Backoff::retry_at).min()
    }

    pub(super) fn retry(&mut self) {
        let now = Instant::now();
        self.backoffs.values_mut().for_each(|backoff| backoff.wake(now));
        self.look();
        self.go_on();
    }
}
