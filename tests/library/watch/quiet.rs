//! The watch uses no processor time while nothing changes, even if files are read.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::Walls;
use crate::desktop::wait_until;

/// Voluntary context switches of each thread of the daemon, by name and number.
fn sleeps(walls: &Walls) -> BTreeMap<String, u64> {
    let tasks = format!("/proc/{}/task", walls.daemon.pid());
    let mut sleeps = BTreeMap::new();
    for task in fs::read_dir(tasks).unwrap().flatten() {
        let Ok(status) = fs::read_to_string(task.path().join("status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].trim().to_owned()
        };
        let name = format!("{} {}", field("Name:"), field("Pid:"));
        sleeps.insert(name, field("voluntary_ctxt_switches:").parse().unwrap());
    }
    sleeps
}

fn watching(walls: &Walls) -> BTreeMap<String, u64> {
    let is = |name: &str| name.starts_with("watch") || name.starts_with("kernel");
    sleeps(walls)
        .into_iter()
        .filter(|(name, _)| is(name))
        .collect()
}

#[test]
fn watch_sleeps_while_files_are_only_read() {
    let walls = Walls::with(&[("a.png", 1), ("sea/b.png", 2), ("sea/deep/c.png", 3)]);
    // The old name of a renamed file is waited for, for ten seconds.
    walls.rename("a.png", "z.png");
    walls.wait_for(&[("z.png", 1), ("sea/b.png", 2), ("sea/deep/c.png", 3)]);
    std::thread::sleep(Duration::from_secs(12));
    wait_until("no message about the rename", || {
        walls.state()["message"].is_null()
    });
    // Work of a moment ago may still be going on.
    wait_until("four seconds of reads in which no thread wakes up", || {
        let before = watching(&walls);
        assert!(
            before.keys().any(|name| name.starts_with("watch-1 ")),
            "{before:?}"
        );
        for _ in 0..100 {
            for name in ["z.png", "sea/b.png", "sea/deep/c.png"] {
                fs::read(walls.at(name)).unwrap();
            }
            fs::read_dir(walls.at("sea")).unwrap().count();
        }
        // Long enough for any timer of ours to fire.
        std::thread::sleep(Duration::from_secs(4));
        watching(&walls) == before
    });
}
