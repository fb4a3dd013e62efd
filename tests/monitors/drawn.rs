//! Tests every frame of murald's own renderer while the daemon, the renderer or the compositor is
//! killed.

use std::time::{Duration, Instant};

use crate::desktop::{Desktop, wait_until};
use crate::frames::{Frame, Watcher};
use crate::scene::{BLUE, GREEN, RED, Rgb, near, set, three};
use crate::support::TestDaemon;

const OUTPUT: &str = "HEADLESS-1";
/// The duration of a fade, in milliseconds.
const FADE: u64 = 400;

fn drawing_on(desktop: &Desktop) -> TestDaemon {
    let mut daemon = TestDaemon::on(desktop);
    let seconds = FADE as f64 / 1e3;
    daemon.configure(&format!(
        "[backend]\ntype = 'builtin'\n[backend.builtin]\ntransition_duration = {seconds}\n"
    ));
    daemon.start();
    daemon
}

fn kill(desktop: &Desktop, pid: u32) -> Instant {
    let at = Instant::now();
    desktop.output("kill", &["-9", &pid.to_string()]);
    at
}

/// Whether a colour lies between two.
fn between(one: Rgb, other: Rgb, seen: Rgb) -> bool {
    let channels = || one.into_iter().zip(other).zip(seen);
    // Measured by the channel in which they differ the most.
    let gone = channels()
        .max_by_key(|((one, other), _)| one.abs_diff(*other))
        .map(|((one, other), seen)| {
            (f64::from(seen) - f64::from(one)) / (f64::from(other) - f64::from(one))
        });
    let gone = gone.unwrap().clamp(0.0, 1.0);
    channels().all(|((one, other), seen)| {
        let expected = f64::from(one) + gone * (f64::from(other) - f64::from(one));
        (f64::from(seen) - expected).abs() <= 5.0
    })
}

#[test]
fn next_daemon_adopts_the_renderer_without_a_changed_frame() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut daemon = drawing_on(&desktop);
    let images = three(&daemon);
    set(&daemon, images[2], OUTPUT).ok();
    let watcher = Watcher::start(&desktop, OUTPUT);
    wait_until("the first picture", || near(watcher.latest(), BLUE));
    let process = daemon.drawing();
    let colors = [RED, GREEN, BLUE];
    // The daemon is killed this long after its answer: at once, during the fade, and after it.
    for (round, millis) in [0, 10, FADE / 4, FADE / 2, FADE, 2 * FADE]
        .into_iter()
        .enumerate()
    {
        let (new, old) = (round % 3, (round + 2) % 3);
        let seen = watcher.frames();
        set(&daemon, images[new], OUTPUT).ok();
        std::thread::sleep(Duration::from_millis(millis));
        daemon.kill9();
        daemon.start();
        wait_until("the next daemon has taken it over", || {
            let why = daemon.client().get(&format!("/why?monitor={OUTPUT}")).ok();
            why[0]["text"]
                .as_str()
                .unwrap()
                .contains("restored at startup")
        });
        wait_until("the picture", || near(watcher.latest(), colors[new]));
        let frames = watcher.since(seen);
        let other = frames
            .iter()
            .find(|&&seen| !between(colors[old], colors[new], seen));
        assert_eq!(other, None, "killed after {millis} ms: {frames:?}");
        let up = frames
            .iter()
            .position(|&seen| near(seen, colors[new]))
            .unwrap();
        let left = frames[up..].iter().find(|&&seen| !near(seen, colors[new]));
        assert_eq!(left, None, "killed after {millis} ms: {frames:?}");
        assert_eq!(daemon.drawing(), process, "taken over, not replaced");
    }
}

#[test]
fn killed_renderer_is_restarted_at_once() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut daemon = drawing_on(&desktop);
    let images = three(&daemon);
    let colors = [RED, GREEN, BLUE];
    set(&daemon, images[2], OUTPUT).ok();
    let watcher = Watcher::start(&desktop, OUTPUT);
    wait_until("the first picture", || near(watcher.latest(), BLUE));
    let mut away = Vec::new();
    // The renderer is killed this long after the answer. The daemon is new in each round, so each exit
    // is its first one.
    for (round, millis) in [0, 10, FADE / 2, 2 * FADE].into_iter().enumerate() {
        let new = round % 3;
        set(&daemon, images[new], OUTPUT).ok();
        std::thread::sleep(Duration::from_millis(millis));
        let [process] = daemon.drawing()[..] else {
            panic!("not one process")
        };
        let seen = watcher.frames();
        let killed = kill(&desktop, process);
        wait_until("another process", || {
            ![&[][..], &[process]].contains(&&*daemon.drawing())
        });
        // Only frames after the kill count, as the picture before may be the same.
        wait_until("the picture", || {
            let is_back = |frame: &Frame| frame.at >= killed && near(frame.color, colors[new]);
            watcher.timed_since(seen).last().is_some_and(is_back)
        });
        let frames = watcher.timed_since(seen);
        let last = frames
            .iter()
            .rposition(|frame| !near(frame.color, colors[new]));
        let back = frames[last.map_or(0, |last| last + 1)].at;
        away.push(back.saturating_duration_since(killed));
        daemon.kill9();
        daemon.start();
    }
    eprintln!("killed with a daemon beside it, it was away for {away:?}");
}

#[test]
fn restarted_compositor_shows_no_blank_frame_after_the_first() {
    let mut desktop = Desktop::wayland(&["640x480"]);
    let daemon = drawing_on(&desktop);
    let [red, ..] = three(&daemon);
    set(&daemon, red, OUTPUT).ok();
    // More often than a process may exit within a minute.
    for _ in 0..5 {
        let watcher = Watcher::for_next(&desktop, OUTPUT);
        let mut events = daemon.events("wallpaper_changed");
        desktop.again();
        assert_eq!(events.wait_for("wallpaper_changed")["source"], "restore");
        wait_until("the picture", || {
            watcher.frames() > 0 && near(watcher.latest(), RED)
        });
        // The frames of another second.
        let seen = watcher.frames();
        wait_until("more frames", || watcher.frames() > seen + 60);
        let (since, frames) = watcher.finish_timed();
        let up = frames
            .iter()
            .position(|frame| near(frame.color, RED))
            .unwrap();
        eprintln!(
            "the picture is there {:?} after the compositor takes connections, in frame {up}",
            frames[up].at - since
        );
        let blank = frames[up..].iter().find(|frame| !near(frame.color, RED));
        assert!(blank.is_none(), "{blank:?} of {frames:?}");
    }
}
