//! wal-qt through a stand-in for its host: an HTTP server that knows every request by heart.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use murald::internals::backends::{Backend, Error, Kind, Placement, Web};
use murald::internals::config::BackendName;
use murald::internals::wire::WebCapabilities;
use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::desktop::wait_until;
use crate::stub::{Role, Stubs};
use crate::wall::{BLUE, RED};

/// The host. Each request is noted; those that the real one would refuse are answered with 400.
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
    role.note("wal-qt-env", &std::env::var("STUB_EXTRA").unwrap_or_default());
    let socket = role.runtime().join("wal-qt.sock");
    fs::remove_file(&socket).ok();
    let listener = UnixListener::bind(socket).unwrap();
    let server = Server::from_listener(listener, None).unwrap();
    let idle = |name: &str| {
        json!({ "name": name, "visible": true, "last_transition": "none", "in_progress": false,
            "parallax": { "enabled": false }, "current_kind": "image" })
    };
    let outputs = fs::read_to_string(role.notes.join("outputs")).unwrap();
    let monitors = outputs.lines().map(|name| (name.to_owned(), idle(name))).collect();
    let mut host = Host { role, monitors, refusals: 0, questions: 0 };
    for request in server.incoming_requests() {
        host.answer(request);
    }
}

struct Host<'a> {
    role: &'a Role,
    /// By name, as the status has it: fields that some versions leave out are added by loads.
    monitors: Value,
    refusals: u32,
    questions: u32,
}

impl Host<'_> {
    fn answer(&mut self, mut request: Request) {
        let mut body = String::new();
        request.as_reader().read_to_string(&mut body).unwrap();
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        let version = request.headers().iter().find(|h| h.field.equiv("X-API-Version"));
        let known = version.is_some_and(|header| header.value.as_str() == "0");
        let (method, url) = (request.method().clone(), request.url().to_owned());
        self.role.note("wal-qt-requests", &format!("{method} {url} {body}"));
        let (status, answer) = if known {
            self.decide(&method, &url, &body)
        } else {
            (400, json!({ "ok": false, "error": "X-API-Version" }).to_string())
        };
        let json = Header::from_bytes("Content-Type", "application/json").unwrap();
        request
            .respond(Response::from_string(answer).with_status_code(status).with_header(json))
            .ok();
    }

    fn decide(&mut self, method: &Method, url: &str, body: &Value) -> (u16, String) {
        let ok = |answer: Value| (200, answer.to_string());
        let cue = self.role.cue();
        let slow = [("slow-health", "/health"), ("slow-look", "/settings/image-presentation")];
        if slow.contains(&(cue.as_str(), url)) {
            self.role.spend_cue();
            std::thread::sleep(Duration::from_millis(300));
        }
        match (method, url, cue.as_str()) {
            (Method::Get, "/health", "impostor") => {
                ok(json!({ "ok": true, "service": "other", "api_version": "0" }))
            }
            (Method::Get, "/health", _) => {
                ok(json!({ "ok": true, "service": "wal-qt", "api_version": "0" }))
            }
            (Method::Get, "/wallpaper/status", _) => {
                self.questions += 1;
                let all = self.monitors.as_object().unwrap().values().cloned();
                let count = if self.questions > 2 { 2 } else { 0 };
                let place = |name| json!({ "name": name, "x": 0, "y": 0, "width": 640 });
                let topology: Vec<_> = ["HEADLESS-1", "HEADLESS-2"].map(place).into();
                ok(json!({ "ok": true, "api_version": "0", "status": { "topology": topology,
                    "monitor_count": count, "monitors": all.collect::<Vec<_>>() } }))
            }
            (Method::Post, "/wallpaper/load", cue) => self.load(body, cue),
            (Method::Post, "/settings/network", _)
                if body["allow_network_wallpapers"].is_boolean() =>
            {
                ok(json!({ "ok": true }))
            }
            (Method::Post, "/settings/image-presentation", _) if body["fill_color"].is_string() => {
                ok(json!({ "ok": true }))
            }
            (Method::Post, "/wallpaper/config", _) if body["values"].is_object() => {
                ok(json!({ "ok": true }))
            }
            (Method::Post, "/wallpaper/capabilities", _) if body["capabilities"].is_object() => {
                ok(json!({ "ok": true }))
            }
            (Method::Post, "/wallpaper/playback", _)
                if body["paused"].is_boolean() && body["source_target"].is_string() =>
            {
                ok(json!({ "ok": true, "applied": 1 }))
            }
            (Method::Post, "/wallpaper/parallax", "no-parallax") => {
                (400, json!({ "ok": false, "error": "not now" }).to_string())
            }
            (Method::Post, "/wallpaper/parallax", _) if body["enabled"].is_boolean() => {
                ok(json!({ "ok": true }))
            }
            (Method::Post, "/wallpaper/parallax-move", "hang-move") => {
                std::thread::sleep(Duration::from_secs(2));
                ok(json!({ "ok": true }))
            }
            (Method::Post, "/wallpaper/parallax-move", _)
                if ["left", "right", "up", "down"]
                    .map(Value::from)
                    .contains(&body["direction"])
                    && self.monitors.get(body["name"].as_str().unwrap_or("")).is_some() =>
            {
                ok(json!({ "ok": true }))
            }
            _ => (400, json!({ "ok": false, "error": format!("{method} {url}") }).to_string()),
        }
    }

    fn load(&mut self, body: &Value, cue: &str) -> (u16, String) {
        let targets = body["targets"].as_array().cloned().unwrap_or_default();
        let sound = |target: &Value| {
            target["kind"] == body["kind"]
                && target["target"].as_str().is_some_and(|path| Path::new(path).is_file())
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
        if matches!(cue, "newest" | "mute") {
            for target in &targets {
                let monitor = &mut self.monitors[target["name"].as_str().unwrap()];
                if cue == "newest" {
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
        (200, json!({ "ok": true, "request_id": 1, "results": results }).to_string())
    }
}

fn show(stubs: &Stubs, backend: &mut dyn Backend, placements: &[Placement]) -> Result<(), Error> {
    backend.show(placements, &stubs.wall.cancel)
}

/// What was asked of the host but for its health and status: route and body.
pub fn requests(stubs: &Stubs) -> Vec<(String, Value)> {
    let parse = |line: &String| {
        let mut words = line.splitn(3, ' ');
        let (method, url, body) = (words.next()?, words.next()?, words.next()?);
        (method == "POST").then(|| (url.to_owned(), serde_json::from_str(body).unwrap()))
    };
    stubs.note("wal-qt-requests").iter().filter_map(parse).collect()
}

pub fn routes(stubs: &Stubs) -> Vec<String> {
    requests(stubs).into_iter().map(|(route, _)| route).collect()
}

pub fn forget(stubs: &Stubs) {
    fs::remove_file(stubs.notes.join("wal-qt-requests")).ok();
}

pub fn page(stubs: &Stubs, output: &str, path: &Path, values: Value, keyboard: bool) -> Placement {
    let capabilities = WebCapabilities { keyboard, ..WebCapabilities::default() };
    let values = values.as_object().unwrap().clone();
    let web = Web { capabilities, parallax_direction: None, values };
    let placement = stubs.wall.hang(&[(output, path)]).remove(0);
    Placement { kind: Kind::Web, web: Some(web), ..placement }
}

#[test]
fn the_host_is_started_and_told_what_to_load() {
    let stubs = Stubs::new(&["640x480", "640x480"]);
    let extra = json!(["STUB_EXTRA=1=2"]);
    stubs.wall.set_json("wal-qt", "env", extra);
    stubs.cue("wal-qt-host", "late");
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    let (red, blue) = (stubs.wall.flat("red.png", RED), stubs.wall.flat("b, #%.tiff", BLUE));
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red), ("HEADLESS-2", &blue)]);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert_eq!(stubs.note("wal-qt-env"), ["1=2"]);
    let asked = requests(&stubs);
    assert_eq!(routes(&stubs), ["/settings/image-presentation", "/wallpaper/load"]);
    let body = &asked[1].1;
    assert_eq!(body["targets"][0]["target"], red.to_str().unwrap());
    let copy = PathBuf::from(body["targets"][1]["target"].as_str().unwrap());
    assert!(copy != blue && copy.extension().is_some_and(|e| e == "png"), "no engine shows TIFF");
    // Only what differs.
    forget(&stubs);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red), ("HEADLESS-2", &red)]);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    let asked = requests(&stubs);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1["targets"].as_array().unwrap().len(), 1);
    assert_eq!(asked[0].1["targets"][0]["name"], "HEADLESS-2");
    // An output that is left changes nothing on the others.
    forget(&stubs);
    show(&stubs, &mut *wal_qt, &placements[..1]).unwrap();
    assert_eq!(routes(&stubs), [""; 0]);
    let host = stubs.wall.processes("wal-qt");
    assert_eq!(host.len(), 1);
    wal_qt.clear().unwrap();
    assert!(!host[0].is_running());
}

#[test]
fn a_page_is_told_what_changes_without_loading_it_anew() {
    let stubs = Stubs::new(&["640x480"]);
    let index = stubs.root().join("index.html");
    fs::write(&index, "<html>").unwrap();
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    let mut with = |values: Value, keyboard| {
        forget(&stubs);
        show(&stubs, &mut *wal_qt, &[page(&stubs, "HEADLESS-1", &index, values, keyboard)])
            .unwrap();
        requests(&stubs)
    };
    let first = with(json!({ "speed": 1 }), false);
    assert_eq!(first[0].0, "/settings/network");
    assert_eq!(first[1].1["wallpaper_config_values"], json!({ "speed": 1 }));
    let source = json!(index.to_str().unwrap());
    let config = json!({ "source_target": source, "values": { "speed": 2 } });
    assert_eq!(with(json!({ "speed": 2 }), false), [("/wallpaper/config".to_owned(), config)]);
    let keyboard =
        json!({ "pointer_interactive": false, "keyboard": true, "audio_reactive": false });
    let body = json!({ "source_target": source, "capabilities": keyboard });
    assert_eq!(with(json!({ "speed": 2 }), true), [("/wallpaper/capabilities".to_owned(), body)]);
    assert_eq!(with(json!({ "speed": 2 }), true), [], "it goes on");
    stubs.wall.set_json("wal-qt", "allow_network_wallpapers", json!(true));
    stubs.wall.set_json("wal-qt", "parallax_enabled", json!(true));
    let asked = with(json!({ "speed": 3 }), true);
    assert_eq!(
        asked[0],
        ("/settings/network".to_owned(), json!({ "allow_network_wallpapers": true }))
    );
    assert_eq!(asked[1].0, "/wallpaper/parallax");
}

#[test]
fn settings_that_the_host_has_refused_are_told_again() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    stubs.wall.set_json("wal-qt", "parallax_enabled", json!(true));
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
fn the_host_is_taken_over_and_comes_back() {
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
    assert!(!routes(&stubs).contains(&"/wallpaper/load".to_owned()), "it shows that already");
    assert_eq!(stubs.wall.processes("wal-qt"), host);
    stubs.wall.desktop.output("kill", &["-9", &host[0].pid.to_string()]);
    stubs.wall.told.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(!second.is_whole());
    show(&stubs, &mut *second, &placements).unwrap();
    assert!(second.is_whole());
    assert!(routes(&stubs).contains(&"/wallpaper/load".to_owned()));
}

#[test]
fn the_end_of_a_host_that_somebody_else_started_is_noticed() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let socket = stubs.root().join("run/wal-qt.sock");
    let start = || {
        let host = stubs.wall.desktop.command(stubs.root().join("bin/wal-qt-host"));
        let host = crate::wall::Foreign::of(host);
        wait_until("the host", || UnixStream::connect(&socket).is_ok());
        host
    };
    let host = start();
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert!(stubs.wall.told.is_empty() && wal_qt.is_whole());
    drop(host);
    stubs.wall.told.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(!wal_qt.is_whole());
    // Somebody starts it again before we do.
    let mut host = start();
    forget(&stubs);
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert!(routes(&stubs).contains(&"/wallpaper/load".to_owned()));
    assert!(stubs.wall.processes("wal-qt").is_empty() && wal_qt.is_whole());
    // It is not ours to end, and its end is none of ours once we have let go of it.
    wal_qt.clear().unwrap();
    assert!(host.runs());
    drop(host);
    // The other way round: nobody starts it, so we do.
    let host = start();
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    while stubs.wall.told.try_recv().is_ok() {}
    drop(host);
    stubs.wall.told.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(!wal_qt.is_whole());
    show(&stubs, &mut *wal_qt, &placements).unwrap();
    assert_eq!(stubs.wall.processes("wal-qt").len(), 1);
}

#[test]
fn hosts_that_leave_fields_of_their_status_out_are_believed_by_what_is_there() {
    let stubs = Stubs::new(&["640x480"]);
    let (red, blue) = (stubs.wall.flat("red.png", RED), stubs.wall.flat("blue.png", BLUE));
    let red = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let blue = stubs.wall.hang(&[("HEADLESS-1", &blue)]);
    let mut first = stubs.wall.backend(BackendName::WalQt);
    // It never says what it shows.
    stubs.cue("wal-qt-host", "mute");
    show(&stubs, &mut *first, &red).unwrap();
    stubs.cue("wal-qt-host", "newest");
    show(&stubs, &mut *first, &blue).unwrap();
    // The next daemon reads off the status that nothing is to be done.
    drop(first);
    let mut second = stubs.wall.backend(BackendName::WalQt);
    forget(&stubs);
    show(&stubs, &mut *second, &blue).unwrap();
    assert!(!routes(&stubs).contains(&"/wallpaper/load".to_owned()));
    // Accepted, and the picture before stays: that is no success.
    stubs.wall.set_json("wal-qt", "load_timeout_ms", json!(1000));
    stubs.cue("wal-qt-host", "mute");
    let error = show(&stubs, &mut *second, &red).unwrap_err();
    assert!(error.to_string().contains("HEADLESS-1: not displayed within"), "{error}");
    second.clear().unwrap();
}

#[test]
fn mishaps() {
    let stubs = Stubs::new(&["640x480"]);
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    let (red, blue) = (stubs.wall.flat("red.png", RED), stubs.wall.flat("blue.png", BLUE));
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
        ("garbage", "no JSON"),
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
    // It takes a request and never answers: no longer than it is wanted.
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
