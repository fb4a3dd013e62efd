//! The hook: its environment, when it runs, and that nothing waits for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::files::{picture, set, state};
use crate::support::TestDaemon;

/// A daemon with this hook, which may write to the directory `$NOTES`.
fn hooked(desktop: &Desktop, command: &str, more: &str) -> (TestDaemon, PathBuf) {
    let mut daemon = TestDaemon::on(desktop);
    let notes = daemon.root().join("notes");
    fs::create_dir(&notes).unwrap();
    daemon.env("NOTES", &notes);
    daemon.env("MURALD", env!("CARGO_BIN_EXE_murald"));
    daemon.configure(&format!(
        "[backend]\ntype = \"swaybg\"\n[hooks]\nwallpaper_changed = '''{command}'''\n{more}\n"
    ));
    daemon.start();
    (daemon, notes)
}

/// The lines of a file: one for each run of a hook that appends to it.
fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn hook_runs_after_the_files_are_written() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let told = r#"printf '%s|' "$MURALD_MONITOR" "$MURALD_IMAGE_ID" "$MURALD_IMAGE_NAME" \
        "$MURALD_PATH" "$MURALD_STILL" "$MURALD_BACKEND" "$MURALD_SOURCE" "$MURALD_HOOK" \
        "$MURALD_SOCKET" "$WAYLAND_DISPLAY" "$PWD" "$(readlink .local/state/murald/current/all)" \
        >>"$NOTES/told"; echo >>"$NOTES/told"; echo complaint >&2; exit 3"#;
    let (mut daemon, notes) = hooked(&desktop, told, "");
    let red = picture(&daemon, "r'ed", [200, 30, 30]);
    set(&daemon, &json!({ "image_id": red }));
    let file = daemon.images().join("r'ed.png");
    let (file, socket) = (file.display(), daemon.socket());
    let line = |source: &str| {
        let [socket, root] = [&socket, daemon.root()].map(|path| path.display().to_string());
        let display = format!(
            "{}/{}",
            desktop.var("XDG_RUNTIME_DIR").unwrap(),
            desktop.var("WAYLAND_DISPLAY").unwrap()
        );
        format!(
            "HEADLESS-1,HEADLESS-2|{red}|r'ed|{file}|{file}|swaybg|{source}|1|{socket}|{display}|\
             {root}|{file}|"
        )
    };
    let (set_by_hand, at_start) = (line("manual"), line("restore"));
    let ran = || {
        lines(&notes.join("told"))
            .iter()
            .map(|line| sorted(line))
            .collect::<Vec<_>>()
    };
    wait_until("it has run", || ran().len() == 1);
    assert_eq!(ran(), [set_by_hand]);
    wait_until("the failure in the log", || {
        daemon
            .log()
            .contains("hooks.wallpaper_changed failed: exit code 3")
    });
    assert!(daemon.log().contains("hook: complaint"), "{}", daemon.log());
    let why = daemon.client().get("/why").ok()[0].clone();
    assert_eq!(why["hook_failure"]["error"], "exit code 3");
    assert!(
        why["text"].as_str().unwrap().contains("The hook failed"),
        "{why}"
    );
    assert_eq!(
        daemon.client().get("/debug").ok()["hook_failure"],
        why["hook_failure"]
    );
    let doctor = daemon.murald(&["doctor"]).output().unwrap().stdout;
    let doctor = String::from_utf8(doctor).unwrap();
    assert!(
        doctor.contains("note\thook\thooks.wallpaper_changed failed: exit code 3"),
        "{doctor}"
    );
    daemon.ends_well();
    // The hook also runs at the start, for the restored wallpaper.
    fs::remove_file(notes.join("told")).unwrap();
    daemon.start();
    wait_until("the run at the start", || !ran().is_empty());
    assert_eq!(ran()[0], at_start);
}

/// Sorts the monitors of a line, as their order is the compositor's.
fn sorted(line: &str) -> String {
    let (monitors, rest) = line.split_once('|').unwrap();
    let mut monitors: Vec<&str> = monitors.split(',').collect();
    monitors.sort_unstable();
    format!("{}|{rest}", monitors.join(","))
}

#[test]
fn hook_runs_one_at_a_time_and_the_latest_change_wins() {
    let desktop = Desktop::wayland(&["640x360"]);
    // The `mkdir` fails if another run is under way.
    let slow = r#"mkdir "$NOTES/one" || touch "$NOTES/two"; sleep 0.7; rmdir "$NOTES/one"
        echo "$MURALD_IMAGE_ID" >>"$NOTES/ids""#;
    let (daemon, notes) = hooked(&desktop, slow, "");
    let ids = [
        picture(&daemon, "one", [200, 30, 30]),
        picture(&daemon, "two", [30, 30, 200]),
    ];
    for change in 0..40 {
        set(&daemon, &json!({ "image_id": ids[change % 2] }));
    }
    let last = picture(&daemon, "last", [9, 9, 9]);
    set(&daemon, &json!({ "image_id": last }));
    let ran = || lines(&notes.join("ids"));
    wait_until("the run for the last change", || {
        ran().last() == Some(&last.to_string())
    });
    assert!(
        !notes.join("two").exists(),
        "two hooks ran at the same time"
    );
    assert!(ran().len() < 41, "{} runs", ran().len());
}

#[test]
fn hanging_hook_delays_nothing_and_is_killed() {
    let desktop = Desktop::wayland(&["640x360"]);
    let hangs = r#"trap '' TERM; (trap '' TERM; exec sleep 3600) & echo $$ $! >>"$NOTES/pids"
        sleep 3600; sleep 3600"#;
    let (mut daemon, notes) = hooked(&desktop, hangs, "timeout_seconds = 2");
    let one = picture(&daemon, "one", [200, 30, 30]);
    set(&daemon, &json!({ "image_id": one }));
    let pids = || lines(&notes.join("pids"));
    wait_until("the hook runs", || pids().len() == 1);
    for color in [40, 80] {
        let other = picture(&daemon, &format!("other{color}"), [color, 200, 1]);
        set(&daemon, &json!({ "image_id": other }));
    }
    let is_there = |line: &String| {
        line.split(' ')
            .any(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(lives))
    };
    wait_until("the next run after a timeout", || pids().len() == 2);
    wait_until("the first run's processes are gone", || {
        !is_there(&pids()[0])
    });
    assert!(
        daemon.log().contains("did not exit within 2 s"),
        "{}",
        daemon.log()
    );
    // The hook is killed with the daemon, too.
    let began = Instant::now();
    daemon.ends_well();
    assert!(began.elapsed() < Duration::from_secs(10));
    wait_until("the other runs' processes are gone", || {
        !pids().iter().any(&is_there)
    });
}

/// Whether the process is not just a zombie that its new parent has not reaped yet.
fn lives(stat: String) -> bool {
    !stat
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn long_output_of_a_hook_is_truncated_in_the_log() {
    let desktop = Desktop::wayland(&["640x360"]);
    let floods =
        r#"yes complaint | head -c 3000000 >&2; yes | head -c 3000000; touch "$NOTES/done""#;
    let (daemon, notes) = hooked(&desktop, floods, "");
    set(
        &daemon,
        &json!({ "image_id": picture(&daemon, "one", [200, 30, 30]) }),
    );
    wait_until("the hook is done", || notes.join("done").exists());
    wait_until("the note about truncated output", || {
        daemon.log().contains("further output is not logged")
    });
    let logged = daemon.log().matches("hook: complaint").count();
    assert!((5_000..=6_554).contains(&logged), "{logged} lines");
}

#[test]
fn change_by_a_hook_does_not_run_the_hook() {
    let desktop = Desktop::wayland(&["640x360"]);
    let sets = r#"echo "$MURALD_SOURCE" >>"$NOTES/runs"
        ask() { curl -sf --unix-socket "$MURALD_SOCKET" -d "$2" "http://murald$1" >/dev/null; }
        "$MURALD" random && ask /wallpaper/set '{"image_id": 2}' && ask /playlists/active/next '{}' &&
        "$MURALD" playlist start p
        echo $? >>"$NOTES/done""#;
    let (daemon, notes) = hooked(&desktop, sets, "");
    let ids = [
        picture(&daemon, "one", [200, 30, 30]),
        picture(&daemon, "two", [30, 30, 200]),
    ];
    let images: Vec<_> = ids
        .iter()
        .map(|id| json!({ "image_id": id, "media_type": "image" }))
        .collect();
    let list = json!({ "name": "p", "configuration": { "type": "manual" }, "images": images });
    let list = daemon.client().post("/playlists", &list);
    assert_eq!(list.status, 201, "{}", list.text());
    let id = list.json()["id"].as_i64().unwrap();
    let mut events = daemon.events("wallpaper_changed");
    daemon
        .client()
        .post(&format!("/playlists/{id}/start"), &json!({}))
        .ok();
    wait_until("the hook is done", || lines(&notes.join("done")) == ["0"]);
    // All changes have events, the hook's own as well; only the next one by hand runs the hook again.
    let sources: Vec<String> = (0..5)
        .map(|_| {
            events.wait_for("wallpaper_changed")["source"]
                .as_str()
                .unwrap()
                .into()
        })
        .collect();
    assert_eq!(
        sources,
        ["playlist", "random", "manual", "playlist", "playlist"]
    );
    set(&daemon, &json!({ "image_id": ids[0] }));
    wait_until("the second run", || lines(&notes.join("done")).len() == 2);
    assert_eq!(lines(&notes.join("runs")), ["playlist", "manual"]);
    assert!(state(&daemon).join("palette.json").exists());
}

#[test]
fn hook_settings_are_checked_and_apply_at_once() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, notes) = hooked(&desktop, "", "");
    let refused = |body| daemon.client().patch("/config/hooks", &body).fails(400);
    refused(json!({ "timeout_seconds": 0 }));
    refused(json!({ "timeout_seconds": 601 }));
    refused(json!({ "wallpaper_changed": 5 }));
    refused(json!({ "wallpaper_change": "x" }));
    set(
        &daemon,
        &json!({ "image_id": picture(&daemon, "one", [200, 30, 30]) }),
    );
    let mut events = daemon.events("config_changed");
    let hook = r#"touch "$NOTES/ran""#;
    let shown = daemon
        .client()
        .patch("/config/hooks", &json!({ "wallpaper_changed": hook }))
        .ok();
    assert_eq!(
        shown,
        json!({ "wallpaper_changed": hook, "timeout_seconds": 60 })
    );
    assert_eq!(
        events.wait_for("config_changed")["sections"],
        json!(["hooks"])
    );
    set(
        &daemon,
        &json!({ "image_id": picture(&daemon, "two", [30, 30, 200]) }),
    );
    wait_until("it has run", || notes.join("ran").exists());
}
