//! Decides which items a playlist skips: those of a kind that no backend can show now, and those whose
//! files are missing. Pure.

use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use super::wishes::Wish;
use crate::backends::Kind;
use crate::store::playlists::Item;
use crate::wallpaper;
use crate::wire::{Mode, SkippedItem};

/// Files that one change may find missing. The watcher knows most of them without a check.
const MISSING_MAX: usize = 100;

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
    Kind::from_media_type(item.media_type, item.animated)
}

/// Moves past the items of a kind that cannot be shown, and those whose files are missing. Returns
/// the former. If no item can be shown, it stays: the answer to the present one says why.
pub(super) fn skip(
    spec: &PlaylistSpec,
    state: &mut PlaybackState,
    direction: Direction,
    refused: &[Kind],
    is_missing: &dyn Fn(i64) -> bool,
) -> Vec<SkippedItem> {
    let is_refused = |item: &Item| refused.contains(&kind(item));
    let fits = |item: &Item| !is_refused(item) && !is_missing(item.image_id);
    let is_shown = |id: i64| {
        let index = spec.items.index_of(id);
        index.is_none_or(|index| fits(&spec.items[index]))
    };
    if state.taken().into_iter().all(is_shown) || !spec.items.iter().any(fits) {
        return Vec::new();
    }
    let left = match state.mode {
        Mode::Each => state.replace_refused(spec, &fits),
        Mode::Individual | Mode::Clone | Mode::Extend => state.skip(spec, direction, &fits),
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
    skipped.collect()
}
