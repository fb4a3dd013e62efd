//! Concludes a change when the reconciler reports on it: moves the playlist on unless the change
//! failed, answers the clients that wait, and publishes the events.
//!
//! Runs on the thread `playlist`.

use std::collections::BTreeMap;

use super::change::{Change, Goal, Moved, dealt};
use super::error::Error;
use super::player::{ApplyReport, Player, RunningPlaylist};
use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use crate::backends::Kind;
use crate::random::seed;
use crate::store::playlists::{self, Item, Refusal};
use crate::wallpaper::{self, Applied};
use crate::wire::{Event, Mode, SetStatus};

/// Files that one change may find missing. The watcher knows most of them without a look.
const MISSING_MAX: usize = 100;

impl Player {
    pub(super) fn on_report(&mut self, report: ApplyReport) {
        let Some(mut change) = self.changes.remove(&report.change) else {
            return;
        };
        let (id, is_own, was_start) = (change.playlist, change.is_own(), change.is_start());
        self.refit(&mut change);
        use wallpaper::Error as Why;
        match &report.result {
            result if !was_start && !self.running.contains_key(&id) => {
                self.conclude_stopped(change, result);
            }
            Ok(applied) if is_own => self.on_shown(&change, applied),
            Ok(applied) => self.succeed(change, applied),
            // A later change of the playlist's own has replaced it.
            Err(_) if is_own && !self.is_present(&change) => {}
            Err(error @ Why::Incompatible { backend, .. }) => {
                self.run_without_image(change, &backend.to_string(), error);
            }
            // The reconciler has published the failure.
            Err(error @ (Why::Backend { .. } | Why::Ending)) => fail(change, error),
            Err(error @ (Why::NoImage { id: gone } | Why::FileGone { id: gone, .. })) => {
                self.retry_without(change, *gone, error);
            }
            Err(error @ Why::NoBackend { .. }) => {
                self.no_compatible_item(id, None);
                fail(change, error);
            }
            Err(Why::UnknownMonitors { connected, .. })
                if is_own && change.monitors.iter().any(|name| !connected.contains(name)) =>
            {
                // Some monitors were unplugged: the others get the picture.
                self.fill_monitors(id);
            }
            Err(error) => {
                self.announce_error(&change, error);
                fail(change, error);
            }
        }
        if !is_own {
            self.begin_next(id);
        }
        if was_start {
            self.begin_held();
        }
    }

    /// Whether the change belongs to the playlist's present round.
    fn is_present(&self, change: &Change) -> bool {
        self.running
            .get(&change.playlist)
            .is_some_and(|one| one.round == change.round)
    }

    /// The playlist was stopped or deleted while a picture was on its way. A step that was shown is
    /// the position of its next start.
    fn conclude_stopped(&self, change: Change, result: &Result<Applied, wallpaper::Error>) {
        let id = change.playlist;
        let applied = match result {
            _ if change.is_own() => return,
            Ok(applied) => applied,
            Err(_) => return change.fail(&|| self.not_running(id)),
        };
        if let Err(error) = self
            .store
            .note(|c| playlists::save(c, id, false, &change.state))
        {
            log::error!("cannot save the position of playlist {id}: {error}");
        }
        change.answer(applied);
    }

    /// Fits a change to its list, which may have been edited while the picture was on its way.
    fn refit(&self, change: &mut Change) {
        let (id, image) = (change.playlist, change.state.image_id);
        if change.is_own() {
            let present = self.is_present(change).then(|| &self.running[&id]);
            if let Some(one) = present.filter(|one| one.state.image_id == image) {
                change.state.index = one.state.index;
            }
            return;
        }
        let Ok(Some(mut spec)) = self.store.read(|c| PlaylistSpec::read(c, id)) else {
            return;
        };
        spec.adopt(&change.spec);
        if spec != change.spec && spec.items.index_of(image).is_some() {
            change.state.edit(&spec, seed());
            change.spec = spec;
        }
    }

    /// An image of the list is gone: retries with its replacement, if it has left the list.
    fn retry_without(&mut self, change: Change, gone: i64, error: &wallpaper::Error) {
        let id = change.playlist;
        if change.is_own() {
            self.reload_if_changed(id);
            let is_at_it = |one: &RunningPlaylist| one.state.taken().contains(&gone);
            if self.running.get(&id).is_some_and(is_at_it) {
                return self.skip_missing(change, gone, error);
            }
            // Another image has replaced it: requests that one for the monitors that lack it.
            return self.fill_monitors(id);
        }
        // A deleted image is in no list, and no search finds it.
        let left = |spec: Option<PlaylistSpec>| {
            spec.is_some_and(|spec| spec.items.index_of(gone).is_none())
        };
        let has_left = PlaylistSpec::find(&self.store, id).is_ok_and(left);
        if has_left {
            self.reload_if_changed(id);
        }
        // A list that cannot be read again would lead to the same image over and over.
        let stale = |one: &RunningPlaylist| {
            !one.spec.is_dynamic() && one.spec.items.index_of(gone).is_some()
        };
        if !has_left || !change.is_start() && self.running.get(&id).is_some_and(stale) {
            return self.skip_missing(change, gone, error);
        }
        self.put_back(change);
    }

    /// Moves on to the next item, unless the playlist follows the clock: its next image is for later.
    fn skip_missing(&mut self, mut change: Change, gone: i64, error: &wallpaper::Error) {
        let missing = &mut change.attempt.missing;
        let is_file = matches!(error, wallpaper::Error::FileGone { .. });
        if is_file && !change.spec.has_slots() && missing.len() < MISSING_MAX {
            missing.push(gone);
            log::info!("playlist {:?} skips an image: {error}", change.spec.name);
            return self.skip(change, error);
        }
        self.announce_error(&change, error);
        fail(change, error);
    }

    /// Moves on to the next item that can be shown, as a file is missing.
    fn skip(&mut self, mut change: Change, error: &wallpaper::Error) {
        let id = change.playlist;
        // A request now would cover the picture of another playlist's start.
        let is_held = !change.is_start() && self.is_being_displaced(id);
        if let Some(one) = self.running.get(&id).filter(|_| change.is_own()) {
            (change.spec, change.state) = (one.spec.clone(), one.state.clone());
        } else if is_held {
            return self.put_back(change);
        }
        if self.skip_unshowable(&mut change) {
            return if change.is_own() {
                self.skip_items(change, is_held)
            } else {
                self.send(change)
            };
        }
        self.announce_error(&change, error);
        fail(change, error);
    }

    /// The backend can show no item: a step fails, but a playlist that is started or resumed runs, and
    /// shows an image as soon as one can be shown.
    fn run_without_image(&mut self, mut change: Change, backend: &str, error: &wallpaper::Error) {
        let id = change.playlist;
        let result = match change.goal() {
            Some(Goal::Start { .. }) => self.install(&change.spec, change.state.clone()).map(drop),
            Some(&Goal::Resume { alone }) => self.resume(id, alone, change.state.clone()),
            Some(Goal::Step(..)) | None => {
                self.no_compatible_item(id, Some(backend));
                return fail(change, error);
            }
        };
        if result.is_ok() {
            self.no_compatible_item(id, Some(backend));
        }
        if let Some(client) = change.clients.pop() {
            let warning = match error {
                wallpaper::Error::Incompatible { remedy, .. } => format!("{error}: {remedy}"),
                _ => error.to_string(),
            };
            (client.done)(result.map(|()| Moved {
                warnings: vec![warning],
                ..Moved::one()
            }));
        }
    }

    /// Moves a playlist past the items that its own change has skipped.
    fn skip_items(&mut self, change: Change, is_held: bool) {
        let id = change.playlist;
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        one.state = change.state;
        // If the other playlist's start fails, the item is requested then.
        one.lost |= is_held;
        if !is_held {
            self.apply(id, change.attempt);
        }
        self.save(&[id]);
    }

    /// A picture of the playlist's own change is shown, or a later request has replaced it.
    fn on_shown(&mut self, change: &Change, applied: &Applied) {
        let (id, present) = (change.playlist, self.is_present(change));
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        if present {
            let shown_on = &mut one.state.shown_on;
            shown_on.extend(applied.monitors.iter().cloned());
            shown_on.sort_unstable();
            shown_on.dedup();
        }
        if applied.outcome == SetStatus::Set {
            one.nothing_compatible = None;
            self.announce(change, applied);
        }
        if present {
            self.save(&[id]);
        }
    }

    /// Moves the playlist on: the picture that clients wait for is shown, or a later request has
    /// replaced it.
    fn succeed(&mut self, mut change: Change, applied: &Applied) {
        let (id, now) = (change.playlist, self.clock_reading());
        let mut state = change.state.clone();
        state.shown_on.extend(applied.monitors.iter().cloned());
        state.shown_on.sort_unstable();
        state.shown_on.dedup();
        state.changed(now.boot, &now);
        let moved = match change.goal() {
            Some(Goal::Start { .. }) => self.install(&change.spec, state),
            Some(&Goal::Resume { alone }) => self.resume(id, alone, state).map(|()| false),
            _ => self.move_on(id, &change.spec, state),
        };
        let lost = match moved {
            Ok(lost) => lost,
            Err(error) => {
                if let Some(client) = change.clients.pop() {
                    (client.done)(Err(error));
                }
                let name = &change.spec.name.clone();
                return change.fail(&|| Error::Overtaken { name: name.clone() });
            }
        };
        if let Some(one) = self.running.get_mut(&id) {
            one.round = change.round;
            one.nothing_compatible = None;
            // `run_if_due` requests the replacement of a lost image.
            one.lost = lost;
        }
        // Superseded steps are announced as if their pictures had been shown.
        for client in &change.clients[..change.clients.len() - 1] {
            let images = dealt(&applied.monitors, &client.step.1);
            self.announce_image(&change, &client.step, applied, images);
        }
        self.announce(&change, applied);
        change.answer(applied);
        self.fill_monitors(id);
    }

    /// Writes that a running playlist has moved on by a step; returns whether its image has left
    /// the list since.
    fn move_on(
        &mut self,
        id: i64,
        planned: &PlaylistSpec,
        mut state: PlaybackState,
    ) -> Result<bool, Error> {
        let Some(one) = self.running.get_mut(&id) else {
            return Ok(false);
        };
        // Keeps pauses and monitors that were changed while the picture was on its way.
        let before = &one.state;
        (state.paused, state.resting, state.resumed) =
            (before.paused, before.resting, before.resumed);
        state.monitors.clone_from(&one.state.monitors);
        one.spec.adopt(planned);
        let lost = *planned != one.spec && state.edit(&one.spec, seed());
        self.store.write(|c| playlists::save(c, id, true, &state))?;
        one.state = state;
        Ok(lost)
    }

    /// Makes a playlist run, and stops those whose monitors it takes; returns whether its image has
    /// left the list since the start was planned.
    fn install(&mut self, planned: &PlaylistSpec, mut state: PlaybackState) -> Result<bool, Error> {
        let id = planned.id;
        let mut displaced = self.running_ids();
        displaced.retain(|other| *other != id && self.shares_monitor(*other, &state));
        let (spec, lost) = self.store.write(|c| {
            let mut spec = PlaylistSpec::read(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            spec.adopt(planned);
            if spec.items.is_empty() {
                return Ok::<_, Refusal>((spec, true));
            }
            let lost = spec != *planned && state.edit(&spec, seed());
            for other in &displaced {
                playlists::save(c, *other, false, &self.running[other].state)?;
            }
            playlists::save(c, id, true, &state)?;
            Ok((spec, lost))
        })?;
        if spec.items.is_empty() {
            return Err(Error::Empty { name: spec.name });
        }
        displaced
            .into_iter()
            .for_each(|other| self.drop_stopped(other));
        self.bus.publish(&Event::PlaylistStarted {
            playlist_id: id,
            playlist_name: spec.name.clone(),
            monitors: state.monitors.clone(),
            applied_to: state.applied_to(&self.wallpapers.connected()),
            extend: state.mode == Mode::Extend,
        });
        self.running.insert(id, RunningPlaylist::new(spec, state));
        Ok(lost)
    }
}

impl Player {
    /// Publishes that a picture is shown.
    fn announce(&self, change: &Change, applied: &Applied) {
        let (attempt, step) = (&change.attempt, change.step());
        let (Some(one), false) = (self.running.get(&change.playlist), attempt.silent) else {
            return;
        };
        if !attempt.skipped.is_empty() {
            self.bus.publish(&Event::PlaylistSkippedIncompatible {
                playlist_id: change.playlist,
                playlist_name: one.spec.name.clone(),
                backend: applied.backend.to_string(),
                skipped: attempt.skipped.len(),
                applied_index: step.0,
                skipped_items: attempt.skipped.clone(),
            });
        }
        self.announce_image(change, &step, applied, applied.images.clone());
    }

    fn announce_image(
        &self,
        change: &Change,
        (image_index, step): &(usize, Vec<i64>),
        applied: &Applied,
        mut images: BTreeMap<String, i64>,
    ) {
        if applied.mode != Mode::Each {
            images.clear();
        }
        let mut monitors = applied.monitors.clone();
        // In mode `each` the monitors come in the order of their images.
        monitors.sort_unstable();
        self.bus.publish(&Event::PlaylistImageChanged {
            playlist_id: change.playlist,
            image_index: *image_index,
            image_id: step[0],
            monitors,
            source: change.attempt.missed.then_some("missed_event_recovery"),
            images,
        });
    }

    /// Publishes that nothing can be shown: once, until something can.
    fn no_compatible_item(&mut self, id: i64, refused_by: Option<&str>) {
        let fixed = self.wallpapers.fixed_backend();
        let refused = self.wallpapers.unshowable_kinds();
        let fits = |item: &Item| !refused.contains(&Kind::of(item.media_type, item.animated));
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
        self.bus.publish(&Event::PlaylistNoCompatibleItem {
            playlist_id: id,
            playlist_name: one.spec.name.clone(),
            total_images: one.spec.items.len(),
            media_type: backend.is_none().then_some(media_type),
            backend,
        });
    }

    /// Publishes an error that the reconciler has returned but not published.
    fn announce_error(&self, change: &Change, error: &wallpaper::Error) {
        let image_id = change.state.image_id;
        log::warn!("image {image_id} of playlist {}: {error}", change.playlist);
        self.bus.publish(&Event::WallpaperApplyFailed {
            image_id,
            error: error.to_string(),
            backend: self.wallpapers.fixed_backend().unwrap_or_default(),
        });
    }
}

/// Answers all clients with the reconciler's error.
fn fail(change: Change, error: &wallpaper::Error) {
    change.fail(&|| Error::Picture(error.clone()));
}
