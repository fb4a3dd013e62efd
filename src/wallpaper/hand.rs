//! A hand holds one seat: the thread that waits for a setter so that nobody else has to.
//!
//! It carries out one order at a time and reports each to the stage. When it is dropped it cancels
//! the order in hand and leaves the setter as it stands.

use std::path::Path;

use crossbeam_channel::{Receiver, Sender, bounded, select};

use crate::backends::{Backend, Error, Hanging};
use crate::process::Cancel;
use crate::thread::{Spawner, Thread};

use super::held::Held;
use super::seat::Seat;
use super::slices::Slices;

/// What a hand is told to do.
#[derive(Debug)]
pub(super) enum Order {
    Show(Vec<Hanging>),
    Clear,
}

/// What a hand tells the stage.
#[derive(Debug)]
pub(super) enum Report {
    /// The order is carried out, with what people are to be told about it, or is not.
    Done { seat: Seat, result: Result<Vec<String>, Error> },
    /// A process ended and the scene has gone with it.
    Lost { seat: Seat },
}

/// Dropping it closes the orders and cancels, then joins the thread: the order of the fields.
pub(super) struct Hand {
    orders: Option<Sender<Order>>,
    cancel: Cancel,
    _thread: Thread,
}

impl Hand {
    /// `cache` is the seat's own; `told` is rung by the reaper when a process of it has ended.
    pub(super) fn start(
        spawner: &Spawner,
        seat: Seat,
        backend: Box<dyn Backend>,
        cache: &Path,
        told: Receiver<()>,
        reports: Sender<Report>,
    ) -> std::io::Result<Self> {
        let cancel = Cancel::new()?;
        // One order at a time: the stage waits for its report before it sends another.
        let (orders, inbox) = bounded(1);
        let slices = Slices::new(cache.join("slices"));
        let held = Held::new(cache.join("held"));
        let name = seat.backend.as_str();
        let work = Work { seat, backend, slices, held, cancel: cancel.clone(), reports };
        let thread = spawner.spawn(name, move || work.run(&inbox, &told))?;
        Ok(Self { orders: Some(orders), cancel, _thread: thread })
    }

    /// Breaks off what it has in hand, for good.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    pub(super) fn give(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A dead hand is reported as a death of its thread, which ends the daemon.
            orders.try_send(order).ok();
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.orders = None;
        self.cancel.cancel();
    }
}

struct Work {
    seat: Seat,
    backend: Box<dyn Backend>,
    slices: Slices,
    held: Held,
    cancel: Cancel,
    reports: Sender<Report>,
}

impl Work {
    fn run(mut self, orders: &Receiver<Order>, told: &Receiver<()>) {
        loop {
            let report = select! {
                recv(orders) -> order => match order {
                    Ok(order) => {
                        let result = self.carry_out(order);
                        Report::Done { seat: self.seat.clone(), result }
                    }
                    Err(_) => return,
                },
                recv(told) -> _ => {
                    if self.backend.is_whole() {
                        continue;
                    }
                    Report::Lost { seat: self.seat.clone() }
                }
            };
            if self.reports.send(report).is_err() {
                return;
            }
        }
    }

    fn carry_out(&mut self, order: Order) -> Result<Vec<String>, Error> {
        match order {
            Order::Show(scene) => {
                let cut = self.slices.cut(self.held.hold(scene.clone()), &self.cancel)?;
                self.backend.show(&cut, &self.cancel)?;
                self.slices.tidy(&cut);
                self.held.tidy(&scene);
                Ok(self.backend.warnings())
            }
            Order::Clear => {
                self.backend.clear()?;
                self.slices.tidy(&[]);
                self.held.tidy(&[]);
                Ok(Vec::new())
            }
        }
    }
}
