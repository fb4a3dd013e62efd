//! Carries out a change in stages: from the request to the first frames on the screen.
//!
//! Nothing on the screen changes before everything is painted, so a failure leaves the old picture.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::backdrop;
use super::super::message::ClientId;
use super::super::message::{Effect, Outcome, Request, Transition, Wanted};
use super::super::paint::{Painted, Task};
use super::super::painting::Painting;
use super::super::storage::Storage;
use super::events::SurfaceId;
use super::renderer::{PictureChange, Renderer, Stage};
use super::surface::{Content, Surface};

/// A surface that has no size within this time belongs to an output that is being disconnected.
const SIZES_WITHIN: Duration = Duration::from_secs(2);

const AT_ONCE: Transition = Transition {
    effect: Effect::None,
    duration: 0.0,
    easing: [0.0; 4],
    fps_max: 1,
};

impl Renderer {
    /// Starts the change that a client asks for. A change that another client waits for is superseded.
    pub(super) fn request(&mut self, client: ClientId, request: Request) {
        if let Some(PictureChange {
            client: Some(other),
            ..
        }) = self.change.take()
        {
            self.server.respond(other, Outcome::Superseded);
        }
        let is_takeable = |wanted: &Wanted| {
            self.named(&wanted.output)
                .is_none_or(|output| output.takes(wanted, &self.globals))
        };
        if !request.outputs.iter().all(is_takeable) {
            return self.server.respond(client, Outcome::Replace);
        }
        let all_known = request
            .outputs
            .iter()
            .all(|wanted| self.named(&wanted.output).is_some());
        let stage = if all_known {
            self.sizing(&request.outputs)
        } else {
            Stage::Syncing {
                sync: self.sync(),
                again: false,
            }
        };
        let Request {
            outputs,
            transition,
            ..
        } = request;
        self.change = Some(PictureChange {
            client: Some(client),
            outputs,
            transition,
            stage,
        });
    }

    /// Drops a change whose client has closed the connection, unless its pictures are shown already.
    pub(super) fn drop_unawaited(&mut self) {
        let is_shown = |change: &PictureChange| matches!(change.stage, Stage::Showing { .. });
        let is_unawaited = |change: &mut PictureChange| {
            !is_shown(change)
                && change
                    .client
                    .is_some_and(|client| !self.server.is_waiting(client))
        };
        if self.change.take_if(is_unawaited).is_some() {
            self.remove_unwanted();
        }
    }

    /// Handles the answer to the sync request of this number.
    pub(super) fn synced(&mut self, number: u64) {
        let Some(mut change) = self.change.take() else {
            return;
        };
        if let Stage::Syncing { sync, again } = change.stage
            && sync == number
        {
            change.stage = if again {
                self.sizing(&change.outputs)
            } else {
                Stage::Syncing {
                    sync: self.sync(),
                    again: true,
                }
            };
        }
        self.change = Some(change);
    }

    /// Gives each of these outputs its surfaces.
    fn sizing(&mut self, outputs: &[Wanted]) -> Stage {
        for wanted in outputs {
            let output = self
                .outputs
                .iter_mut()
                .find(|output| output.is(&wanted.output));
            if let Some(output) = output {
                output.create_surfaces(&self.globals, wanted);
            }
        }
        Stage::Sizing {
            until: Instant::now() + SIZES_WITHIN,
        }
    }

    /// Continues the change as far as possible without waiting.
    pub(super) fn proceed(&mut self) {
        loop {
            let Some(change) = self.change.take().or_else(|| self.repair()) else {
                return;
            };
            let Some(next) = self.step(change) else {
                continue;
            };
            let (change, goes_on) = next;
            self.change = Some(change);
            if !goes_on {
                return;
            }
        }
    }

    /// Makes one step. Returns `None` if the change is finished, and `false` if it has to wait.
    fn step(&mut self, mut change: PictureChange) -> Option<(PictureChange, bool)> {
        match &change.stage {
            Stage::Syncing { .. } => Some((change, false)),
            Stage::Sizing { until } => {
                let is_ready = self.are_sized(&change.outputs) || *until <= Instant::now();
                if !is_ready {
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
                let left: Vec<u32> = outputs
                    .iter()
                    .copied()
                    .filter(|&global| self.is_coming(global))
                    .collect();
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
        let mut named = outputs
            .iter()
            .filter_map(|wanted| self.named(&wanted.output));
        named.all(|output| output.frame_size().is_some())
    }

    /// Starts to paint the pictures that are not shown yet.
    fn paint(&mut self, mut change: PictureChange) -> Option<(PictureChange, bool)> {
        let mut tasks = Vec::new();
        let mut outputs = Vec::new();
        let mut connected = 0;
        for wanted in &change.outputs {
            let output = self.named(&wanted.output);
            let Some((output, size)) = output.and_then(|it| Some((it, it.frame_size()?))) else {
                continue;
            };
            connected += 1;
            // A repair, which has no client, would try for ever to paint a file that is missing.
            let improves =
                |_: &ClientId| output.surface.as_ref().is_some_and(Surface::has_substitute);
            if change.client.as_ref().is_some_and(improves) || !output.shows(wanted, size) {
                tasks.push(Task {
                    wanted: wanted.clone(),
                    size,
                });
                outputs.push(output.global);
            }
        }
        if connected == 0 && !change.outputs.is_empty() {
            let why = "none of these outputs is connected".to_owned();
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

    /// Shows the painted frames.
    fn put_up(&mut self, mut change: PictureChange, frames: Vec<Painted>) -> PictureChange {
        if let Stage::Painting { painting, outputs } = &change.stage {
            for ((&global, task), painted) in outputs.iter().zip(&painting.tasks).zip(frames) {
                let wanted = task.wanted.clone();
                let size = task.size;
                let Painted {
                    frame,
                    moves,
                    backdrop,
                } = painted;
                let content = Content {
                    wanted,
                    size,
                    frame: Some(frame),
                    moves,
                    is_substitute: false,
                };
                self.show(global, content, backdrop, &change.transition);
            }
        }
        self.shown.clone_from(&change.outputs);
        let mut outputs = Vec::new();
        for wanted in &change.outputs {
            let output = self
                .outputs
                .iter_mut()
                .find(|output| output.is(&wanted.output));
            let Some(output) = output else { continue };
            output.create_surfaces(&self.globals, wanted);
            outputs.push(output.global);
            if let Some(surface) = &mut output.surface {
                surface.rename(wanted);
            }
        }
        change.stage = Stage::Showing { outputs };
        change
    }

    /// Whether the output has a new picture that is not on the screen yet.
    fn is_coming(&self, global: u32) -> bool {
        let output = self.outputs.iter().find(|output| output.global == global);
        let surface = output.and_then(|output| output.surface.as_ref());
        surface.is_some_and(|surface| surface.content().is_some() && !surface.is_up)
    }

    /// Removes what is no longer wanted, now that the new pictures are shown, and answers.
    fn done(&mut self, change: PictureChange) {
        self.remove_unwanted();
        if let Some(client) = change.client {
            let here = |wanted: &&Wanted| self.named(&wanted.output).is_some();
            let outputs = change
                .outputs
                .iter()
                .filter(here)
                .map(|it| it.output.clone())
                .collect();
            self.server.respond(client, Outcome::Shown(outputs));
        }
    }

    fn failed(&mut self, change: PictureChange, outcome: Outcome) {
        match change.client {
            Some(client) => {
                // Also removes surfaces that were created for this change.
                self.remove_unwanted();
                self.server.respond(client, outcome);
            }
            None => self.make_do(change),
        }
    }

    /// Returns a change without a client, if an output was connected or has another size than its frame.
    fn repair(&mut self) -> Option<PictureChange> {
        let needs = |wanted: &Wanted| {
            let output = self.named(&wanted.output)?;
            (!output.shows(wanted, output.frame_size()?)).then_some(())
        };
        let is_needed = self.shown.iter().any(|wanted| needs(wanted).is_some());
        is_needed.then(|| PictureChange {
            client: None,
            outputs: self.shown.clone(),
            transition: AT_ONCE,
            stage: Stage::Sizing {
                until: Instant::now(),
            },
        })
    }

    /// Shows the last frame of a picture, stretched, or the fill colour, because its file cannot be
    /// painted.
    fn make_do(&mut self, change: PictureChange) {
        let Stage::Painting { painting, outputs } = &change.stage else {
            return;
        };
        for (&global, task) in outputs.iter().zip(&painting.tasks) {
            let wanted = task.wanted.clone();
            let size = task.size;
            let frame = self.last_frame(&wanted);
            let backdrop = frame.as_ref().zip(wanted.backdrop);
            let backdrop = backdrop.and_then(|(frame, effect)| backdrop::paint(frame, effect).ok());
            let content = Content {
                wanted,
                size,
                frame,
                moves: false,
                is_substitute: true,
            };
            self.show(global, content, backdrop, &change.transition);
        }
    }

    /// Shows a picture on an output, and then the backdrop, which is covered by it.
    fn show(
        &mut self,
        output: u32,
        content: Content,
        backdrop: Option<Arc<Storage>>,
        transition: &Transition,
    ) {
        let wanted = content.wanted.clone();
        let size = content.size;
        let wallpaper = SurfaceId {
            output,
            is_backdrop: false,
        };
        self.with_surface(wallpaper, |surface, globals| {
            if surface.has_substitute() || !surface.shows(&content.wanted, size) {
                surface.show(globals, content, transition);
            }
        });
        self.with_surface(
            SurfaceId {
                output,
                is_backdrop: true,
            },
            |surface, globals| {
                let content = Content {
                    wanted,
                    size,
                    frame: backdrop,
                    moves: false,
                    is_substitute: false,
                };
                surface.show(globals, content, &AT_ONCE);
            },
        );
    }
}
