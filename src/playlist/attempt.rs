//! What was tried to show one item, and what became of it. Pure.

use std::collections::BTreeMap;

use super::bulk::Moved;
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::backends::Kind;
use crate::store::playlists::Item;
use crate::wallpaper::{self, Applied};
use crate::wire::{Mode, SkippedItem};

#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// Which way to leave what cannot be shown.
    pub(super) direction: Direction,
    pub(super) missed: bool,
    /// Kinds of content that the backend has refused.
    refused: Vec<Kind>,
    pub(super) skipped: Vec<SkippedItem>,
    /// False where a monitor only joins what others show already.
    pub(super) announced: bool,
}

impl Attempt {
    pub(super) fn new(direction: Direction, missed: bool) -> Self {
        let (refused, skipped) = (Vec::new(), Vec::new());
        Self { direction, missed, refused, skipped, announced: true }
    }

    pub(super) fn forward() -> Self {
        Self::new(Direction::Forward, false)
    }

    /// The backend has refused an item: leaves those of its kind behind. False where nothing is
    /// left that could be shown.
    pub(super) fn pass_over(
        &mut self,
        spec: &PlaylistSpec,
        state: &mut PlaybackState,
        refused: Kind,
    ) -> bool {
        self.refused.push(refused);
        if spec.items.iter().all(|item| self.refused.contains(&kind(item))) {
            return false;
        }
        let refused = &self.refused;
        let fits = |item: &Item| !refused.contains(&kind(item));
        let left = match state.mode {
            Mode::Each => state.replace_refused(spec, &fits),
            _ if !fits(&spec.items[state.index]) => state.skip(spec, self.direction, &fits),
            _ => Vec::new(),
        };
        let skipped = left.into_iter().map(|index| {
            let Item { image_id, media_type, .. } = spec.items[index];
            SkippedItem { image_id, media_type, slot_index: index }
        });
        self.skipped.extend(skipped);
        self.announced = true;
        true
    }
}

/// What decides which backend shows an item.
fn kind(item: &Item) -> Kind {
    Kind::of(item.media_type, item.animated)
}

/// What became of a picture.
pub(super) struct ApplyReport {
    /// Of the playlist.
    pub(super) id: i64,
    /// The change that it belongs to.
    pub(super) change: u64,
    pub(super) attempt: Attempt,
    pub(super) index: usize,
    pub(super) image_id: i64,
    pub(super) asked: Vec<String>,
    /// Those that were asked for; where it is shown, those that show it.
    pub(super) monitors: Vec<String>,
    pub(super) result: Result<Applied, wallpaper::Error>,
}

impl ApplyReport {
    /// For the client that waits for it.
    pub(super) fn moved(&self) -> Moved {
        let images = self.result.as_ref().map(|applied| applied.images.clone());
        Moved { count: 1, images: images.unwrap_or_default() }
    }

    /// Which monitor shows which, where each has its own.
    pub(super) fn images(&self) -> BTreeMap<String, i64> {
        match &self.result {
            Ok(applied) if applied.mode == Mode::Each => applied.images.clone(),
            _ => BTreeMap::new(),
        }
    }
}
