//! Tests the real swaybg on headless sway.

use std::fs;
use std::path::Path;

use murald::internals::config::BackendName;

use crate::desktop::{Desktop, wait_until};
use crate::frames::Watcher;
use crate::support::PATIENCE;
use crate::wall::{BLACK, BLUE, Foreign, GREEN, RED, Wall, near};

#[test]
fn each_output_shows_a_different_picture() {
    let wall = Wall::new(Desktop::wayland(&["1280x720", "720x1280", "800x600"]), 3);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    let (red, green) = (wall.flat("red.png", RED), wall.flat("green.jpg", GREEN));
    let odd = wall.flat("-b, #%20'\"\\\n$HOME.png", BLUE);
    let pictures = [
        ("HEADLESS-1", &*red),
        ("HEADLESS-2", &*green),
        ("HEADLESS-3", &*odd),
    ];
    swaybg.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    for (output, color) in [
        ("HEADLESS-1", RED),
        ("HEADLESS-2", GREEN),
        ("HEADLESS-3", BLUE),
    ] {
        wall.pixels(output).is_all(color);
    }
    assert_eq!(wall.processes("swaybg").len(), 1);
    // The others stay as they are when one changes.
    let pictures = [("HEADLESS-1", &*green), pictures[1], pictures[2]];
    swaybg.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    for (output, color) in [
        ("HEADLESS-1", GREEN),
        ("HEADLESS-2", GREEN),
        ("HEADLESS-3", BLUE),
    ] {
        wall.pixels(output).is_all(color);
    }
    let before = wall.processes("swaybg");
    assert_eq!(before.len(), 1);
    swaybg.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    assert_eq!(
        wall.processes("swaybg"),
        before,
        "nothing differs, nothing is done"
    );
    // swaybg loads its files again for another size. A file that was missing then is back.
    let aside = wall.dir.path().join("aside.png");
    fs::rename(&odd, &aside).unwrap();
    wall.desktop.output(
        "swaymsg",
        &["-q", "output HEADLESS-3 mode --custom 400x300"],
    );
    wait_until("swaybg has no picture for the new size", || {
        let seen = wall.pixels("HEADLESS-3");
        seen.size() == (400, 300) && near(seen.part(50, 50), BLACK)
    });
    fs::rename(&aside, &odd).unwrap();
    swaybg.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    wall.pixels("HEADLESS-3").is_all(BLUE);
    let now = wall.processes("swaybg");
    swaybg.clear().unwrap();
    assert!(wall.processes("swaybg").is_empty() && !now[0].is_running());
}

#[test]
fn swaybg_shows_every_format_and_fit() {
    let wall = Wall::new(Desktop::wayland(&["800x400"]), 1);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    let mut show = |path: &Path| {
        swaybg
            .show(&wall.hang(&[("HEADLESS-1", path)]), &wall.cancel)
            .unwrap();
        wall.pixels("HEADLESS-1")
    };
    for kind in ["bmp", "tiff", "webp", "gif"] {
        show(&wall.flat(&format!("green.{kind}"), GREEN)).is_all(GREEN);
    }
    let turned = show(&wall.camera());
    turned.shows(50, 10, RED);
    turned.shows(50, 90, BLUE);
    let square = wall.picture(
        "square.png",
        &["-size", "200x200", "xc:red", "xc:blue", "-append"],
    );
    for (mode, at, color) in [
        ("stretch", (2, 2), RED),
        ("fill", (2, 2), RED),
        ("fit", (2, 2), BLACK),
        ("center", (50, 2), RED),
        ("center", (2, 50), BLACK),
        ("tile", (98, 2), RED),
    ] {
        wall.set("swaybg", "fit_mode", mode);
        show(&square).shows(at.0, at.1, color);
    }
    wall.set("swaybg", "fill_color", "00ff00");
    let words = ["-size", "200x200", "xc:none", "xc:red", "-append"];
    let glass = wall.picture("glass.png", &words);
    for (mode, at) in [("stretch", (2, 2)), ("center", (2, 98))] {
        wall.set("swaybg", "fit_mode", mode);
        show(&glass).shows(at.0, at.1, GREEN);
    }
    wall.set("swaybg", "fit_mode", "fill");
    wall.positions(&mut *swaybg, "HEADLESS-1");
}

#[test]
fn errors_leave_the_old_picture() {
    let wall = Wall::new(Desktop::wayland(&["--pluggable", "640x480", "640x480"]), 2);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    wall.errors_leave_the_picture(&mut *swaybg, "swaybg");
}

#[test]
fn swaybg_outlives_the_daemon_and_is_adopted() {
    let wall = Wall::new(Desktop::wayland(&["640x480"]), 1);
    let (red, blue) = (wall.flat("red.png", RED), wall.flat("blue.png", BLUE));
    let red = wall.hang(&[("HEADLESS-1", &red)]);
    let mut first = wall.backend(BackendName::Swaybg);
    first.show(&red, &wall.cancel).unwrap();
    let before = wall.processes("swaybg");
    drop(first);
    let mut foreign = Foreign::start(&wall.desktop);
    let watcher = Watcher::start(&wall.desktop, "HEADLESS-1");
    let mut second = wall.backend(BackendName::Swaybg);
    second.show(&red, &wall.cancel).unwrap();
    assert_eq!(
        wall.processes("swaybg"),
        before,
        "the same picture: nothing is started"
    );
    second
        .show(&wall.hang(&[("HEADLESS-1", &blue)]), &wall.cancel)
        .unwrap();
    let frames = watcher.finish();
    assert!(
        frames
            .iter()
            .all(|&frame| near(frame, RED) || near(frame, BLUE))
    );
    assert!(!before[0].is_running());
    assert_eq!(wall.processes("swaybg").len(), 1);
    // The process dies: this is reported at once, and the picture is shown again.
    while wall.told.try_recv().is_ok() {}
    let pid = wall.processes("swaybg")[0].pid.to_string();
    wall.desktop.output("kill", &["-9", &pid]);
    wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!second.is_whole());
    second
        .show(&wall.hang(&[("HEADLESS-1", &blue)]), &wall.cancel)
        .unwrap();
    assert!(second.is_whole());
    wall.pixels("HEADLESS-1").is_all(BLUE);
    second.clear().unwrap();
    assert!(foreign.runs());
}
