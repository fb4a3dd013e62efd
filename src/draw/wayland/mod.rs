//! Draws over Wayland: a surface on the background layer of each output.
//!
//! One thread owns the connection, the surfaces and the socket; only painting has threads of its own.
//! The thread sleeps until the compositor, the daemon or a deadline wakes it.

mod events;
mod fade;
mod output;
mod progress;
mod renderer;
mod surface;

use std::path::Path;

use wayland_client::Connection;
use wayland_client::globals::registry_queue_init;

use self::events::{Events, Globals};
use self::renderer::Renderer;
use super::message::Server;
use crate::compositor::wait_for_compositor;
use crate::process::confine;
use crate::sys::peer;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Carries out the requests over the socket, until the compositor exits.
pub(super) fn run(socket: &Path) -> Result<(), Error> {
    let connection = Connection::connect_to_env()?;
    let (list, mut queue) = registry_queue_init::<Events>(&connection)?;
    let mut globals = Globals::bind(&list, &queue.handle())?;
    globals.newer_is_below &= may_be_sway(&connection);
    let registry = list.registry().clone();
    let server = Server::bind(socket)?;
    // From here on, the process only writes to its log and below the directory of its socket.
    confine(socket.parent().into_iter().map(Path::to_owned))?;
    let mut renderer = Renderer::new(connection.display(), registry, globals, server);
    for global in list.contents().clone_list() {
        if global.interface == "wl_output" {
            renderer.add_output(global.name, global.version);
        }
    }
    let mut events = Events::default();
    loop {
        queue.dispatch_pending(&mut events)?;
        for event in events.take() {
            renderer.handle(event);
        }
        renderer.tick();
        renderer.receive();
        renderer.drop_unawaited();
        renderer.proceed();
        wait_for_compositor(&queue, &renderer.descriptors(), renderer.deadline())?;
    }
}

/// Whether the compositor is sway, or cannot be identified.
fn may_be_sway(connection: &Connection) -> bool {
    let name = peer(&connection.backend().poll_fd()).ok().and_then(|peer| {
        // A compositor with capabilities hides its executable, but not this name.
        std::fs::read_to_string(format!("/proc/{}/comm", peer.pid)).ok()
    });
    name.is_none_or(|name| name.contains("sway"))
}
