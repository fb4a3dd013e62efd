//! Terminals that answer nothing, or can do nothing; environments that have next to nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::call::{pictures, run, stderr};
use crate::support::House;
use crate::support::pty::Pty;

fn house() -> House {
    let house = House::started();
    house.import(&[&pictures(&house, 1)]);
    house
}

fn show(house: &House, term: &str) -> Command {
    let mut show = house.murald(&["images", "show", "p0"]);
    show.env("TERM", term).env("COLORTERM", "truecolor");
    show
}

#[test]
fn an_interrupt_during_the_question_is_one() {
    let house = house();
    let mut terminal = Pty::new(show(&house, "xterm-256color"), 80, 40);
    terminal.until("\x1b[c");
    terminal.types(b"\x03");
    assert_eq!(terminal.end().0, Some(130));
}

#[test]
fn a_terminal_that_can_do_nothing_gets_no_escapes() {
    let house = house();
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
            let mut command = house.murald(line);
            command.env("TERM", "xterm").env(name, value);
            let (code, shown) = Pty::new(command, 80, 40).end();
            assert_eq!(code, Some(0), "{line:?}: {shown}");
            assert!(!shown.contains('\x1b'), "{line:?} with {name}: {shown:?}");
        }
    }
}

/// As cron starts it: `HOME`, a short `PATH`, and nothing else. Command and daemon find each other
/// where they would without a session.
#[test]
fn cron_finds_the_daemon() {
    let house = House::new();
    let cron = |line: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_murald"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", house.root());
        // Only so that no other daemon of this user is met.
        command.env("TMPDIR", house.root()).env("MURALD_SOCKET", house.root().join("cron.sock"));
        command.args(line).current_dir("/").output().unwrap()
    };
    let picture = pictures(&house, 1).join("p0.png");
    let output = cron(&["import", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, b"1\n");
    assert!(stderr(&output).starts_with("murald: started murald (process "), "{output:?}");
    assert_eq!(cron(&["images", "list", "--format", "{name}"]).stdout, b"p0\n");
    assert_eq!(cron(&["stop"]).status.code(), Some(0));
}

/// Where the user has enabled the unit, the service manager is asked; nothing else is started.
#[test]
fn an_enabled_unit_is_started_by_the_service_manager() {
    let mut house = House::new();
    let notes = house.root().join("notes");
    let murald = env!("CARGO_BIN_EXE_murald");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>'{}'\n[ \"$2\" != start ] || setsid '{murald}' start \
         >/dev/null 2>&1 &\n",
        notes.display()
    );
    house.stub("systemctl", &script);
    house.env("MURALD_AUTOSTART", "1");
    let picture = pictures(&house, 1).join("p0.png");
    let output = run(&house, &["import", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let asked = fs::read_to_string(&notes).unwrap();
    assert_eq!(asked, "--user is-enabled murald.service\n--user start murald.service\n");
    assert_eq!(fs::metadata(house.socket()).unwrap().permissions().mode() & 0o077, 0);
    assert_eq!(run(&house, &["stop"]).status.code(), Some(0));
}
