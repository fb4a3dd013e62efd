//! Ends the changes that clients wait for. If the picture is shown, the playlist moves on and its
//! client is answered; else everything stays as it was.
//!
//! Runs on the thread `playlist`.

use std::collections::BTreeMap;

use super::attempt::ApplyReport;
use super::error::Error;
use super::pending::{Goal, InFlight, Moved, PendingCommand, Superseded};
use super::player::{Player, RunningPlaylist};
use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use crate::random::seed;
use crate::store::playlists::{self, Item, Refusal};
use crate::wallpaper;
use crate::wire::{Event, Mode};

impl Player {
    /// Takes the answer to a change that a client waits for; gives back the report of any other.
    pub(super) fn conclude(&mut self, mut report: ApplyReport) -> Option<ApplyReport> {
        let id = report.id;
        let pending = self.pending.get_mut(&id);
        let Some(mut change) = pending.and_then(|pending| pending.take_change(report.change))
        else {
            return Some(report);
        };
        let was_start = matches!(change.goal, Goal::Start);
        self.refit(&mut change, &mut report);
        use wallpaper::Error as Why;
        match &report.result {
            _ if !was_start && !self.running.contains_key(&id) => {
                self.conclude_stopped(change, &report);
            }
            Ok(_) => self.succeed(change, &report),
            Err(Why::Incompatible { .. }) => self.skip(change, report),
            // The reconciler has reported it.
            Err(Why::Backend { .. } | Why::Ending) => fail(change, &report),
            Err(Why::NoImage { id: gone } | Why::FileGone { id: gone, .. }) => {
                self.retry_without(change, *gone, &report);
            }
            Err(Why::NoBackend { .. }) => {
                self.no_compatible_item(id, None);
                fail(change, &report);
            }
            Err(_) => {
                self.announce_error(&report);
                fail(change, &report);
            }
        }
        self.begin_next(id);
        if was_start {
            self.begin_held();
        }
        None
    }

    /// The playlist was stopped, or deleted, while the picture of a step was on its way. It stands at
    /// that one when it is started again.
    fn conclude_stopped(&self, change: InFlight, report: &ApplyReport) {
        let id = report.id;
        if report.result.is_err() {
            return change.fail(&|| self.not_running(id));
        }
        if let Err(error) = self.store.note(|c| playlists::save(c, id, false, &change.state)) {
            log::error!("cannot save the position of playlist {id}: {error}");
        }
        change.superseded.into_iter().for_each(|step| step.answer(report));
        (change.done)(Ok(report.moved()));
    }

    /// Fits a change to its list, which may have been edited while the picture was on its way.
    fn refit(&self, change: &mut InFlight, report: &mut ApplyReport) {
        let Ok(Some(mut spec)) = self.store.read(|c| PlaylistSpec::read(c, report.id)) else {
            return;
        };
        spec.adopt(&change.spec);
        let has_image = spec.items.iter().any(|item| item.image_id == report.image_id);
        if spec != change.spec && has_image {
            change.state.edit(&spec, seed());
            change.spec = spec;
            report.index = change.state.index;
        }
    }

    /// An image of the list is gone: tries the one that takes its place, if it has left the list.
    fn retry_without(&mut self, change: InFlight, gone: i64, report: &ApplyReport) {
        let id = report.id;
        // The row of an image that is gone has gone from its playlists, and is found no more.
        let has_image = |items: &[Item]| items.iter().any(|item| item.image_id == gone);
        let left = |spec: Option<PlaylistSpec>| spec.is_some_and(|spec| !has_image(&spec.items));
        let has_left = PlaylistSpec::find(&self.store, id).is_ok_and(left);
        if has_left {
            self.reload_if_changed(id);
        }
        // A list that cannot be read again would lead to the same image, again and again.
        let stale = |one: &RunningPlaylist| !one.spec.is_dynamic() && has_image(&one.spec.items);
        let is_start = matches!(change.goal, Goal::Start);
        if !has_left || !is_start && self.running.get(&id).is_some_and(stale) {
            self.announce_error(report);
            return fail(change, report);
        }
        self.put_back(id, change);
    }

    /// Puts a change back to be made again, before all others.
    fn put_back(&mut self, id: i64, change: InFlight) {
        let InFlight { goal, state, superseded, done, .. } = change;
        let again = match goal {
            Goal::Start => {
                let monitors = if state.everywhere { Vec::new() } else { state.monitors };
                PendingCommand::Start { monitors, mode: state.mode, done }
            }
            Goal::Step(direction) => PendingCommand::Step { direction, done },
            Goal::Resume { alone } => PendingCommand::Resume { alone, done },
        };
        let pending = self.pending.entry(id).or_default();
        pending.put_back(again);
        for step in superseded.into_iter().rev() {
            let (direction, done) = (step.direction, step.done);
            pending.put_back(PendingCommand::Step { direction, done });
        }
    }

    /// Goes on to the next item of a kind that the backend has not refused.
    fn skip(&mut self, mut change: InFlight, mut report: ApplyReport) {
        let id = report.id;
        let (refused_by, kind) = match &report.result {
            Err(wallpaper::Error::Incompatible { backend, kind, .. }) => {
                (Some(backend.to_string()), Some(*kind))
            }
            _ => (None, None),
        };
        // A request now would cover the picture of another's start.
        if !matches!(change.goal, Goal::Start) && self.is_being_displaced(id) {
            return self.put_back(id, change);
        }
        if let Some(kind) = kind
            && report.attempt.pass_over(&change.spec, &mut change.state, kind)
        {
            return self.send_again(id, change, report.attempt);
        }
        let InFlight { goal, spec, state, .. } = &change;
        // It runs, and shows something as soon as something can be shown.
        let result = match *goal {
            Goal::Start => self.install(spec, state.clone()).map(drop),
            Goal::Resume { alone } => self.resume(id, alone, state.clone()),
            Goal::Step(_) => {
                self.no_compatible_item(id, refused_by.as_deref());
                return fail(change, &report);
            }
        };
        if result.is_ok() {
            self.no_compatible_item(id, refused_by.as_deref());
        }
        (change.done)(result.map(|()| Moved::one()));
    }

    /// The picture is up, or a later request has taken its monitors: moves the playlist on.
    fn succeed(&mut self, change: InFlight, report: &ApplyReport) {
        let id = report.id;
        let now = self.clock_reading();
        let InFlight { goal, spec, mut state, superseded, done, .. } = change;
        state.shown_on.clone_from(&report.monitors);
        state.shown_on.sort_unstable();
        state.changed(now.boot, &now);
        let moved = match goal {
            Goal::Start => self.install(&spec, state),
            Goal::Step(_) => self.move_on(id, &spec, state),
            Goal::Resume { alone } => self.resume(id, alone, state).map(|()| false),
        };
        let lost = match moved {
            Ok(lost) => lost,
            Err(error) => {
                for step in superseded {
                    (step.done)(Err(Error::Overtaken { name: spec.name.clone() }));
                }
                return done(Err(error));
            }
        };
        if let Some(one) = self.running.get_mut(&id) {
            one.change = report.change;
            one.asked.clear();
            one.nothing_compatible = false;
            // Its successor is asked for in its time (`run_if_due`).
            one.lost = lost;
        }
        superseded.into_iter().for_each(|step| self.supersede(step, report));
        self.announce(report);
        done(Ok(report.moved()));
        self.fill_monitors(id);
    }

    /// Tells of a step whose picture was left out, as if it had been up.
    fn supersede(&self, step: Superseded, report: &ApplyReport) {
        self.bus.publish(&Event::PlaylistImageChanged {
            playlist_id: report.id,
            image_index: step.index,
            image_id: step.image_id,
            monitors: report.monitors.clone(),
            source: None,
            images: BTreeMap::new(),
        });
        step.answer(report);
    }

    /// Writes that a running playlist has moved on by a step; whether the image has left it since.
    fn move_on(
        &mut self,
        id: i64,
        planned: &PlaylistSpec,
        mut state: PlaybackState,
    ) -> Result<bool, Error> {
        let Some(one) = self.running.get_mut(&id) else { return Ok(false) };
        // Changes by others while the picture was on its way stay.
        state.paused = one.state.paused;
        state.monitors.clone_from(&one.state.monitors);
        one.spec.adopt(planned);
        let lost = *planned != one.spec && state.edit(&one.spec, seed());
        self.store.write(|c| playlists::save(c, id, true, &state))?;
        one.state = state;
        Ok(lost)
    }

    /// Makes a playlist run, and stops those that it takes a monitor from; whether the image has
    /// left it since it was planned.
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
        displaced.into_iter().for_each(|other| self.drop_stopped(other));
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

impl Superseded {
    /// Answers with the step's own image, as if it had been shown.
    fn answer(self, report: &ApplyReport) {
        let images = report.monitors.iter().map(|name| (name.clone(), self.image_id)).collect();
        (self.done)(Ok(Moved { count: 1, images }));
    }
}

/// Answers with what the report says.
fn fail(change: InFlight, report: &ApplyReport) {
    if let Err(error) = &report.result {
        change.fail(&|| Error::Picture(error.clone()));
    }
}
