//! Calls that run for a while: `events`, and `import` with its progress and cancellation.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::{json_of, ok, pictures, run, stderr};
use crate::support::{PATIENCE, TestDaemon, end_of};

/// A running call, and the lines that it prints.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn new(daemon: &TestDaemon, line: &[&str]) -> Self {
        let mut command = daemon.murald(line);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The first event. Repeats `cause` until it comes, as nothing shows when the stream is open.
    fn first(&self, mut cause: impl FnMut(u32)) -> Value {
        for turn in 0.. {
            cause(turn);
            match self.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => return serde_json::from_str(&line).unwrap(),
                Err(_) => assert!(turn < 200, "no event comes"),
            }
        }
        unreachable!()
    }

    fn end(mut self) -> (ExitStatus, String) {
        let mut errors = self.child.stderr.take().unwrap();
        let status = end_of(self.child);
        let mut told = String::new();
        errors.read_to_string(&mut told).unwrap();
        (status, told)
    }
}

fn change(daemon: &TestDaemon, turn: u32) {
    ok(
        daemon,
        &[
            "config",
            "set",
            "app",
            "images_per_page",
            &(60 + turn % 9).to_string(),
        ],
    );
}

#[test]
fn events_are_printed_until_the_daemon_stops() {
    let daemon = TestDaemon::started();
    let events = Running::new(
        &daemon,
        &["events", "--types", "config_changed,gallery_changed"],
    );
    let event = events.first(|turn| change(&daemon, turn));
    assert_eq!(event["event"], "config_changed");
    assert_eq!(event["data"]["sections"], json!(["app"]));
    ok(&daemon, &["stop"]);
    let (status, told) = events.end();
    assert_eq!(
        (status.code(), told.as_str()),
        (Some(69), "murald: the daemon has stopped\n")
    );
}

#[test]
fn closed_pipe_ends_events_quietly() {
    let daemon = TestDaemon::started();
    // The reader closes the pipe before the first event.
    let mut events = daemon.murald(&["events"]);
    let mut events = events
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(events.stdout.take());
    let mut errors = events.stderr.take().unwrap();
    assert_eq!(end_of(events).code(), Some(0));
    let mut told = String::new();
    errors.read_to_string(&mut told).unwrap();
    assert_eq!(told, "");
    for line in [&["status"][..], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = daemon.murald(line).stdout(writer).output().unwrap();
        assert_eq!(
            (output.status.code(), stderr(&output).as_str()),
            (Some(0), ""),
            "{line:?}"
        );
    }
}

#[test]
fn imports_print_their_events() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 4);
    fs::write(directory.join("bad.png"), "letters").unwrap();
    let directory = directory.to_str().unwrap();
    let output = run(&daemon, &["import", directory, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.starts_with(r#"{"error":"1 file could not be imported\n"#),
        "{told}"
    );
    assert!(told.contains("bad.png: "), "{told}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(events[0]["event"], "processing_started");
    assert_eq!((count("image_processed"), count("image_error")), (4, 1));
    assert_eq!(events.last().unwrap()["event"], "processing_complete");
    assert_eq!(events.last().unwrap()["data"]["succeeded"], 4);
    // A relative path is relative to the caller's directory, not the daemon's.
    let mut again = daemon.murald(&["import", "p0.png", "p1.png"]);
    let again = again.current_dir(directory).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let started = json_of(&daemon, &["import", "--no-wait", directory]);
    assert_eq!(started["total"], 5);
    assert_eq!(
        json_of(&daemon, &["images", "list"])["pagination"]["total_items"],
        4
    );
}

#[test]
fn interrupted_import_is_cancelled() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 250);
    let import = Running::new(&daemon, &["import", directory.to_str().unwrap(), "--json"]);
    let first = import.lines.recv_timeout(PATIENCE).unwrap();
    assert!(first.contains("processing_started"), "{first}");
    let status = Command::new("kill")
        .args(["-INT", &import.child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
    let mut last = String::new();
    while let Ok(line) = import.lines.recv_timeout(PATIENCE) {
        last = line;
    }
    assert!(last.contains("processing_cancelled"), "{last}");
    let (status, told) = import.end();
    assert_eq!(status.code(), Some(130));
    assert!(told.starts_with("{\"error\":\"cancelled after "), "{told}");
    let taken = &json_of(&daemon, &["images", "list"])["pagination"]["total_items"];
    assert!(taken.as_u64().unwrap() < 250, "{taken}");
}

#[test]
fn import_of_a_directory_without_pictures_fails() {
    let daemon = TestDaemon::started();
    let notes = daemon.root().join("notes");
    std::fs::create_dir(&notes).unwrap();
    let import = || daemon.murald(&["import"]).arg(&notes).output().unwrap();
    assert_eq!(import().status.code(), Some(1), "the directory is empty");
    std::fs::write(notes.join("todo"), "").unwrap();
    let output = import();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let wanted = format!("murald: no images found in {}\n", notes.display());
    assert!(told.contains(&wanted), "{told}");
}
