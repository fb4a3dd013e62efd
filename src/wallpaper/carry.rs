//! How the stage carries jobs out: one order at a time for each, and what follows from each report.

use std::time::Instant;

use crossbeam_channel::bounded;

use crate::backends;
use crate::config::BackendName;
use crate::wire::Event;

use super::Failure;
use super::hand::{Hand, Order, Report};
use super::job::{Job, Purpose, Restored};
use super::plan::{self, Step};
use super::request::Activated;
use super::stage::{Stage, chain};
use super::trouble::Trouble;

impl Stage {
    pub(super) fn start(&mut self, job: Job) {
        self.take_step(job);
    }

    /// Gives the order for the job's next step; without one, the job is done.
    fn take_step(&mut self, job: Job) {
        let Some(step) = job.steps.front() else { return self.finish(job) };
        let (backend, order) = match step.clone() {
            Step::Show { backend, scene } => (backend, Order::Show(scene)),
            Step::Clear { backend } => (backend, Order::Clear),
        };
        match self.hand(backend) {
            Ok(hand) => {
                hand.give(order);
                self.jobs.push(job);
            }
            Err(error) => {
                let error = backends::Error::Unavailable(format!("cannot use it: {error}"));
                self.step_failed(job, backend, error);
            }
        }
    }

    fn hand(&mut self, backend: BackendName) -> std::io::Result<&Hand> {
        if !self.hands.contains_key(&backend) {
            // One ring is enough: the hand looks at all its processes.
            let (ring, told) = bounded(1);
            let made = self
                .setters
                .build(backend, ring)
                .ok_or_else(|| std::io::Error::other("it is not registered"))?;
            let cache = self.setters.cache.join(backend.as_str());
            let hand =
                Hand::start(&self.spawner, backend, made, &cache, told, self.report.clone())?;
            self.hands.insert(backend, hand);
        }
        Ok(&self.hands[&backend])
    }

    pub(super) fn hear(&mut self, report: Report) {
        match report {
            Report::Done { backend, result } => {
                let Some(at) = self.jobs.iter().position(|job| job.backend() == Some(backend))
                else {
                    return;
                };
                let job = self.jobs.remove(at);
                match result {
                    Ok(()) => self.step_done(job, backend),
                    Err(error) => self.step_failed(job, backend, error),
                }
            }
            Report::Lost { backend } => self.lost(backend),
        }
        self.go_on();
    }

    fn step_done(&mut self, mut job: Job, backend: BackendName) {
        match job.steps.pop_front() {
            Some(Step::Show { scene, .. }) => {
                self.troubles.entry(backend).or_default().over();
                self.shown.insert(backend, scene);
            }
            Some(Step::Clear { .. }) => {
                self.shown.remove(&backend);
                // A backend that shows nothing needs no thread.
                self.hands.remove(&backend);
            }
            None => {}
        }
        self.note_hung(backend);
        self.replan(&mut job);
        self.take_step(job);
    }

    /// Other jobs may have changed what is shown since the steps were planned.
    fn replan(&mut self, job: &mut Job) {
        let Purpose::Hang(hang) = &job.purpose else { return };
        let primary = hang.applied.backend;
        match self.survey() {
            Ok(survey) => {
                let (mut steps, wanted) = self.steps_of(hang, survey);
                if job.pending() == Some(primary) {
                    plan::insist(&mut steps, &wanted, primary);
                }
                steps.retain(|step| !job.gave_up.contains(&step.backend()));
                job.steps = steps.into();
            }
            Err(error) => log::error!("cannot read the scene: {}", chain(&error)),
        }
    }

    fn step_failed(&mut self, mut job: Job, backend: BackendName, error: backends::Error) {
        job.steps.pop_front();
        log::warn!("{backend}: {error}");
        match job.purpose {
            Purpose::Hang(hang) if hang.applied.backend == backend => {
                self.hub.publish(&Event::WallpaperApplyFailed {
                    image_id: hang.image.id,
                    error: error.to_string(),
                    backend: backend.to_string(),
                });
                let failure = Failure::Setter { backend, source: error };
                return (hang.reply)(Err(failure));
            }
            Purpose::Activate { backend: wanted, before, reply, .. } if wanted == backend => {
                self.activated = before;
                let failure = Failure::Setter { backend, source: error };
                return reply(Err(failure));
            }
            Purpose::Restore(ref mut restored) => {
                restored.retain(|picture| picture.backend != backend);
                self.restore_failed(backend, &error);
            }
            Purpose::Clear { ref mut failed, .. } => {
                *failed = Some(Failure::Setter { backend, source: error });
            }
            // One that should have let go of a screen that another covers by now.
            Purpose::Hang(_) | Purpose::Activate { .. } => drop(job.gave_up.insert(backend)),
        }
        self.take_step(job);
    }

    fn restore_failed(&mut self, backend: BackendName, error: &backends::Error) {
        let text = error.to_string();
        let name = Some(backend.to_string());
        self.hub.publish(&Event::WallpaperRestoreFailed {
            backend: backend.to_string(),
            error: text.clone(),
        });
        if let backends::Error::Unavailable(_) = error {
            let again = self.troubles.entry(backend).or_default().failed(Instant::now());
            self.hub.publish(&Event::BackendUnavailable {
                message: format!("{backend} does not start: {text}"),
                backend: name,
                retrying: again.is_some(),
                checked: Vec::new(),
            });
        }
    }

    /// A process ended by itself, and its pictures with it.
    fn lost(&mut self, backend: BackendName) {
        self.shown.remove(&backend);
        self.note_hung(backend);
        let trouble = self.troubles.entry(backend).or_default();
        if trouble.died(Instant::now()) {
            log::warn!("{backend} ended by itself: showing its pictures again");
            self.look();
            return;
        }
        let message =
            format!("{backend} keeps ending by itself: it is left alone until the next change");
        log::error!("{message}");
        self.hub.publish(&Event::BackendUnavailable {
            message,
            backend: Some(backend.to_string()),
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
            Purpose::Restore(restored) => self.commit_restored(&restored),
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
