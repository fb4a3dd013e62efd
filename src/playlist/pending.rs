//! Changes that clients ask for and wait for: a start, a step, a resume.
//!
//! Runs on the thread `playlist`, and never waits there: a change is sent to the wallpaper thread,
//! and its client is answered when the picture is up. Only then does the playlist move on; where the
//! picture does not come up, all is as it was before. The changes of one playlist come one after the
//! other. Of steps that have to wait, only the last one's picture is shown: it supersedes the others.

use std::collections::VecDeque;

use super::conductor::{Conductor, Performance, seed};
use super::course::{Course, Tune, Way};
use super::perform::{Attempt, Report};
use super::schedule::{Rule, Verdict};
use super::{Failure, Reply};
use crate::store::playlists::{self, Place, Refusal};
use crate::wallpaper;
use crate::wire::Event;

/// Answers one client: whether there was something to do.
pub(super) type Done = Reply<bool>;

/// What a client waits for.
pub(super) enum Wish {
    Start {
        monitors: Vec<String>,
        extend: bool,
        done: Done,
    },
    Step {
        way: Way,
        done: Done,
    },
    /// `alone`: not of a resume of all, which has an event of its own.
    Resume {
        alone: bool,
        done: Done,
    },
}

impl Wish {
    fn refuse(self, failure: Failure) {
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
    queue: VecDeque<Wish>,
}

/// A change on its way to the screen.
struct InFlight {
    /// The number of the change, by which its report is known.
    change: u64,
    goal: Goal,
    tune: Tune,
    /// Where the playlist stands once the picture is up.
    course: Course,
    /// Steps that this one supersedes: where each led to, and who waits for it.
    superseded: Vec<(Way, Place, Done)>,
    done: Done,
}

enum Goal {
    Start,
    Step(Way),
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
    fn way(&self) -> Way {
        match self.goal {
            Goal::Step(way) => way,
            Goal::Start | Goal::Resume { .. } => Way::Forward,
        }
    }

    /// Answers all who wait for it with the same failure.
    fn fail(self, failure: &dyn Fn() -> Failure) {
        for (.., done) in self.superseded {
            done(Err(failure()));
        }
        (self.done)(Err(failure()));
    }
}

impl Conductor {
    /// Takes a wish in, behind those that the playlist has already.
    pub(super) fn wish(&mut self, id: i64, wish: Wish) {
        self.pending.entry(id).or_default().queue.push_back(wish);
        self.go_on_with(id);
    }

    /// Whether a playlist's own time has to wait: for a change that a client waits for, or for a
    /// start that takes its monitors.
    pub(super) fn is_held(&self, id: i64) -> bool {
        let has_change = |pending: &Pending| pending.in_flight.is_some();
        let takes_monitors = |(other, pending): (&i64, &Pending)| {
            let start = pending.start().filter(|_| *other != id);
            start.is_some_and(|start| self.shares(id, &start.course.place))
        };
        self.pending.get(&id).is_some_and(has_change) || self.pending.iter().any(takes_monitors)
    }

    /// The playlists that are about to start, and do not run yet.
    pub(super) fn starting(&self) -> Vec<i64> {
        let starts = |(id, pending): (&i64, &Pending)| {
            let queued = pending.queue.iter().any(|wish| matches!(wish, Wish::Start { .. }));
            (!self.running.contains_key(id) && (pending.start().is_some() || queued)).then_some(*id)
        };
        self.pending.iter().filter_map(starts).collect()
    }

    /// Gives up what clients wait for of a playlist that is stopped or gone.
    pub(super) fn call_off(&mut self, id: i64, failure: &dyn Fn() -> Failure) {
        let Some(pending) = self.pending.remove(&id) else { return };
        if let Some(change) = pending.in_flight {
            change.fail(failure);
        }
        pending.queue.into_iter().for_each(|wish| wish.refuse(failure()));
    }

    /// The same, but for a start that is on its way or waits.
    pub(super) fn call_off_steps(&mut self, id: i64, failure: &dyn Fn() -> Failure) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        let is_start = |change: &mut InFlight| !matches!(change.goal, Goal::Start);
        let change = pending.in_flight.take_if(is_start);
        let (starts, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut pending.queue)
            .into_iter()
            .partition(|wish| matches!(wish, Wish::Start { .. }));
        pending.queue = starts;
        if let Some(change) = change {
            change.fail(failure);
        }
        others.into_iter().for_each(|wish| wish.refuse(failure()));
        self.go_on_with(id);
    }

    /// Begins the next change that waits, where none is on its way.
    pub(super) fn go_on_with(&mut self, id: i64) {
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
                Some(Wish::Start { monitors, extend, done }) => {
                    match self.plan_start(id, monitors, extend) {
                        Ok((tune, course)) => self.send(id, Goal::Start, tune, course, done),
                        Err(failure) => done(Err(failure)),
                    }
                }
                Some(Wish::Step { way, done }) => self.begin_steps(id, way, done),
                Some(Wish::Resume { alone, done }) => self.begin_resume(id, alone, done),
                None => {}
            }
        }
    }

    /// Sends a change on its way.
    fn send(&mut self, id: i64, goal: Goal, tune: Tune, course: Course, done: Done) {
        let superseded = Vec::new();
        let change = InFlight { change: 0, goal, tune, course, superseded, done };
        self.send_again(id, change, Attempt::new(Way::Forward, false));
    }

    /// Asks for the picture of a change.
    fn send_again(&mut self, id: i64, mut change: InFlight, mut attempt: Attempt) {
        attempt.way = change.way();
        let connected = self.wall.connected();
        let monitors = change.course.applied_to(&connected);
        if monitors.is_empty() {
            let declared = change.course.place.monitors.clone();
            let (declared, connected) = (&declared, &connected);
            return change.fail(&|| Failure::NoMonitor {
                declared: declared.clone(),
                connected: connected.clone(),
            });
        }
        self.changes += 1;
        change.change = self.changes;
        let (course, name) = (change.course.clone(), change.tune.name.clone());
        self.pending.entry(id).or_default().in_flight = Some(change);
        self.ask_for((id, self.changes), (&course, name), attempt, monitors);
    }

    /// All steps that wait become one change; the last of them is to be seen.
    fn begin_steps(&mut self, id: i64, way: Way, done: Done) {
        let Some(one) = self.running.get(&id) else {
            return done(Err(self.not_running(id)));
        };
        let (tune, mut course) = (one.tune.clone(), one.course.clone());
        course.step(&tune, way);
        let (mut last, mut superseded) = ((way, done), Vec::new());
        while let Some((way, done)) = self.next_step(id) {
            let (before, waits) = std::mem::replace(&mut last, (way, done));
            superseded.push((before, course.place.clone(), waits));
            course.step(&tune, way);
        }
        let (way, done) = last;
        let change = InFlight { change: 0, goal: Goal::Step(way), tune, course, superseded, done };
        self.send_again(id, change, Attempt::new(way, false));
    }

    /// The step that waits next, where nothing else comes before it.
    fn next_step(&mut self, id: i64) -> Option<(Way, Done)> {
        let queue = &mut self.pending.get_mut(&id)?.queue;
        match queue.pop_front()? {
            Wish::Step { way, done } => Some((way, done)),
            other => {
                queue.push_front(other);
                None
            }
        }
    }

    /// Goes on at once, or when the picture is up that it is time for by now.
    fn begin_resume(&mut self, id: i64, alone: bool, done: Done) {
        let now = self.now();
        let connected = self.wall.connected();
        let Some(one) = self.running.get(&id) else {
            return done(Err(self.not_running(id)));
        };
        if !one.course.place.paused {
            return done(Ok(false));
        }
        let (tune, mut course) = (one.tune.clone(), one.course.clone());
        course.resume(&now);
        let before = course.place.image_id;
        if let Verdict::TakeUp { slot, .. } = course.judge(&tune, &now) {
            let shown_on = course.shown_on.clone();
            course.take_up(&tune, slot);
            if course.place.image_id == before {
                course.shown_on = shown_on;
            } else if !one.applied_to(&connected).is_empty() {
                return self.send(id, Goal::Resume { alone }, tune, course, done);
            }
        }
        done(self.resumed(id, alone, course).map(|()| true));
    }

    /// Writes that a playlist goes on, and tells of it.
    fn resumed(&mut self, id: i64, alone: bool, course: Course) -> Result<(), Failure> {
        self.store.write(|c| playlists::save(c, id, true, &course))?;
        if let Some(one) = self.running.get_mut(&id) {
            one.course = course;
        }
        if alone {
            let (playlist_id, action, resumed) = (Some(id), None, None);
            self.bus.publish(&Event::PlaylistResumed { playlist_id, action, resumed });
        }
        Ok(())
    }

    /// Takes the answer to a change that a client waits for; gives back the report of any other.
    pub(super) fn conclude(&mut self, mut report: Report) -> Option<Report> {
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
                self.starve(id, None);
                self.refuse_change(change, &report);
            }
            Err(_) => {
                self.failed(&report);
                self.refuse_change(change, &report);
            }
        }
        self.go_on_with(id);
        None
    }

    /// Fits a change to its list, which may have been edited while the picture was on its way.
    fn refit(&self, change: &mut InFlight, report: &mut Report) {
        let score = self.store.read(|c| playlists::score(c, report.id));
        let Ok(Some(tune)) = score.map(|score| score.map(Tune::from)) else { return };
        let has_image = tune.items.iter().any(|item| item.image_id == report.image_id);
        if tune != change.tune && has_image {
            change.course.edit(&tune, seed());
            change.tune = tune;
            report.index = change.course.place.index;
        }
    }

    fn refuse_change(&self, change: InFlight, report: &Report) {
        if let Err(failure) = &report.result {
            change.fail(&|| Failure::Picture(failure.clone()));
        }
    }

    /// An image of the list is gone: tries the one that takes its place, if it has left the list.
    fn look_past(&mut self, change: InFlight, report: Report) {
        let id = report.id;
        let length = self.store.read(|c| playlists::length(c, id));
        if length.is_err() || length.is_ok_and(|length| length >= change.tune.items.len()) {
            self.failed(&report);
            return self.refuse_change(change, &report);
        }
        let Place { monitors, extend, .. } = change.course.place.clone();
        let everywhere = change.course.everywhere;
        let InFlight { goal, superseded, done, .. } = change;
        self.reload_if_shorter(id);
        let again = match goal {
            Goal::Start => {
                let monitors = if everywhere { Vec::new() } else { monitors };
                Wish::Start { monitors, extend, done }
            }
            Goal::Step(way) => Wish::Step { way, done },
            Goal::Resume { alone } => Wish::Resume { alone, done },
        };
        let queue = &mut self.pending.entry(id).or_default().queue;
        queue.push_front(again);
        for (way, _, done) in superseded.into_iter().rev() {
            queue.push_front(Wish::Step { way, done });
        }
    }

    /// Goes on to the next item of a kind that the backend has not refused.
    fn skip_in(&mut self, mut change: InFlight, report: Report) {
        let Report { id, mut attempt, index, result, .. } = report;
        if attempt.pass_over(&change.tune, &mut change.course, index) {
            return self.send_again(id, change, attempt);
        }
        let Err(wallpaper::Error::Incompatible { backend, .. }) = &result else { return };
        let backend = backend.to_string();
        if let (Goal::Step(_), Err(failure)) = (&change.goal, &result) {
            self.starve(id, Some(&backend));
            return change.fail(&|| Failure::Picture(failure.clone()));
        }
        // It runs, and shows something as soon as something can be shown.
        let InFlight { goal, tune, course, done, .. } = change;
        let result = match goal {
            Goal::Start => self.install(tune, course).map(drop),
            Goal::Step(_) => Ok(()),
            Goal::Resume { alone } => self.resumed(id, alone, course),
        };
        if result.is_ok() {
            self.starve(id, Some(&backend));
        }
        done(result.map(|()| true));
    }

    /// The picture is up, or a later request has taken its monitors: moves the playlist on.
    fn succeed(&mut self, change: InFlight, report: &Report) {
        let id = report.id;
        let now = self.now();
        let InFlight { goal, tune, mut course, superseded, done, .. } = change;
        let name = tune.name.clone();
        course.shown_on = report.monitors.clone();
        course.shown_on.sort_unstable();
        course.changed(now.boot, &now);
        let moved = match goal {
            Goal::Start => self.install(tune, course),
            Goal::Step(_) => self.moved(id, &tune, course),
            Goal::Resume { alone } => self.resumed(id, alone, course).map(|()| false),
        };
        let lost = match moved {
            Ok(lost) => lost,
            Err(failure) => {
                let overtaken = || Failure::Overtaken { name: name.clone() };
                superseded.into_iter().for_each(|(.., done)| done(Err(overtaken())));
                return done(Err(failure));
            }
        };
        if let Some(one) = self.running.get_mut(&id) {
            one.change = report.change;
            one.asked.clear();
            one.starved = false;
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
            self.perform(id, Attempt::new(Way::Forward, false));
        } else {
            self.serve(id);
        }
    }

    /// Writes that a running playlist has moved on by a step; whether the image has left it since.
    fn moved(&mut self, id: i64, planned: &Tune, mut course: Course) -> Result<bool, Failure> {
        let Some(one) = self.running.get_mut(&id) else { return Ok(false) };
        // What others did to it while the picture was on its way stays done.
        course.place.paused = one.course.place.paused;
        course.place.monitors.clone_from(&one.course.place.monitors);
        let lost = *planned != one.tune && course.edit(&one.tune, seed());
        self.store.write(|c| playlists::save(c, id, true, &course))?;
        one.course = course;
        Ok(lost)
    }

    /// What a start leads to, while nothing has happened yet.
    fn plan_start(
        &self,
        id: i64,
        declared: Vec<String>,
        extend: bool,
    ) -> Result<(Tune, Course), Failure> {
        let (score, last) = self.store.read(|c| {
            Ok::<_, Refusal>((playlists::score(c, id)?, playlists::state::<Course>(c, id)?))
        })?;
        let tune = Tune::from(score.ok_or(Refusal::NoPlaylist { id })?);
        if tune.items.is_empty() {
            return Err(Failure::Empty { name: tune.name });
        }
        let last = self.running.get(&id).map(|one| one.course.clone()).or(last);
        let mut course = Course::begin(&tune, last, &self.now(), seed());
        course.boot_id.clone_from(&self.boot_id);
        course.shown_on.clear();
        course.everywhere = declared.is_empty();
        course.place.monitors = if declared.is_empty() { self.wall.connected() } else { declared };
        course.place.extend = extend;
        Ok((tune, course))
    }

    /// Makes a playlist run, and stops those that it takes a monitor from; whether the image has
    /// left it since it was planned.
    fn install(&mut self, planned: Tune, mut course: Course) -> Result<bool, Failure> {
        let id = planned.id;
        let displaced: Vec<i64> = self.running.keys().copied().collect();
        let displaced: Vec<i64> = displaced
            .into_iter()
            .filter(|other| *other != id && self.shares(*other, &course.place))
            .collect();
        let (tune, lost) = self.store.write(|c| {
            let score = playlists::score(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            let tune = Tune::from(score);
            if tune.items.is_empty() {
                return Ok::<_, Refusal>((tune, true));
            }
            let lost = tune != planned && course.edit(&tune, seed());
            for other in &displaced {
                playlists::save(c, *other, false, &self.running[other].course)?;
            }
            playlists::save(c, id, true, &course)?;
            Ok((tune, lost))
        })?;
        if tune.items.is_empty() {
            return Err(Failure::Empty { name: tune.name });
        }
        displaced.into_iter().for_each(|other| self.drop_stopped(other));
        let place = &course.place;
        self.bus.publish(&Event::PlaylistStarted {
            playlist_id: id,
            playlist_name: tune.name.clone(),
            monitors: place.monitors.clone(),
            applied_to: course.applied_to(&self.wall.connected()),
            extend: place.extend,
        });
        self.running.insert(id, Performance::new(tune, course));
        Ok(lost)
    }

    /// Whether a running playlist has one of these monitors; one on all has each.
    fn shares(&self, id: i64, place: &Place) -> bool {
        let Some(one) = self.running.get(&id) else { return false };
        one.course.everywhere
            || one.course.place.monitors.iter().any(|name| place.monitors.contains(name))
    }

    /// Where a step of this way leads nowhere.
    pub(super) fn no_steps(&self, id: i64) -> Option<Failure> {
        let one = self.running.get(&id)?;
        matches!(one.tune.rule, Rule::Slots(_))
            .then(|| Failure::NoSteps { name: one.tune.name.clone(), kind: one.tune.kind })
    }
}
