//! What running playlists outlive: a kill, a backend that hangs, a machine that sleeps.
//!
//! Missed changes: here the daemon is held by SIGSTOP while the time of the machine goes on, which is
//! what a suspend is to it, timers and all. Setting the clock is left to the tests of the player
//! (`src/playlist/tests`), where it is injected: the wall clock has no namespace, so
//! setting it would move the whole machine; and libfaketime replaces functions of the C library,
//! which our reads of the clock and our timers (system calls) do not go through.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{active, change, house, make, pictures_of, see, start, tell};
use crate::desktop::{Desktop, wait_until};
use crate::support::House;

/// Without what depends on the moment of asking.
fn still(mut all: Vec<Value>) -> Vec<Value> {
    for one in &mut all {
        one.as_object_mut().unwrap().remove("next_change_at");
    }
    all
}

fn next_change(one: &Value) -> jiff::Timestamp {
    one["next_change_at"].as_str().unwrap().parse().unwrap()
}

#[test]
fn kill_keeps_position_pause_order_and_monitors() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let (mut house, ids) = house(&desktop, 6);
    let random = json!({ "type": "timer", "interval": 3600, "order": "random" });
    let one = make(&house, "random", random, &ids);
    let held = make(&house, "held", json!({ "type": "timer", "interval": 1 }), &ids[..2]);
    let mut events = house.events("playlist_image_changed");
    start(&house, one, &["HEADLESS-1", "DP-9"]);
    let mut way = vec![change(&mut events).2];
    for _ in 0..2 {
        tell(&house, one, "next");
        way.push(change(&mut events).2);
    }
    start(&house, held, &["HEADLESS-2"]);
    assert_eq!(change(&mut events).0, held);
    tell(&house, held, "pause");
    let before = active(&house);
    assert_eq!(before[0]["monitors"], json!(["HEADLESS-1", "DP-9"]));
    assert_eq!(before[1]["paused"], true);

    house.kill9();
    house.start();
    let after = active(&house);
    let moved = next_change(&after[0]).duration_since(next_change(&before[0]));
    assert!(moved.abs() < jiff::SignedDuration::from_millis(100), "the beat moved by {moved}");
    assert_eq!(still(after), still(before.clone()));
    // The same way back, and on in the order that was drawn.
    let mut events = house.events("playlist_image_changed");
    let drawn = before[0]["next_image_id"].as_i64().unwrap();
    let steps = [
        ("previous", way[1]),
        ("previous", way[0]),
        ("next", way[1]),
        ("next", way[2]),
        ("next", drawn),
    ];
    for (step, image) in steps {
        tell(&house, one, step);
        assert_eq!(change(&mut events).2, image, "{step}: {way:?}");
    }
    see(&desktop, "HEADLESS-1", ids.iter().position(|id| *id == drawn).unwrap());
    // What was held is held, and goes on when it may.
    let index = before[1]["current_index"].as_i64().unwrap();
    see(&desktop, "HEADLESS-2", index as usize);
    tell(&house, held, "resume");
    assert_eq!(change(&mut events), (held, 1 - index, ids[1 - index as usize]));
}

#[test]
fn daemon_end_does_not_wait_for_hanging_backend() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    let (pid, cue) = (house.root().join("pid"), house.root().join("hang"));
    let real = desktop.output("which", &["swaybg"]);
    let script = format!(
        "#!/bin/sh\n[ -e '{}' ] || exec '{real}' \"$@\"\necho $$ >'{}'\nexec sleep 600\n",
        cue.display(),
        pid.display()
    );
    house.stub("swaybg", &script);
    house.start();
    let ids = pictures_of(&house, 3);
    let id = make(&house, "hangs", json!({ "type": "timer", "interval": 1 }), &ids);
    start(&house, id, &[]);
    fs::write(&cue, "").unwrap();
    let told = || fs::read_to_string(&pid).ok().filter(|text| text.ends_with('\n'));
    wait_until("the process", || told().is_some());
    let first = told();
    // The thread of playlists waits for nobody, but who asked for a step waits for its picture.
    wait_until("a step", || active(&house)[0]["current_index"] == 1);
    tell(&house, id, "pause");
    std::thread::scope(|scope| {
        let step =
            scope.spawn(|| house.client().post(&format!("/playlists/{id}/next"), &json!({})));
        // Once the first has had its time.
        wait_until("its own process", || told().is_some() && told() != first);
        house.signal("-TERM");
        assert_ne!(step.join().unwrap().status, 200);
    });
    assert_eq!(house.wait().code(), Some(0));
    assert!(!house.log().contains("continuing without"), "{}", house.log());
    let pid = fs::read_to_string(&pid).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "what never showed is not left behind");
    // And it goes on from there.
    fs::remove_file(&cue).unwrap();
    house.start();
    assert_eq!(active(&house)[0]["paused"], true);
}

#[test]
fn suspend_over_several_changes_makes_one() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (house, ids) = house(&desktop, 6);
    let id = make(&house, "sleeps", json!({ "type": "timer", "interval": 1 }), &ids);
    let mut events = house.events("playlist_image_changed");
    start(&house, id, &[]);
    assert_eq!(change(&mut events), (id, 0, ids[0]));
    house.signal("-STOP");
    // Time is what this is about: three changes pass, and the last of them by more than 2 s.
    std::thread::sleep(Duration::from_millis(4500));
    house.signal("-CONT");
    let mut recovered = false;
    // On a busy machine some come before the sleep, and the one after it late.
    for index in (1..6).chain(0..6) {
        let event = events.wait_for("playlist_image_changed");
        assert_eq!(event["image_index"], index, "none is left out: {event}");
        if recovered {
            return;
        }
        recovered = event["source"] == "missed_event_recovery";
    }
    panic!("nothing was recovered");
}
