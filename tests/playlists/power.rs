//! Pauses by the `[power]` settings: no change comes by itself while the machine is on battery or the
//! session is locked or idle.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::{active, daemon, make, pictures_of, see, start};
use crate::desktop::{Desktop, wait_until};
use crate::support::{Ended, TestDaemon};

fn told(daemon: &TestDaemon, state: &str) -> Value {
    let output = daemon.murald(&["power", state, "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn playlists_pause_while_locked_or_idle_if_set() {
    let mut desktop = Desktop::wayland(&["640x360"]);
    let (mut daemon, all) = daemon(&desktop, 3);
    let hour = json!({ "type": "timer", "interval": 3600 });
    let id = make(&daemon, "sea", hour, &all);
    start(&daemon, id, &["HEADLESS-1"]);
    see(&desktop, "HEADLESS-1", 0);
    let resting = |daemon: &TestDaemon| {
        let one = active(daemon).remove(0);
        (one["resting"].clone(), one["next_change_at"].is_null())
    };
    // Without the settings nothing pauses.
    let answer =
        |locked| json!({ "battery": null, "locked": locked, "idle": false, "resting": null });
    assert_eq!(told(&daemon, "locked"), answer(true));
    assert_eq!(resting(&daemon), (Value::Null, false));
    let power = |body| daemon.client().patch("/config/power", &body).ok();
    power(json!({ "pause_when_idle": true }));
    assert_eq!(resting(&daemon), (Value::Null, false));
    assert_eq!(told(&daemon, "idle")["resting"], "idle");
    assert_eq!(resting(&daemon), (json!("idle"), true));
    power(json!({ "pause_when_locked": true }));
    assert_eq!(resting(&daemon), (json!("locked"), true));
    let rows = daemon.murald(&["playlist", "active"]).output().unwrap();
    assert!(
        String::from_utf8(rows.stdout)
            .unwrap()
            .contains("\tpaused (locked)\t")
    );
    // A step by hand works during the pause, and does not end it.
    daemon
        .client()
        .post("/playlists/active/next", &json!({}))
        .ok();
    see(&desktop, "HEADLESS-1", 1);
    assert_eq!(resting(&daemon), (json!("locked"), true));
    // A playlist that is resumed by hand goes on, and the command says what stays paused.
    let run = |words: &[&str]| {
        let output = daemon.murald(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for words in [&["toggle"][..], &["resume"], &["playlist", "resume", "sea"]] {
        let said = run(words);
        let on_stderr = "the session is locked, so videos and HTML wallpapers stay paused";
        assert!(
            said.contains("resumed") && said.contains(on_stderr),
            "{said}"
        );
        assert_eq!(resting(&daemon), (json!("locked"), false));
        assert_eq!(active(&daemon)[0]["resumed"], true);
        assert!(run(&["playlist", "active"]).contains("\trunning\t"));
        assert!(run(&["why"]).contains("Next change: "));
        assert_eq!(run(&["resume"]), "no playlist is paused\n");
        run(&["toggle"]);
        assert_eq!(active(&daemon)[0]["paused"], true);
    }
    run(&["toggle"]);
    let said = run(&["playlist", "start", "sea"]);
    assert!(
        said.contains("the playlist is paused; `murald resume`"),
        "{said}"
    );
    told(&daemon, "unlocked");
    assert_eq!(resting(&daemon), (json!("idle"), true));
    assert_eq!(told(&daemon, "active"), answer(false));
    assert_eq!(resting(&daemon), (Value::Null, false));
    // The session is still locked after a restart, even after a kill.
    told(&daemon, "locked");
    daemon.kill9();
    daemon.start();
    assert_eq!(resting(&daemon), (json!("locked"), true));
    assert_eq!(daemon.client().send("PUT", "/power", "", b"{}").status, 400);
    assert_eq!(
        daemon
            .client()
            .patch("/config/power", &json!({ "pause_when_idle": 1 }))
            .status,
        400
    );
    // A new session is not locked, though its runtime directory is the same.
    desktop.again();
    wait_until("the new session is known", || {
        resting(&daemon) == (Value::Null, false)
    });
}

/// Writes files as the kernel's for a battery or mains supply.
fn supply(directory: &Path, name: &str, fields: &[(&str, &str)]) {
    let path = directory.join(name);
    fs::create_dir_all(&path).unwrap();
    for (field, text) in fields {
        let part = directory.join("part");
        fs::write(&part, format!("{text}\n")).unwrap();
        fs::rename(part, path.join(field)).unwrap();
    }
}

/// Voluntary context switches of the thread that watches the battery; `None` if there is no such thread.
fn sleeps(daemon: &TestDaemon) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid()))
        .unwrap()
        .flatten();
    let mut of_all = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let status = of_all.find(|status| status.starts_with("Name:\tbattery\n"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[test]
fn playlists_pause_on_battery_if_set() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    let supplies = daemon.root().join("supplies");
    supply(
        &supplies,
        "BAT0",
        &[("type", "Battery"), ("status", "Discharging")],
    );
    supply(&supplies, "AC", &[("type", "Mains"), ("online", "0")]);
    daemon.env("MURALD_POWER_SUPPLY", &supplies);
    daemon.start();
    let all = pictures_of(&daemon, 2);
    let hour = json!({ "type": "timer", "interval": 3600 });
    let id = make(&daemon, "sea", hour, &all);
    start(&daemon, id, &["HEADLESS-1"]);
    let now = |daemon: &TestDaemon| {
        let power = daemon.client().get("/power").ok();
        let resting = active(daemon).remove(0)["resting"].clone();
        assert_eq!(power["resting"], resting);
        (power["battery"].clone(), resting)
    };
    let power = |daemon: &TestDaemon, on: bool| {
        daemon
            .client()
            .patch("/config/power", &json!({ "pause_on_battery": on }))
            .ok();
    };
    assert_eq!(
        (now(&daemon), sleeps(&daemon)),
        ((Value::Null, Value::Null), None)
    );
    power(&daemon, true);
    assert_eq!(now(&daemon), (json!(true), json!("battery")));
    // The thread sets its name itself, a moment later.
    wait_until("the battery's thread", || sleeps(&daemon).is_some());
    // The next start reads the battery again.
    daemon.kill9();
    daemon.start();
    assert_eq!(now(&daemon), (json!(true), json!("battery")));
    supply(&supplies, "AC", &[("online", "1")]);
    wait_until("mains", || {
        daemon.client().get("/power").ok()["battery"] == false
    });
    assert_eq!(now(&daemon), (json!(false), Value::Null));
    // While nothing changes, the thread sleeps: long enough for any timer of ours to fire.
    wait_until("three seconds in which the thread does not wake up", || {
        let before = sleeps(&daemon);
        std::thread::sleep(Duration::from_secs(3));
        sleeps(&daemon) == before
    });
    supply(&supplies, "AC", &[("online", "0")]);
    wait_until("battery", || {
        daemon.client().get("/power").ok()["battery"] == true
    });
    let rows = daemon.murald(&["power"]).output().unwrap();
    let rows = String::from_utf8(rows.stdout).unwrap();
    assert!(
        rows.contains("battery\ttrue\n") && rows.contains("paused\tbattery\n"),
        "{rows}"
    );
    power(&daemon, false);
    assert_eq!(now(&daemon), (Value::Null, Value::Null));
    wait_until("the end of the battery's thread", || {
        sleeps(&daemon).is_none()
    });
    daemon.ends_well();
}

#[test]
fn swayidle_line_of_the_manual_pauses_playlists() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[power]\npause_when_idle = true\n");
    let murald = env!("CARGO_BIN_EXE_murald");
    daemon.stub("murald", &format!("#!/bin/sh\nexec {murald} \"$@\"\n"));
    daemon.start();
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/murald.1");
    let manual = fs::read_to_string(manual).unwrap().replace("\\(aq", "'");
    let line = manual
        .lines()
        .find(|line| line.starts_with("swayidle "))
        .unwrap();
    // A second instead of five minutes.
    let line = line.replace(" 300 ", " 1 ");
    let mut swayidle = daemon.command("/bin/sh");
    swayidle
        .args(["-c", &format!("exec {line}")])
        .stdout(Stdio::null());
    let _swayidle = Ended(swayidle.spawn().unwrap());
    let resting = || daemon.client().get("/power").ok()["resting"].clone();
    wait_until("the pause", || resting() == "idle");
    // A key ends the pause; it begins again afterwards.
    wait_until("the end of the pause", || {
        desktop.output("wtype", &["x"]);
        resting().is_null()
    });
    wait_until("the next pause", || resting() == "idle");
}
