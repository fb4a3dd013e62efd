//! Sends orders to the workers, and handles their reports.

use std::time::Instant;

use super::Reconciler;
use crate::backends::{self, Placement};
use crate::wallpaper::backoff::Restart;
use crate::wallpaper::slots::{Order, Scene};
use crate::wallpaper::tickets::Ticket;
use crate::wallpaper::worker::{Done, News, Report, Task};
use crate::wallpaper::worker_key::WorkerKey;

impl Reconciler {
    /// Sends an order; returns false if it has failed at once.
    pub(super) fn send(&mut self, mut order: Order) -> bool {
        let key = order.key.clone();
        let is_usual = self.slots.send(&mut order);
        let placements: Vec<Placement> = order.scene.values().cloned().collect();
        let paused = self.paused(&order.scene, order.ticket);
        let is_known = self.inputs.pause.is_known();
        let paused = is_known.then(|| paused.into_keys().collect());
        let ticket = self.tickets.get(order.ticket);
        let shown = self.slots.get(&key).into_iter();
        let task = Task {
            rewritten: rewritten(shown.flat_map(|slot| slot.shown.values()), &placements),
            placements,
            transition: ticket.and_then(|ticket| ticket.request.transition.clone()),
            renew: order.renew,
        };
        let given = if is_usual {
            self.workers.give(&key, task, paused)
        } else {
            let why = "it was told the same again and again because of a bug in murald";
            log::error!("{key}: {why}");
            Err(backends::Error::Unavailable(why.to_owned()))
        };
        given.map_err(|error| self.failed(&key, &error)).is_ok()
    }

    pub(super) fn on_report(&mut self, report: Report) {
        if !self.workers.know(&report) {
            return;
        }
        let key = report.key;
        match report.news {
            News::Done(Ok(done)) => self.done(&key, done),
            News::Done(Err(error)) => self.failed(&key, &error),
            News::Unseen(unseen) => {
                self.slots.note_event();
                self.slots.see(&key, unseen);
            }
            News::Lost => self.lost(&key),
            News::Panicked => self.panicked(&key),
        }
        self.turn();
    }

    fn done(&mut self, key: &WorkerKey, Done { warnings, unseen }: Done) {
        let Some(order) = self.slots.done(key, unseen) else {
            return;
        };
        let outputs = self.tools.backends.outputs.list();
        self.tickets.count(&order, &outputs, &warnings);
        if order.ticket.is_none() && !self.waiting.warn(&warnings) {
            warnings.iter().for_each(|warning| log::warn!("{warning}"));
        }
        if order.scene.is_empty() {
            // A worker that shows nothing needs no thread.
            self.workers.end(key);
        }
        self.publish_current();
    }

    /// Handles an order that has failed. The requests for the file that the error names have failed, or
    /// else those for all new pictures of the order.
    fn failed(&mut self, key: &WorkerKey, error: &backends::Error) {
        let is_named = |one: &Placement| match error {
            backends::Error::File { path, .. } => one.path == *path,
            _ => false,
        };
        let Some((order, blamed)) = self.slots.failed(key, is_named) else {
            return;
        };
        let is_outdated = self.is_outdated(&order);
        let told = if is_outdated {
            " (outputs have changed)"
        } else {
            ""
        };
        log::warn!("{key}: {error}{told}");
        let asked = blamed.iter().filter(|one| !is_outdated || is_named(one));
        let mut failed: Vec<Ticket> = self.tickets.take_asking(&asked.collect::<Vec<_>>());
        // After a change of outputs, something else is to be shown there.
        if failed.is_empty() && (!is_outdated || self.are_gone(&order)) {
            failed.extend(self.tickets.take(order.ticket));
        }
        let is_asked = !failed.is_empty();
        for ticket in failed {
            self.apply_failed(ticket, error.clone());
        }
        if is_asked || is_outdated || self.inputs.is_cleared {
            return self.waiting.note_failed_clear(key, error);
        }
        match self.waiting.fail(key) {
            Some(activation) => self.activation_failed(activation, key, error),
            None => self.restore_failed(key, &blamed, error),
        }
    }

    /// Whether an output of an order has gone or changed since the order was sent.
    fn is_outdated(&self, order: &Order) -> bool {
        let outputs = self.tools.backends.outputs.list();
        let mut sent = order.scene.values().map(|placement| &placement.output);
        !sent.all(|output| outputs.contains(output))
    }

    /// Whether none of the outputs that the request of an order asked for is connected.
    fn are_gone(&self, order: &Order) -> bool {
        let outputs = self.tools.backends.outputs.list();
        let is_there = |name: &String| outputs.iter().any(|output| output.name == *name);
        !order.asked.iter().any(is_there)
    }

    /// Handles the unexpected exit of a worker's process, with which its pictures are gone.
    fn lost(&mut self, key: &WorkerKey) {
        self.slots.note_event();
        let lost = self.slots.lose(key);
        self.announced.keep(|monitor| !lost.contains_key(monitor));
        self.publish_current();
        log::warn!("{key} exited unexpectedly");
        self.restart(key, &lost, "keeps exiting unexpectedly");
    }

    /// Handles the panic of a worker. Another worker adopts what it shows.
    fn panicked(&mut self, key: &WorkerKey) {
        self.workers.end(key);
        let why = "internal error, see the log";
        self.failed(key, &backends::Error::Unavailable(why.to_owned()));
        self.slots.note_due(|one| one == key);
        let left = self.slots.get(key).map(|slot| slot.shown.clone());
        let why = "keeps failing with an internal error";
        self.restart(key, &left.unwrap_or_default(), why);
    }

    /// Restarts a worker, or gives it up because it has been restarted too often.
    fn restart(&mut self, key: &WorkerKey, pictures: &Scene, why: &str) {
        match self.slots.backoffs.of(key).died(Instant::now()) {
            Restart::AtOnce => log::warn!("restarting {key}"),
            Restart::At(_) => log::warn!("restarting {key} shortly"),
            Restart::Never => self.given_up(key, pictures, why),
        }
    }
}

/// The contents of files that are shown with another content.
fn rewritten<'a>(
    shown: impl Iterator<Item = &'a Placement> + Clone,
    new: &[Placement],
) -> Vec<String> {
    let is_other = |one: &&Placement| {
        let mut shown = shown.clone();
        shown.any(|old| old.path == one.path && old.content != one.content)
    };
    let other = new.iter().filter(is_other);
    other.map(|one| one.content.clone()).collect()
}
