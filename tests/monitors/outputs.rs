//! Compares the outputs that murald finds with those that real compositors report.

use std::os::unix::fs::symlink;

use murald::internals::compositor::{Compositor, Identity, Output, Outputs, Session, Watch};
use murald::internals::kernel::Kernel;
use murald::internals::paths::Env;
use murald::internals::thread::{Deaths, Spawner};
use serde_json::Value;

use crate::desktop::{Desktop, wait_for, wait_until};
use crate::support::TestDaemon;

fn watch(env: &Env) -> (Watch, Outputs, Deaths) {
    let (spawner, deaths) = Spawner::new();
    let kernel = Kernel::start(&spawner).unwrap();
    let watch = Watch::start(&spawner, &kernel, None, env).unwrap();
    let outputs = watch.outputs();
    (watch, outputs, deaths)
}

fn names(outputs: &Outputs) -> Vec<String> {
    outputs
        .list()
        .iter()
        .map(|output| output.name.clone())
        .collect()
}

/// The outputs of `swaymsg -t get_outputs`, in murald's terms; `scale` is what was set.
fn sway_outputs(desktop: &Desktop) -> Vec<Output> {
    let json = desktop.output("swaymsg", &["-r", "-t", "get_outputs"]);
    let all: Vec<Value> = serde_json::from_str(&json).unwrap();
    // Sway rotates clockwise, wl_output counter-clockwise.
    let turned = [
        "normal",
        "270",
        "180",
        "90",
        "flipped",
        "flipped-270",
        "flipped-180",
        "flipped-90",
    ];
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let place = |value: &Value| i32::try_from(value.as_i64().unwrap()).unwrap();
    let output = |o: &Value| Output {
        name: o["name"].as_str().unwrap().to_owned(),
        description: String::new(),
        width: number(&o["current_mode"]["width"]),
        height: number(&o["current_mode"]["height"]),
        x: place(&o["rect"]["x"]),
        y: place(&o["rect"]["y"]),
        logical_width: number(&o["rect"]["width"]),
        logical_height: number(&o["rect"]["height"]),
        scale: o["scale"].as_f64().unwrap(),
        refresh_rate: o["current_mode"]["refresh"].as_f64().unwrap() / 1000.0,
        transform: turned
            .iter()
            .position(|t| o["transform"] == **t)
            .unwrap()
            .try_into()
            .unwrap(),
        primary: false,
        identity: Identity::default(),
        instance: 0,
        heads: Vec::new(),
    };
    all.iter()
        .filter(|o| o["active"] == true)
        .map(output)
        .collect()
}

fn agree(desktop: &Desktop, outputs: &Outputs) {
    let sorted = |mut list: Vec<Output>| {
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    };
    let ours = || {
        let plain = |o: &Output| Output {
            description: String::new(),
            identity: Identity::default(),
            instance: 0,
            heads: Vec::new(),
            ..o.clone()
        };
        sorted(outputs.list().iter().map(plain).collect())
    };
    // Newer versions of sway answer before the change is done.
    wait_for("its outputs", || {
        let (ours, theirs) = (ours(), sorted(sway_outputs(desktop)));
        if ours == theirs {
            Ok(())
        } else {
            Err((ours, theirs))
        }
    });
}

#[test]
fn outputs_of_sway_are_listed() {
    let desktop = Desktop::wayland(&["3"]);
    let (_watch, outputs, _deaths) = watch(&desktop.env());
    wait_until("three outputs", || outputs.list().len() == 3);
    assert_eq!(
        outputs.session().map(|s| s.compositor()),
        Some(Compositor::Wayland)
    );
    assert!(
        outputs
            .list()
            .iter()
            .all(|output| !output.description.is_empty())
    );
    agree(&desktop, &outputs);
    let changes = [
        "output HEADLESS-1 scale 1.5",
        "output HEADLESS-2 transform 90",
        "output HEADLESS-3 transform flipped-270 scale 2 position 5000 -300",
        "output HEADLESS-1 mode --custom 2256x1504@60Hz scale 1.25",
        "output HEADLESS-2 position -4000 17",
    ];
    for change in changes {
        let before = sway_outputs(&desktop);
        desktop.output("swaymsg", &["-q", change]);
        wait_until(change, || sway_outputs(&desktop) != before);
        agree(&desktop, &outputs);
    }
}

#[test]
fn outputs_are_plugged_and_unplugged_over_wayland() {
    let desktop = Desktop::wayland(&["--pluggable", "1280x720"]);
    let (_watch, outputs, _deaths) = watch(&desktop.env());
    wait_until("the first output", || names(&outputs) == ["WL-1"]);
    let ring = outputs.subscribe();
    let second = desktop.run("plug", &["800x600"]);
    agree(&desktop, &outputs);
    assert!(ring.try_recv().is_ok());
    desktop.run("unplug", &["WL-1"]);
    wait_until("the first is gone", || names(&outputs) == [second.as_str()]);
    desktop.run("unplug", &[&second]);
    wait_until("none is left", || outputs.list().is_empty());
    assert!(outputs.session().is_some());
    desktop.output("swaymsg", &["-q", "create_output"]);
    wait_until("a third", || outputs.list().len() == 1);
}

#[test]
fn connection_outlives_hot_plugged_monitors() {
    let desktop = Desktop::wayland(&["--pluggable", "640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let connected = || {
        let monitors = daemon.client().get("/monitors").ok();
        monitors.as_array().unwrap().len()
    };
    for _ in 0..4 {
        let another = desktop.run("plug", &["800x600"]);
        wait_until("another monitor", || connected() == 2);
        desktop.run("unplug", &[&another]);
        wait_until("it is gone", || connected() == 1);
    }
    let log = daemon.log();
    assert!(
        !log.contains("lost the connection to the compositor"),
        "{log}"
    );
}

#[test]
fn compositor_that_restarts_is_found_again() {
    let place = tempfile::tempdir().unwrap();
    let named = place.path().join("wayland-1");
    let env = Env::from([
        ("XDG_RUNTIME_DIR", place.path().to_str().unwrap()),
        ("WAYLAND_DISPLAY", "wayland-1"),
    ]);
    let (watch, outputs, deaths) = watch(&env);
    for count in ["1", "2"] {
        assert!(outputs.session().is_none() && outputs.list().is_empty());
        let desktop = Desktop::wayland(&[count]);
        let directory = desktop.var("XDG_RUNTIME_DIR").unwrap();
        let socket = format!("{directory}/{}", desktop.var("WAYLAND_DISPLAY").unwrap());
        let ring = outputs.subscribe();
        symlink(socket, &named).unwrap();
        wait_until("its outputs", || outputs.list().len().to_string() == count);
        assert!(ring.try_recv().is_ok());
        assert_eq!(
            outputs.session(),
            Some(Session::Wayland {
                socket: named.clone()
            })
        );
        drop(desktop);
        wait_until("nothing", || outputs.session().is_none());
        assert!(ring.try_recv().is_ok());
        std::fs::remove_file(&named).unwrap();
    }
    drop(watch);
    assert!(deaths.try_recv().is_err());
}

/// `+NAME WIDTHxHEIGHT+X+Y *` for each of `xrandr --listmonitors`, in its order.
fn xrandr_monitors(desktop: &Desktop) -> Vec<String> {
    let text = desktop.output("xrandr", &["--listmonitors"]);
    let monitor = |line: &str| {
        // " 0: +*DUMMY0 1024/270x768/203+0+0  DUMMY0"
        let mut words = line.split_whitespace().skip(1);
        let (name, place) = (words.next().unwrap(), words.next().unwrap());
        let primary = if name.contains('*') { " *" } else { "" };
        let name = name.trim_start_matches(['+', '*']);
        let (size, position) = place.split_once('+').unwrap();
        let (width, height) = size.split_once('x').unwrap();
        let pixels = |side: &str| side.split('/').next().unwrap().to_owned();
        format!(
            "{name} {}x{}+{position}{primary}",
            pixels(width),
            pixels(height)
        )
    };
    text.lines().skip(1).map(monitor).collect()
}

fn shown(outputs: &Outputs) -> Vec<String> {
    let line = |o: &Output| {
        let primary = if o.primary { " *" } else { "" };
        let (width, height) = (o.logical_width, o.logical_height);
        format!("{} {width}x{height}+{}+{}{primary}", o.name, o.x, o.y)
    };
    outputs.list().iter().map(line).collect()
}

#[track_caller]
fn agree_x11(desktop: &Desktop, outputs: &Outputs) {
    let theirs = xrandr_monitors(desktop);
    wait_until(&format!("{theirs:?}"), || shown(outputs) == theirs);
}

#[test]
fn monitors_of_an_x_server_are_listed() {
    let desktop = Desktop::x11(&["3"]);
    let (_watch, outputs, _deaths) = watch(&desktop.env());
    wait_until("three monitors", || outputs.list().len() == 3);
    agree_x11(&desktop, &outputs);
    let first = outputs.list()[0].clone();
    assert_eq!(
        (first.width, first.height, first.transform),
        (1920, 1080, 0)
    );
    assert!(
        matches!(outputs.session(), Some(Session::X11 { display }) if Some(display.as_str()) == desktop.var("DISPLAY"))
    );
    desktop.run("unplug", &["VIRTUAL-2"]);
    agree_x11(&desktop, &outputs);
    assert_eq!(outputs.list().len(), 2);
    let pid = desktop.var("DESKTOP_PID").unwrap();
    desktop.output("kill", &[pid]);
    wait_until("nothing", || outputs.session().is_none());
}

#[test]
fn monitors_are_plugged_and_unplugged_over_x11() {
    let desktop = Desktop::x11(&["--pluggable", "1024x768", "1280x720"]);
    let (_watch, outputs, _deaths) = watch(&desktop.env());
    wait_until("two monitors", || outputs.list().len() == 2);
    agree_x11(&desktop, &outputs);
    assert!((outputs.list()[0].refresh_rate - 60.0).abs() < 0.1);
    desktop.output(
        "xrandr",
        &["--output", "DUMMY1", "--primary", "--pos", "0x800"],
    );
    agree_x11(&desktop, &outputs);
    let second = outputs
        .list()
        .iter()
        .find(|output| output.name == "DUMMY1")
        .cloned()
        .unwrap();
    assert!(second.primary);
    assert_eq!(
        (second.width, second.height, second.x, second.y),
        (1280, 720, 0, 800)
    );
    desktop.run("unplug", &["DUMMY0"]);
    agree_x11(&desktop, &outputs);
    let name = desktop.run("plug", &["800x450"]);
    agree_x11(&desktop, &outputs);
    assert!(names(&outputs).contains(&name));
}
