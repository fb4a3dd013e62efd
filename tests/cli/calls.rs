//! The command as people and scripts use it: the real executable, with and without a daemon.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{House, PATIENCE};

fn run(house: &House, line: &[&str]) -> Output {
    house.murald(line).output().unwrap()
}

/// What a call printed, which must have succeeded.
#[track_caller]
fn ok(house: &House, line: &[&str]) -> String {
    let output = run(house, line);
    assert_eq!(output.status.code(), Some(0), "{line:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json_of(house: &House, line: &[&str]) -> Value {
    serde_json::from_str(&ok(house, line)).unwrap()
}

/// Checks a failed call: its exit code, no output, and how what it says begins.
#[track_caller]
fn fails(house: &House, line: &[&str], code: i32, told: &str) {
    let output = run(house, line);
    let found = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{line:?}: {found}");
    assert!(output.stdout.is_empty(), "{line:?}");
    assert!(found.starts_with(told), "{line:?}: {found}");
    assert!(!found.contains("Commands:") && found.lines().count() < 5, "{line:?}: {found}");
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn wait(mut child: Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it does not end");
        }
        std::thread::yield_now();
    }
}

/// Different pictures, `count` of them, in a directory.
fn pictures(house: &House, count: u8) -> PathBuf {
    let directory = house.root().join("pictures");
    fs::create_dir_all(&directory).unwrap();
    for number in 0..count {
        let color = image::Rgb([number, 255 - number, 90]);
        let picture = image::RgbImage::from_pixel(120 + u32::from(number), 80, color);
        picture.save(directory.join(format!("p{number}.png"))).unwrap();
    }
    directory
}

#[test]
fn without_a_daemon() {
    let house = House::new();
    let nobody = format!("murald: no daemon listens on {}\n  start it", house.socket().display());
    for line in [
        &["status"][..],
        &["stop"],
        &["set", "1"],
        &["random"],
        &["images", "list"],
        &["import", "x"],
        &["events"],
        &["config", "get"],
        &["monitors"],
        &["playlist", "next", "7"],
    ] {
        fails(&house, line, 69, &nobody);
    }
    // For a script the same, as JSON.
    fails(&house, &["monitors", "--json"], 69, "{\"error\":\"no daemon listens on ");
    fails(&house, &["--json", "set"], 2, "{\"error\":\"ID is missing\",\"details\":\"usage: ");
    let file = house.config_file();
    assert_eq!(ok(&house, &["config", "path"]), format!("{}\n", file.display()));
    assert_eq!(ok(&house, &["--config", "/x", "config", "path"]), "/x\n");
    assert!(!file.exists(), "only the daemon makes it");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(ok(&house, &["--version"]), format!("murald {version}\n"));
    let versions = json_of(&house, &["version"]);
    assert_eq!(versions, json!({"version": version, "daemon": null}));
    assert!(ok(&house, &["--help"]).contains("images list"));
}

#[test]
fn a_file_of_settings_is_checked_without_a_daemon() {
    let house = House::new();
    let file = house.config_file();
    let fails = |line: &[&str], told: &str| {
        fails(&house, line, 78, &format!("murald: {told}"));
    };
    fails(&["config", "check"], &format!("cannot read {}: ", file.display()));
    let check = |toml: &str, told: &str| {
        house.configure(toml);
        fails(&["config", "check"], &format!("{}{told}", file.display()));
        assert_eq!(fs::read_to_string(&file).unwrap(), toml);
    };
    check("[app]\n\nimages_per_page = 'x'\n", ", line 3, column 19: app.images_per_page must be ");
    check("[daemon]\nlog_level = \n", ", line 2, column ");
    check("[daemon]\nlog_file = '$NOWHERE/x'\n", ": daemon.log_file: the variable NOWHERE in ");
    let other = house.root().join("other file.toml");
    fs::write(&other, "[backend]\ntype = 'bk1'\n[app]\nmine = 1\n").unwrap();
    let other = other.to_str().unwrap();
    for line in [&["config", "check", other][..], &["--config", other, "config", "check"]] {
        let told = ok(&house, line);
        assert!(told.starts_with("line 2: backend.type: \"bk1\" is none of awww, "), "{told}");
        assert_eq!(
            told.lines().count(),
            json_of(&house, &[line, &["--json"]].concat()).as_array().unwrap().len()
        );
    }
    house.configure("");
    assert_eq!(ok(&house, &["config", "check"]), "");
}

#[test]
fn wrong_usage() {
    let house = House::new();
    fails(&house, &["frobnicate"], 2, "murald: there is no command \"frobnicate\"\n");
    fails(&house, &["set"], 2, "murald: ID is missing\n  usage: murald set ID");
    fails(&house, &["start", "--frob"], 2, "murald: murald start has no flag --frob\n");
    fails(&house, &["--log-level", "loud"], 2, "murald: --log-level must be one of debug, ");
    fails(&house, &["events", "--types", "x"], 2, "murald: --types must be one of ");
    fails(&house, &["config", "set", "app", "x"], 2, "murald: \"x\" is not a JSON object");
}

#[test]
fn what_the_daemon_refuses() {
    let mut house = House::new();
    house.start();
    let no_section = "murald: there is no section \"wall\": sections are app, daemon, monitors, ";
    fails(&house, &["config", "get", "wall"], 1, no_section);
    // It is changed by activating one, through the whole and through each backend's section.
    let backend = "murald: there is no section \"backend\"";
    fails(&house, &["config", "get", "backend"], 1, backend);
    fails(&house, &["config", "get", "backend", "type"], 1, backend);
    fails(&house, &["config", "set", "backend", "type", "feh"], 1, backend);
    fails(&house, &["config", "set", "backend", r#"{"type": "feh"}"#], 1, backend);
    // The daemon keeps it, as the file may have it, and goes on with the default.
    let unused = "murald: daemon.log_level cannot be \"loud\"; \"info\" is used instead\n";
    let output = run(&house, &["config", "set", "daemon", "log_level", "loud"]);
    assert_eq!((output.status.code(), stderr(&output).starts_with(unused)), (Some(1), true));
    // There is nothing to show; then there is nothing to show it on.
    fails(&house, &["random"], 1, "murald: the library is empty\n");
    let picture = house.root().join("a.png");
    image::RgbImage::new(8, 8).save(&picture).unwrap();
    house.import(&[&picture]);
    let no_monitor = "murald: no monitor is connected, or no compositor can be reached\n";
    fails(&house, &["random"], 1, no_monitor);
    fails(
        &house,
        &["random", "--monitor", "DP-1"],
        1,
        "murald: not connected: DP-1; no monitor is",
    );
    fails(&house, &["themes", "show", "nord"], 1, "murald: there is no theme \"nord\"\n");
    fails(&house, &["config", "get", "app", "frob"], 1, "murald: app has no setting \"frob\"\n");
    fails(&house, &["images", "show", "7"], 1, "murald: there is no image 7\n");
    fails(&house, &["set", "7"], 1, "murald: ");
    fails(&house, &["images", "raw", "7", "--output", "x"], 1, "murald: there is no image 7\n");
    let output = run(&house, &["images", "show", "7", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(told["code"], 404);
}

#[test]
fn sections_of_the_file_are_sections_of_the_command() {
    let mut house = House::new();
    house.start();
    let set = |line: &[&str]| json_of(&house, &[&["config", "set"], line].concat());
    assert_eq!(set(&["backend.auto_priorities", "image", "[\"feh\"]"])["image"], json!(["feh"]));
    assert_eq!(set(&["backend.awww", "fill-color", "123456"])["fill_color"], "123456");
    let get = |line: &[&str]| json_of(&house, &[&["config", "get"], line].concat());
    assert_eq!(get(&["backend.auto_priorities", "image"]), json!(["feh"]));
    let whole = get(&[]);
    assert_eq!(whole["backend"]["auto_priorities"]["image"], json!(["feh"]));
    assert_eq!(json_of(&house, &["config", "show", "backend.awww", "fill_color"]), "123456");
}

#[test]
fn themes_are_files_and_json() {
    let mut house = House::new();
    house.start();
    let themes = house.config_file().with_file_name("themes");
    fs::create_dir_all(&themes).unwrap();
    fs::write(themes.join("nord.css"), ":root {}\n").unwrap();
    assert_eq!(json_of(&house, &["themes", "list"])[0]["name"], "nord");
    assert_eq!(ok(&house, &["themes", "show", "nord"]), ":root {}\n");
    let json = json_of(&house, &["theme", "get", "nord", "--json"]);
    assert_eq!(json, json!({"name": "nord", "css": ":root {}\n"}));
}

#[test]
fn starts_that_fail() {
    let mut house = House::new();
    house.configure("[app]\ntheme = \"dark\"\nimages_per_page = \"many\"\n");
    let file = house.config_file();
    let told =
        format!("murald: {}, line 3, column 19: app.images_per_page must be", file.display());
    fails(&house, &["start"], 78, &told);
    fs::remove_file(file).unwrap();
    house.start();
    fails(&house, &["start"], 75, "murald: a daemon is running already: it holds ");
    fails(&house, &[], 75, "murald: a daemon is running already: it holds ");
}

#[test]
fn stop_waits_until_the_daemon_is_gone() {
    let mut house = House::new();
    for flags in [&["stop"][..], &["stop", "--clear"]] {
        house.start();
        let status = json_of(&house, &["status"]);
        assert_eq!(status["info"]["pid"], house.pid());
        assert_eq!(status["monitors"], json!([]));
        let before = house.pid();
        assert_eq!(ok(&house, flags), "{\"status\":\"shutting_down\"}\n");
        let state = fs::read_to_string(format!("/proc/{before}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "it runs: {state}");
        assert_eq!(house.wait().code(), Some(0));
    }
}

#[test]
fn another_socket() {
    let mut house = House::new();
    let socket = house.root().join("other.sock");
    let socket = socket.to_str().unwrap();
    let mut daemon = house.murald(&["--socket", socket]);
    let mut daemon = daemon.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(daemon.stderr.take().unwrap()).lines();
    assert!(errors.any(|line| line.unwrap().contains("is up")));
    fails(&house, &["config", "get"], 69, "murald: no daemon listens on ");
    assert!(json_of(&house, &["--socket", socket, "config", "get"]).is_object());
    house.env("MURALD_SOCKET", socket);
    assert!(json_of(&house, &["config", "get"]).is_object());
    ok(&house, &["stop"]);
    assert_eq!(wait(daemon).code(), Some(0));
}

#[test]
fn settings_by_word_and_by_json() {
    let mut house = House::new();
    house.start();
    let set = |line: &[&str]| ok(&house, &[&["config", "set"], line].concat());
    let get = |section: &str, key: &str| json_of(&house, &["config", "get", section, key]);
    set(&["app", "images_per_page", "80"]);
    assert_eq!(get("app", "images_per_page"), 80);
    set(&["app", "theme", "80"]);
    assert_eq!(get("app", "theme"), "80");
    set(&["app", r#"{"notifications": false, "theme": "system"}"#]);
    assert_eq!(get("app", "notifications"), false);
    set(&["backend.awww", "transition_type", "fade"]);
    assert_eq!(get("backend.awww", "transition_type"), "fade");
    fails(&house, &["config", "set", "backend.awww", "transition_duration", "500"], 1, "murald: ");
    ok(&house, &["config", "reset", "awww"]);
    assert_eq!(get("backend.awww", "transition_type"), "wipe");
    assert_eq!(get("app", "theme"), "system");
    ok(&house, &["config", "patch", r#"{"backend": {"selection_mode": "auto"}}"#]);
    assert_eq!(json_of(&house, &["config", "get"])["backend"]["selection_mode"], "auto");
    ok(&house, &["config", "reset"]);
    assert_eq!(get("app", "theme"), "dark");
}

/// A call that goes on, and the lines that it prints.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn new(house: &House, line: &[&str]) -> Self {
        let mut command = house.murald(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The first event, with `cause` called until one comes: nothing tells when the stream is open.
    fn first(&self, mut cause: impl FnMut(u32)) -> Value {
        for turn in 0.. {
            cause(turn);
            match self.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => return serde_json::from_str(&line).unwrap(),
                Err(_) => assert!(turn < 200, "no event comes"),
            }
        }
        unreachable!()
    }

    fn end(mut self) -> (ExitStatus, String) {
        let mut errors = self.child.stderr.take().unwrap();
        let status = wait(self.child);
        let mut told = String::new();
        errors.read_to_string(&mut told).unwrap();
        (status, told)
    }
}

fn change(house: &House, turn: u32) {
    ok(house, &["config", "set", "app", "images_per_page", &(60 + turn % 9).to_string()]);
}

#[test]
fn events_are_lines_until_the_daemon_ends() {
    let mut house = House::new();
    house.start();
    let events = Running::new(&house, &["events", "--types", "config_changed,gallery_changed"]);
    let event = events.first(|turn| change(&house, turn));
    assert_eq!(event["event"], "config_changed");
    assert_eq!(event["data"]["sections"], json!(["app"]));
    ok(&house, &["stop"]);
    let (status, told) = events.end();
    assert_eq!((status.code(), told.as_str()), (Some(69), "murald: the daemon has ended\n"));
}

#[test]
fn a_reader_that_goes_is_a_quiet_end() {
    let mut house = House::new();
    house.start();
    // Whoever reads goes while nothing happens.
    let mut events = house.murald(&["events"]);
    let mut events = events.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(events.stdout.take());
    let mut errors = events.stderr.take().unwrap();
    assert_eq!(wait(events).code(), Some(0));
    let mut told = String::new();
    errors.read_to_string(&mut told).unwrap();
    assert_eq!(told, "");
    for line in [&["status"][..], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = house.murald(line).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{line:?}");
    }
}

#[test]
fn imports_tell_how_they_go() {
    let mut house = House::new();
    house.start();
    let directory = pictures(&house, 4);
    fs::write(directory.join("bad.png"), "letters").unwrap();
    let directory = directory.to_str().unwrap();
    let output = run(&house, &["import", directory]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.starts_with("murald: 1 file could not be imported\n  "), "{told}");
    assert!(told.contains("bad.png: "), "{told}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(events[0]["event"], "processing_started");
    assert_eq!((count("image_processed"), count("image_error")), (4, 1));
    assert_eq!(events.last().unwrap()["event"], "processing_complete");
    assert_eq!(events.last().unwrap()["data"]["succeeded"], 4);
    // A relative path is meant from here, not from where the daemon is.
    let mut again = house.murald(&["import", "p0.png", "p1.png"]);
    let again = again.current_dir(directory).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let started = json_of(&house, &["import", "--no-wait", directory]);
    assert_eq!(started["total"], 5);
    assert_eq!(json_of(&house, &["images", "list"])["pagination"]["total_items"], 4);
}

#[test]
fn an_interrupted_import_is_cancelled() {
    let mut house = House::new();
    house.start();
    let directory = pictures(&house, 250);
    let import = Running::new(&house, &["import", directory.to_str().unwrap()]);
    let first = import.lines.recv_timeout(PATIENCE).unwrap();
    assert!(first.contains("processing_started"), "{first}");
    let status = Command::new("kill").args(["-INT", &import.child.id().to_string()]).status();
    assert!(status.unwrap().success());
    let mut last = String::new();
    while let Ok(line) = import.lines.recv_timeout(PATIENCE) {
        last = line;
    }
    assert!(last.contains("processing_cancelled"), "{last}");
    let (status, told) = import.end();
    assert_eq!(status.code(), Some(1));
    assert!(told.starts_with("murald: cancelled after "), "{told}");
    let taken = &json_of(&house, &["images", "list"])["pagination"]["total_items"];
    assert!(taken.as_u64().unwrap() < 250, "{taken}");
}

#[test]
fn images_from_all_sides() {
    let mut house = House::new();
    house.start();
    let directory = pictures(&house, 3);
    house.import(&[&directory]);
    let list = json_of(&house, &["images", "list", "--sort-by", "name", "--sort-order", "asc"]);
    let id = list["data"][0]["id"].to_string();
    assert_eq!(list["data"][0]["name"], "p0");
    assert_eq!(json_of(&house, &["images", "show", &id]), list["data"][0]);
    let copy = house.root().join("copy.png");
    ok(&house, &["images", "raw", &id, "--output", copy.to_str().unwrap()]);
    assert_eq!(fs::read(&copy).unwrap(), fs::read(directory.join("p0.png")).unwrap());
    let thumbnail = run(&house, &["images", "thumbnail", &id]).stdout;
    assert_eq!((&thumbnail[..4], &thumbnail[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));
    assert_eq!(json_of(&house, &["images", "delete", &id, "999"]), json!({"deleted": 1}));
    assert_eq!(json_of(&house, &["images", "list"])["pagination"]["total_items"], 2);
}

#[test]
fn folders_from_all_sides() {
    let mut house = House::new();
    house.start();
    let directory = pictures(&house, 2);
    let images = house.import(&[&directory]);
    let make =
        |line: &[&str]| json_of(&house, &[&["folders", "create"], line].concat())["id"].to_string();
    let sea = make(&["sea"]);
    let bay = make(&["bay", "--parent", &sea]);
    let image = images[0].to_string();
    assert_eq!(json_of(&house, &["folders", "add", &bay, &image]), json!({"moved": 1}));
    let inside = json_of(&house, &["images", "list", "--folder", &bay]);
    assert_eq!(inside["data"][0]["id"], images[0]);
    let path = json_of(&house, &["folders", "path", &bay]);
    assert_eq!(path["data"][0]["name"], "sea");
    fails(&house, &["folders", "move", &sea, &bay], 1, "murald: ");
    json_of(&house, &["folders", "move", &bay, "root"]);
    assert_eq!(json_of(&house, &["folders", "rename", &bay, "shore"])["name"], "shore");
    assert_eq!(
        json_of(&house, &["folders", "list", "--parent", "root"])["data"][1]["name"],
        "shore"
    );
    let gone = json_of(&house, &["folders", "delete", &bay, "--all"]);
    assert_eq!(gone["images_deleted"], 1);
    assert_eq!(json_of(&house, &["folders", "delete", &sea])["mode"], "keep_contents");
}

#[test]
fn people_get_tables_that_fit() {
    let mut house = House::new();
    house.start();
    let directory = pictures(&house, 2);
    fs::rename(directory.join("p0.png"), directory.join(format!("{}.png", "long ".repeat(30))))
        .unwrap();
    house.import(&[&directory]);
    let murald = env!("CARGO_BIN_EXE_murald");
    let on_terminal = |house: &House, line: &str| {
        let script = format!("stty cols 50; {murald} {line}");
        let output = house.command("script").args(["-qec", &script, "/dev/null"]).output();
        String::from_utf8(output.unwrap().stdout).unwrap().replace('\r', "")
    };
    let list = on_terminal(&house, "images list");
    assert!(list.starts_with("ID  NAME"), "{list}");
    assert!(list.contains('…') && list.ends_with("page 1 of 1, 2 images\n"), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 50), "{list}");
    assert!(
        on_terminal(&house, "status").contains("\nbackend   none"),
        "{}",
        on_terminal(&house, "status")
    );
    assert_eq!(on_terminal(&house, "playlist frob").lines().count(), 2);
    let bar = on_terminal(&house, &format!("import {}", directory.display()));
    assert!(bar.contains("░ 0/2") && bar.contains("█ 2/2"), "{bar:?}");
    assert!(bar.ends_with("0 images imported, 2 in the library already\n"), "{bar:?}");
    let json = on_terminal(&house, "--json images list");
    assert!(json.starts_with("{\"data\":"), "{json}");
    house.env("TERM", "xterm-256color");
    let shown = on_terminal(&house, "images show 1");
    assert!(shown.contains("\x1b[38;5;") && shown.contains('▀'), "{shown:?}");
    assert!(shown.contains("image (png)"), "{shown:?}");
}
