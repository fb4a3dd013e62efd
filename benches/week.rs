//! Simulates a week: playlist changes, requests of all kinds, imports and deletions, hot-plugs and
//! restarts on headless sway (tests/desktop/install). Shows whether memory, descriptors, threads,
//! children or files grow.
//!
//! `cargo bench --bench week` prints a line after each twentieth of the changes, and at the end the
//! figures after the first minute of the last process and the final ones; any growth between them is a
//! defect. Restarts, by a stop and by a kill in turn, are in the first fifth only, so that one daemon
//! runs through all the rest. The history is full from the start. `MURALD_WEEK_CHANGES` (10000) is the
//! number of changes; each comes with ten requests, and every tenth with an import and a deletion.
#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "../tests/desktop/mod.rs"]
mod desktop;
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use desktop::{Desktop, wait_until};
use serde_json::{Value, json};
use support::TestDaemon;
use support::client::Client;

/// The number of lines.
const PARTS: u64 = 20;
/// The number of lines with restarts.
const RESTARTED: u64 = 4;
/// The number of playlist changes for each import and deletion.
const STEPS: u64 = 10;
/// The number of requests with each change.
const REQUESTS: u64 = 10;
/// The number of images at any time.
const KEPT: usize = 60;
/// The number of entries that the history keeps.
const HISTORY: i64 = 10_000;

fn main() {
    let said = std::env::var("MURALD_WEEK_CHANGES")
        .ok()
        .and_then(|text| text.parse().ok());
    let changes: u64 = said.unwrap_or(10_000);
    let desktop = Desktop::wayland(&["--pluggable", "640x360", "640x360"]);
    let mut week = Week::begin(&desktop);
    println!("{}", Figures::HEAD);
    let (mut settled, mut born) = (None, Instant::now());
    for part in 1..=PARTS {
        for round in 0..changes / PARTS / STEPS {
            week.round();
            if part <= RESTARTED && round.is_multiple_of(10) {
                week.restart();
                born = Instant::now();
            }
            let minute = born.elapsed() >= Duration::from_secs(60);
            if settled.is_none() && part > RESTARTED && minute {
                settled = Some(week.figures());
            }
        }
        week.plug();
        println!("{:4} %{}", part * 100 / PARTS, week.figures());
    }
    // Threads of connections exit, and buffers of the last import are released.
    week.rest();
    if let Some(settled) = settled {
        println!(" 1 min{settled}");
    }
    println!("   end{}", week.figures());
    week.sum();
}

struct Week<'a> {
    desktop: &'a Desktop,
    daemon: TestDaemon,
    playlist: i64,
    /// The first one is deleted next.
    images: VecDeque<i64>,
    serial: u64,
    done: Done,
    begun: Instant,
}

#[derive(Debug, Default)]
struct Done {
    changes: u64,
    requests: u64,
    imports: u64,
    deletes: u64,
    hot_plugs: u64,
    restarts: u64,
}

impl<'a> Week<'a> {
    fn begin(desktop: &'a Desktop) -> Self {
        let mut daemon = TestDaemon::on(desktop);
        daemon.configure(
            "[backend]\ntype = \"builtin\"\n[backend.builtin]\ntransition_type = \"none\"\n",
        );
        daemon.start();
        let (done, begun) = (Done::default(), Instant::now());
        let mut week = Self {
            desktop,
            daemon,
            playlist: 0,
            images: VecDeque::new(),
            serial: 0,
            done,
            begun,
        };
        while week.images.len() < KEPT {
            week.import();
        }
        week.fill_history();
        let body = json!({
            "name": "week",
            "configuration": { "type": "manual", "order": "random" },
            "source": { "media_type": "image" },
        });
        week.playlist = week.client().post("/playlists", &body).ok()["id"]
            .as_i64()
            .unwrap();
        week.client()
            .post(&format!("/playlists/{}/start", week.playlist), &json!({}))
            .ok();
        week.begun = Instant::now();
        week.done = Done::default();
        week
    }

    /// Fills the history as years of use would: otherwise the database grows until it is full.
    fn fill_history(&mut self) {
        assert_eq!(self.daemon.stop(), Some(0));
        let database = rusqlite::Connection::open(self.daemon.database()).unwrap();
        let image = self.images[0];
        let filled = database.execute(
            "INSERT INTO history (image_id, image_name, monitors, mode, set_at, source, backend, \
             images) WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT ?1) \
             SELECT ?2, 'picture 0000', '[\"WL-1\",\"WL-2\"]', 'individual', n, \
             'manual', 'builtin', '{}' FROM n",
            (HISTORY, image),
        );
        assert_eq!(filled.unwrap() as i64, HISTORY);
        drop(database);
        self.daemon.start();
    }

    fn client(&self) -> Client {
        self.daemon.client()
    }

    /// Ten changes with their requests, an import and a deletion.
    fn round(&mut self) {
        for _ in 0..STEPS {
            let path = format!("/playlists/{}/next", self.playlist);
            self.client().post(&path, &json!({})).ok();
            self.done.changes += 1;
            for _ in 0..REQUESTS {
                self.request();
            }
        }
        self.import();
        self.delete();
    }

    /// Imports a new picture, and deletes the original.
    fn import(&mut self) {
        self.serial += 1;
        let path = self
            .daemon
            .root()
            .join(format!("picture {:04}.png", self.serial));
        let mut picture = image::RgbImage::new(64, 36);
        let serial = self.serial.to_le_bytes();
        for (x, y, pixel) in picture.enumerate_pixels_mut() {
            *pixel = image::Rgb([serial[0] ^ x as u8, serial[1] ^ y as u8, serial[2]]);
        }
        picture.save(&path).unwrap();
        self.images.extend(self.daemon.import(&[&path]));
        fs::remove_file(&path).unwrap();
        self.done.imports += 1;
    }

    fn delete(&mut self) {
        let body = json!({ "ids": [self.images.pop_front()] }).to_string();
        let answer = self
            .client()
            .send("DELETE", "/images", "", body.as_bytes())
            .ok();
        assert_eq!(answer["deleted"], 1);
        self.done.deletes += 1;
    }

    fn request(&mut self) {
        self.done.requests += 1;
        let (client, number) = (self.client(), self.done.requests);
        let image = self.images[(number / 7) as usize % self.images.len()];
        let read = READ[number as usize % READ.len()].replace("{id}", &image.to_string());
        match number % 50 {
            7 => {
                let body = json!({ "tags": [format!("tag {}", number % 9)] });
                client.patch(&format!("/images/{image}"), &body).ok();
            }
            14 => {
                let made = client.post("/folders", &json!({ "name": "folder" })).ok();
                let body = json!({ "image_ids": [image], "folder_id": made["id"] });
                client.post("/folders/move-images", &body).ok();
                client
                    .delete(&format!("/folders/{}?mode=keep_contents", made["id"]))
                    .ok();
            }
            21 => drop(
                client
                    .post("/images", &json!({ "paths": "none" }))
                    .fails(400),
            ),
            28 => drop(client.get("/nowhere").fails(404)),
            35 => drop(self.daemon.events("")),
            42 => {
                let body = json!({ "images_per_page": 20 + number % 80 });
                client.patch("/config/app", &body).ok();
            }
            49 => {
                client
                    .post("/wallpaper/set", &json!({ "image_id": image }))
                    .ok();
            }
            _ => {
                let answer = client.get(&read);
                assert_eq!(answer.status, 200, "{read}: {}", answer.text());
            }
        }
    }

    fn restart(&mut self) {
        match self.done.restarts % 2 {
            0 => assert_eq!(self.daemon.stop(), Some(0)),
            _ => self.daemon.kill9(),
        }
        self.daemon.start();
        self.done.restarts += 1;
    }

    /// Plugs a monitor in, waits for its picture, and unplugs it.
    fn plug(&mut self) {
        let name = self.desktop.run("plug", &["640x360"]);
        wait_until("the monitor's picture", || {
            let current = self.client().get("/wallpaper/current").ok();
            let mut monitors = current["monitors"].as_array().unwrap().iter();
            monitors.any(|one| one["monitor_name"] == name)
        });
        self.desktop.run("unplug", &[&name]);
        wait_until("the monitor is gone", || {
            let monitors = self.client().get("/monitors").ok();
            monitors
                .as_array()
                .unwrap()
                .iter()
                .all(|one: &Value| one["name"] != name)
        });
        self.done.hot_plugs += 1;
    }

    fn rest(&self) {
        let threads = || {
            fs::read_dir(format!("/proc/{}/task", self.daemon.pid()))
                .unwrap()
                .count()
        };
        let mut last = (threads(), Instant::now());
        // Longer than an idle thread of a connection lives.
        wait_until("idle threads", || {
            if threads() != last.0 {
                last = (threads(), Instant::now());
            }
            last.1.elapsed() > Duration::from_secs(3)
        });
    }

    fn figures(&self) -> Figures {
        let pid = self.daemon.pid();
        let drawing = self.daemon.drawing();
        let data = self.daemon.root().join("data/murald");
        Figures {
            resident: memory(pid, "VmRSS:"),
            anonymous: memory(pid, "RssAnon:"),
            descriptors: count(&format!("/proc/{pid}/fd")),
            threads: count(&format!("/proc/{pid}/task")),
            children: drawing.len(),
            drawing: drawing.iter().map(|&pid| memory(pid, "RssAnon:")).sum(),
            drawing_descriptors: drawing
                .iter()
                .map(|pid| count(&format!("/proc/{pid}/fd")))
                .sum(),
            database: size(&data.join("db")),
            log: size_of(&data, "daemon.log"),
            cache: size(&self.daemon.root().join("cache")),
        }
    }

    fn sum(&self) {
        println!("{:?} in {:.0?}", self.done, self.begun.elapsed());
        let errors = self.daemon.log();
        let errors = errors
            .lines()
            .filter(|line| line.contains("\"level\":\"error\""))
            .count();
        println!("{errors} errors in the last of the log");
    }
}

const READ: &[&str] = &[
    "/healthz",
    "/info",
    "/capabilities",
    "/images?per_page=20",
    "/images?search=picture&sort_by=name",
    "/images?tags=tag%203",
    "/images/{id}",
    "/images/{id}/thumbnail",
    "/images/{id}/thumbnail?resolution=1080p",
    "/images/{id}/raw",
    "/images/tags",
    "/images/history?limit=20",
    "/wallpaper/current",
    "/why",
    "/playlists",
    "/playlists/active",
    "/folders",
    "/monitors",
    "/config",
    "/backends",
    "/api/themes",
    "/library/watch",
    "/debug",
];

/// Figures that must not grow; sizes in MiB, others are counts.
struct Figures {
    resident: f64,
    anonymous: f64,
    descriptors: usize,
    threads: usize,
    children: usize,
    drawing: f64,
    drawing_descriptors: usize,
    database: f64,
    log: f64,
    cache: f64,
}

impl Figures {
    const HEAD: &str = "      resident  anonymous  descriptors  threads  children  their memory  \
                        their descriptors  database    log  cache";
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:8.1}{:11.1}{:13}{:9}{:10}{:14.1}{:19}{:10.2}{:7.2}{:7.2}",
            self.resident,
            self.anonymous,
            self.descriptors,
            self.threads,
            self.children,
            self.drawing,
            self.drawing_descriptors,
            self.database,
            self.log,
            self.cache
        )
    }
}

fn memory(pid: u32, key: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .unwrap_or_default();
    let kibibytes = line
        .split_whitespace()
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    kibibytes.unwrap_or_default() / 1024.0
}

fn count(directory: &str) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

/// Size of all files below a directory, in MiB.
fn size(directory: &Path) -> f64 {
    size_of(directory, "")
}

/// Size of the files whose names begin with `name`, in MiB; of all files below if it is empty.
fn size_of(directory: &Path, name: &str) -> f64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let Ok(meta) = entry.metadata() else {
            return 0.0;
        };
        if meta.is_dir() && name.is_empty() {
            size(&entry.path())
        } else if meta.is_file() && entry.file_name().to_string_lossy().starts_with(name) {
            meta.len() as f64 / f64::from(1 << 20)
        } else {
            0.0
        }
    };
    entries.map(of).sum()
}
