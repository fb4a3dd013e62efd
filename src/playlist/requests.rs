//! Requests pictures from the reconciler, and publishes their results.
//!
//! Runs on the thread `playlist`, and never waits there: each answer arrives as a [`Report`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::player::Player;
use super::skips::{kind, skip};
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use super::wishes::{Report, Wish};
use crate::store::playlists::{self, Item, nearest_index};
use crate::wallpaper::{self, Applied, Ask, Request, Targets, WithRows};
use crate::wire::{Event, Mode, SkippedItem, Source};

impl Player {
    /// Requests a picture, and that `with_rows` is written with it; returns the number of the wish.
    pub(super) fn wish(
        &mut self,
        spec: &PlaylistSpec,
        state: &PlaybackState,
        wish: &Wish,
        with_rows: WithRows,
    ) -> u64 {
        let is_asked = |name: &String| wish.monitors.contains(name);
        let all = state.everywhere && self.wallpapers.connected().iter().all(is_asked);
        let named = || Targets::from_names(wish.monitors.iter().cloned());
        let targets = if all { Targets::All } else { named() };
        let ask = match state.mode {
            Mode::Each => Ask::Each(wish.images.clone()),
            Mode::Individual | Mode::Clone | Mode::Extend => Ask::Image(wish.images[0]),
        };
        let mut request = Request {
            mode: state.mode,
            joins: wish.silent,
            ..Request::new(ask, targets, Source::Playlist)
        };
        request.with_rows = Some(with_rows);
        request.source.playlist_id = Some(spec.id);
        request.source.playlist_name = Some(spec.name.clone());
        self.wishes.last += 1;
        let number = self.wishes.last;
        let reports = self.wishes.reports.clone();
        // Fails if the player has ended.
        let reply = move |result| drop(reports.send(Report { number, result }));
        self.wallpapers.apply(request, Box::new(reply));
        number
    }

    /// Moves a state past the items that cannot be shown now; returns those that are skipped because
    /// of their kind.
    pub(super) fn skip_unshowable(
        &self,
        spec: &PlaylistSpec,
        state: &mut PlaybackState,
        direction: Direction,
        missing: &[i64],
    ) -> Vec<SkippedItem> {
        // The next image of a playlist that follows the clock is for later.
        let known = if spec.has_slots() {
            Default::default()
        } else {
            self.store.missing()
        };
        let is_missing = |id: i64| missing.contains(&id) || known.contains(&id);
        let refused = self.wallpapers.unshowable_kinds();
        skip(spec, state, direction, &refused, &is_missing)
    }

    /// Publishes that the picture of a wish is shown on the monitors of `images`.
    pub(super) fn announce(&self, wish: &Wish, applied: &Applied, images: &BTreeMap<String, i64>) {
        let Some(one) = self.running.get(&wish.playlist) else {
            return;
        };
        // The list may have been edited since.
        let ids = one.spec.items.iter().map(|item| item.image_id);
        let image_index = nearest_index(ids, wish.images[0], wish.index);
        if !wish.skipped.is_empty() {
            self.bus.publish(&Event::PlaylistSkippedIncompatible {
                playlist_id: wish.playlist,
                playlist_name: one.spec.name.clone(),
                backend: applied.backend.to_string(),
                skipped: wish.skipped.len(),
                applied_index: image_index,
                skipped_items: wish.skipped.clone(),
            });
        }
        self.bus.publish(&Event::PlaylistImageChanged {
            playlist_id: wish.playlist,
            image_index,
            image_id: wish.images[0],
            monitors: images.keys().cloned().collect(),
            source: wish.missed.then_some("missed_event_recovery"),
            images: match applied.mode {
                Mode::Each => images.clone(),
                Mode::Individual | Mode::Clone | Mode::Extend => BTreeMap::new(),
            },
        });
    }

    /// Publishes why a wish has failed, unless the reconciler has done that.
    pub(super) fn announce_failure(&mut self, wish: &Wish, error: &wallpaper::Error) {
        use wallpaper::Error as Why;
        match error {
            Why::Backend { .. } | Why::Ending => {}
            Why::Incompatible { backend, .. } => {
                self.no_compatible_item(wish.playlist, Some(&backend.to_string()));
            }
            Why::NoBackend { .. } => self.no_compatible_item(wish.playlist, None),
            error => {
                let image_id = wish.images[0];
                log::warn!("image {image_id} of playlist {}: {error}", wish.playlist);
                self.bus.publish(&Event::WallpaperApplyFailed {
                    image_id,
                    error: error.to_string(),
                    backend: self.wallpapers.fixed_backend().unwrap_or_default(),
                });
            }
        }
    }

    /// Publishes that nothing can be shown: once, until something can.
    pub(super) fn no_compatible_item(&mut self, id: i64, refused_by: Option<&str>) {
        let fixed = self.wallpapers.fixed_backend();
        let refused = self.wallpapers.unshowable_kinds();
        let fits = |item: &Item| !refused.contains(&kind(item));
        let bus = self.bus.clone();
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        // Another backend, in use only since the request, may show some of the images.
        let can_show = one.spec.items.is_empty() || one.spec.items.iter().any(fits);
        if can_show || one.nothing_compatible.is_some() {
            return;
        }
        let backend = fixed.map(|configured| refused_by.map_or(configured, str::to_owned));
        let who = backend.as_ref().map_or_else(
            || "no installed backend can".to_owned(),
            |backend| format!("{backend} cannot"),
        );
        one.nothing_compatible = Some(format!("{who} show any image of"));
        let media_type = one.spec.items[one.state.index].media_type;
        log::warn!("no image of playlist {:?} can be shown", one.spec.name);
        bus.publish(&Event::PlaylistNoCompatibleItem {
            playlist_id: id,
            playlist_name: one.spec.name.clone(),
            total_images: one.spec.items.len(),
            media_type: backend.is_none().then_some(media_type),
            backend,
        });
    }
}

/// Writes the place of a playlist, unless it was stopped or started again since the wish. A change of
/// its own has moved it already; a step has not.
pub(super) fn write_place(id: i64, place: PlaybackState, is_step: bool) -> WithRows {
    Arc::new(move |c, applied| {
        let is_running = playlists::running(c)?.contains(&id);
        let known = playlists::state::<PlaybackState>(c, id)?.filter(|_| is_running);
        let Some(mut known) = known.filter(|known| known.is_of_start(&place)) else {
            return Ok(());
        };
        if is_step {
            known.go_to(&place);
        }
        known.note_shown(applied);
        playlists::save(c, id, true, &known)
    })
}

/// Writes that a playlist runs and that those on its monitors have stopped, unless its start was
/// cancelled.
pub(super) fn write_start(
    id: i64,
    after: PlaybackState,
    is_cancelled: Arc<AtomicBool>,
) -> WithRows {
    Arc::new(move |c, applied| {
        if is_cancelled.load(Ordering::Relaxed) {
            return Ok(());
        }
        for other in playlists::running(c)? {
            let state = playlists::state::<PlaybackState>(c, other)?;
            if state.is_some_and(|state| state.shares_monitors(&after)) {
                playlists::stop(c, other)?;
            }
        }
        let mut started = after.clone();
        started.note_shown(applied);
        playlists::save(c, id, true, &started)
    })
}
