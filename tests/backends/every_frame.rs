//! Tests every frame that the compositor sends during changes: each must show a picture.

use std::path::Path;

use murald::internals::config::BackendName;

use crate::desktop::{Desktop, wait_until};
use crate::frames::Watcher;
use crate::wall::{BLACK, BLUE, GREEN, RED, Wall, near};

/// Whether a frame is red, blue or a fade between them: it has no green, and its brightness is constant.
fn between([red, green, blue]: [u8; 3]) -> bool {
    green <= 3 && (250..=260).contains(&(u32::from(red) + u32::from(blue)))
}

#[test]
fn every_frame_of_two_hundred_changes_by_builtin_shows_a_picture() {
    let wall = Wall::new(Desktop::wayland(&["--pluggable", "160x90", "160x90"]), 2);
    let mut builtin = wall.backend(BackendName::Builtin);
    let mut show = |picture: &Path| {
        builtin
            .show(&wall.hang(&[("WL-1", picture)]), &wall.cancel)
            .unwrap();
    };
    let pictures = [(RED, "red.png"), (BLUE, "blue.png")];
    let pictures = pictures.map(|(color, name)| (color, wall.flat(name, color)));
    wall.set_json("builtin", "transition_duration", 0.06.into());
    show(&pictures[0].1);
    wall.pixels("WL-1").is_all(RED);
    let watcher = Watcher::start(&wall.desktop, "WL-1");
    let mut other = "WL-2".to_owned();
    // The number of frames at the beginning of each round.
    let mut begun = Vec::new();
    for round in 1..=200 {
        let (color, picture) = &pictures[round % 2];
        begun.push(watcher.frames());
        show(picture);
        match round {
            // The next change begins in the middle of this transition.
            _ if round % 4 == 1 => continue,
            20 | 100 => sway(&wall, "output WL-1 scale 2"),
            40 | 120 => sway(&wall, "output WL-1 scale 1"),
            60 => sway(&wall, "output WL-1 mode --custom 800x600"),
            80 | 140 => drop(wall.desktop.run("unplug", &[&other])),
            90 | 160 => other = wall.desktop.run("plug", &["160x90"]),
            180 => sway(&wall, "output WL-1 transform 180"),
            _ => {}
        }
        if round.is_multiple_of(10) {
            // A frame of the compositor's own belongs to this round, also on a busy machine.
            let before = watcher.frames();
            wait_until("frames after the change", || watcher.frames() >= before + 3);
        }
        wait_until("the end of the fade", || near(watcher.latest(), *color));
    }
    let frames = watcher.finish();
    let neither = frames
        .iter()
        .enumerate()
        .filter(|&(_, &frame)| !between(frame));
    let round = |at: usize| begun.partition_point(|&first| first <= at);
    let neither = neither.map(|(at, frame)| (round(at), at, *frame));
    let neither: Vec<_> = neither
        .filter(|&(round, _, frame)| !sway_drew(round, frame))
        .collect();
    assert!(
        neither.is_empty(),
        "of {} frames (round, number, colour): {neither:?}",
        frames.len()
    );
    let mixed = frames
        .iter()
        .filter(|&&frame| !near(frame, RED) && !near(frame, BLUE))
        .count();
    assert!(
        mixed > 0,
        "{mixed} frames of a fade in {} frames",
        frames.len()
    );
}

/// Sway 1.7 sometimes sends a frame without any surface when an output is connected, removed or changed.
/// It does so with swaybg, too, which draws nothing at that moment.
fn sway_drew(round: usize, frame: [u8; 3]) -> bool {
    const GROUND: [u8; 3] = [63, 63, 63];
    round.is_multiple_of(10) && [GROUND, BLACK].contains(&frame)
}

fn sway(wall: &Wall, command: &str) {
    wall.desktop.output("swaymsg", &["-q", command]);
}

#[test]
fn changes_by_swaybg_have_no_blank_frame() {
    let wall = Wall::new(Desktop::wayland(&["1920x1080"]), 1);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    // The pictures are large, so that loading them takes time.
    let size = ["-size", "3840x2160"];
    let paint = |name: &str, color: &str| wall.picture(name, &[&size[..], &[color]].concat());
    let pictures = [
        paint("a.jpg", "xc:red"),
        paint("b.jpg", "xc:blue"),
        paint("c.jpg", "xc:lime"),
    ];
    let hang = |picture: &Path| wall.hang(&[("HEADLESS-1", picture)]);
    swaybg.show(&hang(&pictures[0]), &wall.cancel).unwrap();
    let watcher = Watcher::start(&wall.desktop, "HEADLESS-1");
    for picture in pictures.iter().cycle().skip(1).take(8) {
        swaybg.show(&hang(picture), &wall.cancel).unwrap();
    }
    let frames = watcher.finish();
    let blank = frames
        .iter()
        .filter(|&&f| ![RED, GREEN, BLUE].iter().any(|&c| near(f, c)));
    assert_eq!(blank.count(), 0, "of {} frames", frames.len());
    let changes = frames
        .windows(2)
        .filter(|pair| !near(pair[0], pair[1]))
        .count();
    assert!(changes >= 3, "{changes} changes in {} frames", frames.len());
}
