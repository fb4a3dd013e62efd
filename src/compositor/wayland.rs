//! Follows the outputs over Wayland: `wl_output` version 4 and `xdg_output`.
//!
//! Runs on the thread `outputs`. Reports a change only when it is complete: all of it was received
//! (`wl_output.done`), and the compositor has nothing more to report (a `wl_display.sync` is answered).

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use wayland_client::protocol::{wl_callback, wl_output, wl_registry};
use wayland_client::{Connection, Dispatch, Proxy, QueueHandle, WEnum, delegate_noop};
use wayland_protocols::xdg::xdg_output::zv1::client::{zxdg_output_manager_v1, zxdg_output_v1};
use wayland_protocols_wlr::output_management::v1::client::zwlr_output_manager_v1::ZwlrOutputManagerV1;
use wl_callback::WlCallback;
use wl_output::WlOutput;
use wl_registry::WlRegistry;
use zxdg_output_manager_v1::ZxdgOutputManagerV1;
use zxdg_output_v1::ZxdgOutputV1;

use super::output::Identity;
use super::output::scale;
use super::output::turned;
use super::wayland_wait::wait_for_compositor;
use super::{Error, Output, output_manager};
use crate::sys::Cancel;

/// Reports the outputs until the connection ends (an error) or the wait is cancelled. `socket` is the
/// path for further connections.
pub(super) fn follow(
    stream: UnixStream,
    socket: &Path,
    stop: &Cancel,
    tell: &mut dyn FnMut(Vec<Output>, bool),
) -> Result<(), Error> {
    let connection = Connection::from_socket(stream)?;
    let mut queue = connection.new_event_queue();
    let handle = queue.handle();
    connection.display().get_registry(&handle, ());
    let mut heard = Heard {
        changed: true,
        ..Heard::default()
    };
    loop {
        queue.dispatch_pending(&mut heard)?;
        if heard.settled() {
            heard.ask_for_makers(socket, stop);
            tell(heard.list(), heard.has_layers);
        }
        if heard.changed && !heard.asked {
            heard.changed = false;
            heard.asked = true;
            connection.display().sync(&handle, ());
        }
        wait_for_compositor(&queue, &[stop.as_fd()], None)?;
        if stop.is_cancelled() {
            return Ok(());
        }
    }
}

/// The state that the compositor has reported so far.
#[derive(Default)]
struct Heard {
    manager: Option<ZxdgOutputManagerV1>,
    /// The compositor offers wlr-layer-shell, on which backgrounds are drawn.
    has_layers: bool,
    /// The outputs, in the order in which they were reported.
    outputs: Vec<Head>,
    /// The compositor reports makers over `zwlr_output_manager_v1`.
    has_makers: bool,
    /// Something was reported since the last `sync`.
    changed: bool,
    /// A `sync` is not answered yet.
    asked: bool,
    /// The `sync` was answered, and nothing was reported in between.
    answered: bool,
}

impl Heard {
    fn settled(&mut self) -> bool {
        let answered = std::mem::take(&mut self.answered);
        // An output that lacks its `done` will change again.
        answered && !self.changed && !self.outputs.iter().any(|head| head.incomplete)
    }

    fn list(&self) -> Vec<Output> {
        self.outputs.iter().filter_map(Head::output).collect()
    }

    /// Asks for the makers of the outputs whose identity is incomplete.
    fn ask_for_makers(&mut self, socket: &Path, stop: &Cancel) {
        let is_open = |head: &Head| head.maker.is_none() && !head.identity().is_whole();
        if !self.has_makers || !self.outputs.iter().any(is_open) {
            return;
        }
        let makers = output_manager::ask(socket, stop).unwrap_or_else(|error| {
            log::debug!("cannot read the manufacturers of the outputs: {error}");
            BTreeMap::new()
        });
        for head in &mut self.outputs {
            head.maker = makers.get(&head.name()).cloned();
        }
    }

    fn head(&mut self, global: u32) -> Option<&mut Head> {
        self.changed = true;
        self.outputs.iter_mut().find(|head| head.global == global)
    }

    fn extend(&mut self, handle: &QueueHandle<Self>) {
        let Some(manager) = &self.manager else { return };
        for head in self
            .outputs
            .iter_mut()
            .filter(|head| head.extended.is_none())
        {
            head.extended = Some(manager.get_xdg_output(&head.proxy, handle, head.global));
        }
    }
}

/// One output as the compositor describes it.
struct Head {
    global: u32,
    proxy: WlOutput,
    extended: Option<ZxdgOutputV1>,
    /// Between the first event of a change and its `done`.
    incomplete: bool,
    name: Option<String>,
    description: Option<String>,
    /// Maker and model.
    made: (String, String),
    /// The identity that the output manager has reported.
    maker: Option<Identity>,
    position: (i32, i32),
    /// Width and height in pixels, millihertz.
    mode: Option<(i32, i32, i32)>,
    scale: i32,
    transform: u8,
    logical_position: Option<(i32, i32)>,
    logical_size: Option<(i32, i32)>,
}

impl Head {
    fn new(global: u32, proxy: WlOutput) -> Self {
        Self {
            global,
            // Before version 2 there is no `done`.
            incomplete: proxy.version() >= wl_output::EVT_DONE_SINCE,
            proxy,
            extended: None,
            name: None,
            description: None,
            made: Default::default(),
            maker: None,
            position: (0, 0),
            mode: None,
            scale: 1,
            transform: 0,
            logical_position: None,
            logical_size: None,
        }
    }

    fn name(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| format!("output-{}", self.global))
    }

    fn description(&self) -> String {
        self.description.clone().unwrap_or_else(|| self.name())
    }

    fn identity(&self) -> Identity {
        let (make, model) = &self.made;
        let maker = self.maker.as_ref().filter(|maker| maker.is_whole());
        let own = || Identity::described((make, model), &self.description(), &self.name());
        maker.cloned().unwrap_or_else(own)
    }

    /// `None` if it has no mode, and so shows nothing.
    fn output(&self) -> Option<Output> {
        let (width, height, millihertz) = self.mode?;
        let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
        let upright = turned((width, height), self.transform);
        let whole = u32::try_from(self.scale).unwrap_or(1).max(1);
        let logical = self.logical_size.and_then(|(w, h)| {
            Some((u32::try_from(w).ok()?, u32::try_from(h).ok()?)).filter(|&(w, h)| w > 0 && h > 0)
        });
        let (logical_width, logical_height) =
            logical.unwrap_or((upright.0 / whole, upright.1 / whole));
        let (x, y) = self.logical_position.unwrap_or(self.position);
        Some(Output {
            identity: self.identity(),
            description: self.description(),
            name: self.name(),
            width,
            height,
            x,
            y,
            logical_width,
            logical_height,
            scale: logical.map_or(f64::from(whole), |logical| scale(upright, logical)),
            refresh_rate: f64::from(millihertz) / 1000.0,
            transform: self.transform,
            primary: false,
            instance: self.global.into(),
            heads: Vec::new(),
        })
    }
}

impl Dispatch<WlRegistry, ()> for Heard {
    fn event(
        heard: &mut Self,
        registry: &WlRegistry,
        event: wl_registry::Event,
        (): &(),
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        match event {
            wl_registry::Event::Global {
                name,
                interface,
                version,
            } => {
                if interface == WlOutput::interface().name {
                    let proxy = registry.bind(name, version.min(4), handle, name);
                    heard.outputs.push(Head::new(name, proxy));
                } else if interface == ZxdgOutputManagerV1::interface().name {
                    heard.manager = Some(registry.bind(name, version.min(3), handle, ()));
                } else if interface == ZwlrOutputManagerV1::interface().name {
                    heard.has_makers = true;
                } else if interface == "zwlr_layer_shell_v1" {
                    heard.has_layers = true;
                } else {
                    return;
                }
                heard.extend(handle);
                heard.changed = true;
            }
            wl_registry::Event::GlobalRemove { name } => {
                let Some(at) = heard.outputs.iter().position(|head| head.global == name) else {
                    return;
                };
                let head = heard.outputs.remove(at);
                if let Some(extended) = head.extended {
                    extended.destroy();
                }
                if head.proxy.version() >= wl_output::REQ_RELEASE_SINCE {
                    head.proxy.release();
                }
                heard.changed = true;
            }
            _ => {}
        }
    }
}

impl Dispatch<WlOutput, u32> for Heard {
    fn event(
        heard: &mut Self,
        proxy: &WlOutput,
        event: wl_output::Event,
        global: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let Some(head) = heard.head(*global) else {
            return;
        };
        head.incomplete = proxy.version() >= wl_output::EVT_DONE_SINCE;
        match event {
            wl_output::Event::Geometry {
                x,
                y,
                transform,
                make,
                model,
                ..
            } => {
                head.position = (x, y);
                head.made = (make, model);
                let turned = match transform {
                    WEnum::Value(transform) => u32::from(transform),
                    WEnum::Unknown(number) => number,
                };
                head.transform = u8::try_from(turned)
                    .ok()
                    .filter(|&turned| turned < 8)
                    .unwrap_or(0);
            }
            wl_output::Event::Mode {
                flags: WEnum::Value(flags),
                width,
                height,
                refresh,
            } if flags.contains(wl_output::Mode::Current) => {
                head.mode = Some((width, height, refresh));
            }
            wl_output::Event::Scale { factor } => head.scale = factor,
            wl_output::Event::Name { name } => head.name = Some(name),
            wl_output::Event::Description { description } => head.description = Some(description),
            wl_output::Event::Done => head.incomplete = false,
            _ => {}
        }
    }
}

impl Dispatch<ZxdgOutputV1, u32> for Heard {
    fn event(
        heard: &mut Self,
        _: &ZxdgOutputV1,
        event: zxdg_output_v1::Event,
        global: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let Some(head) = heard.head(*global) else {
            return;
        };
        match event {
            zxdg_output_v1::Event::LogicalPosition { x, y } => head.logical_position = Some((x, y)),
            zxdg_output_v1::Event::LogicalSize { width, height } => {
                head.logical_size = Some((width, height));
            }
            // For a `wl_output` too old to report its name itself.
            zxdg_output_v1::Event::Name { name } => {
                head.name.get_or_insert(name);
            }
            zxdg_output_v1::Event::Description { description } => {
                head.description.get_or_insert(description);
            }
            _ => {}
        }
    }
}

delegate_noop!(Heard: ZxdgOutputManagerV1);

impl Dispatch<WlCallback, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &WlCallback,
        _: wl_callback::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        heard.asked = false;
        heard.answered = !heard.changed;
    }
}

#[cfg(test)]
mod tests;
