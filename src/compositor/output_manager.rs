//! Reads the maker and serial number of outputs over `zwlr_output_manager_v1`, which `wl_output` lacks.
//!
//! Runs on the thread `outputs` over a connection of its own, which is closed after the answer:
//! compositors with wlroots 0.20 fail an assertion if an output is switched off and on while a client
//! has its heads. Changes nothing.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use wayland_client::protocol::{wl_callback, wl_registry};
use wayland_client::{
    Connection, Dispatch, Proxy, QueueHandle, delegate_noop, event_created_child,
};
use wayland_protocols_wlr::output_management::v1::client::{
    zwlr_output_head_v1, zwlr_output_manager_v1, zwlr_output_mode_v1,
};
use wl_callback::WlCallback;
use wl_registry::WlRegistry;
use zwlr_output_head_v1::ZwlrOutputHeadV1;
use zwlr_output_manager_v1::ZwlrOutputManagerV1;
use zwlr_output_mode_v1::ZwlrOutputModeV1;

use super::Error;
use super::output::Identity;
use super::wayland_wait::wait_for_compositor;
use crate::sys::{Cancel, connect};

/// The time limit for the answer, which takes milliseconds. Outputs are reported without it, too.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Asks for the identities of all outputs; returns them by the outputs' names.
pub(super) fn ask(socket: &Path, stop: &Cancel) -> Result<BTreeMap<String, Identity>, Error> {
    let connection = Connection::from_socket(connect(socket)?)?;
    let mut queue = connection.new_event_queue();
    let handle = queue.handle();
    connection.display().get_registry(&handle, ());
    connection.display().sync(&handle, ());
    let mut heads = Heads::default();
    let until = Instant::now() + ANSWERS_WITHIN;
    while !heads.are_complete && !stop.is_cancelled() && Instant::now() < until {
        wait_for_compositor(&queue, &[stop.as_fd()], Some(until))?;
        queue.dispatch_pending(&mut heads)?;
    }
    Ok(heads
        .found
        .into_iter()
        .map(|(_, name, identity)| (name, identity))
        .collect())
}

#[derive(Default)]
struct Heads {
    is_bound: bool,
    are_complete: bool,
    found: Vec<(ZwlrOutputHeadV1, String, Identity)>,
}

impl Dispatch<WlRegistry, ()> for Heads {
    fn event(
        heads: &mut Self,
        registry: &WlRegistry,
        event: wl_registry::Event,
        (): &(),
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        let wl_registry::Event::Global {
            name,
            interface,
            version,
        } = event
        else {
            return;
        };
        if interface == ZwlrOutputManagerV1::interface().name {
            registry.bind::<ZwlrOutputManagerV1, _, _>(name, version.min(4), handle, ());
            heads.is_bound = true;
        }
    }
}

impl Dispatch<WlCallback, ()> for Heads {
    fn event(
        heads: &mut Self,
        _: &WlCallback,
        _: wl_callback::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        // All globals are known, so without a manager there is no answer.
        heads.are_complete |= !heads.is_bound;
    }
}

impl Dispatch<ZwlrOutputManagerV1, ()> for Heads {
    fn event(
        heads: &mut Self,
        _: &ZwlrOutputManagerV1,
        event: zwlr_output_manager_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            zwlr_output_manager_v1::Event::Head { head } => {
                heads.found.push((head, String::new(), Identity::default()));
            }
            zwlr_output_manager_v1::Event::Done { .. }
            | zwlr_output_manager_v1::Event::Finished => heads.are_complete = true,
            _ => {}
        }
    }

    event_created_child!(Self, ZwlrOutputManagerV1, [
        zwlr_output_manager_v1::EVT_HEAD_OPCODE => (ZwlrOutputHeadV1, ()),
    ]);
}

impl Dispatch<ZwlrOutputHeadV1, ()> for Heads {
    fn event(
        heads: &mut Self,
        proxy: &ZwlrOutputHeadV1,
        event: zwlr_output_head_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        use zwlr_output_head_v1::Event;
        let Some((_, own_name, identity)) = heads.found.iter_mut().find(|(head, ..)| head == proxy)
        else {
            return;
        };
        match event {
            Event::Name { name } => *own_name = name,
            Event::Make { make } => identity.make = make,
            Event::Model { model } => identity.model = model,
            Event::SerialNumber { serial_number } => identity.serial = serial_number,
            // `wl_output` reports the other properties.
            _ => {}
        }
    }

    event_created_child!(Self, ZwlrOutputHeadV1, [
        zwlr_output_head_v1::EVT_MODE_OPCODE => (ZwlrOutputModeV1, ()),
    ]);
}

delegate_noop!(Heads: ignore ZwlrOutputModeV1);
