//! Tests the systemd units under a separate user manager: readiness, the socket, a stop that leaves the
//! wallpaper, and a crash.
//!
//! systemd runs a user manager only if a directory in /run shows that it runs the system, so `unshare`
//! gives the manager its own /run. The units are in a directory of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::desktop::{Desktop, wait_until};
use crate::support::{TestDaemon, end_of, left_out, may_unshare};

const UNITS: [&str; 2] = ["murald.service", "murald.socket"];

/// A user manager with our units, in the test daemon's directories.
struct Manager<'a> {
    daemon: &'a TestDaemon,
    child: Child,
}

fn contrib(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("contrib")
        .join(path)
}

/// Installs the units for the executable under test.
fn install(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    for unit in UNITS {
        let text = fs::read_to_string(contrib("systemd").join(unit)).unwrap();
        let text = text.replace("/usr/bin/murald", env!("CARGO_BIN_EXE_murald"));
        fs::write(directory.join(unit), text).unwrap();
    }
}

/// Arguments of `unshare` that give the manager its own /run.
const APART: [&str; 3] = ["--mount", "--propagation", "private"];

/// Whether a manager can have its own control group, which needs root, and its own /run.
fn may_manage(test: &str) -> bool {
    if !rustix::process::getuid().is_root() {
        left_out(
            test,
            "only root can start a user manager beside the session's own",
        );
        return false;
    }
    may_unshare(test, &APART)
}

/// The words of a unit's setting.
fn words(unit: &str, key: &str) -> Vec<String> {
    let text = fs::read_to_string(contrib("systemd").join(unit)).unwrap();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    value.unwrap().split(' ').map(str::to_owned).collect()
}

/// The command of the service, with the executable under test.
fn started_as(daemon: &TestDaemon) -> Command {
    let words = words("murald.service", "ExecStart");
    assert_eq!(words[0], "/usr/bin/murald");
    daemon.murald(&words[1..].iter().map(String::as_str).collect::<Vec<_>>())
}

impl<'a> Manager<'a> {
    fn start(daemon: &'a TestDaemon) -> Self {
        install(&daemon.root().join("config/systemd/user"));
        let script = "mount -t tmpfs none /run && mkdir -p /run/systemd/system && \
                      exec /usr/lib/systemd/systemd --user --unit=basic.target";
        let log = fs::File::create(daemon.root().join("manager.log")).unwrap();
        let child = daemon
            .command("unshare")
            .args(APART)
            .args(["sh", "-c", script])
            .env("SYSTEMD_LOG_TARGET", "console")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut manager = Self { daemon, child };
        wait_until("the user manager", || {
            let ended = manager.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", manager.log());
            manager
                .systemctl(&["is-active", "basic.target"])
                .status
                .success()
        });
        manager
    }

    fn log(&self) -> String {
        fs::read_to_string(self.daemon.root().join("manager.log")).unwrap()
    }

    fn systemctl(&self, words: &[&str]) -> Output {
        self.daemon
            .command("systemctl")
            .arg("--user")
            .args(words)
            .output()
            .unwrap()
    }

    fn does(&self, words: &[&str]) -> String {
        let output = self.systemctl(words);
        assert!(
            output.status.success(),
            "systemctl {words:?}: {output:?}\n{}",
            self.log()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn shows(&self, unit: &str, property: &str) -> String {
        let shown = self.does(&["show", "--value", "-p", property, unit]);
        shown.trim().to_owned()
    }
}

impl Drop for Manager<'_> {
    fn drop(&mut self) {
        self.systemctl(&["exit"]);
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn units_pass_systemd_analyze() {
    let directory = tempfile::tempdir().unwrap();
    install(directory.path());
    let paths = UNITS.map(|unit| directory.path().join(unit));
    let output = Command::new("systemd-analyze")
        .args(["--user", "--man=no", "verify"])
        .args(paths)
        .env("XDG_RUNTIME_DIR", directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("murald"))
        .collect();
    assert!(output.status.success() && ours.is_empty(), "{said}");
}

/// From version 254 on, systemd runs a user's unit with any of these in a user namespace. The kernel
/// hides the executables of other processes from a process in one, and what they draw on.
#[test]
fn service_needs_no_user_namespace() {
    let text = fs::read_to_string(contrib("systemd/murald.service")).unwrap();
    let keys = text
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0));
    let apart = [
        "Protect",
        "Private",
        "Bind",
        "Root",
        "TemporaryFileSystem",
        "MountAPIVFS",
    ];
    let apart =
        |key: &&str| apart.iter().any(|start| key.starts_with(start)) || key.ends_with("Paths");
    assert_eq!(keys.filter(apart).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn socket_unit_has_the_path_that_clients_use() {
    let daemon = TestDaemon::new();
    let [path] = &words("murald.socket", "ListenStream")[..] else {
        panic!("not one path")
    };
    let path = path.replace("%t", daemon.socket().parent().unwrap().to_str().unwrap());
    // systemd-socket-activate passes on only the variables that it is given.
    let mut activate = daemon.command("systemd-socket-activate");
    let command = started_as(&daemon);
    for (name, value) in command.get_envs() {
        let mut setting = name.to_owned();
        setting.push("=");
        setting.push(value.unwrap());
        activate.arg("-E").arg(setting);
    }
    activate
        .args(["-l", &path])
        .arg(command.get_program())
        .args(command.get_args());
    let child = activate.stderr(Stdio::null()).spawn().unwrap();
    // The socket's path exists a moment before it accepts connections.
    wait_until("the status", || {
        daemon
            .murald(&["status"])
            .output()
            .unwrap()
            .status
            .success()
    });
    daemon
        .client()
        .post("/shutdown", &serde_json::json!({}))
        .ok();
    assert_eq!(end_of(child).code(), Some(0));
}

#[test]
fn service_is_not_restarted_after_permanent_failures() {
    let last = words("murald.service", "RestartPreventExitStatus");
    let check = |daemon: &TestDaemon| {
        let status = end_of(started_as(daemon).stderr(Stdio::null()).spawn().unwrap());
        assert!(
            last.contains(&status.code().unwrap().to_string()),
            "{status}"
        );
    };
    let broken = TestDaemon::new();
    broken.configure("[daemon\n");
    check(&broken);
    check(&TestDaemon::started());
}

#[test]
fn service_is_ready_when_it_answers_and_stop_leaves_the_wallpaper() {
    if !may_manage("service_is_ready_when_it_answers_and_stop_leaves_the_wallpaper") {
        return;
    }
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    let manager = Manager::start(&daemon);
    manager.does(&["start", "murald.service"]);
    // Ready means that the daemon answers without a wait.
    let picture = daemon.root().join("red.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb([200, 30, 30]))
        .save(&picture)
        .unwrap();
    let id = daemon.import(&[&picture])[0];
    let body = serde_json::json!({ "image_id": id });
    daemon.client().post("/wallpaper/set", &body).ok();
    let pid = manager.shows("murald.service", "MainPID");
    let backends = || {
        let listed = Command::new("pgrep")
            .args(["-x", "swaybg"])
            .output()
            .unwrap();
        let pids = String::from_utf8(listed.stdout).unwrap();
        let ours = |pid: &&str| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let wanted = format!("HOME={}", daemon.root().display());
            environment
                .split(|&byte| byte == 0)
                .any(|entry| entry == wanted.as_bytes())
        };
        pids.lines()
            .filter(ours)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let before = backends();
    assert_eq!(before.len(), 1);

    manager.does(&["reload", "murald.service"]);
    assert_eq!(manager.shows("murald.service", "MainPID"), pid);
    manager.does(&["stop", "murald.service"]);
    assert_eq!(manager.shows("murald.service", "Result"), "success");
    assert_eq!(backends(), before, "the wallpaper's process stays");
    manager.does(&["start", "murald.service"]);
    wait_until("the wallpaper is known again", || {
        !daemon.client().get("/wallpaper/current").ok()["monitors"]
            .as_array()
            .unwrap()
            .is_empty()
    });
    assert_eq!(backends(), before, "the process is adopted, not replaced");

    // After a crash the daemon is restarted, and the wallpaper's process stays.
    let pid = manager.shows("murald.service", "MainPID");
    manager.does(&["kill", "--kill-whom=main", "-s", "KILL", "murald.service"]);
    wait_until("another daemon", || {
        let now = manager.shows("murald.service", "MainPID");
        now != pid && now != "0" && manager.shows("murald.service", "SubState") == "running"
    });
    assert_eq!(backends(), before);
    let cleared = daemon.murald(&["stop", "--clear"]).output().unwrap();
    assert!(cleared.status.success(), "{cleared:?}");
    assert!(backends().is_empty());
    wait_until("the service is inactive", || {
        manager.shows("murald.service", "ActiveState") == "inactive"
    });
}

#[test]
fn backends_work_within_the_limits_of_the_service() {
    if !may_manage("backends_work_within_the_limits_of_the_service") {
        return;
    }
    let wayland: &[(&str, [u8; 3])] = &[("swaybg", [200, 30, 30]), ("builtin", [30, 200, 30])];
    let x11: &[(&str, [u8; 3])] = &[("feh", [30, 30, 200])];
    for (desktop, backends, output) in [
        (Desktop::wayland(&["640x360"]), wayland, "HEADLESS-1"),
        (Desktop::x11(&["640x360"]), x11, "VIRTUAL-1"),
    ] {
        let daemon = TestDaemon::on(&desktop);
        daemon.configure("[backend.builtin]\ntransition_type = 'none'\n");
        let manager = Manager::start(&daemon);
        manager.does(&["start", "murald.service"]);
        let pid = manager.shows("murald.service", "MainPID");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(
            status.contains("Seccomp:\t2\n"),
            "a filter of system calls: {status}"
        );
        for (backend, color) in backends {
            let kind = serde_json::json!({ "backend": { "type": backend } });
            daemon.client().patch("/config", &kind).ok();
            let picture = daemon.root().join(format!("{backend}.png"));
            image::RgbImage::from_pixel(64, 36, image::Rgb(*color))
                .save(&picture)
                .unwrap();
            let body = serde_json::json!({ "image_id": daemon.import(&[&picture])[0] });
            let answer = daemon.client().post("/wallpaper/set", &body).ok();
            assert_eq!(answer["backend"], *backend);
            let shot = daemon.root().join("shot.png");
            desktop.shot(&shot, output);
            let seen = image::open(&shot).unwrap().to_rgb8();
            assert_eq!(seen.get_pixel(20, 20).0, *color, "{backend}");
        }
        assert!(
            daemon
                .murald(&["stop", "--clear"])
                .output()
                .unwrap()
                .status
                .success()
        );
    }
}

#[test]
fn socket_starts_the_service() {
    if !may_manage("socket_starts_the_service") {
        return;
    }
    let daemon = TestDaemon::new();
    let manager = Manager::start(&daemon);
    manager.does(&["start", "murald.socket"]);
    assert_eq!(manager.shows("murald.service", "ActiveState"), "inactive");
    assert_eq!(daemon.client().get("/healthz").ok()["status"], "ok");
    // The socket answers before the manager knows that the daemon is ready.
    let state = || manager.shows("murald.service", "ActiveState");
    wait_until("it is ready", || state() == "active");
    // The next client starts the daemon again.
    manager.does(&["stop", "murald.service"]);
    assert_eq!(daemon.client().get("/healthz").ok()["status"], "ok");
}

#[test]
fn service_is_not_restarted_with_a_broken_configuration() {
    if !may_manage("service_is_not_restarted_with_a_broken_configuration") {
        return;
    }
    let daemon = TestDaemon::new();
    daemon.configure("[daemon\n");
    let manager = Manager::start(&daemon);
    assert!(
        !manager
            .systemctl(&["start", "murald.service"])
            .status
            .success()
    );
    assert_eq!(manager.shows("murald.service", "ExecMainStatus"), "78");
    assert_eq!(manager.shows("murald.service", "ActiveState"), "failed");
    assert_eq!(manager.shows("murald.service", "NRestarts"), "0");
}
