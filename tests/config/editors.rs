//! Edits of the file by real editors and commands. Those that are not installed are skipped.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::Watched;

/// Runs a shell line in the file's directory, and checks that the edit is noticed once.
#[track_caller]
fn check(program: &str, line: &str, theme: &str) {
    let Some(room) = room_for(program, theme) else {
        return;
    };
    let output = shell(&room, line).output().unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    room.hears_once(&["app"]);
    assert_eq!(room.theme(), theme);
}

/// A watched file, and its edited version in `other.toml`; `None` if the program is not installed.
fn room_for(program: &str, theme: &str) -> Option<Watched> {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\"", program])
        .output()
        .unwrap();
    if !found.status.success() {
        eprintln!("left out: {program} is not installed");
        return None;
    }
    let room = Watched::new();
    std::fs::write(room.path("other.toml"), room.themed(theme)).unwrap();
    Some(room)
}

fn shell(room: &Watched, line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(room.path("murald"));
    command
        .env("HOME", room.dir.path())
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    command
}

#[test]
fn vim_edit_is_applied() {
    let line = "vim -u NONE -i NONE -es -c '%s/^theme = .*/theme = \"vim\"/' -c wq config.toml";
    check("vim", line, "vim");
}

#[test]
fn vim_edit_with_backup_copy_is_applied() {
    let line = "vim -u NONE -i NONE -es -c 'set backup backupcopy=no undofile' \
                -c '%s/^theme = .*/theme = \"v\"/' -c w -c w -c q config.toml";
    check("vim", line, "v");
}

#[test]
fn nano_edit_is_applied() {
    let Some(room) = room_for("nano", "nano") else {
        return;
    };
    let line = room
        .text()
        .lines()
        .position(|line| line.starts_with("theme = "))
        .unwrap()
        + 1;
    // nano needs a terminal.
    let line = format!("script -qec 'nano -I +{line} config.toml' /dev/null");
    let mut child = shell(&room, &line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut screen = child.stdout.take().unwrap();
    // Keys that are sent before nano is ready would go to the terminal.
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("Exit") {
        let mut byte = [0];
        assert_eq!(screen.read(&mut byte).unwrap(), 1, "nano ended early");
        shown.push(byte[0]);
    }
    // Cut the line, write another, save under the same name, exit.
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b"\x0btheme = \"nano\"\r\x0f\r\x18").unwrap();
    screen.read_to_end(&mut shown).unwrap();
    assert!(child.wait().unwrap().success());
    room.hears_once(&["app"]);
    assert_eq!(room.theme(), "nano");
}

#[test]
fn sed_edit_is_applied() {
    check(
        "sed",
        "sed -i 's/^theme = .*/theme = \"sed\"/' config.toml",
        "sed",
    );
}

#[test]
fn perl_edit_is_applied() {
    check(
        "perl",
        "perl -pi -e 's/^theme = .*/theme = \"perl\"/' config.toml",
        "perl",
    );
}

#[test]
fn cp_edit_is_applied() {
    check("cp", "cp ../other.toml config.toml", "cp");
}

#[test]
fn mv_edit_is_applied() {
    check("mv", "mv ../other.toml config.toml", "mv");
}

#[test]
fn ln_edit_is_applied() {
    check("ln", "ln -sf ../other.toml config.toml", "ln");
}

#[test]
fn install_edit_is_applied() {
    check(
        "install",
        "install -m 600 ../other.toml config.toml",
        "install",
    );
}

#[test]
fn rsync_edit_is_applied() {
    check("rsync", "rsync -c ../other.toml config.toml", "rsync");
}

#[test]
fn tee_edit_is_applied() {
    check("tee", "cat ../other.toml | tee config.toml", "tee");
}

#[test]
fn echo_edit_is_applied() {
    // The last table belongs to the client, which may add keys.
    let room = Watched::new();
    let line = "echo 'mine = 1' >> config.toml; echo 'also = 2' >> config.toml";
    assert!(shell(&room, line).status().unwrap().success());
    room.hears_once(&["remote_gallery"]);
}
