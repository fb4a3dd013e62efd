//! Commands of clients to the player: edit, delete, stop, pause, light and dark, the session.
//!
//! Runs on the thread `playlist`. Each command is written to the database before it is answered. Stop
//! and pause are done at once; commands that change a picture are answered when it is shown (`steps`,
//! `starts`).

use std::sync::Arc;

use super::edits::edit;
use super::error::{Error, Reply};
use super::player::Player;
use super::running::{Action, BulkReply, Moved, RunningPlaylist, Step};
use super::schedule::Rule;
use super::slots;
use super::spec::Items;
use super::state::PlaybackState;
use crate::store::playlists::{self, PlaylistChange, Refusal};
use crate::wire::{
    ActivePlaylist, Appearance, AppearanceMode, Event, GalleryDomain, Playlist, PlaylistType,
    Power, PutPower,
};

impl Player {
    pub(super) fn change(&mut self, id: i64, change: &PlaylistChange) -> Result<Playlist, Error> {
        let one = self.running.get(&id);
        let state = one.map(|one| one.state.clone());
        // Before the transaction: the index must not be queried inside one.
        let found = match (&change.source, one) {
            (Some(source), Some(_)) => {
                Some(Arc::new(Items::default()).renewed(&self.store, &source.query)?)
            }
            (None, Some(one)) => one.spec.look_up(&self.store)?,
            (_, None) => None,
        };
        // List and place are written together, so that they agree after a kill.
        let (record, changed, edited) = self.store.write(|c| {
            let changed = playlists::update(c, id, change)?;
            let state = state.filter(|_| changed);
            let edited = state
                .map(|state| edit(c, id, state, found.as_ref()))
                .transpose()?;
            let record = playlists::get(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            Ok::<_, Refusal>((record, changed, edited))
        })?;
        if !changed {
            return Ok(record);
        }
        self.bus.publish(&Event::GalleryChanged {
            domain: GalleryDomain::Playlists,
        });
        if let Some(edited) = edited {
            self.go_on(id, edited);
        }
        Ok(record)
    }

    pub(super) fn delete(&mut self, id: i64) -> Result<(), Error> {
        self.store.write(|c| playlists::delete(c, id))?;
        self.drop_stopped(id);
        let error = |_: &Step| Refusal::NoPlaylist { id }.into();
        self.cancel_starts(&|_, start| start.spec.id == id, &error);
        self.fill_all_monitors();
        self.bus.publish(&Event::GalleryChanged {
            domain: GalleryDomain::Playlists,
        });
        Ok(())
    }

    /// Drops a playlist that the database already has as stopped.
    pub(super) fn drop_stopped(&mut self, id: i64) {
        if self.remove(id).is_some() {
            self.bus.publish(&Action::Stop.event(Some(id), 1));
        }
    }

    pub(super) fn active(&self) -> Vec<ActivePlaylist> {
        let now = self.clock_reading();
        let connected = self.wallpapers.connected();
        let resting = self.pause.power.get().resting;
        let record = |one: &RunningPlaylist| {
            let applied_to = one.state.applied_to(&connected);
            let mut record = one.state.record(&one.spec, applied_to, &now, resting);
            if let Some(why) = &one.nothing_compatible {
                record.next_change_at = None;
                record.not_shown = Some(why.clone());
            }
            record
        };
        self.running.values().map(record).collect()
    }
}

impl Player {
    /// With `on`: fails unless the playlist runs on one of these monitors.
    pub(super) fn act(&mut self, id: i64, action: Action, on: &[String], reply: Reply<Moved>) {
        if let Some(one) = self.running.get(&id).filter(|one| !self.runs_on(one, on)) {
            let name = one.spec.name.clone();
            let monitors = on.to_vec();
            return reply(Err(Error::NotRunningOn { name, monitors }));
        }
        if let Some(aim) = action.aim(true, on) {
            return self.begin(id, aim, reply);
        }
        let starts = action == Action::Stop && self.starting().contains(&id);
        if !starts && !self.running.contains_key(&id) {
            return reply(Err(self.not_running(id)));
        }
        reply(self.hold(action, Some(id), &[id]).map(|_| Moved::one()));
    }

    /// With `on`: acts on the playlists that run on one of these monitors.
    pub(super) fn act_on_all(&mut self, action: Action, on: &[String], reply: Reply<Moved>) {
        let Some(aim) = action.aim(false, on) else {
            let all = self.running.values().filter(|one| self.runs_on(one, on));
            let mut ids: Vec<i64> = all.map(|one| one.spec.id).collect();
            if action == Action::Stop {
                ids.extend(self.starting());
            }
            let count = self.hold(action, None, &ids);
            return reply(count.map(|count| Moved {
                count,
                ..Moved::default()
            }));
        };
        let mut moving: Vec<&RunningPlaylist> = self.running.values().collect();
        moving.retain(|one| self.runs_on(one, on));
        // If none has steps, the error says so.
        if action != Action::Resume && !moving.iter().all(|one| one.spec.has_slots()) {
            moving.retain(|one| !one.spec.has_slots());
        }
        let moving: Vec<i64> = moving.iter().map(|one| one.spec.id).collect();
        if moving.is_empty() {
            return reply(Ok(Moved::default()));
        }
        let bus = self.bus.clone();
        let resumes = action == Action::Resume;
        let finish = move |result: Result<Moved, Error>| {
            if let (
                true,
                Ok(Moved {
                    count: count @ 1.., ..
                }),
            ) = (resumes, &result)
            {
                bus.publish(&action.event(None, *count));
            }
            reply(result);
        };
        let bulk = BulkReply::new(moving.len(), Box::new(finish));
        for id in moving {
            let bulk = Arc::clone(&bulk);
            let done = Box::new(move |result| BulkReply::add(&bulk, result));
            self.begin(id, aim.clone(), done);
        }
    }

    /// Stops or pauses playlists; returns how many this changed.
    fn hold(&mut self, action: Action, id: Option<i64>, ids: &[i64]) -> Result<usize, Error> {
        let count = if action == Action::Stop {
            self.stop(ids)?
        } else {
            self.pause(ids)?
        };
        if count > 0 {
            self.bus.publish(&action.event(id, count));
        }
        Ok(count)
    }

    /// Stops the running ones, and cancels their starts; returns how many ran.
    fn stop(&mut self, ids: &[i64]) -> Result<usize, Error> {
        self.store.write(|c| {
            let mut found = ids.iter().filter_map(|id| self.running.get(id));
            found.try_for_each(|one| playlists::save(c, one.spec.id, false, &one.state))
        })?;
        let count = ids.iter().filter_map(|id| self.remove(*id)).count();
        self.cancel_starts(&|_, start| ids.contains(&start.spec.id), &Step::not_running);
        self.fill_all_monitors();
        Ok(count)
    }

    /// Pauses those that are not paused yet; returns how many.
    fn pause(&mut self, ids: &[i64]) -> Result<usize, Error> {
        let now = self.clock_reading();
        let paused = |id: &i64| {
            let mut state = self.running.get(id)?.state.clone();
            let runs = !state.paused;
            state.set_paused(true, &now);
            runs.then_some((*id, state))
        };
        let states: Vec<(i64, PlaybackState)> = ids.iter().filter_map(paused).collect();
        self.store.write(|c| {
            states
                .iter()
                .try_for_each(|(id, state)| playlists::save(c, *id, true, state))
        })?;
        for (id, _) in &states {
            if let Some(one) = self.running.get_mut(id) {
                one.change_states(|state| state.set_paused(true, &now));
            }
        }
        Ok(states.len())
    }

    /// Whether a playlist runs on one of these monitors; true if none are given.
    fn runs_on(&self, one: &RunningPlaylist, monitors: &[String]) -> bool {
        let applied_to = one.state.applied_to(&self.wallpapers.connected());
        monitors.is_empty() || applied_to.iter().any(|name| monitors.contains(name))
    }
}

impl Player {
    pub(super) fn report_power(&mut self, change: PutPower) -> Power {
        let power = &self.pause.power;
        match self.wallpapers.session() {
            None => power.leave(),
            session => power.enter(session),
        }
        power.set_session(change);
        self.apply_pause();
        self.pause.power.get()
    }

    pub(super) fn appearance(&self) -> Appearance {
        self.light.appearance(&self.clock_reading())
    }

    /// Sets the mode that decides between light and dark, and changes the playlists that follow it.
    /// Answers when their pictures are shown or have failed.
    pub(super) fn set_appearance(&mut self, mode: AppearanceMode, reply: Reply<Appearance>) {
        self.light.set(&self.store, mode, reply);
        self.run_all_due();
    }

    /// Answers the clients that wait for light and dark, unless a picture is still on its way.
    pub(super) fn answer_waiting(&mut self) {
        let is_on_its_way = |one: &RunningPlaylist| {
            let asked = self.wishes.monitors(one.spec.id, &one.state);
            one.spec.kind == PlaylistType::Appearance && !(asked.is_empty() && one.steps.is_empty())
        };
        if !self.running.values().any(is_on_its_way) {
            let appearance = self.appearance();
            self.light.answer(appearance);
        }
    }

    /// Publishes an event if light and dark or their mode have changed.
    pub(super) fn publish_appearance(&mut self) {
        let appearance = self.appearance();
        if self.light.note(appearance) {
            let Appearance { mode, now } = appearance;
            self.bus.publish(&Event::AppearanceChanged { mode, now });
        }
    }

    /// Warns if a playlist follows the sun and its times are not known: once, until that changes.
    pub(super) fn warn_of_lost_location(&mut self) {
        let follows = |one: &&RunningPlaylist| match &one.spec.rule {
            Rule::Slots(slots) => slots.follow_the_sun(),
            Rule::Manual | Rule::Timer(_) | Rule::Appearance { .. } => false,
        };
        let reading = self.clock_reading();
        let reason = match reading.location {
            None => Some("location.latitude and location.longitude are not set"),
            Some(location) if !slots::has_sunrise(&reading.wall, location) => {
                Some("the sun does not rise and set at the location today")
            }
            Some(_) => None,
        };
        let lost = self.running.values().find(follows).zip(reason);
        if let Some((one, reason)) = lost.filter(|_| !self.light.warned_of_location) {
            let name = &one.spec.name;
            log::warn!("playlist {name:?} follows the sun, but {reason}; using 06:00 and 18:00");
        }
        self.light.warned_of_location = lost.is_some();
    }
}
