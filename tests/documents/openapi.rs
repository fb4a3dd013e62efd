//! Compares the OpenAPI description (contrib/openapi.yaml) with the table of routes, and with answers
//! and events of a real daemon, for valid and invalid requests. `check.py` validates them against the
//! schemas.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use murald::internals::cli::{GROUPS, View};
use murald::internals::http::ROUTES;
use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::support::TestDaemon;
use crate::support::client::Client;

fn description() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/openapi.yaml")
}

/// The routes of the description, as `GET /images`, and their summaries.
pub(crate) fn routes() -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(description()).unwrap();
    let paths = text.split("\npaths:\n").nth(1).unwrap();
    let paths = paths.split("\ncomponents:\n").next().unwrap();
    let (mut path, mut route, mut routes) = ("", String::new(), BTreeSet::new());
    for line in paths.lines() {
        let indent = line.len() - line.trim_start().len();
        let (name, value) = line.trim().split_once(':').unwrap_or((line, ""));
        match (indent, name) {
            (2, name) if name.starts_with('/') => path = name,
            (4, "get" | "post" | "put" | "patch" | "delete") => {
                route = format!("{} {path}", name.to_uppercase());
            }
            (6, "summary") => drop(routes.insert((route.clone(), value.trim().to_owned()))),
            _ => {}
        }
    }
    routes
}

#[test]
fn every_route_is_described() {
    let table = ROUTES
        .iter()
        .map(|route| format!("{} {}", route.method, route.pattern));
    let described = routes().into_iter().map(|(route, _)| route);
    assert_eq!(
        table.collect::<BTreeSet<_>>(),
        described.collect::<BTreeSet<_>>()
    );
}

#[test]
fn command_knows_all_described_fields() {
    let views = GROUPS
        .iter()
        .flat_map(|group| group.verbs)
        .flat_map(|verb| verb.views);
    let described: Vec<(&str, &View)> = views
        .filter(|view| !view.described.is_empty())
        .map(|view| (view.described, *view))
        .collect();
    let output = Command::new("/usr/bin/python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi/fields.py"))
        .arg(description())
        .args(described.iter().map(|(name, _)| name))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), described.len());
    for (line, (name, fields)) in text.lines().zip(described) {
        let mut names: Vec<&str> = fields.described_fields().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.join(" "), line, "{name}");
    }
}

/// The section RESPONSES of the page, and the examples of records.
#[test]
fn responses_and_examples_are_described() {
    let output = Command::new("/usr/bin/python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi/responses.py"))
        .arg(description())
        .arg(examples_file())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let rows = String::from_utf8(output.stdout).unwrap();
    let page = include_str!("../../man/murald-api.7");
    assert!(page.contains(&rows), "RESPONSES must have:\n{rows}");

    let (_, shown) = page.split_once(".Sh EXAMPLE RECORDS\n").unwrap();
    let blocks = shown.split("-literal -offset indent\n").skip(1);
    let blocks = blocks.map(|block| block.split("\n.Ed\n").next().unwrap());
    let shown: Vec<Value> = blocks
        .map(|block| block.replace("\\(dq", "\"").replace("\\-", "-"))
        .map(|block| serde_json::from_str(&block).unwrap())
        .collect();
    let wanted = ["Image", "CurrentWallpaper", "Shown", "Playlist"];
    assert_eq!(shown, wanted.map(|name| examples()[name].clone()));
}

fn examples_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/examples/records.json")
}

fn examples() -> Value {
    serde_json::from_str(&fs::read_to_string(examples_file()).unwrap()).unwrap()
}

/// Hides what depends on the machine: paths, times and the encoder of the test's pictures.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let hidden =
                |name: &str| name.ends_with("_at") || ["checksum", "file_size"].contains(&name);
            let fields = fields.iter().map(|(name, value)| {
                let value = if hidden(name) {
                    Value::Null
                } else {
                    masked(value)
                };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::String(text) if text.starts_with('/') => json!("/"),
        Value::String(text) => json!(text.replace("HEADLESS-1", "DP-1")),
        other => other.clone(),
    }
}

#[test]
fn example_records_are_what_the_daemon_sends() {
    let desktop = Desktop::wayland(&["1920x1080"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"builtin\"\n");
    daemon.start();
    for (name, color) in [("lake", [32, 64, 160]), ("hill", [90, 90, 20])] {
        let path = daemon.root().join(format!("{name}.png"));
        let picture = image::RgbImage::from_pixel(64, 36, image::Rgb(color));
        picture.save(&path).unwrap();
        daemon.import(&[&path]);
    }
    let client = daemon.client();
    client
        .patch("/images/1", &json!({ "tags": ["quiet"] }))
        .ok();
    let request = json!({ "image_id": 1, "fit": "contain" });
    let shown = client.post("/wallpaper/set", &request).ok();
    let playlist = json!({
        "name": "evening", "configuration": { "interval": 600 },
        "images": [{ "image_id": 1 }, { "image_id": 2 }],
    });
    let wrong = json!({ "image_id": 1, "monitor": "DP-9" });
    let sent = json!({
        "Image": client.get("/images/1").ok(),
        "CurrentWallpaper": client.get("/wallpaper/current").ok(),
        "Shown": shown,
        "Playlist": client.post("/playlists", &playlist).json(),
        "Error": client.post("/wallpaper/set", &wrong).json(),
    });
    assert_eq!(masked(&sent), masked(&examples()));
}

/// Generators of clients follow a reference only to a component.
#[test]
fn every_reference_ends_at_a_component() {
    let text = fs::read_to_string(description()).unwrap();
    let references = text.lines().filter_map(|line| line.split_once("$ref: '#/"));
    for (_, target) in references {
        let parts: Vec<&str> = target.trim_end_matches('\'').split('/').collect();
        assert!(
            parts.len() == 3 && parts[0] == "components",
            "{target} is a part of a component"
        );
        let (kind, name) = (format!("\n  {}:", parts[1]), parts[2]);
        let component = text.split(&kind).nth(1);
        // Numbers have quotation marks there.
        let names = [format!("\n    {name}:\n"), format!("\n    '{name}':\n")];
        let is_there = |of: &str| names.iter().any(|name| of.contains(name));
        assert!(component.is_some_and(is_there), "{target}");
    }
    assert_eq!(
        text.matches("$ref:").count(),
        text.matches("$ref: '#/").count()
    );
}

/// Sends requests to a daemon and records the answers.
struct Recorder {
    client: Client,
    records: RefCell<Vec<Value>>,
}

impl Recorder {
    /// Sends a request and returns its body, or null if that is not JSON.
    fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let answer = self.client.send(method, path, "", body.as_bytes());
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        let parsed = if kind == "application/json" {
            answer.json()
        } else {
            Value::Null
        };
        self.records.borrow_mut().push(json!({
            "method": method, "path": path, "status": answer.status, "type": kind,
            "body": parsed, "id": answer.header("x-request-id"),
        }));
        parsed
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, Value::Null)
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.ask("POST", path, body)
    }
}

#[test]
fn every_answer_and_event_fits_its_schema() {
    let desktop = Desktop::wayland(&["640x360", "800x600"]);
    let daemon = TestDaemon::started_on(&desktop);
    let mut events = daemon.events("");
    // Read events as they come: a slow client would lose some.
    let told = std::thread::spawn(move || {
        std::iter::from_fn(|| events.try_next())
            .map(|(event, data)| json!({ "event": event, "data": data }))
            .collect::<Vec<_>>()
    });
    let to = Recorder {
        client: daemon.client(),
        records: RefCell::default(),
    };
    for (at, color) in [[200, 30, 30], [30, 60, 200], [9, 9, 9]]
        .into_iter()
        .enumerate()
    {
        let path = daemon.root().join(format!("picture {at}.png"));
        image::RgbImage::from_pixel(64, 36, image::Rgb(color))
            .save(&path)
            .unwrap();
    }
    let pictures: Vec<PathBuf> = (0..3)
        .map(|at| daemon.root().join(format!("picture {at}.png")))
        .collect();
    the_daemon(&to);
    images(&to, &daemon, &pictures);
    videos(&to, &daemon);
    wallpapers(&to, &daemon);
    playlists(&to, &daemon);
    folders(&to);
    settings(&to);
    // The daemon's stop ends the stream.
    to.post("/shutdown", json!({}));
    let mut records = to.records.into_inner();
    records.extend(told.join().unwrap());
    check(&records);
}

/// Events of failures, which other tests cover.
const MISHAPS: [&str; 6] = [
    "backend_unavailable",
    "playlist_no_compatible_item",
    "playlist_skipped_incompatible",
    "processing_cancelled",
    "wallpaper_apply_failed",
    "wallpaper_restore_failed",
];

fn check(records: &[Value]) {
    let mut check = Command::new("/usr/bin/python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi/check.py"))
        .arg(description())
        .args(MISHAPS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = check.stdin.take().unwrap();
    for record in records {
        // If the script has failed already, its own message says why.
        writeln!(input, "{record}").ok();
    }
    drop(input);
    let output = check.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

fn the_daemon(to: &Recorder) {
    for path in [
        "/healthz",
        "/info",
        "/capabilities",
        "/monitors",
        "/backends",
        "/api/themes",
    ] {
        to.get(path);
    }
    to.get("/events?types=nonsense");
    to.get("/monitors/HEADLESS-1");
    to.get("/monitors/DP-9");
    to.get("/api/themes/none.css");
    to.post("/shutdown", json!({ "clear": "yes" }));
}

fn images(to: &Recorder, daemon: &TestDaemon, pictures: &[PathBuf]) {
    daemon.import(&pictures.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    let missing = daemon.root().join("missing.png");
    let mut events = daemon.events("processing_complete");
    to.post("/images", json!({ "paths": [missing, pictures[0]] }));
    events.wait_for("processing_complete");
    for wrong in [
        json!({}),
        json!({ "paths": [] }),
        json!({ "paths": ["x"] }),
        json!([1]),
    ] {
        to.post("/images", wrong);
    }
    let package = daemon.root().join("page");
    fs::create_dir(&package).unwrap();
    to.post("/images/import-web", json!({ "path": package }));
    fs::write(package.join("index.html"), "<html>").unwrap();
    let page = to.post("/images/import-web", json!({ "path": package }));
    to.post("/images/cancel-import", json!({ "batch_id": "none" }));
    for query in [
        "?search=picture&tags=&sort_by=hue&sort_order=asc&media_type=image&per_page=500",
        "?colors_near=%23ff0000~60&folder_id=root&hue_group=0",
        "?palette_similar_to=1&palette_max_delta_e=200&page=9",
        "?page=0",
        "?sort_by=size",
        "?colors_near=red",
        "?palette_similar_to=99",
    ] {
        to.get(&format!("/images{query}"));
    }
    to.post("/library/purge-missing", json!({}));
    to.get("/library/watch");
    let watched = daemon.root().join("watched");
    to.ask(
        "PUT",
        "/library/watch",
        json!({ "watch": [watched], "watch_folders": true, "exclude": ["raw/"] }),
    );
    to.ask("PUT", "/library/watch", json!({ "watch": ["pictures"] }));
    let more = daemon.root().join("more");
    for change in [
        json!({ "watch": { "add": [more, watched] } }),
        json!({ "watch": { "remove": [more] } }),
        json!({ "watch": { "add": ["pictures"] } }),
        json!({ "watch": { "ad": [] } }),
    ] {
        to.ask("PATCH", "/library/watch", change);
    }
    to.post("/library/scan", json!({}));
    to.ask(
        "PUT",
        "/library/watch",
        json!({ "watch": [], "forget": true }),
    );
    to.post("/images/select-all", json!({ "selected": true }));
    for ids in [vec![1, 2], vec![1, 99], vec![]] {
        let tags = json!({ "add": ["many"], "remove": ["few"] });
        to.ask("PATCH", "/images", json!({ "ids": ids, "tags": tags }));
    }
    for path in [
        "/images/1",
        "/images/99",
        "/images/x",
        "/images/tags",
        "/images/ids",
    ] {
        to.get(path);
    }
    for path in [
        "/images/1/raw",
        "/images/99/raw",
        "/images/1/thumbnail?resolution=720p",
    ] {
        to.get(path);
    }
    to.get("/images/1/thumbnail?resolution=huge");
    let changes = json!({
        "name": "lake", "tags": ["a", "b"], "description": "A lake", "colors": ["#102030"], "is_selected": false,
        "audio_enabled": true, "folder_id": null,
    });
    to.ask("PATCH", "/images/1", changes);
    for wrong in [
        json!({ "name": "" }),
        json!({ "id": 7 }),
        json!({ "web_capabilities": {} }),
    ] {
        to.ask("PATCH", "/images/1", wrong);
    }
    to.ask("PATCH", "/images/99", json!({ "tags": [] }));
    let of_page = json!({
        "web_capabilities": { "keyboard": true }, "wallpaper_config_overrides": { "a": 1 },
    });
    to.ask("PATCH", &format!("/images/{}", page["id"]), of_page);
    to.ask("DELETE", "/images", json!({ "ids": [page["id"], 99] }));
    to.ask("DELETE", "/images", json!({ "ids": [] }));
}

fn videos(to: &Recorder, daemon: &TestDaemon) {
    let path = daemon.root().join("clip.mp4");
    let made = daemon
        .command("ffmpeg")
        .args([
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc=duration=1:size=64x36:rate=10",
        ])
        .arg(&path)
        .status();
    assert!(made.unwrap().success());
    let id = daemon.import(&[&path])[0];
    to.get(&format!("/images/{id}"));
    for id in [id, 1, 99] {
        to.post(&format!("/images/{id}/ensure-browser-preview"), Value::Null);
        let palette = format!("/images/{id}/extract-video-palette");
        to.post(&palette, json!({ "time_seconds": 9 }));
        to.post(&palette, json!({ "time_seconds": "late" }));
        let cut = json!({
            "in_seconds": 0, "out_seconds": 0.5, "preset": "mp4_h264", "action": "import_new",
        });
        to.post(&format!("/images/{id}/video-loop-export"), cut);
        let wrong = json!({
            "in_seconds": 1, "out_seconds": 0.5, "preset": "gif", "action": "replace",
        });
        to.post(&format!("/images/{id}/video-loop-export"), wrong);
    }
}

fn wallpapers(to: &Recorder, daemon: &TestDaemon) {
    to.get("/wallpaper/current");
    to.post(
        "/wallpaper/set",
        json!({ "image_id": 1, "monitor": "HEADLESS-1" }),
    );
    to.post("/wallpaper/set", json!({ "image_id": 2, "mode": "extend" }));
    to.post(
        "/wallpaper/set",
        json!({ "image_id": 2, "monitor": "DP-9" }),
    );
    to.post("/wallpaper/set", json!({ "image_id": 99 }));
    to.post("/wallpaper/set", json!({ "image_id": 2, "default": true }));
    to.post(
        "/wallpaper/set",
        json!({ "image_id": 2, "default": true, "monitor": "DP-9" }),
    );
    to.post("/wallpaper/random", Value::Null);
    to.post("/wallpaper/random", json!({ "mode": "sideways" }));
    to.post("/wallpaper/random", json!({ "mode": "each" }));
    to.post(
        "/wallpaper/set",
        json!({ "image_id": 1, "fit": "contain", "transition": "none" }),
    );
    to.post(
        "/wallpaper/set",
        json!({ "image_id": 1, "transition": "spiral" }),
    );
    to.get("/wallpaper/current");
    to.post("/wallpaper/set", json!({ "image_id": 1, "mode": "each" }));
    to.ask(
        "PATCH",
        "/config/workspaces",
        json!({ "2": "a", "3": "playlist:none" }),
    );
    to.get("/workspaces");
    to.get("/why");
    to.get("/debug");
    to.get("/why?monitor=DP-9");
    to.post("/wallpaper/back", Value::Null);
    to.post("/wallpaper/back", json!({ "monitor": "HEADLESS-1" }));
    to.post("/wallpaper/back", json!({ "monitor": "DP-9" }));
    to.post("/wallpaper/sound", json!({ "muted": true }));
    to.post("/wallpaper/sound", json!({ "volume": 101 }));
    to.get("/wallpaper/current");
    to.post("/backends/swaybg/activate", Value::Null);
    to.post("/backends/mpvpaper/activate", Value::Null);
    to.post("/backends/nitrogen/activate", Value::Null);
    for query in ["", "?monitor=HEADLESS-1&limit=1&since_id=0", "?limit=0"] {
        to.get(&format!("/images/history{query}"));
    }
    // An image without its file is purged when it is requested.
    let path = to.get("/images/3")["path"].as_str().unwrap().to_owned();
    fs::remove_file(path).unwrap();
    let mut events = daemon.events("image_orphan_purged");
    to.post("/wallpaper/set", json!({ "image_id": 3 }));
    events.wait_for("image_orphan_purged");
    to.ask("DELETE", "/images/history", Value::Null);
    to.post("/wallpaper/back", Value::Null);
}

fn playlists(to: &Recorder, daemon: &TestDaemon) {
    let items = json!([{ "image_id": 1 }, { "image_id": 2 }]);
    let body = json!({ "name": "both", "configuration": { "type": "manual" }, "images": items });
    to.post("/playlists", body.clone());
    to.post("/playlists", body);
    to.post(
        "/playlists",
        json!({ "name": "x", "configuration": { "interval": 0 } }),
    );
    let day = json!([{ "image_id": 1, "time": 0 }, { "image_id": 2, "time": 720 }]);
    let clock = json!({ "type": "time_of_day" });
    to.post(
        "/playlists",
        json!({ "name": "day", "configuration": clock, "images": day }),
    );
    to.get("/playlists");
    to.get("/playlists/1");
    to.get("/playlists/99");
    to.ask(
        "PATCH",
        "/playlists/1",
        json!({ "configuration": { "order": "random" } }),
    );
    to.ask("PATCH", "/playlists/1", json!({ "x": 1 }));
    to.post("/playlists/1/next", Value::Null);
    let mut events = daemon.events("playlist_image_changed");
    to.post("/playlists/1/start", json!({ "mode": "each" }));
    events.wait_for("playlist_image_changed");
    to.get("/playlists/active");
    to.post(
        "/playlists/1/start",
        json!({ "mode": "each", "extend": true }),
    );
    to.post("/playlists/1/start", json!({ "monitors": ["HEADLESS-1"] }));
    events.wait_for("playlist_image_changed");
    to.post("/playlists/2/start", json!({ "monitors": ["HEADLESS-2"] }));
    to.post("/playlists/1/start", json!({ "monitors": ["DP-9"] }));
    for action in ["next", "previous", "pause", "resume"] {
        to.post(&format!("/playlists/1/{action}"), Value::Null);
        to.post(&format!("/playlists/2/{action}"), Value::Null);
        to.post(&format!("/playlists/active/{action}"), Value::Null);
    }
    for path in [
        "/playlists/active",
        "/playlists/active/HEADLESS-1",
        "/playlists/active/DP-9",
    ] {
        to.get(path);
    }
    to.get("/playlists/1");
    to.post("/playlists/1/stop", Value::Null);
    to.post("/playlists/active/stop", Value::Null);
    to.get("/playlists/1/images");
    to.get("/playlists/1/images/ids");
    to.get("/playlists/99/images");
    to.get("/power");
    to.ask("PUT", "/power", json!({ "locked": true }));
    to.ask("PUT", "/power", json!({}));
    to.get("/appearance");
    for mode in ["dark", "light", "dim"] {
        to.ask("PUT", "/appearance", json!({ "mode": mode }));
    }
    let tones = json!([{ "image_id": 1, "when": "light" }, { "image_id": 2, "when": "dark" }]);
    let by_tone = json!({ "type": "appearance" });
    to.post(
        "/playlists",
        json!({ "name": "tones", "configuration": by_tone, "images": tones }),
    );
    to.get("/playlists/1/images?page=0");
    to.post(
        "/playlists",
        json!({ "name": "lives", "source": { "media_type": "image" } }),
    );
    to.post(
        "/playlists",
        json!({ "name": "bad", "source": { "tag": "x" } }),
    );
    to.post("/playlists/4/start", Value::Null);
    to.get("/playlists/active");
    to.ask(
        "PATCH",
        "/playlists/4",
        json!({ "source": { "tags": ["none"] } }),
    );
    to.get("/playlists/active");
    to.post("/playlists/4/stop", Value::Null);
    to.ask("DELETE", "/playlists/2", Value::Null);
    to.ask("DELETE", "/playlists/2", Value::Null);
}

fn folders(to: &Recorder) {
    to.post("/folders", json!({ "name": "Lakes" }));
    to.post("/folders", json!({ "name": "Lakes" }));
    to.post("/folders", json!({ "name": "Deep", "parent_id": 1 }));
    to.post(
        "/folders/move-images",
        json!({ "image_ids": [1], "folder_id": 2 }),
    );
    to.post("/folders/move-images", json!({ "image_ids": [1] }));
    for path in [
        "/folders",
        "/folders?parent_id=root",
        "/folders?search=la",
        "/folders?parent_id=x",
    ] {
        to.get(path);
    }
    for path in [
        "/folders/2",
        "/folders/9",
        "/folders/2/path",
        "/folders/9/path",
    ] {
        to.get(path);
    }
    to.ask("PATCH", "/folders/2", json!({ "name": "Deeper" }));
    to.ask("PATCH", "/folders/1", json!({ "parent_id": 2 }));
    to.ask("DELETE", "/folders/2?mode=some", Value::Null);
    to.ask("DELETE", "/folders/2", Value::Null);
    to.ask("DELETE", "/folders/1?mode=delete_all", Value::Null);
}

fn settings(to: &Recorder) {
    to.get("/config");
    to.ask(
        "PATCH",
        "/config",
        json!({ "app": { "theme": "x" }, "monitors": {} }),
    );
    to.ask(
        "PATCH",
        "/config",
        json!({ "app": { "images_per_page": "many" } }),
    );
    to.get("/config/app");
    to.get("/config/backend");
    to.ask("PATCH", "/config/daemon", json!({ "log_level": "debug" }));
    to.ask("PATCH", "/config/backend", json!({}));
    to.get("/config/backends/swaybg");
    to.get("/config/backends/none");
    to.ask(
        "PATCH",
        "/config/backends/swaybg",
        json!({ "fit_mode": "tile" }),
    );
    to.ask(
        "PATCH",
        "/config/backends/swaybg",
        json!({ "fit_mode": "upside down" }),
    );
    to.post("/config/backends/swaybg/reset", Value::Null);
    to.post("/config/reset", Value::Null);
}
