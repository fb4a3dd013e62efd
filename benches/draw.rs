//! Measures a change that `builtin` draws, beside swaybg, swww and wpaperd: the time from the command to
//! the new pixels, processor time, memory when idle and during a fade, frames of the fade. Then its
//! memory with three outputs, and the time until its picture is on a restarted compositor.
//!
//! `cargo bench --bench draw` prints a table. It uses a 4K output of headless sway with software
//! rendering and two photographs of that size; the programs run one after another, each with its own
//! command. It needs sway and swaybg; swww and wpaperd are used if they are on PATH. `MURALD_CHANGES` is
//! the number of changes (20).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/desktop/mod.rs"]
mod desktop;
mod figures;
#[path = "../tests/desktop/frames.rs"]
mod frames;
#[path = "../tests/support/mod.rs"]
mod support;

use desktop::{Desktop, wait_until};
use frames::Watcher;
use support::TestDaemon;

const OUTPUT: &str = "HEADLESS-1";
const SIZE: (u32, u32) = (3840, 2160);
/// The colour of each picture at the watched spot.
const COLORS: [[u8; 3]; 2] = [[224, 32, 96], [32, 224, 96]];
/// The drawing process releases memory within this time after a change.
const OWN_REST: Duration = Duration::from_secs(5);
/// The number of times that the compositor is killed.
const RESTARTS: usize = 10;
/// The time for memory to be released after a change.
const REST: Duration = Duration::from_secs(8);

/// A program that draws, and how to have it show a picture.
struct Painter<'a> {
    name: &'static str,
    /// Processes that run between changes.
    stay: Vec<u32>,
    /// Shows the first or the second picture.
    show: Box<dyn FnMut(usize) + Send + 'a>,
    fades: bool,
}

impl<'a> Painter<'a> {
    fn new(
        name: &'static str,
        stay: Vec<u32>,
        fades: bool,
        show: impl FnMut(usize) + Send + 'a,
    ) -> Self {
        Self {
            name,
            stay,
            show: Box::new(show),
            fades,
        }
    }
}

struct Figures {
    /// Milliseconds from the command to the first frame that has any of the new picture.
    pixels: Vec<f64>,
    /// Milliseconds to the first frame that has the new picture only.
    whole: Vec<f64>,
    processor_ms: f64,
    rest_kib: u64,
    peak_kib: u64,
    frames_per_second: f64,
}

fn main() {
    let changes = std::env::var("MURALD_CHANGES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(20);
    let directory = tempfile::tempdir().unwrap();
    let pictures = [0, 1].map(|number| photograph(directory.path(), number));
    println!(
        "{:18}{:>10}{:>10}{:>10}{:>12}{:>12}{:>10}",
        "", "p50 ms", "p95 ms", "whole ms", "CPU ms", "rest MiB", "peak MiB"
    );
    for fades in [false, true] {
        println!("{}", if fades { "a fade of 0.6 s" } else { "at once" });
        builtin(&pictures, fades, changes);
        if !fades {
            swaybg(&pictures, changes);
        }
        swww(&pictures, fades, changes);
        wpaperd(directory.path(), &pictures, fades, changes);
    }
    three_at_rest(&pictures);
    compositor_again(&pictures);
    println!(
        "load {}",
        fs::read_to_string("/proc/loadavg")
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
    );
}

fn builtin(pictures: &[PathBuf; 2], fades: bool, changes: usize) {
    let desktop = desktop();
    let (mut daemon, ids) = drawing_on(&desktop, pictures, if fades { "fade" } else { "none" });
    let show = |which: usize| set(&daemon, ids[which]);
    show(0);
    let stay = vec![daemon.pid(), daemon.drawing()[0]];
    measure(
        &desktop,
        Painter::new("murald, builtin", stay, fades, show),
        changes,
    );
    clear(&mut daemon);
}

/// A daemon that draws with `builtin`, and the ids of the pictures.
fn drawing_on(desktop: &Desktop, pictures: &[PathBuf; 2], kind: &str) -> (TestDaemon, Vec<i64>) {
    let mut daemon = TestDaemon::on(desktop);
    daemon.configure(&format!(
        "[backend]\ntype = 'builtin'\n[backend.builtin]\ntransition_type = '{kind}'\ntransition_duration = 0.6\n"
    ));
    daemon.start();
    let ids = daemon.import(&[&pictures[0], &pictures[1]]);
    (daemon, ids)
}

fn set(daemon: &TestDaemon, id: i64) {
    let output = daemon
        .murald(&["set", &format!("id:{id}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn clear(daemon: &mut TestDaemon) {
    let cleared = daemon.murald(&["stop", "--clear"]).output().unwrap();
    assert!(cleared.status.success());
    daemon.wait();
}

fn three_at_rest(pictures: &[PathBuf; 2]) {
    let desktop = Desktop::wayland(&["3840x2160"; 3]);
    let (mut daemon, ids) = drawing_on(&desktop, pictures, "fade");
    ids.iter().for_each(|&id| set(&daemon, id));
    let watcher = Watcher::start(&desktop, OUTPUT);
    wait_until("the end of the fade", || is(watcher.latest(), COLORS[1]));
    watcher.finish();
    std::thread::sleep(OWN_REST);
    let resident = kib(daemon.drawing()[0], "VmRSS") as f64 / 1024.0;
    println!("the drawing process with three 4K outputs, idle: {resident:.1} MiB");
    clear(&mut daemon);
}

fn compositor_again(pictures: &[PathBuf; 2]) {
    let mut desktop = desktop();
    let (daemon, ids) = drawing_on(&desktop, pictures, "fade");
    set(&daemon, ids[0]);
    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        // murald delays the restart of a process that exits often within a minute; `wait_until` allows
        // for that.
        let watcher = Watcher::for_next(&desktop, OUTPUT);
        desktop.again();
        wait_until("the picture", || {
            watcher.frames() > 0 && is(watcher.latest(), COLORS[0])
        });
        let (since, frames) = watcher.finish_timed();
        let up = frames
            .iter()
            .find(|frame| is(frame.color, COLORS[0]))
            .unwrap()
            .at;
        times.push(ms(up - since));
    }
    figures::row("from a compositor's socket to the picture", times);
}

/// As users do it: kills the old process, then starts the new one.
fn swaybg(pictures: &[PathBuf; 2], changes: usize) {
    let desktop = desktop();
    let mut running: Option<Child> = None;
    let show = |which: usize| {
        if let Some(mut old) = running.take() {
            old.kill().unwrap();
            old.wait().unwrap();
        }
        let mut command = desktop.command("swaybg");
        command
            .args(["-m", "fill", "-i"])
            .arg(&pictures[which])
            .stderr(Stdio::null());
        running = Some(command.spawn().unwrap());
    };
    measure(
        &desktop,
        Painter::new("swaybg", Vec::new(), false, show),
        changes,
    );
    if let Some(mut last) = running {
        println!(
            "{:18}{:>54.1}",
            "  at rest",
            kib(last.id(), "VmRSS") as f64 / 1024.0
        );
        last.kill().unwrap();
        last.wait().unwrap();
    }
}

fn swww(pictures: &[PathBuf; 2], fades: bool, changes: usize) {
    if !is_installed("swww-daemon") {
        return println!("swww is not installed");
    }
    let desktop = desktop();
    let mut daemon = desktop
        .command("swww-daemon")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("swww-daemon", || {
        desktop
            .command("swww")
            .arg("query")
            .output()
            .unwrap()
            .status
            .success()
    });
    let show = |which: usize| {
        let mut command = desktop.command("swww");
        let words: &[&str] = if fades {
            &[
                "--transition-type",
                "fade",
                "--transition-duration",
                "0.6",
                "--transition-fps",
                "60",
            ]
        } else {
            &["--transition-type", "none"]
        };
        let status = command
            .arg("img")
            .args(words)
            .arg(&pictures[which])
            .status()
            .unwrap();
        assert!(status.success());
    };
    let stay = vec![daemon.id()];
    measure(&desktop, Painter::new("swww", stay, fades, show), changes);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

fn wpaperd(directory: &Path, pictures: &[PathBuf; 2], fades: bool, changes: usize) {
    if !is_installed("wpaperd") {
        return println!("wpaperd is not installed");
    }
    let desktop = desktop();
    let config = directory.join("wpaperd.toml");
    let shown = directory.join("shown");
    let time = if fades { 600 } else { 0 };
    fs::create_dir_all(&shown).unwrap();
    for picture in pictures {
        let link = shown.join(picture.file_name().unwrap());
        if !link.exists() {
            fs::hard_link(picture, link).unwrap();
        }
    }
    let text = format!(
        "[any]\npath = '{}'\nsorting = 'ascending'\ntransition-time = {time}\n",
        shown.display()
    );
    fs::write(&config, text).unwrap();
    let mut command = desktop.command("wpaperd");
    let mut daemon = command
        .arg("-c")
        .arg(&config)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let watcher = Watcher::start(&desktop, OUTPUT);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is(watcher.latest(), COLORS[0]) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let draws = watcher
        .finish()
        .last()
        .is_some_and(|&last| is(last, COLORS[0]));
    if draws {
        // wpaperd shows no picture by name: there are two, and the first is shown.
        let mut shown = 0;
        let show = |which: usize| {
            if which != shown {
                assert!(
                    desktop
                        .command("wpaperctl")
                        .arg("next")
                        .status()
                        .unwrap()
                        .success()
                );
            }
            shown = which;
        };
        let stay = vec![daemon.id()];
        measure(
            &desktop,
            Painter::new("wpaperd", stay, fades, show),
            changes,
        );
    } else {
        println!("wpaperd draws nothing on this desktop: it needs EGL");
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

fn desktop() -> Desktop {
    Desktop::wayland(&["3840x2160"])
}

/// Makes the changes one after another, each after the end of the one before, and prints a row.
fn measure(desktop: &Desktop, mut painter: Painter<'_>, changes: usize) {
    (painter.show)(0);
    let watcher = Watcher::start(desktop, OUTPUT);
    wait_until("the first picture", || is(watcher.latest(), COLORS[0]));
    std::thread::sleep(REST);
    let rest_kib = painter.stay.iter().map(|&pid| kib(pid, "VmRSS")).sum();
    for pid in &painter.stay {
        fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    }
    let fades = painter.fades;
    let (mut pixels, mut whole, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    let before = processor_ms(&painter.stay);
    for round in 1..=changes {
        let (old, new) = (COLORS[(round + 1) % 2], COLORS[round % 2]);
        let first = watcher.frames();
        let begun = Instant::now();
        let mut changed = None;
        std::thread::scope(|scope| {
            let told = scope.spawn(|| (painter.show)(round % 2));
            // Without a fade, a frame that has neither picture is a blank screen.
            let is_new = |seen| if fades { !is(seen, old) } else { is(seen, new) };
            wait_until("the new pixels", || is_new(watcher.latest()));
            changed = Some(begun.elapsed());
            wait_until("the new picture", || is(watcher.latest(), new));
            whole.push(ms(begun.elapsed()));
            told.join().unwrap();
        });
        let changed = ms(changed.unwrap());
        pixels.push(changed);
        let mut seen = watcher.since(first);
        seen.dedup();
        let fade = whole.last().unwrap() - changed;
        rates.push((seen.len() - 1) as f64 / (fade / 1e3).max(1e-3));
    }
    let figures = Figures {
        processor_ms: (processor_ms(&painter.stay) - before) / changes as f64,
        peak_kib: painter.stay.iter().map(|&pid| kib(pid, "VmHWM")).sum(),
        rest_kib,
        frames_per_second: sorted(rates)[changes / 2],
        pixels: sorted(pixels),
        whole: sorted(whole),
    };
    figures.print(painter.name);
    watcher.finish();
}

impl Figures {
    fn print(&self, name: &str) {
        let at = |values: &[f64], part: f64| values[((values.len() - 1) as f64 * part) as usize];
        print!(
            "{name:18}{:>10.1}{:>10.1}{:>10.1}{:>12.1}{:>12.1}{:>10.1}",
            at(&self.pixels, 0.5),
            at(&self.pixels, 0.95),
            at(&self.whole, 0.5),
            self.processor_ms,
            self.rest_kib as f64 / 1024.0,
            self.peak_kib as f64 / 1024.0,
        );
        if at(&self.whole, 0.5) - at(&self.pixels, 0.5) > 100.0 {
            println!("   {:.0} frames/s", self.frames_per_second)
        } else {
            println!()
        }
    }
}

/// Decoders differ slightly.
fn is(seen: [u8; 3], color: [u8; 3]) -> bool {
    seen.iter()
        .zip(color)
        .all(|(&seen, color)| seen.abs_diff(color) <= 4)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Processor time of these processes and of all children that have exited.
fn processor_ms(pids: &[u32]) -> f64 {
    let ticks = |path: String, fields: [usize; 2]| {
        let text = fs::read_to_string(path).unwrap();
        let rest: Vec<&str> = text
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        fields
            .iter()
            .map(|&field| rest[field - 3].parse::<f64>().unwrap())
            .sum::<f64>()
    };
    let ours = ticks("/proc/self/stat".into(), [16, 17]);
    let all: f64 = pids
        .iter()
        .map(|pid| ticks(format!("/proc/{pid}/stat"), [14, 15]))
        .sum();
    (all + ours) * 10.0
}

fn kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn is_installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// A picture of many shapes, with a plain spot for the watcher.
fn photograph(directory: &Path, number: usize) -> PathBuf {
    let path = directory.join(format!("{number}.jpg"));
    let shift = number as u32 * 40;
    let picture = image::RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| {
        if x < 200 && y < 200 {
            image::Rgb(COLORS[number])
        } else {
            let wave = ((x * x + y * 31) >> 9) as u8;
            image::Rgb([(x / 16 + shift) as u8, (y / 9) as u8, wave])
        }
    });
    picture.save(&path).unwrap();
    path
}
