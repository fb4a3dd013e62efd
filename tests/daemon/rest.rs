//! Tests that neither the daemon nor its drawing process wakes up while idle, and how many inotify
//! instances the daemon has.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use super::faults::plain;
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// Returns how often the threads of these processes have gone to sleep.
fn sleeps(pids: &[u32]) -> u64 {
    let of = |task: PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|line| line.trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    let tasks = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    pids.iter()
        .flat_map(tasks)
        .map(|task| of(task.path()))
        .sum()
}

/// Waits until the work of the start is done and no thread wakes up for five seconds.
#[track_caller]
fn rests(pids: &[u32]) {
    wait_until("five seconds in which nobody wakes up", || {
        let before = sleeps(pids);
        std::thread::sleep(Duration::from_secs(5));
        sleeps(pids) == before
    });
}

/// Starts a playlist that changes every hour, and waits for its first picture.
fn start_playlist(daemon: &TestDaemon, ids: [i64; 2]) {
    let hour = json!({ "type": "timer", "interval": 3600 });
    let items = ids.map(|id| json!({ "image_id": id }));
    let body = json!({ "name": "slow", "configuration": hour, "images": items });
    let list = daemon.client().post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    let mut events = daemon.events("");
    let start = json!({ "monitors": ["HEADLESS-1"] });
    daemon
        .client()
        .post(&format!("/playlists/{list}/start"), &start)
        .ok();
    events.wait_for("wallpaper_changed");
}

#[test]
fn daemon_sleeps_when_idle() {
    let daemon = TestDaemon::started();
    daemon.client().get("/healthz").ok();
    // The daemon searches for a compositor a few times, and then relies on inotify.
    rests(&[daemon.pid()]);
}

#[test]
fn daemon_and_drawing_process_sleep_while_a_wallpaper_is_shown() {
    let desktop = Desktop::wayland(&["320x240"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"builtin\"\n");
    daemon.start();
    let ids = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| daemon.import(&[&plain(&daemon, name, color)])[0]);
    start_playlist(&daemon, ids);
    let drawing = daemon.drawing();
    assert_eq!(drawing.len(), 1);
    rests(&[&[daemon.pid()], &*drawing].concat());
    assert_eq!(daemon.drawing(), drawing);
}

/// Returns the number of inotify instances of a process; a user has 128.
fn instances(pid: u32) -> usize {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let targets = open.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    targets
        .filter(|target| target == Path::new("anon_inode:inotify"))
        .count()
}

#[test]
fn daemon_has_one_inotify_instance_for_all_that_it_watches() {
    let desktop = Desktop::wayland(&["320x240"]);
    let mut daemon = TestDaemon::on(&desktop);
    let pictures = daemon.root().join("pictures");
    fs::create_dir(&pictures).unwrap();
    daemon.configure(&format!("[library]\nwatch = [{pictures:?}]\n"));
    // With TZ, the file of the time zone would not be watched.
    let mut command = daemon.murald(&["start"]);
    command.env_remove("TZ");
    daemon.start_by(command);
    let ids = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| daemon.import(&[&plain(&daemon, name, color)])[0]);
    start_playlist(&daemon, ids);
    assert_eq!(instances(daemon.pid()), 1, "while a backend runs");
    drop(desktop);
    wait_until("the search for a compositor", || {
        let log = daemon.log();
        // The follower of workspaces may say so, too, and later.
        let lost = log.find("lost the connection to the compositor");
        lost.is_some_and(|at| log[at..].contains("waiting for one"))
    });
    assert_eq!(instances(daemon.pid()), 1, "while a compositor is sought");
}

#[test]
fn daemon_does_not_wake_up_for_each_line_of_a_log() {
    let daemon = TestDaemon::started();
    rests(&[daemon.pid()]);
    let runtime = daemon.socket().parent().unwrap().join("murald");
    let logs = fs::read_dir(runtime).unwrap().next().unwrap().unwrap();
    let mut log = fs::File::create(logs.path().join("loud.log")).unwrap();
    let (begun, before) = (Instant::now(), sleeps(&[daemon.pid()]));
    while begun.elapsed() < Duration::from_secs(3) {
        log.write_all(&[b'x'; 4000]).unwrap();
    }
    // Ten checks a second, with four sleeps each.
    let woken = sleeps(&[daemon.pid()]).saturating_sub(before);
    let most = begun.elapsed().as_millis() / 25 + 20;
    assert!(u128::from(woken) < most, "{woken} of {most}");
}
