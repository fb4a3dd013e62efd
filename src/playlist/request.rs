//! Starts the changes that clients wait for (start, step, resume), and asks the reconciler for
//! pictures.
//!
//! Runs on the thread `playlist`, and never waits there. A change is sent to the reconciler; its
//! client is answered when the picture is shown (`conclude`), and only then does the playlist move
//! on. If the picture fails, nothing changes. The changes of one playlist are made one after the
//! other. Only the picture of the last waiting step is shown: it supersedes the others.

use std::sync::Arc;

use super::attempt::{ApplyReport, Attempt};
use super::edits::{Renewed, renew};
use super::error::Error;
use super::pending::{Done, Goal, InFlight, Moved, PendingCommand, Superseded};
use super::player::{Player, RunningPlaylist};
use super::schedule::Due;
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::random::seed;
use crate::store::playlists::{self, Refusal};
use crate::sys::lock;
use crate::wallpaper::{self, Applied, Ask, Request, Targets};
use crate::wire::{Event, HistorySource, Mode, Source};

impl Player {
    /// Begins a change: asks for the present item on all monitors that are there.
    pub(super) fn apply(&mut self, id: i64, attempt: Attempt) {
        let connected = self.wallpapers.connected();
        self.changes += 1;
        let change = self.changes;
        let Some(one) = self.running.get_mut(&id).filter(|one| !one.spec.is_waiting()) else {
            return;
        };
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
        // A lost image is replaced on all monitors, once nothing is on its way.
        let may_fill = |one: &&mut RunningPlaylist| !one.spec.is_waiting() && !one.lost;
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
        // Monitors that have an image keep it; the new ones are for the others.
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
            // In mode `each` they come in the order of their images.
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

impl Player {
    /// Takes a command in, behind those that the playlist has already.
    pub(super) fn enqueue(&mut self, id: i64, command: PendingCommand) {
        self.pending.entry(id).or_default().enqueue(command);
        self.begin_next(id);
    }

    /// Begins the next change that waits, where none is on its way. While another's start takes its
    /// monitors, only a start of its own begins.
    pub(super) fn begin_next(&mut self, id: i64) {
        loop {
            let is_held = self.is_being_displaced(id);
            let Some(pending) = self.pending.get_mut(&id) else { return };
            if pending.has_change() || is_held && pending.holds_steps() {
                return;
            }
            match pending.next() {
                Some(PendingCommand::Start { monitors, mode, done }) => {
                    match self.plan_start(id, monitors, mode) {
                        Ok((spec, state)) => {
                            self.send(id, InFlight::new(Goal::Start, spec, state, done));
                        }
                        Err(error) => done(Err(error)),
                    }
                }
                Some(PendingCommand::Step { direction, done }) => {
                    self.begin_steps(id, direction, done);
                }
                Some(PendingCommand::Resume { alone, done }) => self.begin_resume(id, alone, done),
                None => drop(self.pending.remove(&id)),
            }
        }
    }

    /// A start is over, or given up: begins what it has held back of others.
    pub(super) fn begin_held(&mut self) {
        let waiting: Vec<i64> = self.pending.keys().copied().collect();
        waiting.into_iter().for_each(|id| self.begin_next(id));
        self.running_ids().into_iter().for_each(|id| self.fill_monitors(id));
    }

    fn send(&mut self, id: i64, change: InFlight) {
        let attempt = Attempt::new(change.direction(), false);
        self.send_again(id, change, attempt);
    }

    /// Asks for the picture of a change.
    pub(super) fn send_again(&mut self, id: i64, mut change: InFlight, attempt: Attempt) {
        let connected = self.wallpapers.connected();
        let monitors = change.state.applied_to(&connected);
        if monitors.is_empty() {
            let declared = change.state.monitors.clone();
            return change.fail(&|| Error::NoMonitor {
                declared: declared.clone(),
                connected: connected.clone(),
            });
        }
        self.changes += 1;
        change.change = self.changes;
        let (state, name) = (change.state.clone(), change.spec.name.clone());
        self.pending.entry(id).or_default().set_in_flight(change);
        self.request_for((id, self.changes), (&state, name), attempt, monitors);
    }

    /// All steps that wait become one change; the last of them is to be seen.
    fn begin_steps(&mut self, id: i64, mut direction: Direction, mut done: Done) {
        let Some(one) = self.running.get(&id) else {
            return done(Err(self.not_running(id)));
        };
        let (mut spec, mut state) = (one.spec.clone(), one.state.clone());
        let stride = state.stride(&self.wallpapers.connected());
        match renew(&self.store, &mut spec, &mut state, direction) {
            Renewed::Ready => state.step(&spec, direction, stride),
            Renewed::Stepped => {}
            Renewed::Empty => {
                self.wait_for_images(id);
                return done(Err(Error::NothingFound { name: spec.name }));
            }
        }
        let mut superseded = Vec::new();
        while let Some(next) = self.pending.get_mut(&id).and_then(|pending| pending.next_step()) {
            let (index, image_id) = (state.index, state.image_id);
            superseded.push(Superseded { direction, index, image_id, done });
            (direction, done) = next;
            state.step(&spec, direction, stride);
        }
        let change = InFlight::new(Goal::Step(direction), spec, state, done);
        self.send(id, InFlight { superseded, ..change });
    }

    /// Goes on at once, or when the picture is up that it is time for by now.
    fn begin_resume(&mut self, id: i64, alone: bool, done: Done) {
        let now = self.clock_reading();
        let connected = self.wallpapers.connected();
        let Some(one) = self.running.get(&id) else {
            return done(Err(self.not_running(id)));
        };
        if !one.state.paused {
            return done(Ok(Moved::default()));
        }
        let (spec, mut state) = (one.spec.clone(), one.state.clone());
        state.resume(&now);
        if let Due::EnterSlot { slot, .. } = state.due(&spec, &now) {
            state.enter_slot(&spec, slot);
            if state.image_id == one.state.image_id {
                state.shown_on.clone_from(&one.state.shown_on);
            } else if !state.applied_to(&connected).is_empty() {
                return self.send(id, InFlight::new(Goal::Resume { alone }, spec, state, done));
            }
        }
        done(self.resume(id, alone, state).map(|()| Moved::one()));
    }

    /// Writes that a playlist goes on, and tells of it.
    pub(super) fn resume(
        &mut self,
        id: i64,
        alone: bool,
        state: PlaybackState,
    ) -> Result<(), Error> {
        self.store.write(|c| playlists::save(c, id, true, &state))?;
        if let Some(one) = self.running.get_mut(&id) {
            one.state = state;
        }
        if alone {
            let (playlist_id, action, resumed) = (Some(id), None, None);
            self.bus.publish(&Event::PlaylistResumed { playlist_id, action, resumed });
        }
        Ok(())
    }

    /// Plans a start, and changes nothing.
    fn plan_start(
        &self,
        id: i64,
        declared: Vec<String>,
        mode: Mode,
    ) -> Result<(PlaylistSpec, PlaybackState), Error> {
        let spec = PlaylistSpec::find(&self.store, id)?.ok_or(Refusal::NoPlaylist { id })?;
        if spec.is_waiting() {
            return Err(Error::NothingFound { name: spec.name });
        }
        if spec.items.is_empty() {
            return Err(Error::Empty { name: spec.name });
        }
        if mode == Mode::Each && spec.has_slots() {
            return Err(Error::OneForAll { name: spec.name, kind: spec.kind });
        }
        let last = self.store.read(|c| playlists::state::<PlaybackState>(c, id))?;
        let last = self.running.get(&id).map(|one| one.state.clone()).or(last);
        let mut state = PlaybackState::start(&spec, last, &self.clock_reading(), seed());
        state.boot_id.clone_from(&self.boot_id);
        state.shown_on.clear();
        state.everywhere = declared.is_empty();
        state.monitors = if declared.is_empty() { self.wallpapers.connected() } else { declared };
        state.identities.clear();
        state.follow_identities(&self.wallpapers.identities());
        state.mode = mode;
        state.fill(&spec, state.stride(&self.wallpapers.connected()));
        Ok((spec, state))
    }
}
