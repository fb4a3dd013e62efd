//! Tests the daemon's start in poor environments: without inotify, in another PID namespace, with
//! pipes in place of files, a limit on their sizes, and an open umask.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::desktop::wait_until;
use crate::support::{TestDaemon, may_unshare};

/// A daemon started by a shell that has changed something before.
struct Shelled(Child);

impl Shelled {
    fn start(daemon: &TestDaemon, preparation: &str) -> Self {
        let script = format!("{preparation}; exec {} start", env!("CARGO_BIN_EXE_murald"));
        Self::spawn(daemon, daemon.command("/bin/sh").args(["-c", &script]))
    }

    fn spawn(daemon: &TestDaemon, command: &mut Command) -> Self {
        let errors = fs::File::create(daemon.root().join("stderr")).unwrap();
        let child = command
            .stderr(errors)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self(child);
        wait_until("the socket", || daemon.socket().exists());
        daemon.client().get("/healthz").ok();
        started
    }

    fn stop(mut self, daemon: &TestDaemon) {
        daemon.client().post("/shutdown", &json!({})).ok();
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

fn stderr(daemon: &TestDaemon) -> String {
    fs::read_to_string(daemon.root().join("stderr")).unwrap()
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
    let daemon = TestDaemon::new();
    let pictures = daemon.root().join("pictures");
    fs::create_dir(&pictures).unwrap();
    daemon.configure(&format!("[library]\nwatch = [{pictures:?}]\n"));
    // The limit of a new user namespace is its own.
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances && exec {} start",
        env!("CARGO_BIN_EXE_murald")
    );
    let mut command = daemon.command("unshare");
    let shelled = Shelled::spawn(
        &daemon,
        command.args(apart).args(["/bin/sh", "-c", &script]),
    );
    let warnings = || daemon.client().get("/info").ok()["warnings"].to_string();
    wait_until("both warnings", || {
        let warnings = warnings();
        let command = warnings.matches("`sudo sysctl fs.inotify.max_user_instances=512`");
        command.count() == 2 && warnings.contains("edits apply only on SIGHUP")
    });
    shelled.stop(&daemon);
}

#[test]
fn clients_of_other_pid_namespaces_are_served() {
    let apart = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
    ];
    if !may_unshare("a client in another PID namespace", &apart) {
        return;
    }
    let daemon = TestDaemon::new();
    // The process group of the shell's children is that of a process outside, whose number is 0 here.
    let script = "$0 start & until $0 status >$1; do sleep 0.1; done; echo served >>$1; wait";
    let mut command = daemon.command("unshare");
    let (program, said) = (env!("CARGO_BIN_EXE_murald"), daemon.root().join("said"));
    command.args(apart).args(["/bin/sh", "-c", script, program]);
    let shelled = Shelled::spawn(&daemon, command.arg(&said));
    wait_until("an answer inside", || {
        fs::read_to_string(&said).is_ok_and(|said| said.ends_with("served\n"))
    });
    // This process is not visible in the namespace of the daemon.
    for _ in 0..3 {
        daemon.client().get("/info").ok();
    }
    shelled.stop(&daemon);
}

#[test]
fn limit_on_file_sizes_does_not_end_the_daemon() {
    let mut daemon = TestDaemon::new();
    fs::create_dir_all(daemon.root().join("data/murald")).unwrap();
    let log = daemon.root().join("data/murald/daemon.log");
    fs::write(&log, vec![b'\n'; 3 << 20]).unwrap();
    // In blocks of 512 bytes. The log is longer already.
    daemon.start_after("ulimit -f 4096");
    let picture = daemon.root().join("large.bmp");
    image::RgbImage::new(1000, 1000).save(&picture).unwrap();
    let mut events = daemon.events("image_error,processing_complete");
    let body = json!({ "paths": [picture] });
    daemon.client().post("/images", &body).ok();
    let error = events.wait_for("image_error")["error"].to_string();
    assert!(error.contains("File too large"), "{error}");
    assert_eq!(events.wait_for("processing_complete")["failed"], 1);
    daemon.client().get("/images").ok();
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn time_zone_that_is_a_pipe_does_not_block() {
    let mut daemon = TestDaemon::new();
    let zone = daemon.root().join("zone");
    fifo(&zone);
    daemon.env("TZ", &zone);
    daemon.start();
    let client = daemon.client();
    client.post("/playlists", &json!({ "name": "x" }));
    assert!(
        client.get("/playlists").ok()[0]["created_at"]
            .as_str()
            .unwrap()
            .ends_with("+00:00")
    );
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn log_that_is_a_pipe_does_not_block() {
    let daemon = TestDaemon::new();
    let log = daemon.root().join("pipe");
    fifo(&log);
    daemon.configure(&format!("[daemon]\nlog_file = {log:?}\n"));
    let shelled = Shelled::start(&daemon, ":");
    shelled.stop(&daemon);
    assert!(
        stderr(&daemon).contains("cannot write the log"),
        "{}",
        stderr(&daemon)
    );
}

#[test]
fn files_are_private_whatever_the_umask() {
    let daemon = TestDaemon::new();
    let shelled = Shelled::start(&daemon, "umask 000");
    let path = daemon.root().join("a.png");
    image::RgbImage::from_pixel(800, 600, image::Rgb([1, 2, 3]))
        .save(&path)
        .unwrap();
    let id = daemon.import(&[&path])[0];
    assert_eq!(
        daemon
            .client()
            .get(&format!("/images/{id}/thumbnail?resolution=720p"))
            .status,
        200
    );
    let mut seen = 0;
    let mut directories: Vec<PathBuf> = ["config", "data", "cache"]
        .iter()
        .map(|name| daemon.root().join(name))
        .collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            // A new backup of the database gets its name just now.
            let Ok(found) = fs::symlink_metadata(&path) else {
                continue;
            };
            let expected = if found.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(found.mode() & 0o777, expected, "{}", path.display());
            seen += 1;
            directories.extend(found.is_dir().then_some(path));
        }
    }
    assert!(seen > 10, "only {seen}");
    assert_eq!(fs::metadata(daemon.socket()).unwrap().mode() & 0o777, 0o600);
    shelled.stop(&daemon);
}
