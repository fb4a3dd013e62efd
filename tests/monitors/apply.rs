//! Tests requests over the socket on real monitors: the screen, the answers and events, and what is
//! stored.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_for, wait_until};
use crate::scene::{
    BLUE, GREEN, RED, in_library, near, plain, running, see, set, three, watch_for_gaps,
};
use crate::support::TestDaemon;

#[test]
fn each_monitor_of_sway_shows_its_own_picture() {
    let desktop = Desktop::wayland(&[]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    let mut events = daemon.events("wallpaper_changed");

    let answer = set(&daemon, red, "HEADLESS-1").ok();
    let expected = json!({
        "status": "set", "image_id": red, "image_name": "red",
        "image_path": daemon.images().join("red.png"), "monitor": "HEADLESS-1",
        "monitors": ["HEADLESS-1"], "mode": "individual", "backend": "swaybg",
    });
    assert_eq!(answer, expected);
    set(&daemon, green, "HEADLESS-2").ok();
    see(&desktop, &daemon, "HEADLESS-1", RED);
    see(&desktop, &daemon, "HEADLESS-2", GREEN);

    let first = events.wait_for("wallpaper_changed");
    let fields: Vec<&String> = first.as_object().unwrap().keys().collect();
    let wanted = [
        "image_id",
        "media_type",
        "path",
        "tags",
        "monitors",
        "mode",
        "source",
        "backend",
        "colors",
        "image_name",
        "timestamp",
    ];
    assert_eq!(fields, wanted);
    assert_eq!(
        (&first["source"], &first["monitors"]),
        (&json!("manual"), &json!(["HEADLESS-1"]))
    );
    assert_eq!(events.wait_for("wallpaper_changed")["image_id"], green);

    let current = daemon.client().get("/wallpaper/current").ok();
    assert_eq!(current["image_id"], green);
    let hung: Vec<(&Value, &Value)> = current["monitors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|monitor| (&monitor["monitor_name"], &monitor["image_id"]))
        .collect();
    assert_eq!(
        hung,
        [
            (&json!("HEADLESS-1"), &json!(red)),
            (&json!("HEADLESS-2"), &json!(green))
        ]
    );

    // All monitors at once; the history has the newest first.
    let body = json!({ "image_id": blue, "mode": "clone" });
    let answer = daemon.client().post("/wallpaper/set", &body).ok();
    let mut monitors: Vec<_> = answer["monitors"].as_array().unwrap().iter().collect();
    // In the compositor's order, which is not the same in all versions of sway.
    monitors.sort_by_key(|name| name.to_string());
    assert_eq!(monitors, ["HEADLESS-1", "HEADLESS-2"]);
    see(&desktop, &daemon, "HEADLESS-1", BLUE);
    see(&desktop, &daemon, "HEADLESS-2", BLUE);
    let history = daemon.client().get("/images/history?limit=2").ok();
    let ids: Vec<&Value> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["image_id"])
        .collect();
    assert_eq!(ids, [&json!(blue), &json!(green)]);
    assert_eq!(
        running("swaybg", desktop.var("XDG_RUNTIME_DIR").unwrap()).len(),
        1
    );
}

#[test]
fn no_frame_shows_neither_picture() {
    let desktop = Desktop::wayland(&["1920x1080"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, _] = three(&daemon);
    set(&daemon, red, "HEADLESS-1").ok();
    see(&desktop, &daemon, "HEADLESS-1", RED);
    let samples = watch_for_gaps(&desktop, &daemon, "HEADLESS-1", &[RED, GREEN], || {
        for round in 0..10 {
            set(
                &daemon,
                if round % 2 == 0 { green } else { red },
                "HEADLESS-1",
            )
            .ok();
        }
    });
    assert!(samples >= 10, "only {samples} samples");
}

#[test]
fn feh_shows_pictures_under_x() {
    let desktop = Desktop::x11(&[]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    set(&daemon, red, "VIRTUAL-2").ok();
    see(&desktop, &daemon, "VIRTUAL-2", RED);
    see(&desktop, &daemon, "VIRTUAL-1", [0, 0, 0]);
    set(&daemon, green, "VIRTUAL-1").ok();
    see(&desktop, &daemon, "VIRTUAL-1", GREEN);
    see(&desktop, &daemon, "VIRTUAL-2", RED);
    assert_eq!(set(&daemon, blue, "*").ok()["backend"], "feh");
    see(&desktop, &daemon, "VIRTUAL-1", BLUE);
    assert!(
        !daemon.root().join(".fehbg").exists(),
        "the user's .fehbg is left alone"
    );
}

#[test]
fn extended_picture_has_no_gap_at_the_seam() {
    let desktop = Desktop::wayland(&["1280x720", "1280x720"]);
    let daemon = TestDaemon::started_on(&desktop);
    // Left half red, right half blue: the seam between the monitors is the seam of the picture.
    let path = daemon.root().join("halves.png");
    image::RgbImage::from_fn(2560, 720, |x, _| {
        image::Rgb(if x < 1280 { RED } else { BLUE })
    })
    .save(&path)
    .unwrap();
    let id = daemon.import(&[&path])[0];
    let body = json!({ "image_id": id, "mode": "extend" });
    assert_eq!(
        daemon.client().post("/wallpaper/set", &body).ok()["mode"],
        "extend"
    );
    see(&desktop, &daemon, "HEADLESS-1", RED);
    see(&desktop, &daemon, "HEADLESS-2", BLUE);
    let whole = daemon.root().join("whole.png");
    desktop.run("shot", &[whole.to_str().unwrap()]);
    let whole = image::open(&whole).unwrap().into_rgb8();
    assert!(near(whole.get_pixel(1279 - 2, 300).0, RED));
    assert!(near(whole.get_pixel(1280 + 2, 300).0, BLUE));
    assert_eq!(
        daemon.client().get("/wallpaper/current").ok()["image_path"],
        json!(in_library(&daemon))
    );
}

#[test]
fn impossible_wallpapers_are_refused() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let daemon = TestDaemon::started_on(&desktop);
    let client = daemon.client();
    client.post("/wallpaper/random", &json!({})).fails(404);
    let [red, green, blue] = three(&daemon);
    let post = |body: Value| client.post("/wallpaper/set", &body);
    post(json!({ "image_id": 999 })).fails(404);
    post(json!({ "image_id": red, "monitor": "DP-9" })).fails(400);
    post(json!({ "image_id": red, "monitor": "DP-9", "monitors": ["HEADLESS-1"] })).fails(400);
    post(json!({ "image_id": red, "mode": "stretch" })).fails(400);
    post(json!({ "image_id": "1" })).fails(400);
    post(json!({})).fails(400);
    client
        .send("POST", "/wallpaper/random", "", b"garbage")
        .fails(400);

    // An image whose file is gone is an orphan.
    post(json!({ "image_id": green })).ok();
    let mut events = daemon.events("image_orphan_purged");
    fs::remove_file(daemon.images().join("green.png")).unwrap();
    post(json!({ "image_id": green })).fails(404);
    let purged = events.wait_for("image_orphan_purged");
    assert_eq!(
        (&purged["image_id"], &purged["reason"]),
        (&json!(green), &json!("file_missing"))
    );
    assert_eq!(purged["history_entries_purged"], 1);
    assert_eq!(client.get(&format!("/images/{green}")).status, 404);
    // A random request picks neither a missing image nor the one that is shown.
    post(json!({ "image_id": red })).ok();
    let more = (0..6).map(|at| plain(&daemon, &format!("gone{at}.png"), [9, 9, 9 + at]));
    let more: Vec<PathBuf> = more.collect();
    daemon.import(&more.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    for path in &more {
        fs::remove_file(daemon.images().join(path.file_name().unwrap())).unwrap();
    }
    let random = client.post("/wallpaper/random", &json!({})).ok();
    assert_eq!(random["image_id"], blue);
}

#[test]
fn hostile_names_arrive_whole() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let daemon = TestDaemon::started_on(&desktop);
    for (number, name) in [
        "a b,c#d%20.png",
        "'quoted' \"twice\".png",
        "$(touch x);`.png",
        "größe ☃.png",
        "-o.png",
    ]
    .iter()
    .enumerate()
    {
        let color = [200 - 30 * number as u8, 40 + 30 * number as u8, 90];
        let path = plain(&daemon, name, color);
        let id = daemon.import(&[&path])[0];
        set(&daemon, id, "HEADLESS-1").ok();
        see(&desktop, &daemon, "HEADLESS-1", color);
    }
}

/// Twenty requests a second, as from a scroll wheel; for 30 s with `MURALD_STORM_SECONDS=30`.
#[test]
fn last_of_many_requests_wins() {
    let seconds = std::env::var("MURALD_STORM_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let rounds = 20 * seconds.unwrap_or(2_usize);
    let desktop = Desktop::wayland(&["1280x720", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap().to_owned();
    let daemon = TestDaemon::started_on(&desktop);
    let ids = three(&daemon);
    set(&daemon, ids[1], "*").ok();
    let before = Holdings::at_rest(&daemon);
    // Sent by one thread: of several, a later one could be the first on a busy machine.
    let asked: Vec<_> = (0..rounds)
        .map(|round| {
            let body =
                json!({ "image_id": ids[(rounds - 1 - round) % 3], "monitor": "HEADLESS-1" });
            let body = body.to_string();
            let asked = daemon
                .client()
                .ask("POST", "/wallpaper/set", "", body.as_bytes())
                .unwrap();
            std::thread::sleep(Duration::from_millis(50));
            asked
        })
        .collect();
    let status = |answer: Value| answer["status"].as_str().unwrap().to_owned();
    let statuses: Vec<String> = asked
        .into_iter()
        .map(|asked| status(asked.answer().unwrap().ok()))
        .collect();
    let superseded = statuses
        .iter()
        .filter(|status| *status == "superseded")
        .count();
    let shown = statuses.iter().filter(|status| *status == "set").count();
    eprintln!("of {rounds} requests {shown} were shown and {superseded} superseded");
    assert_eq!(statuses.last().unwrap(), "set");
    assert_eq!(shown + superseded, rounds);
    see(&desktop, &daemon, "HEADLESS-1", RED);
    see(&desktop, &daemon, "HEADLESS-2", GREEN);
    let current = daemon.client().get("/wallpaper/current").ok();
    assert_eq!(current["image_id"], ids[0]);
    wait_until("one swaybg", || running("swaybg", &runtime).len() == 1);
    // The clients' connections are closed a moment after the answers.
    wait_for(&format!("{before:#?}"), || {
        let after = Holdings::read(&daemon);
        if after == before { Ok(()) } else { Err(after) }
    });
}

/// The resources of the daemon, with the number of each.
#[derive(Debug, Default, PartialEq, Eq)]
struct Holdings {
    /// Descriptors by target, except those of the database's readers, of which up to eight are kept.
    descriptors: BTreeMap<String, usize>,
    /// Threads by name, except the server's workers, which wait a minute for work before they end.
    threads: BTreeMap<String, usize>,
    /// Children by name, including those that have exited and were not reaped.
    children: BTreeMap<String, usize>,
}

impl Holdings {
    /// The resources once the work of the start and the imports is done and its connections are closed:
    /// when many looks in a row find no change.
    fn at_rest(daemon: &TestDaemon) -> Self {
        let (mut last, mut same) = (Self::default(), 0);
        wait_until("the daemon is at rest", || {
            let now = Self::read(daemon);
            let is_busy = now.threads.keys().any(|name| name.starts_with("sse-"));
            same = if now == last && !is_busy { same + 1 } else { 0 };
            last = now;
            same == 50
        });
        last
    }

    fn read(daemon: &TestDaemon) -> Self {
        let process = PathBuf::from(format!("/proc/{}", daemon.pid()));
        let entries = |name: &str| fs::read_dir(process.join(name)).unwrap().flatten();
        let mut found = Self::default();
        for link in entries("fd").filter_map(|entry| fs::read_link(entry.path()).ok()) {
            let link = link.to_string_lossy().into_owned();
            // The kind of a socket or pipe, without its number.
            let kind = link.split(":[").next().unwrap_or(&link);
            if !link.contains("murald.sqlite3") {
                *found.descriptors.entry(kind.to_owned()).or_default() += 1;
            }
        }
        for task in entries("task") {
            let Ok(name) = fs::read_to_string(task.path().join("comm")) else {
                continue;
            };
            if !name.starts_with("http-") {
                *found.threads.entry(name.trim().to_owned()).or_default() += 1;
            }
        }
        for stat in fs::read_dir("/proc").unwrap().flatten() {
            let stat = fs::read_to_string(stat.path().join("stat")).unwrap_or_default();
            let Some((before, after)) = stat.rsplit_once(") ") else {
                continue;
            };
            if after.split(' ').nth(1) == Some(&daemon.pid().to_string()) {
                let name = before.split_once('(').map_or(before, |(_, name)| name);
                *found.children.entry(name.to_owned()).or_default() += 1;
            }
        }
        found
    }
}
