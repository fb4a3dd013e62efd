//! Wishes: the pictures that playlists request from the reconciler. The latest wish for a monitor
//! wins; an overtaken one is answered as superseded. Pure.

use std::collections::BTreeMap;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::backends::Kind;
use crate::store::playlists::Item;
use crate::wallpaper::{self, Applied};
use crate::wire::{Mode, SkippedItem};

/// Files that one change may find missing. The watcher knows most of them without a check.
const MISSING_MAX: usize = 100;

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
    /// A client steps the playlist; it moves once the picture is shown.
    pub(super) is_step: bool,
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
        let index = match images[0] == state.image_id {
            true => state.index,
            false => spec.items.index_of(images[0]).unwrap_or(state.index),
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
        let (last, own) = (0, BTreeMap::new());
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

/// Whether a change may go on to another image: the image `gone` of its wish is not in the library
/// any more, or its file is missing. `spec` is the present list.
pub(super) fn may_skip(spec: &PlaylistSpec, wish: &mut Wish, error: &wallpaper::Error) -> bool {
    let (gone, can_skip) = match *error {
        wallpaper::Error::FileGone { id, .. } => (id, !spec.has_slots()),
        // A list that cannot be read again would lead to the same image over and over.
        wallpaper::Error::NoImage { id } => {
            (id, spec.is_dynamic() || spec.items.index_of(id).is_none())
        }
        _ => return false,
    };
    // If no other item can be shown, the same one is requested again.
    if !can_skip || wish.missing.contains(&gone) || wish.missing.len() >= MISSING_MAX {
        return false;
    }
    wish.missing.push(gone);
    log::info!("playlist {:?} skips an image: {error}", spec.name);
    true
}

pub(super) fn kind(item: &Item) -> Kind {
    Kind::of(item.media_type, item.animated)
}

/// Moves past the items of a kind that cannot be shown, and those whose files are missing. Returns
/// the former; none if no item is left.
pub(super) fn skip(
    spec: &PlaylistSpec,
    state: &mut PlaybackState,
    direction: Direction,
    refused: &[Kind],
    is_missing: &dyn Fn(i64) -> bool,
) -> Option<Vec<SkippedItem>> {
    let is_refused = |item: &Item| refused.contains(&kind(item));
    let fits = |item: &Item| !is_refused(item) && !is_missing(item.image_id);
    if !spec.items.iter().any(fits) {
        return None;
    }
    let is_shown = |id: i64| {
        let index = spec.items.index_of(id);
        index.is_none_or(|index| fits(&spec.items[index]))
    };
    if state.taken().into_iter().all(is_shown) {
        return Some(Vec::new());
    }
    let left = match state.mode {
        Mode::Each => state.replace_refused(spec, &fits),
        _ if !fits(&spec.items[state.index]) => state.skip(spec, direction, &fits),
        _ => Vec::new(),
    };
    let refused = left.into_iter().filter(|&at| is_refused(&spec.items[at]));
    let skipped = refused.map(|slot_index| {
        let item = &spec.items[slot_index];
        SkippedItem {
            image_id: item.image_id,
            media_type: item.media_type,
            slot_index,
        }
    });
    Some(skipped.collect())
}
