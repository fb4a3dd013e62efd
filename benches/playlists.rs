//! Measures a thousand playlists of a thousand images: the commands, the work of a running playlist
//! between its changes, and how late changes are during an import.
//!
//! `cargo bench --bench playlists` runs the daemon on headless sway (tests/desktop/install) and prints a
//! table, with processor times for a machine that does other work, too. Aims: start, step and edit in
//! less than 5 ms at p99; no wake-up between changes; a change begins within 50 ms of its time. Each
//! command is sent after the picture of the one before is shown. `MURALD_IDLE_SECONDS` is the time of
//! the measurement between changes (20).
#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "../tests/desktop/mod.rs"]
mod desktop;
mod figures;
#[path = "../tests/support/photo.rs"]
mod photo;
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use desktop::{Desktop, wait_until};
use figures::row;
use image::codecs::jpeg::JpegEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::TestDaemon;
use support::client::{Answer, Events};

const MANY: usize = 1000;
/// The number of commands of each kind.
const COMMANDS: usize = 300;
/// The number of 4K photographs that are imported while playlists change.
const PHOTOGRAPHS: usize = 300;
/// The number of changes that are timed without an import.
const QUIET: usize = 20;
const OUTPUTS: [&str; 2] = ["HEADLESS-1", "HEADLESS-2"];

fn main() {
    let desktop = Desktop::wayland(&["1280x720", "1280x720"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.start();
    let images = small_pictures(&daemon);
    let lists = playlists(&daemon, &images);
    println!("{} playlists of {} images", lists.len(), images.len());
    let mut bench = Bench {
        events: daemon.events("playlist_image_changed"),
        daemon,
    };
    bench.commands(&lists, &images);
    bench.between_changes(&lists);
    bench.lateness(&lists);
}

/// Plain pictures, as this measures the commands, not the backend.
fn small_pictures(daemon: &TestDaemon) -> Vec<i64> {
    let directory = daemon.root().join("small");
    fs::create_dir(&directory).unwrap();
    for number in 0..MANY {
        let color = [number as u8, (number >> 8) as u8 * 60, 99];
        let path = directory.join(format!("{number:04}.png"));
        image::RgbImage::from_pixel(32, 18, image::Rgb(color))
            .save(path)
            .unwrap();
    }
    daemon.import(&[&directory])
}

/// Half of the playlists are in random order, which has the larger state.
fn playlists(daemon: &TestDaemon, images: &[i64]) -> Vec<i64> {
    let items: Vec<Value> = images.iter().map(|id| json!({ "image_id": id })).collect();
    let make = |number: usize| {
        let order = if number.is_multiple_of(2) {
            "ordered"
        } else {
            "random"
        };
        let configuration = json!({ "interval": 3600, "order": order });
        let name = format!("playlist {number}");
        let body = json!({ "name": name, "configuration": configuration, "images": items });
        daemon.client().post("/playlists", &body).ok()["id"]
            .as_i64()
            .unwrap()
    };
    (0..MANY).map(make).collect()
}

struct Bench {
    events: Events,
    daemon: TestDaemon,
}

impl Bench {
    fn commands(&mut self, lists: &[i64], images: &[i64]) {
        println!("processor of the threads that answer, each; and until the answer");
        self.timed("get: nothing, to compare", false, |daemon, _| {
            daemon.client().get("/healthz")
        });
        let one = |number: usize| lists[number * 7 % lists.len()];
        self.timed("start", true, |daemon, number| {
            let body = json!({ "monitors": [OUTPUTS[0]] });
            daemon
                .client()
                .post(&format!("/playlists/{}/start", one(number)), &body)
        });
        let running = one(COMMANDS - 1);
        for action in ["next", "previous"] {
            self.timed(action, true, |daemon, _| {
                daemon
                    .client()
                    .post(&format!("/playlists/{running}/{action}"), &json!({}))
            });
        }
        self.timed(
            "edit: the interval of the running one",
            false,
            |daemon, number| {
                let body = json!({ "configuration": { "interval": 3600 + number } });
                daemon
                    .client()
                    .patch(&format!("/playlists/{running}"), &body)
            },
        );
        // All images, or all but one that is not shown.
        let shown = self
            .daemon
            .client()
            .get(&format!("/playlists/active/{}", OUTPUTS[0]))
            .ok();
        let shown = shown["current_image_id"].as_i64().unwrap();
        let others: Vec<i64> = images.iter().copied().filter(|id| *id != shown).collect();
        self.timed(
            "edit: an image more or less, running",
            false,
            |daemon, number| {
                let list = std::iter::once(&shown).chain(others.iter().skip(number % 2));
                let items: Vec<Value> = list.map(|id| json!({ "image_id": id })).collect();
                daemon.client().patch(
                    &format!("/playlists/{running}"),
                    &json!({ "images": items }),
                )
            },
        );
        self.timed(
            "edit: an image more or less, at rest",
            false,
            |daemon, number| {
                let list = images.iter().skip(number % 2);
                let items: Vec<Value> = list.map(|id| json!({ "image_id": id })).collect();
                let path = format!("/playlists/{}", one(number + COMMANDS));
                daemon.client().patch(&path, &json!({ "images": items }))
            },
        );
        self.timed(
            "edit: the list turned around, at rest",
            false,
            |daemon, number| {
                let mut items: Vec<Value> =
                    images.iter().map(|id| json!({ "image_id": id })).collect();
                items.reverse();
                let path = format!("/playlists/{}", one(number + 2 * COMMANDS));
                daemon.client().patch(&path, &json!({ "images": items }))
            },
        );
        self.timed("get: one", false, |daemon, number| {
            daemon.client().get(&format!("/playlists/{}", one(number)))
        });
        self.timed("get: those that run", false, |daemon, _| {
            daemon.client().get("/playlists/active")
        });
    }

    /// Times commands. `shows`: waits for the picture of each before the next command.
    fn timed(&mut self, name: &str, shows: bool, command: impl Fn(&TestDaemon, usize) -> Answer) {
        let mut times = Vec::new();
        let before = processor(self.daemon.pid());
        for number in 0..COMMANDS {
            let begun = Instant::now();
            let answer = command(&self.daemon, number);
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            assert_eq!(answer.status, 200, "{}", answer.text());
            if shows {
                self.events.wait_for("playlist_image_changed");
            }
        }
        let each = (processor(self.daemon.pid()) - before) / COMMANDS as f64;
        print!("{each:6.2} ms  ");
        row(name, times);
    }

    fn between_changes(&mut self, lists: &[i64]) {
        self.run(lists, 3600);
        let seconds = std::env::var("MURALD_IDLE_SECONDS")
            .ok()
            .and_then(|n| n.parse().ok());
        let seconds = seconds.unwrap_or(20);
        // Wait until backends and the disk have finished their work.
        let mut last = BTreeMap::new();
        wait_until("idle threads", || {
            std::thread::sleep(Duration::from_millis(500));
            let now = wakes(self.daemon.pid());
            std::mem::replace(&mut last, now.clone()) == now
        });
        std::thread::sleep(Duration::from_secs(seconds));
        let mut woken = wakes(self.daemon.pid());
        woken
            .iter_mut()
            .for_each(|(name, count)| *count -= last.get(name).unwrap_or(&0));
        woken.retain(|_, count| *count > 0);
        let name = format!("wake-ups of two that run, in {seconds} s");
        println!("{name:44}{:8}   {woken:?}", woken.values().sum::<u64>());
    }

    fn lateness(&mut self, lists: &[i64]) {
        self.run(lists, 1);
        let quiet = self.changes(|count| count == QUIET);
        quiet.rows("nothing beside it");
        let photographs = photographs(self.daemon.root());
        let mut import = self.daemon.events("processing_complete");
        let body = json!({ "paths": [photographs] });
        self.daemon.client().post("/images", &body).ok();
        let begun = Instant::now();
        let watcher = std::thread::spawn(move || drop(import.wait_for("processing_complete")));
        let beside = self.changes(|_| watcher.is_finished());
        watcher.join().unwrap();
        let took = begun.elapsed().as_secs_f64();
        println!("an import of {PHOTOGRAPHS} photographs of 4K took {took:.1} s");
        beside.rows("beside an import");
        self.daemon
            .client()
            .post("/playlists/active/stop", &json!({}))
            .ok();
    }

    /// Starts two playlists, one on each output.
    fn run(&mut self, lists: &[i64], interval: u32) {
        for (list, output) in lists.iter().zip(OUTPUTS) {
            let client = self.daemon.client();
            let body = json!({ "configuration": { "interval": interval } });
            client.patch(&format!("/playlists/{list}"), &body).ok();
            let body = json!({ "monitors": [output] });
            client.post(&format!("/playlists/{list}/start"), &body).ok();
        }
        for _ in OUTPUTS {
            self.events.wait_for("playlist_image_changed");
        }
    }

    /// Records the changes of one-second timers until `enough` is true.
    fn changes(&mut self, enough: impl Fn(usize) -> bool) -> Lateness {
        let mut lateness = Lateness::default();
        while !enough(lateness.begun.len()) {
            let event = self.events.wait_for("playlist_image_changed");
            assert_eq!(event.get("source"), None, "missed: {event}");
            let path = format!(
                "/playlists/active/{}",
                event["monitors"][0].as_str().unwrap()
            );
            let running = self.daemon.client().get(&path).ok();
            // Computed from the next change, whose time does not depend on how late this one is.
            let beat = at(&running["next_change_at"]) - Duration::from_secs(1);
            let after = |when: &Value| at(when).duration_since(beat).as_secs_f64() * 1e3;
            lateness.begun.push(after(&running["slot_started_at"]));
            lateness.up.push(after(&event["timestamp"]));
        }
        lateness
    }
}

/// Milliseconds after the due time.
#[derive(Default)]
struct Lateness {
    begun: Vec<f64>,
    up: Vec<f64>,
}

impl Lateness {
    fn rows(self, beside: &str) {
        row(&format!("change begun late by, {beside}"), self.begun);
        row(&format!("picture up after, {beside}"), self.up);
    }
}

fn at(time: &Value) -> Timestamp {
    time.as_str().unwrap().parse().unwrap()
}

/// Copies of one photograph that differ in a comment.
fn photographs(root: &Path) -> PathBuf {
    let directory = root.join("photographs");
    fs::create_dir(&directory).unwrap();
    let (pixels, color) = (photo::photo(3840, 2160, 1), image::ExtendedColorType::Rgb8);
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, 88)
        .encode(&pixels, 3840, 2160, color)
        .unwrap();
    for number in 0..PHOTOGRAPHS {
        let mut copy = jpeg.clone();
        let comment = [0xff, 0xfe, 0, 4, (number >> 8) as u8, number as u8];
        copy.splice(2..2, comment);
        fs::write(directory.join(format!("{number:03}.jpg")), copy).unwrap();
    }
    directory
}

/// Milliseconds of processor time of the threads that answer for playlists.
fn processor(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |path: PathBuf| -> f64 {
        let name = fs::read_to_string(path.join("comm")).unwrap();
        if !name.starts_with("http-") && name.trim() != "playlist" {
            return 0.0;
        }
        let text = fs::read_to_string(path.join("schedstat")).unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
    };
    tasks.map(|task| of(task.path())).sum()
}

/// The number of voluntary context switches of each thread of the daemon.
fn wakes(pid: u32) -> BTreeMap<String, u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |path: PathBuf| {
        let text = fs::read_to_string(path.join("status")).unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"))
            .unwrap();
        let count = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        (
            fs::read_to_string(path.join("comm"))
                .unwrap()
                .trim()
                .to_owned(),
            count,
        )
    };
    tasks.map(|task| of(task.path())).collect()
}
