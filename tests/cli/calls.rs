//! Calls of the real executable, as users and scripts make them, with and without a daemon.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::call::{fails, json_of, ok, pictures, rejected, run, stderr};
use crate::support::{TestDaemon, end_of};

#[test]
fn wrong_arguments_are_found_without_a_daemon() {
    let daemon = TestDaemon::new();
    for line in [
        &["images", "tag", "7"][..],
        &["images", "tag", "7", "--add", ""],
        &["images", "show", "id:x"],
        &["images", "select"],
        &["images", "delete"],
        &["playlist", "add", "evenings"],
        &["playlist", "create", "fixed", "--fixed"],
        &["playlist", "create", "fixed", "--type", "manual"],
        &["playlist", "create", "v", "a@08:00", "--interval", "5m"],
        &["playlist", "edit", "v", "--type", "manual", "--interval=5m"],
    ] {
        rejected(&daemon, line, 2);
    }
}

#[test]
fn commands_without_a_daemon_say_so_and_exit_with_69() {
    let daemon = TestDaemon::new();
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
        rejected(&daemon, line, 69);
    }
    // There is nothing to stop.
    assert_eq!(ok(&daemon, &["stop"]), "");
    assert_eq!(
        json_of(&daemon, &["stop"]),
        json!({ "status": "not_running" })
    );
    assert_eq!(
        ok(&daemon, &["stop", "--clear"]),
        "the daemon is not running, and there is no wallpaper to remove\n"
    );
    let socket = daemon.socket().display().to_string();
    for line in [
        &["--socket", &socket, "stop"][..],
        &["stop", "--clear", "--socket", &socket],
    ] {
        rejected(&daemon, line, 69);
    }
    let long = format!("/tmp/{}/murald.sock", "x".repeat(120));
    rejected(&daemon, &["--socket", &long, "status"], 69);
    assert_eq!(
        ok(&daemon, &["off"]),
        "the daemon is not running, and there is no wallpaper to remove\n"
    );
    // There is no database yet that could be damaged.
    assert!(ok(&daemon, &["library", "check"]).starts_with("database\t"));
    // With `--json`, errors are JSON as well.
    rejected(&daemon, &["monitors", "--json"], 69);
    rejected(&daemon, &["--json", "set"], 2);
    let file = daemon.config_file();
    assert_eq!(
        ok(&daemon, &["config", "path"]),
        format!("{}\n", file.display())
    );
    assert_eq!(ok(&daemon, &["--config", "/x", "config", "path"]), "/x\n");
    assert!(!file.exists(), "only the daemon creates it");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(ok(&daemon, &["--version"]), format!("murald {version}\n"));
    assert!(ok(&daemon, &["--help"]).contains("set IMAGE"));
    assert!(ok(&daemon, &["help", "all"]).contains("images list"));
}

#[test]
fn config_file_is_checked_without_a_daemon() {
    let daemon = TestDaemon::new();
    let file = daemon.config_file();
    // Without a file the daemon uses the defaults, but a file that is named must exist.
    assert_eq!(json_of(&daemon, &["config", "check", "--json"]), json!([]));
    assert!(ok(&daemon, &["config", "check"]).is_empty());
    let named = file.to_str().unwrap();
    for line in [
        &["config", "check", named][..],
        &["--config", named, "config", "check"],
    ] {
        rejected(&daemon, line, 78);
    }
    let check = |toml: &str| {
        daemon.configure(toml);
        rejected(&daemon, &["config", "check"], 78);
        assert_eq!(fs::read_to_string(&file).unwrap(), toml);
    };
    check("[app]\n\nimages_per_page = 'x'\n");
    check("[daemon]\nlog_level = \n");
    check("[daemon]\nlog_file = '$NOWHERE/x'\n");
    let other = daemon.root().join("other file.toml");
    fs::write(&other, "[backend]\ntype = 'bk1'\n[app]\nmine = 1\n").unwrap();
    let other = other.to_str().unwrap();
    for line in [
        &["config", "check", other][..],
        &["--config", other, "config", "check"],
    ] {
        let told = ok(&daemon, line);
        assert!(
            told.starts_with("line 2: backend.type must be one of awww, "),
            "{told}"
        );
        assert_eq!(
            told.lines().count(),
            json_of(&daemon, &[line, &["--json"]].concat())
                .as_array()
                .unwrap()
                .len()
        );
    }
    daemon.configure("");
    assert_eq!(ok(&daemon, &["config", "check"]), "");
}

#[test]
fn wrong_usage_is_explained_and_exits_with_2() {
    let daemon = TestDaemon::new();
    rejected(&daemon, &["frobnicate"], 2);
    rejected(&daemon, &["set"], 2);
    rejected(&daemon, &["start", "--frob"], 2);
    rejected(&daemon, &["--log-level", "loud"], 2);
    rejected(&daemon, &["events", "--types", "x"], 2);
    rejected(&daemon, &["config", "set", "app", "x"], 2);
}

#[test]
fn settings_without_effect_are_reported() {
    let daemon = TestDaemon::started();
    let check = |line: &[&str], told: &str| {
        let output = run(&daemon, line);
        let found = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line:?}: {found}");
        assert!(
            found.starts_with("murald: ") && found.contains(told),
            "{line:?}: {found}"
        );
    };
    check(
        &["config", "set", "backend.feh.mode", "x"],
        "backend.feh.mode must be one of",
    );
    check(
        &["config", "set", "app.sort_by", "y"],
        "app.sort_by must be one of",
    );
    check(
        &["config", "set", "backend.type", "wal-qt"],
        "backend.type: wal-qt is not installed",
    );
    check(
        &["config", "patch", r#"{"app": {"theme": "z"}}"#],
        "app.sort_by must be one of",
    );
    check(
        &["config", "set", "backend.type", "awww"],
        "backend.type: awww is not installed",
    );
    // Only settings that a user has changed are reported.
    for line in [
        &["config", "reset"][..],
        &["config", "set", "backend.feh.mode", "max"],
    ] {
        assert_eq!(stderr(&run(&daemon, line)), "");
    }
    let whole = ok(&daemon, &["--json", "config", "get"]);
    assert!(!whole.contains("\"warnings\""), "{whole}");
    assert_eq!(stderr(&run(&daemon, &["config", "patch", &whole])), "");
}

#[test]
fn refusals_of_the_daemon_are_printed() {
    let daemon = TestDaemon::started();
    rejected(&daemon, &["config", "get", "wall"], 1);
    // `backend` is no section: `activate` sets its type, and each backend has its own section.
    rejected(&daemon, &["config", "get", "backend"], 1);
    rejected(
        &daemon,
        &["config", "set", "backend", r#"{"type": "feh"}"#],
        1,
    );
    rejected(&daemon, &["config", "set", "backend", "builtin"], 1);
    rejected(&daemon, &["backends", "activate", "hyprpaper"], 1);
    let output = run(&daemon, &["config", "set", "swaybg.fit_mode", "fit"]);
    let told = stderr(&output);
    assert!(
        told.contains("no section named \"swaybg.fit_mode\"") && told.contains("backend.NAME"),
        "{told}"
    );
    for line in [&["backend.type", "auto"][..], &["backend", "type", "auto"]] {
        let told = stderr(&run(&daemon, &[&["config", "set"], line].concat()));
        let refused = told.starts_with("murald: backend.type must be one of awww, ");
        assert!(
            refused && told.contains("set backend.selection_mode auto"),
            "{told}"
        );
    }
    // The daemon keeps an invalid value, as it does in the file, and uses the default.
    let unused = "murald: daemon.log_level cannot be \"loud\"; using \"info\"\n";
    let output = run(&daemon, &["config", "set", "daemon", "log_level", "loud"]);
    assert_eq!(
        (output.status.code(), stderr(&output).starts_with(unused)),
        (Some(1), true)
    );
    // First there is no image, then no monitor.
    rejected(&daemon, &["random"], 1);
    let picture = daemon.root().join("a.png");
    image::RgbImage::new(8, 8).save(&picture).unwrap();
    daemon.import(&[&picture]);
    rejected(&daemon, &["random"], 1);
    rejected(&daemon, &["random", "--tags", "none"], 1);
    rejected(&daemon, &["images", "delete", "--colors", "blue"], 1);
    rejected(&daemon, &["playlist", "create", "sky", "a@sunrise"], 1);
    rejected(&daemon, &["random", "--monitor", "DP-1"], 1);
    rejected(&daemon, &["monitors", "DP-1"], 1);
    rejected(&daemon, &["why", "DP-1"], 1);
    let day = ["playlist", "create", "day", "a@07:00", "a", "#102030"];
    rejected(&daemon, &day, 1);
    rejected(&daemon, &["themes", "show", "nord"], 1);
    rejected(&daemon, &["config", "get", "app", "frob"], 1);
    rejected(&daemon, &["images", "show", "7"], 1);
    rejected(&daemon, &["set", "7"], 1);
    rejected(&daemon, &["images", "show", "pictures/none.png"], 1);
    let directory = daemon.root().join("pictures");
    fs::create_dir(&directory).unwrap();
    rejected(&daemon, &["import", directory.to_str().unwrap()], 1);
    let told = stderr(&run(&daemon, &["set", directory.to_str().unwrap()]));
    assert!(
        told.contains("\nhint: `murald slideshow DIR` shows "),
        "{told}"
    );
    rejected(&daemon, &["images", "raw", "7", "--output", "x"], 1);
    let output = run(&daemon, &["images", "show", "7", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(told["code"], 404);
}

#[test]
fn sections_of_the_file_are_sections_of_the_command() {
    let daemon = TestDaemon::started();
    let set = |line: &[&str]| json_of(&daemon, &[&["config", "set"], line].concat());
    assert_eq!(
        set(&["backend.auto_priorities", "image", "[\"feh\"]"])["image"],
        json!(["feh"])
    );
    assert_eq!(
        set(&["backend.awww", "fill-color", "123456"])["fill_color"],
        "123456"
    );
    let get = |line: &[&str]| json_of(&daemon, &[&["config", "get"], line].concat());
    assert_eq!(get(&["backend.auto_priorities", "image"]), json!(["feh"]));
    let whole = get(&[]);
    assert_eq!(whole["backend"]["auto_priorities"]["image"], json!(["feh"]));
    assert_eq!(
        json_of(&daemon, &["config", "show", "backend.awww", "fill_color"]),
        "123456"
    );
}

#[test]
fn themes_are_listed_and_printed() {
    let daemon = TestDaemon::started();
    let themes = daemon.config_file().with_file_name("themes");
    fs::create_dir_all(&themes).unwrap();
    fs::write(themes.join("nord.css"), ":root {}\n").unwrap();
    assert_eq!(json_of(&daemon, &["themes", "list"])[0]["name"], "nord");
    assert_eq!(ok(&daemon, &["themes", "show", "nord"]), ":root {}\n");
    let json = json_of(&daemon, &["theme", "get", "nord", "--json"]);
    assert_eq!(json, json!({"name": "nord", "css": ":root {}\n"}));
}

#[test]
fn start_fails_with_a_broken_config_or_another_daemon() {
    let mut daemon = TestDaemon::new();
    daemon.configure("[app]\ntheme = \"dark\"\nimages_per_page = \"many\"\n");
    rejected(&daemon, &["start"], 78);
    fs::remove_file(daemon.config_file()).unwrap();
    daemon.start();
    let told = format!("murald: already running (process {}): ", daemon.pid());
    fails(&daemon, &["start"], 75, &told);
    fails(&daemon, &[], 75, &told);
}

#[test]
fn stop_waits_until_the_daemon_has_exited() {
    let mut daemon = TestDaemon::new();
    for flags in [&["stop"][..], &["stop", "--clear"]] {
        daemon.start();
        let status = json_of(&daemon, &["status"]);
        assert_eq!(status["info"]["pid"], daemon.pid());
        assert_eq!(status["monitors"], json!([]));
        let before = daemon.pid();
        assert_eq!(ok(&daemon, flags), "stopped\n");
        let state = fs::read_to_string(format!("/proc/{before}/stat")).unwrap_or_default();
        assert!(
            state.is_empty() || state.contains(") Z "),
            "it runs: {state}"
        );
        assert_eq!(daemon.wait().code(), Some(0));
    }
}

#[test]
fn socket_can_be_chosen_by_flag_and_environment() {
    let mut daemon = TestDaemon::new();
    let socket = daemon.root().join("other.sock");
    let socket = socket.to_str().unwrap();
    let file = daemon.root().join("new.toml").display().to_string();
    let mut command = daemon.murald(&["--socket", socket, "--config", &file]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let created = format!("murald: {file} does not exist: creating it");
    assert_eq!(errors.next().unwrap().unwrap(), created);
    assert!(errors.any(|line| line.unwrap().contains(" started")));
    // The lock file names the daemon's socket.
    assert!(json_of(&daemon, &["config", "get"]).is_object());
    assert!(json_of(&daemon, &["--socket", socket, "config", "get"]).is_object());
    daemon.env("MURALD_SOCKET", "/tmp/nobody.sock");
    let running = "murald: already running (process ";
    fails(&daemon, &["stop", "--clear"], 75, running);
    daemon.env("MURALD_SOCKET", socket);
    assert!(json_of(&daemon, &["config", "get"]).is_object());
    ok(&daemon, &["stop"]);
    assert_eq!(end_of(child).code(), Some(0));
}

#[test]
fn settings_are_set_by_name_and_as_json() {
    let daemon = TestDaemon::started();
    let set = |line: &[&str]| ok(&daemon, &[&["config", "set"], line].concat());
    let get = |section: &str, key: &str| json_of(&daemon, &["config", "get", section, key]);
    set(&["app", "images_per_page", "80"]);
    assert_eq!(get("app", "images_per_page"), 80);
    set(&["app", "theme", "80"]);
    assert_eq!(get("app", "theme"), "80");
    set(&["app", r#"{"notifications": false, "theme": "system"}"#]);
    assert_eq!(get("app", "notifications"), false);
    set(&["backend.awww", "transition_type", "fade"]);
    assert_eq!(get("backend.awww", "transition_type"), "fade");
    rejected(
        &daemon,
        &[
            "config",
            "set",
            "backend.awww",
            "transition_duration",
            "500",
        ],
        1,
    );
    ok(&daemon, &["config", "reset", "awww"]);
    assert_eq!(get("backend.awww", "transition_type"), "wipe");
    assert_eq!(get("app", "theme"), "system");
    ok(
        &daemon,
        &[
            "config",
            "patch",
            r#"{"backend": {"selection_mode": "auto"}}"#,
        ],
    );
    assert_eq!(
        json_of(&daemon, &["config", "get"])["backend"]["selection_mode"],
        "auto"
    );
    ok(&daemon, &["config", "reset"]);
    assert_eq!(get("app", "theme"), "dark");
}

#[test]
fn images_are_listed_shown_saved_and_deleted() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 3);
    daemon.import(&[&directory]);
    let list = json_of(
        &daemon,
        &["images", "list", "--sort-by", "name", "--sort-order", "asc"],
    );
    let id = list["data"][0]["id"].to_string();
    assert_eq!(list["data"][0]["name"], "p0");
    assert_eq!(json_of(&daemon, &["images", "show", &id]), list["data"][0]);
    let copy = daemon.root().join("copy.png");
    ok(
        &daemon,
        &["images", "raw", &id, "--output", copy.to_str().unwrap()],
    );
    assert_eq!(
        fs::read(&copy).unwrap(),
        fs::read(directory.join("p0.png")).unwrap()
    );
    let thumbnail = run(&daemon, &["images", "thumbnail", &id]).stdout;
    assert_eq!(
        (&thumbnail[..4], &thumbnail[8..12]),
        (&b"RIFF"[..], &b"WEBP"[..])
    );
    assert_eq!(json_of(&daemon, &["images", "delete", &id])["deleted"], 1);
    assert_eq!(
        json_of(&daemon, &["images", "list"])["pagination"]["total_items"],
        2
    );
}

#[test]
fn folders_are_created_filled_moved_and_deleted() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 2);
    let images = daemon.import(&[&directory]);
    let make = |line: &[&str]| {
        json_of(&daemon, &[&["folders", "create"], line].concat())["id"].to_string()
    };
    let sea = make(&["sea"]);
    let bay = make(&["bay", "--parent", &sea]);
    let image = images[0].to_string();
    assert_eq!(
        json_of(&daemon, &["images", "move", &image, &bay]),
        json!({"moved": 1})
    );
    let inside = json_of(&daemon, &["images", "list", "--folder", &bay]);
    assert_eq!(inside["data"][0]["id"], images[0]);
    let path = json_of(&daemon, &["folders", "path", &bay]);
    assert_eq!(path["data"][0]["name"], "sea");
    rejected(&daemon, &["folders", "move", &sea, &bay], 1);
    json_of(&daemon, &["folders", "move", &bay, "root"]);
    assert_eq!(
        json_of(&daemon, &["folders", "rename", &bay, "shore"])["name"],
        "shore"
    );
    assert_eq!(
        json_of(&daemon, &["folders", "list", "--parent", "root"])["data"][1]["name"],
        "shore"
    );
    let file = json_of(&daemon, &["images", "show", &images[0].to_string()])["path"].clone();
    let gone = json_of(&daemon, &["folders", "delete", &bay, "--contents"]);
    assert_eq!(gone["images_deleted"], 1);
    let name = std::path::Path::new(file.as_str().unwrap())
        .file_name()
        .unwrap();
    assert!(daemon.root().join("data/Trash/files").join(name).is_file());
    assert_eq!(
        json_of(&daemon, &["folders", "delete", &sea])["mode"],
        "keep_contents"
    );
}

#[test]
fn tables_fit_the_terminal() {
    let mut daemon = TestDaemon::started();
    let directory = pictures(&daemon, 2);
    fs::rename(
        directory.join("p0.png"),
        directory.join(format!("{}.png", "long ".repeat(30))),
    )
    .unwrap();
    daemon.import(&[&directory]);
    let murald = env!("CARGO_BIN_EXE_murald");
    let on_terminal = |daemon: &TestDaemon, line: &str| {
        let script = format!("stty cols 50; {murald} {line}");
        let output = daemon
            .command("script")
            .args(["-qec", &script, "/dev/null"])
            .output();
        String::from_utf8(output.unwrap().stdout)
            .unwrap()
            .replace('\r', "")
    };
    let list = on_terminal(&daemon, "images list");
    assert!(list.starts_with("ID  NAME"), "{list}");
    assert!(list.contains('…') && list.ends_with("2 images\n"), "{list}");
    assert!(
        list.lines().all(|line| line.chars().count() <= 50),
        "{list}"
    );
    assert!(
        on_terminal(&daemon, "status").contains("\nbackend   none"),
        "{}",
        on_terminal(&daemon, "status")
    );
    assert_eq!(on_terminal(&daemon, "playlist frob").lines().count(), 2);
    let bar = on_terminal(&daemon, &format!("import {}", directory.display()));
    assert!(bar.contains("░ 0/2") && bar.contains("█ 2/2"), "{bar:?}");
    assert!(
        bar.ends_with("0 images imported, 2 in the library already\n"),
        "{bar:?}"
    );
    daemon.env("NO_COLOR", "1");
    let lines = on_terminal(&daemon, &format!("import {}", directory.display()));
    assert_eq!(lines, "0 images imported, 2 in the library already\n");
    let one = directory.join("p1.png");
    let known = on_terminal(&daemon, &format!("import {}", one.display()));
    assert!(
        known.ends_with("p1 (2) is already in the library\n"),
        "{known}"
    );
    let nowhere = directory.join("nowhere");
    let added = on_terminal(&daemon, &format!("watch add {}", nowhere.display()));
    assert!(added.contains("it when it does\nDIRECTORY"), "{added}");
    let colors = on_terminal(&daemon, "images show 1");
    assert!(
        colors
            .lines()
            .any(|line| line.starts_with("colors ") && line.contains(" green")),
        "{colors}"
    );
    daemon.env("NO_COLOR", "");
    let json = on_terminal(&daemon, "--json images list");
    assert!(json.starts_with("{\"data\":"), "{json}");
    daemon.env("TERM", "xterm-256color");
    let shown = on_terminal(&daemon, "images show 1 --picture blocks");
    assert!(
        shown.contains("\x1b[38;5;") && shown.contains('▀'),
        "{shown:?}"
    );
    assert!(shown.contains("image (png)"), "{shown:?}");
}
