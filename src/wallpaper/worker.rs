//! The threads that call the backends, one for each [`WorkerKey`], so that no other thread has to
//! wait for them.
//!
//! A worker carries out one order at a time and reports each to the reconciler. When its handle is
//! dropped it cancels the order in progress and leaves the processes running. A panic ends this
//! thread alone: the reconciler gets a report and starts another worker, which adopts the processes.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::links::Links;
use super::plan::WorkerKey;
use super::slices::Slices;
use crate::backends::{Backend, Backends, Error, Placement, Registration, registration};
use crate::decode::Decoder;
use crate::sys::{Cancel, lock};
use crate::thread::{Spawner, Thread, panic_text};
use crate::wire::{Sound, SoundChange};

/// An order to a worker.
#[derive(Debug)]
pub(super) enum Order {
    Show {
        placements: Vec<Placement>,
        /// In place of that of the settings.
        transition: Option<String>,
        /// Contents of files that are shown with another one.
        rewritten: Vec<String>,
        /// Use new processes, even if the running ones would do.
        renew: bool,
    },
    Clear,
}

/// A worker's report to the reconciler.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) key: WorkerKey,
    /// Which of the workers of this key it comes from: one that was replaced is not heard any more.
    pub(super) worker: u64,
    pub(super) news: News,
}

#[derive(Debug)]
pub(super) enum News {
    /// The order is carried out, or is not.
    Done(Result<Done, Error>),
    /// It is seen by now on others of its outputs; these are left.
    Unseen(Vec<String>),
    /// A process ended and what it showed has gone with it.
    Lost,
    /// The thread ends by a mistake of ours. What it showed stays.
    Panicked,
}

/// The result of an order that was carried out.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Warnings for people.
    pub(super) warnings: Vec<String>,
    /// The outputs on which it was not seen yet.
    pub(super) unseen: Vec<String>,
}

/// A change of the sound of what a worker shows, and where it says how it is then.
type SoundOrder = (SoundChange, Sender<Result<Sound, Error>>);
pub(super) type SoundReply = Receiver<Result<Sound, Error>>;

/// The outputs on which videos are to be paused, as they were set last: not an order, as a pause must
/// not wait for one, and needs no report. None until that is known: a video that an earlier daemon has
/// paused must not play in between.
type PausedOutputs = Arc<Mutex<Option<BTreeSet<String>>>>;

/// Dropping it closes the orders and cancels, then joins the thread: the order of the fields.
pub(super) struct Worker {
    orders: Option<Sender<Order>>,
    paused: PausedOutputs,
    /// Rung where that is another set than before.
    bell: Sender<()>,
    sounds: Sender<SoundOrder>,
    cancel: Cancel,
    pub(super) number: u64,
    _thread: Thread,
}

impl Worker {
    /// The thread makes the `backend` first. `cache` is the worker's own; `told` is rung by the reaper
    /// when a process of it has ended; `conflicts` are warnings about programs that may hide a picture.
    pub(super) fn start(
        spawner: &Spawner,
        (key, number): (WorkerKey, u64),
        backend: impl FnOnce() -> Box<dyn Backend> + Send + 'static,
        conflicts: Conflicts,
        (cache, decoder): (&Path, Decoder),
        told: Receiver<()>,
        reports: Sender<Report>,
    ) -> std::io::Result<Self> {
        let cancel = Cancel::new()?;
        // One order at a time: the reconciler waits for its report before it sends another.
        let (orders, inbox) = bounded(1);
        let (bell, rung) = bounded(1);
        let (sounds, sounded) = bounded(SOUNDS);
        let paused = PausedOutputs::default();
        let (wanted, stop) = (paused.clone(), cancel.clone());
        let slices = Slices::new(cache, decoder);
        let links = Links::new(cache);
        let (name, entry) = (key.backend.as_str(), registration(key.backend));
        let thread = spawner.spawn(name, move || {
            let tell = |news| {
                let report = Report { key: key.clone(), worker: number, news };
                // The reconciler has ended.
                reports.send(report).is_ok()
            };
            let work =
                || {
                    let (backend, paused, cancel) = (backend(), None, stop);
                    OrderLoop { entry, backend, conflicts, slices, links, wanted, paused, cancel }
                        .run(&inbox, (&told, &rung, &sounded), &tell);
                };
            // Nothing of it is used afterwards.
            let run = catch_unwind(AssertUnwindSafe(work));
            if let Err(panic) = run {
                log::error!("thread {key} died: {}", panic_text(&*panic));
                tell(News::Panicked);
            }
        })?;
        Ok(Self { orders: Some(orders), paused, bell, sounds, cancel, number, _thread: thread })
    }

    /// Breaks off what it has in hand, for good.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Pauses videos on these outputs and on no others: now, or after the order in progress.
    pub(super) fn pause(&self, outputs: BTreeSet<String>) {
        *lock(&self.paused) = Some(outputs);
        // One that has not been heard yet does.
        self.bell.try_send(()).ok();
    }

    /// The same after the order that is given next; none: it is not known yet.
    pub(super) fn pause_after(&self, outputs: Option<BTreeSet<String>>) {
        *lock(&self.paused) = outputs;
    }

    /// Whether it takes the order. One that has just died does not.
    pub(super) fn give(&self, order: Order) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.try_send(order).is_ok())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        self.cancel.cancel();
    }
}

struct OrderLoop {
    entry: &'static Registration,
    backend: Box<dyn Backend>,
    conflicts: Conflicts,
    slices: Slices,
    links: Links,
    wanted: PausedOutputs,
    /// As the backend was told last; none: it may be otherwise by now.
    paused: Option<BTreeSet<String>>,
    cancel: Cancel,
}

impl OrderLoop {
    /// Until the orders end, or nobody hears the reports.
    fn run(
        &mut self,
        orders: &Receiver<Order>,
        (told, rung, sounds): (&Receiver<()>, &Receiver<()>, &Receiver<SoundOrder>),
        tell: &impl Fn(News) -> bool,
    ) {
        loop {
            let heard = select! {
                recv(orders) -> order => match order {
                    Ok(order) => {
                        let done = self.carry_out(order);
                        // It may play by now what stood still before, and what is told waits for no
                        // pause.
                        self.paused = None;
                        let heard = tell(News::Done(done));
                        self.pause();
                        heard
                    }
                    Err(_) => return,
                },
                recv(told) -> _ => {
                    let whole = self.backend.is_whole();
                    let heard =
                        tell(if whole { News::Unseen(self.backend.unseen()) } else { News::Lost });
                    if whole {
                        self.paused = None;
                        self.pause();
                    }
                    heard
                }
                recv(sounds) -> order => {
                    let Ok((change, answer)) = order else { return };
                    // Its client may have gone.
                    answer.try_send(self.backend.sound(change, &self.cancel)).ok();
                    true
                }
                recv(rung) -> bell => match bell {
                    Ok(()) => {
                        self.pause();
                        true
                    }
                    Err(_) => return,
                }
            };
            if !heard {
                return;
            }
        }
    }

    /// Pauses videos where wanted, and lets them play elsewhere.
    fn pause(&mut self) {
        let Some(wanted) = lock(&self.wanted).clone() else { return };
        if self.paused.as_ref() == Some(&wanted) {
            return;
        }
        match self.backend.pause(&wanted, &self.cancel) {
            Ok(()) | Err(Error::Cancelled) => {}
            Err(error) => log::warn!("cannot pause or resume: {error}"),
        }
        self.paused = Some(wanted);
    }

    fn carry_out(&mut self, order: Order) -> Result<Done, Error> {
        match order {
            Order::Show { placements, transition, rewritten, renew } => {
                self.backend.use_transition(transition.as_deref());
                if renew {
                    self.backend.renew();
                }
                let mut files = self.links.retain(placements.clone());
                if self.entry.knows_by_path {
                    files = self.links.name(files, &rewritten);
                }
                let cut = self.slices.keep_if_done(|| {
                    let cut = match self.entry.spans_outputs {
                        true => files,
                        false => self.slices.cut(files, &self.cancel)?,
                    };
                    self.backend.show(&cut, &self.cancel).map(|()| cut)
                })?;
                self.slices.tidy(&cut);
                self.links.tidy(&placements);
                let mut warnings = self.backend.warnings();
                warnings.extend((self.conflicts)());
                Ok(Done { warnings, unseen: self.backend.unseen() })
            }
            Order::Clear => {
                self.backend.clear()?;
                self.slices.tidy(&[]);
                self.links.tidy(&[]);
                Ok(Done::default())
            }
        }
    }
}

#[cfg(test)]
mod tests;

/// Changes of the sound that wait for a worker.
const SOUNDS: usize = 8;

/// Reports that wait. A worker has at most one order to report and one loss: this never fills up.
const REPORTS: usize = 256;

/// Makes the backend of a worker, which rings when a process of it has ended; on the worker's
/// thread, as it may wait for what an earlier daemon has left.
pub(super) type Build = Arc<dyn Fn(&WorkerKey, Sender<()>) -> Box<dyn Backend> + Send + Sync>;

/// Warnings about other programs that may hide what a backend has just shown.
type Conflicts = Box<dyn Fn() -> Vec<String> + Send>;

pub(super) struct Workers {
    spawner: Spawner,
    backends: Backends,
    build: Build,
    running: BTreeMap<WorkerKey, Worker>,
    reports: Sender<Report>,
    /// So far.
    made: u64,
}

impl Workers {
    /// With what they report to.
    pub(super) fn new(spawner: Spawner, backends: Backends) -> (Self, Receiver<Report>) {
        let of = backends.clone();
        let build = move |key: &WorkerKey, tell| of.build(key.backend, key.output.as_deref(), tell);
        Self::with(spawner, backends, Arc::new(build))
    }

    /// With backends that are made otherwise.
    pub(super) fn with(
        spawner: Spawner,
        backends: Backends,
        build: Build,
    ) -> (Self, Receiver<Report>) {
        let (reports, received) = bounded(REPORTS);
        (Self { spawner, backends, build, running: BTreeMap::new(), reports, made: 0 }, received)
    }

    /// Gives an order; makes the worker where there is none and one may be made. What moves on the
    /// outputs `paused` stands still afterwards.
    pub(super) fn give(
        &mut self,
        key: &WorkerKey,
        (order, paused): (Order, Option<BTreeSet<String>>),
        may_work: bool,
    ) -> Result<(), Error> {
        let given = self.worker(key, may_work).map(|worker| {
            worker.pause_after(paused);
            worker.give(order)
        });
        let why = match given {
            Ok(true) => return Ok(()),
            Ok(false) => "its thread has just ended".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Error::Unavailable(format!("cannot use it: {why}")))
    }

    fn worker(&mut self, key: &WorkerKey, may_work: bool) -> std::io::Result<&Worker> {
        if !self.running.contains_key(key) {
            if !may_work {
                let why = "it failed several times within a minute because of a bug in murald";
                return Err(std::io::Error::other(why));
            }
            // One message is enough: the worker looks at all its processes.
            let (tell, told) = bounded(1);
            let (build, of) = (Arc::clone(&self.build), key.clone());
            let backend = move || build(&of, tell);
            let cache = self.backends.cache_of(key.backend, key.output.as_deref());
            self.made += 1;
            let of = (key.clone(), self.made);
            let reports = self.reports.clone();
            let place = (&*cache, self.backends.decoder.clone());
            let (all, name) = (self.backends.clone(), key.backend);
            let conflicts = Box::new(move || all.conflict_warnings(name));
            let worker =
                Worker::start(&self.spawner, of, backend, conflicts, place, told, reports)?;
            self.running.insert(key.clone(), worker);
        }
        Ok(&self.running[key])
    }

    /// Pauses videos on these outputs and on no others of a worker's, if there is one.
    pub(super) fn pause(&self, key: &WorkerKey, outputs: BTreeSet<String>) {
        if let Some(worker) = self.running.get(key) {
            worker.pause(outputs);
        }
    }

    /// Changes the sound of what a worker shows; none if it cannot be asked.
    pub(super) fn sound(&self, key: &WorkerKey, change: SoundChange) -> Option<SoundReply> {
        let (answer, answered) = bounded(1);
        self.running.get(key)?.sounds.try_send((change, answer)).ok().map(|()| answered)
    }

    /// Whether a report comes from the worker that is there now, not from one that was replaced.
    pub(super) fn know(&self, report: &Report) -> bool {
        self.running.get(&report.key).is_some_and(|known| known.number == report.worker)
    }

    /// Ends one; what it shows stays.
    pub(super) fn end(&mut self, key: &WorkerKey) {
        self.running.remove(key);
    }

    /// Breaks off what they have in hand, for good.
    pub(super) fn cancel(&self) {
        self.running.values().for_each(Worker::cancel);
    }
}
