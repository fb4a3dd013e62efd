//! The changes that a running playlist makes by itself, at its deadlines and for monitors that lack
//! its picture.
//!
//! The playlist moves, its place is saved, and its picture is requested; a failure changes nothing.
//! While a client's step or a start on its monitors is on its way, the playlist makes no change of its
//! own.

use super::edits::{Renewed, renew};
use super::player::Player;
use super::requests::write_place;
use super::running::{RunningPlaylist, is_gone};
use super::schedule::{Due, LATE};
use super::skips::{kind, may_skip};
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use super::wishes::{Outcome, Wish};
use crate::random::seed;
use crate::store::playlists::Item;
use crate::store::{self, playlists};
use crate::wallpaper;
use crate::wire::{Mode, SetStatus};

impl Player {
    /// Continues the playlists that ran when the last daemon ended.
    pub(super) fn restore(&mut self) {
        if let Err(error) = self.load() {
            log::error!("cannot read the running playlists: {error}");
        }
        self.run_all_due();
        self.fill_all_monitors();
    }

    fn load(&mut self) -> Result<(), store::Error> {
        self.light.load(&self.store)?;
        for id in self.store.read(playlists::running)? {
            if let Err(error) = self.restore_playlist(id) {
                log::error!("playlist {id} stopped: {error}");
            }
        }
        Ok(())
    }

    fn restore_playlist(&mut self, id: i64) -> Result<(), store::Error> {
        let state = self
            .store
            .read(|c| playlists::state::<PlaybackState>(c, id))?;
        let spec = PlaylistSpec::find(&self.store, id)?;
        let Some((spec, mut state)) = spec.zip(state) else {
            return Ok(());
        };
        if !spec.items.is_empty() {
            state.edit(&spec, seed());
        } else if !spec.is_dynamic() {
            return self.store.write(|c| playlists::save(c, id, false, &state));
        }
        state.resume_after_restart(&self.clock_reading(), &self.boot_id);
        log::info!("restored playlist {:?}", spec.name);
        self.running
            .insert(id, RunningPlaylist::new(spec, state, false));
        Ok(())
    }

    pub(super) fn run_due(&mut self) {
        let ids = self.running_ids();
        let changed: Vec<i64> = ids
            .into_iter()
            .filter(|&id| self.run_if_due(id, false))
            .collect();
        // Saved after all requests are sent: a write for one playlist must not delay another's
        // change.
        self.save(&changed);
    }

    /// Makes a playlist's change if one is due or if its present image is gone; returns whether it
    /// did. Does nothing while it is not free. `fresh`: an edit or a command made the change
    /// due, so it was not missed.
    pub(super) fn run_if_due(&mut self, id: i64, fresh: bool) -> bool {
        let now = self.clock_reading();
        let connected = self.wallpapers.connected();
        if !self.is_free(id) {
            return false;
        }
        let Some(one) = self.running.get_mut(&id) else {
            return false;
        };
        if one.state.applied_to(&connected).is_empty() {
            return false;
        }
        let lost = std::mem::take(&mut one.lost);
        let due = one.state.due(&one.spec, &now);
        let (spec, state) = (&mut one.spec, &mut one.state);
        let renewed = match due {
            Due::Wait(_) if !lost => return false,
            Due::EnterSlot { .. } => Renewed::Ready,
            // A dynamic list is queried only now, which may replace a lost image.
            Due::Wait(_) | Due::Step { .. } => renew(&self.store, spec, state, Direction::Forward),
        };
        if renewed == Renewed::Empty {
            self.wait_for_images(id);
            return false;
        }
        let missed = match due {
            Due::Wait(_) => false,
            Due::Step { due, missed } => {
                if renewed != Renewed::Stepped {
                    let stride = state.stride(&connected);
                    state.step(spec, Direction::Forward, stride);
                }
                // A change in time counts from its deadline, so that delays do not add up.
                let lateness = now.boot.since(due);
                let late = lateness >= LATE || spec.rule.is_timer_within(lateness);
                state.changed(if late { now.boot } else { due }, &now);
                missed
            }
            Due::EnterSlot { slot, missed } => {
                let before = state.image_id;
                state.enter_slot(spec, slot);
                // An edit that leaves the same image in the slot needs no request.
                if fresh && !lost && state.image_id == before {
                    return true;
                }
                state.changed(now.boot, &now);
                missed
            }
        };
        self.apply(id, missed && !fresh, Vec::new());
        true
    }

    /// Requests the present item for all connected monitors, or the next one that can be shown.
    pub(super) fn apply(&mut self, id: i64, missed: bool, missing: Vec<i64>) {
        let Some(one) = self.running.get(&id) else {
            return;
        };
        let mut state = one.state.clone();
        let skipped = self.skip_unshowable(&one.spec, &mut state, Direction::Forward, &missing);
        state.shown_on.clear();
        let wish = Wish {
            missed,
            missing,
            skipped,
            ..Wish::default()
        };
        self.running.entry(id).and_modify(|one| one.state = state);
        self.fill(id, Vec::new(), wish);
    }

    /// Requests images for the monitors that lack them; a change that is due comes first.
    pub(super) fn fill_all_monitors(&mut self) {
        let (connected, identities) = (self.wallpapers.connected(), self.wallpapers.identities());
        for id in self.running_ids() {
            if let Some(one) = self.running.get_mut(&id) {
                let before = one.state.clone();
                one.change_states(|state| {
                    // Before `join`: a monitor that has moved to another connector is not a new one.
                    state.follow_identities(&identities);
                    state.join(&connected);
                });
                if one.state != before {
                    self.save(&[id]);
                }
            }
            if self.run_if_due(id, false) {
                self.save(&[id]);
            } else {
                self.fill_monitors(id);
            }
        }
    }

    /// Requests the present item for the monitors that lack it: new ones, those that failed, or all
    /// if nothing could be shown before.
    pub(super) fn fill_monitors(&mut self, id: i64) {
        // A step on its way brings another picture, and `run_if_due` replaces a lost image.
        let is_free = self.is_free(id);
        let Some(one) = self.running.get(&id).filter(|one| is_free && !one.lost) else {
            return;
        };
        let asked = self.wishes.monitors(id, &one.state);
        if !one.state.shown_on.is_empty() || !asked.is_empty() {
            return self.fill(id, asked, Wish::default());
        }
        let index = one.state.index;
        self.apply(id, false, Vec::new());
        let now = self.running.get(&id).map(|one| one.state.index);
        if now != Some(index) {
            self.save(&[id]);
        }
    }

    /// Requests the present item for the monitors that neither have it nor are in `asked`. `wish` says
    /// why and after what.
    fn fill(&mut self, id: i64, asked: Vec<String>, wish: Wish) {
        let connected = self.wallpapers.connected();
        let refused = self.wallpapers.unshowable_kinds();
        let fits = |item: &Item| !refused.contains(&kind(item));
        let is_ready = |one: &&mut RunningPlaylist| !one.spec.is_waiting();
        let Some(one) = self.running.get_mut(&id).filter(is_ready) else {
            return;
        };
        let (spec, state) = (one.spec.clone(), &mut one.state);
        let applied_to = state.applied_to(&connected);
        let lacks = |name: &&String| !state.shown_on.contains(name) && !asked.contains(name);
        let owed: Vec<String> = applied_to.iter().filter(lacks).cloned().collect();
        if owed.is_empty() {
            return;
        }
        let is_new = state.shown_on.is_empty();
        // In mode `extend`, another monitor changes the slices of all.
        let monitors = match state.mode {
            Mode::Extend => applied_to,
            Mode::Individual | Mode::Clone | Mode::Each => owed,
        };
        // Monitors that have an image keep it; the new ones are for the others.
        let none_has_its_own = is_new && asked.is_empty();
        let taken = if none_has_its_own {
            0
        } else {
            1 + state.others.len()
        };
        let more = state.fill(&spec, taken + monitors.len(), &fits);
        let images = if none_has_its_own || more.is_empty() {
            state.taken()
        } else {
            more
        };
        let wish = Wish {
            monitors,
            silent: !is_new,
            missed: wish.missed,
            missing: wish.missing,
            skipped: wish.skipped,
            ..Wish::new(&spec, state, images)
        };
        let state = state.clone();
        let with_rows = write_place(id, state.clone(), false);
        let number = self.wish(&spec, &state, &wish, with_rows);
        self.wishes.keep(number, wish);
    }

    /// Handles the answer to a playlist's own wish.
    pub(super) fn conclude_own(&mut self, mut wish: Wish, result: Outcome) {
        let id = wish.playlist;
        let is_free = self.is_free(id);
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        let is_present = one.state.has_taken(&wish.images);
        let error = match result {
            Ok(applied) => {
                let is_set = applied.outcome == SetStatus::Set;
                // A step or a start that has replaced it may still fail.
                if is_set || is_free {
                    one.state.note_shown(&applied);
                }
                if is_set {
                    one.nothing_compatible = None;
                    if !wish.silent {
                        self.announce(&wish, &applied, &applied.images);
                    }
                }
                if is_present {
                    self.save(&[id]);
                }
                return;
            }
            // The playlist has moved on.
            Err(_) if !is_present => return,
            Err(error) => error,
        };
        if let wallpaper::Error::UnknownMonitors { connected, .. } = &error
            && wish.monitors.iter().any(|name| !connected.contains(name))
        {
            // Some monitors were unplugged: the others get the picture.
            return self.fill_monitors(id);
        }
        if is_gone(&error) {
            self.reload_if_changed(id);
            let Some(one) = self.running.get(&id).filter(|_| is_free) else {
                return;
            };
            if !one.state.has_taken(&wish.images) {
                // Another image has replaced it: requests that one for the monitors that lack it.
                return self.fill_monitors(id);
            }
            if may_skip(&one.spec, &mut wish, &error) {
                self.apply(id, wish.missed, wish.missing);
                return self.save(&[id]);
            }
        }
        self.announce_failure(&wish, &error);
    }
}

impl Player {
    /// Pauses or resumes all playlists and wallpapers, as the settings and the session demand.
    pub(super) fn apply_pause(&mut self) {
        if !self.pause.power.is_set() {
            return;
        }
        self.pause.power.enter(self.wallpapers.session());
        let reason = self.pause.power.get().resting;
        let paused = reason.is_some();
        if self.pause.reported.replace(reason) != Some(reason) {
            self.wallpapers.pause(reason);
        }
        let now = self.clock_reading();
        let mut changed = Vec::new();
        let running = self.running.values_mut();
        for one in running.filter(|one| one.state.resting != paused) {
            one.change_states(|state| state.set_pause_by_session(paused, &now));
            changed.push(one.spec.id);
        }
        self.save(&changed);
    }
}
