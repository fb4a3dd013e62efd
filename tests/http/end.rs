//! Shutdown of the server.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use murald::internals::http::{Limits, Response};

use super::support::{Client, PATIENCE, TestServer};
use crate::wait::wait_for;

#[test]
fn shutdown_waits_for_running_requests_not_idle_clients() {
    let mut server = TestServer::new();
    let mut idle = server.connect();
    assert_eq!(idle.get("/tiny").status, 200);
    let mut halfway = server.connect();
    halfway.say("GET /ti");
    let (mut running, mut reading) = (server.connect(), server.connect());
    running.say("GET /later HTTP/1.1\r\n\r\n");
    let giver = server.givers.recv().unwrap();
    reading.say("GET /large HTTP/1.1\r\n\r\n");
    reading.read_until("\r\n\r\n");

    let inner = server.server.take().unwrap();
    let end = std::thread::spawn(move || inner.end(Instant::now() + PATIENCE));
    assert!(idle.is_hung_up() && halfway.is_hung_up());
    assert!(std::os::unix::net::UnixStream::connect(&server.socket).is_err());
    giver(Ok(Response::bytes(200, "text/plain", b"done".as_slice())));
    let reply = running.reply();
    assert_eq!(
        (reply.text(), reply.header("Connection")),
        ("done", Some("close"))
    );
    assert!(running.is_hung_up());
    while reading.more() {}
    assert_eq!(reading.text().len(), super::support::LARGE);
    assert!(end.join().unwrap().is_empty());
}

#[test]
fn shutdown_keeps_its_deadline_and_answers_waiting_clients() {
    let mut server = TestServer::with(Limits {
        last_turn: PATIENCE,
        ..Limits::default()
    });
    let (mut waiting, mut keen) = (server.connect(), server.connect());
    waiting.say("GET /later HTTP/1.1\r\n\r\n");
    let giver = server.givers.recv().unwrap();
    keen.say("GET /later HTTP/1.1\r\n\r\nGET /tiny HTTP/1.1\r\n\r\n");
    let _giver = server.givers.recv().unwrap();
    let soon = Instant::now() + Duration::from_millis(100);
    let late = server.server.take().unwrap().end(soon);
    assert!(late.is_empty(), "{late:?} are late");
    for client in [&mut waiting, &mut keen] {
        let reply = client.reply();
        assert_eq!(
            (reply.status, reply.header("Connection")),
            (503, Some("close"))
        );
        assert_eq!(
            reply.text(),
            r#"{"error":"the daemon is shutting down","code":503}"#
        );
        assert!(client.is_hung_up());
    }
    giver(Ok(Response::empty(204)));
}

#[test]
fn stuck_request_does_not_delay_the_shutdown_of_others() {
    let mut server = TestServer::new();
    let pipe = server.directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let mut stuck = server.connect();
    stuck.say("GET /stuck HTTP/1.1\r\n\r\n");
    let (mut idle, mut gone) = (server.connect(), server.connect());
    assert_eq!(
        (idle.get("/tiny").status, gone.get("/tiny").status),
        (200, 200)
    );
    drop(gone);
    let mut pipe = writer(&pipe);
    let late = server
        .server
        .take()
        .unwrap()
        .end(Instant::now() + Duration::from_secs(3));
    assert_eq!(late, ["http-0"]);
    assert!(idle.is_hung_up());
    pipe.write_all(b"at last").unwrap();
}

/// The writing end of a pipe. Opening it fails until a process reads from the pipe.
fn writer(pipe: &Path) -> File {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    wait_for("a reader", || {
        OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(pipe)
    })
}

#[test]
fn dropped_server_stops_at_once() {
    let mut server = TestServer::new();
    let mut client = server.connect();
    client
        .say("GET /events HTTP/1.1\r\n\r\n")
        .read_until("\r\n\r\n");
    drop(server.server.take());
    while client.more() {}
    assert!(Client::try_to(&server.socket).is_none());
}
