//! The workers: made when they are first told something, and known by their number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::backends::{Backend, Backends, Error};
use crate::thread::Spawner;

use super::worker::{Order, Report, Worker};
use super::worker_key::WorkerKey;

/// Reports that wait. A worker has at most one order to report and one loss: this never fills up.
const REPORTS: usize = 256;

/// Makes the backend of a worker, which rings when a process of it has ended; on the worker's thread, as
/// it may wait for what an earlier daemon has left.
pub(super) type Build = Arc<dyn Fn(&WorkerKey, Sender<()>) -> Box<dyn Backend> + Send + Sync>;

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
        (order, paused): (Order, BTreeSet<String>),
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
                let why = "it failed several times within a minute by a mistake of murald";
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
            let worker = Worker::start(&self.spawner, of, backend, &cache, told, reports)?;
            self.running.insert(key.clone(), worker);
        }
        Ok(&self.running[key])
    }

    /// Has what moves stand still on these outputs and on no others of a worker's, if there is one.
    pub(super) fn pause(&self, key: &WorkerKey, outputs: BTreeSet<String>) {
        if let Some(worker) = self.running.get(key) {
            worker.pause(outputs);
        }
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
