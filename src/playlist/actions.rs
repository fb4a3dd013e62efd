//! What can be done to one running playlist, or to all of them. A stop and a pause are done at once;
//! the others may bring up a picture, and are answered when it is up.

use std::sync::Arc;

use super::bulk::{BulkReply, Moved};
use super::error::{Error, Reply};
use super::pending::{Done, Pending, PendingCommand};
use super::player::{Player, RunningPlaylist};
use super::spec::Direction;
use super::state::PlaybackState;
use crate::store::playlists;
use crate::wire::Event;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Stop,
    Pause,
    Resume,
    Next,
    Previous,
}

impl Action {
    /// What clients wait for, where this action may bring up a picture.
    fn pending(self, alone: bool) -> Option<impl Fn(Done) -> PendingCommand> {
        let brings_up = matches!(self, Self::Next | Self::Previous | Self::Resume);
        brings_up.then_some(move |done| match self {
            Self::Next => PendingCommand::Step { direction: Direction::Forward, done },
            Self::Previous => PendingCommand::Step { direction: Direction::Backward, done },
            _ => PendingCommand::Resume { alone, done },
        })
    }
}

impl Player {
    /// With `on`: if it runs on one of these monitors.
    pub(super) fn act(&mut self, id: i64, action: Action, on: &[String], reply: Reply<Moved>) {
        if let Some(one) = self.running.get(&id).filter(|_| !self.runs_on(id, on)) {
            let (name, monitors) = (one.spec.name.clone(), on.to_vec());
            return reply(Err(Error::NotRunningOn { name, monitors }));
        }
        if let Some(pending) = action.pending(true) {
            let refusal = if action == Action::Resume { None } else { self.no_steps(id) };
            return match refusal {
                Some(error) => reply(Err(error)),
                None => self.enqueue(id, pending(reply)),
            };
        }
        let known = self.running.contains_key(&id) || self.starting().contains(&id);
        if !known {
            return reply(Err(self.not_running(id)));
        }
        let done = match action {
            Action::Stop => self.stop_one(id),
            _ => self.pause_one(id),
        };
        reply(done.map(|()| Moved::one()));
    }

    /// With `on`: on those that run on one of these monitors.
    pub(super) fn act_on_all(&mut self, action: Action, on: &[String], reply: Reply<Moved>) {
        let mut ids = self.running_ids();
        ids.retain(|id| self.runs_on(*id, on));
        let Some(pending) = action.pending(false) else {
            let stops = action == Action::Stop;
            let count = if stops { self.stop_all(ids) } else { self.pause_all(&ids) };
            return reply(count.map(|count| Moved { count, ..Moved::default() }));
        };
        let moves = |id: &i64| action == Action::Resume || self.no_steps(*id).is_none();
        let moving: Vec<i64> = ids.iter().copied().filter(moves).collect();
        if moving.is_empty() {
            let refusal = ids.first().and_then(|id| self.no_steps(*id));
            return reply(refusal.map_or(Ok(Moved::default()), Err));
        }
        let (bus, resumes) = (self.bus.clone(), action == Action::Resume);
        let finish = move |result: Result<Moved, Error>| {
            if let (true, Ok(Moved { count: number @ 1.., .. })) = (resumes, &result) {
                let (action, resumed) = (Some("resume_all"), Some(*number));
                bus.publish(&Event::PlaylistResumed { playlist_id: None, action, resumed });
            }
            reply(result);
        };
        let bulk = BulkReply::new(moving.len(), Box::new(finish));
        for id in moving {
            let bulk = Arc::clone(&bulk);
            self.enqueue(id, pending(Box::new(move |result| BulkReply::add(&bulk, result))));
        }
    }

    fn stop_one(&mut self, id: i64) -> Result<(), Error> {
        if self.stop(&[id])? > 0 {
            let (playlist_id, action, stopped) = (Some(id), None, None);
            self.bus.publish(&Event::PlaylistStopped { playlist_id, action, stopped });
        }
        Ok(())
    }

    fn stop_all(&mut self, mut ids: Vec<i64>) -> Result<usize, Error> {
        ids.extend(self.starting());
        let count = self.stop(&ids)?;
        if count > 0 {
            let (playlist_id, action, stopped) = (None, Some("stop_all"), Some(count));
            self.bus.publish(&Event::PlaylistStopped { playlist_id, action, stopped });
        }
        Ok(count)
    }

    fn pause_one(&mut self, id: i64) -> Result<(), Error> {
        if !self.running.contains_key(&id) {
            return Err(self.not_running(id));
        }
        if self.pause(&[id])? > 0 {
            let (playlist_id, action, paused) = (Some(id), None, None);
            self.bus.publish(&Event::PlaylistPaused { playlist_id, action, paused });
        }
        Ok(())
    }

    fn pause_all(&mut self, ids: &[i64]) -> Result<usize, Error> {
        let count = self.pause(ids)?;
        if count > 0 {
            let (playlist_id, action, paused) = (None, Some("pause_all"), Some(count));
            self.bus.publish(&Event::PlaylistPaused { playlist_id, action, paused });
        }
        Ok(count)
    }

    /// Stops those that run, and gives up what is about to start; how many ran.
    fn stop(&mut self, ids: &[i64]) -> Result<usize, Error> {
        self.store.write(|c| {
            let states = ids.iter().filter_map(|id| Some((*id, &self.running.get(id)?.state)));
            states.into_iter().try_for_each(|(id, state)| playlists::save(c, id, false, state))
        })?;
        let mut count = 0;
        for &id in ids {
            count += usize::from(self.running.remove(&id).is_some());
            self.cancel_pending(id, &|player| player.not_running(id));
        }
        self.begin_held();
        Ok(count)
    }

    /// Pauses those that are not so already; how many these are.
    fn pause(&mut self, ids: &[i64]) -> Result<usize, Error> {
        let now = self.now();
        let paused = |id: &i64| {
            let mut state = self.running.get(id)?.state.clone();
            let runs = !state.paused;
            state.pause(&now);
            runs.then_some((*id, state))
        };
        let states: Vec<(i64, PlaybackState)> = ids.iter().filter_map(paused).collect();
        self.store.write(|c| {
            states.iter().try_for_each(|(id, state)| playlists::save(c, *id, true, state))
        })?;
        let count = states.len();
        for (id, state) in states {
            if let Some(one) = self.running.get_mut(&id) {
                one.state = state;
            }
        }
        Ok(count)
    }

    /// The playlists that are about to start, and do not run yet.
    fn starting(&self) -> Vec<i64> {
        let starts = |(id, pending): (&i64, &Pending)| {
            (pending.has_start() && !self.running.contains_key(id)).then_some(*id)
        };
        self.pending.iter().filter_map(starts).collect()
    }

    /// Whether it runs on one of these monitors; all of them are none.
    fn runs_on(&self, id: i64, monitors: &[String]) -> bool {
        let connected = self.wallpapers.connected();
        let runs_on = |one: &RunningPlaylist| {
            one.state.applied_to(&connected).iter().any(|name| monitors.contains(name))
        };
        monitors.is_empty() || self.running.get(&id).is_some_and(runs_on)
    }

    /// Why a step leads nowhere, where it does.
    fn no_steps(&self, id: i64) -> Option<Error> {
        let spec = &self.running.get(&id)?.spec;
        spec.has_slots().then(|| Error::NoSteps { name: spec.name.clone(), kind: spec.kind })
    }
}
