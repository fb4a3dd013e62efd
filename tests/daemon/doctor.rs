//! Tests `murald doctor` in broken situations: each is reported with a step to fix it, and
//! following the step fixes it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::snapshot::snapshot;
use crate::support::{Ended, TestDaemon, left_out, may_unshare};

/// Returns all findings. Checks the exit code, which says whether anything is to be fixed.
fn examine_by(mut command: Command) -> Vec<Value> {
    let output = command.output().unwrap();
    let found: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{command:?}: {error}: {output:?}"));
    let is_well = found.iter().all(|finding| finding["state"] != "fix");
    assert_eq!(
        output.status.code(),
        Some(if is_well { 0 } else { 1 }),
        "{output:?}"
    );
    found
}

fn examine(daemon: &TestDaemon) -> Vec<Value> {
    examine_by(daemon.murald(&["doctor", "--json"]))
}

/// Returns the step of the only finding of this kind whose text contains all `parts`.
#[track_caller]
fn step(found: &[Value], state: &str, subject: &str, parts: &[&str]) -> String {
    let is_it = |finding: &&Value| {
        let text = finding["text"].as_str().unwrap();
        finding["state"] == state
            && finding["subject"] == subject
            && parts.iter().all(|part| text.contains(part))
    };
    let all: Vec<&Value> = found.iter().filter(is_it).collect();
    let [one] = &all[..] else {
        panic!("not one {state} {subject} {parts:?}: {found:#?}")
    };
    one["step"].as_str().unwrap_or_default().to_owned()
}

/// Checks that there is one finding of this kind, with the accepted words. Returns its step.
#[track_caller]
fn reported(daemon: &TestDaemon, found: &[Value], state: &str, subject: &str) -> String {
    let step = step(found, state, subject, &[]);
    let is_it = |one: &&Value| one["state"] == state && one["subject"] == subject;
    let text = found.iter().find(is_it).unwrap()["text"].as_str().unwrap();
    let words = [text, "\n", &step].concat();
    let words = words.replace(daemon.root().to_str().unwrap(), "DIR");
    let words = words.replace(daemon.socket().parent().unwrap().to_str().unwrap(), "RUN");
    let numbers = ["process ", "-HUP ", "/run/user/", "supports up to "];
    let words = numbers
        .iter()
        .fold(words, |words, before| unnumbered(&words, before));
    snapshot(&format!("{state} {subject}"), &words);
    step
}

/// Replaces the numbers after some words by N.
fn unnumbered(words: &str, before: &str) -> String {
    let mut parts = words.split(before);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number = if rest.len() < part.len() { "N" } else { "" };
        text + before + number + rest
    })
}

/// Checks that nothing of this subject is to be fixed.
#[track_caller]
fn is_mended(daemon: &TestDaemon, subject: &str) {
    let found = examine(daemon);
    let bad = found
        .iter()
        .find(|one| one["subject"] == subject && one["state"] == "fix");
    assert!(bad.is_none(), "{bad:?}");
}

/// Runs the command in a step.
#[track_caller]
fn follow(daemon: &TestDaemon, step: &str) {
    let line = step
        .split('`')
        .nth(1)
        .unwrap_or_else(|| panic!("no command in {step:?}"));
    let done = daemon.command("sh").args(["-c", line]).output().unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn working_session_has_nothing_to_fix() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    let files = || fs::read_dir(daemon.root()).unwrap().flatten().count();
    let before = files();
    let found = examine(&daemon);
    // The directory belongs to the user nobody if root cannot start sway otherwise (tests/desktop).
    let runtime = fs::metadata(daemon.socket().parent().unwrap()).unwrap();
    let is_ours = runtime.uid() == rustix::process::geteuid().as_raw();
    let is_right =
        |one: &Value| (one["state"] == "fix") == (one["subject"] == "runtime" && !is_ours);
    assert!(found.iter().all(is_right), "{found:#?}");
    assert_eq!(files(), before, "it is to change nothing");
    reported(&daemon, &found, "note", "daemon");
    step(&found, "ok", "checked", &["directories", "no database yet"]);
    let parts = ["no systemd unit starts murald"];
    step(&found, "note", "login", &parts);
    daemon.start();
    let found = examine(&daemon);
    step(&found, "ok", "checked", &["directories, database"]);
    let parts = [
        format!("(process {}, socket", daemon.pid()),
        ") in the Wayland session ".to_owned(),
    ];
    step(&found, "ok", "daemon", &[&parts[0], &parts[1]]);
    step(&found, "ok", "compositor", &["HEADLESS-1"]);
    // As rows with state, subject, and text with the step.
    let rows = daemon.murald(&["doctor"]).output().unwrap();
    let rows = String::from_utf8(rows.stdout).unwrap();
    assert!(
        rows.lines().all(|row| row.split('\t').count() == 3),
        "{rows}"
    );
}

#[test]
fn missing_compositor_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = TestDaemon::new();
    reported(&daemon, &examine(&daemon), "fix", "compositor");
    // Inside a session, there is nothing to fix.
    is_mended(&TestDaemon::on(&desktop), "compositor");
}

#[test]
fn session_of_the_wrong_kind_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    // Not a display of another user.
    daemon.env("DISPLAY", ":58000");
    daemon.configure("[daemon]\ncompositor = \"x11\"\n");
    reported(&daemon, &examine(&daemon), "fix", "compositor");
    daemon.configure("[daemon]\ncompositor = \"auto\"\n");
    is_mended(&daemon, "compositor");
}

#[test]
fn compositor_that_hangs_is_reported() {
    let daemon = TestDaemon::new();
    let socket = daemon.socket().with_file_name("wayland-7");
    let _listener = UnixListener::bind(&socket).unwrap();
    reported(&daemon, &examine(&daemon), "fix", "compositor");
}

#[test]
fn invalid_settings_are_reported() {
    let daemon = TestDaemon::new();
    for text in [
        "[daemon\n",
        "[backend]\ntype = 7\n",
        "[hooks]\ntimeout_seconds = 0\n",
        "[daemon]\nimages_dir = \"$NOWHERE/x\"\n",
    ] {
        daemon.configure(text);
        reported(&daemon, &examine(&daemon), "fix", "settings");
    }
    // A running daemon has the same warning.
    let mut running = TestDaemon::new();
    running.configure("[hooks]\ntimeout_seconds = 0\n");
    running.start();
    reported(&running, &examine(&running), "fix", "settings");
    let found = examine(&running);
    let about = |one: &&Value| one["text"].as_str().unwrap().contains("timeout_seconds");
    assert_eq!(found.iter().filter(about).count(), 1, "{found:#?}");
    daemon.configure("[daemon]\nlog_levl = 'info'\n");
    let output = daemon.murald(&["doctor"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let question = "did you mean daemon.log_level? fix the line, then";
    assert!(told.contains(question), "{told}");
    daemon.configure("[hooks]\ntimeout_seconds = 5\n");
    is_mended(&daemon, "settings");
}

#[test]
fn file_in_place_of_a_directory_is_reported() {
    let daemon = TestDaemon::new();
    for (place, subject) in [
        ("data", "library"),
        (".local", "state"),
        ("cache", "thumbnails"),
    ] {
        fs::write(daemon.root().join(place), "").unwrap();
        let found = examine(&daemon);
        let what = reported(&daemon, &found, "fix", subject);
        follow(&daemon, &what);
        is_mended(&daemon, subject);
    }
}

/// The namespaces in which a test may mount file systems.
const APART: [&str; 3] = ["--user", "--map-root-user", "--mount"];

/// Examines in a separate mount namespace, after a shell has run `preparation`.
fn after(daemon: &TestDaemon, preparation: &str) -> Vec<Value> {
    let mut command = daemon.command("unshare");
    let script = format!("{preparation} && exec \"$0\" doctor --json");
    command.args(APART).args(["sh", "-c", &script]);
    command.arg(env!("CARGO_BIN_EXE_murald"));
    examine_by(command)
}

#[test]
fn read_only_library_is_reported() {
    if !may_unshare("doctor on a read-only library", &APART) {
        return;
    }
    let daemon = TestDaemon::new();
    fs::create_dir_all(daemon.images()).unwrap();
    let bind = "mount --bind \"$XDG_DATA_HOME\" \"$XDG_DATA_HOME\"";
    let read_only = format!("{bind} && mount -o remount,bind,ro \"$XDG_DATA_HOME\"");
    reported(&daemon, &after(&daemon, &read_only), "fix", "library");
    let fixed = format!("{read_only} && mount -o remount,bind,rw \"$XDG_DATA_HOME\"");
    let found = after(&daemon, &fixed);
    step(&found, "ok", "checked", &["directories"]);
}

#[test]
fn nearly_full_disk_is_reported() {
    if !may_unshare("doctor on a disk that is nearly full", &APART) {
        return;
    }
    let daemon = TestDaemon::new();
    fs::create_dir(daemon.root().join("data")).unwrap();
    let mount =
        |size: &str| format!("mount -t tmpfs -o size={size},mode=700 tmpfs \"$XDG_DATA_HOME\"");
    reported(&daemon, &after(&daemon, &mount("90m")), "fix", "disk");
    let found = after(&daemon, &mount("110m"));
    step(&found, "ok", "checked", &["directories"]);
}

#[test]
fn obstacle_at_the_sockets_path_is_reported() {
    let daemon = TestDaemon::new();
    fs::write(daemon.socket(), "").unwrap();
    let what = reported(&daemon, &examine(&daemon), "fix", "daemon");
    follow(&daemon, &what);
    is_mended(&daemon, "daemon");
    // A stale socket of an earlier daemon needs no fix: the next start replaces it.
    drop(UnixListener::bind(daemon.socket()).unwrap());
    reported(&daemon, &examine(&daemon), "note", "leftovers");
    is_mended(&daemon, "daemon");
}

#[test]
fn daemon_with_a_removed_or_other_socket_is_found_by_its_lock() {
    let mut daemon = TestDaemon::started();
    let pid = daemon.pid().to_string();
    let elsewhere = daemon.root().join("other.sock");
    let say = |words: &[&str]| {
        let mut murald = daemon.murald(words);
        murald
            .env("MURALD_SOCKET", &elsewhere)
            .env("MURALD_AUTOSTART", "1");
        let output = murald.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let reach = format!("`murald --socket {} stop`", daemon.socket().display());
    let (code, told) = say(&["start"]);
    assert_eq!(code, Some(75), "{told}");
    assert!(
        told.contains(&format!("already running (process {pid})")) && told.contains(&reach),
        "{told}"
    );
    let (code, told) = say(&["random"]);
    assert!(code == Some(75) && told.contains(&reach), "{told}");
    let mut doctor = daemon.murald(&["doctor", "--json"]);
    doctor.env("MURALD_SOCKET", &elsewhere);
    reported(&daemon, &examine_by(doctor), "fix", "daemon");

    fs::remove_file(daemon.socket()).unwrap();
    let output = daemon.murald(&["start"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(75), "{told}");
    assert!(
        told.contains(&format!("its socket is missing: run `kill -HUP {pid}`")),
        "{told}"
    );
    let what = reported(&daemon, &examine(&daemon), "fix", "daemon");
    follow(&daemon, &what);
    wait_until("the socket", || daemon.socket().exists());
    assert_eq!(daemon.client().get("/info").ok()["pid"], daemon.pid());
    is_mended(&daemon, "daemon");

    // A command with another runtime directory finds the daemon by its lock.
    let run = daemon.root().join("other-run");
    fs::create_dir(&run).unwrap();
    let list = |words: &[&str]| {
        let mut murald = daemon.murald(words);
        murald
            .env_remove("MURALD_SOCKET")
            .env("XDG_RUNTIME_DIR", &run);
        murald.env("MURALD_AUTOSTART", "1").output().unwrap()
    };
    for words in [["monitors"].as_slice(), &["random"], &["watch", "list"]] {
        let output = list(words);
        let told = String::from_utf8(output.stderr).unwrap();
        // `random` fails, as the library is empty.
        let is_answered = output.status.code() == Some(i32::from(words == ["random"]));
        assert!(
            is_answered && !told.contains("started murald"),
            "{words:?}: {told}"
        );
    }
    let output = list(&["doctor", "--json"]);
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let listens = format!("(process {pid}, socket {})", daemon.socket().display());
    step(&found, "ok", "daemon", &[&listens]);
    for signal in ["USR1", "USR2", "ALRM"] {
        let kill = format!("kill -{signal} {pid}");
        assert!(
            daemon
                .command("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
    }
    assert_eq!(daemon.client().get("/info").ok()["pid"], daemon.pid());
    daemon.ends_well();
}

#[test]
fn daemon_of_another_session_is_reported() {
    let (own, other) = (Desktop::wayland(&["1"]), Desktop::wayland(&["1"]));
    let daemon = TestDaemon::started_on(&own);
    let elsewhere = |daemon: &TestDaemon| {
        let mut doctor = daemon.murald(&["doctor", "--json"]);
        for name in ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY"] {
            doctor.env(name, other.var(name).unwrap());
        }
        doctor.env("MURALD_SOCKET", daemon.socket());
        examine_by(doctor)
    };
    reported(&daemon, &elsewhere(&daemon), "fix", "daemon");
    is_mended(&daemon, "daemon");
    let without = TestDaemon::started();
    reported(&without, &elsewhere(&without), "fix", "daemon");
}

#[test]
fn lack_of_watches_is_reported() {
    let apart = ["--user", "--map-root-user"];
    if !may_unshare("a lack of watches", &apart) {
        return;
    }
    let daemon = TestDaemon::new();
    let mut doctor = daemon.command("unshare");
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances && exec {} doctor --json",
        env!("CARGO_BIN_EXE_murald")
    );
    doctor.args(apart).args(["/bin/sh", "-c", &script]);
    reported(&daemon, &examine_by(doctor), "fix", "watches");
}

#[test]
fn database_of_a_newer_version_is_reported() {
    let mut daemon = TestDaemon::started();
    daemon.ends_well();
    let database = rusqlite::Connection::open(daemon.database()).unwrap();
    database.pragma_update(None, "user_version", 1000).unwrap();
    drop(database);
    reported(&daemon, &examine(&daemon), "fix", "database");
    for (words, code) in [(["start"].as_slice(), 70), (&["library", "check"], 1)] {
        let output = daemon.murald(words).output().unwrap();
        let told =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains("has version 1000"), "{told}");
    }
}

#[test]
fn socket_and_directory_of_another_user_are_reported() {
    if !is_root() {
        return left_out("another user's socket", "only root can make one");
    }
    let mut daemon = TestDaemon::new();
    let _listener = UnixListener::bind(daemon.socket()).unwrap();
    std::os::unix::fs::chown(daemon.socket(), Some(12345), None).unwrap();
    reported(&daemon, &examine(&daemon), "fix", "daemon");
    let own = daemon.root().join("own.sock");
    daemon.env("MURALD_SOCKET", own);
    is_mended(&daemon, "daemon");
    let runtime = daemon.socket().parent().unwrap().to_owned();
    std::os::unix::fs::chown(&runtime, Some(12345), None).unwrap();
    reported(&daemon, &examine(&daemon), "fix", "runtime");
    std::os::unix::fs::chown(&runtime, Some(0), None).unwrap();
    is_mended(&daemon, "runtime");
}

#[test]
fn runtime_directory_of_an_ended_session_is_reported() {
    let mut daemon = TestDaemon::new();
    let old = daemon.root().join("over");
    daemon.env("XDG_RUNTIME_DIR", &old);
    reported(&daemon, &examine(&daemon), "fix", "runtime");
    daemon.env("XDG_RUNTIME_DIR", daemon.socket().parent().unwrap());
    is_mended(&daemon, "runtime");
}

#[test]
fn daemon_that_hangs_or_has_another_version_is_reported() {
    let daemon = TestDaemon::new();
    let hangs = UnixListener::bind(daemon.socket()).unwrap();
    reported(&daemon, &examine(&daemon), "fix", "daemon");
    drop(hangs);
    fs::remove_file(daemon.socket()).unwrap();
    let listener = UnixListener::bind(daemon.socket()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(&stream).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|l| !l.is_empty())
                .collect();
            let body = match head.first() {
                Some(first) if first.contains("/info") => r#"{"version":"0.0.1","pid":7}"#,
                _ => "[]",
            };
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            )
            .ok();
        }
    });
    reported(&daemon, &examine(&daemon), "note", "daemon");
}

#[test]
fn missing_programs_are_reported() {
    let mut daemon = TestDaemon::new();
    daemon.stub(
        "systemctl",
        "#!/bin/sh\necho disabled; echo disabled; exit 1\n",
    );
    reported(&daemon, &examine(&daemon), "note", "login");
    daemon.stub("systemctl", "#!/bin/sh\necho enabled; echo disabled\n");
    step(&examine(&daemon), "ok", "checked", &["start at login"]);
    // A machine without a service manager for users.
    daemon.stub(
        "systemctl",
        "#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n",
    );
    reported(&daemon, &examine(&daemon), "note", "login");
    daemon.stub("heif-convert", "#!/bin/sh\n");
    daemon.only(&["sh", "heif-convert"]);
    let found = examine(&daemon);
    reported(&daemon, &found, "note", "formats");
    let names_heif = |one: &Value| one["text"].as_str().unwrap().contains("heif");
    assert!(!found.iter().any(names_heif), "{found:#?}");
}

#[test]
fn missing_backend_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.only(&["sh"]);
    daemon.configure("[backend.builtin]\nenabled = false\n");
    reported(&daemon, &examine(&daemon), "fix", "backend");
    daemon.configure("[backend.builtin]\nenabled = true\n");
    is_mended(&daemon, "backend");
    daemon.configure("[backend]\ntype = \"feh\"\n");
    reported(&daemon, &examine(&daemon), "note", "backend");
    daemon.configure("[backend]\ntype = \"builtin\"\n");
    step(&examine(&daemon), "ok", "backend", &["using builtin"]);
    reported(&daemon, &examine(&daemon), "note", "videos");
    daemon.stub("mpvpaper", "#!/bin/sh\n");
    assert!(
        examine(&daemon)
            .iter()
            .all(|finding| finding["subject"] != "videos")
    );
}

#[test]
fn other_program_that_draws_the_background_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let mut other = Ended(
        desktop
            .command("swaybg")
            .args(["-c", "#c01020"])
            .spawn()
            .unwrap(),
    );
    wait_until("it draws", || {
        examine(&daemon).iter().any(|one| one["subject"] == "other")
    });
    reported(&daemon, &examine(&daemon), "fix", "other");
    other.0.kill().unwrap();
    other.0.wait().unwrap();
    is_mended(&daemon, "other");
}

#[test]
fn backend_that_exits_at_once_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    let real = daemon
        .command("sh")
        .args(["-c", "command -v swaybg"])
        .output()
        .unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    daemon.stub("swaybg", "#!/bin/sh\necho 'no colours today' >&2; exit 1\n");
    daemon.start();
    let path = daemon.root().join("red.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb([200, 30, 30]))
        .save(&path)
        .unwrap();
    let id = daemon.import(&[&path])[0];
    let set = |daemon: &TestDaemon| {
        daemon
            .client()
            .post("/wallpaper/set", &json!({ "image_id": id }))
            .status
    };
    assert_eq!(set(&daemon), 500);
    reported(&daemon, &examine(&daemon), "fix", "picture");
    let why = daemon.client().get("/why").ok()[0]["text"].clone();
    assert!(why.as_str().unwrap().contains("Last failure: red"), "{why}");
    daemon.stub(
        "swaybg",
        &format!("#!/bin/sh\nexec {} \"$@\"\n", real.trim()),
    );
    assert_eq!(set(&daemon), 200);
    is_mended(&daemon, "picture");
}

#[test]
fn damaged_database_is_reported() {
    let mut daemon = TestDaemon::new();
    daemon.stub_murald();
    daemon.start();
    let client = daemon.client();
    for number in 0..60 {
        let body = json!({ "name": format!("folder {number} {}", "x".repeat(200)) });
        client.post("/folders", &body);
    }
    let backups = daemon.database().with_file_name("backup");
    let is_copy = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("murald-"))
    };
    wait_until("the first backup", || {
        fs::read_dir(&backups).is_ok_and(|mut entries| entries.any(is_copy))
    });
    daemon.kill9();
    step(&examine(&daemon), "ok", "checked", &["database"]);
    daemon.start();
    daemon.ends_well();
    let files = || {
        fs::read_dir(daemon.database().parent().unwrap())
            .unwrap()
            .count()
    };
    let before = files();
    step(&examine(&daemon), "ok", "checked", &["database"]);
    assert_eq!(files(), before, "a look leaves nothing");
    // Damage all pages but the first two, so that one in use is among them.
    let mut bytes = fs::read(daemon.database()).unwrap();
    bytes[2 * 4096..].fill(0xa5);
    fs::write(daemon.database(), bytes).unwrap();
    // The rest of the sentence is SQLite's.
    let what = step(&examine(&daemon), "fix", "database", &["is damaged: "]);
    follow(&daemon, &what);
    is_mended(&daemon, "database");
    daemon.start();
}

#[test]
fn records_of_ended_processes_are_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"builtin\"\n");
    daemon.start();
    let path = daemon.root().join("red.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb([200, 30, 30]))
        .save(&path)
        .unwrap();
    let id = daemon.import(&[&path])[0];
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": id }))
        .ok();
    let child = daemon.client().get("/debug").ok()["children"][0]["pid"].to_string();
    daemon.kill9();
    let leftovers = |found: &[Value]| {
        let has = |one: &&Value| one["text"].as_str().unwrap().contains("recorded in");
        found.iter().filter(has).count()
    };
    assert_eq!(leftovers(&examine(&daemon)), 0, "it runs");
    assert!(
        daemon
            .command("kill")
            .arg(&child)
            .status()
            .unwrap()
            .success()
    );
    wait_until("its end is seen", || leftovers(&examine(&daemon)) == 1);
    step(
        &examine(&daemon),
        "note",
        "leftovers",
        &["1 of the processes recorded in "],
    );
    daemon.start();
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": id }))
        .ok();
    daemon.murald(&["stop", "--clear"]).output().unwrap();
    wait_until("nothing is left", || leftovers(&examine(&daemon)) == 0);
}
