//! What clients were last told about each monitor. Pure.
//!
//! A picture is announced once it is shown and desired. Nothing is announced on monitors of open
//! requests, which announce their pictures themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::picture::Picture;
use super::scene::{Desired, Wanted};
use super::slots::Slots;
use super::tickets::Tickets;
use super::worker_key::WorkerKey;
use super::world_state::WorldState;
use crate::backends::Placement;
use crate::store::assignments::Assignment;
use crate::wire::Image;

#[derive(Debug, Default)]
pub(super) struct Announced {
    /// The worker and the picture of each monitor.
    pictures: BTreeMap<String, (WorkerKey, Placement)>,
    /// Monitors and their images that were reported because no backend can show them any more.
    unshowable: BTreeMap<String, i64>,
}

impl Announced {
    pub(super) fn note(&mut self, key: WorkerKey, placement: Placement) {
        let monitor = placement.output.name.clone();
        self.pictures.insert(monitor, (key, placement));
    }

    /// Forgets monitors whose pictures are gone.
    pub(super) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.pictures.retain(|monitor, _| is_there(monitor));
    }

    /// The pictures that are shown and were not announced, grouped by image, look and backend.
    /// Placements that are only moved or resized do not count.
    pub(super) fn news(
        &self,
        world: &WorldState,
        desired: &Desired,
        (slots, tickets): (&Slots, &Tickets),
    ) -> Vec<Picture> {
        let mut news: Vec<Picture> = Vec::new();
        for (monitor, wanted) in desired {
            let is_settled = wanted.ticket.is_none() && !tickets.concern(monitor);
            if is_settled && is_shown(wanted, slots) {
                self.add(&mut news, wanted, world);
            }
        }
        news
    }

    fn add(&self, news: &mut Vec<Picture>, wanted: &Wanted, world: &WorldState) {
        let monitor = &wanted.row.monitor;
        let (key, placement) = (&wanted.key, &wanted.placement);
        let before = self.pictures.get(monitor);
        if before.is_some_and(|(worker, told)| worker == key && is_same(told, placement)) {
            return;
        }
        let Some(image) = world.pictures.get(&wanted.row.image_id) else {
            return;
        };
        let instead = world.shown_instead(&wanted.row);
        let row = Assignment {
            backend: key.backend.to_string(),
            ..wanted.row.clone()
        };
        let look = |row: &Assignment| (row.image_id, row.mode, row.fit, row.position);
        let group = news.iter_mut().find(|group| {
            let first = &group.rows[0];
            look(first) == look(&row) && first.backend == row.backend && group.instead == instead
        });
        match group {
            Some(group) => group.rows.push(row),
            None => news.push(Picture {
                image: Arc::clone(image),
                rows: vec![row],
                instead,
            }),
        }
    }

    /// Notes the monitors whose pictures no backend can show; returns those that are new.
    pub(super) fn note_unshowable<'a, T>(
        &mut self,
        found: Vec<(&'a str, &'a Image, T)>,
    ) -> Vec<(&'a str, &'a Image, T)> {
        let now = found
            .iter()
            .map(|(monitor, image, _)| ((*monitor).to_owned(), image.id));
        let before = std::mem::replace(&mut self.unshowable, now.collect());
        let mut found = found;
        found.retain(|(monitor, image, _)| before.get(*monitor) != Some(&image.id));
        found
    }
}

/// Whether two placements show the same picture. Their sizes and places do not count.
fn is_same(one: &Placement, other: &Placement) -> bool {
    one.image_id == other.image_id
        && one.content == other.content
        && one.extended_over == other.extended_over
}

/// Whether the backend of this daemon shows it.
fn is_shown(wanted: &Wanted, slots: &Slots) -> bool {
    slots.get(&wanted.key).is_some_and(|slot| {
        slot.done > 0 && slot.shown.get(&wanted.row.monitor) == Some(&wanted.placement)
    })
}
