//! Shells on a terminal, where somebody types and strikes the tabulator: a session of each kind of
//! person, from the first picture to the trash.

use std::path::Path;

use crate::call::pictures;
use crate::support::House;
use crate::support::pty::Pty;

/// A shell with our completions, and `murald` on its path.
fn shell(house: &House, program: &str, arguments: &[&str]) -> Pty {
    let bin = Path::new(env!("CARGO_BIN_EXE_murald")).parent().unwrap();
    // The terminal is to be its own, or shells have no jobs on it.
    let mut command = house.command("setsid");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", bin.display()));
    command.args(["--ctty", "--wait", program]).args(arguments);
    command.env("TERM", "xterm").env("PS1", "> ").current_dir(house.root());
    Pty::new(command, 80, 24)
}

fn house() -> House {
    let house = House::started();
    house.import(&[&pictures(&house, 2)]);
    let client = house.client();
    client.patch("/images/1", &serde_json::json!({ "name": "red lake", "tags": ["sea"] })).ok();
    house
}

fn completions(file: &str) -> String {
    format!("{}/contrib/completions/{file}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn bash_completes_names_and_goes_on() {
    let house = house();
    let mut bash = shell(&house, "bash", &["--norc", "--noprofile", "-i"]);
    bash.types(format!("source {}; echo rea''dy\r", completions("murald.bash")).as_bytes());
    bash.until("ready");
    bash.types(b"murald images rename red\t");
    bash.until("red\\ lake");
    bash.types(b"'blue lake'\r");
    bash.until("blue lake");
    bash.types(b"murald images ls --tags s\t --format 'found {name}'\r");
    bash.until("found blue lake");
    bash.types(b"murald images rm bl\t\r");
    bash.until("Move blue lake (1) to the trash? [y/N] ");
    bash.types(b"y\r");
    bash.until("1 image moved to the trash");
    bash.types(b"exit\r");
    assert_eq!(bash.end().0, Some(0));
}

#[test]
fn fish_completes_names() {
    let house = house();
    let mut fish = shell(&house, "fish", &["--no-config", "--interactive"]);
    // Some versions ask the terminal what it is, and wait for its answer.
    fish.types(format!("source {}; echo rea''dy\r", completions("murald.fish")).as_bytes());
    fish.until("ready\r\n");
    fish.types(b"murald images show red\t --format 'found {id}'\r");
    fish.until("found 1");
    fish.types(b"exit\r");
    assert_eq!(fish.end().0, Some(0));
}

#[test]
fn zsh_completes_names() {
    let house = house();
    let mut zsh = shell(&house, "zsh", &["-f", "-i"]);
    let directory = completions("");
    let setup =
        format!("fpath=({directory} $fpath); autoload -U compinit; compinit -u -D; echo rea''dy\r");
    zsh.types(setup.as_bytes());
    zsh.until("ready\r\n");
    zsh.types(b"murald images show red\t --format 'found {id}'\r");
    zsh.until("found 1");
    zsh.types(b"exit\r");
    assert_eq!(zsh.end().0, Some(0));
}
