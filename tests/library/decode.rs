//! The child processes that decode, seen from outside: if one hangs, fails or is killed, only one file
//! is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::support::dead_disk::DeadDisk;
use crate::support::{TestDaemon, left_out};

/// Pids of a daemon's decoding processes.
fn processes(daemon: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        words.split(|&byte| byte == 0).nth(1) == Some(b"decode")
            && status
                .lines()
                .any(|line| line == format!("PPid:\t{daemon}"))
    };
    pids.filter(is_one).collect()
}

/// A picture that takes a while to decode; different for each number.
fn large(directory: &Path, number: u8) -> PathBuf {
    let path = directory.join(format!("{number:02}.jpg"));
    let pixel = |x: u32, y: u32| image::Rgb([(x / 7 + y) as u8, number, (x * y / 99) as u8]);
    image::RgbImage::from_fn(1500, 1000, pixel)
        .save(&path)
        .unwrap();
    path
}

fn import(daemon: &TestDaemon, paths: &[&Path]) -> Value {
    daemon
        .client()
        .post("/images", &json!({ "paths": paths }))
        .ok()
}

fn names(daemon: &TestDaemon) -> Vec<String> {
    // The newest image comes first.
    let page = daemon.client().get("/images?per_page=200").ok();
    let rows = page["data"].as_array().unwrap();
    rows.iter()
        .rev()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A value of `/proc/PID/status`, in KiB.
fn memory(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn dead_disk_fails_its_file_and_the_batch_continues() {
    let mut daemon = TestDaemon::new();
    daemon.env("MURALD_DECODER_SILENCE", "6000");
    daemon.start();
    let (before, dying) = (daemon.root().join("before"), daemon.root().join("dying"));
    [&before, &dying]
        .into_iter()
        .for_each(|path| fs::create_dir(path).unwrap());
    (0..12).for_each(|number| drop(large(&before, number)));
    let lost = large(&dying, 90);
    let after = large(daemon.root(), 91);
    let mut events = daemon.events("image_processed,image_error,processing_complete");
    let batch = import(&daemon, &[&before, &lost, &after]);
    // All files were found before the disk dies; this one is read after that.
    let Some(dead) = DeadDisk::mount(&dying) else {
        return left_out("a source on a dead disk", "this user may not mount");
    };
    let error = events.wait_for("image_error");
    assert_eq!(error["path"], lost.to_str().unwrap());
    assert_eq!(
        error["error"],
        format!("the disk of {} does not answer", lost.display())
    );
    let end = events.wait_for("processing_complete");
    assert_eq!(
        (&end["batch_id"], &end["failed"]),
        (&batch["batch_id"], &json!(1))
    );
    let expected: Vec<_> = (0..12)
        .chain([91])
        .map(|number| format!("{number:02}"))
        .collect();
    assert_eq!(
        names(&daemon),
        expected,
        "in the order in which they were named"
    );
    // The same while the daemon stops.
    drop(dead);
    fs::remove_dir_all(&before).unwrap();
    fs::create_dir(&before).unwrap();
    (20..32).for_each(|number| drop(large(&before, number)));
    import(&daemon, &[&before, &lost]);
    let Some(_dead) = DeadDisk::mount(&dying) else {
        panic!("it was mounted before")
    };
    wait_until("the files before it", || names(&daemon).len() >= 24);
    let begun = Instant::now();
    daemon.ends_well();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn killed_decoder_fails_at_most_its_file() {
    let daemon = TestDaemon::started();
    let directory = daemon.root().join("source");
    fs::create_dir(&directory).unwrap();
    (0..24).for_each(|number| drop(large(&directory, number)));
    let mut events = daemon.events("image_processed,image_error,processing_complete");
    import(&daemon, &[&directory]);
    let (mut failed, mut landed, mut killed) = (0, 0, 0);
    loop {
        for pid in processes(daemon.pid()) {
            let kill = Command::new("kill")
                .args(["-9", &pid.to_string()])
                .output()
                .unwrap();
            killed += usize::from(kill.status.success());
        }
        let Some((kind, event)) = events.try_next() else {
            continue;
        };
        match kind.as_str() {
            "image_error" => {
                failed += 1;
                assert_eq!(
                    event["error"],
                    "the process that was decoding it was killed"
                );
            }
            "image_processed" => landed += 1,
            "processing_complete" => break,
            _ => {}
        }
    }
    assert!(
        killed > 0 && failed + landed == 24,
        "{killed} killed, {failed} failed, {landed}"
    );
    assert_eq!(names(&daemon).len(), landed);
    assert_eq!(
        fs::read_dir(daemon.images()).unwrap().count(),
        landed,
        "there is a partial file"
    );
    daemon.import(&[&directory]);
    assert_eq!(names(&daemon).len(), 24);
}

#[test]
fn first_decoder_of_an_installation_is_kept() {
    let daemon = TestDaemon::started();
    let mut events = daemon.events("processing_complete");
    import(&daemon, &[&large(daemon.root(), 1)]);
    let mut first = Vec::new();
    wait_until("a process that decodes", || {
        first = processes(daemon.pid());
        !first.is_empty()
    });
    events.wait_for("processing_complete");
    let kept = processes(daemon.pid());
    assert!(
        first.iter().all(|pid| kept.contains(pid)),
        "{first:?}, then {kept:?}"
    );
}

#[test]
fn bombs_and_large_pictures_cost_the_daemon_little_memory() {
    let daemon = TestDaemon::started();
    daemon.import(&[&large(daemon.root(), 1)]);
    let before = memory(daemon.pid(), "VmHWM:");
    let huge = daemon.root().join("huge.png");
    image::RgbaImage::from_pixel(5000, 4000, image::Rgba([9, 8, 7, 255]))
        .save(&huge)
        .unwrap();
    daemon.import(&[&huge]);
    // A header that claims 65,535 rows and columns.
    let bomb = daemon.root().join("bomb.png");
    let mut bytes = fs::read(&huge).unwrap();
    bytes[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    let sum = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    fs::write(&bomb, bytes).unwrap();
    let mut events = daemon.events("image_error");
    import(&daemon, &[&bomb]);
    let error = events.wait_for("image_error")["error"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(error.contains("65535"), "{error}");
    let after = memory(daemon.pid(), "VmHWM:");
    assert!(
        after < before + (8 << 10),
        "{before} KiB before, {after} KiB after"
    );
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| {
        if sum & 1 == 1 {
            0xedb8_8320 ^ (sum >> 1)
        } else {
            sum >> 1
        }
    };
    !bytes.iter().fold(!0_u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| step(sum))
    })
}

#[test]
fn decoders_exit_with_the_daemon() {
    let mut daemon = TestDaemon::started();
    let directory = daemon.root().join("source");
    fs::create_dir(&directory).unwrap();
    (0..12).for_each(|number| drop(large(&directory, number)));
    import(&daemon, &[&directory]);
    let pid = daemon.pid();
    let mut all = Vec::new();
    wait_until("a process that decodes", || {
        all = processes(pid);
        !all.is_empty()
    });
    wait_until("the limits of the process", || {
        all = processes(pid);
        let limits = format!("/proc/{}/limits", all.first().copied().unwrap_or_default());
        let limits = fs::read_to_string(limits).unwrap_or_default();
        let limit = |name: &str| {
            limits
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or("")
        };
        limit("Max address space").contains("1610612736")
            && limit("Max open files").contains(" 64 ")
    });
    daemon.kill9();
    wait_until("the exit of the decoders", || {
        let is_there = |pid: &u32| Path::new(&format!("/proc/{pid}/root")).read_link().is_ok();
        !all.iter().any(is_there)
    });
}
