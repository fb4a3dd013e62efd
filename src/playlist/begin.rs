//! Changes that clients ask for and wait for: a start, a step, a resume. This is how they begin.
//!
//! Runs on the thread `playlist`, and never waits there: a change is sent to the reconciler, and its
//! client is answered when the picture is up (`conclude`). Only then does the playlist move on; where
//! the picture does not come up, all is as it was before. The changes of one playlist come one after
//! the other. Of steps that have to wait, only the last one's picture is shown: it supersedes the
//! others.

use super::attempt::Attempt;
use super::bulk::Moved;
use super::error::Error;
use super::living::{Renewed, renew};
use super::pending::{Done, Goal, InFlight, PendingCommand, Superseded};
use super::player::Player;
use super::schedule::Due;
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::random::seed;
use crate::store::playlists::{self, Refusal};
use crate::wire::{Event, Mode};

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
                self.rest(id);
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
        let now = self.now();
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

    /// What a start leads to, while nothing has happened yet.
    fn plan_start(
        &self,
        id: i64,
        declared: Vec<String>,
        mode: Mode,
    ) -> Result<(PlaylistSpec, PlaybackState), Error> {
        let spec = PlaylistSpec::find(&self.store, id)?.ok_or(Refusal::NoPlaylist { id })?;
        if spec.rests() {
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
        let mut state = PlaybackState::start(&spec, last, &self.now(), seed());
        state.boot_id.clone_from(&self.boot_id);
        state.shown_on.clear();
        state.everywhere = declared.is_empty();
        state.monitors = if declared.is_empty() { self.wallpapers.connected() } else { declared };
        state.identities.clear();
        state.follow(&self.wallpapers.identities());
        state.mode = mode;
        state.fill(&spec, state.stride(&self.wallpapers.connected()));
        Ok((spec, state))
    }
}
