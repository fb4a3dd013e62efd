//! Measures searches in large libraries, as a gallery makes them: every filter and sort order of `GET
//! /images`, first and late pages, on 8 connections to the daemon's socket.
//!
//! `cargo bench --bench library [-- WORD]`; with a word, only the lines that contain it. The daemon is
//! the real executable; its images are rows without files. Successive requests differ, so that no answer
//! can be reused. At the end tags of images are changed, one after another, beside the time that the
//! disk takes to flush as much. `MURALD_BENCH_SIZES` (10000,100000) are the sizes of the libraries,
//! `MURALD_BENCH_SECONDS` (1) is the length of one measurement; `MURALD_BENCH_KEPT` is a directory that
//! keeps the libraries for the next run, as a million images take a while.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark"
)]

#[allow(dead_code, reason = "shared with another")]
#[path = "http/load.rs"]
mod load;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use load::Figures;
use murald::internals::color::hue_group;
use murald::internals::store::edits::{self, ImageChange};
use murald::internals::store::images::{self, NewImage};
use murald::internals::store::{self, Store, folders};
use murald::internals::wire::Format;

const CONNECTIONS: usize = 8;
const FOLDERS: u64 = 200;
const WORDS: &[&str] = &[
    "mountain", "lake", "forest", "night", "sky", "city", "rain", "desert", "ocean", "winter",
    "autumn", "river", "valley", "street", "lights", "abstract", "neon", "fog", "meadow", "canyon",
];
const TAGS: u64 = 240;
const DATA: &str = ".local/share/murald";
/// The number of tags that are changed, and of pages that each change adds to the database's log.
const CHANGES: u32 = 500;
const PAGES_OF_CHANGE: usize = 2;
/// The number of common colours; every other palette has one of them.
const COMMON: u64 = 16;

/// The queries. `{}` differs from request to request; DEEP is the page after nine tenths of all.
const QUERIES: &[(&str, &str)] = &[
    ("imported_at, first", "page={}"),
    ("imported_at, deep", "page={DEEP}"),
    ("name, first", "sort_by=name&page={}"),
    ("name, deep", "sort_by=name&page={DEEP}"),
    ("name up, deep", "sort_by=name&sort_order=asc&page={DEEP}"),
    ("file_size, deep", "sort_by=file_size&page={DEEP}"),
    ("hue, first", "sort_by=hue&page={}"),
    ("hue, deep", "sort_by=hue&page={DEEP}"),
    ("media_type, first", "media_type=image&page={}"),
    ("media_type, deep", "media_type=image&page={DEEP}"),
    ("search, rare", "search=lake+{+1000}"),
    ("search, short", "search=lake+{}"),
    ("search, common", "search=lake&page={}"),
    ("search, two words", "search=lake+night&page={}"),
    ("search, nothing", "search=nothing{}"),
    ("tags, one", "tags=tag%20{}"),
    ("tags, two", "tags=tag%20{},tag%207"),
    ("folder", "folder_id={}"),
    ("root, deep", "folder_id=root&page={}"),
    ("hue_group", "hue_group=3&page={}"),
    ("hue_group by hue", "hue_group=3&sort_by=hue&page={}"),
    ("colors", "colors=%23003e1f&page={}"),
    ("colors_near", "colors_near=%23408020~{}.5"),
    ("colors_near, wide", "colors_near=%23808020~40&page={}"),
    (
        "colors_near, two",
        "colors_near=%23408020~20,%23c04060~{}.5",
    ),
    ("palette_similar_to", "palette_similar_to={}"),
    (
        "all together",
        "search=lake&tags=tag%20{}&colors_near=%23408020~40&sort_by=hue",
    ),
];

fn main() {
    let variable = |name: &str| std::env::var(name).ok();
    let length = variable("MURALD_BENCH_SECONDS")
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let length = Duration::from_secs_f64(length);
    let sizes = variable("MURALD_BENCH_SIZES").unwrap_or_else(|| "10000,100000".to_owned());
    let word = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with('-'))
        .unwrap_or_default();
    for size in sizes
        .split(',')
        .map(|text| text.trim().parse::<u64>().unwrap())
    {
        let daemon = Daemon::start(size);
        println!();
        load::body(&daemon.socket, &get("/images?search=lake"));
        let first_search = daemon.began.elapsed();
        daemon.settle();
        println!(
            "{size} images: first answer after {:.0} ms, first list after {:.0} ms, first search after {:.0} ms, \
             {:.0} MiB",
            daemon.first_answer.as_secs_f64() * 1e3,
            daemon.first_list.as_secs_f64() * 1e3,
            first_search.as_secs_f64() * 1e3,
            daemon.memory()
        );
        println!(
            "{:24} {:>10} {:>8} {:>8} {:>8}",
            "", "requests/s", "p50 ms", "p99 ms", "CPU µs"
        );
        for (what, query) in QUERIES.iter().filter(|(what, _)| what.contains(&word)) {
            let deep = format!("{{+{}}}", (size / 50 * 9 / 10).saturating_sub(200));
            let path = format!("/images?per_page=50&{}", query.replace("{DEEP}", &deep));
            let before = daemon.processor();
            let found = load::run(&daemon.socket, &get(&path), CONNECTIONS, length);
            let Figures {
                per_second,
                requests,
                p50,
                p99,
                ..
            } = found;
            let spent = (daemon.processor() - before) / requests * 1e6;
            let (p50, p99) = (p50 / 1e3, p99 / 1e3);
            println!("{what:24} {per_second:>10.0} {p50:>8.2} {p99:>8.2} {spent:>8.0}");
        }
        if "change of a tag".contains(&word) {
            change_tags(&daemon, size);
        }
        println!("after the load           {:>10.0} MiB", daemon.memory());
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Measures a single client that changes tags.
fn change_tags(daemon: &Daemon, size: u64) {
    let mut dice = Dice(size);
    let mut change = || {
        let (id, tag) = (dice.below(size) + 1, dice.below(TAGS));
        let body = format!("{{\"tags\":[\"tag {tag}\"]}}");
        let head = format!("PATCH /images/{id} HTTP/1.1\r\nHost: localhost");
        let length = body.len();
        load::body(
            &daemon.socket,
            &format!(
                "{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
        );
    };
    change();
    // After the first change of a day the daemon makes a backup of the database.
    daemon.settle();
    let before = daemon.processor();
    let (p50, p99) = times(change);
    let cpu = (daemon.processor() - before) / f64::from(CHANGES) * 1e6;
    let what = "change of a tag";
    println!(
        "{what:24} {:>10.0} {p50:>8.2} {p99:>8.2} {cpu:>8.0}",
        1e3 / p50
    );
    let mut file = std::fs::File::create(daemon.home.join("flushed")).unwrap();
    let (p50, p99) = times(|| {
        file.write_all(&[0; PAGES_OF_CHANGE << 12]).unwrap();
        file.sync_data().unwrap();
    });
    println!(
        "{:24} {:>10.0} {p50:>8.2} {p99:>8.2}",
        "  a flush of the disk",
        1e3 / p50
    );
}

/// The 50th and the 99th percentile of the time of `one`, in milliseconds.
fn times(mut one: impl FnMut()) -> (f64, f64) {
    let mut times: Vec<f64> = (0..CHANGES)
        .map(|_| {
            let began = Instant::now();
            one();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

struct Daemon {
    home: PathBuf,
    socket: PathBuf,
    first_answer: Duration,
    first_list: Duration,
    began: Instant,
    child: Child,
    _scratch: tempfile::TempDir,
}

impl Daemon {
    fn start(size: u64) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let home = match std::env::var_os("MURALD_BENCH_KEPT") {
            Some(kept) => PathBuf::from(kept).join(size.to_string()),
            None => scratch.path().join("home"),
        };
        if !home.join(DATA).join("db").exists() {
            fill(&home, size);
        }
        // The configuration of the last run names the socket of that run.
        std::fs::remove_dir_all(home.join(".config")).ok();
        let run = scratch.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let socket = run.join("murald.sock");
        let began = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_murald"))
            .arg("start")
            .env_clear()
            .env("HOME", &home)
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_RUNTIME_DIR", &run)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the daemon does not start"
            );
            std::thread::sleep(Duration::from_micros(200));
        }
        load::body(&socket, &get("/healthz"));
        let first_answer = began.elapsed();
        load::body(&socket, &get("/images"));
        let first_list = began.elapsed();
        Self {
            home,
            socket,
            first_answer,
            first_list,
            began,
            child,
            _scratch: scratch,
        }
    }

    /// Waits until the daemon has no work left, such as the check of all rows after its start.
    fn settle(&self) {
        let (began, mut before) = (Instant::now(), f64::NAN);
        while self.processor() != before && began.elapsed() < Duration::from_secs(120) {
            before = self.processor();
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Seconds of processor time so far.
    fn processor(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        // User and system time; the kernel counts hundredths of a second.
        fields[11..13]
            .iter()
            .map(|ticks| ticks.parse::<f64>().unwrap() / 100.0)
            .sum()
    }

    /// Resident memory in MiB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.split_whitespace()
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
            / 1024.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        }
        self.child.wait().ok();
    }
}

fn fill(home: &Path, size: u64) {
    let data = home.join(DATA);
    let store = Store::open(&data.join("db/murald.sqlite3")).unwrap();
    let pictures = data.join("images");
    let insert = |c: &rusqlite::Transaction<'_>| -> Result<(), folders::Refusal> {
        for number in 0..FOLDERS {
            folders::insert(c, &format!("folder {number}"), None)?;
        }
        for at in 0..size {
            let mut dice = Dice(at);
            let id = images::insert(c, &image(at, &mut dice, &pictures))?;
            let tags: Vec<_> = (0..dice.below(4))
                .map(|_| format!("tag {}", dice.below(TAGS)))
                .collect();
            let change = ImageChange {
                tags: Some(tags.into()),
                ..ImageChange::default()
            };
            edits::change(c, id, &change)?;
        }
        Ok(())
    };
    store.write(insert).unwrap();
    store
        .checkpoint()
        .map_err(|error: store::Error| error)
        .unwrap();
}

fn image(at: u64, dice: &mut Dice, pictures: &Path) -> NewImage {
    let mut word = || WORDS[dice.below(WORDS.len() as u64) as usize];
    let name = format!("{} {} {} {at}", word(), word(), word());
    let mut colors: Vec<[u8; 3]> = (0..dice.below(8) + 1)
        .map(|_| std::array::from_fn(|_| (dice.below(250)) as u8))
        .collect();
    if dice.below(2) == 0 {
        colors[0] = [0, 62, (dice.below(COMMON) * 31) as u8];
    }
    let mut checksum = [0; 32];
    checksum[..8].copy_from_slice(&at.to_le_bytes());
    NewImage {
        path: pictures.join(format!("{name}.jpg")),
        source_path: format!("/home/somebody/Pictures/Wallpapers/{name}.jpg").into(),
        name,
        format: if dice.below(10) == 0 {
            Format::Mp4
        } else {
            Format::Jpg
        },
        width: 3840,
        height: 2160,
        duration: 0.0,
        animated: false,
        audio_enabled: false,
        file_size: 500_000 + dice.below(3_000_000),
        checksum,
        hue_group: hue_group(&colors),
        colors,
        folder_id: (dice.below(2) == 0).then(|| dice.below(FOLDERS) as i64 + 1),
        in_place: false,
        web: None,
    }
}

/// A linear congruential generator; the library is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
