//! Decides which orders may be sent now, from what the workers show and what they should show. Pure.
//!
//! Runs again after each event, and looks no further than the next order of each worker. Every output
//! stays covered: a worker leaves an output once the desired worker covers it.

use std::collections::BTreeSet;

use super::scene::{Desired, Wanted};
use super::slots::{Order, Scene, Slot, Slots};
use super::tickets::Tickets;
use super::worker_key::WorkerKey;
use crate::backends::{Placement, registration};
use crate::compositor::Output;

/// What the decision depends on.
pub(super) struct View<'a> {
    pub(super) outputs: &'a [Output],
    pub(super) slots: &'a Slots,
    pub(super) desired: &'a Desired,
    pub(super) tickets: &'a Tickets,
    /// Whether the file of a picture cannot be read.
    pub(super) is_gone: &'a dyn Fn(&Placement) -> bool,
    /// Everything is being removed.
    pub(super) is_cleared: bool,
}

/// What a worker should show next, and what that means for the other workers.
#[derive(Default)]
struct Draft {
    scene: Scene,
    asked: BTreeSet<String>,
    /// Shows a desired picture that the worker does not show yet.
    gains: bool,
    /// Covers for a picture that is on its way or not seen yet.
    holds: bool,
    /// Keeps a picture whose file is gone, and that will be replaced or may stay as it is.
    keeps_gone: bool,
}

impl View<'_> {
    /// The orders that may be sent now.
    pub(super) fn next(&self) -> Vec<Order> {
        let workers = self.desired.values().map(|wanted| &wanted.key);
        let known = self.slots.iter().map(|(key, _)| key);
        let all: BTreeSet<&WorkerKey> = known.chain(workers).collect();
        let new = Slot::default();
        let order = |key| self.order(key, self.slots.get(key).unwrap_or(&new));
        all.into_iter().filter_map(order).collect()
    }

    fn order(&self, key: &WorkerKey, slot: &Slot) -> Option<Order> {
        if slot.sent.is_some() {
            return None;
        }
        let ticket = self.ticket(key);
        let draft = self.draft(key, slot, ticket);
        let is_buried = slot.is_buried || self.is_buried(key, slot);
        let is_due = slot.is_due() || is_buried;
        let differs = draft.scene != slot.shown;
        let is_idle = draft.scene.is_empty() && slot.shown.is_empty() && !slot.is_unknown;
        if is_idle || !(differs || is_due) || (slot.is_unknown && !self.is_free(key, &draft)) {
            return None;
        }
        let shows = !draft.scene.is_empty();
        let may_try = self.slots.backoffs.may_try(key, ticket);
        let rests = shows && !may_try && (draft.gains || is_due);
        let restarts = registration(key.backend).restarts_with_each_change;
        let only_leaves = restarts && shows && draft.holds && !draft.gains && !is_due;
        if rests || only_leaves || draft.keeps_gone || slot.fails_again(&draft.scene) {
            return None;
        }
        Some(Order {
            number: 0,
            key: key.clone(),
            scene: draft.scene,
            ticket,
            asked: draft.asked,
            renew: is_buried,
        })
    }

    /// The oldest request that waits for this worker. An order carries only one, so that a failure which
    /// names no file does not fail requests for other monitors.
    fn ticket(&self, key: &WorkerKey) -> Option<u64> {
        let of = |(output, wanted): (&String, &Wanted)| {
            let ticket = wanted.ticket.filter(|_| wanted.key == *key)?;
            let waits = self.tickets.wait(ticket, output) && !self.is_contested(key, output);
            waits.then_some(ticket)
        };
        self.desired.iter().filter_map(of).min()
    }

    /// Decides for each output alone.
    fn draft(&self, key: &WorkerKey, slot: &Slot, ticket: Option<u64>) -> Draft {
        let mut draft = Draft::default();
        let outputs = self.outputs.iter().filter(|_| !self.is_cleared);
        for output in outputs.filter(|output| key.serves(&output.name)) {
            let name = output.name.as_str();
            let kept = kept(slot, output);
            let wanted = self.desired.get(name);
            let shown = match wanted.filter(|wanted| wanted.key == *key) {
                Some(wanted) => self.own(slot, wanted, kept, ticket, &mut draft),
                None => {
                    let leaves = wanted.is_some_and(|wanted| self.may_leave(name, wanted));
                    let kept = kept.filter(|_| !leaves);
                    let stays = wanted.map_or(ticket.is_none(), |wanted| self.comes(wanted));
                    draft.keeps_gone |=
                        stays && kept.as_ref().is_some_and(|one| self.cannot_keep(key, one));
                    let awaited = wanted.filter(|wanted| self.is_awaited(&wanted.key, name));
                    draft.holds |= kept.is_some() && awaited.is_some();
                    kept
                }
            };
            draft.scene.extend(shown.map(|one| (name.to_owned(), one)));
        }
        draft
    }

    /// What a worker should show on an output that is to show its picture.
    fn own(
        &self,
        slot: &Slot,
        wanted: &Wanted,
        kept: Option<Placement>,
        carried: Option<u64>,
        draft: &mut Draft,
    ) -> Option<Placement> {
        let placement = &wanted.placement;
        let ticket = wanted.ticket;
        let name = &placement.output.name;
        // Its file is looked at only if that matters, as the disk may not answer.
        let cannot_keep = || {
            let mut kept = kept.iter();
            kept.any(|kept| self.cannot_keep(&wanted.key, kept))
        };
        let is_others = ticket.is_some() && ticket != carried && !slot.is_unknown;
        let is_refused = slot.refuses(placement, ticket);
        let is_contested = self.is_contested(&wanted.key, name);
        if is_refused || is_contested || (is_others && !cannot_keep()) {
            draft.keeps_gone |= !is_refused && cannot_keep();
            return kept;
        }
        draft.gains |= slot.shown.get(name) != Some(placement);
        if ticket.is_some() && ticket == carried {
            draft.asked.insert(name.clone());
        }
        Some(placement.clone())
    }

    /// Whether a picture will be shown before anything else changes.
    fn comes(&self, wanted: &Wanted) -> bool {
        let key = &wanted.key;
        let ticket = wanted.ticket;
        let refuses = |slot: &Slot| slot.refuses(&wanted.placement, ticket);
        self.slots.backoffs.may_try(key, ticket) && !self.slots.get(key).is_some_and(refuses)
    }

    /// Whether a backend that loads its files again cannot show this one any more.
    fn cannot_keep(&self, key: &WorkerKey, kept: &Placement) -> bool {
        let entry = registration(key.backend);
        (entry.restarts_with_each_change || entry.one_fit) && (self.is_gone)(kept)
    }

    /// Whether another worker's order in flight brings something new to an output.
    fn is_contested(&self, key: &WorkerKey, output: &str) -> bool {
        let mut others = self.slots.iter().filter(|(other, _)| *other != key);
        others.any(|(_, slot)| slot.changes(output))
    }

    fn may_leave(&self, output: &str, wanted: &Wanted) -> bool {
        let covers = |slot: &Slot| slot.covers(output, &wanted.placement);
        self.slots.get(&wanted.key).is_some_and(covers)
    }

    /// Whether the picture of a worker on an output is on its way, or is not visible yet.
    fn is_awaited(&self, key: &WorkerKey, output: &str) -> bool {
        let waits = |slot: &Slot| slot.sent.is_some() || slot.unseen.contains(output);
        self.slots.get(key).is_some_and(waits)
    }

    /// Whether a worker of which nobody knows what it shows leaves no output empty.
    fn is_free(&self, key: &WorkerKey, draft: &Draft) -> bool {
        let mut outputs = self.outputs.iter().filter(|one| key.serves(&one.name));
        let shows = !draft.scene.is_empty();
        let is_safe = |output: &Output| {
            let wanted = self.desired.get(&output.name);
            let leaves =
                |wanted: &Wanted| wanted.key != *key && self.may_leave(&output.name, wanted);
            draft.scene.contains_key(&output.name) || wanted.map_or(shows, leaves)
        };
        self.is_cleared || outputs.all(is_safe)
    }

    /// Whether a picture that is not visible yet may lie beneath the surfaces of another worker that has
    /// restarted since.
    fn is_buried(&self, key: &WorkerKey, slot: &Slot) -> bool {
        let lies_above = |(other, above): (&WorkerKey, &Slot), output: &String| {
            let restarts = registration(other.backend).restarts_with_each_change;
            let is_newer = above.reported > slot.surfaced;
            other != key && restarts && is_newer && above.shown.contains_key(output)
        };
        let is_beneath = |output: &String| self.slots.iter().any(|other| lies_above(other, output));
        slot.unseen.iter().any(is_beneath)
    }
}

/// What a worker shows on an output, with the output's present size. A picture that had to be shown
/// again after the output blinked, and failed, is not there.
fn kept(slot: &Slot, output: &Output) -> Option<Placement> {
    let shown = slot.shown.get(&output.name)?;
    let kept = Placement {
        output: output.clone(),
        ..shown.clone()
    };
    let has_blinked = shown.output.instance != output.instance;
    (!has_blinked || !slot.refuses(&kept, None)).then_some(kept)
}

#[cfg(test)]
mod tests;
