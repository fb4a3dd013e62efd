//! Who made an output, as `zwlr_output_manager_v1` tells: beside what outputs say of themselves, which
//! has no serial number. Runs in the thread `outputs`; it manages nothing.

use wayland_client::{Connection, Dispatch, Proxy, QueueHandle, event_created_child};
use wayland_protocols_wlr::output_management::v1::client::{
    zwlr_output_head_v1, zwlr_output_manager_v1, zwlr_output_mode_v1,
};
use zwlr_output_head_v1::ZwlrOutputHeadV1;
use zwlr_output_manager_v1::ZwlrOutputManagerV1;
use zwlr_output_mode_v1::ZwlrOutputModeV1;

use super::identity::Identity;
use super::wayland::Heard;

impl Dispatch<ZwlrOutputManagerV1, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &ZwlrOutputManagerV1,
        event: zwlr_output_manager_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let zwlr_output_manager_v1::Event::Head { head } = event {
            heard.heads.push((head, String::new(), Identity::default()));
            heard.changed = true;
        }
    }

    event_created_child!(Self, ZwlrOutputManagerV1, [
        zwlr_output_manager_v1::EVT_HEAD_OPCODE => (ZwlrOutputHeadV1, ()),
    ]);
}

impl Dispatch<ZwlrOutputHeadV1, ()> for Heard {
    fn event(
        heard: &mut Self,
        proxy: &ZwlrOutputHeadV1,
        event: zwlr_output_head_v1::Event,
        (): &(),
        connection: &Connection,
        _: &QueueHandle<Self>,
    ) {
        use zwlr_output_head_v1::Event;
        let Some(at) = heard.heads.iter().position(|(head, ..)| head == proxy) else { return };
        let (_, own_name, identity) = &mut heard.heads[at];
        match event {
            Event::Name { name } => *own_name = name,
            Event::Make { make } => identity.make = make,
            Event::Model { model } => identity.model = model,
            Event::SerialNumber { serial_number } => identity.serial = serial_number,
            Event::Finished => {
                heard.heads.remove(at);
                match proxy.version() >= zwlr_output_head_v1::REQ_RELEASE_SINCE {
                    true => proxy.release(),
                    false => forget(proxy, connection),
                }
            }
            // The rest is what outputs themselves say.
            _ => return,
        }
        heard.changed = true;
    }

    event_created_child!(Self, ZwlrOutputHeadV1, [
        zwlr_output_head_v1::EVT_MODE_OPCODE => (ZwlrOutputModeV1, ()),
    ]);
}

impl Dispatch<ZwlrOutputModeV1, ()> for Heard {
    fn event(
        _: &mut Self,
        proxy: &ZwlrOutputModeV1,
        event: zwlr_output_mode_v1::Event,
        (): &(),
        connection: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if !matches!(event, zwlr_output_mode_v1::Event::Finished) {
            return;
        }
        match proxy.version() >= zwlr_output_mode_v1::REQ_RELEASE_SINCE {
            true => proxy.release(),
            false => forget(proxy, connection),
        }
    }
}

/// Of a version that has no word for it, what is over is only forgotten here: the compositor gives its
/// number to the next, which would end the connection.
fn forget(proxy: &impl Proxy, connection: &Connection) {
    connection.backend().destroy_object(&proxy.id()).ok();
}
