//! What clients tell the player to do. Each is written before it is answered, so that what was
//! acknowledged survives.

use std::sync::{Arc, Mutex, PoisonError};

use super::pending::{Done, PendingCommand};
use super::player::{Edited, Player, RunningPlaylist, edit};
use super::state::{Direction, PlaybackState};
use super::{Action, Error, Reply};
use crate::store::playlists::{self, PlaylistChange, Refusal};
use crate::wire::{ActivePlaylist, Event, GalleryDomain, Playlist};

pub(super) enum Command {
    Change(i64, PlaylistChange, Reply<Playlist>),
    Delete(i64, Reply<()>),
    Start { id: i64, monitors: Vec<String>, extend: bool, reply: Reply<()> },
    Action(i64, Action, Reply<()>),
    ActOnAll(Action, Reply<usize>),
    Active(Reply<Vec<ActivePlaylist>>),
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, failure: Error) {
        match self {
            Self::Change(_, _, reply) => reply(Err(failure)),
            Self::Delete(_, reply) | Self::Action(_, _, reply) | Self::Start { reply, .. } => {
                reply(Err(failure));
            }
            Self::ActOnAll(_, reply) => reply(Err(failure)),
            Self::Active(reply) => reply(Err(failure)),
        }
    }
}

impl Player {
    pub(super) fn on_command(&mut self, command: Command) {
        match command {
            Command::Change(id, change, reply) => reply(self.change(id, &change)),
            Command::Delete(id, reply) => reply(self.delete(id)),
            Command::Start { id, monitors, extend, reply } => {
                let done = Box::new(|result: Result<bool, _>| reply(result.map(drop)));
                self.enqueue(id, PendingCommand::Start { monitors, extend, done });
            }
            Command::Action(id, act, reply) => self.act(id, act, reply),
            Command::ActOnAll(act, reply) => self.act_on_all(act, reply),
            Command::Active(reply) => reply(Ok(self.active())),
        }
    }

    fn change(&mut self, id: i64, change: &PlaylistChange) -> Result<Playlist, Error> {
        let state = self.running.get(&id).map(|one| one.state.clone());
        // The list and the place in it, together: no kill comes between them.
        let (record, changed, edited) = self.store.write(|c| {
            let changed = playlists::update(c, id, change)?;
            let state = state.filter(|_| changed);
            let edited = state.map(|state| edit(c, id, state)).transpose()?;
            let record = playlists::get(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            Ok::<_, Refusal>((record, changed, edited))
        })?;
        if !changed {
            return Ok(record);
        }
        self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
        match edited {
            Some(Edited::Empty) => self.drop_stopped(id),
            Some(Edited::On { spec, state, lost }) => self.go_on(id, spec, *state, lost),
            None => {}
        }
        Ok(record)
    }

    fn delete(&mut self, id: i64) -> Result<(), Error> {
        self.store.write(|c| playlists::delete(c, id))?;
        self.drop_stopped(id);
        self.cancel_pending(id, &|| Refusal::NoPlaylist { id }.into());
        self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
        Ok(())
    }

    fn act(&mut self, id: i64, act: Action, reply: Reply<()>) {
        if let Some(wish) = act.wish(true) {
            let refusal = if act == Action::Resume { None } else { self.no_steps(id) };
            return match refusal {
                Some(failure) => reply(Err(failure)),
                None => self.enqueue(id, wish(Box::new(|result| reply(result.map(drop))))),
            };
        }
        let known = self.running.contains_key(&id) || self.starting().contains(&id);
        if !known {
            return reply(Err(self.not_running(id)));
        }
        reply(match act {
            Action::Stop => self.stop_one(id),
            _ => self.pause_one(id),
        });
    }

    fn stop_one(&mut self, id: i64) -> Result<(), Error> {
        if self.stop(&[id])? > 0 {
            let (playlist_id, action, stopped) = (Some(id), None, None);
            self.bus.publish(&Event::PlaylistStopped { playlist_id, action, stopped });
        }
        Ok(())
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

    fn act_on_all(&mut self, act: Action, reply: Reply<usize>) {
        let ids: Vec<i64> = self.running.keys().copied().collect();
        let Some(wish) = act.wish(false) else {
            return reply(if act == Action::Stop {
                self.stop_all(ids)
            } else {
                self.pause_all(&ids)
            });
        };
        let moves = |id: &i64| act == Action::Resume || self.no_steps(*id).is_none();
        let moving: Vec<i64> = ids.iter().copied().filter(moves).collect();
        if moving.is_empty() {
            return reply(ids.first().and_then(|id| self.no_steps(*id)).map_or(Ok(0), Err));
        }
        let (bus, resumes) = (self.bus.clone(), act == Action::Resume);
        let finish = move |result: Result<usize, Error>| {
            if let (true, Ok(number @ 1..)) = (resumes, &result) {
                let (action, resumed) = (Some("resume_all"), Some(*number));
                bus.publish(&Event::PlaylistResumed { playlist_id: None, action, resumed });
            }
            reply(result);
        };
        let tally = Tally::new(moving.len(), Box::new(finish));
        for id in moving {
            let tally = Arc::clone(&tally);
            self.enqueue(id, wish(Box::new(move |result| Tally::count(&tally, result))));
        }
    }

    fn stop_all(&mut self, ids: Vec<i64>) -> Result<usize, Error> {
        let starting = self.starting();
        let count = self.stop(&ids)? + self.stop(&starting)?;
        if count > 0 {
            let (playlist_id, action, stopped) = (None, Some("stop_all"), Some(count));
            self.bus.publish(&Event::PlaylistStopped { playlist_id, action, stopped });
        }
        Ok(count)
    }

    fn pause_all(&mut self, ids: &[i64]) -> Result<usize, Error> {
        let count = self.pause(ids)?;
        if count > 0 {
            let (playlist_id, action, paused) = (None, Some("pause_all"), Some(count));
            self.bus.publish(&Event::PlaylistPaused { playlist_id, action, paused });
        }
        Ok(count)
    }

    fn stop(&mut self, ids: &[i64]) -> Result<usize, Error> {
        self.store.write(|c| {
            let states = ids.iter().filter_map(|id| Some((*id, &self.running.get(id)?.state)));
            states.into_iter().try_for_each(|(id, state)| playlists::save(c, id, false, state))
        })?;
        let mut count = 0;
        for id in ids {
            count += usize::from(self.running.remove(id).is_some());
            let failure = self.not_running(*id);
            let name = match failure {
                Error::NotRunning { name } => name,
                other => other.to_string(),
            };
            self.cancel_pending(*id, &|| Error::NotRunning { name: name.clone() });
        }
        Ok(count)
    }

    /// Pauses those that are not so already; how many these are.
    fn pause(&mut self, ids: &[i64]) -> Result<usize, Error> {
        let now = self.now();
        let paused = |id: &i64| {
            let mut state = self.running.get(id)?.state.clone();
            let runs = !state.place.paused;
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

    pub(super) fn not_running(&self, id: i64) -> Error {
        match self.store.read(|c| playlists::score(c, id)) {
            Ok(Some(score)) => Error::NotRunning { name: score.name },
            Ok(None) => Refusal::NoPlaylist { id }.into(),
            Err(error) => error.into(),
        }
    }

    fn active(&self) -> Vec<ActivePlaylist> {
        let (now, connected) = (self.now(), self.wallpapers.connected());
        let record =
            |one: &RunningPlaylist| one.state.record(&one.spec, one.applied_to(&connected), &now);
        self.running.values().map(record).collect()
    }
}

impl Action {
    /// What clients wait for, where this act may bring up a picture.
    fn wish(self, alone: bool) -> Option<impl Fn(Done) -> PendingCommand> {
        matches!(self, Self::Next | Self::Previous | Self::Resume).then_some(move |done| match self
        {
            Self::Next => PendingCommand::Step { way: Direction::Forward, done },
            Self::Previous => PendingCommand::Step { way: Direction::Backward, done },
            _ => PendingCommand::Resume { alone, done },
        })
    }
}

/// Counts how many of several playlists have moved, and answers when all are through.
struct Tally {
    left: usize,
    moved: usize,
    /// The first.
    failure: Option<Error>,
    finish: Option<Reply<usize>>,
}

impl Tally {
    fn new(left: usize, finish: Reply<usize>) -> Arc<Mutex<Self>> {
        let finish = Some(finish);
        Arc::new(Mutex::new(Self { left, moved: 0, failure: None, finish }))
    }

    fn count(tally: &Mutex<Self>, result: Result<bool, Error>) {
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.left -= 1;
        match result {
            Ok(moved) => tally.moved += usize::from(moved),
            Err(failure) => drop(tally.failure.get_or_insert(failure)),
        }
        if tally.left > 0 {
            return;
        }
        let answer = match tally.failure.take() {
            Some(failure) if tally.moved == 0 => Err(failure),
            _ => Ok(tally.moved),
        };
        if let Some(finish) = tally.finish.take() {
            finish(answer);
        }
    }
}
