//! Commands that start the daemon, or must not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::call::{ok, run, stderr};
use crate::desktop::Desktop;
use crate::support::TestDaemon;
use crate::support::snapshot::snapshot;

/// A test daemon whose commands may start a daemon, and the path of a picture.
fn daemon(mut daemon: TestDaemon) -> (TestDaemon, PathBuf) {
    daemon.env("MURALD_AUTOSTART", "1");
    let picture = daemon.root().join("that.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb([20, 80, 160]))
        .save(&picture)
        .unwrap();
    (daemon, picture)
}

/// The session and the working directory of a process.
fn facts(pid: &str) -> (String, PathBuf) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(3)
        .unwrap()
        .to_owned();
    (session, fs::read_link(format!("/proc/{pid}/cwd")).unwrap())
}

#[test]
fn set_starts_the_daemon_and_shows_the_picture() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, picture) = daemon(TestDaemon::on(&desktop));
    let output = run(&daemon, &["set", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "that (1) is on HEADLESS-1\n"
    );
    let told = stderr(&output);
    let log = daemon.root().join("data/murald/daemon.log");
    let pid = told
        .strip_prefix("murald: started murald (process ")
        .unwrap();
    let (pid, rest) = pid.split_once(", ").unwrap();
    assert_eq!(rest, format!("log {})\n", log.display()));
    assert_eq!(facts(pid), (pid.to_owned(), Path::new("/").to_owned()));
    for descriptor in [0, 1, 2] {
        let to = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).unwrap();
        assert_eq!(to, Path::new("/dev/null"), "{descriptor}");
    }
    // The second command finds the daemon.
    let output = run(&daemon, &["random"]);
    assert_eq!(stderr(&output), "");
    ok(&daemon, &["playlist", "create", "one", "that"]);
    assert_eq!(
        ok(&daemon, &["playlist", "start", "one"]),
        "one (1) started on HEADLESS-1\n"
    );
    let told = |setting, value| stderr(&run(&daemon, &["config", "set", setting, value]));
    snapshot(
        "murald config set backend.swaybg.fit_mode fit",
        &told("backend.swaybg.fit_mode", "fit"),
    );
    assert_eq!(told("backend.builtin.fit_mode", "contain"), "");
    ok(
        &daemon,
        &["config", "set", "backend.selection_mode", "auto"],
    );
    assert_eq!(
        told("backend.swaybg.fit_mode", "fill"),
        "",
        "it may be chosen"
    );
    assert_eq!(told("backend.builtin.enabled", "false"), "");
    ok(&daemon, &["stop", "--clear"]);
}

#[test]
fn two_commands_at_once_start_one_daemon() {
    let (daemon, picture) = daemon(TestDaemon::new());
    daemon.configure("[power]\nfrob = 1\n");
    let import = || {
        let mut command = daemon.murald(&["import", picture.to_str().unwrap()]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [import(), import()].map(|child| child.wait_with_output().unwrap());
    for output in &both {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
    }
    let unused = format!(
        "{}, line 2: unknown setting power.frob",
        daemon.config_file().display()
    );
    assert!(
        both.iter().any(|output| stderr(output).contains(&unused)),
        "{}",
        stderr(&both[0])
    );
    ok(&daemon, &["stop"]);
}

#[test]
fn daemon_is_not_started_by_other_commands_or_with_autostart_off() {
    let (mut daemon, picture) = daemon(TestDaemon::new());
    for line in [
        &["set", "--help"][..],
        &["set"],
        &["set", "0"],
        &["images", "list"],
        &["next"],
    ] {
        run(&daemon, line);
        assert!(!daemon.socket().exists(), "{line:?}");
    }
    daemon.env("MURALD_AUTOSTART", "0");
    let output = run(&daemon, &["set", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(69), "{}", stderr(&output));
}

#[test]
fn error_of_a_daemon_that_cannot_start_is_printed() {
    let (daemon, picture) = daemon(TestDaemon::new());
    daemon.configure("[app]\nimages_per_page = \"many\"\n");
    let output = run(&daemon, &["set", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(78));
    let told = stderr(&output);
    assert!(
        told.starts_with("murald: the daemon did not start: /"),
        "{told}"
    );
    assert!(told.contains("line 2, column "), "{told}");
    let told = stderr(&run(&daemon, &["status"]));
    assert!(
        told.contains("\nhint: the daemon cannot start with this configuration: /"),
        "{told}"
    );
}

#[test]
fn start_on_a_terminal_prints_a_short_status() {
    let daemon = TestDaemon::new();
    let murald = env!("CARGO_BIN_EXE_murald");
    let script = format!(
        "{murald} start & pid=$!; until {murald} status >/dev/null 2>&1; do :; done; \
                          {murald} stop >/dev/null; wait $pid"
    );
    let on_terminal = |script: &str| {
        let mut command: Command = daemon.command("script");
        let output = command
            .args(["-qec", script, "/dev/null"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    };
    let said = on_terminal(&script);
    let ready = format!(
        "murald {} is ready on {}",
        env!("CARGO_PKG_VERSION"),
        daemon.socket().display()
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], ready, "{said}");
    let no_session = "backend: none: no Wayland or X11 session found: ";
    assert!(
        lines[1].starts_with(no_session) && lines[2].starts_with("monitors: "),
        "{said}"
    );
    // An X server of another user may be found, which is no warning. A 503 for `status` is an error.
    assert_eq!(lines[3], "Ctrl-C or `murald stop` stops it");
    let others = lines[4..]
        .iter()
        .filter(|line| !line.starts_with("ERROR GET /wallpaper/current 503 "));
    assert_eq!(others.count(), 0, "{said}");
    let loud = on_terminal(&script.replace("murald start", "murald --log-level info start"));
    assert!(
        loud.contains(" started") && !loud.contains("is ready on"),
        "{loud}"
    );
}
