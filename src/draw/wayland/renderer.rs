//! Keeps the outputs and the pictures on them, and handles the events that change them.
//! [`super::progress`] carries out changes.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use wayland_client::protocol::wl_display::WlDisplay;
use wayland_client::protocol::wl_registry::WlRegistry;

use super::super::message::{ClientId, Server};
use super::super::message::{Transition, Wanted};
use super::super::painting::Painting;
use super::super::storage::Storage;
use super::events::Globals;
use super::events::{Event, SurfaceId, Sync};
use super::output::DrawnOutput;
use super::surface::Surface;

pub(super) struct Renderer {
    display: WlDisplay,
    registry: WlRegistry,
    pub(super) globals: Globals,
    pub(super) server: Server,
    pub(super) outputs: Vec<DrawnOutput>,
    /// The wanted pictures, also on outputs that are disconnected.
    pub(super) shown: Vec<Wanted>,
    pub(super) change: Option<PictureChange>,
    /// The last frames of outputs that are disconnected.
    last_frames: BTreeMap<String, Arc<Storage>>,
    /// The number of sync requests so far.
    synced: u64,
}

impl Renderer {
    pub(super) fn new(
        display: WlDisplay,
        registry: WlRegistry,
        globals: Globals,
        server: Server,
    ) -> Self {
        Self {
            display,
            registry,
            globals,
            server,
            outputs: Vec::new(),
            shown: Vec::new(),
            change: None,
            last_frames: BTreeMap::new(),
            synced: 0,
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::OutputAdded { output, version } => self.add_output(output, version),
            Event::OutputRemoved { output } => self.remove_output(output),
            Event::OutputInfo { output, part } => {
                if self
                    .output(output)
                    .is_some_and(|output| output.update(part))
                {
                    self.output_described(output);
                }
            }
            Event::Configured {
                surface,
                serial,
                size,
            } => {
                self.with_surface(surface, |surface, globals| {
                    surface.configure(globals, (serial, size));
                });
            }
            Event::Closed { output } => {
                if let Some(output) = self.output(output) {
                    output.clear();
                    // The output is about to be removed: it gets no further surface.
                    output.is_known = false;
                }
            }
            Event::PreferredScale { surface, scale } => {
                self.with_surface(surface, |surface, _| surface.preferred = Some(scale));
            }
            Event::FrameDone(tag) => {
                self.with_surface(tag.surface, |surface, globals| {
                    surface.frame(globals, tag.number);
                });
            }
            Event::BufferReleased(tag) => {
                self.with_surface(tag.surface, |surface, globals| {
                    surface.released(globals, tag.number);
                });
            }
            Event::Synced(sync) => self.synced(sync.0),
        }
    }

    /// Starts the requests that have arrived over the socket.
    pub(super) fn receive(&mut self) {
        for (client, request) in self.server.receive() {
            self.request(client, request);
        }
    }

    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let painting = self.change.as_ref().and_then(PictureChange::painting);
        let surfaces = self
            .outputs
            .iter()
            .filter_map(|output| output.surface.as_ref());
        let animations = surfaces.filter_map(Surface::animation).map(AsFd::as_fd);
        let all = self
            .server
            .descriptors()
            .into_iter()
            .chain(painting.map(|it| it.as_fd()));
        all.chain(animations).collect()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let surfaces = self.outputs.iter().flat_map(DrawnOutput::surfaces);
        let change = self.change.as_ref().and_then(PictureChange::deadline);
        surfaces.filter_map(Surface::deadline).chain(change).min()
    }

    /// Does what is due without an event of the compositor.
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        for surface in self.outputs.iter_mut().flat_map(DrawnOutput::surfaces_mut) {
            surface.tick(&self.globals, now);
            if surface.animation().is_some() {
                surface.play(&self.globals, now);
            }
        }
    }

    fn output(&mut self, global: u32) -> Option<&mut DrawnOutput> {
        self.outputs
            .iter_mut()
            .find(|output| output.global == global)
    }

    pub(super) fn named(&self, name: &str) -> Option<&DrawnOutput> {
        self.outputs.iter().find(|output| output.is(name))
    }

    /// Calls `act` with a surface, if the output still has it.
    pub(super) fn with_surface(&mut self, id: SurfaceId, act: impl FnOnce(&mut Surface, &Globals)) {
        let output = self
            .outputs
            .iter_mut()
            .find(|output| output.global == id.output);
        let surface = output.and_then(|output| {
            if id.is_backdrop {
                output.backdrop.as_mut()
            } else {
                output.surface.as_mut()
            }
        });
        if let Some(surface) = surface {
            act(surface, &self.globals);
        }
    }

    pub(super) fn add_output(&mut self, global: u32, version: u32) {
        let output = self
            .registry
            .bind(global, version.min(4), &self.globals.handle, global);
        self.outputs.push(DrawnOutput::new(global, output));
    }

    /// Handles the complete description of an output that was added or changed.
    fn output_described(&mut self, global: u32) {
        let Some(output) = self
            .outputs
            .iter_mut()
            .find(|output| output.global == global)
        else {
            return;
        };
        if let Some(wanted) = self.shown.iter().find(|wanted| output.is(&wanted.output)) {
            output.create_surfaces(&self.globals, wanted);
        }
    }

    fn remove_output(&mut self, global: u32) {
        let Some(at) = self
            .outputs
            .iter()
            .position(|output| output.global == global)
        else {
            return;
        };
        let output = self.outputs.remove(at);
        let content = output.surface.as_ref().and_then(Surface::content);
        let frame = content.and_then(|content| content.frame.clone());
        if let (Some(name), Some(frame)) = (&output.name, frame) {
            self.last_frames.insert(name.clone(), frame);
        }
    }

    /// The last frame of a picture: of this output, or of another that shows the same.
    pub(super) fn last_frame(&self, wanted: &Wanted) -> Option<Arc<Storage>> {
        let own = self.named(&wanted.output).into_iter();
        let all = own
            .chain(&self.outputs)
            .filter_map(|output| output.surface.as_ref()?.content());
        let mut same = all.filter(|content| content.wanted.looks_like(wanted));
        let shown = same.find_map(|content| content.frame.clone());
        shown.or_else(|| self.last_frames.get(&wanted.output).cloned())
    }

    /// Removes the surfaces and frames of outputs that should show nothing.
    pub(super) fn remove_unwanted(&mut self) {
        let wanted = |name: &str| self.shown.iter().find(|wanted| wanted.output == name);
        for output in &mut self.outputs {
            match output.name.as_deref().and_then(wanted) {
                None => output.clear(),
                Some(Wanted { backdrop: None, .. }) => output.backdrop = None,
                Some(_) => {}
            }
        }
        self.last_frames.retain(|name, _| wanted(name).is_some());
    }

    /// Asks the compositor for a [`Event::Synced`]; returns the number of the request.
    pub(super) fn sync(&mut self) -> u64 {
        self.synced += 1;
        self.display.sync(&self.globals.handle, Sync(self.synced));
        self.synced
    }
}

pub(super) struct PictureChange {
    /// `None` if the cause is an output that was connected or changed.
    pub(super) client: Option<ClientId>,
    pub(super) outputs: Vec<Wanted>,
    pub(super) transition: Transition,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// An output that was named is not known yet. Two sync requests are sent, one for the outputs and
    /// one for their names; the number is that of the last request.
    Syncing { sync: u64, again: bool },
    /// Surfaces have no size yet.
    Sizing { until: Instant },
    /// Pictures are painted, one task for each of these outputs.
    Painting {
        painting: Painting,
        outputs: Vec<u32>,
    },
    /// The first frames on these outputs are not on the screen yet.
    Showing { outputs: Vec<u32> },
}

impl PictureChange {
    /// The painting that the loop waits for.
    pub(super) fn painting(&self) -> Option<&Painting> {
        match &self.stage {
            Stage::Painting { painting, .. } => Some(painting),
            Stage::Syncing { .. } | Stage::Sizing { .. } | Stage::Showing { .. } => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Sizing { until } => Some(until),
            Stage::Syncing { .. } | Stage::Painting { .. } | Stage::Showing { .. } => None,
        }
    }
}
