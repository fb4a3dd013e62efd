//! The threads that call the backends, one for each [`WorkerKey`], so that no other thread has to
//! wait for them.
//!
//! A worker carries out one order at a time and reports each to the reconciler. When its handle is
//! dropped it cancels the order in progress and leaves the processes running. A panic ends this
//! thread alone: the reconciler gets a report and starts another worker, which adopts the processes.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::content_names::ContentNames;
use super::slices::Slices;
use super::worker_key::WorkerKey;
use crate::backends::{Backend, Backends, Error, Placement, Registration, registration};
use crate::sys::{Cancel, lock};
use crate::thread::{Spawner, Thread, panic_text};
use crate::wire::{Sound, SoundChange};

/// What a worker is to show; without placements, it removes its pictures.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) placements: Vec<Placement>,
    /// Overrides the transition of the settings.
    pub(super) transition: Option<String>,
    /// Contents of files that are shown with an older content.
    pub(super) rewritten: Vec<String>,
    /// Use new processes, even if the running ones would do.
    pub(super) renew: bool,
}

/// A worker's report to the reconciler.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) key: WorkerKey,
    /// The number of the worker that sent it. Reports of replaced workers are ignored.
    pub(super) worker: u64,
    pub(super) news: News,
}

#[derive(Debug)]
pub(super) enum News {
    /// The order was carried out or has failed.
    Done(Result<Done, Error>),
    /// The outputs on which its picture is still not visible, after a change.
    Unseen(Vec<String>),
    /// A process has exited, and what it showed is gone.
    Lost,
    /// The thread has panicked. What it showed stays.
    Panicked,
}

/// The result of an order that was carried out.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Warnings for people.
    pub(super) warnings: Vec<String>,
    /// The outputs on which the picture is not visible yet.
    pub(super) unseen: Vec<String>,
}

/// A change of the sound, and where to send the resulting sound.
type SoundOrder = (SoundChange, Sender<Result<Sound, Error>>);
pub(super) type SoundReply = Receiver<Result<Sound, Error>>;

/// The outputs on which videos should be paused. This is not an order, because a pause must not wait for
/// one and needs no report. `None` until the outputs are known: a video that an earlier daemon paused
/// must not play before that.
type PausedOutputs = Arc<Mutex<Option<BTreeSet<String>>>>;

/// Dropping it closes the channel of orders, cancels the order in progress, and joins the thread, except
/// one that hangs on a dead disk.
pub(super) struct Worker {
    orders: Option<Sender<Task>>,
    paused: PausedOutputs,
    /// Wakes the thread after `paused` was changed.
    bell: Sender<()>,
    sounds: Sender<SoundOrder>,
    cancel: Cancel,
    pub(super) number: u64,
    thread: Option<Thread>,
}

impl Worker {
    /// Starts the thread, which builds the `backend` first. The thread `kernel` sends to `exits` when a
    /// process of the backend has exited.
    pub(super) fn start(
        spawner: &Spawner,
        (key, number): (WorkerKey, u64),
        backend: impl FnOnce() -> Box<dyn Backend> + Send + 'static,
        backends: Backends,
        exits: Receiver<()>,
        reports: Sender<Report>,
    ) -> std::io::Result<Self> {
        let cancel = Cancel::new()?;
        // One order at a time: the reconciler waits for its report before it sends another.
        let (orders, inbox) = bounded(1);
        let (bell, rung) = bounded(1);
        let (sounds, sounded) = bounded(SOUNDS);
        let paused = PausedOutputs::default();
        let wanted = paused.clone();
        let stop = cancel.clone();
        let cache = backends.cache_of(key.backend, key.output.as_deref());
        let slices = Slices::new(&cache, backends.decoder.clone());
        let names = ContentNames::new(&cache);
        let name = key.backend.as_str();
        let entry = registration(key.backend);
        let thread = spawner.spawn(name, move || {
            let tell = |news| {
                let report = Report {
                    key: key.clone(),
                    worker: number,
                    news,
                };
                // This fails once the reconciler has ended.
                reports.send(report).is_ok()
            };
            let work = || {
                let backend = backend();
                let paused = None;
                let cancel = stop;
                OrderLoop {
                    entry,
                    backend,
                    backends,
                    slices,
                    names,
                    wanted,
                    paused,
                    cancel,
                }
                .run_and_resume(&inbox, (&exits, &rung, &sounded), &tell);
            };
            // No state of `work` is used after a panic.
            let run = catch_unwind(AssertUnwindSafe(work));
            if let Err(panic) = run {
                log::error!("thread {key} died: {}", panic_text(&*panic));
                tell(News::Panicked);
            }
        })?;
        Ok(Self {
            orders: Some(orders),
            paused,
            bell,
            sounds,
            cancel,
            number,
            thread: Some(thread),
        })
    }

    /// Cancels the order in progress and all later ones.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Pauses videos on these outputs and on no others: now, or after the order in progress.
    pub(super) fn pause(&self, outputs: BTreeSet<String>) {
        let before = lock(&self.paused).replace(outputs.clone());
        if before == Some(outputs) {
            return;
        }
        // If the channel is full, the thread is about to wake anyway.
        self.bell.try_send(()).ok();
    }

    /// Sets the outputs to pause after the next order; `None` if they are not known yet.
    pub(super) fn pause_after(&self, outputs: Option<BTreeSet<String>>) {
        *lock(&self.paused) = outputs;
    }

    /// Sends an order; returns false if the worker has just died.
    pub(super) fn give(&self, order: Task) -> bool {
        self.orders
            .as_ref()
            .is_some_and(|orders| orders.try_send(order).is_ok())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join_by(Instant::now() + END_WITHIN);
        }
    }
}

struct OrderLoop {
    entry: &'static Registration,
    backend: Box<dyn Backend>,
    backends: Backends,
    slices: Slices,
    names: ContentNames,
    wanted: PausedOutputs,
    /// The outputs that the backend was last told to pause; `None` if others may be paused by now.
    paused: Option<BTreeSet<String>>,
    cancel: Cancel,
}

impl OrderLoop {
    /// Runs, and lets paused videos play when the daemon stops: nothing else could resume them.
    fn run_and_resume(
        &mut self,
        orders: &Receiver<Task>,
        channels: (&Receiver<()>, &Receiver<()>, &Receiver<SoundOrder>),
        tell: &impl Fn(News) -> bool,
    ) {
        self.run(orders, channels, tell);
        let is_paused = |outputs: &BTreeSet<String>| !outputs.is_empty();
        if lock(&self.wanted).as_ref().is_some_and(is_paused)
            && let Ok(cancel) = Cancel::new()
        {
            // A process that has exited needs nothing.
            self.backend.pause(&BTreeSet::new(), &cancel).ok();
        }
    }

    /// Runs until a channel closes or the reports are no longer received.
    fn run(
        &mut self,
        orders: &Receiver<Task>,
        (exits, rung, sounds): (&Receiver<()>, &Receiver<()>, &Receiver<SoundOrder>),
        tell: &impl Fn(News) -> bool,
    ) {
        loop {
            let heard = select! {
                recv(orders) -> order => match order {
                    Ok(order) => {
                        let done = self.carry_out(&order);
                        // The order may have started a paused video. The report does not wait for the
                        // pause.
                        self.paused = None;
                        let heard = tell(News::Done(done));
                        self.pause();
                        heard
                    }
                    Err(_) => return,
                },
                recv(exits) -> _ => {
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
                    // The client may have stopped waiting.
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
        let Some(wanted) = lock(&self.wanted).clone() else {
            return;
        };
        if self.paused.as_ref() == Some(&wanted) {
            return;
        }
        match self.backend.pause(&wanted, &self.cancel) {
            Ok(()) | Err(Error::Cancelled) => {}
            Err(error) => log::warn!("cannot pause or resume: {error}"),
        }
        self.paused = Some(wanted);
    }

    fn carry_out(&mut self, task: &Task) -> Result<Done, Error> {
        let placements = &task.placements;
        if placements.is_empty() {
            self.backend.clear()?;
            self.slices.tidy(&[]);
            self.names.tidy(&[]);
            return Ok(Done::default());
        }
        self.backend.use_transition(task.transition.as_deref());
        if task.renew {
            self.backend.renew();
        }
        let mut files = placements.clone();
        if self.entry.knows_by_path {
            files = self.names.name(files, &task.rewritten);
        }
        let shown = self.slices.keep_if_done(|| {
            if !self.entry.spans_outputs {
                files = self.slices.cut(files.clone(), &self.cancel)?;
            }
            self.backend.show(&files, &self.cancel)
        });
        shown.map_err(|error| name_library_file(error, &files, placements))?;
        self.slices.tidy(&files);
        self.names.tidy(placements);
        let mut warnings = self.backend.warnings();
        warnings.extend(self.backends.conflict_warnings(self.entry.name));
        Ok(Done {
            warnings,
            unseen: self.backend.unseen(),
        })
    }
}

/// Names the file of the library instead of the slice or link of it that a backend could not show.
fn name_library_file(error: Error, files: &[Placement], placements: &[Placement]) -> Error {
    match error {
        Error::File { path, why } => {
            let mut pairs = files.iter().zip(placements);
            let own = pairs.find(|(file, _)| file.path == path);
            let path = own.map_or(path, |(_, placement)| placement.path.clone());
            Error::File { path, why }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;

/// How long a cancelled order may take.
const END_WITHIN: Duration = Duration::from_secs(2);

/// How many changes of the sound may wait for a worker.
const SOUNDS: usize = 8;

/// How many reports may wait. A worker has at most one order and one loss to report, so this limit is
/// not reached.
const REPORTS: usize = 256;

/// Builds the backend of a worker, which sends a message when one of its processes has exited. Called on
/// the worker's thread, because it may wait for what an earlier daemon left.
pub(super) type Build = Arc<dyn Fn(&WorkerKey, Sender<()>) -> Box<dyn Backend> + Send + Sync>;

pub(super) struct Workers {
    spawner: Spawner,
    backends: Backends,
    build: Build,
    running: BTreeMap<WorkerKey, Worker>,
    reports: Sender<Report>,
    received: Receiver<Report>,
    /// The number of workers started so far.
    made: u64,
}

impl Workers {
    pub(super) fn new(spawner: Spawner, backends: Backends) -> Self {
        let of = backends.clone();
        let build = move |key: &WorkerKey, tell| of.build(key.backend, key.output.as_deref(), tell);
        Self::with(spawner, backends, Arc::new(build))
    }

    /// The same, with another way to build the backends.
    pub(super) fn with(spawner: Spawner, backends: Backends, build: Build) -> Self {
        let (reports, received) = bounded(REPORTS);
        Self {
            spawner,
            backends,
            build,
            running: BTreeMap::new(),
            reports,
            received,
            made: 0,
        }
    }

    /// What the workers report.
    pub(super) fn reports(&self) -> Receiver<Report> {
        self.received.clone()
    }

    /// Sends an order to a worker, and starts the worker if necessary. Videos on the outputs `paused`
    /// are paused after the order.
    pub(super) fn give(
        &mut self,
        key: &WorkerKey,
        order: Task,
        paused: Option<BTreeSet<String>>,
    ) -> Result<(), Error> {
        let given = self.worker(key).map(|worker| {
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

    fn worker(&mut self, key: &WorkerKey) -> std::io::Result<&Worker> {
        if !self.running.contains_key(key) {
            // One message is enough: the worker looks at all its processes.
            let (tell, exits) = bounded(1);
            let build = Arc::clone(&self.build);
            let of = key.clone();
            let backend = move || build(&of, tell);
            self.made += 1;
            let of = (key.clone(), self.made);
            let backends = self.backends.clone();
            let reports = self.reports.clone();
            let worker = Worker::start(&self.spawner, of, backend, backends, exits, reports)?;
            self.running.insert(key.clone(), worker);
        }
        Ok(&self.running[key])
    }

    /// Tells a worker, if it runs, to pause videos on these outputs and on no others.
    pub(super) fn pause(&self, key: &WorkerKey, outputs: BTreeSet<String>) {
        if let Some(worker) = self.running.get(key) {
            worker.pause(outputs);
        }
    }

    /// Changes the sound of what a worker shows; `None` if the worker cannot be asked.
    pub(super) fn sound(&self, key: &WorkerKey, change: SoundChange) -> Option<SoundReply> {
        let (answer, answered) = bounded(1);
        self.running
            .get(key)?
            .sounds
            .try_send((change, answer))
            .ok()
            .map(|()| answered)
    }

    /// Whether a report comes from a current worker, not from one that was replaced.
    pub(super) fn know(&self, report: &Report) -> bool {
        self.running
            .get(&report.key)
            .is_some_and(|known| known.number == report.worker)
    }

    /// Ends a worker; what it shows stays.
    pub(super) fn end(&mut self, key: &WorkerKey) {
        self.running.remove(key);
    }

    /// Cancels the orders in progress and all later ones.
    pub(super) fn cancel(&self) {
        self.running.values().for_each(Worker::cancel);
    }
}
