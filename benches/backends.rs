//! Measures `POST /wallpaper/set` until swaybg is started, and until the picture is shown and the answer
//! comes.
//!
//! `cargo bench --bench backends` prints a table; it needs sway and swaybg. A script in swaybg's place
//! writes to a pipe and then executes swaybg, so the times include the start of a shell. The same script
//! started by the bench itself (`posix_spawn`) is measured in turn, for comparison. `MURALD_SETS` is the
//! number of requests (300), `MURALD_BENCH_IMAGES` (0) the number of further images in the library: rows
//! without files.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use murald::internals::store::images;
use murald::internals::store::{self, Store};
use serde_json::json;

#[path = "../tests/desktop/mod.rs"]
mod desktop;

#[path = "http/row.rs"]
mod row;

#[path = "../tests/support/mod.rs"]
mod support;

use desktop::Desktop;
use support::TestDaemon;

fn main() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let sets = number("MURALD_SETS").unwrap_or(300);
    let desktop = Desktop::wayland(&["1920x1080", "1280x720"]);
    let mut daemon = TestDaemon::on(&desktop);
    let bell = daemon.root().join("bell");
    assert!(
        Command::new("mkfifo")
            .arg(&bell)
            .status()
            .unwrap()
            .success()
    );
    let swaybg = desktop.output("sh", &["-c", "command -v swaybg"]);
    let script = format!(
        "#!/bin/sh\nprintf x >'{}'\nexec {swaybg} \"$@\"\n",
        bell.display()
    );
    daemon.stub("swaybg", &script);
    daemon.configure("[backend]\ntype = 'swaybg'\n");
    fill(&daemon, number("MURALD_BENCH_IMAGES").unwrap_or(0));
    daemon.start();
    let paths = ["one.jpg", "two.jpg"].map(|name| photograph(&daemon, name));
    let ids = daemon.import(&[&paths[0], &paths[1]]);
    // Open at both ends, so that neither the script nor the bench waits for the other to open it.
    let mut ring = File::options().read(true).write(true).open(&bell).unwrap();

    let stub = daemon.root().join("bin/swaybg");
    let (mut starts, mut answers, mut spawns) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..sets {
        let monitor = if round % 3 == 0 { "*" } else { "HEADLESS-1" };
        let body = json!({ "image_id": ids[round % 2], "monitor": monitor }).to_string();
        let begun = Instant::now();
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        write!(
            stream,
            "POST /wallpaper/set HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        heard(&mut ring);
        starts.push(begun.elapsed().as_secs_f64() * 1e3);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answers.push(begun.elapsed().as_secs_f64() * 1e3);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        spawns.push(spawn(&stub, &mut ring));
    }
    print("POST /wallpaper/set to swaybg's start", &mut starts);
    print("  the same script, started from here", &mut spawns);
    print("POST /wallpaper/set to its answer", &mut answers);
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    println!("{:44}{}", "load", load.split(' ').next().unwrap());
    assert_eq!(daemon.stop(), Some(0));
}

fn fill(daemon: &TestDaemon, number: usize) {
    let store = Store::open(&daemon.database()).unwrap();
    let insert = |transaction: &rusqlite::Transaction<'_>| {
        (0..number).try_for_each(|at| {
            images::insert(transaction, &row::row(at, &daemon.images())).map(drop)
        })
    };
    store.write::<_, store::Error>(insert).unwrap();
}

/// A picture of 1080p that differs for each name.
fn photograph(daemon: &TestDaemon, name: &str) -> std::path::PathBuf {
    let path = daemon.root().join(name);
    let shift = u32::from(name.as_bytes()[0]);
    let picture = image::RgbImage::from_fn(1920, 1080, |x, y| {
        image::Rgb([(x / 16 + shift) as u8, (y / 9) as u8, ((x ^ y) / 32) as u8])
    });
    picture.save(&path).unwrap();
    path
}

fn heard(ring: &mut File) {
    ring.read_exact(&mut [0]).unwrap();
}

fn spawn(stub: &Path, ring: &mut File) -> f64 {
    let begun = Instant::now();
    let mut child = Command::new(stub)
        .arg("--version")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    heard(ring);
    let took = begun.elapsed().as_secs_f64() * 1e3;
    child.wait().unwrap();
    took
}

fn print(what: &str, values: &mut [f64]) {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part) as usize];
    println!(
        "{what:44}p50 {:6.1} ms   p95 {:6.1} ms   p99 {:6.1} ms",
        at(0.5),
        at(0.95),
        at(0.99)
    );
}
