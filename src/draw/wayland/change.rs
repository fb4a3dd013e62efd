//! A change on its way: from what was asked for to the first frames of it.
//!
//! Nothing is touched before everything is painted; so an error leaves what was shown.

use std::time::{Duration, Instant};

use super::super::message::{Effect, Outcome, Request, Transition, Wanted};
use super::super::paint::{Painted, Task};
use super::super::painter::Painting;
use super::super::server::ClientId;
use super::State;
use super::events::Asked;
use super::surface::Content;

/// A surface that has no size by then will not have one: its output is going.
const SIZES_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Change {
    /// Nobody where outputs came or changed.
    asker: Option<ClientId>,
    outputs: Vec<Wanted>,
    transition: Transition,
    stage: Stage,
}

enum Stage {
    /// What was named is not known yet: the compositor is asked twice, for the outputs and for
    /// their names. The number is that of the question.
    Asking { asked: u64, again: bool },
    /// Surfaces are to have a size.
    Sizing { until: Instant },
    /// Each task is that of an output.
    Painting { painting: Painting, outputs: Vec<u32> },
    /// First frames are to be seen on these.
    Showing { outputs: Vec<u32> },
}

impl Change {
    /// What the loop waits for.
    pub(super) fn painting(&self) -> Option<&Painting> {
        match &self.stage {
            Stage::Painting { painting, .. } => Some(painting),
            _ => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Sizing { until } => Some(until),
            _ => None,
        }
    }
}

impl State {
    /// Begins what a client asks for; what another waits for is called off.
    pub(super) fn request(&mut self, asker: ClientId, request: Request) {
        if let Some(Change { asker: Some(other), .. }) = self.change.take() {
            self.server.respond(other, Outcome::Superseded);
        }
        let all_known = request.outputs.iter().all(|wanted| self.named(&wanted.output).is_some());
        let stage = match all_known {
            true => self.sizing(&request.outputs),
            false => Stage::Asking { asked: self.ask(), again: false },
        };
        let Request { outputs, transition, .. } = request;
        self.change = Some(Change { asker: Some(asker), outputs, transition, stage });
    }

    /// Drops a change whose client has hung up, unless its pictures are up already.
    pub(super) fn drop_unawaited(&mut self) {
        let is_up = |change: &Change| matches!(change.stage, Stage::Showing { .. });
        let is_unawaited = |change: &mut Change| {
            !is_up(change) && change.asker.is_some_and(|asker| !self.server.is_waiting(asker))
        };
        if self.change.take_if(is_unawaited).is_some() {
            self.tidy();
        }
    }

    /// The compositor has answered the question of this number.
    pub(super) fn heard(&mut self, number: u64) {
        let Some(mut change) = self.change.take() else { return };
        if let Stage::Asking { asked, again } = change.stage
            && asked == number
        {
            change.stage = match again {
                false => Stage::Asking { asked: self.ask(), again: true },
                true => self.sizing(&change.outputs),
            };
        }
        self.change = Some(change);
    }

    fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.display.sync(&self.handle, Asked(self.asked));
        self.asked
    }

    /// Gives every output that is wanted a surface.
    fn sizing(&mut self, outputs: &[Wanted]) -> Stage {
        for wanted in outputs {
            let screen = self.screens.iter_mut().find(|screen| screen.is(&wanted.output));
            if let Some(screen) = screen {
                screen.furnish(&self.globals, &self.handle);
            }
        }
        Stage::Sizing { until: Instant::now() + SIZES_WITHIN }
    }

    /// Takes what is in hand as far as it goes now.
    pub(super) fn proceed(&mut self) {
        loop {
            let Some(change) = self.change.take().or_else(|| self.repair()) else { return };
            let Some(next) = self.step(change) else { continue };
            let (change, goes_on) = next;
            self.change = Some(change);
            if !goes_on {
                return;
            }
        }
    }

    /// One step; none when the change is done, `false` where it has to wait.
    fn step(&mut self, mut change: Change) -> Option<(Change, bool)> {
        match &change.stage {
            Stage::Asking { .. } => Some((change, false)),
            Stage::Sizing { until } => {
                let waits = self.are_sized(&change.outputs) || *until <= Instant::now();
                if !waits {
                    return Some((change, false));
                }
                self.paint(change)
            }
            Stage::Painting { painting, .. } => match painting.take() {
                None => Some((change, false)),
                Some(Ok(frames)) => Some((self.put_up(change, frames), true)),
                Some(Err(outcome)) => {
                    self.failed(change, outcome);
                    None
                }
            },
            Stage::Showing { outputs } => {
                let left: Vec<u32> =
                    outputs.iter().copied().filter(|&global| self.is_coming(global)).collect();
                if !left.is_empty() {
                    change.stage = Stage::Showing { outputs: left };
                    return Some((change, false));
                }
                self.done(change);
                None
            }
        }
    }

    fn are_sized(&self, outputs: &[Wanted]) -> bool {
        let mut named = outputs.iter().filter_map(|wanted| self.named(&wanted.output));
        named.all(|screen| screen.frame_size().is_some())
    }

    /// Begins to paint what is not there yet.
    fn paint(&mut self, mut change: Change) -> Option<(Change, bool)> {
        let (mut tasks, mut outputs, mut connected) = (Vec::new(), Vec::new(), 0);
        for wanted in &change.outputs {
            let screen = self.named(&wanted.output);
            let Some((screen, size)) = screen.and_then(|it| Some((it, it.frame_size()?))) else {
                continue;
            };
            connected += 1;
            if screen.surface.as_ref().is_some_and(|surface| !surface.shows(wanted, size)) {
                tasks.push(Task { wanted: wanted.clone(), size });
                outputs.push(screen.global);
            }
        }
        if connected == 0 && !change.outputs.is_empty() {
            let why = "none of the outputs is connected any more".to_owned();
            self.failed(change, Outcome::Refused(why));
            return None;
        }
        if tasks.is_empty() {
            return Some((self.put_up(change, Vec::new()), true));
        }
        match Painting::start(tasks) {
            Ok(painting) => change.stage = Stage::Painting { painting, outputs },
            Err(error) => {
                self.failed(change, Outcome::Refused(format!("cannot paint: {error}")));
                return None;
            }
        }
        Some((change, false))
    }

    /// Everything is painted: from here on it is what is shown.
    fn put_up(&mut self, mut change: Change, frames: Vec<Painted>) -> Change {
        if let Stage::Painting { painting, outputs } = &change.stage {
            for ((&global, task), painted) in outputs.iter().zip(&painting.tasks).zip(frames) {
                let (wanted, size) = (task.wanted.clone(), task.size);
                let Painted { frame, moves } = painted;
                let content = Content { wanted, size, frame: Some(frame), moves };
                let (transition, handle) = (&change.transition, self.handle.clone());
                self.with_surface(global, |surface, globals| {
                    surface.show(globals, content, transition, &handle);
                });
            }
        }
        self.outputs.clone_from(&change.outputs);
        let mut outputs = Vec::new();
        for wanted in &change.outputs {
            let screen = self.screens.iter_mut().find(|screen| screen.is(&wanted.output));
            let Some(screen) = screen else { continue };
            outputs.push(screen.global);
            if let Some(surface) = &mut screen.surface {
                surface.rename(wanted);
            }
        }
        change.stage = Stage::Showing { outputs };
        change
    }

    /// Whether something was put there that has not been on the screen yet.
    fn is_coming(&self, global: u32) -> bool {
        let screen = self.screens.iter().find(|screen| screen.global == global);
        let surface = screen.and_then(|screen| screen.surface.as_ref());
        surface.is_some_and(|surface| surface.content().is_some() && !surface.is_up)
    }

    /// What is not wanted any more goes now that all else is up.
    fn done(&mut self, change: Change) {
        self.tidy();
        if let Some(asker) = change.asker {
            let here = |wanted: &&Wanted| self.named(&wanted.output).is_some();
            let outputs = change.outputs.iter().filter(here).map(|it| it.output.clone()).collect();
            self.server.respond(asker, Outcome::Shown(outputs));
        }
    }

    fn failed(&mut self, change: Change, outcome: Outcome) {
        match change.asker {
            Some(asker) => {
                // What was prepared for it goes.
                self.tidy();
                self.server.respond(asker, outcome);
            }
            None => self.make_do(change),
        }
    }

    /// A change of our own, where outputs came or have another size than what is on them.
    fn repair(&mut self) -> Option<Change> {
        let needs = |wanted: &Wanted| {
            let screen = self.named(&wanted.output)?;
            let (surface, size) = (screen.surface.as_ref()?, screen.frame_size()?);
            (!surface.shows(wanted, size)).then_some(())
        };
        let is_needed = self.outputs.iter().any(|wanted| needs(wanted).is_some());
        let at_once =
            Transition { effect: Effect::None, duration: 0.0, easing: [0.0; 4], fps_max: 1 };
        is_needed.then(|| Change {
            asker: None,
            outputs: self.outputs.clone(),
            transition: at_once,
            stage: Stage::Sizing { until: Instant::now() },
        })
    }

    /// The file of a picture has gone: what was last seen of it is stretched, or there is the colour.
    fn make_do(&mut self, change: Change) {
        let Stage::Painting { painting, outputs } = &change.stage else { return };
        for (&global, task) in outputs.iter().zip(&painting.tasks) {
            let (wanted, size) = (task.wanted.clone(), task.size);
            let frame = self.last_frame(&wanted);
            let content = Content { wanted, size, frame, moves: false };
            let (transition, handle) = (&change.transition, self.handle.clone());
            self.with_surface(global, |surface, globals| {
                surface.show(globals, content, transition, &handle);
            });
        }
    }
}
