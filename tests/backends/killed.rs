//! Kills the renderer at many instants during and after a change: its picture must return.

use std::path::Path;
use std::time::{Duration, Instant};

use murald::internals::backends::Backend;
use murald::internals::config::BackendName;
use murald::internals::process::Identity;

use crate::desktop::{Desktop, wait_until};
use crate::frames::{Frame, Watcher};
use crate::support::PATIENCE;
use crate::wall::{BLUE, RED, Wall, near};

/// The instants after a request, in milliseconds: while it is sent, decoded, painted, faded and idle.
const INSTANTS: [u64; 16] = [0, 1, 2, 3, 5, 8, 12, 17, 25, 35, 50, 75, 110, 160, 300, 700];
/// How long the picture may be missing beyond the time of a start.
const BACK_WITHIN: Duration = Duration::from_millis(300);

#[test]
fn picture_returns_after_a_kill_at_any_instant() {
    let wall = Wall::new(Desktop::wayland(&["640x480"]), 1);
    wall.set_json("builtin", "transition_duration", 0.4.into());
    let mut builtin = wall.backend(BackendName::Builtin);
    let pictures = [(RED, "red.png"), (BLUE, "blue.png")];
    let pictures = pictures.map(|(color, name)| (color, wall.flat(name, color)));
    let show = |builtin: &mut Box<dyn Backend>, picture: &Path| {
        builtin
            .show(&wall.hang(&[("HEADLESS-1", picture)]), &wall.cancel)
            .unwrap();
    };
    // The duration of a start on this machine, before and after, as its other load may change.
    let mut starts = Vec::new();
    let mut measure = |builtin: &mut Box<dyn Backend>| {
        for _ in 0..4 {
            builtin.clear().unwrap();
            let begun = Instant::now();
            show(builtin, &pictures[1].1);
            starts.push(begun.elapsed());
        }
    };
    measure(&mut builtin);
    let watcher = Watcher::start(&wall.desktop, "HEADLESS-1");
    let mut away = Vec::new();
    for (round, millis) in INSTANTS.into_iter().enumerate() {
        let (color, picture) = &pictures[round % 2];
        let [process] = wall.processes("builtin")[..] else {
            panic!("not one process")
        };
        while wall.told.try_recv().is_ok() {}
        let seen = watcher.frames();
        let killed = std::thread::scope(|scope| {
            let killer = scope.spawn(|| kill_after(Duration::from_millis(millis), process));
            show(&mut builtin, picture);
            killer.join().unwrap()
        });
        // The worker does this when it hears of an exit.
        wall.told.recv_timeout(PATIENCE).unwrap();
        if !builtin.is_whole() {
            show(&mut builtin, picture);
        }
        assert!(builtin.is_whole() && wall.processes("builtin") != [process]);
        // Only frames after the kill count, as the picture before may be the same.
        wait_until("its picture", || {
            let is_back = |frame: &Frame| frame.at >= killed && near(frame.color, *color);
            watcher.timed_since(seen).last().is_some_and(is_back)
        });
        let frames = watcher.timed_since(seen);
        let last = frames.iter().rposition(|frame| !near(frame.color, *color));
        let back = frames[last.map_or(0, |last| last + 1)].at;
        away.push((back.saturating_duration_since(killed), millis));
    }
    away.sort();
    measure(&mut builtin);
    eprintln!("killed after so many ms it was away for {away:?}; a start takes {starts:?}");
    let (quick, _) = away[away.len() / 4];
    assert!(
        quick <= BACK_WITHIN + *starts.iter().max().unwrap(),
        "{away:?}, a start {starts:?}"
    );
}

/// Kills the process after a pause; returns the time of the kill.
fn kill_after(pause: Duration, process: Identity) -> Instant {
    std::thread::sleep(pause);
    let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
    let at = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    at
}
