//! Terminals of different abilities, and environments with few variables.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::call::{pictures, run, stderr};
use crate::support::TestDaemon;
use crate::support::pty::Pty;

fn daemon() -> TestDaemon {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 1)]);
    daemon
}

fn show(daemon: &TestDaemon, term: &str) -> Command {
    let mut show = daemon.murald(&["images", "show", "p0"]);
    show.env("TERM", term).env("COLORTERM", "truecolor");
    show
}

/// chafa draws on the terminal, in the space that the text leaves; without chafa, half blocks are drawn.
#[test]
fn pictures_are_drawn_by_chafa_or_as_half_blocks() {
    let mut daemon = daemon();
    let (code, shown) = Pty::new(show(&daemon, "xterm-256color"), 80, 40).end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("\x1b[38;") && shown.contains("p0"),
        "{shown}"
    );
    let mut blocks = show(&daemon, "xterm-256color");
    blocks.args(["--picture", "blocks"]);
    assert!(Pty::new(blocks, 80, 40).end().1.contains("▀"));
    let mut none = show(&daemon, "xterm-256color");
    none.args(["--picture", "none"]);
    assert!(!Pty::new(none, 80, 40).end().1.contains("38;"));
    daemon.stub(
        "chafa",
        "#!/bin/sh\necho \"chafa $* $(head -c 4)\"\ntest -t 1\n",
    );
    let (_, shown) = Pty::new(show(&daemon, "xterm-256color"), 80, 40).end();
    assert!(
        shown.starts_with("chafa --animate off --size 60x20 - RIFF\n"),
        "{shown}"
    );
    assert!(!shown.contains('▀'), "{shown}");
    // If chafa fails, half blocks are drawn.
    daemon.stub("chafa", "#!/bin/sh\nexit 1\n");
    assert!(
        Pty::new(show(&daemon, "xterm-256color"), 80, 40)
            .end()
            .1
            .contains("▀")
    );
}

#[test]
fn contact_sheet_fits_the_screen() {
    let mut daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 9)]);
    daemon.stub("chafa", "#!/bin/sh\nexit 1\n");
    let sheet = |more: &[&str]| {
        let mut command = daemon.murald(&[&["images", "sheet"], more].concat());
        command.env("TERM", "xterm-256color");
        Pty::new(command, 80, 20).end().1
    };
    let first = sheet(&[]);
    assert!(first.lines().count() < 20, "{first}");
    assert_eq!(
        first.lines().last(),
        Some("page 1 of 2, 9 images; --page 2 for more")
    );
    let second = sheet(&["--page", "2"]);
    assert!(
        !second.contains("for more") && second.contains(" p0"),
        "{second}"
    );
    assert!(sheet(&["--all"]).lines().count() > 20);
}

#[test]
fn dumb_terminal_gets_no_escape_sequences() {
    let daemon = daemon();
    for line in [
        &["images", "show", "p0"][..],
        &["images", "list"],
        &["images", "sheet"],
        &["backends"],
        &["status"],
        &["config", "get"],
        &["--help"],
    ] {
        for (name, value) in [("TERM", "dumb"), ("NO_COLOR", "1")] {
            let mut command = daemon.murald(line);
            command.env("TERM", "xterm").env(name, value);
            let (code, shown) = Pty::new(command, 80, 40).end();
            assert_eq!(code, Some(0), "{line:?}: {shown}");
            assert!(!shown.contains('\x1b'), "{line:?} with {name}: {shown:?}");
        }
    }
}

#[test]
fn no_color_hides_the_progress_bar() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 3);
    let mut import = daemon.murald(&["import", directory.to_str().unwrap()]);
    import.env("TERM", "xterm").env("NO_COLOR", "1");
    let (code, shown) = Pty::new(import, 80, 40).end();
    assert_eq!((code, shown.as_str()), (Some(0), "3 images imported\n"));
    // Times have seconds.
    let record = run(&daemon, &["images", "show", "p0"]).stdout;
    let record = String::from_utf8(record).unwrap();
    let imported = record
        .lines()
        .find_map(|line| line.strip_prefix("imported\t"))
        .unwrap();
    assert_eq!(
        imported.len(),
        "2026-11-26T01:15:36+00:00".len(),
        "{imported}"
    );
}

#[test]
fn long_sentences_are_wrapped_at_spaces() {
    let daemon = TestDaemon::new();
    let (code, shown) = Pty::new(daemon.murald(&["status"]), 40, 20).end();
    assert_eq!(code, Some(69), "{shown}");
    let socket = daemon.socket();
    let words = |line: &&str| !line.contains(socket.to_str().unwrap());
    assert!(shown.lines().count() > 2 && shown.lines().filter(words).all(|line| line.len() <= 40));
    let (_, shown) = Pty::new(daemon.murald(&["doctor"]), 60, 50).end();
    let step = shown
        .lines()
        .find(|line| line.contains("`murald start`"))
        .unwrap();
    assert!(step.starts_with("      ") && step.len() <= 60, "{shown}");
}

/// The first command that starts the daemon explains how murald starts at login: once, and on a terminal
/// only.
#[test]
fn start_at_login_is_explained_once() {
    let mut daemon = TestDaemon::new();
    daemon.stub("systemctl", "#!/bin/sh\n[ \"$2\" = --version ]\n");
    daemon.env("MURALD_AUTOSTART", "1");
    let picture = pictures(&daemon, 1).join("p0.png");
    let line = ["import", picture.to_str().unwrap()];
    let stop = || run(&daemon, &["stop"]);
    assert!(!stderr(&run(&daemon, &line)).contains("systemctl"));
    stop();
    let hint = "`systemctl --user enable murald`";
    let shown = |columns| Pty::new(daemon.murald(&line), columns, 40).end().1;
    assert!(shown(200).contains(hint));
    stop();
    assert!(!shown(200).contains(hint));
    stop();
}

/// Environment of a cron job: `HOME` and a short `PATH`. Command and daemon must find each other without
/// a session.
#[test]
fn cron_job_finds_the_daemon() {
    let daemon = TestDaemon::new();
    let cron = |line: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_murald"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", daemon.root());
        // Keeps the test away from other daemons of this user.
        command
            .env("TMPDIR", daemon.root())
            .env("MURALD_SOCKET", daemon.root().join("cron.sock"));
        command.args(line).current_dir("/").output().unwrap()
    };
    let picture = pictures(&daemon, 1).join("p0.png");
    let output = cron(&["import", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, b"1\n");
    assert!(
        stderr(&output).starts_with("murald: started murald (process "),
        "{output:?}"
    );
    assert_eq!(
        cron(&["images", "list", "--format", "{name}"]).stdout,
        b"p0\n"
    );
    assert_eq!(cron(&["stop"]).status.code(), Some(0));
}

/// If the user has enabled the unit, the command has the service manager start it.
#[test]
fn enabled_unit_is_started_by_the_service_manager() {
    let mut daemon = TestDaemon::new();
    let notes = daemon.root().join("notes");
    let murald = env!("CARGO_BIN_EXE_murald");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>'{}'\n[ \"$2\" != start ] || setsid '{murald}' start \
         >/dev/null 2>&1 &\n",
        notes.display()
    );
    daemon.stub("systemctl", &script);
    daemon.env("MURALD_AUTOSTART", "1");
    let picture = pictures(&daemon, 1).join("p0.png");
    let output = run(&daemon, &["import", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let asked = fs::read_to_string(&notes).unwrap();
    assert_eq!(
        asked,
        "--user is-enabled murald.service\n--user start murald.service\n"
    );
    assert_eq!(
        fs::metadata(daemon.socket()).unwrap().permissions().mode() & 0o077,
        0
    );
    assert_eq!(run(&daemon, &["stop"]).status.code(), Some(0));
}
