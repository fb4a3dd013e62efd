//! Tests outputs that disappear for milliseconds, as at a mode switch or with a KVM, while pictures are
//! being shown: in the end each shows its own.

use std::time::Duration;

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, Rgb, near, three};
use crate::support::TestDaemon;

const CYCLES: u32 = 100;
/// The shortest and the longest time that an output is off.
const OFF: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

/// The time off in a cycle, which grows by a constant factor.
fn off(cycle: u32) -> Duration {
    let factor = OFF[1].as_secs_f64() / OFF[0].as_secs_f64();
    OFF[0].mul_f64(factor.powf(f64::from(cycle) / f64::from(CYCLES - 1)))
}

/// The colour of a point of the screen.
fn point(desktop: &Desktop, x: u32, y: u32) -> Rgb {
    let at = format!("1x1+{x}+{y}");
    let mut import = desktop.command("import");
    let shot = import.args([
        "-silent", "-window", "root", "-crop", &at, "-depth", "8", "rgb:-",
    ]);
    let bytes = shot.output().unwrap().stdout;
    // There is no output while the screen changes its size.
    bytes.get(..3).map_or([0; 3], |rgb| rgb.try_into().unwrap())
}

#[test]
fn output_that_blinks_shows_its_picture_again() {
    let desktop = Desktop::x11(&["--pluggable", "320x240", "320x240"]);
    let daemon = TestDaemon::started_on(&desktop);
    let images = three(&daemon);
    let colors = [RED, GREEN, BLUE];
    let on = [
        "--output",
        "DUMMY1",
        "--mode",
        "320x240-murald",
        "--pos",
        "320x0",
    ];
    let set = |monitor: &str, picture: usize| {
        let body = json!({ "image_id": images[picture], "monitors": [monitor] });
        daemon.client().post("/wallpaper/set", &body)
    };
    set("DUMMY1", 2).ok();
    for cycle in 0..CYCLES {
        let picture = cycle as usize % 2;
        std::thread::scope(|scope| {
            // The picture is being shown when the output disappears.
            let shown = scope.spawn(|| set("DUMMY0", picture));
            desktop.output("xrandr", &["--output", "DUMMY1", "--off"]);
            std::thread::sleep(off(cycle));
            desktop.output("xrandr", &on);
            shown.join().unwrap().ok();
        });
        let what = format!("both pictures after {:?} off, cycle {cycle}", off(cycle));
        wait_until(&what, || {
            near(point(&desktop, 160, 120), colors[picture])
                && near(point(&desktop, 480, 120), colors[2])
        });
    }
    // A restored picture is recorded once it is shown.
    wait_until("the record of it", || {
        let current = daemon.client().get("/wallpaper/current").ok();
        current["monitors"][1]["image_id"] == images[2]
    });
}

#[test]
fn new_monitor_shows_the_picture_that_was_set_for_all() {
    let desktop = Desktop::x11(&["--pluggable", "320x240"]);
    let mut daemon = TestDaemon::started_on(&desktop);
    let images = three(&daemon);
    let set = |daemon: &TestDaemon, body| daemon.client().post("/wallpaper/set", &body).ok();
    set(&daemon, json!({ "image_id": images[0] }));
    set(
        &daemon,
        json!({ "image_id": images[1], "monitor": "DUMMY0" }),
    );
    let mut events = daemon.events("wallpaper_changed");
    assert_eq!(desktop.run("plug", &["320x240"]), "DUMMY1");
    wait_until("red on the new monitor", || {
        near(point(&desktop, 480, 120), RED)
    });
    assert!(near(point(&desktop, 160, 120), GREEN));
    let changed = events.wait_for("wallpaper_changed");
    assert_eq!(
        (&changed["source"], &changed["monitors"]),
        (&json!("restore"), &json!(["DUMMY1"]))
    );
    let current = daemon.client().get("/wallpaper/current").ok();
    assert_eq!(current["monitors"][1]["image_id"], images[0]);
    // The same for a monitor that is connected while the daemon is stopped.
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(desktop.run("plug", &["320x240"]), "DUMMY2");
    daemon.start();
    wait_until("red on the third", || near(point(&desktop, 800, 120), RED));
    assert!(near(point(&desktop, 480, 120), RED) && near(point(&desktop, 160, 120), GREEN));
}
