//! Makes a day's changes in fast motion: the renderer's memory, descriptors and mappings must be the
//! same afterwards. `MURALD_CHANGES=10000` makes as many changes as a day has at one in nine seconds.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use murald::internals::config::BackendName;

use crate::desktop::{Desktop, wait_for, wait_until};
use crate::wall::{BLUE, RED, Wall};

/// How much more memory may be resident, as the reserve of the allocator varies.
const WAVERS_KIB: u64 = 2048;

/// The most memory when idle on Wayland, for any outputs. Excludes the program itself, which is many
/// times as large before it is optimised: `benches/draw.rs` includes it, on 4K outputs.
const AT_REST_KIB: u64 = 8 << 10;

/// The resources of a process.
#[derive(Debug)]
struct Holdings {
    /// Its own memory and that of frames; resident pages of the program's file vary.
    resident_kib: u64,
    descriptors: usize,
    /// Frames that it has mapped.
    mapped: usize,
    /// The frames that the compositor has mapped.
    mapped_there: usize,
}

impl Holdings {
    fn read(pid: i32, compositor: &str) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kib = |name: &str| -> u64 {
            let value = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            value.trim().strip_suffix(" kB").unwrap().parse().unwrap()
        };
        Self {
            resident_kib: kib("RssAnon:") + kib("RssShmem:"),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            mapped: frames_of(&format!("/proc/{pid}/maps")),
            mapped_there: frames_of(&format!("/proc/{compositor}/maps")),
        }
    }

    /// Whether these are no more than before.
    fn is_within(&self, before: &Self) -> bool {
        self.resident_kib <= before.resident_kib + WAVERS_KIB
            && self.descriptors <= before.descriptors
            && self.mapped <= before.mapped
            && self.mapped_there <= before.mapped_there
    }
}

fn frames_of(maps: &str) -> usize {
    let maps = fs::read_to_string(maps).unwrap_or_default();
    maps.lines()
        .filter(|line| line.contains("memfd:murald"))
        .count()
}

#[test]
fn day_of_changes_leaks_nothing() {
    let changes = std::env::var("MURALD_CHANGES")
        .ok()
        .and_then(|text| text.parse().ok());
    let changes: usize = changes.unwrap_or(500);
    let wall = Wall::new(Desktop::wayland(&["160x90", "120x90"]), 2);
    let compositor = wall.desktop.var("DESKTOP_PID").unwrap();
    let mut builtin = wall.backend(BackendName::Builtin);
    let pictures = pictures(&wall);
    let mut number = 0;
    let mut change = |count: usize| {
        for _ in 0..count {
            // Each fade is interrupted by the change after it.
            builtin.use_transition(Some(if number % 2 == 0 { "fade" } else { "none" }));
            let [one, other] = [0, 1].map(|more| &*pictures[(number + more) % pictures.len()]);
            let placements = wall.hang(&[("HEADLESS-1", one), ("HEADLESS-2", other)]);
            builtin.show(&placements, &wall.cancel).unwrap();
            number += 1;
        }
    };
    // The number is even, so the last change is no fade.
    change(40);
    let pid = wall.processes("builtin")[0].pid;
    let now = || Holdings::read(pid, compositor);
    wait_until("the first changes are over", || now().mapped == 0);
    let before = now();
    let begun = Instant::now();
    change(changes.next_multiple_of(2));
    let took = begun.elapsed();
    let after = wait_for(&format!("what it had before, {before:?}"), || {
        let after = now();
        if after.is_within(&before) {
            Ok(after)
        } else {
            Err(after)
        }
    });
    eprintln!("{changes} changes in {took:.1?}: {before:?}, then {after:?}");
    assert_eq!(wall.processes("builtin")[0].pid, pid);
}

/// Pictures of several formats and sizes, so that decoders have something to leak.
fn pictures(wall: &Wall) -> Vec<PathBuf> {
    let noise = |name, size| wall.picture(name, &["-size", size, "plasma:", "-depth", "8"]);
    vec![
        wall.flat("red.png", RED),
        noise("large.jpg", "200x150"),
        noise("wide.png", "225x50"),
        wall.flat("blue.gif", BLUE),
        noise("small.webp", "80x50"),
    ]
}

#[test]
fn three_idle_monitors_take_little_memory() {
    let wall = Wall::new(Desktop::wayland(&["1280x720", "1280x720", "1280x720"]), 3);
    let mut builtin = wall.backend(BackendName::Builtin);
    let pictures = ["xc:red", "xc:lime", "xc:blue"].map(|color| {
        wall.picture(
            &format!("{}.jpg", &color[3..]),
            &["-size", "1280x720", color],
        )
    });
    let outputs = ["HEADLESS-1", "HEADLESS-2", "HEADLESS-3"];
    // Two pictures one after the other, so that there is a fade as well.
    for first in 0..2 {
        let of = |at: usize| (outputs[at], &*pictures[(first + at) % 3]);
        builtin
            .show(&wall.hang(&[of(0), of(1), of(2)]), &wall.cancel)
            .unwrap();
    }
    let pid = wall.processes("builtin")[0].pid;
    let resident = || Holdings::read(pid, wall.desktop.var("DESKTOP_PID").unwrap()).resident_kib;
    wait_until("the end of the fade", || resident() < AT_REST_KIB);
    eprintln!("at rest with three outputs: {} KiB", resident());
}
