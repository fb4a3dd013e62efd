//! Tests wal-qt with a stand-in for its host: an HTTP server that knows every request.
//!
//! Like the real host, it takes the first read for the whole request, answers `accepted`, and loses a
//! load that arrives before the window is ready, although its status claims to show it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use murald::internals::backends::{Backend, Error, Kind, Placement, Web};
use murald::internals::config::BackendName;
use murald::internals::wire::WebCapabilities;
use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::stub::{Role, Stubs};
use crate::support::PATIENCE;
use crate::wall::{BLUE, RED};

/// Plays the host. Notes each request, and answers 400 to those that the real one would reject.
pub fn play(role: &Role) {
    if !role.args.is_empty() {
        role.fail("it takes no arguments");
    }
    match role.cue().as_str() {
        "die" => role.fail("something is missing"),
        "late" => std::thread::sleep(Duration::from_millis(400)),
        _ => {}
    }
    role.note("wal-qt-pid", &std::process::id().to_string());
    role.note(
        "wal-qt-env",
        &std::env::var("STUB_EXTRA").unwrap_or_default(),
    );
    let socket = role.runtime().join("wal-qt.sock");
    fs::remove_file(&socket).ok();
    let listener = UnixListener::bind(socket).unwrap();
    let mut host = Host {
        role,
        monitors: json!({}),
        windows: BTreeMap::new(),
        refusals: 0,
        questions: 0,
    };
    host.look_at_outputs();
    for stream in listener.incoming() {
        host.answer(stream.unwrap());
    }
}

/// The time from the creation of a window until it is ready.
const READY_AFTER: Duration = Duration::from_millis(200);

fn come_up() {
    std::thread::sleep(READY_AFTER);
    eprintln!("[walBridge:m0] renderer ready {{\"monitorId\":0}}");
}

fn idle(name: &str) -> Value {
    json!({ "name": name, "visible": true, "last_transition": "none", "in_progress": false,
        "parallax": { "enabled": false }, "current_kind": "image" })
}

struct Host<'a> {
    role: &'a Role,
    /// The monitors by name, as in the status; loads add the fields that some versions lack.
    monitors: Value,
    /// When each window was created, by the line of its output.
    windows: BTreeMap<String, Instant>,
    refusals: u32,
    questions: u32,
}

impl Host<'_> {
    /// A new line stands for an output that was connected again, with a new window.
    fn look_at_outputs(&mut self) {
        let outputs = fs::read_to_string(self.role.notes.join("outputs")).unwrap();
        self.windows
            .retain(|line, _| outputs.lines().any(|other| other == line));
        for line in outputs.lines() {
            if !self.windows.contains_key(line) {
                let name = line.split(' ').next().unwrap();
                self.monitors[name] = idle(name);
                self.windows.insert(line.to_owned(), Instant::now());
                std::thread::spawn(come_up);
            }
        }
    }

    fn is_ready(&self, output: &str) -> bool {
        let is_its = |line: &String| line.split(' ').next() == Some(output);
        let mut windows = self.windows.iter().filter(|(line, _)| is_its(line));
        windows.any(|(_, since)| since.elapsed() >= READY_AFTER)
    }

    fn answer(&mut self, mut stream: UnixStream) {
        self.look_at_outputs();
        let mut buffer = vec![0; 1 << 20];
        let count = stream.read(&mut buffer).unwrap_or(0);
        let request = String::from_utf8_lossy(&buffer[..count]).into_owned();
        let Some((head, body)) = request.split_once("\r\n\r\n") else {
            return;
        };
        let mut words = head.split(' ');
        let (method, url) = (words.next().unwrap(), words.next().unwrap());
        let bad = |error: &str| (400, json!({ "ok": false, "error": error }).to_string());
        let is_whole = head.contains(&format!("Content-Length: {}\r\n", body.len()))
            || head.ends_with(&format!("Content-Length: {}", body.len()));
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        self.role
            .note("wal-qt-requests", &format!("{method} {url} {body}"));
        let (status, answer) = if !is_whole || self.role.cue() == "split" {
            if self.role.cue() == "split" {
                self.role.spend_cue();
            }
            bad("bad json")
        } else if head.contains("X-API-Version: 0\r\n") {
            self.decide(method, url, &body)
        } else {
            bad("X-API-Version")
        };
        let length = answer.len();
        let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all((head + &answer).as_bytes()).ok();
    }

    fn decide(&mut self, method: &str, url: &str, body: &Value) -> (u16, String) {
        let ok = |answer: Value| (200, answer.to_string());
        let cue = self.role.cue();
        let slow = [
            ("slow-health", "/health"),
            ("slow-look", "/settings/image-presentation"),
        ];
        if slow.contains(&(cue.as_str(), url)) {
            self.role.spend_cue();
            std::thread::sleep(Duration::from_millis(300));
        }
        match (method, url, cue.as_str()) {
            ("GET", "/health", "impostor") => {
                ok(json!({ "ok": true, "service": "other", "api_version": "0" }))
            }
            ("GET", "/health", _) => {
                ok(json!({ "ok": true, "service": "wal-qt", "api_version": "0" }))
            }
            ("GET", "/wallpaper/status", _) => {
                self.questions += 1;
                let all = self.monitors.as_object().unwrap().values().cloned();
                let count = if self.questions > 2 { 2 } else { 0 };
                let place = |name| json!({ "name": name, "x": 0, "y": 0, "width": 640 });
                let topology: Vec<_> = ["HEADLESS-1", "HEADLESS-2"].map(place).into();
                ok(
                    json!({ "ok": true, "api_version": "0", "status": { "topology": topology,
                    "monitor_count": count, "monitors": all.collect::<Vec<_>>() } }),
                )
            }
            ("POST", "/wallpaper/load", cue) => self.load(body, cue),
            ("POST", "/settings/network", _) if body["allow_network_wallpapers"].is_boolean() => {
                ok(json!({ "ok": true }))
            }
            ("POST", "/settings/image-presentation", _) if body["fill_color"].is_string() => {
                ok(json!({ "ok": true }))
            }
            ("POST", "/wallpaper/config", _) if body["values"].is_object() => {
                ok(json!({ "ok": true }))
            }
            ("POST", "/wallpaper/capabilities", _) if body["capabilities"].is_object() => {
                ok(json!({ "ok": true }))
            }
            ("POST", "/wallpaper/playback", _)
                if body["paused"].is_boolean() && body["source_target"].is_string() =>
            {
                ok(json!({ "ok": true, "applied": 1 }))
            }
            ("POST", "/wallpaper/parallax", "no-parallax") => {
                (400, json!({ "ok": false, "error": "not now" }).to_string())
            }
            ("POST", "/wallpaper/parallax", _) if body["enabled"].is_boolean() => {
                ok(json!({ "ok": true }))
            }
            ("POST", "/wallpaper/parallax-move", "hang-move") => {
                std::thread::sleep(Duration::from_secs(2));
                ok(json!({ "ok": true }))
            }
            ("POST", "/wallpaper/parallax-move", _)
                if ["left", "right", "up", "down"]
                    .map(Value::from)
                    .contains(&body["direction"])
                    && self
                        .monitors
                        .get(body["name"].as_str().unwrap_or(""))
                        .is_some() =>
            {
                ok(json!({ "ok": true }))
            }
            _ => (
                400,
                json!({ "ok": false, "error": format!("{method} {url}") }).to_string(),
            ),
        }
    }

    fn load(&mut self, body: &Value, cue: &str) -> (u16, String) {
        let targets = body["targets"].as_array().cloned().unwrap_or_default();
        let sound = |target: &Value| {
            target["kind"] == body["kind"]
                && target["target"]
                    .as_str()
                    .is_some_and(|path| Path::new(path).is_file())
        };
        let numbers = |value: &Value| value.as_array().is_some_and(|list| list.len() == 4);
        let whole = numbers(&body["transition_params"]["bezier"])
            && numbers(&body["parallax"]["easing"])
            && body["duration_ms"].as_u64().is_some_and(|ms| ms > 0)
            && !targets.is_empty()
            && targets.iter().all(sound);
        if !whole {
            return (400, json!({ "ok": false, "error": "bad load" }).to_string());
        }
        match cue {
            "busy" if self.refusals < 3 => {
                self.refusals += 1;
                return (503, json!({ "error": "busy" }).to_string());
            }
            "refuse" => return (422, json!({ "error": "it will not" }).to_string()),
            "garbage" => return (200, "<html>".to_owned()),
            "hang" => self.role.hang(),
            _ => {}
        }
        if matches!(cue, "" | "newest" | "mute") {
            for target in &targets {
                let name = target["name"].as_str().unwrap();
                let is_ready = self.is_ready(name);
                self.role.note(
                    if is_ready {
                        "wal-qt-shown"
                    } else {
                        "wal-qt-lost"
                    },
                    name,
                );
                let monitor = &mut self.monitors[name];
                if monitor["current_kind"] == "web" && target["kind"] != "web" {
                    std::thread::spawn(come_up);
                }
                if cue != "mute" {
                    *monitor = idle(name);
                    monitor["current_target"] = target["target"].clone();
                }
                monitor["current_kind"] = target["kind"].clone();
            }
            return (202, json!({ "ok": true, "accepted": true }).to_string());
        }
        let outcome = if cue == "fail" { "failed" } else { "applied" };
        let state = match cue {
            "fail" | "accept-fail" => "failed",
            "accept-never" => "loading",
            _ => "displayed",
        };
        let mut results = Vec::new();
        for target in &targets {
            let name = target["name"].as_str().unwrap();
            self.monitors[name] = json!({
                "name": name, "target": target["target"], "load_state": state, "error": "no picture" });
            results.push(json!({ "name": name, "outcome": outcome, "error": "no picture" }));
        }
        if cue.starts_with("accept") {
            return (200, json!({ "ok": true, "accepted": true }).to_string());
        }
        (
            200,
            json!({ "ok": true, "request_id": 1, "results": results }).to_string(),
        )
    }
}

fn show(stubs: &Stubs, backend: &mut dyn Backend, placements: &[Placement]) -> Result<(), Error> {
    backend.show(placements, &stubs.wall.cancel)
}

/// The requests to the host except for health and status: route and body.
pub fn requests(stubs: &Stubs) -> Vec<(String, Value)> {
    let parse = |line: &String| {
        let mut words = line.splitn(3, ' ');
        let (method, url, body) = (words.next()?, words.next()?, words.next()?);
        (method == "POST").then(|| (url.to_owned(), serde_json::from_str(body).unwrap()))
    };
    stubs
        .note("wal-qt-requests")
        .iter()
        .filter_map(parse)
        .collect()
}

pub fn routes(stubs: &Stubs) -> Vec<String> {
    requests(stubs)
        .into_iter()
        .map(|(route, _)| route)
        .collect()
}

pub fn forget(stubs: &Stubs) {
    fs::remove_file(stubs.notes.join("wal-qt-requests")).ok();
}

pub fn page(stubs: &Stubs, output: &str, path: &Path, values: Value, keyboard: bool) -> Placement {
    let capabilities = WebCapabilities {
        keyboard,
        ..WebCapabilities::default()
    };
    let values = values.as_object().unwrap().clone();
    let web = Web {
        capabilities,
        parallax_direction: None,
        values,
    };
    let placement = stubs.wall.hang(&[(output, path)]).remove(0);
    Placement {
        kind: Kind::Web,
        web: Some(web),
        ..placement
    }
}

#[test]
fn host_is_started_and_gets_its_loads() {
    let stubs = Stubs::new(&["640x480", "640x480"]);
    let extra = json!(["STUB_EXTRA=1=2"]);
    stubs.wall.set_json("wal-qt", "env", extra);
    stubs.cue("wal-qt-host", "late");
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    let (red, blue) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("b, #%.tiff", BLUE),
    );
    let placements = stubs
        .wall
        .hang(&[("HEADLESS-1", &red), ("HEADLESS-2", &blue)]);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert_eq!(stubs.note("wal-qt-env"), ["1=2"]);
    assert_eq!(
        stubs.note("wal-qt-lost"),
        [""; 0],
        "its windows were waited for"
    );
    let asked = requests(&stubs);
    assert_eq!(
        routes(&stubs),
        ["/settings/image-presentation", "/wallpaper/load"]
    );
    let body = &asked[1].1;
    assert_eq!(body["targets"][0]["target"], red.to_str().unwrap());
    let copy = PathBuf::from(body["targets"][1]["target"].as_str().unwrap());
    assert!(
        copy != blue && copy.extension().is_some_and(|e| e == "png"),
        "no engine shows TIFF"
    );
    // Only the picture that differs is loaded.
    forget(&stubs);
    let placements = stubs
        .wall
        .hang(&[("HEADLESS-1", &red), ("HEADLESS-2", &red)]);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    let asked = requests(&stubs);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1["targets"].as_array().unwrap().len(), 1);
    assert_eq!(asked[0].1["targets"][0]["name"], "HEADLESS-2");
    // An output without a picture changes nothing on the others, and is black.
    forget(&stubs);
    assert_eq!(wal_qt.warnings(), [""; 0]);
    show(&stubs, &mut *wal_qt, &placements[..1]).unwrap();
    assert_eq!(routes(&stubs), [""; 0]);
    let warnings = wal_qt.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("black on HEADLESS-2"),
        "{warnings:?}"
    );
    // A request that reached the host in parts is sent once more.
    stubs.cue("wal-qt-host", "split");
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    forget(&stubs);
    let seen = stubs.wall.seen_at("HEADLESS-1", &red, "left");
    show(&stubs, &mut *wal_qt, &seen).unwrap();
    let cut = requests(&stubs)[0].1["targets"][0]["target"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(image::image_dimensions(cut).unwrap(), (640, 480));
    let host = stubs.wall.processes("wal-qt");
    assert_eq!(host.len(), 1);
    wal_qt.clear().unwrap();
    assert!(!host[0].is_running());
}

#[test]
fn reconnected_output_gets_its_picture_once_its_window_is_ready() {
    let stubs = Stubs::on(Desktop::wayland(&["--pluggable", "640x480", "640x480"]), 2);
    let are_there = |count: usize| stubs.wall.backends.outputs.list().len() == count;
    let red = stubs.wall.flat("red.png", RED);
    let mut other = "WL-2".to_owned();
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    for round in 1..4 {
        if round > 1 {
            stubs.wall.desktop.run("unplug", &[&other]);
            wait_until("the output is gone", || are_there(1));
            other = stubs
                .wall
                .desktop
                .run("plug", &["640x480"])
                .trim()
                .to_owned();
            wait_until("the output is back", || are_there(2));
        }
        fs::write(
            stubs.notes.join("outputs"),
            format!("WL-1 1\n{other} {round}\n"),
        )
        .unwrap();
        let placements = stubs.wall.hang(&[("WL-1", &red), (&other, &red)]);
        show(&stubs, &mut *wal_qt, &placements).unwrap();
    }
    assert_eq!(stubs.note("wal-qt-lost"), [""; 0]);
    let shown = stubs.note("wal-qt-shown");
    assert_eq!(
        shown.iter().filter(|output| *output != "WL-1").count(),
        3,
        "{shown:?}"
    );
}

#[test]
fn page_gets_changed_settings_without_a_reload() {
    let stubs = Stubs::new(&["640x480"]);
    let index = stubs.root().join("index.html");
    fs::write(&index, "<html>").unwrap();
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    let mut with = |values: Value, keyboard| {
        forget(&stubs);
        show(
            &stubs,
            &mut *wal_qt,
            &[page(&stubs, "HEADLESS-1", &index, values, keyboard)],
        )
        .unwrap();
        requests(&stubs)
    };
    let first = with(json!({ "speed": 1 }), false);
    assert_eq!(first[0].0, "/settings/network");
    assert_eq!(first[1].1["wallpaper_config_values"], json!({ "speed": 1 }));
    let source = json!(index.to_str().unwrap());
    let config = json!({ "source_target": source, "values": { "speed": 2 } });
    assert_eq!(
        with(json!({ "speed": 2 }), false),
        [("/wallpaper/config".to_owned(), config)]
    );
    let keyboard =
        json!({ "pointer_interactive": false, "keyboard": true, "audio_reactive": false });
    let body = json!({ "source_target": source, "capabilities": keyboard });
    assert_eq!(
        with(json!({ "speed": 2 }), true),
        [("/wallpaper/capabilities".to_owned(), body)]
    );
    assert_eq!(with(json!({ "speed": 2 }), true), [], "it goes on");
    stubs
        .wall
        .set_json("wal-qt", "allow_network_wallpapers", json!(true));
    stubs
        .wall
        .set_json("wal-qt", "parallax_enabled", json!(true));
    let asked = with(json!({ "speed": 3 }), true);
    assert_eq!(
        asked[0],
        (
            "/settings/network".to_owned(),
            json!({ "allow_network_wallpapers": true })
        )
    );
    assert_eq!(asked[1].0, "/wallpaper/parallax");
}

#[test]
fn settings_that_the_host_has_refused_are_sent_again() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    stubs
        .wall
        .set_json("wal-qt", "parallax_enabled", json!(true));
    stubs.cue("wal-qt-host", "no-parallax");
    show(&stubs, &mut *wal_qt, &placements).unwrap_err();
    stubs.cue("wal-qt-host", "");
    let mut told = || {
        forget(&stubs);
        show(&stubs, &mut *wal_qt, &placements).unwrap();
        routes(&stubs).contains(&"/wallpaper/parallax".to_owned())
    };
    assert_eq!([told(), told()], [true, false]);
}

#[test]
fn host_is_adopted_and_restarted() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let mut first = stubs.wall.backend(BackendName::WalQt);
    show(&stubs, &mut *first, &placements).unwrap();
    let host = stubs.wall.processes("wal-qt");
    drop(first);
    forget(&stubs);
    let mut second = stubs.wall.backend(BackendName::WalQt);
    show(&stubs, &mut *second, &placements).unwrap();
    assert!(
        !routes(&stubs).contains(&"/wallpaper/load".to_owned()),
        "it shows that already"
    );
    assert_eq!(stubs.wall.processes("wal-qt"), host);
    stubs
        .wall
        .desktop
        .output("kill", &["-9", &host[0].pid.to_string()]);
    stubs.wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!second.is_whole());
    show(&stubs, &mut *second, &placements).unwrap();
    assert!(second.is_whole());
    assert!(routes(&stubs).contains(&"/wallpaper/load".to_owned()));
}

#[test]
fn exit_of_a_foreign_host_is_noticed() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let socket = stubs.root().join("run/wal-qt.sock");
    let start = || {
        let host = stubs
            .wall
            .desktop
            .command(stubs.root().join("bin/wal-qt-host"));
        let host = crate::wall::Foreign::spawn(host);
        wait_until("the host", || UnixStream::connect(&socket).is_ok());
        host
    };
    let host = start();
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert!(stubs.wall.told.is_empty() && wal_qt.is_whole());
    drop(host);
    stubs.wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!wal_qt.is_whole());
    // Somebody else starts it again before murald does.
    let mut host = start();
    forget(&stubs);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert!(routes(&stubs).contains(&"/wallpaper/load".to_owned()));
    assert!(stubs.wall.processes("wal-qt").is_empty() && wal_qt.is_whole());
    // murald must not end it, and ignores its exit after `clear`.
    wal_qt.clear().unwrap();
    assert!(host.runs());
    drop(host);
    // The opposite case: no other program starts it, so murald does.
    let host = start();
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    while stubs.wall.told.try_recv().is_ok() {}
    drop(host);
    stubs.wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!wal_qt.is_whole());
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert_eq!(stubs.wall.processes("wal-qt").len(), 1);
}

#[test]
fn host_with_missing_status_fields_is_judged_by_the_others() {
    let stubs = Stubs::new(&["640x480"]);
    let (red, blue) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("blue.png", BLUE),
    );
    let red = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let blue = stubs.wall.hang(&[("HEADLESS-1", &blue)]);
    let mut first = stubs.wall.backend(BackendName::WalQt);
    // The host never reports what it shows.
    stubs.cue("wal-qt-host", "mute");
    show(&stubs, &mut *first, &red).unwrap();
    stubs.cue("wal-qt-host", "newest");
    show(&stubs, &mut *first, &blue).unwrap();
    // The next daemon sees from the status that nothing has to be loaded.
    drop(first);
    let mut second = stubs.wall.backend(BackendName::WalQt);
    forget(&stubs);
    show(&stubs, &mut *second, &blue).unwrap();
    assert!(!routes(&stubs).contains(&"/wallpaper/load".to_owned()));
    // An accepted load that does not replace the old picture is no success.
    stubs
        .wall
        .set_json("wal-qt", "load_timeout_ms", json!(1000));
    stubs.cue("wal-qt-host", "mute");
    let error = show(&stubs, &mut *second, &red).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("HEADLESS-1: not displayed within"),
        "{error}"
    );
    second.clear().unwrap();
}

#[test]
fn failures_of_wal_qt_are_reported() {
    let stubs = Stubs::new(&["640x480"]);
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    let (red, blue) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("blue.png", BLUE),
    );
    let red = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let blue = stubs.wall.hang(&[("HEADLESS-1", &blue)]);
    stubs.cue("wal-qt-host", "die");
    let error = show(&stubs, &mut *wal_qt, &red).unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("something is missing")),
        "{error}"
    );
    stubs.cue("wal-qt-host", "impostor");
    let error = show(&stubs, &mut *wal_qt, &red).unwrap_err();
    assert!(error.to_string().contains("the host is other"), "{error}");
    assert!(stubs.wall.processes("wal-qt").is_empty());
    stubs.cue("wal-qt-host", "");
    show(&stubs, &mut *wal_qt, &red).unwrap();
    for (cue, said) in [
        ("fail", "HEADLESS-1: no picture"),
        ("accept-fail", "HEADLESS-1: no picture"),
        ("refuse", "422: it will not"),
        ("garbage", "invalid JSON"),
    ] {
        stubs.cue("wal-qt-host", cue);
        let error = show(&stubs, &mut *wal_qt, &blue).unwrap_err();
        assert!(error.to_string().contains(said), "{cue}: {error}");
    }
    forget(&stubs);
    stubs.cue("wal-qt-host", "busy");
    show(&stubs, &mut *wal_qt, &blue).unwrap();
    assert_eq!(routes(&stubs).len(), 4, "three times refused");
    stubs.cue("wal-qt-host", "accept");
    show(&stubs, &mut *wal_qt, &red).unwrap();
    // The host never answers a request, and the wait can be cancelled.
    stubs.cue("wal-qt-host", "hang");
    let cancel = murald::internals::sys::Cancel::new().unwrap();
    let thread = {
        let (cancel, notes) = (cancel.clone(), stubs.notes.join("wal-qt-requests"));
        forget(&stubs);
        std::thread::spawn(move || {
            crate::desktop::wait_until("the load", || {
                fs::read_to_string(&notes).is_ok_and(|text| text.contains("/wallpaper/load"))
            });
            cancel.cancel();
        })
    };
    assert_eq!(wal_qt.show(&blue, &cancel), Err(Error::Cancelled));
    thread.join().unwrap();
    wal_qt.clear().unwrap();
}
