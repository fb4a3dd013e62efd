//! Tests the daemon's start in poor environments: without inotify, with pipes in place of files,
//! and with an open umask.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::desktop::wait_until;
use crate::support::{House, may_unshare};

/// A daemon started by a shell that has changed something before.
struct Shelled(Child);

impl Shelled {
    fn start(house: &House, preparation: &str) -> Self {
        let script = format!("{preparation}; exec {} start", env!("CARGO_BIN_EXE_murald"));
        Self::spawn(house, house.command("/bin/sh").args(["-c", &script]))
    }

    fn spawn(house: &House, command: &mut Command) -> Self {
        let errors = fs::File::create(house.root().join("stderr")).unwrap();
        let child = command.stderr(errors).stdout(Stdio::null()).spawn().unwrap();
        let started = Self(child);
        wait_until("the socket", || house.socket().exists());
        house.client().get("/healthz").ok();
        started
    }

    fn stop(mut self, house: &House) {
        house.client().post("/shutdown", &json!({})).ok();
        wait_until("the end", || self.0.try_wait().unwrap().is_some());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Shelled {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn stderr(house: &House) -> String {
    fs::read_to_string(house.root().join("stderr")).unwrap()
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn daemon_starts_without_inotify() {
    let apart = ["--user", "--map-root-user"];
    if !may_unshare("a start without inotify", &apart) {
        return;
    }
    let house = House::new();
    // The limit of a new user namespace is its own.
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances && exec {} start",
        env!("CARGO_BIN_EXE_murald")
    );
    let mut command = house.command("unshare");
    let daemon = Shelled::spawn(&house, command.args(apart).args(["/bin/sh", "-c", &script]));
    let warnings = || house.client().get("/config").ok()["warnings"].to_string();
    wait_until("it says so", || warnings().contains("edits apply on SIGHUP only"));
    daemon.stop(&house);
}

#[test]
fn time_zone_that_is_a_pipe_does_not_block() {
    let mut house = House::new();
    let zone = house.root().join("zone");
    fifo(&zone);
    house.env("TZ", &zone);
    house.start();
    let client = house.client();
    client.post("/playlists", &json!({ "name": "x" }));
    assert!(client.get("/playlists").ok()[0]["created_at"].as_str().unwrap().ends_with("+00:00"));
    assert_eq!(house.stop(), Some(0));
}

#[test]
fn log_that_is_a_pipe_does_not_block() {
    let house = House::new();
    let log = house.root().join("pipe");
    fifo(&log);
    house.configure(&format!("[daemon]\nlog_file = {log:?}\n"));
    let daemon = Shelled::start(&house, ":");
    daemon.stop(&house);
    assert!(stderr(&house).contains("cannot write the log"), "{}", stderr(&house));
}

#[test]
fn files_are_private_whatever_the_umask() {
    let house = House::new();
    let daemon = Shelled::start(&house, "umask 000");
    let path = house.root().join("a.png");
    image::RgbImage::from_pixel(800, 600, image::Rgb([1, 2, 3])).save(&path).unwrap();
    let id = house.import(&[&path])[0];
    assert_eq!(house.client().get(&format!("/images/{id}/thumbnail?resolution=720p")).status, 200);
    let mut seen = 0;
    let mut directories: Vec<PathBuf> =
        ["config", "data", "cache"].iter().map(|name| house.root().join(name)).collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let (path, found) = entry.map(|e| (e.path(), e.metadata().unwrap())).unwrap();
            let expected = if found.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(found.mode() & 0o777, expected, "{}", path.display());
            seen += 1;
            directories.extend(found.is_dir().then_some(path));
        }
    }
    assert!(seen > 10, "only {seen}");
    assert_eq!(fs::metadata(house.socket()).unwrap().mode() & 0o777, 0o600);
    daemon.stop(&house);
}
