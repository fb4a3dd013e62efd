//! Wishes: the pictures that playlists request from the reconciler. The latest wish for a monitor
//! wins; an overtaken one is answered as superseded. Pure.

use std::collections::BTreeMap;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use crate::wallpaper::{self, Applied};
use crate::wire::SkippedItem;

/// The reconciler's answer to the wish with this number.
pub(super) struct Report {
    pub(super) number: u64,
    pub(super) result: Outcome,
}

pub(super) type Outcome = Result<Applied, wallpaper::Error>;

/// A requested picture.
#[derive(Debug, Default)]
pub(super) struct Wish {
    pub(super) playlist: i64,
    pub(super) monitors: Vec<String>,
    /// The index of the first image in the list of that time.
    pub(super) index: usize,
    /// In mode `each`, one for each monitor; they repeat if they are fewer.
    pub(super) images: Vec<i64>,
    /// The change was due earlier: the machine was suspended, or no daemon ran.
    pub(super) missed: bool,
    /// Publishes no event: a monitor only joins the others.
    pub(super) silent: bool,
    /// Images whose files were found missing.
    pub(super) missing: Vec<i64>,
    /// Items of a kind that cannot be shown.
    pub(super) skipped: Vec<SkippedItem>,
}

impl Wish {
    pub(super) fn new(spec: &PlaylistSpec, state: &PlaybackState, images: Vec<i64>) -> Self {
        let index = if images[0] == state.image_id {
            state.index
        } else {
            spec.items.index_of(images[0]).unwrap_or(state.index)
        };
        Self {
            playlist: spec.id,
            index,
            images,
            ..Self::default()
        }
    }

    /// The images of its monitors, as if it had been shown.
    pub(super) fn dealt(&self) -> BTreeMap<String, i64> {
        let images = self.images.iter().copied().cycle();
        self.monitors.iter().cloned().zip(images).collect()
    }
}

/// Sends the wishes, and keeps those that no client waits for.
pub(super) struct Wishes {
    pub(super) reports: Sender<Report>,
    /// The number of the latest wish.
    pub(super) last: u64,
    own: BTreeMap<u64, Wish>,
}

impl Wishes {
    pub(super) fn new() -> (Self, Receiver<Report>) {
        let (reports, receiver) = unbounded();
        let last = 0;
        let own = BTreeMap::new();
        (Self { reports, last, own }, receiver)
    }

    /// Keeps a playlist's own wish until its report.
    pub(super) fn keep(&mut self, number: u64, wish: Wish) {
        self.own.insert(number, wish);
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Wish> {
        self.own.remove(&number)
    }

    /// The monitors that a playlist has requested its present picture for.
    pub(super) fn monitors(&self, id: i64, state: &PlaybackState) -> Vec<String> {
        let is_present = |wish: &&Wish| wish.playlist == id && state.has_taken(&wish.images);
        let wishes = self.own.values().filter(is_present);
        wishes.flat_map(|wish| wish.monitors.clone()).collect()
    }
}
