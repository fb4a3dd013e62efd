//! Tests that commands report a stopped daemon, also if its queue of connections is full, and what to
//! do.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde_json::Value;

use crate::garbage::raise_descriptors;
use crate::support::{TestDaemon, end_of};

/// Connects clients until the queue is full.
fn crowd(socket: &Path) -> Vec<OwnedFd> {
    let address = SocketAddrUnix::new(socket).unwrap();
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let mut crowd = Vec::new();
    loop {
        let one = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        match connect(&one, &address) {
            Ok(()) => crowd.push(one),
            Err(Errno::AGAIN) => return crowd,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns the exit code, stdout and stderr.
fn run(mut command: Command) -> (Option<i32>, String, String) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let code = end_of(child).code();
    let (mut printed, mut said) = (String::new(), String::new());
    stdout.read_to_string(&mut printed).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    (code, printed, said)
}

#[test]
fn stopped_daemon_does_not_block_commands() {
    raise_descriptors();
    let mut daemon = TestDaemon::started();
    daemon.signal("-STOP");
    let are_refused = |lines: &[&[&str]]| {
        // Each waits ten seconds for the daemon.
        let all = lines.iter().map(|line| daemon.murald(line));
        let all: Vec<_> = all.map(|command| thread::spawn(|| run(command))).collect();
        for one in all {
            let (code, _, said) = one.join().unwrap();
            assert_eq!(code, Some(69), "{said}");
            assert!(
                said.contains("does not reply") && said.contains("murald doctor"),
                "{said}"
            );
        }
    };
    are_refused(&[&["status"], &["set", "lake"], &["stop"]]);
    let crowd = crowd(&daemon.socket());
    let end = format!("`kill -9 {}`", daemon.pid());
    let (code, _, said) = run(daemon.murald(&["start"]));
    assert_eq!(code, Some(75), "{said}");
    assert!(
        said.contains("already running") && said.contains(&end),
        "{said}"
    );
    are_refused(&[&["status"]]);
    let (code, found, said) = run(daemon.murald(&["doctor", "--json"]));
    assert_eq!(code, Some(1), "{said}");
    let found: Vec<Value> = serde_json::from_str(&found).unwrap();
    let row = found.iter().find(|one| one["subject"] == "daemon").unwrap();
    assert!(row["step"].as_str().unwrap().contains(&end), "{row}");
    drop(crowd);
    daemon.kill9();
    daemon.start();
}
