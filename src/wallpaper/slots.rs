//! What each worker shows, is told to show, and has failed to show. Pure.
//!
//! One counter numbers requests, orders, reports and reasons, so that any two can be compared.

use std::collections::{BTreeMap, BTreeSet};

use super::backoff::Backoffs;
use super::worker_key::{Placements, WorkerKey};
use crate::backends::Placement;

/// What a worker shows, by output.
pub(super) type Scene = BTreeMap<String, Placement>;

/// The most orders to a worker that may fail or be repeated without any event from outside.
const MOST: u32 = 30;

/// Everything that a worker is told to show.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Order {
    /// Zero until it is sent.
    pub(super) number: u64,
    pub(super) key: WorkerKey,
    pub(super) scene: Scene,
    /// The request that it carries: the request's transition is used, and a failure is the request's.
    pub(super) ticket: Option<u64>,
    /// The outputs that show the picture of this request.
    pub(super) asked: BTreeSet<String>,
    /// New processes show it.
    pub(super) renew: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// As reported; at first from the note of an earlier daemon.
    pub(super) shown: Scene,
    /// A process of an earlier daemon runs, and no note says what it shows.
    pub(super) is_unknown: bool,
    /// The outputs where `shown` is not visible yet.
    pub(super) unseen: BTreeSet<String>,
    /// In flight.
    pub(super) sent: Option<Order>,
    /// The number of the order that led to `shown`; 0 if none of this daemon did, or one failed since.
    pub(super) done: u64,
    /// The newest reason to show everything again, even if nothing differs.
    due: u64,
    /// Another program has drawn over it, so that it needs new surfaces.
    pub(super) is_buried: bool,
    /// The last report, and the last that may have made new surfaces.
    pub(super) reported: u64,
    pub(super) surfaced: u64,
    /// The pictures that failed here, and in which order.
    refused: Vec<(Placement, u64)>,
    /// The last order, if it failed.
    failed: Option<(Scene, u64)>,
    /// The newest reason to try failed pictures again.
    reason: u64,
    /// The orders since the last event from outside.
    orders: u32,
}

impl Slot {
    /// Whether a picture failed here, and neither a new reason nor a newer request has come since.
    pub(super) fn refuses(&self, placement: &Placement, ticket: Option<u64>) -> bool {
        let is_it = |(one, number): &(Placement, u64)| {
            one == placement && self.reason <= *number && ticket.unwrap_or(0) <= *number
        };
        self.refused.iter().any(is_it)
    }

    /// Whether this was the last order, which failed, and there is no reason to repeat it.
    pub(super) fn fails_again(&self, scene: &Scene) -> bool {
        let is_it = |(failed, number): &(Scene, u64)| failed == scene && self.due <= *number;
        self.failed.as_ref().is_some_and(is_it)
    }

    /// Whether what it shows on an output is right, seen, reported to this daemon, and not about to go.
    pub(super) fn covers(&self, output: &str, wanted: &Placement) -> bool {
        let goes = |order: &Order| order.scene.get(output) != Some(wanted);
        self.shown.get(output) == Some(wanted)
            && self.done > 0
            && !self.sent.as_ref().is_some_and(goes)
            && !self.unseen.contains(output)
    }

    /// Whether it shows a picture on an output, and nothing is due there.
    pub(super) fn has_shown(&self, output: &str, wanted: &Placement) -> bool {
        self.sent.is_none() && self.shown.get(output) == Some(wanted) && !self.is_due()
    }

    /// Whether it has to show everything again, even if nothing differs.
    pub(super) fn is_due(&self) -> bool {
        self.done == 0 || self.due > self.done
    }

    /// Whether its order in flight brings something new to an output.
    pub(super) fn changes(&self, output: &str) -> bool {
        self.sent.as_ref().is_some_and(|order| {
            let new = order.scene.get(output);
            new.is_some() && (new != self.shown.get(output) || order.asked.contains(output))
        })
    }

    fn report(&mut self, order: &Order, number: u64) {
        self.reported = number;
        self.is_buried &= !order.renew;
        if order.renew || order.scene != self.shown {
            self.surfaced = number;
        }
        self.shown.clone_from(&order.scene);
        (self.done, self.is_unknown, self.failed) = (order.number, false, None);
        let is_shown = |placement: &Placement| self.shown.values().any(|one| one == placement);
        self.refused.retain(|(placement, _)| !is_shown(placement));
    }
}

/// The workers, and when those that failed are tried again.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: BTreeMap<WorkerKey, Slot>,
    pub(super) backoffs: Backoffs,
    last: u64,
}

impl Slots {
    /// A new number.
    pub(super) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn get(&self, key: &WorkerKey) -> Option<&Slot> {
        self.all.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&WorkerKey, &Slot)> {
        self.all.iter()
    }

    /// Everything that is shown.
    pub(super) fn shown(&self) -> Placements {
        let shown = self.all.iter().filter(|(_, slot)| !slot.shown.is_empty());
        shown
            .map(|(key, slot)| (key.clone(), slot.shown.values().cloned().collect()))
            .collect()
    }

    /// What the workers show on an output.
    pub(super) fn on(&self, output: &str) -> impl Iterator<Item = (&WorkerKey, &Placement)> {
        let all = self.all.iter();
        all.filter_map(move |(key, slot)| Some((key, slot.shown.get(output)?)))
    }

    /// Whether no order is in flight.
    pub(super) fn are_idle(&self) -> bool {
        self.all.values().all(|slot| slot.sent.is_none())
    }

    /// Whether an order in flight shows the picture of a request on an output.
    pub(super) fn carry(&self, ticket: u64, output: &str) -> bool {
        let mut sent = self.all.values().filter_map(|slot| slot.sent.as_ref());
        sent.any(|order| order.ticket == Some(ticket) && order.asked.contains(output))
    }

    /// Adds a process of an earlier daemon, with what its note says.
    pub(super) fn adopt(&mut self, key: WorkerKey, shown: Scene) {
        let slot = self.all.entry(key).or_default();
        slot.is_unknown = shown.is_empty();
        slot.shown = shown;
    }

    /// Numbers an order and notes that it is in flight. Returns false if there were too many.
    pub(super) fn send(&mut self, order: &mut Order) -> bool {
        order.number = self.number();
        let slot = self.all.entry(order.key.clone()).or_default();
        slot.sent = Some(order.clone());
        slot.orders += 1;
        slot.orders <= MOST
    }

    /// Notes that the order of a worker is carried out; returns the order.
    pub(super) fn done(&mut self, key: &WorkerKey, unseen: Vec<String>) -> Option<Order> {
        let number = self.number();
        let slot = self.all.get_mut(key)?;
        let order = slot.sent.take()?;
        slot.report(&order, number);
        slot.unseen = unseen.into_iter().collect();
        self.backoffs.of(key).over();
        if order.scene.is_empty() {
            self.all.remove(key);
        }
        Some(order)
    }

    /// Notes that the order of a worker has failed, because of the file of some of its pictures if it
    /// names one; returns the order, and these pictures or else all that were new.
    pub(super) fn failed(
        &mut self,
        key: &WorkerKey,
        is_named: impl Fn(&Placement) -> bool,
    ) -> Option<(Order, Vec<Placement>)> {
        let slot = self.all.get_mut(key)?;
        let order = slot.sent.take()?;
        let all = || order.scene.iter();
        let mut blamed: Vec<Placement> = all().map(|(_, one)| one.clone()).collect();
        blamed.retain(is_named);
        if blamed.is_empty() {
            let new = all().filter(|(output, one)| slot.shown.get(*output) != Some(*one));
            blamed = new.map(|(_, one)| one.clone()).collect();
        }
        let refused = blamed.iter().map(|one| (one.clone(), order.number));
        slot.refused.extend(refused);
        slot.failed = Some((order.scene.clone(), order.number));
        // Nobody knows how far the order came.
        slot.done = 0;
        Some((order, blamed))
    }

    /// Notes that the process of a worker has exited; returns what it showed.
    pub(super) fn lose(&mut self, key: &WorkerKey) -> Scene {
        self.note_due(|one| one == key);
        let Some(slot) = self.all.get_mut(key) else {
            return Scene::new();
        };
        (slot.done, slot.unseen) = (0, BTreeSet::new());
        std::mem::take(&mut slot.shown)
    }

    /// Ends the orders in flight, of which nobody knows how far they came; returns their workers.
    pub(super) fn abandon(&mut self) -> Vec<WorkerKey> {
        let mut abandoned = Vec::new();
        for (key, slot) in &mut self.all {
            if slot.sent.take().is_some() {
                slot.is_unknown = true;
                abandoned.push(key.clone());
            }
        }
        abandoned
    }

    /// Notes the outputs on which the picture of a worker is not visible yet.
    pub(super) fn see(&mut self, key: &WorkerKey, unseen: Vec<String>) {
        if let Some(slot) = self.all.get_mut(key) {
            slot.unseen = unseen.into_iter().collect();
        }
    }

    /// Makes these workers show everything again.
    pub(super) fn note_due(&mut self, is_due: impl Fn(&WorkerKey) -> bool) {
        let number = self.number();
        for (_, slot) in self.all.iter_mut().filter(|(key, _)| is_due(key)) {
            slot.due = number;
        }
    }

    /// Notes that another program has drawn over everything.
    pub(super) fn bury(&mut self) {
        let shown = self.all.values_mut().filter(|slot| !slot.shown.is_empty());
        shown.for_each(|slot| slot.is_buried = true);
    }

    /// Notes an event from outside.
    pub(super) fn note_event(&mut self) {
        self.all.values_mut().for_each(|slot| slot.orders = 0);
    }

    /// Lets workers try again what has failed, as something has changed.
    pub(super) fn note_reason(&mut self) {
        let number = self.number();
        for slot in self.all.values_mut() {
            slot.reason = number;
            slot.refused.clear();
            slot.failed = None;
        }
        self.backoffs.forget_refusals();
    }

    /// Forgets workers that show nothing and should show nothing.
    pub(super) fn tidy(&mut self, is_used: impl Fn(&WorkerKey) -> bool) {
        self.all.retain(|key, slot| {
            let has_nothing = slot.shown.is_empty() && !slot.is_unknown;
            slot.sent.is_some() || !has_nothing || is_used(key)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName::Swaybg;
    use crate::wallpaper::worker_key::tests::placement;

    fn key() -> WorkerKey {
        WorkerKey::new(Swaybg, "A")
    }

    fn send(slots: &mut Slots, images: &[(&str, i64)], ticket: Option<u64>) {
        let of = |&(output, id): &(&str, i64)| (output.to_owned(), placement(output, id));
        let scene: Scene = images.iter().map(of).collect();
        let number = 0;
        let asked = BTreeSet::new();
        let renew = false;
        let key = key();
        let mut order = Order {
            number,
            key,
            scene,
            ticket,
            asked,
            renew,
        };
        assert!(slots.send(&mut order));
    }

    #[test]
    fn picture_is_refused_until_there_is_a_reason_or_a_newer_request() {
        let mut slots = Slots::default();
        send(&mut slots, &[("A", 1), ("B", 1)], None);
        slots.done(&key(), Vec::new()).unwrap();
        send(&mut slots, &[("A", 2), ("B", 1)], None);
        let (order, blamed) = slots.failed(&key(), |_| false).unwrap();
        assert_eq!(blamed, [placement("A", 2)]);
        let refuses = |slots: &Slots, output, image, ticket| {
            slots.all[&key()].refuses(&placement(output, image), ticket)
        };
        assert!(refuses(&slots, "A", 2, None) && !refuses(&slots, "B", 1, None));
        assert!(slots.all[&key()].fails_again(&order.scene));
        let newer = Some(slots.number());
        assert!(!refuses(&slots, "A", 2, newer));
        // After a failure, what was shown is due again.
        assert!(!slots.all[&key()].has_shown("B", &placement("B", 1)));
        slots.note_reason();
        assert!(!refuses(&slots, "A", 2, None) && !slots.all[&key()].fails_again(&order.scene));
        // A file that the failure names is to blame alone.
        send(&mut slots, &[("A", 2), ("B", 3)], None);
        let (_, blamed) = slots.failed(&key(), |one| one.image_id == 3).unwrap();
        assert_eq!(blamed, [placement("B", 3)]);
        assert!(!refuses(&slots, "A", 2, None) && refuses(&slots, "B", 3, None));
        // A picture that a newer request has shown is not refused any more.
        send(&mut slots, &[("B", 3)], None);
        slots.done(&key(), Vec::new()).unwrap();
        assert!(!refuses(&slots, "B", 3, None));
        // The reason is newer than the order that fails.
        send(&mut slots, &[("B", 4)], None);
        slots.note_reason();
        slots.failed(&key(), |_| false).unwrap();
        assert!(!refuses(&slots, "B", 4, None));
    }

    #[test]
    fn orders_without_an_event_are_limited() {
        let mut slots = Slots::default();
        (0..MOST).for_each(|_| send(&mut slots, &[("A", 1)], None));
        let mut again = slots.all[&key()].sent.clone().unwrap();
        assert!(!slots.send(&mut again));
        slots.note_event();
        assert!(slots.send(&mut again));
    }

    #[test]
    fn worker_covers_what_it_has_reported_to_this_daemon() {
        let mut slots = Slots::default();
        let covers = |slots: &Slots| slots.all[&key()].covers("A", &placement("A", 1));
        slots.adopt(key(), [("A".to_owned(), placement("A", 1))].into());
        assert!(!covers(&slots), "an earlier daemon says so");
        send(&mut slots, &[("A", 1)], None);
        slots.done(&key(), vec!["A".to_owned()]).unwrap();
        assert!(!covers(&slots), "nobody sees it");
        slots.see(&key(), Vec::new());
        let has_shown = |slots: &Slots| slots.all[&key()].has_shown("A", &placement("A", 1));
        assert!(covers(&slots) && has_shown(&slots));
        send(&mut slots, &[("A", 2)], None);
        assert!(!covers(&slots) && slots.all[&key()].changes("A"));
        assert!(!has_shown(&slots), "another picture is on its way");
        slots.done(&key(), Vec::new()).unwrap();
        assert!(!covers(&slots));
        send(&mut slots, &[], None);
        slots.done(&key(), Vec::new()).unwrap();
        assert!(slots.all.is_empty());
    }
}
