//! What clients tell the conductor to do. Each is written before it is answered, so that what was
//! acknowledged survives.

use super::conductor::{Conductor, Edited, Performance, edit, seed};
use super::course::{Course, Tune, Way};
use super::perform::Attempt;
use super::schedule::Rule;
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
                reply(self.start(id, monitors, extend));
            }
            Command::Act(id, act, reply) => reply(self.act(id, act)),
            Command::ActOnAll(act, reply) => reply(self.act_on_all(act)),
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
        self.hub.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
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
        self.hub.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
        Ok(())
    }

    fn start(&mut self, id: i64, declared: Vec<String>, extend: bool) -> Result<(), Failure> {
        let (score, last) = self.store.read(|c| {
            Ok::<_, Refusal>((playlists::score(c, id)?, playlists::state::<Course>(c, id)?))
        })?;
        let tune = Tune::from(score.ok_or(Refusal::NoPlaylist { id })?);
        if tune.items.is_empty() {
            return Err(Failure::Empty { name: tune.name });
        }
        let connected = self.wall.connected();
        let mut monitors = declared;
        if monitors.is_empty() {
            monitors.clone_from(&connected);
        }
        let applied_to: Vec<String> =
            monitors.iter().filter(|name| connected.contains(name)).cloned().collect();
        if applied_to.is_empty() {
            return Err(Failure::NoMonitor { declared: monitors, connected });
        }
        let last = self.running.get(&id).map(|one| one.course.clone()).or(last);
        let mut course = Course::begin(&tune, last, &self.now(), seed());
        course.boot_id.clone_from(&self.boot_id);
        course.shown_on.clear();
        course.place.monitors.clone_from(&monitors);
        course.place.extend = extend;
        let displaced = self.sharing(id, &monitors);
        self.store.write(|c| {
            for other in &displaced {
                playlists::save(c, *other, false, &self.running[other].course)?;
            }
            playlists::save(c, id, true, &course)
        })?;
        displaced.into_iter().for_each(|other| self.drop_stopped(other));
        let event = Event::PlaylistStarted {
            playlist_id: id,
            playlist_name: tune.name.clone(),
            monitors,
            applied_to,
            extend,
        };
        self.running.insert(id, Performance::new(tune, course));
        self.hub.publish(&event);
        self.perform(id, Attempt::new(Way::Forward, false));
        Ok(())
    }

    /// Other running playlists that have one of these monitors.
    fn sharing(&self, id: i64, monitors: &[String]) -> Vec<i64> {
        let shares = |course: &Course| course.place.monitors.iter().any(|n| monitors.contains(n));
        let others =
            self.running.iter().filter(|(other, one)| **other != id && shares(&one.course));
        others.map(|(other, _)| *other).collect()
    }

    fn act(&mut self, id: i64, act: Act) -> Result<(), Failure> {
        let Some(one) = self.running.get(&id) else { return Err(self.not_running(id)) };
        if matches!(act, Act::Next | Act::Previous) && matches!(one.tune.rule, Rule::Slots(_)) {
            return Err(Failure::NoSteps { name: one.tune.name.clone(), kind: one.tune.kind });
        }
        let changed = self.carry_out(act, &[id])?;
        let playlist_id = Some(id);
        let event = match act {
            _ if changed == 0 => return Ok(()),
            Act::Stop => Event::PlaylistStopped { playlist_id, action: None, stopped: None },
            Act::Pause => Event::PlaylistPaused { playlist_id, action: None, paused: None },
            Act::Resume => Event::PlaylistResumed { playlist_id, action: None, resumed: None },
            // Told when the picture is up.
            Act::Next | Act::Previous => return Ok(()),
        };
        self.hub.publish(&event);
        Ok(())
    }

    fn act_on_all(&mut self, act: Act) -> Result<usize, Failure> {
        let ids: Vec<i64> = self.running.keys().copied().collect();
        let follows_the_clock = |one: &Performance| matches!(one.tune.rule, Rule::Slots(_));
        if matches!(act, Act::Next | Act::Previous)
            && self.running.values().all(follows_the_clock)
            && let Some(one) = self.running.values().next()
        {
            return Err(Failure::NoSteps { name: one.tune.name.clone(), kind: one.tune.kind });
        }
        let count = self.carry_out(act, &ids)?;
        let (playlist_id, number) = (None, Some(count));
        let event = match act {
            _ if count == 0 => return Ok(0),
            Act::Stop => {
                Event::PlaylistStopped { playlist_id, action: Some("stop_all"), stopped: number }
            }
            Act::Pause => {
                Event::PlaylistPaused { playlist_id, action: Some("pause_all"), paused: number }
            }
            Act::Resume => {
                Event::PlaylistResumed { playlist_id, action: Some("resume_all"), resumed: number }
            }
            Act::Next | Act::Previous => return Ok(count),
        };
        self.hub.publish(&event);
        Ok(count)
    }

    /// Carries an act out and returns how many it made a difference to.
    fn carry_out(&mut self, act: Act, ids: &[i64]) -> Result<usize, Failure> {
        match act {
            Act::Next => Ok(self.step(ids, Way::Forward)),
            Act::Previous => Ok(self.step(ids, Way::Backward)),
            Act::Stop => self.stop(ids),
            Act::Pause | Act::Resume => self.hold(ids, act == Act::Pause),
        }
    }

    /// Moves those that can be moved by steps.
    fn step(&mut self, ids: &[i64], way: Way) -> usize {
        let now = self.now();
        let mut stepped = Vec::with_capacity(ids.len());
        for &id in ids {
            let Some(one) = self.running.get_mut(&id) else { continue };
            if matches!(one.tune.rule, Rule::Slots(_)) {
                continue;
            }
            one.course.step(&one.tune, way);
            one.course.changed(now.boot, &now);
            self.perform(id, Attempt::new(way, false));
            stepped.push(id);
        }
        self.note(&stepped);
        stepped.len()
    }

    fn stop(&mut self, ids: &[i64]) -> Result<usize, Failure> {
        self.store.write(|c| {
            let courses = ids.iter().filter_map(|id| Some((*id, &self.running.get(id)?.course)));
            courses.into_iter().try_for_each(|(id, course)| playlists::save(c, id, false, course))
        })?;
        self.running.retain(|id, _| !ids.contains(id));
        Ok(ids.len())
    }

    /// Pauses or resumes those that are not so already.
    fn hold(&mut self, ids: &[i64], pause: bool) -> Result<usize, Failure> {
        let now = self.now();
        let held = |id: &i64| {
            let mut course = self.running.get(id)?.course.clone();
            if course.place.paused == pause {
                return None;
            }
            if pause {
                course.pause(&now)
            } else {
                course.resume(&now)
            }
            Some((*id, course))
        };
        let courses: Vec<(i64, Course)> = ids.iter().filter_map(held).collect();
        self.store.write(|c| {
            courses.iter().try_for_each(|(id, course)| playlists::save(c, *id, true, course))
        })?;
        let count = courses.len();
        for (id, course) in courses {
            if let Some(one) = self.running.get_mut(&id) {
                one.course = course;
            }
            // The slot may be another one by now.
            if self.attend(id, true) {
                self.note(&[id]);
            }
        }
        Ok(count)
    }

    fn not_running(&self, id: i64) -> Failure {
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
