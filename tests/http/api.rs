//! The real routes, as far as they need no other room.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use murald::events::Hub;
use murald::http::{Api, Limits, ROUTES, Server, Site, Stop};
use murald::thread::Spawner;
use murald::wire::{Event, GalleryDomain};

use super::support::Client;

struct Daemon {
    client: Client,
    events: Hub,
    stops: Receiver<Stop>,
    _server: Server,
    _directory: tempfile::TempDir,
}

fn daemon() -> Daemon {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let (stop, stops) = bounded(1);
    let events = Hub::new();
    let started = Instant::now().checked_sub(Duration::from_secs(7)).unwrap();
    let api = Api { events: events.clone(), stop, started };
    let listener = UnixListener::bind(&socket).unwrap();
    let site = Site::new(api, ROUTES);
    let server = Server::start(listener, &Spawner::new().0, site, Limits::default()).unwrap();
    let client = Client::to(&socket);
    Daemon { client, events, stops, _server: server, _directory: directory }
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
        let length = body.len();
        let line = format!("POST /shutdown HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}");
        let reply = daemon.client.say(line).reply();
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
