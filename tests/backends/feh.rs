//! Tests the real feh on X servers without a screen.

use std::path::Path;

use murald::internals::backends::Error;
use murald::internals::config::BackendName;

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;
use crate::wall::{BLACK, BLUE, GREEN, Pixels, RED, WHITE, Wall, near};

#[test]
fn each_monitor_shows_a_different_picture() {
    let wall = Wall::new(Desktop::x11(&["1280x720", "800x600", "640x480"]), 3);
    let mut feh = wall.backend(BackendName::Feh);
    let (red, green) = (wall.flat("red.png", RED), wall.flat("green.webp", GREEN));
    let odd = wall.flat("-b, #%20'\"\\\n$HOME.png", BLUE);
    let pictures = [
        ("VIRTUAL-1", &*red),
        ("VIRTUAL-2", &*green),
        ("VIRTUAL-3", &*odd),
    ];
    feh.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    for (output, color) in [
        ("VIRTUAL-1", RED),
        ("VIRTUAL-2", GREEN),
        ("VIRTUAL-3", BLUE),
    ] {
        wall.pixels(output).is_all(color);
    }
    // A file that cannot be read would move the others up.
    let gone = [
        pictures[0],
        ("VIRTUAL-2", Path::new("/nowhere.png")),
        pictures[2],
    ];
    assert!(matches!(
        feh.show(&wall.hang(&gone), &wall.cancel),
        Err(Error::File { .. })
    ));
    wall.pixels("VIRTUAL-3").is_all(BLUE);
    // A monitor without a picture is black, and the others keep theirs.
    feh.show(&wall.hang(&pictures[1..]), &wall.cancel).unwrap();
    for (output, color) in [
        ("VIRTUAL-1", BLACK),
        ("VIRTUAL-2", GREEN),
        ("VIRTUAL-3", BLUE),
    ] {
        wall.pixels(output).is_all(color);
    }
    feh.clear().unwrap();
    wall.pixels("VIRTUAL-2").is_all(BLACK);
}

#[test]
fn feh_fits_rotates_and_follows_the_monitors() {
    let wall = Wall::new(Desktop::x11(&["--pluggable", "800x400", "400x400"]), 2);
    let mut feh = wall.backend(BackendName::Feh);
    let mut show = |pictures: &[(&str, &Path)]| {
        feh.show(&wall.hang(pictures), &wall.cancel).unwrap();
        wall.pixels(pictures[0].0)
    };
    let turned = show(&[("DUMMY0", &wall.camera())]);
    turned.shows(50, 10, RED);
    turned.shows(50, 90, BLUE);
    let square = wall.picture(
        "square.png",
        &["-size", "200x200", "xc:red", "xc:white", "-append"],
    );
    for (mode, at, color) in [
        ("scale", (2, 2), RED),
        ("fill", (2, 2), RED),
        ("max", (2, 2), BLACK),
        ("center", (50, 2), RED),
        ("center", (2, 50), BLACK),
        ("tile", (98, 60), WHITE),
    ] {
        wall.set("feh", "mode", mode);
        show(&[("DUMMY0", &square)]).shows(at.0, at.1, color);
    }
    wall.set("feh", "fill_color", "00ff00");
    let words = ["-size", "200x200", "xc:none", "xc:red", "-append"];
    let glass = wall.picture("glass.png", &words);
    for (mode, at) in [("scale", (2, 2)), ("max", (2, 98)), ("center", (50, 30))] {
        wall.set("feh", "mode", mode);
        show(&[("DUMMY0", &glass)]).shows(at.0, at.1, GREEN);
        wall.pixels("DUMMY1").is_all(GREEN);
    }
    let blue = wall.flat("blue.png", BLUE);
    wall.set("feh", "mode", "tile");
    let tiles = show(&[("DUMMY0", &glass), ("DUMMY1", &blue)]);
    tiles.shows(98, 2, GREEN);
    tiles.shows(98, 98, RED);
    wall.pixels("DUMMY1").is_all(BLUE);
    wall.set("feh", "mode", "fill");
    let dot = wall.picture("dot.png", &["-size", "1x1", "xc:red"]);
    show(&[("DUMMY0", &dot)]).is_all(RED);
    let red = wall.flat("red.png", RED);
    wall.positions(&mut *feh, "DUMMY0");
    let mut show = |pictures: &[(&str, &Path)]| {
        feh.show(&wall.hang(pictures), &wall.cancel).unwrap();
        wall.pixels(pictures[0].0)
    };
    wall.desktop.run("unplug", &["DUMMY0"]);
    wait_until("one monitor", || wall.backends.outputs.list().len() == 1);
    show(&[("DUMMY1", &blue)]).is_all(BLUE);
    let again = wall.desktop.run("plug", &["800x400"]);
    wait_until("two monitors", || wall.backends.outputs.list().len() == 2);
    show(&[(&again, &red), ("DUMMY1", &blue)]).is_all(RED);
    wall.pixels("DUMMY1").is_all(BLUE);
}

#[test]
fn root_window_is_cleared_without_a_daemon_if_it_shows_our_picture() {
    let desktop = Desktop::x11(&["320x240"]);
    let mut daemon = TestDaemon::on(&desktop);
    let red = daemon.root().join("red.png");
    image::RgbImage::from_pixel(32, 24, image::Rgb(RED))
        .save(&red)
        .unwrap();
    let shown = || {
        let shot = daemon_shot(&desktop);
        shot.part(50, 50)
    };
    let cleared = |daemon: &TestDaemon| {
        let output = daemon.murald(&["stop", "--clear"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for backend in ["feh", "builtin"] {
        daemon.configure(&format!("[backend]\ntype = '{backend}'\n"));
        daemon.start();
        let body = json!({ "path": red });
        daemon.client().post("/wallpaper/set", &body).ok();
        assert_eq!(daemon.stop(), Some(0));
        assert!(near(shown(), RED), "{backend}");
        assert!(cleared(&daemon).contains("removed"), "{backend}");
        assert!(near(shown(), BLACK), "{backend}");
        assert!(cleared(&daemon).contains("no wallpaper to remove"));
    }
    // The picture of another program stays.
    daemon.start();
    let body = json!({ "path": red });
    daemon.client().post("/wallpaper/set", &body).ok();
    assert_eq!(daemon.stop(), Some(0));
    desktop.output("feh", &["--no-fehbg", "--bg-fill", red.to_str().unwrap()]);
    assert!(cleared(&daemon).contains("no wallpaper to remove"));
    assert!(near(shown(), RED));
}

fn daemon_shot(desktop: &Desktop) -> Pixels {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shot.png");
    desktop.shot(&path, "VIRTUAL-1");
    Pixels::read(&path)
}

/// Clones show the same pixels, so they count as one monitor.
#[test]
fn clones_are_one_monitor() {
    let wall = Wall::new(
        Desktop::x11(&["--pluggable", "640x480", "640x480", "640x480"]),
        3,
    );
    let names = || -> Vec<_> {
        wall.backends
            .outputs
            .list()
            .iter()
            .map(|output| output.name.clone())
            .collect()
    };
    wall.desktop
        .output("xrandr", &["--output", "DUMMY2", "--same-as", "DUMMY0"]);
    wait_until("the clone is the first monitor", || {
        names() == ["DUMMY0", "DUMMY1"]
    });
    let (red, green) = (wall.flat("red.png", RED), wall.flat("green.png", GREEN));
    for backend in [BackendName::Feh, BackendName::Builtin] {
        let mut backend = wall.backend(backend);
        backend
            .show(
                &wall.hang(&[("DUMMY0", &red), ("DUMMY1", &green)]),
                &wall.cancel,
            )
            .unwrap();
        wall.pixels("DUMMY0").is_all(RED);
        wall.pixels("DUMMY1").is_all(GREEN);
        backend
            .show(
                &wall.hang(&[("DUMMY0", &green), ("DUMMY1", &red)]),
                &wall.cancel,
            )
            .unwrap();
        wall.pixels("DUMMY0").is_all(GREEN);
        wall.pixels("DUMMY1").is_all(RED);
    }
    wall.desktop
        .output("xrandr", &["--output", "DUMMY2", "--primary"]);
    wait_until("the primary one gives its name", || {
        let mut names = names();
        names.sort();
        names == ["DUMMY1", "DUMMY2"]
    });
    wall.desktop
        .output("xrandr", &["--output", "DUMMY2", "--pos", "1280x0"]);
    wait_until("each shows its own", || names().len() == 3);
}
