//! A picture on its way to the screen: what is asked of the reconciler.

use std::sync::Arc;

use super::attempt::{ApplyReport, Attempt};
use super::player::{Player, RunningPlaylist};
use super::state::PlaybackState;
use crate::sys::lock;
use crate::wallpaper::{self, Applied, Ask, Request, Targets};
use crate::wire::{HistorySource, Mode, Source};

impl Player {
    /// Begins a change: asks for the present item on all monitors that are there.
    pub(super) fn apply(&mut self, id: i64, attempt: Attempt) {
        let connected = self.wallpapers.connected();
        self.changes += 1;
        let change = self.changes;
        let Some(one) = self.running.get_mut(&id).filter(|one| !one.spec.rests()) else { return };
        one.change = change;
        one.asked.clear();
        let monitors = one.state.applied_to(&connected);
        if !monitors.is_empty() {
            one.state.fill(&one.spec, monitors.len());
            self.request(id, attempt, monitors);
        }
    }

    /// Gives the monitors of a playlist what they lack: those that came, those that failed, all
    /// when nothing could be shown before.
    pub(super) fn fill_monitors(&mut self, id: i64) {
        if self.is_being_displaced(id) {
            return;
        }
        let connected = self.wallpapers.connected();
        // What is lost is made up for on all, once nothing is on its way.
        let may_fill = |one: &&mut RunningPlaylist| !one.spec.rests() && !one.lost;
        let Some(one) = self.running.get_mut(&id).filter(may_fill) else { return };
        let seen_to =
            |name: &&String| one.state.shown_on.contains(name) || one.asked.contains(name);
        let applied_to = one.state.applied_to(&connected);
        let owed: Vec<String> = applied_to.iter().filter(|n| !seen_to(n)).cloned().collect();
        if owed.is_empty() {
            return;
        }
        let fresh = one.state.shown_on.is_empty();
        let mut attempt = Attempt::forward();
        attempt.announced = fresh;
        // Another monitor means other slices for all.
        let monitors = if one.state.mode == Mode::Extend { applied_to } else { owed };
        let none_has_its_own = fresh && one.asked.is_empty();
        let before = one.state.others.len();
        let more = if none_has_its_own { 0 } else { 1 + before };
        let new = one.state.fill(&one.spec, more + monitors.len());
        if none_has_its_own || new.is_empty() {
            return self.request(id, attempt, monitors);
        }
        // Those that have theirs keep it; what was taken now is for the others.
        one.asked.extend(monitors.iter().cloned());
        let (state, name, change) = (one.state.clone(), one.spec.name.clone(), one.change);
        self.request_of((id, change), (&state, name), attempt, (monitors, Ask::Each(new)));
    }

    /// Asks for the present item.
    fn request(&mut self, id: i64, attempt: Attempt, monitors: Vec<String>) {
        let Some(one) = self.running.get_mut(&id) else { return };
        one.asked.extend(monitors.iter().cloned());
        let (state, name) = (one.state.clone(), one.spec.name.clone());
        let change = one.change;
        self.request_for((id, change), (&state, name), attempt, monitors);
    }

    /// Asks for the item at which a playlist of this name stands.
    pub(super) fn request_for(
        &self,
        (id, change): (i64, u64),
        (state, name): (&PlaybackState, String),
        attempt: Attempt,
        monitors: Vec<String>,
    ) {
        let ask = match state.mode {
            Mode::Each => Ask::Each(state.taken()),
            _ => Ask::Image(state.image_id),
        };
        self.request_of((id, change), (state, name), attempt, (monitors, ask));
    }

    fn request_of(
        &self,
        (id, change): (i64, u64),
        (state, name): (&PlaybackState, String),
        attempt: Attempt,
        (asked, ask): (Vec<String>, Ask),
    ) {
        let (index, image_id) = (state.index, state.image_id);
        let is_asked = |name: &String| asked.contains(name);
        let all = state.everywhere && self.wallpapers.connected().iter().all(is_asked);
        let named = || Targets::from_names(asked.iter().cloned());
        let request = Request {
            filter: None,
            ask,
            targets: if all { Targets::All } else { named() },
            mode: state.mode,
            fit: None,
            transition: None,
            source: HistorySource {
                kind: Source::Playlist,
                playlist_id: Some(id),
                playlist_name: Some(name),
            },
            by_hook: false,
        };
        let (reports, waker) = (Arc::clone(&self.reports), self.waker.clone());
        let reply = move |result: Result<Applied, wallpaper::Error>| {
            let shown = result.as_ref().map(|applied| applied.monitors.clone());
            let mut monitors = shown.unwrap_or_else(|_| asked.clone());
            // Where each has its own, they come in the order of their images.
            monitors.sort_unstable();
            let report =
                ApplyReport { id, change, attempt, index, image_id, asked, monitors, result };
            lock(&reports).push(report);
            // Full: it is about to wake.
            waker.try_send(()).ok();
        };
        self.wallpapers.apply(request, Box::new(reply));
    }
}
