//! Calls of the real executable, as users and scripts make them, with and without a daemon.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::call::{fails, json_of, ok, pictures, run, stderr};
use crate::support::{House, end_of};

#[test]
fn commands_without_a_daemon_say_so_and_exit_with_69() {
    let house = House::new();
    let nobody = format!(
        "murald: the daemon is not running (no socket at {})\n  start it",
        house.socket().display()
    );
    for line in [
        &["status"][..],
        &["set", "1"],
        &["random"],
        &["images", "list"],
        &["import", "x"],
        &["events"],
        &["config", "get"],
        &["config", "get", "backend.type"],
        &["config", "set", "backend.type", "feh"],
        &["monitors"],
        &["playlist", "next", "7"],
    ] {
        fails(&house, line, 69, &nobody);
    }
    // There is nothing to stop.
    assert_eq!(ok(&house, &["stop"]), "");
    assert_eq!(json_of(&house, &["stop"]), json!({ "status": "not_running" }));
    assert_eq!(
        ok(&house, &["stop", "--clear"]),
        "no daemon runs, and no wallpaper of murald is left\n"
    );
    let socket = house.socket().display().to_string();
    for line in [&["--socket", &socket, "stop"][..], &["stop", "--clear", "--socket", &socket]] {
        fails(&house, line, 69, &nobody);
    }
    let long = format!("/tmp/{}/murald.sock", "x".repeat(120));
    let told = format!("murald: {long} cannot be a socket: ");
    fails(&house, &["--socket", &long, "status"], 69, &told);
    assert_eq!(ok(&house, &["off"]), "no daemon runs, and no wallpaper of murald is left\n");
    // There is no database yet that could be damaged.
    assert!(ok(&house, &["library", "check"]).starts_with("database\t"));
    // With `--json`, errors are JSON as well.
    fails(
        &house,
        &["monitors", "--json"],
        69,
        "{\"error\":\"the daemon is not running (no socket at ",
    );
    fails(
        &house,
        &["--json", "set"],
        2,
        "{\"error\":\"missing argument PICTURE\",\"code\":400,\"details\":\"usage: ",
    );
    let file = house.config_file();
    assert_eq!(ok(&house, &["config", "path"]), format!("{}\n", file.display()));
    assert_eq!(ok(&house, &["--config", "/x", "config", "path"]), "/x\n");
    assert!(!file.exists(), "only the daemon creates it");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(ok(&house, &["--version"]), format!("murald {version}\n"));
    let versions = json_of(&house, &["version"]);
    assert_eq!(versions, json!({"version": version, "daemon": null}));
    assert!(ok(&house, &["--help"]).contains("set IMAGE"));
    assert!(ok(&house, &["help", "all"]).contains("images list"));
}

#[test]
fn config_file_is_checked_without_a_daemon() {
    let house = House::new();
    let file = house.config_file();
    let fails = |line: &[&str], told: &str| {
        fails(&house, line, 78, &format!("murald: {told}"));
    };
    // Without a file the daemon uses the defaults, but a file that is named must exist.
    assert_eq!(json_of(&house, &["config", "check", "--json"]), json!([]));
    assert!(ok(&house, &["config", "check"]).is_empty());
    let named = file.to_str().unwrap();
    for line in [&["config", "check", named][..], &["--config", named, "config", "check"]] {
        fails(line, &format!("cannot read {named}: "));
    }
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
        assert!(told.starts_with("line 2: backend.type must be one of awww, "), "{told}");
        assert_eq!(
            told.lines().count(),
            json_of(&house, &[line, &["--json"]].concat()).as_array().unwrap().len()
        );
    }
    house.configure("");
    assert_eq!(ok(&house, &["config", "check"]), "");
}

#[test]
fn wrong_usage_is_explained_and_exits_with_2() {
    let house = House::new();
    fails(&house, &["frobnicate"], 2, "murald: unknown command \"frobnicate\"\n");
    fails(&house, &["set"], 2, "murald: missing argument PICTURE\n  usage: murald set PICTURE");
    fails(&house, &["start", "--frob"], 2, "murald: unknown flag --frob\n");
    fails(&house, &["--log-level", "loud"], 2, "murald: --log-level must be one of debug, ");
    fails(&house, &["events", "--types", "x"], 2, "murald: --types must be one of ");
    fails(&house, &["config", "set", "app", "x"], 2, "murald: \"x\" is not a JSON object");
}

#[test]
fn settings_without_effect_are_reported() {
    let house = House::started();
    let check = |line: &[&str], told: &str| {
        let output = run(&house, line);
        let found = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line:?}: {found}");
        assert!(found.starts_with("murald: ") && found.contains(told), "{line:?}: {found}");
    };
    check(&["config", "set", "backend.feh.mode", "x"], "backend.feh.mode must be one of");
    check(&["config", "set", "app.sort_by", "y"], "app.sort_by must be one of");
    check(&["config", "set", "backend.type", "wal-qt"], "backend.type: wal-qt is not installed");
    check(&["config", "patch", r#"{"app": {"theme": "z"}}"#], "app.sort_by must be one of");
    check(&["config", "set", "backend.type", "awww"], "backend.type: awww is not installed");
    // Only settings that somebody has changed are reported.
    for line in [&["config", "reset"][..], &["config", "set", "backend.feh.mode", "max"]] {
        assert_eq!(stderr(&run(&house, line)), "");
    }
    let whole = ok(&house, &["--json", "config", "get"]);
    assert!(!whole.contains("\"warnings\""), "{whole}");
    assert_eq!(stderr(&run(&house, &["config", "patch", &whole])), "");
}

#[test]
fn refusals_of_the_daemon_are_printed() {
    let house = House::started();
    let no_section = "murald: no section named \"wall\": sections are app, daemon, library, ";
    fails(&house, &["config", "get", "wall"], 1, no_section);
    // `backend` is no section: `activate` sets its type, and each backend has its own section.
    let backend = "murald: no section named \"backend\"";
    fails(&house, &["config", "get", "backend"], 1, backend);
    fails(&house, &["config", "set", "backend", r#"{"type": "feh"}"#], 1, backend);
    let output = run(&house, &["config", "get", "backend"]);
    assert!(stderr(&output).contains("backend.type"), "{}", stderr(&output));
    let output = run(&house, &["config", "set", "swaybg.fit_mode", "fit"]);
    let told = stderr(&output);
    assert!(
        told.contains("no section named \"swaybg.fit_mode\"") && told.contains("backend.NAME"),
        "{told}"
    );
    // The daemon keeps an invalid value, as it does in the file, and uses the default.
    let unused = "murald: daemon.log_level cannot be \"loud\"; using \"info\"\n";
    let output = run(&house, &["config", "set", "daemon", "log_level", "loud"]);
    assert_eq!((output.status.code(), stderr(&output).starts_with(unused)), (Some(1), true));
    // First there is no image, then no monitor.
    fails(&house, &["random"], 1, "murald: the library is empty\n");
    let picture = house.root().join("a.png");
    image::RgbImage::new(8, 8).save(&picture).unwrap();
    house.import(&[&picture]);
    let no_session = "murald: no Wayland or X11 session found: ";
    fails(&house, &["random"], 1, no_session);
    fails(
        &house,
        &["random", "--monitor", "DP-1"],
        1,
        "murald: no monitor named DP-1 (none is connected)",
    );
    fails(&house, &["themes", "show", "nord"], 1, "murald: no theme named \"nord\"\n");
    fails(&house, &["config", "get", "app", "frob"], 1, "murald: app has no setting \"frob\"\n");
    fails(&house, &["images", "show", "7"], 1, "murald: no image with ID 7\n");
    fails(&house, &["set", "7"], 1, "murald: ");
    let directory = house.root().join("pictures");
    fs::create_dir(&directory).unwrap();
    let told = stderr(&run(&house, &["set", directory.to_str().unwrap()]));
    assert!(told.contains("\n  `murald slideshow DIR` shows "), "{told}");
    fails(&house, &["images", "raw", "7", "--output", "x"], 1, "murald: no image with ID 7\n");
    let output = run(&house, &["images", "show", "7", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(told["code"], 404);
}

#[test]
fn sections_of_the_file_are_sections_of_the_command() {
    let house = House::started();
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
fn themes_are_listed_and_printed() {
    let house = House::started();
    let themes = house.config_file().with_file_name("themes");
    fs::create_dir_all(&themes).unwrap();
    fs::write(themes.join("nord.css"), ":root {}\n").unwrap();
    assert_eq!(json_of(&house, &["themes", "list"])[0]["name"], "nord");
    assert_eq!(ok(&house, &["themes", "show", "nord"]), ":root {}\n");
    let json = json_of(&house, &["theme", "get", "nord", "--json"]);
    assert_eq!(json, json!({"name": "nord", "css": ":root {}\n"}));
}

#[test]
fn start_fails_with_a_broken_config_or_another_daemon() {
    let mut house = House::new();
    house.configure("[app]\ntheme = \"dark\"\nimages_per_page = \"many\"\n");
    let file = house.config_file();
    let told =
        format!("murald: {}, line 3, column 19: app.images_per_page must be", file.display());
    fails(&house, &["start"], 78, &told);
    fs::remove_file(file).unwrap();
    house.start();
    let told = format!("murald: a daemon is running already: process {} holds ", house.pid());
    fails(&house, &["start"], 75, &told);
    fails(&house, &[], 75, &told);
}

#[test]
fn stop_waits_until_the_daemon_has_exited() {
    let mut house = House::new();
    for flags in [&["stop"][..], &["stop", "--clear"]] {
        house.start();
        let status = json_of(&house, &["status"]);
        assert_eq!(status["info"]["pid"], house.pid());
        assert_eq!(status["monitors"], json!([]));
        let before = house.pid();
        assert_eq!(ok(&house, flags), "stopped\n");
        let state = fs::read_to_string(format!("/proc/{before}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "it runs: {state}");
        assert_eq!(house.wait().code(), Some(0));
    }
}

#[test]
fn socket_can_be_chosen_by_flag_and_environment() {
    let mut house = House::new();
    let socket = house.root().join("other.sock");
    let socket = socket.to_str().unwrap();
    let file = house.root().join("new.toml").display().to_string();
    let mut daemon = house.murald(&["--socket", socket, "--config", &file]);
    let mut daemon = daemon.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(daemon.stderr.take().unwrap()).lines();
    let created = format!("murald: {file} does not exist: creating it");
    assert_eq!(errors.next().unwrap().unwrap(), created);
    assert!(errors.any(|line| line.unwrap().contains(" started")));
    // The lock file names the daemon's socket.
    assert!(json_of(&house, &["config", "get"]).is_object());
    assert!(json_of(&house, &["--socket", socket, "config", "get"]).is_object());
    house.env("MURALD_SOCKET", "/tmp/nobody.sock");
    fails(&house, &["stop", "--clear"], 75, "murald: ");
    house.env("MURALD_SOCKET", socket);
    assert!(json_of(&house, &["config", "get"]).is_object());
    ok(&house, &["stop"]);
    assert_eq!(end_of(daemon).code(), Some(0));
}

#[test]
fn settings_are_set_by_name_and_as_json() {
    let house = House::started();
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

#[test]
fn images_are_listed_shown_saved_and_deleted() {
    let house = House::started();
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
    assert_eq!(json_of(&house, &["images", "delete", &id]), json!({"deleted": 1}));
    assert_eq!(json_of(&house, &["images", "list"])["pagination"]["total_items"], 2);
}

#[test]
fn folders_are_created_filled_moved_and_deleted() {
    let house = House::started();
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
    let file = json_of(&house, &["images", "show", &images[0].to_string()])["path"].clone();
    let gone = json_of(&house, &["folders", "delete", &bay, "--contents"]);
    assert_eq!(gone["images_deleted"], 1);
    let name = std::path::Path::new(file.as_str().unwrap()).file_name().unwrap();
    assert!(house.root().join("data/Trash/files").join(name).is_file());
    assert_eq!(json_of(&house, &["folders", "delete", &sea])["mode"], "keep_contents");
}

#[test]
fn tables_fit_the_terminal() {
    let mut house = House::started();
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
    assert!(list.contains('…') && list.ends_with("2 images\n"), "{list}");
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
    house.env("NO_COLOR", "1");
    let lines = on_terminal(&house, &format!("import {}", directory.display()));
    assert_eq!(lines, "0 images imported, 2 in the library already\n");
    let colors = on_terminal(&house, "images show 1");
    assert!(
        colors.lines().any(|line| line.starts_with("colors ") && line.contains(" green")),
        "{colors}"
    );
    house.env("NO_COLOR", "");
    let json = on_terminal(&house, "--json images list");
    assert!(json.starts_with("{\"data\":"), "{json}");
    house.env("TERM", "xterm-256color");
    let shown = on_terminal(&house, "images show 1 --picture blocks");
    assert!(shown.contains("\x1b[38;5;") && shown.contains('▀'), "{shown:?}");
    assert!(shown.contains("image (png)"), "{shown:?}");
}
