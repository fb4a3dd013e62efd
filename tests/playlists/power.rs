//! Rest: while the machine runs on its battery, or the session is locked or idle, nothing changes by
//! itself, where the settings say so.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::{active, house, make, pictures_of, see, start};
use crate::desktop::{Desktop, wait_until};
use crate::support::{Ended, House};

fn told(house: &House, state: &str) -> Value {
    let output = house.murald(&["power", state, "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn playlists_rest_while_locked_or_idle_as_the_settings_say() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (mut house, all) = house(&desktop, 3);
    let hour = json!({ "type": "timer", "interval": 3600 });
    let id = make(&house, "sea", hour, &all);
    start(&house, id, &["HEADLESS-1"]);
    see(&desktop, "HEADLESS-1", 0);
    let resting = |house: &House| {
        let one = active(house).remove(0);
        (one["resting"].clone(), one["next_change_at"].is_null())
    };
    // The settings do not want it.
    let answer =
        |locked| json!({ "battery": null, "locked": locked, "idle": false, "resting": null });
    assert_eq!(told(&house, "locked"), answer(true));
    assert_eq!(resting(&house), (Value::Null, false));
    let power = |body| house.client().patch("/config/power", &body).ok();
    power(json!({ "pause_when_idle": true }));
    assert_eq!(resting(&house), (Value::Null, false));
    assert_eq!(told(&house, "idle")["resting"], "idle");
    assert_eq!(resting(&house), (json!("idle"), true));
    power(json!({ "pause_when_locked": true }));
    assert_eq!(resting(&house), (json!("locked"), true));
    let rows = house.murald(&["playlist", "active"]).output().unwrap();
    assert!(String::from_utf8(rows.stdout).unwrap().contains("\tresting\t"));
    // By hand it goes on, and rests on.
    house.client().post("/playlists/active/next", &json!({})).ok();
    see(&desktop, "HEADLESS-1", 1);
    assert_eq!(resting(&house), (json!("locked"), true));
    told(&house, "unlocked");
    assert_eq!(resting(&house), (json!("idle"), true));
    assert_eq!(told(&house, "active"), answer(false));
    assert_eq!(resting(&house), (Value::Null, false));
    // It is locked still after a restart of the daemon, however that came.
    told(&house, "locked");
    house.kill9();
    house.start();
    assert_eq!(resting(&house), (json!("locked"), true));
    assert_eq!(house.client().send("PUT", "/power", "", b"{}").status, 400);
    assert_eq!(house.client().patch("/config/power", &json!({ "pause_when_idle": 1 })).status, 400);
}

/// What the kernel would say of a battery or of the mains.
fn supply(directory: &Path, name: &str, fields: &[(&str, &str)]) {
    let path = directory.join(name);
    fs::create_dir_all(&path).unwrap();
    for (field, text) in fields {
        let part = directory.join("part");
        fs::write(&part, format!("{text}\n")).unwrap();
        fs::rename(part, path.join(field)).unwrap();
    }
}

/// How often the thread that watches the battery has gone to sleep; none where there is no such.
fn sleeps(house: &House) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", house.pid())).unwrap().flatten();
    let mut of_all = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let status = of_all.find(|status| status.starts_with("Name:\tbattery\n"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[test]
fn playlists_rest_on_the_battery_as_the_kernel_tells() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    let supplies = house.root().join("supplies");
    supply(&supplies, "BAT0", &[("type", "Battery"), ("status", "Discharging")]);
    supply(&supplies, "AC", &[("type", "Mains"), ("online", "0")]);
    house.env("MURALD_POWER_SUPPLY", &supplies);
    house.start();
    let all = pictures_of(&house, 2);
    let hour = json!({ "type": "timer", "interval": 3600 });
    let id = make(&house, "sea", hour, &all);
    start(&house, id, &["HEADLESS-1"]);
    let now = |house: &House| {
        let power = house.client().get("/power").ok();
        let resting = active(house).remove(0)["resting"].clone();
        assert_eq!(power["resting"], resting);
        (power["battery"].clone(), resting)
    };
    let power = |house: &House, on: bool| {
        house.client().patch("/config/power", &json!({ "pause_on_battery": on })).ok();
    };
    assert_eq!((now(&house), sleeps(&house)), ((Value::Null, Value::Null), None));
    power(&house, true);
    assert_eq!(now(&house), (json!(true), json!("battery")));
    // A thread gives itself its name.
    wait_until("somebody to look", || sleeps(&house).is_some());
    // It is found so at the next start.
    house.kill9();
    house.start();
    assert_eq!(now(&house), (json!(true), json!("battery")));
    supply(&supplies, "AC", &[("online", "1")]);
    wait_until("mains", || house.client().get("/power").ok()["battery"] == false);
    assert_eq!(now(&house), (json!(false), Value::Null));
    // Nothing changes: nobody wakes. Each of them is given a time to fall asleep.
    let mut before = sleeps(&house);
    wait_until("sleep", || {
        std::thread::sleep(Duration::from_millis(500));
        let now = sleeps(&house);
        std::mem::replace(&mut before, now) == now
    });
    // A time in which any clock of ours would have struck.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(sleeps(&house), before);
    supply(&supplies, "AC", &[("online", "0")]);
    wait_until("battery", || house.client().get("/power").ok()["battery"] == true);
    let rows = house.murald(&["power"]).output().unwrap();
    let rows = String::from_utf8(rows.stdout).unwrap();
    assert!(rows.contains("battery\ttrue\n") && rows.contains("resting\tbattery\n"), "{rows}");
    power(&house, false);
    assert_eq!(now(&house), (Value::Null, Value::Null));
    wait_until("nobody to look", || sleeps(&house).is_none());
    house.ends_well();
}

#[test]
fn the_manual_s_line_for_swayidle_rests_playlists() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    house.configure("[power]\npause_when_idle = true\n");
    let murald = env!("CARGO_BIN_EXE_murald");
    house.stub("murald", &format!("#!/bin/sh\nexec {murald} \"$@\"\n"));
    house.start();
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/murald.1");
    let manual = fs::read_to_string(manual).unwrap().replace("\\(aq", "'");
    let line = manual.lines().find(|line| line.starts_with("swayidle ")).unwrap();
    // Nobody has five minutes.
    let line = line.replace(" 300 ", " 1 ");
    let mut swayidle = house.command("/bin/sh");
    swayidle.args(["-c", &format!("exec {line}")]).stdout(Stdio::null());
    let _swayidle = Ended(swayidle.spawn().unwrap());
    let resting = || house.client().get("/power").ok()["resting"].clone();
    wait_until("rest", || resting() == "idle");
    // Somebody types; it rests again afterwards.
    wait_until("its end", || {
        desktop.output("wtype", &["x"]);
        resting().is_null()
    });
    wait_until("rest again", || resting() == "idle");
}
