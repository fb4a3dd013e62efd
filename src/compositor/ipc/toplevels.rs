//! Follows windows over wlr-foreign-toplevel-management, on compositors without a socket that murald
//! knows.
//!
//! A window is on an output while the compositor says so: it leaves the output with its workspace. On
//! niri it does not, so niri is also asked which outputs show a window that fills them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use wayland_client::protocol::wl_callback::{self, WlCallback};
use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle, event_created_child};
use wayland_protocols_wlr::foreign_toplevel::v1::client::{
    zwlr_foreign_toplevel_handle_v1 as toplevel, zwlr_foreign_toplevel_manager_v1 as manager,
};

use super::niri::Niri;
use crate::compositor::wayland_wait::wait_for_compositor;
use crate::sys::{Cancel, connect};
use manager::ZwlrForeignToplevelManagerV1 as Manager;
use toplevel::ZwlrForeignToplevelHandleV1 as Toplevel;

pub(crate) struct Toplevels {
    queue: EventQueue<Windows>,
    windows: Windows,
    niri: Option<Niri>,
}

#[derive(Default)]
struct Windows {
    /// The outputs, with their numbers in the registry and their names.
    outputs: Vec<(u32, WlOutput, String)>,
    windows: Vec<Window>,
    /// A complete change was reported since the last call.
    changed: bool,
    /// The windows that were there at the start are known.
    are_known: bool,
}

struct Window {
    toplevel: Toplevel,
    outputs: Vec<WlOutput>,
    is_full_screen: bool,
}

impl Toplevels {
    /// Connects to the compositor. If it lacks the protocol, there are no windows.
    pub(super) fn open(socket: &Path, niri: Option<Niri>) -> Option<Self> {
        let connection = Connection::from_socket(connect(socket).ok()?).ok()?;
        let queue = connection.new_event_queue();
        connection.display().get_registry(&queue.handle(), ());
        connection.display().sync(&queue.handle(), true);
        Some(Self {
            queue,
            windows: Windows::default(),
            niri,
        })
    }

    /// Waits until this may have changed, and returns the outputs with a window that is full screen.
    pub(super) fn covered(&mut self, cancel: &Cancel) -> io::Result<BTreeSet<String>> {
        loop {
            self.queue
                .dispatch_pending(&mut self.windows)
                .map_err(io::Error::other)?;
            if self.windows.are_known && std::mem::take(&mut self.windows.changed) {
                let mut covered = self.windows.covered();
                if let Some(niri) = self.niri.as_ref().filter(|_| !covered.is_empty()) {
                    let filled = niri.filled(cancel)?;
                    covered.retain(|output| filled.contains(output));
                }
                return Ok(covered);
            }
            wait_for_compositor(&self.queue, &[cancel.as_fd()], None).map_err(io::Error::other)?;
            if cancel.is_cancelled() {
                return Err(io::Error::other("cancelled"));
            }
        }
    }
}

impl Windows {
    fn covered(&self) -> BTreeSet<String> {
        let full = self.windows.iter().filter(|window| window.is_full_screen);
        let outputs: Vec<&WlOutput> = full.flat_map(|window| &window.outputs).collect();
        let covered = self
            .outputs
            .iter()
            .filter(|(_, output, _)| outputs.contains(&output));
        covered.map(|(.., name)| name.clone()).collect()
    }
}

impl Dispatch<WlRegistry, ()> for Windows {
    fn event(
        windows: &mut Self,
        registry: &WlRegistry,
        event: wl_registry::Event,
        (): &(),
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        if let wl_registry::Event::GlobalRemove { name } = event {
            for (_, gone, _) in windows
                .outputs
                .extract_if(.., |(number, ..)| *number == name)
            {
                for window in &mut windows.windows {
                    window.outputs.retain(|on| *on != gone);
                }
            }
            return;
        }
        let wl_registry::Event::Global {
            name,
            interface,
            version,
        } = event
        else {
            return;
        };
        if interface == WlOutput::interface().name {
            let output = registry.bind(name, version.min(4), handle, ());
            windows.outputs.push((name, output, String::new()));
        } else if interface == Manager::interface().name {
            registry.bind::<Manager, _, _>(name, version.min(3), handle, ());
        }
    }
}

impl Dispatch<WlCallback, bool> for Windows {
    /// After the first answer all globals are bound, after the second they have reported their windows.
    fn event(
        windows: &mut Self,
        _: &WlCallback,
        _: wl_callback::Event,
        &is_first: &bool,
        connection: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        if is_first {
            connection.display().sync(handle, false);
        } else {
            (windows.are_known, windows.changed) = (true, true);
        }
    }
}

impl Dispatch<WlOutput, ()> for Windows {
    fn event(
        windows: &mut Self,
        proxy: &WlOutput,
        event: wl_output::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let wl_output::Event::Name { name } = event else {
            return;
        };
        let known = windows
            .outputs
            .iter_mut()
            .find(|(_, output, _)| output == proxy);
        known
            .into_iter()
            .for_each(|(.., known)| known.clone_from(&name));
        windows.changed = true;
    }
}

impl Dispatch<Manager, ()> for Windows {
    fn event(
        windows: &mut Self,
        _: &Manager,
        event: manager::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let manager::Event::Toplevel { toplevel } = event {
            let window = Window {
                toplevel,
                outputs: Vec::new(),
                is_full_screen: false,
            };
            windows.windows.push(window);
        }
    }

    event_created_child!(Self, Manager, [manager::EVT_TOPLEVEL_OPCODE => (Toplevel, ())]);
}

impl Dispatch<Toplevel, ()> for Windows {
    fn event(
        windows: &mut Self,
        proxy: &Toplevel,
        event: toplevel::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let is_it = |window: &Window| window.toplevel == *proxy;
        let Some(at) = windows.windows.iter().position(is_it) else {
            return;
        };
        let window = &mut windows.windows[at];
        match event {
            toplevel::Event::OutputEnter { output } => window.outputs.push(output),
            toplevel::Event::OutputLeave { output } => window.outputs.retain(|on| *on != output),
            toplevel::Event::State { state } => {
                let is = |wanted: toplevel::State| {
                    state
                        .chunks(4)
                        .any(|one| *one == (wanted as u32).to_ne_bytes())
                };
                window.is_full_screen =
                    is(toplevel::State::Fullscreen) && !is(toplevel::State::Minimized);
            }
            toplevel::Event::Done => windows.changed = true,
            toplevel::Event::Closed => {
                windows.windows.remove(at).toplevel.destroy();
                windows.changed = true;
            }
            _ => {}
        }
    }
}
