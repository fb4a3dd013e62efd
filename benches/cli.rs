//! Measures each command with 10,000 pictures in the library, beside `mpc` and `swaymsg`.
//!
//! `cargo bench --bench cli` prints a table: the median and the 95th percentile of the whole process,
//! from its start to its exit, of `MURALD_BENCH_RUNS` runs each (200). All rows of the table are run in
//! turn, so that other work on the machine affects them alike. The last column is the command's 95th
//! percentile divided by that of `mpc` (or `swaymsg`). `mpc` needs `mpd`, and `swaymsg` needs sway
//! (`eval "$(tests/desktop/wayland-up)"`); a program that is missing is reported and skipped.
//! `MURALD_BENCH_PICTURES` (10,000; at least 100) makes a quick try possible.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)]

#[path = "figures/lines.rs"]
mod lines;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lines::LINES;

/// The aim for a command, in milliseconds.
const GOAL: f64 = 5.0;

struct Scratch {
    directory: tempfile::TempDir,
    daemon: Option<Child>,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self {
            directory,
            daemon: None,
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, program: &str) -> Command {
        let root = self.path();
        let mut command = Command::new(program);
        command
            .env("HOME", root)
            .env("XDG_CONFIG_HOME", root.join("config"));
        command
            .env("XDG_DATA_HOME", root.join("data"))
            .env("XDG_CACHE_HOME", root.join("cache"));
        command
            .env("XDG_RUNTIME_DIR", root)
            .env("MURALD_AUTOSTART", "0");
        command
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn murald(&self, line: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_murald"));
        command.args(line.split(' '));
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            self.murald("stop").status().ok();
            daemon.wait().ok();
        }
    }
}

/// A number from the environment, or the default.
fn number(name: &str, usual: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(usual)
}

fn main() {
    let mut scratch = Scratch::new();
    scratch.daemon = Some(scratch.murald("start").spawn().unwrap());
    until("the daemon answers", || {
        scratch.murald("status").status().unwrap().success()
    });
    let pictures = scratch.path().join("pictures");
    let count = number("MURALD_BENCH_PICTURES", 10_000);
    make(&pictures, count as u32);
    let begun = Instant::now();
    let mut import = scratch.murald("import");
    assert!(import.arg(&pictures).status().unwrap().success());
    println!(
        "{count} pictures imported in {:.1} s\n",
        begun.elapsed().as_secs_f64()
    );
    let mut rows: Vec<(String, Command)> = LINES
        .iter()
        .map(|line| (format!("murald {line}"), scratch.murald(line)))
        .collect();
    let mpd = mpd(&scratch);
    match mpd {
        Some(_) => {
            let mut mpc = scratch.command("mpc");
            mpc.env("MPD_HOST", scratch.path().join("mpd.sock"))
                .arg("status");
            rows.push(("mpc status".to_owned(), mpc));
        }
        None => println!("skipped: mpc: mpd or mpc is not installed"),
    }
    if std::env::var_os("SWAYSOCK").is_some() && installed("swaymsg") {
        let mut swaymsg = Command::new("swaymsg");
        swaymsg
            .args(["-t", "get_outputs"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        rows.push(("swaymsg -t get_outputs".to_owned(), swaymsg));
    } else {
        println!("skipped: swaymsg: sway is not running");
    }
    measure(rows);
    if let Some(mut mpd) = mpd {
        mpd.kill().ok();
        mpd.wait().ok();
    }
}

fn measure(mut rows: Vec<(String, Command)>) {
    let runs = number("MURALD_BENCH_RUNS", 200);
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(runs); rows.len()];
    for _ in 0..runs {
        for ((name, command), times) in rows.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            let status = command.status().unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            assert!(status.success(), "{name}");
        }
    }
    times
        .iter_mut()
        .for_each(|times| times.sort_by(f64::total_cmp));
    let at = |times: &[f64], part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
    let beside = |program: &str| {
        let place = rows
            .iter()
            .position(|(name, _)| name.starts_with(program))?;
        Some(at(&times[place], 0.95))
    };
    let other = beside("mpc").or_else(|| beside("swaymsg"));
    println!("{:52}{:>10}{:>10}{:>8}", "", "median", "p95", "ratio");
    for ((name, _), times) in rows.iter().zip(&times) {
        let (median, late) = (at(times, 0.5), at(times, 0.95));
        let ratio = other
            .map(|other| format!("{:8.2}", late / other))
            .unwrap_or_default();
        let mark = if name.starts_with("murald") && late > GOAL {
            "  above the goal"
        } else {
            ""
        };
        println!("{name:52}{median:7.2} ms{late:7.2} ms{ratio}{mark}");
    }
}

/// Different pictures of eight by eight pixels: only their number matters.
fn make(directory: &Path, count: u32) {
    fs::create_dir(directory).unwrap();
    for number in 0..count {
        let color = [number as u8, (number >> 8) as u8, (number * 7) as u8];
        let picture = image::RgbImage::from_fn(8, 8, |x, y| {
            let bit = number >> (x + y) & 1;
            image::Rgb(color.map(|value| value ^ (bit as u8 * 64)))
        });
        picture
            .save(directory.join(format!("p{number}.png")))
            .unwrap();
    }
}

/// Starts mpd with nothing to play, on its own socket; `None` if mpd or mpc is missing.
fn mpd(scratch: &Scratch) -> Option<Child> {
    if !installed("mpd") || !installed("mpc") {
        return None;
    }
    let socket = scratch.path().join("mpd.sock");
    let file = scratch.path().join("mpd.conf");
    let mut config = fs::File::create(&file).unwrap();
    writeln!(config, "bind_to_address \"{}\"", socket.display()).unwrap();
    writeln!(
        config,
        "audio_output {{\n type \"null\"\n name \"none\"\n}}"
    )
    .unwrap();
    let child = scratch
        .command("mpd")
        .arg("--no-daemon")
        .arg(&file)
        .spawn()
        .unwrap();
    until("mpd listens", || socket.exists());
    Some(child)
}

fn installed(program: &str) -> bool {
    let mut ask = Command::new("sh");
    ask.args(["-c", "command -v \"$0\"", program])
        .stdout(Stdio::null());
    ask.status().unwrap().success()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
