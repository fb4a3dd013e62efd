//! The thread that deals with one backend, so that nobody else has to wait for it.
//!
//! It carries out one order at a time and reports each to the reconciler. When its handle is dropped it
//! cancels the order in hand and leaves the processes as they stand. A panic ends this thread alone:
//! the reconciler hears of it and makes another, which takes the processes over.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use crate::backends::{Backend, Error, Placement};
use crate::sys::{Cancel, lock};
use crate::thread::{Spawner, Thread, panic_text};

use super::renewed::Renewed;
use super::retained::Retained;
use super::slices::Slices;
use super::worker_key::WorkerKey;

/// What a worker is told to do.
#[derive(Debug)]
pub(super) enum Order {
    Show {
        placements: Vec<Placement>,
        /// In place of that of the settings.
        transition: Option<String>,
        /// Contents of files that are shown with another one.
        rewritten: Vec<String>,
        /// By new processes, also where those that run would do.
        renew: bool,
    },
    Clear,
}

/// What a worker tells the reconciler.
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

/// What came of an order that was carried out.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// What people are to be told about it.
    pub(super) warnings: Vec<String>,
    /// The outputs on which it was not seen yet.
    pub(super) unseen: Vec<String>,
}

/// The outputs on which what moves is to stand still, as they were told last: not an order, as it must
/// not wait for one, and needs no report.
#[derive(Clone, Default)]
struct Paused(Arc<Mutex<BTreeSet<String>>>);

impl Paused {
    fn set(&self, outputs: BTreeSet<String>) {
        *lock(&self.0) = outputs;
    }

    fn get(&self) -> BTreeSet<String> {
        lock(&self.0).clone()
    }
}

/// Dropping it closes the orders and cancels, then joins the thread: the order of the fields.
pub(super) struct Worker {
    orders: Option<Sender<Order>>,
    paused: Paused,
    /// Rung where that is another set than before.
    bell: Sender<()>,
    cancel: Cancel,
    pub(super) number: u64,
    _thread: Thread,
}

impl Worker {
    /// The thread makes the `backend` first. `cache` is the worker's own; `told` is rung by the reaper
    /// when a process of it has ended.
    pub(super) fn start(
        spawner: &Spawner,
        (key, number): (WorkerKey, u64),
        backend: impl FnOnce() -> Box<dyn Backend> + Send + 'static,
        cache: &Path,
        told: Receiver<()>,
        reports: Sender<Report>,
    ) -> std::io::Result<Self> {
        let cancel = Cancel::new()?;
        // One order at a time: the reconciler waits for its report before it sends another.
        let (orders, inbox) = bounded(1);
        let (bell, rung) = bounded(1);
        let paused = Paused::default();
        let (wanted, stop) = (paused.clone(), cancel.clone());
        let slices = Slices::new(cache.join("slices"));
        let retained = Retained::new(cache);
        let renewed = Renewed::new(cache);
        let name = key.backend.as_str();
        let thread = spawner.spawn(name, move || {
            let tell = |news| {
                let report = Report { key: key.clone(), worker: number, news };
                // The reconciler has ended.
                reports.send(report).is_ok()
            };
            let work = || {
                let (backend, paused) = (backend(), None);
                Work { backend, slices, retained, renewed, wanted, paused, cancel: stop }
                    .run(&inbox, &told, &rung, &tell);
            };
            // Nothing of it is used afterwards.
            let run = catch_unwind(AssertUnwindSafe(work));
            if let Err(panic) = run {
                log::error!("the thread of {key} died: {}", panic_text(&*panic));
                tell(News::Panicked);
            }
        })?;
        Ok(Self { orders: Some(orders), paused, bell, cancel, number, _thread: thread })
    }

    /// Breaks off what it has in hand, for good.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Has what moves stand still on these outputs and on no others: now, or after the order in hand.
    pub(super) fn pause(&self, outputs: BTreeSet<String>) {
        self.paused.set(outputs);
        // One that has not been heard yet does.
        self.bell.try_send(()).ok();
    }

    /// The same after the order that is given next.
    pub(super) fn pause_after(&self, outputs: BTreeSet<String>) {
        self.paused.set(outputs);
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

struct Work {
    backend: Box<dyn Backend>,
    slices: Slices,
    retained: Retained,
    renewed: Renewed,
    wanted: Paused,
    /// As the backend was told last; none: it may be otherwise by now.
    paused: Option<BTreeSet<String>>,
    cancel: Cancel,
}

impl Work {
    /// Until the orders end, or nobody hears the reports.
    fn run(
        &mut self,
        orders: &Receiver<Order>,
        told: &Receiver<()>,
        rung: &Receiver<()>,
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

    /// Has what moves stand still where it is to, and go on elsewhere.
    fn pause(&mut self) {
        let wanted = self.wanted.get();
        if self.paused.as_ref() == Some(&wanted) {
            return;
        }
        match self.backend.pause(&wanted, &self.cancel) {
            Ok(()) | Err(Error::Cancelled) => {}
            Err(error) => log::warn!("what moves cannot be paused, or go on: {error}"),
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
                let mut files = self.retained.retain(placements.clone());
                if self.backend.knows_by_path() {
                    files = self.renewed.name(files, &rewritten);
                }
                let cut = match self.backend.spans_outputs() {
                    true => files,
                    false => self.slices.cut(files, &self.cancel)?,
                };
                self.backend.show(&cut, &self.cancel)?;
                self.slices.tidy(&cut);
                self.retained.tidy(&placements);
                self.renewed.tidy(&placements);
                let warnings = self.backend.warnings();
                Ok(Done { warnings, unseen: self.backend.unseen() })
            }
            Order::Clear => {
                self.backend.clear()?;
                self.slices.tidy(&[]);
                self.retained.tidy(&[]);
                self.renewed.tidy(&[]);
                Ok(Done::default())
            }
        }
    }
}

#[cfg(test)]
mod tests;
