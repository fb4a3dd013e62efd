//! The thread `stage`: takes requests, plans, gives orders to the workers and answers.
//!
//! It waits only for messages. Files are looked up and rows are written here; setters are not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::PoisonError;

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};

use crate::backends::{Hanging, REGISTRY, Setters};
use crate::config::{BackendName, SelectionMode};
use crate::events::Hub;
use crate::store::{self, Store};
use crate::thread::Spawner;
use crate::wire::{Event, OrphanReason};

use super::backoff::Backoff;
use super::job::{Activation, Hang, Job, Purpose};
use super::line::Waiting;
use super::orphan;
use super::past::Past;
use super::plan::{self, Shown, Step};
use super::request::{Activated, Applied, Ask, Reply, Request};
use super::scene::{self, Pictures};
use super::seat::Seat;
use super::selection::{self, Candidate, Preference};
use super::survey::{Feasible, Survey};
use super::worker::{Report, Worker};
use super::{Failure, SharedStatus};

/// Images that a random request leaves because their files are gone, before it says so.
const PICKS: usize = 32;
/// Reports that wait. A worker has at most one order to report and one loss: this never fills up.
const REPORTS: usize = 256;

pub(super) enum Command {
    Set(Request, Reply<Applied>),
    Activate(String, Reply<Activated>),
    Clear(Reply<()>),
    /// What changed stands in the status.
    SettingsChanged,
    End,
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, failure: Failure) {
        match self {
            Self::Set(_, reply) => reply(Err(failure)),
            Self::Activate(_, reply) => reply(Err(failure)),
            Self::Clear(reply) => reply(Err(failure)),
            Self::SettingsChanged | Self::End => {}
        }
    }
}

pub(super) struct Stage {
    pub(super) spawner: Spawner,
    pub(super) store: Store,
    pub(super) hub: Hub,
    pub(super) setters: Setters,
    status: SharedStatus,
    pub(super) workers: BTreeMap<Seat, Worker>,
    pub(super) report: Sender<Report>,
    reports: Receiver<Report>,
    /// What the workers have reported as shown.
    pub(super) shown: Shown,
    /// More than one only where none stands in another's way.
    pub(super) jobs: Vec<Job>,
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) backoffs: BTreeMap<Seat, Backoff>,
    /// Something changed while a job was in hand: look again afterwards.
    pub(super) look_again: bool,
    /// Seats to be told to show what they show: settings changed since, or they were not asked yet.
    pub(super) stale: BTreeSet<Seat>,
    pub(super) past: Past,
    /// Activated, but not yet what the settings say.
    pub(super) activated: Option<Activation>,
    /// Workers so far.
    pub(super) workers_made: u64,
}

impl Stage {
    pub(super) fn new(
        spawner: Spawner,
        store: Store,
        hub: Hub,
        setters: Setters,
        status: SharedStatus,
    ) -> Self {
        let (report, reports) = bounded(REPORTS);
        let past = Past::open(&setters);
        Self {
            spawner,
            store,
            hub,
            setters,
            status,
            workers: BTreeMap::new(),
            report,
            reports,
            shown: Shown::new(),
            jobs: Vec::new(),
            waiting: VecDeque::new(),
            backoffs: BTreeMap::new(),
            look_again: false,
            stale: BTreeSet::new(),
            past,
            activated: None,
            workers_made: 0,
        }
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let outputs = self.setters.outputs.subscribe();
        let reports = self.reports.clone();
        self.look();
        loop {
            let retry = self.next_retry().map_or_else(never, at);
            select! {
                recv(commands) -> command => match command {
                    Ok(Command::End) | Err(_) => break,
                    Ok(command) => {
                        self.take(command);
                        self.heed_settings();
                    }
                },
                recv(reports) -> report => if let Ok(report) = report { self.hear(report) },
                recv(outputs) -> _ => self.look(),
                recv(retry) -> _ => self.retry(),
            }
        }
        self.end();
    }

    /// Looks again where settings have changed since it last looked.
    fn heed_settings(&mut self) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(changed) = status.changed.take() else { return };
        let deactivated = std::mem::take(&mut status.deactivated);
        drop(status);
        if deactivated {
            self.activated = None;
        }
        self.stale
            .extend(self.shown.keys().filter(|seat| changed.contains(&seat.backend)).cloned());
        let settings = (self.setters.settings)();
        let now = (settings.backend.kind, settings.backend.selection_mode);
        self.activated = self.activated.filter(|activated| activated.settings == now);
        self.look();
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::SettingsChanged => {}
            Command::Clear(reply) => {
                self.break_off();
                self.begin(Command::Clear(reply));
            }
            command if self.jobs.is_empty() => self.begin(command),
            Command::Set(request, reply) => self.line_up(request, reply),
            command => self.wait(Waiting::Other(command)),
        }
    }

    pub(super) fn begin(&mut self, command: Command) {
        match command {
            Command::Set(request, reply) => match self.feasible(&request) {
                Ok((feasible, survey)) => {
                    self.recall(&survey);
                    self.hang(feasible, survey, reply);
                }
                Err(failure) => {
                    self.purge_if_gone(&failure);
                    reply(Err(failure));
                }
            },
            Command::Activate(name, reply) => self.activate(&name, reply),
            Command::Clear(reply) => {
                let left = std::mem::take(&mut self.past.left);
                let all: BTreeSet<Seat> = self.shown.keys().cloned().chain(left).collect();
                let steps = all.into_iter().map(|seat| Step::Clear { seat }).collect();
                self.start(Job::new(steps, Purpose::Clear { failed: None, reply }));
            }
            Command::SettingsChanged | Command::End => {}
        }
    }

    /// Ends what is in hand and what waits: setters that hang must not keep all from being taken
    /// down. A worker that is made anew takes their processes over.
    fn break_off(&mut self) {
        for job in std::mem::take(&mut self.jobs) {
            for step in &job.in_hand {
                self.workers.remove(step.seat());
            }
            job.refuse(Failure::Ending);
        }
        for waiting in std::mem::take(&mut self.waiting) {
            waiting.into_command().refuse(Failure::Ending);
        }
    }

    fn hang(&mut self, feasible: Feasible, survey: Survey, reply: Reply<Applied>) {
        let hang = Hang {
            image: feasible.image,
            rows: feasible.rows,
            for_all: feasible.for_all,
            applied: feasible.applied,
            source: feasible.source,
            reply,
        };
        let (mut steps, wanted) = self.steps_of(&hang, survey);
        // Asked for again is shown again: somebody else may have painted over it.
        for seat in hang.seats() {
            plan::insist(&mut steps, &wanted, &seat);
        }
        self.start(Job::new(steps.into(), Purpose::Hang(Box::new(hang))));
    }

    /// The steps that are left to where a picture hangs, and what is shown then. Seats that other
    /// jobs have in hand are left out: they are looked at afterwards.
    pub(super) fn steps_of(&mut self, hang: &Hang, survey: Survey) -> (Vec<Step>, Shown) {
        let wanted = survey.with(&hang.image, &hang.rows).wanted(&self.shown);
        let mut steps = plan::steps(&self.told(), &wanted);
        let later = steps.extract_if(.., |step| self.is_busy(step.seat())).collect();
        let later = self.with_dependants(later, &mut steps, &hang.seats());
        self.look_again |= !later.is_empty();
        (steps, wanted)
    }

    /// What is shown once the orders that are given are carried out. Plans begin from there: what
    /// was shown before a job says nothing about what it leaves to do.
    fn told(&self) -> Shown {
        let mut told = self.shown.clone();
        for step in self.jobs.iter().flat_map(|job| &job.in_hand) {
            match step {
                Step::Show { seat, scene } => drop(told.insert(seat.clone(), scene.clone())),
                Step::Clear { seat } => drop(told.remove(seat)),
            }
        }
        told
    }

    /// Makes a backend the one in use. Until the settings say so too, it is remembered here.
    fn activate(&mut self, name: &str, reply: Reply<Activated>) {
        let Ok(backend) = name.parse::<BackendName>() else {
            return reply(Err(Failure::UnknownBackend { name: name.to_owned() }));
        };
        if self.setters.available().iter().all(|entry| entry.name != backend) {
            let checked = self.setters.programs(Some(backend));
            let entry = REGISTRY.iter().find(|entry| entry.name == backend);
            let missing = entry.map(|entry| self.setters.missing(entry)).unwrap_or_default();
            return reply(Err(Failure::NotUsable { backend, checked, missing }));
        }
        let settings = (self.setters.settings)();
        let settings = (settings.backend.kind, settings.backend.selection_mode);
        let before = self.activated.replace(Activation { backend, settings });
        let survey = match self.survey() {
            Ok(survey) => survey,
            Err(error) => {
                self.activated = before;
                return reply(Err(error.into()));
            }
        };
        self.recall(&survey);
        let steps = plan::steps(&self.shown, &survey.wanted(&self.shown));
        let restored = survey.restored(&self.shown, &steps);
        let purpose = Purpose::Activate { backend, before, restored, reply };
        self.start(Job::new(steps.into(), purpose));
    }

    /// Looks at everything and brings the screens in line with it, but for those that somebody has
    /// in hand.
    pub(super) fn look(&mut self) {
        let aside = |job: &Job| matches!(job.purpose, Purpose::Hang(_) | Purpose::Restore(_));
        if !self.jobs.iter().all(aside) {
            self.look_again = true;
            return;
        }
        self.look_again = false;
        let survey = match self.survey() {
            Ok(survey) => survey,
            Err(error) => return log::error!("cannot read the scene: {}", chain(&error)),
        };
        self.note_active(&survey);
        self.recall(&survey);
        let wanted = survey.wanted(&self.shown);
        let mut steps = plan::steps(&self.told(), &wanted);
        let stale = std::mem::take(&mut self.stale);
        for seat in &stale {
            plan::insist(&mut steps, &wanted, seat);
        }
        // One that did not start has its own time to be tried again.
        steps.retain(|step| self.backoffs.get(step.seat()).is_none_or(Backoff::may_try));
        let later = |step: &mut Step| self.is_busy(step.seat()) || !self.is_apart(step);
        let later: Vec<Step> = steps.extract_if(.., later).collect();
        let later = self.with_dependants(later, &mut steps, &[]);
        self.look_again = !later.is_empty();
        let told = |seat: &Seat| steps.iter().any(|step| step.seat() == seat);
        self.stale.extend(stale.into_iter().filter(|seat| !told(seat)));
        self.stale.retain(|seat| self.shown.contains_key(seat));
        let mut before = self.shown.clone();
        before.retain(|seat, _| !self.past.untold.contains(seat));
        for steps in self.groups(steps) {
            let restored = survey.restored(&before, &steps);
            self.start(Job::new(steps.into(), Purpose::Restore(restored)));
        }
    }

    /// Tells, once each time it becomes so, that there is no backend.
    fn note_active(&self, survey: &Survey) {
        if self.setters.compositor().is_none() {
            // Which setters would fit is not known before there is a compositor.
            return;
        }
        if self.jobs.iter().any(|job| matches!(job.purpose, Purpose::Activate { .. })) {
            // In use once it shows everything.
            return;
        }
        let active = selection::active(&survey.preference, &survey.available);
        let checked = if active.is_none() { self.setters.programs(None) } else { Vec::new() };
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let news = active.is_none() && status.checked.is_empty();
        (status.active, status.checked) = (active, checked.clone());
        drop(status);
        if news {
            let message = Failure::NoBackend { checked: checked.clone() }.to_string();
            log::warn!("{message}");
            let event =
                Event::BackendUnavailable { message, backend: None, retrying: false, checked };
            self.hub.publish(&event);
        }
    }

    /// Lets everybody see that a backend has come into use.
    pub(super) fn note_activated(&self, backend: BackendName) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        (status.active, status.checked) = (Some(backend), Vec::new());
    }

    /// Lets everybody see what a backend shows.
    pub(super) fn note_hung(&self, backend: BackendName) {
        self.past.note(&self.shown);
        let of_it = self.shown.iter().filter(|(seat, _)| seat.backend == backend);
        let hung: Vec<Hanging> = of_it.flat_map(|(_, scene)| scene).cloned().collect();
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if hung.is_empty() {
            drop(status.hung.remove(&backend));
        } else {
            drop(status.hung.insert(backend, hung.into()));
        }
    }

    /// Reads what there is, and purges images of the scene whose files are gone.
    pub(super) fn survey(&self) -> Result<Survey, store::Error> {
        let (mut rows, mut for_all, pictures) = self.store.read(|connection| {
            let rows = store::scene::all(connection)?;
            let for_all = store::scene::for_every_monitor(connection)?;
            let ids: Vec<i64> = rows.iter().chain(&for_all).map(|row| row.image_id).collect();
            let images = store::images::by_ids(connection, &ids)?;
            let pictures: Pictures = images.into_iter().map(|image| (image.id, image)).collect();
            Ok::<_, store::Error>((rows, for_all, pictures))
        })?;
        for image in pictures.values().filter(|image| orphan::is_gone(image)) {
            if orphan::purge(&self.store, &self.hub, image.id, OrphanReason::FileMissing)? {
                rows.retain(|row| row.image_id != image.id);
                for_all = for_all.filter(|row| row.image_id != image.id);
            }
        }
        let mut preference = Preference::of(&(self.setters.settings)());
        if let Some(activated) = self.activated {
            preference.selection = SelectionMode::Fixed;
            preference.fixed = activated.backend;
        }
        let available = self.setters.available().into_iter().map(Candidate::from).collect();
        let outputs = self.setters.outputs.list();
        if let Some(for_all) = for_all {
            scene::adopt(&mut rows, &for_all, &outputs);
        }
        Ok(Survey { rows, pictures, outputs, available, preference })
    }

    pub(super) fn feasible(&self, request: &Request) -> Result<(Feasible, Survey), Failure> {
        let mut picks = PICKS;
        loop {
            let survey = self.survey()?;
            // A setter may have been installed since.
            self.note_active(&survey);
            let checked = || self.setters.programs(None);
            match survey.feasible(&self.store, request, checked) {
                // Another one can be shown.
                Err(failure @ Failure::FileGone { .. })
                    if request.ask == Ask::Random && picks > 0 =>
                {
                    self.purge_if_gone(&failure);
                    picks -= 1;
                }
                feasible => return Ok((feasible?, survey)),
            }
        }
    }

    /// Removes what refers to an image that a request found missing.
    pub(super) fn purge_if_gone(&self, failure: &Failure) {
        let (id, reason) = match failure {
            Failure::NoImage { id } => (*id, OrphanReason::RowMissing),
            Failure::FileGone { id, .. } => (*id, OrphanReason::FileMissing),
            _ => return,
        };
        if let Err(error) = orphan::purge(&self.store, &self.hub, id, reason) {
            log::error!("image {id} cannot be purged: {}", chain(&error));
        }
    }

    fn end(self) {
        // Setters stay as they are; the workers end when they are dropped with `self`, all at once.
        self.workers.values().for_each(Worker::cancel);
        for job in self.jobs {
            job.refuse(Failure::Ending);
        }
        for waiting in self.waiting {
            waiting.into_command().refuse(Failure::Ending);
        }
    }
}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
