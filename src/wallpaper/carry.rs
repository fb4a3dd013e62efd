//! How the stage carries jobs out: orders to one backend at a time for each, and what follows from
//! the reports.

use std::time::Instant;

use crossbeam_channel::bounded;

use crate::backends;
use crate::wire::Event;

use super::Failure;
use super::hand::{Hand, Order, Report};
use super::job::{Hang, Job, Purpose, Restored};
use super::plan::{self, Step};
use super::request::Activated;
use super::seat::Seat;
use super::stage::{Stage, chain};
use super::trouble::Trouble;

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
            match self.hand(&seat) {
                Ok(hand) => hand.give(order),
                Err(error) => {
                    let error = backends::Error::Unavailable(format!("cannot use it: {error}"));
                    self.done(&seat, Err(error));
                }
            }
        }
    }

    fn hand(&mut self, seat: &Seat) -> std::io::Result<&Hand> {
        if !self.hands.contains_key(seat) {
            // One ring is enough: the hand looks at all its processes.
            let (ring, told) = bounded(1);
            let (setters, output) = (&self.setters, seat.output.as_deref());
            let made = setters
                .build(seat.backend, output, ring)
                .ok_or_else(|| std::io::Error::other("it is not registered"))?;
            let cache = setters.cache_of(seat.backend, output);
            let report = self.report.clone();
            let hand = Hand::start(&self.spawner, seat.clone(), made, &cache, told, report)?;
            self.hands.insert(seat.clone(), hand);
        }
        Ok(&self.hands[seat])
    }

    pub(super) fn hear(&mut self, report: Report) {
        match report {
            Report::Done { seat, result } => self.done(&seat, result),
            Report::Lost { seat } => self.lost(&seat),
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
                log::warn!("{seat}: {error}");
                job.failures.push((seat.clone(), error));
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
                self.troubles.entry(seat.clone()).or_default().over();
                self.stale.remove(&seat);
                self.past.untold.remove(&seat);
                let backend = seat.backend;
                self.shown.insert(seat, scene);
                backend
            }
            Some(Step::Clear { seat }) => {
                self.shown.remove(&seat);
                // A seat that shows nothing needs no thread.
                self.hands.remove(&seat);
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
        let Some((first, error)) = failures.first() else { return self.start(job) };
        let backend = first.backend;
        match job.purpose {
            Purpose::Hang(hang) => {
                let seats = hang.seats();
                let mine = failures.iter().find(|(seat, _)| seats.contains(seat));
                if let Some((_, error)) = mine {
                    // What hung before hangs again where the others have let go of it.
                    self.look_again |= job.is_seen;
                    return self.refuse(*hang, error.clone());
                }
                // One that should have let go of a screen that another covers by now.
                job.gave_up.extend(failures.into_iter().map(|(seat, _)| seat));
                job.purpose = Purpose::Hang(hang);
            }
            Purpose::Activate { backend: wanted, before, reply, .. } if wanted == backend => {
                self.activated = before;
                self.look_again |= job.is_seen;
                return reply(Err(Failure::Setter { backend, source: error.clone() }));
            }
            Purpose::Activate { .. } => {
                job.gave_up.extend(failures.into_iter().map(|(seat, _)| seat));
            }
            Purpose::Restore(ref mut restored) => {
                for (seat, _) in &failures {
                    restored.iter_mut().for_each(|picture| drop(picture.split_off(seat)));
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

    /// Tells of it once, and sets the time for each to be tried again.
    fn restore_failed(&mut self, failures: &[(Seat, backends::Error)]) {
        let Some((Seat { backend, .. }, error)) = failures.first() else { return };
        let text = error.to_string();
        self.hub.publish(&Event::WallpaperRestoreFailed {
            backend: backend.to_string(),
            error: text.clone(),
        });
        let is_out = |error: &backends::Error| matches!(error, backends::Error::Unavailable(_));
        let out: Vec<&Seat> =
            failures.iter().filter(|(_, error)| is_out(error)).map(|(seat, _)| seat).collect();
        // One that was recalled is not asked for by what differs.
        let shown = out.iter().filter(|seat| self.shown.contains_key(**seat));
        self.stale.extend(shown.map(|&seat| seat.clone()));
        let now = Instant::now();
        let retrying = out.iter().fold(false, |retrying, &seat| {
            let again = self.troubles.entry(seat.clone()).or_default().failed(now);
            retrying | again.is_some()
        });
        if !out.is_empty() {
            self.hub.publish(&Event::BackendUnavailable {
                message: format!("{backend} does not start: {text}"),
                backend: Some(backend.to_string()),
                retrying,
                checked: Vec::new(),
            });
        }
    }

    /// A process ended by itself, and its pictures with it.
    fn lost(&mut self, seat: &Seat) {
        self.shown.remove(seat);
        self.note_hung(seat.backend);
        let trouble = self.troubles.entry(seat.clone()).or_default();
        if trouble.died(Instant::now()) {
            log::warn!("{seat} ended by itself: showing its pictures again");
            self.look();
            return;
        }
        let message =
            format!("{seat} keeps ending by itself: it is left alone until the next change");
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
        self.troubles.values().filter_map(Trouble::retry_at).min()
    }

    pub(super) fn retry(&mut self) {
        let now = Instant::now();
        self.troubles.values_mut().for_each(|trouble| trouble.wake(now));
        self.look();
        self.go_on();
    }
}
