//! Steps, resumes and starts by clients. Each requests its picture at once and has a state of its own;
//! the playlist adopts that state when the picture is shown.
//!
//! The results of a playlist's steps count in their order. A superseded step shares the result of the
//! next. If the newest step fails, the playlist stays where it was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::edits::{Renewed, renew};
use super::error::{Error, Reply};
use super::player::Player;
use super::requests::{write_place, write_start};
use super::running::{Action, Aim, Moved, Plan, RunningPlaylist, Step, is_gone};
use super::schedule::Due;
use super::skips::may_skip;
use super::spec::Direction;
use super::state::PlaybackState;
use super::wishes::Wish;
use crate::store::{assignments, playlists};
use crate::wallpaper::{self, Applied};
use crate::wire::{Mode, SetStatus};

/// Steps that may be on their way for a playlist, and starts; one more is refused.
const STEPS: usize = 64;

impl Player {
    pub(super) fn begin(&mut self, id: i64, aim: Aim, client: Reply<Moved>) {
        let one = self.running.get(&id).filter(|_| !self.is_displaced(id));
        let on_their_way = match (&aim, one) {
            (Aim::Start { .. }, _) => self.starts.len(),
            (_, None) => return client(Err(self.not_running(id))),
            (Aim::Resume { .. }, Some(one)) if !one.state.is_held() => {
                return client(Ok(Moved::default()));
            }
            (_, Some(one)) => one.steps.len(),
        };
        if on_their_way >= STEPS {
            return client(Err(Error::Busy));
        }
        self.begin_past(id, aim, Vec::new(), client);
    }

    /// Begins a step past images whose files are missing.
    pub(super) fn begin_past(
        &mut self,
        id: i64,
        aim: Aim,
        missing: Vec<i64>,
        client: Reply<Moved>,
    ) {
        let planned = match &aim {
            Aim::Start { monitors, mode } => self.plan_start(id, monitors.clone(), *mode).map(Some),
            Aim::Step(direction, on) => self.plan_step(id, *direction, on).map(Some),
            Aim::Resume { alone } => self.plan_resume(id, *alone),
        };
        match planned {
            Ok(Some(plan)) => self.send(aim, plan, missing, client),
            Ok(None) => client(Ok(Moved::one())),
            Err(error) => client(Err(error)),
        }
    }

    /// Requests the picture of a step. If only some monitors step, the others keep their images.
    fn send(&mut self, aim: Aim, plan: Plan, missing: Vec<i64>, client: Reply<Moved>) {
        let Plan {
            spec,
            mut after,
            stepping,
        } = plan;
        let connected = self.wallpapers.connected();
        let is_alone = !stepping.is_empty();
        let monitors = if is_alone {
            stepping
        } else {
            after.applied_to(&connected)
        };
        if monitors.is_empty() {
            return client(Err(Error::Picture(if connected.is_empty() {
                wallpaper::Error::NoMonitor
            } else {
                let names = after.monitors;
                wallpaper::Error::UnknownMonitors { names, connected }
            })));
        }
        let direction = match aim {
            Aim::Step(direction, _) => direction,
            Aim::Start { .. } | Aim::Resume { .. } => Direction::Forward,
        };
        let before = after.taken();
        let shown_on = after.shown_on.clone();
        let skipped = self.skip_unshowable(&spec, &mut after, direction, &missing);
        let mut images = after.taken();
        if is_alone {
            let kept = images.len().saturating_sub(monitors.len());
            // Unless the others' images are skipped, too.
            if images[..kept] == before[..kept] {
                after.shown_on = shown_on;
            }
            images = images.split_off(kept);
        }
        let wish = Wish {
            monitors,
            missing,
            skipped,
            ..Wish::new(&spec, &after, images)
        };
        let id = spec.id;
        let is_start = matches!(aim, Aim::Start { .. });
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let with_rows = if is_start {
            write_start(id, after.clone(), Arc::clone(&is_cancelled))
        } else {
            write_place(id, after.clone(), true)
        };
        let number = self.wish(&spec, &after, &wish, with_rows);
        let step = Step {
            number,
            wish,
            aim,
            spec,
            after,
            lost: false,
            result: None,
            is_cancelled,
            client,
        };
        if is_start {
            self.starts.insert(number, step);
        } else if let Some(one) = self.running.get_mut(&id) {
            one.steps.push_back(step);
        }
    }

    fn plan_step(&mut self, id: i64, direction: Direction, on: &[String]) -> Result<Plan, Error> {
        let Some(one) = self.running.get(&id) else {
            return Err(self.not_running(id));
        };
        let (mut spec, mut after) = one.latest();
        if spec.has_slots() {
            let (name, kind) = (spec.name, spec.kind);
            return Err(Error::NoSteps { name, kind });
        }
        let applied_to = after.applied_to(&self.wallpapers.connected());
        let stride = after.stride(&applied_to);
        let (theirs, others): (Vec<_>, Vec<_>) =
            applied_to.into_iter().partition(|name| on.contains(name));
        let is_alone = after.mode == Mode::Each && !theirs.is_empty() && !others.is_empty();
        let kept = if is_alone {
            self.images_on(one, &others, &after.taken())
        } else {
            Vec::new()
        };
        match renew(&self.store, &mut spec, &mut after, direction) {
            Renewed::Ready if is_alone => {
                after.step_alone(&spec, direction, &kept, theirs.len());
            }
            Renewed::Ready => after.step(&spec, direction, stride),
            Renewed::Stepped => {}
            Renewed::Empty => {
                self.wait_for_images(id);
                return Err(Error::NothingFound { name: spec.name });
            }
        }
        let stepping = if is_alone { theirs } else { Vec::new() };
        Ok(Plan {
            spec,
            after,
            stepping,
        })
    }

    /// Those of the playlist's images that these monitors show, or will show after the steps on
    /// their way.
    fn images_on(&self, one: &RunningPlaylist, monitors: &[String], taken: &[i64]) -> Vec<i64> {
        let rows = self.store.read(assignments::all).unwrap_or_else(|error| {
            log::error!("cannot read what the monitors show: {error}");
            Vec::new()
        });
        let rows = rows.into_iter().map(|row| (row.monitor, row.image_id));
        let mut shown: BTreeMap<String, i64> = rows.collect();
        for step in &one.steps {
            shown.extend(step.wish.dealt());
        }
        let is_there = |id: &i64| monitors.iter().any(|name| shown.get(name) == Some(id));
        taken.iter().copied().filter(is_there).collect()
    }

    /// Resumes at once, unless another slot is due: then plans to show its picture.
    fn plan_resume(&mut self, id: i64, alone: bool) -> Result<Option<Plan>, Error> {
        let now = self.clock_reading();
        let Some(one) = self.running.get(&id) else {
            return Err(self.not_running(id));
        };
        let (spec, mut after) = (one.spec.clone(), one.state.clone());
        after.set_paused(false, &now);
        if let Due::EnterSlot { slot, .. } = after.due(&spec, &now) {
            after.enter_slot(&spec, slot);
            if after.image_id != one.state.image_id {
                after.shown_on.clear();
                if !after.applied_to(&self.wallpapers.connected()).is_empty() {
                    let stepping = Vec::new();
                    return Ok(Some(Plan {
                        spec,
                        after,
                        stepping,
                    }));
                }
            }
        }
        self.resume(id, alone, after)?;
        Ok(None)
    }

    /// Writes that a playlist is resumed; if `alone`, publishes the event.
    fn resume(&mut self, id: i64, alone: bool, state: PlaybackState) -> Result<(), Error> {
        self.store.write(|c| playlists::save(c, id, true, &state))?;
        let now = self.clock_reading();
        if let Some(one) = self.running.get_mut(&id) {
            one.change_states(|state| state.set_paused(false, &now));
            one.state = state;
        }
        if alone {
            self.bus.publish(&Action::Resume.event(Some(id), 1));
        }
        Ok(())
    }
}

impl Player {
    /// The step with this wish.
    pub(super) fn step_mut(&mut self, number: u64) -> Option<&mut Step> {
        let mut steps = self.running.values_mut().flat_map(|one| &mut one.steps);
        steps.find(|step| step.number == number)
    }

    /// Concludes the steps of a playlist whose results are known, in their order.
    pub(super) fn conclude_steps(&mut self, id: i64) {
        while let Some(one) = self.running.get_mut(&id) {
            let newest = one.steps.len().saturating_sub(1);
            let is_last = |&at: &usize| at == newest || !one.steps[at].is_superseded();
            let Some(last) = (0..one.steps.len()).find(is_last) else {
                return self.fill_monitors(id);
            };
            let Some(result) = one.steps[last].result.clone() else {
                return;
            };
            if result.as_ref().is_err_and(|error| self.retry(id, error)) {
                continue;
            }
            let Some(one) = self.running.get_mut(&id) else {
                return;
            };
            let group: Vec<Step> = one.steps.drain(..=last).collect();
            match result {
                Ok(applied) => self.advance(id, group, &applied),
                Err(error) => self.fail(group, &error),
            }
        }
    }

    /// Begins the newest step again, past its image, if that is gone; false if it must fail.
    fn retry(&mut self, id: i64, error: &wallpaper::Error) -> bool {
        if !is_gone(error) {
            return false;
        }
        self.reload_if_changed(id);
        let is_displaced = self.is_displaced(id);
        let Some(one) = self.running.get_mut(&id).filter(|_| !is_displaced) else {
            return false;
        };
        let may_skip = |step: &mut Step| may_skip(&one.spec, &mut step.wish, error);
        if !one.steps.back_mut().is_some_and(may_skip) {
            return false;
        }
        let Some(step) = one.steps.pop_back() else {
            return false;
        };
        self.begin_past(id, step.aim, step.wish.missing, step.client);
        // Without it, the superseded steps before it have no result.
        if let Some(one) = self.running.get_mut(&id)
            && one.steps.back().is_some_and(|step| step.result.is_some())
        {
            one.fail_steps(|step| Error::Overtaken {
                name: step.spec.name.clone(),
            });
        }
        true
    }

    /// Moves a playlist on by steps that share a result: the picture of the last one is shown, or a
    /// later request has replaced it.
    fn advance(&mut self, id: i64, group: Vec<Step>, applied: &Applied) {
        let now = self.clock_reading();
        let is_displaced = self.is_displaced(id);
        if let (Some(one), Some(last)) = (self.running.get_mut(&id), group.last()) {
            one.spec = last.spec.clone();
            one.state = last.after.clone();
            one.lost = last.lost;
            one.nothing_compatible = None;
            // A start that has replaced it may still fail.
            if applied.outcome == SetStatus::Set || !is_displaced {
                one.state.note_shown(applied);
            }
            one.state.changed(now.boot, &now);
            if let Aim::Resume { alone: true } = last.aim {
                self.bus.publish(&Action::Resume.event(Some(id), 1));
            }
        }
        self.save(&[id]);
        for step in group {
            let images = step.images();
            self.announce(&step.wish, applied, &images);
            (step.client)(Ok(Moved {
                images,
                warnings: applied.warnings.clone(),
                ..Moved::one()
            }));
        }
    }

    /// The picture of the last of these steps has failed: the playlist stays where it was.
    pub(super) fn fail(&mut self, mut group: Vec<Step>, error: &wallpaper::Error) {
        let Some(last) = group.pop() else { return };
        self.announce_failure(&last.wish, error);
        let result = match (last.aim, error) {
            // A playlist that is resumed runs, and shows an image as soon as one can be shown.
            (Aim::Resume { alone }, wallpaper::Error::Incompatible { .. }) => self
                .resume(last.spec.id, alone, last.after)
                .map(|()| Moved::without_image(error)),
            _ => Err(Error::Picture(error.clone())),
        };
        (last.client)(result);
        for step in group {
            (step.client)(Err(Error::Picture(error.clone())));
        }
    }
}
