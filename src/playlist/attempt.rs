//! The player's view of the module `wallpaper`, and the result of trying to show one item.
//!
//! Tests bring their own [`Wallpapers`].

use std::collections::BTreeMap;

use super::pending::Moved;
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::backends::{Backends, Kind};
use crate::compositor::identities;
use crate::config::SelectionMode;
use crate::store::playlists::Item;
use crate::wallpaper::{self, Applied, Reply, Request};
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

/// The kind of an item, which decides on the backend.
fn kind(item: &Item) -> Kind {
    Kind::of(item.media_type, item.animated)
}

/// The result of asking for a picture.
pub(super) struct ApplyReport {
    /// The playlist's id.
    pub(super) id: i64,
    /// The change that it belongs to.
    pub(super) change: u64,
    pub(super) attempt: Attempt,
    pub(super) index: usize,
    pub(super) image_id: i64,
    pub(super) asked: Vec<String>,
    /// The monitors that show the picture; if it failed, those that were asked for.
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

pub trait Wallpapers: Send {
    /// Shows a picture. Never blocks; `reply` is called when the picture is up or has failed.
    fn apply(&self, request: Request, reply: Reply<Applied>);

    /// The monitors that are connected; after the start, waits for the first look at them.
    fn connected(&self) -> Vec<String>;

    /// The identity of each connected monitor, if it is known.
    fn identities(&self) -> BTreeMap<String, String>;

    /// Pauses videos and HTML wallpapers, or lets them play. Never blocks.
    fn pause(&self, paused: bool);

    /// The backend of the settings, where one shows everything; none where each kind of content
    /// has its own.
    fn fixed_backend(&self) -> Option<String>;
}

/// The wallpapers of the daemon.
#[derive(Clone)]
pub struct DaemonWallpapers {
    pub wallpaper: wallpaper::Handle,
    pub backends: Backends,
}

impl Wallpapers for DaemonWallpapers {
    fn apply(&self, request: Request, reply: Reply<Applied>) {
        self.wallpaper.set(request, reply);
    }

    fn connected(&self) -> Vec<String> {
        self.wallpaper.wait_for_look();
        self.backends.outputs.list().iter().map(|output| output.name.clone()).collect()
    }

    fn identities(&self) -> BTreeMap<String, String> {
        identities(&self.backends.outputs.list())
    }

    fn pause(&self, paused: bool) {
        self.wallpaper.pause(paused);
    }

    fn fixed_backend(&self) -> Option<String> {
        let backend = &(self.backends.settings)().backend;
        (backend.selection_mode == SelectionMode::Fixed).then(|| backend.kind.to_string())
    }
}
