//! Outputs that go and return within milliseconds, as at a mode switch or on a KVM, while pictures
//! are being shown: whatever happens meanwhile, in the end each shows its own.

use std::time::Duration;

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, Rgb, near, three};
use crate::support::House;

const CYCLES: u32 = 100;
/// An output is off for these, from the shortest to the longest.
const OFF: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

/// How long it is off in a cycle: each time by the same factor longer.
fn off(cycle: u32) -> Duration {
    let factor = OFF[1].as_secs_f64() / OFF[0].as_secs_f64();
    OFF[0].mul_f64(factor.powf(f64::from(cycle) / f64::from(CYCLES - 1)))
}

/// What a point of the screen shows.
fn point(desktop: &Desktop, x: u32, y: u32) -> Rgb {
    let at = format!("1x1+{x}+{y}");
    let mut import = desktop.command("import");
    let shot = import.args(["-silent", "-window", "root", "-crop", &at, "-depth", "8", "rgb:-"]);
    let bytes = shot.output().unwrap().stdout;
    // Nothing while the screen changes its size.
    bytes.get(..3).map_or([0; 3], |rgb| rgb.try_into().unwrap())
}

#[test]
fn an_output_that_blinks_shows_its_picture_again() {
    let desktop = Desktop::x11(&["--pluggable", "320x240", "320x240"]);
    let house = House::started_on(&desktop);
    let images = three(&house);
    let colors = [RED, GREEN, BLUE];
    let on = ["--output", "DUMMY1", "--mode", "320x240-murald", "--pos", "320x0"];
    let set = |monitor: &str, picture: usize| {
        let body = json!({ "image_id": images[picture], "monitors": [monitor] });
        house.client().post("/wallpaper/set", &body)
    };
    set("DUMMY1", 2).ok();
    for cycle in 0..CYCLES {
        let picture = cycle as usize % 2;
        std::thread::scope(|scope| {
            // The scene is being shown when the output goes.
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
    // What was hung again is noted once it is shown.
    wait_until("the record of it", || {
        let current = house.client().get("/wallpaper/current").ok();
        current["monitors"][1]["image_id"] == images[2]
    });
}

#[test]
fn a_new_monitor_has_what_was_set_for_all() {
    let desktop = Desktop::x11(&["--pluggable", "320x240"]);
    let mut house = House::started_on(&desktop);
    let images = three(&house);
    let set = |house: &House, body| house.client().post("/wallpaper/set", &body).ok();
    set(&house, json!({ "image_id": images[0] }));
    set(&house, json!({ "image_id": images[1], "monitor": "DUMMY0" }));
    let mut events = house.events("wallpaper_changed");
    assert_eq!(desktop.run("plug", &["320x240"]), "DUMMY1");
    wait_until("red on the new monitor", || near(point(&desktop, 480, 120), RED));
    assert!(near(point(&desktop, 160, 120), GREEN));
    let changed = events.wait_for("wallpaper_changed");
    assert_eq!((&changed["source"], &changed["monitors"]), (&json!("restore"), &json!(["DUMMY1"])));
    let current = house.client().get("/wallpaper/current").ok();
    assert_eq!(current["monitors"][1]["image_id"], images[0]);
    // Also where it comes while the daemon is away.
    assert_eq!(house.stop(), Some(0));
    assert_eq!(desktop.run("plug", &["320x240"]), "DUMMY2");
    house.start();
    wait_until("red on the third", || near(point(&desktop, 800, 120), RED));
    assert!(near(point(&desktop, 480, 120), RED) && near(point(&desktop, 160, 120), GREEN));
}
