//! A playlist follows its monitor to another connector, as the monitor is recognised by its EDID.

use serde_json::json;
use x11rb::connection::Connection;
use x11rb::protocol::randr::ConnectionExt as _;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt, PropMode};

use super::desktop::{Desktop, wait_until};
use super::{active, daemon, make, see_on_x11, start, tell};

/// A monitor's EDID (VESA E-EDID 1.4) with maker, model and serial number.
fn edid() -> Vec<u8> {
    let mut block = vec![0; 128];
    block[1..7].fill(255);
    block[8..10].copy_from_slice(&[0x10, 0xac]);
    block[12] = 7;
    block[72..77].copy_from_slice(&[0, 0, 0, 0xfc, 0]);
    block[77..90].copy_from_slice(b"MURALD 640\n  ");
    block
}

/// Connects a monitor with this EDID to a connector; an empty one stands for a monitor without EDID.
fn plug(desktop: &Desktop, connector: &str, monitor: &[u8]) {
    let (server, screen) = x11rb::connect(desktop.var("DISPLAY")).unwrap();
    let root = server.setup().roots[screen].root;
    let resources = server
        .randr_get_screen_resources_current(root)
        .unwrap()
        .reply()
        .unwrap();
    let is_it = |output: &&u32| {
        let info = server
            .randr_get_output_info(**output, resources.config_timestamp)
            .unwrap();
        info.reply().unwrap().name == connector.as_bytes()
    };
    let output = resources
        .outputs
        .iter()
        .find(is_it)
        .expect("a connector of this name");
    let atom = server
        .intern_atom(false, b"EDID")
        .unwrap()
        .reply()
        .unwrap()
        .atom;
    let kind = u32::from(AtomEnum::INTEGER);
    let length = monitor.len().try_into().unwrap();
    server
        .randr_change_output_property(*output, atom, kind, 8, PropMode::REPLACE, length, monitor)
        .unwrap()
        .check()
        .unwrap();
}

#[test]
fn playlist_follows_its_monitor_to_another_connector() {
    let desktop = Desktop::x11(&["--pluggable", "640x360", "640x360"]);
    desktop.output("xrandr", &["--output", "DUMMY1", "--off"]);
    plug(&desktop, "DUMMY0", &edid());
    let (daemon, ids) = daemon(&desktop, 2);
    let list = make(&daemon, "mine", json!({ "type": "manual" }), &ids);
    start(&daemon, list, &["DUMMY0"]);
    desktop.output("xrandr", &["--output", "DUMMY0", "--off"]);
    wait_until("no monitor", || {
        daemon.client().get("/monitors").ok() == json!([])
    });
    plug(&desktop, "DUMMY0", &[]);
    plug(&desktop, "DUMMY1", &edid());
    desktop.output(
        "xrandr",
        &[
            "--output",
            "DUMMY1",
            "--mode",
            "640x360-murald",
            "--pos",
            "0x0",
        ],
    );
    wait_until("the playlist on the other connector", || {
        active(&daemon)[0]["applied_to"] == json!(["DUMMY1"])
    });
    assert_eq!(active(&daemon)[0]["monitors"], json!(["DUMMY1"]));
    tell(&daemon, list, "next");
    see_on_x11(&desktop, "DUMMY1", 1);
}
