//! Tests that threads and memory may run out: requests that need them are refused, a
//! quiet client is served, and acknowledged changes are kept.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::plain;
use crate::desktop::wait_until;
use crate::support::bystander::Bystander;
use crate::support::{TestDaemon, left_out};

/// A control group for the test, removed when it is dropped.
struct Group(PathBuf);

impl Group {
    /// Returns `None` if this user may not create one.
    fn with(pid: u32) -> Option<Self> {
        // Version 2 of control groups, then version 1.
        ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"]
            .iter()
            .find_map(|above| {
                let path = Path::new(above).join(format!("murald-test-{pid}"));
                fs::create_dir(&path).ok()?;
                let group = Self(path);
                group.0.join("pids.max").exists().then_some(())?;
                fs::write(group.0.join("cgroup.procs"), pid.to_string()).ok()?;
                Some(group)
            })
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file))
            .unwrap()
            .trim()
            .to_owned()
    }

    fn write(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes in the group return to the parent.
        let above = self.0.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.0.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            fs::write(&above, pid).ok();
        }
        fs::remove_dir(&self.0).ok();
    }
}

#[test]
fn daemon_keeps_working_if_no_thread_can_be_started() {
    let mut daemon = TestDaemon::started();
    let id = daemon.import(&[&plain(&daemon, "red.png", [200, 30, 30])])[0];
    let client = daemon.client();
    assert_eq!(client.get(&format!("/images/{id}/thumbnail")).status, 200);
    // Dropped, and thus without a limit again, before the daemon is stopped.
    let Some(group) = Group::with(daemon.pid()) else {
        return left_out(
            "the end of threads",
            "this user may not make a control group",
        );
    };
    let crowd = |count: usize| -> Vec<UnixStream> {
        (0..count)
            .map(|_| UnixStream::connect(daemon.socket()).unwrap())
            .collect()
    };
    // Counted by name, as other threads may end in between. A thread may be gone before its name is
    // read.
    let name = |task: DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    let connected = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
        tasks
            .flatten()
            .map(name)
            .filter(|name| name.starts_with("http-"))
            .count()
    };
    let few = crowd(6);
    wait_until("threads", || connected() >= 6);
    group.write("pids.max", &group.read("pids.current"));
    let refused = || {
        group
            .read("pids.events")
            .rsplit(' ')
            .next()
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };
    wait_until("a thread that cannot be started", || {
        // More connections than threads; clients without a thread get an error.
        drop(crowd(20));
        refused() > 0
    });
    drop(few);
    wait_until("those that went", || client.is_served("/healthz"));
    let bystander = Bystander::beside(&daemon, Some(id));
    let green = plain(&daemon, "green.png", [30, 180, 60]);
    client.post("/images", &json!({ "paths": [green] })).ok();
    let total = || client.get("/images").ok()["pagination"]["total_items"].clone();
    wait_until("the import", || total() == 2);
    assert_eq!(client.get(&format!("/images/{id}/raw")).status, 200);
    bystander.end("the end of threads");
    group.write("pids.max", "max");
    drop(group);
    daemon.ends_well();
}

#[test]
fn acknowledged_changes_survive_lack_of_memory() {
    let mut daemon = TestDaemon::started();
    let kept = daemon.import(&[&plain(&daemon, "red.png", [200, 30, 30])])[0];
    let big = daemon.root().join("big");
    fs::create_dir(&big).unwrap();
    let mut state = 1_u32;
    for number in 0..4 {
        // Noise, which is as large in memory as on the disk.
        let picture = image::RgbImage::from_fn(2500, 1600, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [_, b, c, d] = state.to_le_bytes();
            image::Rgb([b, c, d])
        });
        picture.save(big.join(format!("{number}.bmp"))).unwrap();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .unwrap();
    let kibibytes: u64 = line.trim().split(' ').next().unwrap().parse().unwrap();
    let limit = format!("--as={}", (kibibytes << 10) + (6 << 20));
    let pid = daemon.pid().to_string();
    let limited = daemon
        .command("prlimit")
        .args(["--pid", &pid, &limit])
        .status()
        .unwrap();
    assert!(limited.success());
    let mut told: BTreeSet<i64> = BTreeSet::from([kept]);
    let mut events = daemon.events("image_processed,processing_complete");
    daemon
        .client()
        .post("/images", &json!({ "paths": [big] }))
        .ok();
    // The daemon may report errors or exit, as long as nothing is lost.
    while let Some((kind, data)) = events.try_next() {
        if kind == "processing_complete" {
            break;
        }
        told.insert(data["image"]["id"].as_i64().unwrap());
    }
    drop(events);
    daemon.kill9();
    daemon.start();
    let listed = || daemon.client().get("/images?per_page=200").ok()["data"].clone();
    let ids = |all: &Value| -> BTreeSet<i64> {
        all.as_array()
            .unwrap()
            .iter()
            .map(|image| image["id"].as_i64().unwrap())
            .collect()
    };
    assert!(ids(&listed()).is_superset(&told), "{told:?}");
    // Images that were imported in part are removed; all others have their files.
    wait_until("rows and files that agree", || {
        let all = listed();
        let files = fs::read_dir(daemon.images()).unwrap().count();
        all.as_array().unwrap().len() == files
    });
    for id in ids(&listed()) {
        assert_eq!(
            daemon.client().get(&format!("/images/{id}/raw")).status,
            200
        );
    }
    daemon.ends_well();
}
