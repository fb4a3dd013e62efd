//! Follows the monitors over X11: RandR 1.5, in the server's own order, which is that of Xinerama and
//! feh.
//!
//! Runs on the thread `outputs`.

use std::collections::HashMap;

use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::randr::{
    self, ConnectionExt as _, Crtc, GetCrtcInfoReply, GetOutputInfoReply, Mode, ModeFlag, ModeInfo,
    MonitorInfo, NotifyMask, Rotation,
};
use x11rb::protocol::xproto::{
    self, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Window,
};

use super::output::{Identity, edid_identity};
use super::x_server::{Server, X11Stream, XServer};
use super::{Error, Output, x_server};
use crate::sys::Cancel;

/// Reports the monitors. Returns an error when the connection ends or the wait is cancelled.
pub(super) fn follow(
    stream: X11Stream,
    stop: &Cancel,
    tell: &mut dyn FnMut(Vec<Output>, bool),
) -> Result<(), Error> {
    let connected = XServer::connect(stream, None, Some(stop.clone()))?;
    // Backgrounds are drawn on the root window, unless its pixels are indexes into a table of colours.
    let has_place = has_true_colors(connected.screen());
    let XServer { server, root, .. } = connected;
    let version = server.randr_query_version(1, 5)?.reply()?;
    if (version.major_version, version.minor_version) < (1, 5) {
        return Err("the X server has no RandR 1.5".into());
    }
    let changes = NotifyMask::SCREEN_CHANGE | NotifyMask::CRTC_CHANGE | NotifyMask::OUTPUT_CHANGE;
    server.randr_select_input(root, changes)?;
    // Only the root window's event reports monitors that a user has defined over outputs.
    let structure = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
    server.change_window_attributes(root, &structure)?;
    let mut instance = 0;
    loop {
        // Events are read before the query, since changes after it cause new events.
        while let Some(event) = server.poll_for_event()? {
            instance += u64::from(is_switch(&event));
        }
        tell(monitors(&server, root, instance)?, has_place);
        instance += u64::from(is_switch(&server.wait_for_event()?));
    }
}

fn has_true_colors(screen: &xproto::Screen) -> bool {
    let mut visuals = screen
        .allowed_depths
        .iter()
        .flat_map(|depth| &depth.visuals);
    let root = visuals.find(|visual| visual.visual_id == screen.root_visual);
    root.is_some_and(|visual| visual.class == xproto::VisualClass::TRUE_COLOR)
}

/// Whether a controller was switched on, off or over. The server has one picture for all monitors, so a
/// monitor that was disconnected and connected again concerns them all.
fn is_switch(event: &Event) -> bool {
    matches!(event, Event::RandrNotify(notify) if notify.sub_code == randr::Notify::CRTC_CHANGE)
}

fn monitors(server: &Server, root: Window, instance: u64) -> Result<Vec<Output>, Error> {
    let monitors = x_server::monitors(server, root)?;
    let resources = server.randr_get_screen_resources_current(root)?.reply()?;
    let modes: HashMap<Mode, ModeInfo> = resources
        .modes
        .iter()
        .map(|mode| (mode.id, *mode))
        .collect();
    let mut outputs = Vec::new();
    for (name, monitor) in monitors {
        let screen = Screen::from_monitor(server, &monitor, resources.config_timestamp)?;
        let output = output(name, &monitor, &screen, &modes);
        let heads = vec![outputs.len()];
        outputs.push(Output {
            instance,
            heads,
            ..output
        });
    }
    Ok(without_clones(outputs))
}

/// Merges monitors in the same place, which show the same pixels, into one output. It has the name of
/// the primary monitor, or else of the first.
fn without_clones(monitors: Vec<Output>) -> Vec<Output> {
    let place = |it: &Output| (it.x, it.y, it.logical_width, it.logical_height);
    let mut outputs: Vec<Output> = Vec::new();
    for monitor in monitors {
        match outputs
            .iter_mut()
            .find(|output| place(output) == place(&monitor))
        {
            Some(output) => {
                let heads = [output.heads.as_slice(), &monitor.heads].concat();
                if monitor.primary {
                    *output = monitor;
                }
                output.heads = heads;
            }
            None => outputs.push(monitor),
        }
    }
    outputs
}

/// The hardware that drives a monitor; empty for a monitor that is only defined over another.
#[derive(Default)]
struct Screen {
    crtc: Option<GetCrtcInfoReply>,
    identity: Identity,
}

impl Screen {
    fn from_monitor(server: &Server, monitor: &MonitorInfo, time: u32) -> Result<Self, Error> {
        let Some(&output) = monitor.outputs.first() else {
            return Ok(Self::default());
        };
        // An output or controller that is gone by now causes an error, which can be ignored because an
        // event follows.
        let Ok(info) = server.randr_get_output_info(output, time)?.reply() else {
            return Ok(Self::default());
        };
        let crtc = match info {
            GetOutputInfoReply { crtc, .. } if crtc != Crtc::default() => {
                server.randr_get_crtc_info(crtc, time)?.reply().ok()
            }
            _ => None,
        };
        let atom = server.intern_atom(true, b"EDID")?.reply()?.atom;
        let edid = if atom == u32::from(AtomEnum::NONE) {
            None
        } else {
            let any = u32::from(AtomEnum::ANY);
            let property =
                server.randr_get_output_property(output, atom, any, 0, 64, false, false)?;
            property.reply().ok().map(|property| property.data)
        };
        Ok(Self {
            crtc,
            identity: edid_identity(edid.as_deref().unwrap_or_default()),
        })
    }
}

fn output(
    name: String,
    monitor: &MonitorInfo,
    screen: &Screen,
    modes: &HashMap<Mode, ModeInfo>,
) -> Output {
    let crtc = screen.crtc.as_ref();
    let mode = crtc.and_then(|crtc| modes.get(&crtc.mode));
    let place = (monitor.x, monitor.y, monitor.width, monitor.height);
    // A monitor that a user has defined over a part of an output has no mode.
    let own = crtc.filter(|crtc| (crtc.x, crtc.y, crtc.width, crtc.height) == place);
    let (width, height) = match (own, mode) {
        (Some(_), Some(mode)) => (mode.width, mode.height),
        _ => (monitor.width, monitor.height),
    };
    let Identity { make, model, .. } = &screen.identity;
    let description = if model.is_empty() {
        name.clone()
    } else {
        format!("{make} {model}")
    };
    Output {
        name,
        identity: screen.identity.clone(),
        description,
        width: width.into(),
        height: height.into(),
        x: monitor.x.into(),
        y: monitor.y.into(),
        logical_width: monitor.width.into(),
        logical_height: monitor.height.into(),
        scale: 1.0,
        refresh_rate: mode.map_or(0.0, refresh_rate),
        transform: own.map_or(0, |crtc| transform(crtc.rotation)),
        primary: monitor.primary,
        instance: 0,
        heads: Vec::new(),
    }
}

/// Hz, as xrandr computes it.
fn refresh_rate(mode: &ModeInfo) -> f64 {
    let mut lines = f64::from(mode.vtotal);
    if mode.mode_flags.contains(ModeFlag::DOUBLE_SCAN) {
        lines *= 2.0;
    }
    if mode.mode_flags.contains(ModeFlag::INTERLACE) {
        lines /= 2.0;
    }
    let dots = lines * f64::from(mode.htotal);
    if dots == 0.0 {
        0.0
    } else {
        f64::from(mode.dot_clock) / dots
    }
}

/// The number that `wl_output.transform` has. Both rotate counter-clockwise, and reflect before they
/// rotate.
fn transform(rotation: Rotation) -> u8 {
    let quarters = match rotation {
        _ if rotation.contains(randr::Rotation::ROTATE90) => 1,
        _ if rotation.contains(randr::Rotation::ROTATE180) => 2,
        _ if rotation.contains(randr::Rotation::ROTATE270) => 3,
        _ => 0,
    };
    let (x, y) = (Rotation::REFLECT_X, Rotation::REFLECT_Y);
    match (rotation.contains(x), rotation.contains(y)) {
        (false, false) => quarters,
        // Both reflections are a half turn.
        (true, true) => (quarters + 2) % 4,
        (true, false) => 4 + quarters,
        (false, true) => 4 + (quarters + 2) % 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_have_the_numbers_of_wayland() {
        let check = |rotation: Rotation, expected| assert_eq!(transform(rotation), expected);
        check(Rotation::ROTATE0, 0);
        check(Rotation::ROTATE90, 1);
        check(Rotation::ROTATE270, 3);
        check(Rotation::ROTATE0 | Rotation::REFLECT_X, 4);
        check(Rotation::ROTATE0 | Rotation::REFLECT_Y, 6);
        check(
            Rotation::ROTATE90 | Rotation::REFLECT_X | Rotation::REFLECT_Y,
            3,
        );
    }

    #[test]
    fn refresh_rate_is_that_of_xrandr() {
        let check = |dot_clock, vtotal, mode_flags, expected: f64| {
            let mode = ModeInfo {
                dot_clock,
                htotal: 2200,
                vtotal,
                mode_flags,
                ..DEFAULT
            };
            assert!((refresh_rate(&mode) - expected).abs() < 0.01);
        };
        check(148_500_000, 1125, ModeFlag::HSYNC_POSITIVE, 60.0);
        check(74_250_000, 1125, ModeFlag::INTERLACE, 60.0);
        check(148_500_000, 0, ModeFlag::HSYNC_POSITIVE, 0.0);
    }

    const DEFAULT: ModeInfo = ModeInfo {
        id: 0,
        width: 0,
        height: 0,
        dot_clock: 0,
        hsync_start: 0,
        hsync_end: 0,
        htotal: 0,
        hskew: 0,
        vsync_start: 0,
        vsync_end: 0,
        vtotal: 0,
        name_len: 0,
        mode_flags: ModeFlag::HSYNC_POSITIVE,
    };
}
