//! Tests `murald doctor` in broken situations: each is reported with a step to fix it, and
//! following the step fixes it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::{Ended, House, left_out, may_unshare};

/// Returns all findings. Checks the exit code, which says whether anything is to be fixed.
fn examine_by(mut command: Command) -> Vec<Value> {
    let output = command.output().unwrap();
    let found: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{command:?}: {error}: {output:?}"));
    let is_well = found.iter().all(|finding| finding["state"] != "fix");
    assert_eq!(output.status.code(), Some(if is_well { 0 } else { 1 }), "{output:?}");
    found
}

fn examine(house: &House) -> Vec<Value> {
    examine_by(house.murald(&["doctor", "--json"]))
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
    let [one] = &all[..] else { panic!("not one {state} {subject} {parts:?}: {found:#?}") };
    one["step"].as_str().unwrap_or_default().to_owned()
}

/// Checks that nothing of this subject is to be fixed.
#[track_caller]
fn is_mended(house: &House, subject: &str) {
    let found = examine(house);
    let bad = found.iter().find(|one| one["subject"] == subject && one["state"] == "fix");
    assert!(bad.is_none(), "{bad:?}");
}

/// Runs the command in a step.
#[track_caller]
fn follow(house: &House, step: &str) {
    let line = step.split('`').nth(1).unwrap_or_else(|| panic!("no command in {step:?}"));
    let done = house.command("sh").args(["-c", line]).output().unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn working_session_has_nothing_to_fix() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    let files = || fs::read_dir(house.root()).unwrap().flatten().count();
    let before = files();
    let found = examine(&house);
    // The directory belongs to the user nobody if root cannot start sway otherwise (tests/desktop).
    let runtime = fs::metadata(house.socket().parent().unwrap()).unwrap();
    let is_ours = runtime.uid() == rustix::process::geteuid().as_raw();
    let is_right =
        |one: &Value| (one["state"] == "fix") == (one["subject"] == "runtime" && !is_ours);
    assert!(found.iter().all(is_right), "{found:#?}");
    assert_eq!(files(), before, "it is to change nothing");
    let shell = step(&found, "note", "daemon", &["the daemon is not running"]);
    assert!(shell.contains("murald start"), "{shell}");
    step(&found, "ok", "cache", &["is writable"]);
    step(&found, "ok", "database", &["the first start creates "]);
    house.start();
    let found = examine(&house);
    step(&found, "ok", "database", &["murald.sqlite3 is in use"]);
    step(&found, "ok", "daemon", &[&format!("(process {}, socket", house.pid())]);
    step(&found, "ok", "compositor", &["HEADLESS-1"]);
    // As rows with state, subject, and text with the step.
    let rows = house.murald(&["doctor"]).output().unwrap();
    let rows = String::from_utf8(rows.stdout).unwrap();
    assert!(rows.lines().all(|row| row.split('\t').count() == 3), "{rows}");
}

#[test]
fn swaybg_has_no_transitions() {
    let desktop = Desktop::wayland(&["640x360"]);
    let house = House::on(&desktop);
    house.configure("[backend]\ntype = \"swaybg\"\n");
    let what = step(&examine(&house), "note", "backend", &["swaybg has no transitions"]);
    assert_eq!(what, "`murald backends activate builtin` switches to a renderer that has them");
}

#[test]
fn missing_compositor_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let found = examine(&House::new());
    let what = step(&found, "fix", "compositor", &["WAYLAND_DISPLAY and DISPLAY are not set"]);
    assert!(what.contains("inside your session"), "{what}");
    // Inside a session, there is nothing to fix.
    is_mended(&House::on(&desktop), "compositor");
}

#[test]
fn session_of_the_wrong_kind_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    // Not a display of another user.
    house.env("DISPLAY", ":58000");
    house.configure("[daemon]\ncompositor = \"x11\"\n");
    step(&examine(&house), "fix", "compositor", &["no X11 session found"]);
    house.configure("[daemon]\ncompositor = \"auto\"\n");
    is_mended(&house, "compositor");
}

#[test]
fn compositor_that_hangs_is_reported() {
    let house = House::new();
    let socket = house.socket().with_file_name("wayland-7");
    let _listener = UnixListener::bind(&socket).unwrap();
    step(&examine(&house), "fix", "compositor", &["wayland-7", "does not answer"]);
}

#[test]
fn invalid_settings_are_reported() {
    let house = House::new();
    for (text, parts) in [
        ("[daemon\n", &["line 1"][..]),
        ("[backend]\ntype = 7\n", &["line 2", "type"]),
        ("[hooks]\ntimeout_seconds = 0\n", &["line 2", "timeout_seconds"]),
        ("[daemon]\nimages_dir = \"$NOWHERE/x\"\n", &["images_dir", "NOWHERE"]),
    ] {
        house.configure(text);
        step(&examine(&house), "fix", "settings", parts);
    }
    house.configure("[hooks]\ntimeout_seconds = 5\n");
    is_mended(&house, "settings");
}

#[test]
fn file_in_place_of_a_directory_is_reported() {
    let house = House::new();
    for (place, subject) in [("data", "library"), (".local", "state"), ("cache", "thumbnails")] {
        fs::write(house.root().join(place), "").unwrap();
        let path = house.root().join(place);
        let found = examine(&house);
        let what = step(&found, "fix", subject, &[path.to_str().unwrap(), "is not a directory"]);
        follow(&house, &what);
        is_mended(&house, subject);
    }
}

/// The namespaces in which a test may mount file systems.
const APART: [&str; 3] = ["--user", "--map-root-user", "--mount"];

/// Examines in a separate mount namespace, after a shell has run `preparation`.
fn after(house: &House, preparation: &str) -> Vec<Value> {
    let mut command = house.command("unshare");
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
    let house = House::new();
    fs::create_dir_all(house.images()).unwrap();
    let bind = "mount --bind \"$XDG_DATA_HOME\" \"$XDG_DATA_HOME\"";
    let read_only = format!("{bind} && mount -o remount,bind,ro \"$XDG_DATA_HOME\"");
    let images = house.images();
    let parts = [images.to_str().unwrap(), "read-only"];
    let what = step(&after(&house, &read_only), "fix", "library", &parts);
    assert!(what.contains("remount it writable"), "{what}");
    let fixed = format!("{read_only} && mount -o remount,bind,rw \"$XDG_DATA_HOME\"");
    let found = after(&house, &fixed);
    step(&found, "ok", "library", &[]);
}

#[test]
fn nearly_full_disk_is_reported() {
    if !may_unshare("doctor on a disk that is nearly full", &APART) {
        return;
    }
    let house = House::new();
    fs::create_dir(house.root().join("data")).unwrap();
    let mount =
        |size: &str| format!("mount -t tmpfs -o size={size},mode=700 tmpfs \"$XDG_DATA_HOME\"");
    let what =
        step(&after(&house, &mount("90m")), "fix", "disk", &["90 MiB", "needed by the library"]);
    assert!(what.contains("free some space"), "{what}");
    step(&after(&house, &mount("110m")), "ok", "disk", &["110 MiB"]);
}

#[test]
fn obstacle_at_the_sockets_path_is_reported() {
    let house = House::new();
    fs::write(house.socket(), "").unwrap();
    let what = step(&examine(&house), "fix", "daemon", &["murald.sock is not a socket"]);
    follow(&house, &what);
    is_mended(&house, "daemon");
    // A stale socket of an earlier daemon needs no fix: the next start replaces it.
    drop(UnixListener::bind(house.socket()).unwrap());
    step(&examine(&house), "note", "leftovers", &["stale socket"]);
    is_mended(&house, "daemon");
}

#[test]
fn daemon_with_a_removed_or_other_socket_is_found_by_its_lock() {
    let mut house = House::started();
    let pid = house.pid().to_string();
    let elsewhere = house.root().join("other.sock");
    let say = |words: &[&str]| {
        let mut murald = house.murald(words);
        murald.env("MURALD_SOCKET", &elsewhere).env("MURALD_AUTOSTART", "1");
        let output = murald.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let reach = format!("`murald --socket {} stop`", house.socket().display());
    let (code, told) = say(&["start"]);
    assert_eq!(code, Some(75), "{told}");
    assert!(told.contains(&format!("process {pid} holds")) && told.contains(&reach), "{told}");
    let (code, told) = say(&["random"]);
    assert!(code == Some(75) && told.contains(&reach), "{told}");
    let mut doctor = house.murald(&["doctor", "--json"]);
    doctor.env("MURALD_SOCKET", &elsewhere);
    let listens = format!("(process {pid}, socket {})", house.socket().display());
    step(&examine_by(doctor), "fix", "daemon", &[&listens]);

    fs::remove_file(house.socket()).unwrap();
    let output = house.murald(&["start"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(75), "{told}");
    assert!(told.contains(&format!("its socket is missing: run `kill -HUP {pid}`")), "{told}");
    let what = step(&examine(&house), "fix", "daemon", &["was removed"]);
    follow(&house, &what);
    wait_until("the socket", || house.socket().exists());
    assert_eq!(house.client().get("/info").ok()["pid"], house.pid());
    is_mended(&house, "daemon");

    // A command with another runtime directory finds the daemon by its lock.
    let run = house.root().join("other-run");
    fs::create_dir(&run).unwrap();
    let list = |words: &[&str]| {
        let mut murald = house.murald(words);
        murald.env_remove("MURALD_SOCKET").env("XDG_RUNTIME_DIR", &run);
        murald.env("MURALD_AUTOSTART", "1").output().unwrap()
    };
    for words in [["monitors"].as_slice(), &["random"], &["watch", "list"]] {
        let output = list(words);
        let told = String::from_utf8(output.stderr).unwrap();
        // `random` fails, as the library is empty.
        let is_answered = output.status.code() == Some(i32::from(words == ["random"]));
        assert!(is_answered && !told.contains("started murald"), "{words:?}: {told}");
    }
    let output = list(&["doctor", "--json"]);
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let listens = format!("(process {pid}, socket {})", house.socket().display());
    step(&found, "ok", "daemon", &[&listens]);
    for signal in ["USR1", "USR2", "ALRM"] {
        let kill = format!("kill -{signal} {pid}");
        assert!(house.command("sh").args(["-c", &kill]).status().unwrap().success());
    }
    assert_eq!(house.client().get("/info").ok()["pid"], house.pid());
    house.ends_well();
}

#[test]
fn database_of_a_newer_version_is_reported() {
    let mut house = House::started();
    house.ends_well();
    let database = rusqlite::Connection::open(house.database()).unwrap();
    database.pragma_update(None, "user_version", 1000).unwrap();
    drop(database);
    let what = step(&examine(&house), "fix", "database", &["has version 1000"]);
    assert!(what.contains("`murald library restore`"), "{what}");
    for (words, code) in [(["start"].as_slice(), 70), (&["library", "check"], 1)] {
        let output = house.murald(words).output().unwrap();
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
    let mut house = House::new();
    let _listener = UnixListener::bind(house.socket()).unwrap();
    std::os::unix::fs::chown(house.socket(), Some(12345), None).unwrap();
    let what = step(&examine(&house), "fix", "daemon", &["belongs to user 12345"]);
    assert!(what.contains("MURALD_SOCKET"), "{what}");
    let own = house.root().join("own.sock");
    house.env("MURALD_SOCKET", own);
    is_mended(&house, "daemon");
    let runtime = house.socket().parent().unwrap().to_owned();
    std::os::unix::fs::chown(&runtime, Some(12345), None).unwrap();
    step(&examine(&house), "fix", "runtime", &["belongs to user 12345"]);
    std::os::unix::fs::chown(&runtime, Some(0), None).unwrap();
    is_mended(&house, "runtime");
}

#[test]
fn runtime_directory_of_an_ended_session_is_reported() {
    let mut house = House::new();
    let old = house.root().join("over");
    house.env("XDG_RUNTIME_DIR", &old);
    let what = step(&examine(&house), "fix", "runtime", &["over", "No such file"]);
    assert!(what.contains("export XDG_RUNTIME_DIR="), "{what}");
    house.env("XDG_RUNTIME_DIR", house.socket().parent().unwrap());
    is_mended(&house, "runtime");
}

#[test]
fn daemon_that_hangs_or_has_another_version_is_reported() {
    let house = House::new();
    let hangs = UnixListener::bind(house.socket()).unwrap();
    step(&examine(&house), "fix", "daemon", &["does not answer"]);
    drop(hangs);
    fs::remove_file(house.socket()).unwrap();
    let listener = UnixListener::bind(house.socket()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(&stream).lines();
            let head: Vec<String> =
                lines.map_while(Result::ok).take_while(|l| !l.is_empty()).collect();
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
    let what = step(&examine(&house), "note", "daemon", &["murald 0.0.1 is running (process 7"]);
    assert!(what.contains("murald stop"), "{what}");
}

#[test]
fn missing_programs_are_reported() {
    let mut house = House::new();
    house.stub("systemctl", "#!/bin/sh\necho disabled; echo disabled; exit 1\n");
    let what = step(&examine(&house), "note", "unit", &["does not start murald"]);
    assert!(what.contains("`systemctl --user enable --now murald`"), "{what}");
    house.stub("systemctl", "#!/bin/sh\necho enabled; echo disabled\n");
    step(&examine(&house), "ok", "unit", &[]);
    // A machine without a service manager for users.
    house.stub("systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n");
    assert!(examine(&house).iter().all(|finding| finding["subject"] != "unit"));
    house.stub("heif-convert", "#!/bin/sh\n");
    house.only(&["sh", "heif-convert"]);
    let what = step(&examine(&house), "note", "ffmpeg", &["not installed"]);
    assert_eq!(what, "install ffmpeg");
    let what = step(&examine(&house), "note", "djxl", &["not installed", "JPEG XL"]);
    assert_eq!(what, "install djxl (Debian: libjxl-tools), if you have such files");
    step(&examine(&house), "ok", "heif-convert", &["AVIF, HEIC"]);
}

#[test]
fn missing_backend_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    house.only(&["sh"]);
    house.configure("[backend.builtin]\nenabled = false\n");
    let what = step(&examine(&house), "fix", "backend", &["no backend is installed"]);
    assert!(what.contains("backend.builtin.enabled to true, or install one of awww"), "{what}");
    house.configure("[backend.builtin]\nenabled = true\n");
    is_mended(&house, "backend");
    house.configure("[backend]\ntype = \"feh\"\n");
    let what = step(&examine(&house), "note", "backend", &["feh", "using builtin"]);
    assert_eq!(what, "install feh, or set backend.type to builtin");
    house.configure("[backend]\ntype = \"builtin\"\n");
    step(&examine(&house), "ok", "backend", &["using builtin"]);
    let what = step(&examine(&house), "note", "videos", &["no installed program"]);
    assert_eq!(what, "optional: install mpvpaper or wal-qt");
    house.stub("mpvpaper", "#!/bin/sh\n");
    assert!(examine(&house).iter().all(|finding| finding["subject"] != "videos"));
}

#[test]
fn other_program_that_draws_the_background_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let house = House::started_on(&desktop);
    let mut other = Ended(desktop.command("swaybg").args(["-c", "#c01020"]).spawn().unwrap());
    let pid = format!("swaybg (process {})", other.0.id());
    wait_until("it draws", || examine(&house).iter().any(|one| one["subject"] == "other"));
    let what = step(&examine(&house), "fix", "other", &[&pid]);
    follow(&house, &what);
    other.0.wait().unwrap();
    is_mended(&house, "other");
}

#[test]
fn background_in_the_configuration_of_sway_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let house = House::on(&desktop);
    let configuration = Path::new(desktop.var("DESKTOP_DIR").unwrap()).join("sway.conf");
    let before = fs::read_to_string(&configuration).unwrap();
    let line = "output * bg #c01020 solid_color";
    fs::write(&configuration, format!("{before}{line}\n")).unwrap();
    desktop.output("swaymsg", &["reload"]);
    let is_there = || examine(&house).iter().any(|one| one["subject"] == "other");
    wait_until("sway's own swaybg", is_there);
    let what = step(&examine(&house), "fix", "other", &["swaybg (process "]);
    let number = before.lines().count() + 1;
    let named = format!("line {number} of {}: {line}", configuration.display());
    assert!(what.contains(&named), "{what}");
    fs::write(&configuration, before).unwrap();
    follow(&house, &what);
    wait_until("it is gone", || !is_there());
}

#[test]
fn backend_that_exits_at_once_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    house.configure("[backend]\ntype = \"swaybg\"\n");
    let real = house.command("sh").args(["-c", "command -v swaybg"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    house.stub("swaybg", "#!/bin/sh\necho 'no colours today' >&2; exit 1\n");
    house.start();
    let path = house.root().join("red.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb([200, 30, 30])).save(&path).unwrap();
    let id = house.import(&[&path])[0];
    let set =
        |house: &House| house.client().post("/wallpaper/set", &json!({ "image_id": id })).status;
    assert_eq!(set(&house), 500);
    let parts = ["red could not be shown on HEADLESS-1 by swaybg", "no colours today"];
    step(&examine(&house), "fix", "picture", &parts);
    let why = house.client().get("/why").ok()[0]["text"].clone();
    assert!(why.as_str().unwrap().contains("Last failure: red"), "{why}");
    house.stub("swaybg", &format!("#!/bin/sh\nexec {} \"$@\"\n", real.trim()));
    assert_eq!(set(&house), 200);
    is_mended(&house, "picture");
}

#[test]
fn damaged_database_is_reported() {
    let mut house = House::new();
    house.stub("murald", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_murald")));
    house.start();
    let client = house.client();
    for number in 0..60 {
        let body = json!({ "name": format!("folder {number} {}", "x".repeat(200)) });
        client.post("/folders", &body);
    }
    let backups = house.database().with_file_name("backup");
    let is_copy = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("murald-"))
    };
    wait_until("the first backup", || {
        fs::read_dir(&backups).is_ok_and(|mut entries| entries.any(is_copy))
    });
    house.kill9();
    step(&examine(&house), "note", "database", &["not closed cleanly"]);
    house.start();
    house.ends_well();
    let files = || fs::read_dir(house.database().parent().unwrap()).unwrap().count();
    let before = files();
    step(&examine(&house), "ok", "database", &["is intact"]);
    assert_eq!(files(), before, "a look leaves nothing");
    // Damage all pages but the first two, so that one in use is among them.
    let mut bytes = fs::read(house.database()).unwrap();
    bytes[2 * 4096..].fill(0xa5);
    fs::write(house.database(), bytes).unwrap();
    let what = step(&examine(&house), "fix", "database", &["is damaged: "]);
    follow(&house, &what);
    is_mended(&house, "database");
    house.start();
}

#[test]
fn records_of_ended_processes_are_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    house.configure("[backend]\ntype = \"builtin\"\n");
    house.start();
    let path = house.root().join("red.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb([200, 30, 30])).save(&path).unwrap();
    let id = house.import(&[&path])[0];
    house.client().post("/wallpaper/set", &json!({ "image_id": id })).ok();
    let child = house.client().get("/debug").ok()["children"][0]["pid"].to_string();
    house.kill9();
    let leftovers = |found: &[Value]| {
        let has = |one: &&Value| one["text"].as_str().unwrap().contains("recorded in");
        found.iter().filter(has).count()
    };
    assert_eq!(leftovers(&examine(&house)), 0, "it runs");
    assert!(house.command("kill").arg(&child).status().unwrap().success());
    wait_until("its end is seen", || leftovers(&examine(&house)) == 1);
    step(&examine(&house), "note", "leftovers", &["1 of the processes recorded in "]);
    house.start();
    house.client().post("/wallpaper/set", &json!({ "image_id": id })).ok();
    house.murald(&["stop", "--clear"]).output().unwrap();
    wait_until("nothing is left", || leftovers(&examine(&house)) == 0);
}
