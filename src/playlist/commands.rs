//! What clients tell the conductor to do. Each is written before it is answered, so that what was
//! acknowledged survives.

use std::sync::{Arc, Mutex, PoisonError};

use super::conductor::{Conductor, Edited, Performance, edit};
use super::course::{Course, Way};
use super::pending::{Done, Wish};
use super::{Act, Failure, Reply};
use crate::store::playlists::{self, PlaylistChange, Refusal};
use crate::wire::{ActivePlaylist, Event, GalleryDomain, Playlist};

pub(super) enum Command {
    Change(i64, PlaylistChange, Reply<Playlist>),
    Delete(i64, Reply<()>),
    Start { id: i64, monitors: Vec<String>, extend: bool, reply: Reply<()> },
    Act(i64, Act, Reply<()>),
    ActOnAll(Act, Reply<usize>),
    Active(Reply<Vec<ActivePlaylist>>),
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, failure: Failure) {
        match self {
            Self::Change(_, _, reply) => reply(Err(failure)),
            Self::Delete(_, reply) | Self::Act(_, _, reply) | Self::Start { reply, .. } => {
                reply(Err(failure));
            }
            Self::ActOnAll(_, reply) => reply(Err(failure)),
            Self::Active(reply) => reply(Err(failure)),
        }
    }
}

impl Conductor {
    pub(super) fn take(&mut self, command: Command) {
        match command {
            Command::Change(id, change, reply) => reply(self.change(id, &change)),
            Command::Delete(id, reply) => reply(self.delete(id)),
            Command::Start { id, monitors, extend, reply } => {
                let done = Box::new(|result: Result<bool, _>| reply(result.map(drop)));
                self.wish(id, Wish::Start { monitors, extend, done });
            }
            Command::Act(id, act, reply) => self.act(id, act, reply),
            Command::ActOnAll(act, reply) => self.act_on_all(act, reply),
            Command::Active(reply) => reply(Ok(self.active())),
        }
    }

    fn change(&mut self, id: i64, change: &PlaylistChange) -> Result<Playlist, Failure> {
        let course = self.running.get(&id).map(|one| one.course.clone());
        // The list and the place in it, together: no kill comes between them.
        let (record, changed, edited) = self.store.write(|c| {
            let changed = playlists::update(c, id, change)?;
            let course = course.filter(|_| changed);
            let edited = course.map(|course| edit(c, id, course)).transpose()?;
            let record = playlists::get(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            Ok::<_, Refusal>((record, changed, edited))
        })?;
        if !changed {
            return Ok(record);
        }
        self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
        match edited {
            Some(Edited::Empty) => self.drop_stopped(id),
            Some(Edited::On { tune, course, lost }) => self.go_on(id, tune, *course, lost),
            None => {}
        }
        Ok(record)
    }

    fn delete(&mut self, id: i64) -> Result<(), Failure> {
        self.store.write(|c| playlists::delete(c, id))?;
        self.drop_stopped(id);
        self.call_off(id, &|| Refusal::NoPlaylist { id }.into());
        self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
        Ok(())
    }

    fn act(&mut self, id: i64, act: Act, reply: Reply<()>) {
        if let Some(wish) = act.wish(true) {
            let refusal = if act == Act::Resume { None } else { self.no_steps(id) };
            return match refusal {
                Some(failure) => reply(Err(failure)),
                None => self.wish(id, wish(Box::new(|result| reply(result.map(drop))))),
            };
        }
        let known = self.running.contains_key(&id) || self.starting().contains(&id);
        if !known {
            return reply(Err(self.not_running(id)));
        }
        reply(match act {
            Act::Stop => self.stop_one(id),
            _ => self.pause_one(id),
        });
    }

    fn stop_one(&mut self, id: i64) -> Result<(), Failure> {
        if self.stop(&[id])? > 0 {
            let (playlist_id, action, stopped) = (Some(id), None, None);
            self.bus.publish(&Event::PlaylistStopped { playlist_id, action, stopped });
        }
        Ok(())
    }

    fn pause_one(&mut self, id: i64) -> Result<(), Failure> {
        if !self.running.contains_key(&id) {
            return Err(self.not_running(id));
        }
        if self.pause(&[id])? > 0 {
            let (playlist_id, action, paused) = (Some(id), None, None);
            self.bus.publish(&Event::PlaylistPaused { playlist_id, action, paused });
        }
        Ok(())
    }

    fn act_on_all(&mut self, act: Act, reply: Reply<usize>) {
        let ids: Vec<i64> = self.running.keys().copied().collect();
        let Some(wish) = act.wish(false) else {
            return reply(if act == Act::Stop { self.stop_all(ids) } else { self.pause_all(&ids) });
        };
        let moves = |id: &i64| act == Act::Resume || self.no_steps(*id).is_none();
        let moving: Vec<i64> = ids.iter().copied().filter(moves).collect();
        if moving.is_empty() {
            return reply(ids.first().and_then(|id| self.no_steps(*id)).map_or(Ok(0), Err));
        }
        let (bus, resumes) = (self.bus.clone(), act == Act::Resume);
        let finish = move |result: Result<usize, Failure>| {
            if let (true, Ok(number @ 1..)) = (resumes, &result) {
                let (action, resumed) = (Some("resume_all"), Some(*number));
                bus.publish(&Event::PlaylistResumed { playlist_id: None, action, resumed });
            }
            reply(result);
        };
        let tally = Tally::new(moving.len(), Box::new(finish));
        for id in moving {
            let tally = Arc::clone(&tally);
            self.wish(id, wish(Box::new(move |result| Tally::count(&tally, result))));
        }
    }

    fn stop_all(&mut self, ids: Vec<i64>) -> Result<usize, Failure> {
        let starting = self.starting();
        let count = self.stop(&ids)? + self.stop(&starting)?;
        if count > 0 {
            let (playlist_id, action, stopped) = (None, Some("stop_all"), Some(count));
            self.bus.publish(&Event::PlaylistStopped { playlist_id, action, stopped });
        }
        Ok(count)
    }

    fn pause_all(&mut self, ids: &[i64]) -> Result<usize, Failure> {
        let count = self.pause(ids)?;
        if count > 0 {
            let (playlist_id, action, paused) = (None, Some("pause_all"), Some(count));
            self.bus.publish(&Event::PlaylistPaused { playlist_id, action, paused });
        }
        Ok(count)
    }

    fn stop(&mut self, ids: &[i64]) -> Result<usize, Failure> {
        self.store.write(|c| {
            let courses = ids.iter().filter_map(|id| Some((*id, &self.running.get(id)?.course)));
            courses.into_iter().try_for_each(|(id, course)| playlists::save(c, id, false, course))
        })?;
        let mut count = 0;
        for id in ids {
            count += usize::from(self.running.remove(id).is_some());
            let failure = self.not_running(*id);
            let name = match failure {
                Failure::NotRunning { name } => name,
                other => other.to_string(),
            };
            self.call_off(*id, &|| Failure::NotRunning { name: name.clone() });
        }
        Ok(count)
    }

    /// Pauses those that are not so already; how many these are.
    fn pause(&mut self, ids: &[i64]) -> Result<usize, Failure> {
        let now = self.now();
        let paused = |id: &i64| {
            let mut course = self.running.get(id)?.course.clone();
            let runs = !course.place.paused;
            course.pause(&now);
            runs.then_some((*id, course))
        };
        let courses: Vec<(i64, Course)> = ids.iter().filter_map(paused).collect();
        self.store.write(|c| {
            courses.iter().try_for_each(|(id, course)| playlists::save(c, *id, true, course))
        })?;
        let count = courses.len();
        for (id, course) in courses {
            if let Some(one) = self.running.get_mut(&id) {
                one.course = course;
            }
        }
        Ok(count)
    }

    pub(super) fn not_running(&self, id: i64) -> Failure {
        match self.store.read(|c| playlists::score(c, id)) {
            Ok(Some(score)) => Failure::NotRunning { name: score.name },
            Ok(None) => Refusal::NoPlaylist { id }.into(),
            Err(error) => error.into(),
        }
    }

    fn active(&self) -> Vec<ActivePlaylist> {
        let (now, connected) = (self.now(), self.wall.connected());
        let record =
            |one: &Performance| one.course.record(&one.tune, one.applied_to(&connected), &now);
        self.running.values().map(record).collect()
    }
}

impl Act {
    /// What clients wait for, where this act may bring up a picture.
    fn wish(self, alone: bool) -> Option<impl Fn(Done) -> Wish> {
        matches!(self, Self::Next | Self::Previous | Self::Resume).then_some(move |done| match self
        {
            Self::Next => Wish::Step { way: Way::Forward, done },
            Self::Previous => Wish::Step { way: Way::Backward, done },
            _ => Wish::Resume { alone, done },
        })
    }
}

/// Counts how many of several playlists have moved, and answers when all are through.
struct Tally {
    left: usize,
    moved: usize,
    /// The first.
    failure: Option<Failure>,
    finish: Option<Reply<usize>>,
}

impl Tally {
    fn new(left: usize, finish: Reply<usize>) -> Arc<Mutex<Self>> {
        let finish = Some(finish);
        Arc::new(Mutex::new(Self { left, moved: 0, failure: None, finish }))
    }

    fn count(tally: &Mutex<Self>, result: Result<bool, Failure>) {
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
