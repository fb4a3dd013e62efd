//! Changes that clients ask for and wait for: a start, a step, a resume.
//!
//! Runs on the thread `playlist`, and never waits there: a change is sent to the wallpaper thread,
//! and its client is answered when the picture is up. Only then does the playlist move on; where the
//! picture does not come up, all is as it was before. The changes of one playlist come one after the
//! other. Of steps that have to wait, only the last one's picture is shown: it supersedes the others.

use std::collections::VecDeque;

use super::apply::{ApplyReport, Attempt};
use super::player::{Player, RunningPlaylist};
use super::schedule::{Due, Rule};
use super::state::{Direction, PlaybackState, PlaylistSpec};
use super::{Error, Reply};
use crate::random::seed;
use crate::store::playlists::{self, Place, Refusal};
use crate::wallpaper;
use crate::wire::Event;

/// Answers one client: whether there was something to do.
pub(super) type Done = Reply<bool>;

/// What a client waits for.
pub(super) enum PendingCommand {
    Start {
        monitors: Vec<String>,
        extend: bool,
        done: Done,
    },
    Step {
        way: Direction,
        done: Done,
    },
    /// `alone`: not of a resume of all, which has an event of its own.
    Resume {
        alone: bool,
        done: Done,
    },
}

impl PendingCommand {
    fn refuse(self, failure: Error) {
        match self {
            Self::Start { done, .. } | Self::Step { done, .. } | Self::Resume { done, .. } => {
                done(Err(failure));
            }
        }
    }
}

/// The wishes for one playlist.
#[derive(Default)]
pub(super) struct Pending {
    in_flight: Option<InFlight>,
    queue: VecDeque<PendingCommand>,
}

/// A change on its way to the screen.
struct InFlight {
    /// The number of the change, by which its report is known.
    change: u64,
    goal: Goal,
    spec: PlaylistSpec,
    /// Where the playlist stands once the picture is up.
    state: PlaybackState,
    /// Steps that this one supersedes: where each led to, and who waits for it.
    superseded: Vec<(Direction, Place, Done)>,
    done: Done,
}

enum Goal {
    Start,
    Step(Direction),
    Resume { alone: bool },
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.in_flight.is_none() && self.queue.is_empty()
    }

    fn start(&self) -> Option<&InFlight> {
        self.in_flight.as_ref().filter(|change| matches!(change.goal, Goal::Start))
    }
}

impl InFlight {
    fn way(&self) -> Direction {
        match self.goal {
            Goal::Step(way) => way,
            Goal::Start | Goal::Resume { .. } => Direction::Forward,
        }
    }

    /// Answers all who wait for it with the same failure.
    fn fail(self, failure: &dyn Fn() -> Error) {
        for (.., done) in self.superseded {
            done(Err(failure()));
        }
        (self.done)(Err(failure()));
    }
}

impl Player {
    /// Takes a command in, behind those that the playlist has already.
    pub(super) fn enqueue(&mut self, id: i64, command: PendingCommand) {
        self.pending.entry(id).or_default().queue.push_back(command);
        self.start_next(id);
    }

    /// Whether a playlist's own time has to wait: for a change that a client waits for, or for a
    /// start that takes its monitors.
    pub(super) fn has_pending_change(&self, id: i64) -> bool {
        let has_change = |pending: &Pending| pending.in_flight.is_some();
        let takes_monitors = |(other, pending): (&i64, &Pending)| {
            let start = pending.start().filter(|_| *other != id);
            start.is_some_and(|start| self.shares(id, &start.state.place))
        };
        self.pending.get(&id).is_some_and(has_change) || self.pending.iter().any(takes_monitors)
    }

    /// The playlists that are about to start, and do not run yet.
    pub(super) fn starting(&self) -> Vec<i64> {
        let starts = |(id, pending): (&i64, &Pending)| {
            let queued =
                pending.queue.iter().any(|command| matches!(command, PendingCommand::Start { .. }));
            (!self.running.contains_key(id) && (pending.start().is_some() || queued)).then_some(*id)
        };
        self.pending.iter().filter_map(starts).collect()
    }

    /// Gives up what clients wait for of a playlist that is stopped or gone.
    pub(super) fn cancel_pending(&mut self, id: i64, failure: &dyn Fn() -> Error) {
        let Some(pending) = self.pending.remove(&id) else { return };
        if let Some(change) = pending.in_flight {
            change.fail(failure);
        }
        pending.queue.into_iter().for_each(|command| command.refuse(failure()));
    }

    /// The same, but for a start that is on its way or waits.
    pub(super) fn cancel_pending_steps(&mut self, id: i64, failure: &dyn Fn() -> Error) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        let is_start = |change: &mut InFlight| !matches!(change.goal, Goal::Start);
        let change = pending.in_flight.take_if(is_start);
        let (starts, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut pending.queue)
            .into_iter()
            .partition(|command| matches!(command, PendingCommand::Start { .. }));
        pending.queue = starts;
        if let Some(change) = change {
            change.fail(failure);
        }
        others.into_iter().for_each(|command| command.refuse(failure()));
        self.start_next(id);
    }

    /// Begins the next change that waits, where none is on its way.
    pub(super) fn start_next(&mut self, id: i64) {
        loop {
            let Some(pending) = self.pending.get_mut(&id) else { return };
            if pending.is_empty() {
                self.pending.remove(&id);
                return;
            }
            if pending.in_flight.is_some() {
                return;
            }
            match pending.queue.pop_front() {
                Some(PendingCommand::Start { monitors, extend, done }) => {
                    match self.plan_start(id, monitors, extend) {
                        Ok((spec, state)) => self.send(id, Goal::Start, spec, state, done),
                        Err(failure) => done(Err(failure)),
                    }
                }
                Some(PendingCommand::Step { way, done }) => self.begin_steps(id, way, done),
                Some(PendingCommand::Resume { alone, done }) => self.begin_resume(id, alone, done),
                None => {}
            }
        }
    }

    /// Sends a change on its way.
    fn send(&mut self, id: i64, goal: Goal, spec: PlaylistSpec, state: PlaybackState, done: Done) {
        let superseded = Vec::new();
        let change = InFlight { change: 0, goal, spec, state, superseded, done };
        self.send_again(id, change, Attempt::new(Direction::Forward, false));
    }

    /// Asks for the picture of a change.
    fn send_again(&mut self, id: i64, mut change: InFlight, mut attempt: Attempt) {
        attempt.way = change.way();
        let connected = self.wallpapers.connected();
        let monitors = change.state.applied_to(&connected);
        if monitors.is_empty() {
            let declared = change.state.place.monitors.clone();
            let (declared, connected) = (&declared, &connected);
            return change.fail(&|| Error::NoMonitor {
                declared: declared.clone(),
                connected: connected.clone(),
            });
        }
        self.changes += 1;
        change.change = self.changes;
        let (state, name) = (change.state.clone(), change.spec.name.clone());
        self.pending.entry(id).or_default().in_flight = Some(change);
        self.request_for((id, self.changes), (&state, name), attempt, monitors);
    }

    /// All steps that wait become one change; the last of them is to be seen.
    fn begin_steps(&mut self, id: i64, way: Direction, done: Done) {
        let Some(one) = self.running.get(&id) else {
            return done(Err(self.not_running(id)));
        };
        let (spec, mut state) = (one.spec.clone(), one.state.clone());
        state.step(&spec, way);
        let (mut last, mut superseded) = ((way, done), Vec::new());
        while let Some((way, done)) = self.next_step(id) {
            let (before, waits) = std::mem::replace(&mut last, (way, done));
            superseded.push((before, state.place.clone(), waits));
            state.step(&spec, way);
        }
        let (way, done) = last;
        let change = InFlight { change: 0, goal: Goal::Step(way), spec, state, superseded, done };
        self.send_again(id, change, Attempt::new(way, false));
    }

    /// The step that waits next, where nothing else comes before it.
    fn next_step(&mut self, id: i64) -> Option<(Direction, Done)> {
        let queue = &mut self.pending.get_mut(&id)?.queue;
        match queue.pop_front()? {
            PendingCommand::Step { way, done } => Some((way, done)),
            other => {
                queue.push_front(other);
                None
            }
        }
    }

    /// Goes on at once, or when the picture is up that it is time for by now.
    fn begin_resume(&mut self, id: i64, alone: bool, done: Done) {
        let now = self.now();
        let connected = self.wallpapers.connected();
        let Some(one) = self.running.get(&id) else {
            return done(Err(self.not_running(id)));
        };
        if !one.state.place.paused {
            return done(Ok(false));
        }
        let (spec, mut state) = (one.spec.clone(), one.state.clone());
        state.resume(&now);
        let before = state.place.image_id;
        if let Due::EnterSlot { slot, .. } = state.due(&spec, &now) {
            let shown_on = state.shown_on.clone();
            state.enter_slot(&spec, slot);
            if state.place.image_id == before {
                state.shown_on = shown_on;
            } else if !one.applied_to(&connected).is_empty() {
                return self.send(id, Goal::Resume { alone }, spec, state, done);
            }
        }
        done(self.resumed(id, alone, state).map(|()| true));
    }

    /// Writes that a playlist goes on, and tells of it.
    fn resumed(&mut self, id: i64, alone: bool, state: PlaybackState) -> Result<(), Error> {
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

    /// Takes the answer to a change that a client waits for; gives back the report of any other.
    pub(super) fn conclude(&mut self, mut report: ApplyReport) -> Option<ApplyReport> {
        let id = report.id;
        let pending = self.pending.get_mut(&id);
        let is_it = |change: &mut InFlight| change.change == report.change;
        let Some(mut change) = pending.and_then(|pending| pending.in_flight.take_if(is_it)) else {
            return Some(report);
        };
        self.refit(&mut change, &mut report);
        use wallpaper::Error as Why;
        match &report.result {
            Ok(_) => self.succeed(change, &report),
            Err(Why::Incompatible { .. }) => self.skip_in(change, report),
            // The reconciler has told of it.
            Err(Why::Backend { .. } | Why::Ending) => self.refuse_change(change, &report),
            Err(Why::NoImage { .. } | Why::FileGone { .. }) => self.look_past(change, report),
            Err(Why::NoBackend { .. }) => {
                self.no_compatible_item(id, None);
                self.refuse_change(change, &report);
            }
            Err(_) => {
                self.failed(&report);
                self.refuse_change(change, &report);
            }
        }
        self.start_next(id);
        None
    }

    /// Fits a change to its list, which may have been edited while the picture was on its way.
    fn refit(&self, change: &mut InFlight, report: &mut ApplyReport) {
        let score = self.store.read(|c| playlists::score(c, report.id));
        let Ok(Some(spec)) = score.map(|score| score.map(PlaylistSpec::from)) else { return };
        let has_image = spec.items.iter().any(|item| item.image_id == report.image_id);
        if spec != change.spec && has_image {
            change.state.edit(&spec, seed());
            change.spec = spec;
            report.index = change.state.place.index;
        }
    }

    fn refuse_change(&self, change: InFlight, report: &ApplyReport) {
        if let Err(failure) = &report.result {
            change.fail(&|| Error::Picture(failure.clone()));
        }
    }

    /// An image of the list is gone: tries the one that takes its place, if it has left the list.
    fn look_past(&mut self, change: InFlight, report: ApplyReport) {
        let id = report.id;
        let length = self.store.read(|c| playlists::length(c, id));
        if length.is_err() || length.is_ok_and(|length| length >= change.spec.items.len()) {
            self.failed(&report);
            return self.refuse_change(change, &report);
        }
        let Place { monitors, extend, .. } = change.state.place.clone();
        let everywhere = change.state.everywhere;
        let InFlight { goal, superseded, done, .. } = change;
        self.reload_if_shorter(id);
        let again = match goal {
            Goal::Start => {
                let monitors = if everywhere { Vec::new() } else { monitors };
                PendingCommand::Start { monitors, extend, done }
            }
            Goal::Step(way) => PendingCommand::Step { way, done },
            Goal::Resume { alone } => PendingCommand::Resume { alone, done },
        };
        let queue = &mut self.pending.entry(id).or_default().queue;
        queue.push_front(again);
        for (way, _, done) in superseded.into_iter().rev() {
            queue.push_front(PendingCommand::Step { way, done });
        }
    }

    /// Goes on to the next item of a kind that the backend has not refused.
    fn skip_in(&mut self, mut change: InFlight, report: ApplyReport) {
        let ApplyReport { id, mut attempt, index, result, .. } = report;
        if attempt.pass_over(&change.spec, &mut change.state, index) {
            return self.send_again(id, change, attempt);
        }
        let Err(wallpaper::Error::Incompatible { backend, .. }) = &result else { return };
        let backend = backend.to_string();
        if let (Goal::Step(_), Err(failure)) = (&change.goal, &result) {
            self.no_compatible_item(id, Some(&backend));
            return change.fail(&|| Error::Picture(failure.clone()));
        }
        // It runs, and shows something as soon as something can be shown.
        let InFlight { goal, spec, state, done, .. } = change;
        let result = match goal {
            Goal::Start => self.install(spec, state).map(drop),
            Goal::Step(_) => Ok(()),
            Goal::Resume { alone } => self.resumed(id, alone, state),
        };
        if result.is_ok() {
            self.no_compatible_item(id, Some(&backend));
        }
        done(result.map(|()| true));
    }

    /// The picture is up, or a later request has taken its monitors: moves the playlist on.
    fn succeed(&mut self, change: InFlight, report: &ApplyReport) {
        let id = report.id;
        let now = self.now();
        let InFlight { goal, spec, mut state, superseded, done, .. } = change;
        let name = spec.name.clone();
        state.shown_on = report.monitors.clone();
        state.shown_on.sort_unstable();
        state.changed(now.boot, &now);
        let moved = match goal {
            Goal::Start => self.install(spec, state),
            Goal::Step(_) => self.moved(id, &spec, state),
            Goal::Resume { alone } => self.resumed(id, alone, state).map(|()| false),
        };
        let lost = match moved {
            Ok(lost) => lost,
            Err(failure) => {
                let overtaken = || Error::Overtaken { name: name.clone() };
                superseded.into_iter().for_each(|(.., done)| done(Err(overtaken())));
                return done(Err(failure));
            }
        };
        if let Some(one) = self.running.get_mut(&id) {
            one.change = report.change;
            one.asked.clear();
            one.nothing_compatible = false;
        }
        for (_, place, done) in superseded {
            self.bus.publish(&Event::PlaylistImageChanged {
                playlist_id: id,
                image_index: place.index,
                image_id: place.image_id,
                monitors: report.monitors.clone(),
                source: None,
            });
            done(Ok(true));
        }
        self.announce(report);
        done(Ok(true));
        if lost {
            self.apply(id, Attempt::new(Direction::Forward, false));
        } else {
            self.fill_monitors(id);
        }
    }

    /// Writes that a running playlist has moved on by a step; whether the image has left it since.
    fn moved(
        &mut self,
        id: i64,
        planned: &PlaylistSpec,
        mut state: PlaybackState,
    ) -> Result<bool, Error> {
        let Some(one) = self.running.get_mut(&id) else { return Ok(false) };
        // What others did to it while the picture was on its way stays done.
        state.place.paused = one.state.place.paused;
        state.place.monitors.clone_from(&one.state.place.monitors);
        let lost = *planned != one.spec && state.edit(&one.spec, seed());
        self.store.write(|c| playlists::save(c, id, true, &state))?;
        one.state = state;
        Ok(lost)
    }

    /// What a start leads to, while nothing has happened yet.
    fn plan_start(
        &self,
        id: i64,
        declared: Vec<String>,
        extend: bool,
    ) -> Result<(PlaylistSpec, PlaybackState), Error> {
        let (score, last) = self.store.read(|c| {
            Ok::<_, Refusal>((playlists::score(c, id)?, playlists::state::<PlaybackState>(c, id)?))
        })?;
        let spec = PlaylistSpec::from(score.ok_or(Refusal::NoPlaylist { id })?);
        if spec.items.is_empty() {
            return Err(Error::Empty { name: spec.name });
        }
        let last = self.running.get(&id).map(|one| one.state.clone()).or(last);
        let mut state = PlaybackState::begin(&spec, last, &self.now(), seed());
        state.boot_id.clone_from(&self.boot_id);
        state.shown_on.clear();
        state.everywhere = declared.is_empty();
        state.place.monitors =
            if declared.is_empty() { self.wallpapers.connected() } else { declared };
        state.place.extend = extend;
        Ok((spec, state))
    }

    /// Makes a playlist run, and stops those that it takes a monitor from; whether the image has
    /// left it since it was planned.
    fn install(&mut self, planned: PlaylistSpec, mut state: PlaybackState) -> Result<bool, Error> {
        let id = planned.id;
        let displaced: Vec<i64> = self.running.keys().copied().collect();
        let displaced: Vec<i64> = displaced
            .into_iter()
            .filter(|other| *other != id && self.shares(*other, &state.place))
            .collect();
        let (spec, lost) = self.store.write(|c| {
            let score = playlists::score(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            let spec = PlaylistSpec::from(score);
            if spec.items.is_empty() {
                return Ok::<_, Refusal>((spec, true));
            }
            let lost = spec != planned && state.edit(&spec, seed());
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
        let place = &state.place;
        self.bus.publish(&Event::PlaylistStarted {
            playlist_id: id,
            playlist_name: spec.name.clone(),
            monitors: place.monitors.clone(),
            applied_to: state.applied_to(&self.wallpapers.connected()),
            extend: place.extend,
        });
        self.running.insert(id, RunningPlaylist::new(spec, state));
        Ok(lost)
    }

    /// Whether a running playlist has one of these monitors; one on all has each.
    fn shares(&self, id: i64, place: &Place) -> bool {
        let Some(one) = self.running.get(&id) else { return false };
        one.state.everywhere
            || one.state.place.monitors.iter().any(|name| place.monitors.contains(name))
    }

    /// Where a step of this way leads nowhere.
    pub(super) fn no_steps(&self, id: i64) -> Option<Error> {
        let one = self.running.get(&id)?;
        matches!(one.spec.rule, Rule::Slots(_))
            .then(|| Error::NoSteps { name: one.spec.name.clone(), kind: one.spec.kind })
    }
}
