//! Measures the daemon's process: start to first answer, memory and wake-ups when idle, size of the
//! executable.
//!
//! `cargo bench --bench process` prints a table. Comparisons are made in the same run: the start with
//! that of `true`, the memory with that of an idle shell. `MURALD_IDLE_SECONDS` is the time of the idle
//! measurement (60).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STARTS: usize = 30;

fn main() {
    let scratch = tempfile::tempdir().unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let murald = env!("CARGO_BIN_EXE_murald");

    // The first start creates directories and the database, so it is reported separately.
    let first = start_to_answer(murald, scratch.path());
    let mut starts: Vec<f64> = (0..STARTS)
        .map(|_| start_to_answer(murald, scratch.path()))
        .collect();
    let mut trues: Vec<f64> = (0..STARTS)
        .map(|_| {
            let begun = Instant::now();
            assert!(Command::new("true").status().unwrap().success());
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let (median, slow) = (at(&mut starts, 0.5), at(&mut starts, 0.95));
    println!(
        "{:44}{first:10.1} ms",
        "start to first answer, empty directories"
    );
    println!(
        "{:44}{median:10.1} ms   p95 {slow:.1} ms",
        "start to first answer, again"
    );
    println!(
        "{:44}{:10.1} x",
        "  against starting `true`",
        median / at(&mut trues, 0.5)
    );

    let mut daemon = started(murald, scratch.path());
    answer(scratch.path());
    let mut shell = Command::new("sh")
        .args(["-c", "read line"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // The daemon looks for a compositor a few times, then waits for the kernel's events.
    std::thread::sleep(Duration::from_secs(5));
    let resident = status(daemon.id(), "VmRSS");
    println!(
        "{:44}{:10.1} MiB",
        "resident when idle",
        resident as f64 / 1024.0
    );
    let ratio = resident as f64 / status(shell.id(), "VmRSS") as f64;
    println!("{:44}{ratio:10.1} x", "  against an idle shell");
    println!("{:44}{:10}", "threads", status(daemon.id(), "Threads"));
    let seconds = std::env::var("MURALD_IDLE_SECONDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(60);
    let before = wakes(daemon.id());
    std::thread::sleep(Duration::from_secs(seconds));
    let woken = woken(&before, &wakes(daemon.id()));
    println!(
        "{:44}{woken:10}",
        format!("wake-ups in {seconds} s when idle")
    );
    end(&mut daemon);
    shell.kill().unwrap();
    shell.wait().unwrap();

    let size = fs::metadata(murald).unwrap().len();
    println!(
        "{:44}{:10.1} MiB",
        "executable",
        size as f64 / (1 << 20) as f64
    );
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--no-dedupe",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(tree.stdout).unwrap();
    let mut crates: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(" (").next())
        .collect();
    crates.sort_unstable();
    crates.dedup();
    println!("{:44}{:10}", "crates, murald among them", crates.len());
}

/// Milliseconds from the start of the process to an answer with status 200.
fn start_to_answer(murald: &str, scratch: &Path) -> f64 {
    let begun = Instant::now();
    let mut daemon = started(murald, scratch);
    answer(scratch);
    let took = begun.elapsed().as_secs_f64() * 1e3;
    end(&mut daemon);
    took
}

fn started(murald: &str, scratch: &Path) -> Child {
    Command::new(murald)
        .arg("start")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", scratch)
        .env("XDG_RUNTIME_DIR", scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Repeats a request until it is answered.
fn answer(scratch: &Path) {
    let socket = scratch.join("murald.sock");
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Ok(mut stream) = UnixStream::connect(&socket) {
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200"), "{text}");
            return;
        }
        assert!(Instant::now() < deadline, "no answer");
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn end(daemon: &mut Child) {
    Command::new("kill")
        .arg(daemon.id().to_string())
        .status()
        .unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
}

/// A number in `/proc/PID/status`.
fn status(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The number of voluntary context switches of each thread.
fn wakes(pid: u32) -> BTreeMap<String, u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    // A thread may exit in the meantime.
    let of = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("status")).ok()?;
        let line = text
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        let count = line.split_whitespace().nth(1)?.parse().ok()?;
        Some((task.file_name().into_string().ok()?, count))
    };
    tasks.filter_map(of).collect()
}

/// The wake-ups of the threads in `before`; one that has exited was woken once.
fn woken(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> u64 {
    let since = |(thread, count): (&String, &u64)| after.get(thread).map_or(1, |now| now - count);
    before.iter().map(since).sum()
}

fn at(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}
