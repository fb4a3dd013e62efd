//! The real routes over real rooms: no compositor, an empty library.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use murald::backends::Setters;
use murald::compositor::Outputs;
use murald::config::ConfigHandle;
use murald::events::Hub;
use murald::http::{Api, Limits, ROUTES, Server, Site, Stop};
use murald::process::{Reaper, Roster};
use murald::store::Store;
use murald::thread::Spawner;
use murald::wallpaper::{self, StageOwner};
use murald::wire::{Event, GalleryDomain};
use serde_json::json;

use super::support::{Client, Reply};

struct Daemon {
    client: Client,
    events: Hub,
    stops: Receiver<Stop>,
    _server: Server,
    _stage: StageOwner,
    _directory: tempfile::TempDir,
}

fn daemon() -> Daemon {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let (stop, stops) = bounded(1);
    let (spawner, _deaths) = Spawner::new();
    let events = Hub::new();
    let config = ConfigHandle::open(home.join("config.toml"), events.clone()).unwrap();
    let store = Store::open(&home.join("db/murald.sqlite3")).unwrap();
    let settings = config.clone();
    let setters = Setters {
        settings: Arc::new(move || settings.current()),
        outputs: Outputs::default(),
        roster: Roster::open(&home.join("run")).unwrap(),
        reaper: Reaper::start(&spawner, home).unwrap(),
        cache: home.join("cache"),
    };
    let (walls, stage) =
        wallpaper::start(&spawner, store.clone(), events.clone(), setters.clone()).unwrap();
    let started = Instant::now().checked_sub(Duration::from_secs(7)).unwrap();
    let api = Api { events: events.clone(), stop, started, config, store, setters, walls };
    let socket = home.join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = Server::start(listener, &spawner, Site::new(api, ROUTES), Limits::default());
    let client = Client::to(&socket);
    Daemon { client, events, stops, _server: server.unwrap(), _stage: stage, _directory: directory }
}

impl Daemon {
    fn post(&mut self, path: &str, body: &str) -> Reply {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        self.client.say(head + body).reply()
    }
}

#[test]
fn the_daemon_says_who_it_is() {
    let mut daemon = daemon();
    let health = daemon.client.get("/healthz");
    assert_eq!((health.status, health.text()), (200, r#"{"status":"ok"}"#));
    assert_eq!(health.header("Content-Type"), Some("application/json"));
    let info = daemon.client.get("/info").json();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["pid"], std::process::id());
    assert_eq!((&info["os"], &info["uptime"]), (&"linux".into(), &7.into()));
    assert!(info["runtime_version"].as_str().unwrap().starts_with("rustc "), "{info}");
    assert!(!info["hostname"].as_str().unwrap().is_empty());
    let able = daemon.client.get("/capabilities").json();
    assert!(able["transcoder_available"].is_boolean());
}

#[test]
fn shutdown_asks_once_and_always_answers() {
    let mut daemon = daemon();
    let mut check = |body: &str, status: u16| {
        let reply = daemon.post("/shutdown", body);
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        (reply, daemon.stops.try_recv().ok())
    };
    assert_eq!(check("", 200).1, Some(Stop { clear: false }));
    assert_eq!(check("{\"clear\":true}", 200).1, Some(Stop { clear: true }));
    assert_eq!(check("{\"clear\":1}", 400).1, None);
    assert_eq!(check("{}", 200).0.json()["status"], "shutting_down");
    assert_eq!(daemon.client.get("/shutdown").header("Allow"), Some("POST"));
}

#[test]
fn events_are_filtered_by_type() {
    let mut daemon = daemon();
    for bad in ["?types=wallpaper", "?types=", "?types=config_changed,,"] {
        let reply = daemon.client.get(&format!("/events{bad}"));
        assert_eq!(reply.status, 400, "{bad}");
        assert!(reply.text().contains("types"), "{}", reply.text());
    }
    daemon.client.say("GET /events?types=config_changed,%20image_error HTTP/1.1\r\n\r\n").reply();
    daemon.events.publish(&Event::GalleryChanged { domain: GalleryDomain::Images });
    daemon.events.publish(&Event::ConfigChanged { sections: vec!["app".into()], source: None });
    let heard = daemon.client.read_until("\n\n");
    assert!(heard.contains("event: config_changed") && !heard.contains("gallery"), "{heard}");
}

#[test]
fn settings_are_shown_whole_and_in_parts() {
    let mut daemon = daemon();
    let whole = daemon.client.get("/config").json();
    assert_eq!(whole["app"]["images_per_page"], 50);
    assert_eq!(whole["backend"]["wal-qt"]["duration_ms"], 300);
    for section in ["app", "daemon", "monitors", "remote_gallery"] {
        assert_eq!(daemon.client.get(&format!("/config/{section}")).json(), whole[section]);
    }
    let one = daemon.client.get("/config/backends/swaybg").json();
    assert_eq!(one, json!({"fit_mode": "fill"}));
    for path in ["/config/backend", "/config/App", "/config/backends/x", "/config/backends"] {
        assert_eq!(daemon.client.get(path).status, 404, "{path}");
    }
}

#[test]
fn without_a_compositor_there_are_no_monitors_and_no_wallpaper() {
    let mut daemon = daemon();
    assert_eq!(daemon.client.get("/monitors").json(), json!([]));
    assert_eq!(daemon.client.get("/monitors/DP-1").status, 404);
    let backends = daemon.client.get("/backends").json();
    let names: Vec<_> = backends.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(names.contains(&&json!("awww")) && names.contains(&&json!("swaybg")), "{names:?}");
    assert_eq!(
        backends[0]["capabilities"]["content_kinds"],
        json!(["static_image", "animated_image"])
    );
    assert_eq!((&backends[0]["active"], &backends[0]["available"]), (&json!(false), &json!(false)));
    assert_eq!(daemon.post("/backends/nothing/activate", "").status, 404);

    let mut check = |path: &str, body: &str, status: u16, said: &str| {
        let reply = daemon.post(path, body);
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.text());
        assert!(reply.text().contains(said), "{body}: {}", reply.text());
    };
    check("/wallpaper/set", "", 400, "empty");
    check("/wallpaper/set", "{}", 400, "image_id");
    check("/wallpaper/set", r#"{"image_id":1,"monitor":"A","monitors":["B"]}"#, 400, "both");
    check("/wallpaper/set", r#"{"image_id":1,"monitor":""}"#, 400, "empty");
    check("/wallpaper/set", r#"{"image_id":1,"mode":"up"}"#, 400, "individual");
    check("/wallpaper/set", r#"{"image_id":1,"monitor":"A"}"#, 400, "not connected: A");
    check("/wallpaper/random", "rubbish", 400, "object");
    check("/wallpaper/random", "", 400, "no monitor");
}

#[test]
fn the_history_is_listed_within_bounds() {
    let mut daemon = daemon();
    assert_eq!(
        daemon.client.get("/images/history?limit=1000&monitor=x&since_id=4").json(),
        json!([])
    );
    for bad in ["limit=0", "limit=1001", "limit=x", "since_id=x"] {
        let reply = daemon.client.get(&format!("/images/history?{bad}"));
        assert!(reply.status == 400 && reply.text().contains(&bad[..5]), "{bad}: {reply:?}");
    }
    daemon.client.say("DELETE /images/history HTTP/1.1\r\n\r\n");
    assert_eq!(daemon.client.reply().json(), json!({"status": "cleared", "deleted": 0}));
}
