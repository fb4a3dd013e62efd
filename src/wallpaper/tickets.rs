//! The requests in progress. Pure.
//!
//! The pictures of a request lie over the assignments until the request ends: they are the wishes. The
//! newest request for a monitor is its wish; an older one never becomes it again. A picture that is
//! being shown just now is waited for, so that many requests in a row do not starve.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Error;
use super::feasible::Feasible;
use super::picture::{Changed, Wish, Wishes, steps_behind_row};
use super::request::{Applied, Ask, Reply, Request, add_new};
use super::scene::Desired;
use super::slots::{Order, Slots};
use super::world_state::WorldState;
use crate::backends::Placement;
use crate::compositor::Output;
use crate::config::BackendName;
use crate::store::Store;

/// What has become of a request on one monitor.
struct Part {
    state: State,
    /// A newer request has the monitor.
    is_overtaken: bool,
    /// A newer request has written the monitor's row.
    is_replaced: bool,
    back: Option<u32>,
}

enum State {
    Waits,
    Shown(BackendName),
    /// A newer request has the monitor, and this one was not shown.
    Lost,
}

pub(super) struct Ticket {
    pub(super) revision: u64,
    pub(super) request: Request,
    pub(super) feasible: Feasible,
    pub(super) reply: Reply<Applied>,
    parts: BTreeMap<String, Part>,
}

/// How a request ends.
pub(super) enum End {
    /// Its pictures are shown, or hidden by workspaces.
    Settled,
    Superseded,
    Failed(Error),
}

impl Ticket {
    fn waits(&self, monitor: &str) -> bool {
        let part = self.parts.get(monitor);
        part.is_some_and(|part| matches!(part.state, State::Waits))
    }

    fn asks(&self, picture: &Placement) -> bool {
        let monitor = &picture.output.name;
        self.waits(monitor) && self.feasible.applied.images.get(monitor) == Some(&picture.image_id)
    }

    fn show(&mut self, monitor: &str, backend: BackendName) {
        if let Some(part) = self.parts.get_mut(monitor)
            && matches!(part.state, State::Waits)
        {
            part.state = State::Shown(backend);
        }
    }

    /// Whether a newer request has written the row of a monitor.
    pub(super) fn is_replaced(&self, monitor: &str) -> bool {
        self.parts.get(monitor).is_some_and(|part| part.is_replaced)
    }

    /// Writes what has settled; returns the changes to publish.
    pub(super) fn commit(&mut self, store: &Store) -> Result<Vec<Changed>, Error> {
        let is_replaced = |name: &str| self.parts.get(name).is_some_and(|part| part.is_replaced);
        self.feasible.commit(store, &self.request, is_replaced)
    }

    /// Reduces the request to the monitors that show its pictures, or whose workspaces hide them.
    fn settle(&mut self, world: &WorldState) {
        let parts = &self.parts;
        self.feasible.keep(|row| {
            match parts.get(&row.monitor).map(|part| &part.state) {
                Some(State::Shown(backend)) => row.backend = backend.to_string(),
                Some(State::Waits) => return world.hidden_by(&row.monitor).is_some(),
                Some(State::Lost) | None => return false,
            }
            true
        });
        let lost = self.parts.iter();
        let lost = lost.filter(|(_, part)| matches!(part.state, State::Lost));
        self.feasible.applied.overtaken = lost.map(|(name, _)| name.clone()).collect();
        world.note_hidden(&mut self.feasible.applied);
    }

    /// Updates the parts for which the desired worker shows the wish already, and those that a newer
    /// request has taken.
    fn look(&mut self, desired: &Desired, slots: &Slots) {
        let revision = self.revision;
        for (monitor, part) in &mut self.parts {
            if !matches!(part.state, State::Waits) {
                continue;
            }
            let wanted = desired.get(monitor);
            let wanted = wanted.filter(|wanted| wanted.ticket == Some(revision));
            let shows = wanted.filter(|wanted| {
                let slot = slots.get(&wanted.key);
                slot.is_some_and(|slot| slot.has_shown(monitor, &wanted.placement))
            });
            if part.is_overtaken && !slots.carry(revision, monitor) {
                part.state = State::Lost;
            } else if let Some(wanted) = shows {
                part.state = State::Shown(wanted.key.backend);
            }
        }
    }

    fn end(&self, world: &WorldState, desired: &Desired, slots: &Slots) -> Option<End> {
        let waits = || self.parts.keys().filter(|monitor| self.waits(monitor));
        if waits().any(|monitor| slots.carry(self.revision, monitor)) {
            return None;
        }
        let is_hidden = |monitor: &&String| world.hidden_by(monitor).is_some();
        let mut left = waits().filter(|one| world.is_connected(one) && !is_hidden(one));
        if let Some(monitor) = left.next() {
            let wanted = desired.get(monitor).and_then(|wanted| wanted.ticket);
            let is_desired = wanted == Some(self.revision);
            return (!is_desired).then(|| End::Failed(world.refusal(&self.feasible, monitor)));
        }
        let mut parts = self.parts.values();
        let is_shown = |part: &Part| matches!(part.state, State::Shown(_));
        if parts.clone().any(is_shown) || waits().any(|one| is_hidden(&one)) {
            return Some(End::Settled);
        }
        let is_overtaken = parts.any(|part| part.is_overtaken);
        Some(if is_overtaken {
            End::Superseded
        } else {
            End::Failed(Error::NoMonitor)
        })
    }
}

#[derive(Default)]
pub(super) struct Tickets {
    /// By revision.
    open: BTreeMap<u64, Ticket>,
}

impl Tickets {
    pub(super) fn begin(
        &mut self,
        revision: u64,
        (request, feasible): (Request, Feasible),
        reply: Reply<Applied>,
    ) {
        let wishes = self.wishes();
        let part = |monitor: &String| {
            let back = match request.ask {
                Ask::Back(steps) => Some(steps_behind_row(wishes.get(monitor), steps)),
                _ => None,
            };
            let part = Part {
                state: State::Waits,
                is_overtaken: feasible.left.contains(monitor),
                is_replaced: false,
                back,
            };
            (monitor.clone(), part)
        };
        let parts: BTreeMap<String, Part> = feasible.applied.monitors.iter().map(part).collect();
        for older in self.open.values_mut() {
            let taken = older.parts.iter_mut();
            taken
                .filter(|(monitor, _)| parts.get(*monitor).is_some_and(|new| !new.is_overtaken))
                .for_each(|(_, part)| part.is_overtaken = true);
        }
        let ticket = Ticket {
            revision,
            request,
            feasible,
            reply,
            parts,
        };
        self.open.insert(revision, ticket);
    }

    pub(super) fn wishes(&self) -> Wishes {
        let mut wishes = Wishes::new();
        for ticket in self.open.values() {
            for picture in &ticket.feasible.pictures {
                for row in &picture.rows {
                    let part = ticket.parts.get(&row.monitor);
                    let Some(part) = part.filter(|part| !part.is_overtaken) else {
                        continue;
                    };
                    let wish = Wish {
                        ticket: ticket.revision,
                        row: row.clone(),
                        image: Arc::clone(&picture.image),
                        back: part.back,
                    };
                    wishes.insert(row.monitor.clone(), wish);
                }
            }
        }
        wishes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn get(&self, revision: Option<u64>) -> Option<&Ticket> {
        self.open.get(&revision?)
    }

    /// Whether a request still waits for its picture on a monitor.
    pub(super) fn wait(&self, revision: u64, monitor: &str) -> bool {
        self.get(Some(revision))
            .is_some_and(|ticket| ticket.waits(monitor))
    }

    /// Whether a request that has not ended is about to show something on a monitor, or has shown it.
    pub(super) fn concern(&self, monitor: &str) -> bool {
        let concerns = |ticket: &Ticket| {
            let part = ticket.parts.get(monitor);
            part.is_some_and(|part| !matches!(part.state, State::Lost))
        };
        self.open.values().any(concerns)
    }

    /// Counts an order that was carried out. What was shown on an output that has been connected again
    /// since is gone.
    pub(super) fn count(&mut self, order: &Order, outputs: &[Output], warnings: &[String]) {
        let ticket = order.ticket.and_then(|ticket| self.open.get_mut(&ticket));
        let Some(ticket) = ticket else {
            return;
        };
        for name in &order.asked {
            let Some(placement) = order.scene.get(name) else {
                continue;
            };
            let sent = &placement.output;
            let is_there = |one: &Output| one.name == sent.name && one.instance == sent.instance;
            if outputs.iter().any(is_there) {
                ticket.show(name, order.key.backend);
            }
        }
        add_new(&mut ticket.feasible.applied.warnings, warnings);
    }

    /// Removes and returns the oldest request that has ended.
    pub(super) fn take_ended(
        &mut self,
        world: &WorldState,
        desired: &Desired,
        slots: &Slots,
    ) -> Option<(Ticket, End)> {
        let tickets = self.open.values_mut();
        tickets.for_each(|ticket| ticket.look(desired, slots));
        let mut open = self.open.iter();
        let (revision, end) = open.find_map(|(revision, ticket)| {
            let end = ticket.end(world, desired, slots)?;
            Some((*revision, end))
        })?;
        let mut ticket = self.open.remove(&revision)?;
        if matches!(end, End::Settled) {
            ticket.settle(world);
        }
        Some((ticket, end))
    }

    /// Notes that a request has written the rows of these monitors.
    pub(super) fn note_written(&mut self, revision: u64, monitors: &[String]) {
        for (_, older) in self.open.range_mut(..revision) {
            let parts = older.parts.iter_mut();
            let written = parts.filter(|(name, _)| monitors.contains(name));
            written.for_each(|(_, part)| part.is_replaced = true);
        }
    }

    /// Removes and returns this request.
    pub(super) fn take(&mut self, revision: Option<u64>) -> Option<Ticket> {
        self.open.remove(&revision?)
    }

    /// Removes and returns the requests that wait for one of these pictures.
    pub(super) fn take_asking(&mut self, pictures: &[&Placement]) -> Vec<Ticket> {
        let open = std::mem::take(&mut self.open).into_iter();
        let asks = |ticket: &Ticket| pictures.iter().any(|picture| ticket.asks(picture));
        let (asking, others) = open.partition(|(_, ticket)| asks(ticket));
        self.open = others;
        BTreeMap::into_values(asking).collect()
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Ticket> + use<> {
        std::mem::take(&mut self.open).into_values()
    }
}
