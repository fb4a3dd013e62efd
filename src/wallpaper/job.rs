//! A change that is being carried out: its steps, and what to tell when it is done.

use std::collections::{BTreeSet, VecDeque};

use crate::backends;
use crate::config::{BackendName, SelectionMode};
use crate::events::Hub;
use crate::store::scene::Hung;
use crate::store::{self, Store};
use crate::wire::{Event, GalleryDomain, HistorySource, Image, Source};

use super::Failure;
use super::plan::Step;
use super::request::{Activated, Applied, Reply};
use super::seat::Seat;

pub(super) struct Job {
    /// Of one backend, carried out side by side.
    pub(super) in_hand: Vec<Step>,
    /// What comes after them.
    pub(super) steps: VecDeque<Step>,
    pub(super) purpose: Purpose,
    /// Of those that were in hand together.
    pub(super) failures: Vec<Failed>,
    /// A step of it is done, and to be seen.
    pub(super) is_seen: bool,
    /// Seats that did not let go of a screen that another covers by now.
    pub(super) gave_up: BTreeSet<Seat>,
}

/// A step that failed.
pub(super) struct Failed {
    pub(super) seat: Seat,
    pub(super) error: backends::Error,
    /// The outputs were others by then than those that it was planned for.
    pub(super) outdated: bool,
}

pub(super) enum Purpose {
    Hang(Box<Hang>),
    /// Nobody asked: outputs, settings or processes changed. One entry for each picture that is
    /// still to hang anew.
    Restore(Vec<Restored>),
    Activate {
        backend: BackendName,
        /// What was activated before, for when this one fails.
        before: Option<Activation>,
        restored: Vec<Restored>,
        reply: Reply<Activated>,
    },
    Clear {
        failed: Option<Failure>,
        reply: Reply<()>,
    },
}

/// A backend that was activated, while the settings do not say so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    pub(super) backend: BackendName,
    /// What the settings said then: once they say something else, they rule.
    pub(super) settings: (BackendName, SelectionMode),
}

/// A picture that somebody asked for.
pub(super) struct Hang {
    pub(super) image: Image,
    /// What the scene's rows will be.
    pub(super) rows: Vec<Hung>,
    /// For all monitors: those that come later have it, too.
    pub(super) for_all: bool,
    pub(super) applied: Applied,
    pub(super) source: HistorySource,
    pub(super) reply: Reply<Applied>,
}

/// A picture that hangs again.
#[derive(Clone, Debug)]
pub(super) struct Restored {
    pub(super) image: Image,
    pub(super) backend: BackendName,
    /// As they are, with the backend that shows them now.
    pub(super) rows: Vec<Hung>,
}

impl Job {
    pub(super) fn new(steps: VecDeque<Step>, purpose: Purpose) -> Self {
        Self {
            in_hand: Vec::new(),
            steps,
            purpose,
            failures: Vec::new(),
            is_seen: false,
            gave_up: BTreeSet::new(),
        }
    }

    /// Whether it has this seat in hand.
    pub(super) fn holds(&self, seat: &Seat) -> bool {
        self.in_hand.iter().any(|step| step.seat() == seat)
    }

    /// Adds to what the answer warns of.
    pub(super) fn warn(&mut self, warnings: Vec<String>) {
        let Purpose::Hang(hang) = &mut self.purpose else {
            return warnings.iter().for_each(|warning| log::warn!("{warning}"));
        };
        let known = &mut hang.applied.warnings;
        for warning in warnings {
            if !known.contains(&warning) {
                known.push(warning);
            }
        }
    }

    /// The steps that are not done.
    pub(super) fn left(&self) -> impl Iterator<Item = &Step> {
        self.in_hand.iter().chain(&self.steps)
    }

    /// The seats that are to show what was asked for and do not yet.
    pub(super) fn pending(&self) -> Vec<Seat> {
        let Purpose::Hang(hang) = &self.purpose else { return Vec::new() };
        let mut seats = hang.seats();
        seats.retain(|seat| self.steps.iter().any(|step| step.seat() == seat));
        seats
    }

    /// Answers a job that is broken off.
    pub(super) fn refuse(self, failure: Failure) {
        match self.purpose {
            Purpose::Hang(hang) => (hang.reply)(Err(failure)),
            Purpose::Activate { reply, .. } => reply(Err(failure)),
            Purpose::Clear { reply, .. } => reply(Err(failure)),
            Purpose::Restore(_) => {}
        }
    }
}

impl Hang {
    /// Where it hangs.
    pub(super) fn seats(&self) -> Vec<Seat> {
        self.applied.seats()
    }

    /// Writes rows and history in one transaction, and tells everybody.
    pub(super) fn commit(&self, store: &Store, hub: &Hub) -> Result<(), store::Error> {
        let entry = store::history::NewEntry {
            image_id: self.image.id,
            image_name: &self.image.name,
            monitors: &self.applied.monitors,
            mode: self.applied.mode,
            set_at: self.rows[0].set_at,
            source: &self.source,
            backend: self.applied.backend.as_str(),
        };
        store.write(|transaction| {
            self.rows.iter().try_for_each(|row| store::scene::put(transaction, row))?;
            if self.for_all {
                store::scene::put_for_every_monitor(transaction, &self.rows[0])?;
            }
            store::history::insert(transaction, &entry)
        })?;
        hub.publish(&changed(&self.image, &self.rows, self.source.kind, self.applied.backend));
        hub.publish(&Event::GalleryChanged { domain: GalleryDomain::History });
        Ok(())
    }
}

impl Restored {
    /// Takes out what of it hangs once a seat shows its scene.
    pub(super) fn split_off(&mut self, seat: &Seat) -> Option<Self> {
        let serves = |row: &mut Hung| seat.serves(&row.monitor);
        let rows: Vec<Hung> = match self.backend == seat.backend {
            true => self.rows.extract_if(.., serves).collect(),
            false => Vec::new(),
        };
        (!rows.is_empty()).then(|| Self { image: self.image.clone(), backend: self.backend, rows })
    }

    /// Writes which backend shows the picture now, and tells everybody. No history entry.
    pub(super) fn commit(&self, store: &Store, hub: &Hub) -> Result<(), store::Error> {
        store.write(|transaction| {
            self.rows.iter().try_for_each(|row| store::scene::put(transaction, row))
        })?;
        hub.publish(&changed(&self.image, &self.rows, Source::Restore, self.backend));
        Ok(())
    }
}

fn changed(image: &Image, rows: &[Hung], source: Source, backend: BackendName) -> Event {
    Event::WallpaperChanged {
        image_id: image.id,
        media_type: image.media_type,
        path: image.path.clone(),
        tags: image.tags.clone(),
        monitors: rows.iter().map(|row| row.monitor.clone()).collect(),
        mode: rows[0].mode,
        source,
        backend: backend.to_string(),
        colors: image.colors.clone(),
    }
}
