//! The settings of a running daemon, over its socket.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::wait::{wait_for, wait_until};

const SOON: Duration = Duration::from_secs(60);

/// A daemon with its own directories, environment and PATH.
struct Daemon {
    dir: tempfile::TempDir,
    child: Child,
    socket: PathBuf,
}

fn command(dir: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_murald"));
    let under = |name: &str| dir.path().join(name);
    fs::create_dir_all(under("run")).unwrap();
    command
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", under("bin"));
    command
        .env("XDG_RUNTIME_DIR", under("run"))
        .env("RUST_BACKTRACE", "1");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

impl Daemon {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let child = command(&dir).stderr(Stdio::null()).spawn().unwrap();
        let socket = dir.path().join("run/murald.sock");
        let daemon = Self { dir, child, socket };
        daemon.up();
        daemon
    }

    /// Waits until the daemon accepts connections.
    #[track_caller]
    fn up(&self) {
        wait_for("the socket", || UnixStream::connect(&self.socket));
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join(".config/murald/config.toml")
    }

    fn send(&self, method: &str, path: &str, body: &str) -> UnixStream {
        let mut socket = UnixStream::connect(&self.socket).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n\
             {body}",
            body.len()
        )
        .unwrap();
        socket
    }

    fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let mut answer = String::new();
        self.send(method, path, &body)
            .read_to_string(&mut answer)
            .unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nX-Request-ID: "), "{head}");
        (
            head[9..12].parse().unwrap(),
            serde_json::from_str(body).unwrap(),
        )
    }

    #[track_caller]
    fn fails(&self, method: &str, path: &str, body: Value, status: u16, error: &str) {
        let (found, answer) = self.ask(method, path, body);
        assert_eq!(
            (found, &answer["code"]),
            (status, &json!(status)),
            "{answer}"
        );
        assert!(
            answer["error"].as_str().unwrap().contains(error),
            "{answer}"
        );
    }

    #[track_caller]
    fn succeeds(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// The data of each event from now on.
    fn events(&self) -> impl Iterator<Item = Value> + use<> {
        let mut lines =
            BufReader::new(self.send("GET", "/events?types=config_changed", "")).lines();
        // When the answer's head is there, the stream is subscribed.
        lines.find(|line| line.as_ref().unwrap().is_empty());
        lines.filter_map(|line| {
            Some(serde_json::from_str(line.unwrap().strip_prefix("data: ")?).unwrap())
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn start_with_a_broken_config_exits_with_78() {
    for bad in [
        "[app]\nimages_per_page = \"x\"\n",
        "[daemon]\nlog_level = info\n",
        "\u{0}",
        // The schema accepts this one, but the variable is not set.
        "[daemon]\nimages_dir = \"$NOWHERE/images\"\n",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join(".config/murald/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(&config, bad).unwrap();
        let output = command(&dir).output().unwrap();
        assert_eq!(output.status.code(), Some(78), "{bad}");
        // The file may be completed with defaults, but is never overwritten.
        assert!(fs::read_to_string(&config).unwrap().starts_with(bad));
    }
}

#[test]
fn paths_of_the_config_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("mine.toml");
    fs::create_dir_all(dir.path().join(".config/murald")).unwrap();
    let text = "[daemon]\nimages_dir = '$PLACE/i'\nthumbnails_dir = '${PLACE}/t'\n\
                database_dir = '~/b'\nsocket_path = '$PLACE/s'\nlog_file = '$PLACE/l'\n\
                log_level = 'debug'\n";
    fs::write(&config, text).unwrap();
    std::os::unix::fs::symlink(&config, dir.path().join(".config/murald/config.toml")).unwrap();
    let place = dir.path().join("place");
    fs::create_dir(&place).unwrap();
    let child = command(&dir)
        .env("PLACE", &place)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let daemon = Daemon {
        dir,
        child,
        socket: place.join("s"),
    };
    daemon.up();
    assert!(daemon.dir.path().join("b/murald.sqlite3").exists());
    let picture = daemon.dir.path().join("red.png");
    image::RgbImage::from_pixel(9, 9, image::Rgb([255, 0, 0]))
        .save(&picture)
        .unwrap();
    let (status, answer) = daemon.ask("POST", "/images", json!({ "paths": [picture] }));
    assert_eq!(status, 202, "{answer}");
    for name in ["i", "t"] {
        wait_until(&format!("something in {name}"), || {
            fs::read_dir(place.join(name)).is_ok_and(|mut found| found.next().is_some())
        });
    }
    let paths = daemon.succeeds("GET", "/info", Value::Null)["paths"].take();
    let home = daemon.dir.path();
    assert_eq!(
        paths,
        json!({
            "socket": place.join("s"), "config": home.join(".config/murald/config.toml"),
            "images": place.join("i"), "thumbnails": place.join("t"),
            "database": home.join("b/murald.sqlite3"), "log": place.join("l"),
            "state": home.join(".local/state/murald"),
        })
    );
    let log = fs::read_to_string(place.join("l")).unwrap();
    assert!(log.contains("murald") && log.contains("\"debug\""), "{log}");
    let shown = daemon.succeeds("GET", "/config/daemon", Value::Null);
    assert_eq!(shown["images_dir"], "$PLACE/i");
    assert!(fs::read_to_string(&config).unwrap().starts_with(text));
}

#[test]
fn config_routes_show_change_and_reset_settings() {
    let daemon = Daemon::start();
    let whole = daemon.succeeds("GET", "/config", Value::Null);
    assert_eq!(
        whole["daemon"]["images_dir"],
        "$XDG_DATA_HOME/murald/images"
    );
    // Graphical clients read the path from the file and expand only `~`.
    let socket = format!("\nsocket_path = \"{}\"\n", daemon.socket.display());
    assert!(
        std::fs::read_to_string(daemon.config())
            .unwrap()
            .contains(&socket),
        "{socket}"
    );
    assert_eq!(whole["backend"]["wal-qt"]["duration_ms"], 300);
    for section in [
        "app",
        "daemon",
        "library",
        "location",
        "hooks",
        "power",
        "desktop",
        "workspaces",
        "monitors",
        "remote_gallery",
    ] {
        let shown = daemon.succeeds("GET", &format!("/config/{section}"), Value::Null);
        assert_eq!(shown, whole[section]);
    }
    for backend in [
        "awww",
        "feh",
        "hyprpaper",
        "mpvpaper",
        "swaybg",
        "wal-qt",
        "builtin",
    ] {
        let shown = daemon.succeeds("GET", &format!("/config/backends/{backend}"), Value::Null);
        assert_eq!(shown, whole["backend"][backend]);
    }
    for method in ["GET", "PATCH"] {
        daemon.fails(method, "/config/backend", json!({}), 404, "backend");
        daemon.fails(method, "/config/nope", json!({}), 404, "nope");
        daemon.fails(method, "/config/App", json!({}), 404, "App");
        daemon.fails(method, "/config/backends/bk1", json!({}), 404, "bk1");
    }
    daemon.fails(
        "POST",
        "/config/backends/bk1/reset",
        Value::Null,
        404,
        "bk1",
    );
    daemon.fails("PATCH", "/config", json!([]), 400, "object");
    daemon.fails("PATCH", "/config", json!({"nope": {}}), 400, "nope");
    daemon.fails(
        "PATCH",
        "/config/app",
        json!({"images_per_page": "banana"}),
        400,
        "an integer",
    );
    let format = json!({"daemon_format": "yuv", "resize": "fit"});
    daemon.fails(
        "PATCH",
        "/config/backends/awww",
        format,
        400,
        "argb, abgr, rgb, bgr",
    );
    let layer = json!({"layer": "nonsense"});
    daemon.fails(
        "PATCH",
        "/config/backends/mpvpaper",
        layer,
        400,
        "backend.mpvpaper.layer",
    );
    assert_eq!(daemon.succeeds("GET", "/config", Value::Null), whole);

    let app = daemon.succeeds("PATCH", "/config/app", json!({"theme": "x", "mine": [1]}));
    assert_eq!((&app["theme"], &app["mine"]), (&json!("x"), &json!([1])));
    assert!(app.get("restart_required").is_none());
    let shown = daemon.succeeds("PATCH", "/config/daemon", json!({"log_level": "warn"}));
    assert_eq!(
        (&shown["log_level"], &shown["restart_required"]),
        (&json!("warn"), &json!(true))
    );
    let unused = daemon.succeeds("PATCH", "/config/daemon", json!({"log_max_size_mb": 0}));
    assert_eq!(
        (&unused["log_max_size_mb"], &unused["restart_required"]),
        (&json!(10), &json!(true))
    );
    let warning = unused["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("daemon.log_max_size_mb must be 1 or more, not 0"),
        "{warning}"
    );
    assert_eq!(unused["warnings"].as_array().unwrap().len(), 1);
    let feh = daemon.succeeds("PATCH", "/config/backends/feh", json!({"mode": "max"}));
    assert_eq!(feh, json!({"mode": "max", "fill_color": "000000"}));
    assert_eq!(
        daemon.succeeds("POST", "/config/backends/feh/reset", Value::Null)["mode"],
        "fill"
    );
    let reset = daemon.succeeds("POST", "/config/reset", Value::Null);
    assert_eq!(reset["restart_required"], true);
    // Each reset that changes something keeps a backup; the backend's was the first.
    let backup = reset["backup"].as_str().unwrap();
    assert!(backup.ends_with("/config.toml.bak"), "{backup}");
    assert!(
        std::fs::read_to_string(backup)
            .unwrap()
            .contains("log_level = \"warn\"")
    );
    // A reset without effect keeps no backup.
    let again = daemon.succeeds("POST", "/config/reset", Value::Null);
    assert_eq!(again.get("backup"), None);
    assert_eq!(daemon.succeeds("GET", "/config", Value::Null), whole);
}

#[test]
fn config_change_publishes_one_event() {
    let daemon = Daemon::start();
    let mut events = daemon.events();
    daemon.succeeds(
        "PATCH",
        "/config",
        json!({"app": {"theme": "x"}, "backend": {"type": "feh"}}),
    );
    let event = events.next().unwrap();
    assert_eq!(event["sections"], json!(["backend", "app"]));
    assert!(event.get("source").is_none());
    daemon.succeeds("PATCH", "/config", json!({"app": {"theme": "x"}}));
    let text = fs::read_to_string(daemon.config()).unwrap();
    fs::write(
        daemon.config(),
        text.replace("fit_mode = \"fill\"", "fit_mode = \"tile\""),
    )
    .unwrap();
    // The request in between changed nothing and published nothing.
    let event = events.next().unwrap();
    assert_eq!(event["sections"], json!(["backend.swaybg"]));
    assert_eq!(event["source"], "file");
    daemon.succeeds("POST", "/config/backends/swaybg/reset", Value::Null);
    let event = events.next().unwrap();
    assert_eq!(event["sections"], json!(["backend.swaybg"]));
    assert_eq!(event["source"], "api_reset_backend");
    daemon.succeeds("POST", "/config/reset", Value::Null);
    let event = events.next().unwrap();
    assert_eq!(
        (&event["sections"], &event["source"]),
        (&json!(["backend", "app"]), &json!("api_reset_all"))
    );
}

#[test]
fn unwritable_config_refuses_changes() {
    let daemon = Daemon::start();
    let before = fs::read(daemon.config()).unwrap();
    fs::set_permissions(daemon.config(), fs::Permissions::from_mode(0o444)).unwrap();
    let body = || json!({"theme": "x"});
    daemon.fails("PATCH", "/config/app", body(), 500, "config.toml");
    assert_eq!(
        daemon.succeeds("GET", "/config/app", Value::Null)["theme"],
        "dark"
    );
    assert_eq!(fs::read(daemon.config()).unwrap(), before);
    fs::set_permissions(daemon.config(), fs::Permissions::from_mode(0o600)).unwrap();
    daemon.succeeds("PATCH", "/config/app", body());
}

#[test]
fn config_warnings_are_shown_without_secrets() {
    let daemon = Daemon::start();
    let secret = "5ecret-5ecret";
    daemon.succeeds(
        "PATCH",
        "/config/remote_gallery",
        json!({"api_key": secret}),
    );
    assert_eq!(
        daemon.succeeds("GET", "/config", Value::Null)["remote_gallery"]["api_key"],
        secret
    );
    let text = fs::read_to_string(daemon.config()).unwrap();
    let bad = text.replace("api_key = \"5ecret-5ecret\"", "api_key = 5ecret-5ecret");
    assert_ne!(bad, text);
    fs::write(daemon.config(), bad).unwrap();
    let warnings = wait_for("a warning of the file", || {
        let whole = daemon.succeeds("GET", "/config", Value::Null);
        // There is a warning from the start that no backend is installed.
        let warnings = whole["warnings"].to_string();
        if warnings.contains("line ") {
            Ok(warnings)
        } else {
            Err(warnings)
        }
    });
    assert!(!warnings.contains(secret), "{warnings}");
    daemon.fails(
        "PATCH",
        "/config/app",
        json!({"theme": "y"}),
        409,
        "fix the file",
    );
    daemon.fails(
        "PATCH",
        "/config/remote_gallery",
        json!({"api_key": [secret]}),
        400,
        "a string",
    );
    let log = fs::read_to_string(daemon.dir.path().join(".local/share/murald/daemon.log")).unwrap();
    assert!(
        log.contains("config.toml") && !log.contains(secret),
        "{log}"
    );
}

#[test]
fn config_warning_is_logged_once() {
    let daemon = Daemon::start();
    let log = daemon.dir.path().join(".local/share/murald/daemon.log");
    for theme in ["one", "two"] {
        let body = json!({"font_preset": "none", "theme": theme});
        daemon.succeeds("PATCH", "/config/app", body);
        let log = fs::read_to_string(&log).unwrap();
        assert_eq!(log.matches("app.font_preset must be").count(), 1, "{log}");
    }
}

#[test]
fn config_watch_is_not_woken_by_readers_or_writers_in_home() {
    let daemon = Daemon::start();
    let mut events = daemon.events();
    let mut themed = |theme: &str| {
        let text = fs::read_to_string(daemon.config()).unwrap();
        let line = |line: &str| {
            if line.starts_with("theme = ") {
                format!("theme = \"{theme}\"\n")
            } else {
                format!("{line}\n")
            }
        };
        fs::write(daemon.config(), text.lines().map(line).collect::<String>()).unwrap();
        assert_eq!(events.next().unwrap()["sections"], json!(["app"]));
    };
    // The first edit may still be read by the start itself.
    themed("one");
    let before = wait_for("the thread of the watch", || {
        switches(daemon.child.id()).ok_or("none")
    });
    for number in 0..1000 {
        fs::read(daemon.config()).unwrap();
        fs::write(daemon.dir.path().join(".history"), number.to_string()).unwrap();
        fs::create_dir(daemon.dir.path().join(number.to_string())).unwrap();
    }
    themed("two");
    let woken = switches(daemon.child.id()).unwrap() - before;
    // Two edits cause a few dozen switches.
    assert!(woken < 500, "{woken}");
}

/// Voluntary context switches of the watch's thread so far.
fn switches(pid: u32) -> Option<u64> {
    // A connection's thread may be gone before it is read.
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let mut tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .map(|task| task.unwrap().path());
    let watch = tasks.find(|task| read(&task.join("comm")) == "config\n")?;
    let status = read(&watch.join("status"));
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Some(line.unwrap().trim().parse().unwrap())
}
