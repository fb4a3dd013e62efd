//! Measures dynamic playlists of large libraries: the time to choose the next picture, and whether
//! memory grows.
//!
//! `cargo bench --bench dynamic` runs the daemon on headless sway (tests/desktop/install) with rows whose
//! files are links to a few pictures. For each order it prints the processor time of the thread
//! `playlist` from `next` to its answer: reading the index, choosing, and storing the position. Aims:
//! less than 5 ms, and the same memory after the last step as after the first tenth.
//! `MURALD_BENCH_SIZES` (10000,100000) are the sizes of the libraries, `MURALD_BENCH_STEPS` (1000) the
//! steps.
#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "../tests/desktop/mod.rs"]
mod desktop;
mod figures;
#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::time::Instant;

use desktop::Desktop;
use figures::row;
use murald::internals::store::images::{self, NewImage};
use murald::internals::store::{self, Store};
use murald::internals::wire::Format;
use serde_json::json;
use support::TestDaemon;

/// The number of rows with links to the same file, as file systems limit it.
const LINKS: u64 = 10_000;

fn main() {
    let said = |name, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let sizes = said("MURALD_BENCH_SIZES", "10000,100000");
    let steps = said("MURALD_BENCH_STEPS", "1000").parse().unwrap();
    for size in sizes.split(',').map(|size| size.parse().unwrap()) {
        let desktop = Desktop::wayland(&["1280x720"]);
        let mut daemon = TestDaemon::on(&desktop);
        fill(&daemon, size);
        daemon.start();
        for order in ["ordered", "random"] {
            run(&daemon, order, (size, steps));
        }
    }
}

fn run(daemon: &TestDaemon, order: &str, (size, steps): (u64, usize)) {
    let client = daemon.client();
    let configuration = json!({ "type": "manual", "order": order });
    let body = json!({
        "name": order, "configuration": configuration, "source": { "media_type": "image" },
    });
    let id = client.post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    client
        .post(&format!("/playlists/{id}/start"), &json!({}))
        .ok();
    let running = client.get("/playlists/active").ok();
    assert_eq!(running[0]["total_images"], size, "{running}");
    let (mut chosen, mut answered, mut early) = (Vec::new(), Vec::new(), 0.0);
    for step in 0..steps {
        let (before, begun) = (processor(daemon.pid()), Instant::now());
        client
            .post(&format!("/playlists/{id}/next"), &json!({}))
            .ok();
        answered.push(begun.elapsed().as_secs_f64() * 1e3);
        chosen.push(processor(daemon.pid()) - before);
        if step == steps / 10 {
            early = memory(daemon.pid());
        }
    }
    row(&format!("{size} images, {order}: chosen"), chosen);
    row(&format!("{size} images, {order}: to be seen"), answered);
    let late = memory(daemon.pid());
    println!("{size} images, {order}: {early:.1} MiB after a tenth, {late:.1} MiB at the end");
    client.post("/playlists/active/stop", &json!({})).ok();
}

/// Milliseconds of processor time of the thread `playlist`.
fn processor(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let is_it = |path: &Path| fs::read_to_string(path.join("comm")).unwrap().trim() == "playlist";
    let path = tasks
        .map(|task| task.path())
        .find(|path| is_it(path))
        .unwrap();
    let text = fs::read_to_string(path.join("schedstat")).unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// Resident memory in MiB.
fn memory(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
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

fn fill(daemon: &TestDaemon, size: u64) {
    let directory = daemon.images();
    fs::create_dir_all(&directory).unwrap();
    let insert = |c: &rusqlite::Transaction<'_>| -> Result<(), store::Error> {
        let mut picture = directory.clone();
        for at in 0..size {
            let path = directory.join(format!("picture {at:06}.png"));
            if at.is_multiple_of(LINKS) {
                let color = [(at / LINKS) as u8 * 20, 99, 40];
                image::RgbImage::from_pixel(32, 18, image::Rgb(color))
                    .save(&path)
                    .unwrap();
                picture.clone_from(&path);
            } else {
                fs::hard_link(&picture, &path).unwrap();
            }
            images::insert(c, &row_of(at, &path))?;
        }
        Ok(())
    };
    let store = Store::open(&daemon.database()).unwrap();
    store.write(insert).unwrap();
    store.checkpoint().unwrap();
}

fn row_of(at: u64, path: &Path) -> NewImage {
    let mut checksum = [0; 32];
    checksum[..8].copy_from_slice(&at.to_le_bytes());
    NewImage {
        name: format!("picture {at:06}"),
        path: path.to_owned(),
        source_path: path.to_owned(),
        format: Format::Png,
        width: 32,
        height: 18,
        duration: 0.0,
        animated: false,
        audio_enabled: false,
        file_size: 100,
        checksum,
        colors: vec![[40, 99, 40]],
        hue_group: 4,
        folder_id: None,
        in_place: false,
        web: None,
    }
}
