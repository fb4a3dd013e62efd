//! Drawing over Wayland: a surface on the background layer of each output.
//!
//! One thread owns the connection, the surfaces and the socket; only painting has threads of its own.
//! It sleeps until the compositor, the daemon or a deadline wakes it: at rest it does nothing.

mod change;
mod events;
mod fade;
mod globals;
mod screen;
mod size;
mod surface;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayland_client::backend::WaylandError;
use wayland_client::globals::registry_queue_init;
use wayland_client::protocol::wl_display::WlDisplay;
use wayland_client::protocol::wl_registry::WlRegistry;
use wayland_client::{Connection, EventQueue, QueueHandle};

use self::change::Change;
use self::globals::Globals;
use self::screen::Screen;
use self::surface::Surface;
use super::message::Wanted;
use super::server::Server;
use super::storage::Storage;

type Error = Box<dyn std::error::Error + Send + Sync>;

pub(super) struct State {
    display: WlDisplay,
    handle: QueueHandle<Self>,
    globals: Globals,
    server: Server,
    screens: Vec<Screen>,
    /// What is shown, also for outputs that are away.
    outputs: Vec<Wanted>,
    change: Option<Change>,
    /// What was last seen on outputs that are away.
    away: BTreeMap<String, Arc<Storage>>,
    /// Questions to the compositor so far.
    asked: u64,
}

/// Shows what it is told over the socket, until the compositor ends.
pub(super) fn run(socket: &Path) -> Result<(), Error> {
    let connection = Connection::connect_to_env()?;
    let (list, mut queue) = registry_queue_init::<State>(&connection)?;
    let handle = queue.handle();
    let globals = Globals::bind(&list, &handle)?;
    let mut state = State {
        display: connection.display(),
        handle: handle.clone(),
        globals,
        server: Server::bind(socket)?,
        screens: Vec::new(),
        outputs: Vec::new(),
        change: None,
        away: BTreeMap::new(),
        asked: 0,
    };
    let registry = list.registry();
    for global in list.contents().clone_list() {
        if global.interface == "wl_output" {
            state.output_came(registry, global.name, global.version, &handle);
        }
    }
    loop {
        queue.dispatch_pending(&mut state)?;
        state.tick();
        for (client, request) in state.server.receive() {
            state.request(client, request);
        }
        state.drop_unawaited();
        state.proceed();
        state.wait(&queue)?;
    }
}

impl State {
    /// Sends what is to be sent, and waits for whatever comes first.
    fn wait(&self, queue: &EventQueue<Self>) -> Result<(), Error> {
        let mut wanted = PollFlags::IN;
        match queue.flush() {
            // The socket is full: the rest when it takes more.
            Err(WaylandError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                wanted |= PollFlags::OUT;
            }
            flushed => flushed?,
        }
        let Some(guard) = queue.prepare_read() else { return Ok(()) };
        let connection = guard.connection_fd();
        let mut fds = vec![PollFd::new(&connection, wanted)];
        fds.extend(
            self.descriptors().into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        let left = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if fds[0].revents().difference(PollFlags::OUT).is_empty() {
            return Ok(());
        }
        match guard.read() {
            Err(WaylandError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                Ok(())
            }
            read => Ok(read.map(drop)?),
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let painting = self.change.as_ref().and_then(Change::painting);
        let surfaces = self.screens.iter().filter_map(|screen| screen.surface.as_ref());
        let films = surfaces.filter_map(Surface::film).map(AsFd::as_fd);
        let all = self.server.descriptors().into_iter().chain(painting.map(|it| it.as_fd()));
        all.chain(films).collect()
    }

    fn deadline(&self) -> Option<Instant> {
        let surfaces = self.screens.iter().filter_map(|screen| screen.surface.as_ref());
        let change = self.change.as_ref().and_then(Change::deadline);
        surfaces.filter_map(Surface::deadline).chain(change).min()
    }

    fn tick(&mut self) {
        let now = Instant::now();
        for surface in self.screens.iter_mut().filter_map(|screen| screen.surface.as_mut()) {
            surface.tick(&self.globals, now, &self.handle);
            if surface.film().is_some() {
                surface.play(&self.globals, now, &self.handle);
            }
        }
    }

    fn screen(&mut self, global: u32) -> Option<&mut Screen> {
        self.screens.iter_mut().find(|screen| screen.global == global)
    }

    fn named(&self, name: &str) -> Option<&Screen> {
        self.screens.iter().find(|screen| screen.is(name))
    }

    /// Does something with the surface of an output, if it still has one.
    fn with_surface(&mut self, global: u32, act: impl FnOnce(&mut Surface, &Globals)) {
        let screen = self.screens.iter_mut().find(|screen| screen.global == global);
        if let Some(surface) = screen.and_then(|screen| screen.surface.as_mut()) {
            act(surface, &self.globals);
        }
    }

    fn output_came(
        &mut self,
        registry: &WlRegistry,
        global: u32,
        version: u32,
        handle: &QueueHandle<Self>,
    ) {
        let output = registry.bind(global, version.min(4), handle, global);
        self.screens.push(Screen::new(global, output));
    }

    /// All is known of an output that came or changed.
    fn output_told(&mut self, global: u32) {
        let Some(screen) = self.screens.iter_mut().find(|screen| screen.global == global) else {
            return;
        };
        if self.outputs.iter().any(|wanted| screen.is(&wanted.output)) {
            screen.furnish(&self.globals, &self.handle);
        }
    }

    fn output_gone(&mut self, global: u32) {
        let Some(at) = self.screens.iter().position(|screen| screen.global == global) else {
            return;
        };
        let screen = self.screens.remove(at);
        let content = screen.surface.as_ref().and_then(Surface::content);
        let frame = content.and_then(|content| content.frame.clone());
        if let (Some(name), Some(frame)) = (&screen.name, frame) {
            self.away.insert(name.clone(), frame);
        }
    }

    /// What was last seen of a picture: here before, or elsewhere now.
    fn last_frame(&self, wanted: &Wanted) -> Option<Arc<Storage>> {
        let own = self.named(&wanted.output).into_iter();
        let all = own.chain(&self.screens).filter_map(|screen| screen.surface.as_ref()?.content());
        let mut same = all.filter(|content| content.wanted.looks_like(wanted));
        let shown = same.find_map(|content| content.frame.clone());
        shown.or_else(|| self.away.get(&wanted.output).cloned())
    }

    /// Lets go of what is not wanted.
    fn tidy(&mut self) {
        let is_wanted = |name: &str| self.outputs.iter().any(|wanted| wanted.output == name);
        for screen in &mut self.screens {
            if !screen.name.as_deref().is_some_and(is_wanted) {
                screen.surface = None;
            }
        }
        self.away.retain(|name, _| is_wanted(name));
    }
}
