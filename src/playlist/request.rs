//! A picture on its way to the wall: what is asked of the reconciler, and what follows from its answer.

use std::sync::{Arc, PoisonError};

use super::player::Player;
use super::state::{Direction, PlaybackState, PlaylistSpec};
use crate::store::playlists::Item;
use crate::wallpaper::{self, Applied, Ask, Outcome, Request, Targets};
use crate::wire::{Event, HistorySource, MediaType, Mode, SkippedItem, Source};

/// What was tried to make one change.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// Which way to leave what cannot be shown.
    pub(super) way: Direction,
    missed: bool,
    /// Kinds of content that the backend has refused.
    refused: Vec<Kind>,
    skipped: Vec<SkippedItem>,
    /// False where a monitor only joins what others show already.
    announced: bool,
}

impl Attempt {
    pub(super) fn new(way: Direction, missed: bool) -> Self {
        Self { way, missed, refused: Vec::new(), skipped: Vec::new(), announced: true }
    }

    /// The backend has refused an item: leaves those of its kind behind. False where nothing is
    /// left that could be shown.
    pub(super) fn pass_over(
        &mut self,
        spec: &PlaylistSpec,
        state: &mut PlaybackState,
        refused: usize,
    ) -> bool {
        self.refused.extend(spec.items.get(refused).map(kind));
        if spec.items.iter().all(|item| self.refused.contains(&kind(item))) {
            return false;
        }
        // Two rounds of random order meet every image.
        for _ in 0..2 * spec.items.len() {
            let index = state.place.index;
            let item = &spec.items[index];
            if !self.refused.contains(&kind(item)) {
                break;
            }
            let (image_id, media_type) = (item.image_id, item.media_type);
            self.skipped.push(SkippedItem { image_id, media_type, slot_index: index });
            state.skip(spec, self.way);
        }
        self.announced = true;
        true
    }
}

/// What decides which backend shows an item.
type Kind = (MediaType, bool);

fn kind(item: &Item) -> Kind {
    (item.media_type, item.animated)
}

/// What became of a picture.
pub(super) struct ApplyReport {
    pub(super) id: i64,
    /// The change that it belongs to.
    pub(super) change: u64,
    pub(super) attempt: Attempt,
    pub(super) index: usize,
    pub(super) image_id: i64,
    /// Asked for; where it is shown, those that show it.
    pub(super) monitors: Vec<String>,
    pub(super) result: Result<Applied, wallpaper::Error>,
}

impl Player {
    /// Begins a change: asks for the present item on all monitors that are there.
    pub(super) fn apply(&mut self, id: i64, attempt: Attempt) {
        let connected = self.wallpapers.connected();
        self.changes += 1;
        let change = self.changes;
        let Some(one) = self.running.get_mut(&id) else { return };
        one.change = change;
        one.asked.clear();
        let monitors = one.applied_to(&connected);
        if !monitors.is_empty() {
            self.request(id, attempt, monitors);
        }
    }

    /// Asks the reconciler for the present item.
    fn request(&mut self, id: i64, attempt: Attempt, monitors: Vec<String>) {
        let Some(one) = self.running.get_mut(&id) else { return };
        one.asked.extend(monitors.iter().cloned());
        let (state, name) = (one.state.clone(), one.spec.name.clone());
        let change = one.change;
        self.request_for((id, change), (&state, name), attempt, monitors);
    }

    /// Asks the reconciler for the item at which a playlist of this name stands.
    pub(super) fn request_for(
        &self,
        (id, change): (i64, u64),
        (state, name): (&PlaybackState, String),
        attempt: Attempt,
        mut monitors: Vec<String>,
    ) {
        let place = &state.place;
        let (index, image_id) = (place.index, place.image_id);
        let all =
            state.everywhere && self.wallpapers.connected().iter().all(|n| monitors.contains(n));
        let named = || Targets::from_names(monitors.iter().cloned());
        let request = Request {
            ask: Ask::Image(image_id),
            targets: if all { Targets::All } else { named() },
            mode: if place.extend { Mode::Extend } else { Mode::Individual },
            source: HistorySource {
                kind: Source::Playlist,
                playlist_id: Some(id),
                playlist_name: Some(name),
            },
        };
        let (reports, ring) = (Arc::clone(&self.reports), self.ring.clone());
        let reply = move |result: Result<Applied, wallpaper::Error>| {
            if let Ok(applied) = &result {
                monitors.clone_from(&applied.monitors);
            }
            let report = ApplyReport { id, change, attempt, index, image_id, monitors, result };
            reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
            // Full: it is ringing already.
            ring.try_send(()).ok();
        };
        self.wallpapers.apply(request, Box::new(reply));
    }

    /// Gives monitors what they lack: those that came, those that failed, all when nothing could be
    /// shown before.
    pub(super) fn fill_all_monitors(&mut self) {
        let ids: Vec<i64> = self.running.keys().copied().collect();
        let connected = self.wallpapers.connected();
        for id in ids {
            if self.running.get_mut(&id).is_some_and(|one| one.state.join(&connected)) {
                self.save(&[id]);
            }
            // A change that is due comes first.
            if self.run_if_due(id, false) {
                self.save(&[id]);
            } else {
                self.fill_monitors(id);
            }
        }
    }

    pub(super) fn fill_monitors(&mut self, id: i64) {
        let connected = self.wallpapers.connected();
        let Some(one) = self.running.get(&id) else { return };
        let seen_to =
            |name: &&String| one.state.shown_on.contains(name) || one.asked.contains(name);
        let applied_to = one.applied_to(&connected);
        let owed: Vec<String> = applied_to.iter().filter(|n| !seen_to(n)).cloned().collect();
        if owed.is_empty() {
            return;
        }
        let fresh = one.state.shown_on.is_empty();
        let attempt = Attempt { announced: fresh, ..Attempt::new(Direction::Forward, false) };
        // Another monitor means other slices for all.
        let monitors = if one.state.place.extend { applied_to } else { owed };
        self.request(id, attempt, monitors);
    }

    /// Takes the reconciler's answers.
    pub(super) fn on_reports(&mut self) {
        for report in self.take_reports() {
            if let Some(report) = self.conclude(report) {
                self.on_report(report);
            }
        }
    }

    fn on_report(&mut self, mut report: ApplyReport) {
        let (id, image_id) = (report.id, report.image_id);
        let Some(one) = self.running.get_mut(&id) else { return };
        let current = one.change == report.change;
        if current {
            one.asked.retain(|name| !report.monitors.contains(name));
            // An edit may have moved it while it was on its way.
            if one.state.place.image_id == image_id {
                report.index = one.state.place.index;
            }
        }
        match &report.result {
            Ok(applied) => self.applied(&report, applied.outcome, current),
            // Of a change that another has followed.
            Err(_) if !current => {}
            Err(wallpaper::Error::Incompatible { backend, .. }) => {
                let backend = backend.to_string();
                self.pass_over(report, &backend);
            }
            Err(wallpaper::Error::NoBackend { .. }) => self.no_compatible_item(id, None),
            Err(wallpaper::Error::NoImage { .. } | wallpaper::Error::FileGone { .. }) => {
                self.reload_if_shorter(id);
                let stays = |place: &crate::store::playlists::Place| place.image_id == image_id;
                if self.running.get(&id).is_some_and(|one| stays(&one.state.place)) {
                    self.failed(&report);
                }
            }
            Err(wallpaper::Error::UnknownMonitors { connected, .. })
                if report.monitors.iter().any(|name| !connected.contains(name)) =>
            {
                // Some went meanwhile: the others get theirs.
                self.fill_monitors(id);
            }
            // The reconciler has told of it.
            Err(wallpaper::Error::Backend { .. } | wallpaper::Error::Ending) => {}
            Err(_) => self.failed(&report),
        }
    }

    /// It is shown, or a later request has taken its monitors: then that is what is to be seen there.
    fn applied(&mut self, report: &ApplyReport, outcome: Outcome, current: bool) {
        let Some(one) = self.running.get_mut(&report.id) else { return };
        if current {
            let shown_on = &mut one.state.shown_on;
            shown_on.extend(report.monitors.iter().cloned());
            shown_on.sort_unstable();
            shown_on.dedup();
        }
        if outcome == Outcome::Set {
            one.nothing_compatible = false;
            self.announce(report);
        }
        if current {
            self.save(&[report.id]);
        }
    }

    pub(super) fn announce(&self, report: &ApplyReport) {
        let (Some(one), true) = (self.running.get(&report.id), report.attempt.announced) else {
            return;
        };
        let attempt = &report.attempt;
        let backend = report.result.as_ref().map(|applied| applied.backend.to_string());
        if !attempt.skipped.is_empty() {
            self.bus.publish(&Event::PlaylistSkippedIncompatible {
                playlist_id: report.id,
                playlist_name: one.spec.name.clone(),
                backend: backend.unwrap_or_default(),
                skipped: attempt.skipped.len(),
                applied_index: report.index,
                skipped_items: attempt.skipped.clone(),
            });
        }
        self.bus.publish(&Event::PlaylistImageChanged {
            playlist_id: report.id,
            image_index: report.index,
            image_id: report.image_id,
            monitors: report.monitors.clone(),
            source: attempt.missed.then_some("missed_event_recovery"),
        });
    }

    /// Goes on to the next item of a kind that the backend has not refused.
    fn pass_over(&mut self, report: ApplyReport, backend: &str) {
        let id = report.id;
        let mut attempt = report.attempt;
        let Some(one) = self.running.get_mut(&id) else { return };
        if !attempt.pass_over(&one.spec, &mut one.state, report.index) {
            return self.no_compatible_item(id, Some(backend));
        }
        self.apply(id, attempt);
        self.save(&[id]);
    }

    /// Nothing can be shown. Told once, until something can.
    pub(super) fn no_compatible_item(&mut self, id: i64, refused_by: Option<&str>) {
        let fixed = self.wallpapers.fixed_backend();
        let Some(one) = self.running.get_mut(&id) else { return };
        if std::mem::replace(&mut one.nothing_compatible, true) {
            return;
        }
        let backend = fixed.map(|configured| refused_by.map_or(configured, str::to_owned));
        let media_type = one.spec.items[one.state.place.index].media_type;
        log::warn!("nothing of the playlist {:?} can be shown", one.spec.name);
        self.bus.publish(&Event::PlaylistNoCompatibleItem {
            playlist_id: id,
            playlist_name: one.spec.name.clone(),
            total_images: one.spec.items.len(),
            media_type: backend.is_none().then_some(media_type),
            backend,
        });
    }

    /// Tells of a failure that the reconciler has told only us.
    pub(super) fn failed(&self, report: &ApplyReport) {
        let Err(failure) = &report.result else { return };
        log::warn!("image {} of playlist {}: {failure}", report.image_id, report.id);
        self.bus.publish(&Event::WallpaperApplyFailed {
            image_id: report.image_id,
            error: failure.to_string(),
            backend: self.wallpapers.fixed_backend().unwrap_or_default(),
        });
    }
}
