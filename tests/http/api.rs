//! The real routes with the daemon's real modules, without a compositor and with an empty library.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use murald::internals::backends::Backends;
use murald::internals::compositor::Outputs;
use murald::internals::config::ConfigHandle;
use murald::internals::decode::{self, Decoder};
use murald::internals::desktop;
use murald::internals::events::EventBus;
use murald::internals::http::{Api, Limits, ROUTES, Router, Server, Stop};
use murald::internals::kernel::Kernel;
use murald::internals::library;
use murald::internals::paths::{Dirs, Env};
use murald::internals::playlist::{self, DaemonWallpapers, PlayerOwner};
use murald::internals::process::{ProcessRecords, Versions};
use murald::internals::store::Store;
use murald::internals::thread::Spawner;
use murald::internals::transcode;
use murald::internals::wallpaper::{self, ReconcilerOwner};
use murald::internals::wire::{Event, GalleryDomain, Timestamp};
use serde_json::json;

use super::support::{Client, Reply};

struct Daemon {
    client: Client,
    events: EventBus,
    stops: Receiver<Stop>,
    _server: Server,
    _player: PlayerOwner,
    _stage: ReconcilerOwner,
    _imports: library::Running,
    _transcoder: transcode::Threads,
    directory: tempfile::TempDir,
}

fn daemon() -> Daemon {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let (stop, stops) = bounded(1);
    let (spawner, _deaths) = Spawner::new();
    let kernel = Kernel::start(&spawner).unwrap();
    let events = EventBus::new();
    let config = ConfigHandle::open(home.join("config.toml"), events.clone()).unwrap();
    let store = Store::open(&home.join("db/murald.sqlite3")).unwrap();
    let settings = config.clone();
    let program = Some(env!("CARGO_BIN_EXE_murald").into());
    let decode = decode::Settings {
        program,
        writable: vec![home.to_owned()],
        imports: 1,
        silent_for: None,
    };
    let decoder = Decoder::start(decode, &spawner).unwrap();
    let backends = Backends {
        decoder: decoder.clone(),
        settings: Arc::new(move || settings.current()),
        outputs: Outputs::default(),
        records: ProcessRecords::open(&home.join("run")).unwrap(),
        kernel: kernel.clone(),
        spawner: spawner.clone(),
        cache: home.join("cache"),
        dirs: Dirs::new(Env::from([("HOME", "/nowhere")])).unwrap(),
        versions: Versions::default(),
        own_program: None,
    };
    let (wallpaper, stage) = wallpaper::start(
        &spawner,
        store.clone(),
        events.clone(),
        backends.clone(),
        desktop::Handle::default(),
        Box::new(|_, _| ()),
    )
    .unwrap();
    let wallpapers = DaemonWallpapers {
        wallpaper: wallpaper.clone(),
        backends: backends.clone(),
    };
    let told = backends.outputs.subscribe();
    let (playlists, player) = playlist::start(
        (&spawner, &kernel),
        store.clone(),
        events.clone(),
        Box::new(wallpapers),
        || None,
        told,
        home.join("session"),
    )
    .unwrap();
    let started = Instant::now().checked_sub(Duration::from_secs(7)).unwrap();
    let place = home.to_owned();
    let env = Env::new(move |name| (name == "HOME").then(|| place.clone().into()));
    let settings = library::Settings {
        images_dir: home.join("images"),
        thumbnails_dir: home.join("thumbnails"),
        workers: 1,
        video_audio: Arc::new(|| false),
        decoder: decoder.clone(),
    };
    let (transcoder, threads) = transcode::start(&spawner, Default::default()).unwrap();
    let (library, imports) = library::start(
        &settings,
        store.clone(),
        events.clone(),
        transcoder,
        &kernel,
        &spawner,
    )
    .unwrap();
    let dirs = Dirs::new(env).unwrap();
    let events_too = events.clone();
    let api = Api {
        events: events_too,
        stop,
        started,
        started_at: Timestamp::now(),
        config,
        store,
        backends,
        wallpaper,
        playlists,
        library,
        desktop: murald::internals::desktop::Handle::default(),
        dirs,
        paths: Default::default(),
    };
    let socket = home.join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = Server::start(
        listener,
        &spawner,
        Router::new(api, ROUTES),
        Limits::default(),
    );
    let client = Client::to(&socket);
    Daemon {
        client,
        events,
        stops,
        _server: server.unwrap(),
        _player: player,
        _stage: stage,
        _imports: imports,
        _transcoder: threads,
        directory,
    }
}

impl Daemon {
    fn post(&mut self, path: &str, body: &str) -> Reply {
        self.send("POST", path, body)
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Reply {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        self.client.say(head + body).reply()
    }
}

#[test]
fn health_and_version_are_answered() {
    let mut daemon = daemon();
    let health = daemon.client.get("/healthz");
    assert_eq!((health.status, health.text()), (200, r#"{"status":"ok"}"#));
    assert_eq!(health.header("Content-Type"), Some("application/json"));
    let info = daemon.client.get("/info").json();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["pid"], std::process::id());
    assert_eq!(info["os"], "linux");
    assert!(info["uptime"].as_u64().unwrap() >= 7, "{info}");
    assert!(
        info["runtime_version"]
            .as_str()
            .unwrap()
            .starts_with("rustc "),
        "{info}"
    );
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
fn invalid_json_is_refused_by_routes_that_need_no_body() {
    let mut daemon = daemon();
    let bare: Vec<_> = ROUTES.iter().filter(|route| route.bare).collect();
    assert_eq!(bare.len(), 9);
    for route in bare {
        let path = route
            .pattern
            .replace("{name}", "feh")
            .replace("{backend}", "feh");
        let path = path.replace("{id}", "1");
        for body in ["{bad", "[]", "{} {}"] {
            let reply = daemon.send(route.method.as_str(), &path, body);
            assert_eq!(reply.status, 400, "{path}: {}", reply.text());
        }
    }
}

#[test]
fn events_are_filtered_by_type() {
    let mut daemon = daemon();
    let mut everything = Client::to(&daemon.directory.path().join("s"));
    everything
        .say("GET /events?types= HTTP/1.1\r\n\r\n")
        .reply();
    for bad in ["?types=wallpaper", "?types=,", "?types=config_changed,,"] {
        let reply = daemon.client.get(&format!("/events{bad}"));
        assert_eq!(reply.status, 400, "{bad}");
        assert!(reply.text().contains("types"), "{}", reply.text());
    }
    daemon
        .client
        .say("GET /events?types=config_changed,%20image_error HTTP/1.1\r\n\r\n")
        .reply();
    daemon.events.publish(&Event::GalleryChanged {
        domain: GalleryDomain::Images,
    });
    daemon.events.publish(&Event::ConfigChanged {
        sections: vec!["app".into()],
        source: None,
    });
    daemon.client.read_until(": connected");
    let heard = daemon.client.read_until("timestamp");
    assert!(
        heard.contains("event: config_changed") && !heard.contains("gallery"),
        "{heard}"
    );
    everything.read_until("event: gallery_changed");
    everything.read_until("event: config_changed");
}

#[test]
fn no_compositor_means_no_monitors_and_no_wallpaper() {
    let mut daemon = daemon();
    assert_eq!(daemon.client.get("/monitors").json(), json!([]));
    assert_eq!(daemon.client.get("/monitors/DP-1").status, 404);
    let backends = daemon.client.get("/backends").json();
    let names: Vec<_> = backends
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert!(
        names.contains(&&json!("awww")) && names.contains(&&json!("swaybg")),
        "{names:?}"
    );
    assert_eq!(
        backends[0]["capabilities"]["content_kinds"],
        json!(["static_image", "animated_image"])
    );
    assert_eq!(
        (&backends[0]["active"], &backends[0]["available"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(daemon.post("/backends/nothing/activate", "").status, 404);

    let mut check = |path: &str, body: &str, status: u16, said: &str| {
        let reply = daemon.post(path, body);
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.text());
        assert!(reply.text().contains(said), "{body}: {}", reply.text());
    };
    check("/wallpaper/set", "", 400, "empty");
    check("/wallpaper/set", "{}", 400, "image_id");
    check(
        "/wallpaper/set",
        r#"{"image_id":1,"monitor":"A","monitors":["B"]}"#,
        400,
        "contradict",
    );
    check(
        "/wallpaper/set",
        r#"{"image_id":1,"monitor":""}"#,
        400,
        "empty",
    );
    check(
        "/wallpaper/set",
        r#"{"image_id":1,"mode":"up"}"#,
        400,
        "individual",
    );
    check(
        "/wallpaper/set",
        r#"{"image_id":1,"monitor":"A"}"#,
        404,
        "no image with ID 1",
    );
    check("/wallpaper/random", "rubbish", 400, "object");
    check("/wallpaper/random", "", 404, "the library is empty");
    check(
        "/wallpaper/random",
        r#"{"monitor":"A"}"#,
        404,
        "the library is empty",
    );
}

#[test]
fn history_is_listed_within_bounds() {
    let mut daemon = daemon();
    assert_eq!(
        daemon
            .client
            .get("/images/history?limit=1001&monitor=x&since_id=4&before_id=9")
            .json(),
        json!([])
    );
    for bad in [
        "limit=0",
        "limit=-1",
        "limit=x",
        "since_id=x",
        "before_id=x",
    ] {
        let reply = daemon.client.get(&format!("/images/history?{bad}"));
        assert!(
            reply.status == 400 && reply.text().contains(&bad[..5]),
            "{bad}: {reply:?}"
        );
    }
    daemon.client.say("DELETE /images/history HTTP/1.1\r\n\r\n");
    assert_eq!(
        daemon.client.reply().json(),
        json!({"status": "cleared", "deleted": 0})
    );
}

/// A picture of a single colour.
fn bmp(color: [u8; 3]) -> Vec<u8> {
    let (side, mut bytes) = (16_u32, b"BM".to_vec());
    for field in [
        54 + side * side * 3,
        0,
        54,
        40,
        side,
        side,
        1 | 24 << 16,
        0,
        0,
        0,
        0,
        0,
        0,
    ] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(color.repeat((side * side) as usize));
    bytes
}

/// Imports pictures and waits for the end of the batch.
fn import(daemon: &mut Daemon, names: &[&str]) -> serde_json::Value {
    let source = daemon.directory.path().join("source");
    std::fs::create_dir_all(&source).unwrap();
    for (at, name) in names.iter().enumerate() {
        std::fs::write(source.join(name), bmp([at as u8 * 40, 200, 7])).unwrap();
    }
    let mut listener = Client::to(&daemon.directory.path().join("s"));
    listener
        .say("GET /events?types=processing_complete HTTP/1.1\r\n\r\n")
        .reply();
    let answer = daemon.post("/images", r#"{"paths": ["~/source"]}"#);
    assert_eq!(answer.status, 202, "{answer:?}");
    listener.read_until("event: processing_complete");
    answer.json()
}

#[test]
fn images_are_imported_listed_shown_and_removed() {
    let mut daemon = daemon();
    let empty = daemon.client.get("/images").json();
    let pages = json!({"page": 1, "per_page": 50, "total_items": 0, "total_pages": 0});
    assert_eq!(empty, json!({"data": [], "pagination": pages}));
    let started = import(&mut daemon, &["a.bmp", "b.bmp", "c.bmp"]);
    assert_eq!(
        (&started["status"], &started["total"]),
        (&json!("processing"), &json!(3))
    );

    let list = daemon
        .client
        .get("/images?sort_by=name&sort_order=asc&per_page=2")
        .json();
    assert_eq!(
        (&list["data"][0]["name"], &list["data"][1]["name"]),
        (&json!("a"), &json!("b"))
    );
    assert_eq!(list["pagination"]["total_pages"], 2);
    let second = daemon
        .client
        .get("/images?sort_by=name&sort_order=asc&per_page=2&page=2")
        .json();
    assert_eq!(second["data"][0]["name"], "c");
    let image = &list["data"][0];
    let id = &image["id"];
    assert_eq!(daemon.client.get(&format!("/images/{id}")).json(), *image);

    let raw = daemon.client.get(&format!("/images/{id}/raw"));
    assert_eq!(
        (raw.status, raw.header("Content-Type")),
        (200, Some("image/bmp"))
    );
    assert_eq!(
        raw.body,
        std::fs::read(image["path"].as_str().unwrap()).unwrap()
    );
    let thumbnail = daemon.client.get(&format!("/images/{id}/thumbnail"));
    assert_eq!(
        (thumbnail.status, thumbnail.header("Content-Type")),
        (200, Some("image/webp"))
    );
    assert_eq!(&thumbnail.body[8..12], b"WEBP");
    let tag = thumbnail.header("ETag").unwrap();
    let path = format!("/images/{id}/thumbnail?resolution=720p");
    daemon.client.say(format!(
        "GET {path} HTTP/1.1\r\nIf-None-Match: {tag}\r\n\r\n"
    ));
    assert_eq!(daemon.client.reply().status, 304);

    // A deleted thumbnail is missing from the record, and made again when it is requested.
    let home = daemon.directory.path().to_owned();
    std::fs::remove_dir_all(home.join("thumbnails/default")).unwrap();
    let all = "/images?sort_by=name&sort_order=asc&per_page=2";
    assert_eq!(
        daemon.client.get(all).json()["data"][0]["thumbnails"],
        json!({})
    );
    assert_eq!(
        daemon.client.get(&format!("/images/{id}/thumbnail")).status,
        200
    );
    assert_ne!(
        daemon.client.get(all).json()["data"][0]["thumbnails"],
        json!({})
    );

    let body = format!("{{\"ids\": [{id}, 999]}}");
    let head = format!(
        "DELETE /images HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    assert_eq!(daemon.client.say(head + &body).reply().json()["deleted"], 1);
    assert_eq!(daemon.client.get(&format!("/images/{id}")).status, 404);
    assert_eq!(
        daemon.client.get(all).json()["pagination"]["total_items"],
        2
    );
}

#[test]
fn bad_image_queries_are_explained() {
    let mut daemon = daemon();
    let mut check = |path: &str, body: &str, status: u16, said: &str| {
        let reply = if body.is_empty() {
            daemon.client.get(path)
        } else {
            daemon.post(path, body)
        };
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.text());
        assert!(
            reply.text().contains(said),
            "{path} {body}: {}",
            reply.text()
        );
    };
    check("/images/x", "", 400, "not an ID");
    check("/images/1.5", "", 400, "not an ID");
    check("/images/99999999999999999999", "", 404, "no image");
    check("/images/-99999999999999999999", "", 404, "no image");
    check("/images/7", "", 404, "no image with ID 7");
    check("/images/7/raw", "", 404, "no image with ID 7");
    check("/images/7/thumbnail", "", 404, "no image with ID 7");
    check("/images/7/thumbnail?resolution=8k", "", 400, "720p");
    check("/images?page=0", "", 400, "page");
    check("/images?sort_by=date", "", 400, "imported_at");
    check(
        "/images?palette_similar_to=7",
        "",
        404,
        "no image with ID 7",
    );
    check(
        "/images?page=18446744073709551615&per_page=500",
        "",
        200,
        r#""per_page":200"#,
    );
    let beyond = format!("/images?page={0}&per_page={0}", "9".repeat(20));
    check(&beyond, "", 200, r#""per_page":200"#);
    check(
        &format!("/images/history?limit={}", "9".repeat(20)),
        "",
        200,
        "[",
    );
    check("/images", "{}", 400, "paths");
    check("/images", r#"{"paths": []}"#, 400, "empty");
    check("/images", r#"{"paths": ["a/b"]}"#, 400, "absolute");
    check(
        "/images",
        r#"{"paths": ["/a"], "folder_id": 7}"#,
        404,
        "folder with ID 7",
    );
    check(
        "/images",
        r#"{"paths": "/a"}"#,
        400,
        "paths: invalid type: string",
    );
    check("/images/cancel-import", r#"{"batch_id": "b"}"#, 404, "b");
    check("/images/cancel-import", "{}", 400, "batch_id");
}
