//! Running playlists after a kill, with a backend that hangs, and after a suspend.
//!
//! A suspend is imitated by SIGSTOP: for the daemon, time goes on in the same way, timers included.
//! Clock changes are tested in `src/playlist/tests`, where the clock is injected: the wall clock has no
//! namespace, so a test would change the whole machine's, and libfaketime does not catch the system
//! calls of our clock and timers.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{active, change, daemon, make, pictures_of, see, start, tell};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// Removes the field that depends on the time of the request.
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
fn position_pause_order_and_monitors_survive_a_kill() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let (mut daemon, ids) = daemon(&desktop, 6);
    let random = json!({ "type": "timer", "interval": 3600, "order": "random" });
    let one = make(&daemon, "random", random, &ids);
    let held = make(
        &daemon,
        "held",
        json!({ "type": "timer", "interval": 1 }),
        &ids[..2],
    );
    let mut events = daemon.events("playlist_image_changed");
    start(&daemon, one, &["HEADLESS-1", "DP-9"]);
    let mut way = vec![change(&mut events).2];
    for _ in 0..2 {
        tell(&daemon, one, "next");
        way.push(change(&mut events).2);
    }
    start(&daemon, held, &["HEADLESS-2"]);
    assert_eq!(change(&mut events).0, held);
    tell(&daemon, held, "pause");
    let before = active(&daemon);
    assert_eq!(before[0]["monitors"], json!(["HEADLESS-1", "DP-9"]));
    assert_eq!(before[1]["paused"], true);

    daemon.kill9();
    daemon.start();
    let after = active(&daemon);
    let moved = next_change(&after[0]).duration_since(next_change(&before[0]));
    assert!(
        moved.abs() < jiff::SignedDuration::from_millis(100),
        "the next change moved by {moved}"
    );
    assert_eq!(still(after), still(before.clone()));
    // `previous` takes the same way back, `next` the order that was drawn before.
    let mut events = daemon.events("playlist_image_changed");
    let drawn = before[0]["next_image_id"].as_i64().unwrap();
    let steps = [
        ("previous", way[1]),
        ("previous", way[0]),
        ("next", way[1]),
        ("next", way[2]),
        ("next", drawn),
    ];
    for (step, image) in steps {
        tell(&daemon, one, step);
        assert_eq!(change(&mut events).2, image, "{step}: {way:?}");
    }
    see(
        &desktop,
        "HEADLESS-1",
        ids.iter().position(|id| *id == drawn).unwrap(),
    );
    // The paused playlist is still paused, and can be resumed.
    let index = before[1]["current_index"].as_i64().unwrap();
    see(&desktop, "HEADLESS-2", index as usize);
    tell(&daemon, held, "resume");
    assert_eq!(
        change(&mut events),
        (held, 1 - index, ids[1 - index as usize])
    );
}

#[test]
fn shutdown_does_not_wait_for_a_hanging_backend() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    let (pid, cue) = (daemon.root().join("pid"), daemon.root().join("hang"));
    let real = desktop.output("which", &["swaybg"]);
    let script = format!(
        "#!/bin/sh\n[ -e '{}' ] || exec '{real}' \"$@\"\necho $$ >'{}'\nexec sleep 600\n",
        cue.display(),
        pid.display()
    );
    daemon.stub("swaybg", &script);
    daemon.start();
    let ids = pictures_of(&daemon, 3);
    let id = make(
        &daemon,
        "hangs",
        json!({ "type": "timer", "interval": 1 }),
        &ids,
    );
    start(&daemon, id, &[]);
    fs::write(&cue, "").unwrap();
    let told = || {
        fs::read_to_string(&pid)
            .ok()
            .filter(|text| text.ends_with('\n'))
    };
    wait_until("the process", || told().is_some());
    let first = told();
    // The playlists' thread waits for no backend, but a client that asks for a step waits for its
    // picture.
    wait_until("a step", || active(&daemon)[0]["current_index"] == 1);
    tell(&daemon, id, "pause");
    std::thread::scope(|scope| {
        let step = scope.spawn(|| {
            daemon
                .client()
                .post(&format!("/playlists/{id}/next"), &json!({}))
        });
        // The first process is killed after its time limit.
        wait_until("the second process", || told().is_some() && told() != first);
        daemon.signal("-TERM");
        assert_ne!(step.join().unwrap().status, 200);
    });
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(
        !daemon.log().contains("continuing without"),
        "{}",
        daemon.log()
    );
    let pid = fs::read_to_string(&pid).unwrap();
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "the hanging process is still there"
    );
    // After a restart the playlist is still paused.
    fs::remove_file(&cue).unwrap();
    daemon.start();
    assert_eq!(active(&daemon)[0]["paused"], true);
}

#[test]
fn several_changes_missed_in_a_suspend_become_one() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 6);
    let id = make(
        &daemon,
        "sleeps",
        json!({ "type": "timer", "interval": 1 }),
        &ids,
    );
    let mut events = daemon.events("playlist_image_changed");
    start(&daemon, id, &[]);
    assert_eq!(change(&mut events), (id, 0, ids[0]));
    let place = || {
        let one = active(&daemon).remove(0);
        let since: jiff::Timestamp = one["slot_started_at"].as_str().unwrap().parse().unwrap();
        (one["current_index"].as_i64().unwrap(), since)
    };
    let (before, since) = place();
    daemon.signal("-STOP");
    let stopped = Instant::now();
    // Time itself is tested here: three changes are missed, the last by more than 2 s.
    std::thread::sleep(Duration::from_millis(4500));
    let stopped = stopped.elapsed();
    daemon.signal("-CONT");
    let is_recovery = |event: Value| event["source"] == "missed_event_recovery";
    // On a busy machine some changes come before the stop.
    let recovered = (0..10).any(|_| is_recovery(events.wait_for("playlist_image_changed")));
    assert!(recovered, "nothing was recovered");
    // A slow backend leaves out images, so the places count, not the events.
    let (now, changed) = place();
    let made = (now - before).rem_euclid(6);
    let passed = Duration::try_from(changed.duration_since(since)).unwrap();
    let awake = passed.saturating_sub(stopped);
    assert!(
        made <= 1 + awake.as_secs() as i64,
        "{made} changes in {awake:?} and a suspend"
    );
}
