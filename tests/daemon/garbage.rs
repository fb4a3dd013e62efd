//! Tests garbage on the socket: the daemon answers a healthy client after at most the timeout of
//! silent ones, uses little memory, and stops normally.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Map, Value, json};

use crate::desktop::{wait_for, wait_until};
use crate::support::TestDaemon;

/// Silent clients time out later than this, so a client that is answered in this time has not
/// waited for them.
const PROMPT: Duration = Duration::from_secs(8);

/// Requests that are sent on separate connections, whose responses are not read.
const GARBAGE: [&[u8]; 8] = [
    b"garbage\r\n\r\n",
    b"GET / HTTP/2.0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nX: ",
    b"POST /images HTTP/1.1\r\nContent-Length: 2000\r\n\r\n{",
    b"POST /images HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n{",
    b"POST /images HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /config HTTP/1.1\r\n\r\nGET /config HTTP/1.1\r\n\r\nGET /config HTTP/1.1\r\n\r\n",
];

fn is_well(daemon: &TestDaemon) {
    let began = Instant::now();
    daemon.client().get("/healthz").ok();
    let took = began.elapsed();
    assert!(took < PROMPT, "a healthy client waited for {took:?}");
}

/// Waits until a new client is served, which may need a silent one to be closed.
fn serves(daemon: &TestDaemon) {
    wait_until("a client is served", || {
        daemon.client().is_served("/healthz")
    });
}

fn connect(daemon: &TestDaemon) -> UnixStream {
    wait_for("a place in the backlog", || {
        match UnixStream::connect(daemon.socket()) {
            // The queue is full until the daemon has accepted connections.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            connected => Ok(connected.expect("the daemon listens")),
        }
    })
}

/// Returns the resident memory in MiB, without the pages of the program's file, which the kernel may
/// drop.
fn memory(daemon: &TestDaemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    line.trim()
        .split(' ')
        .next()
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

pub fn raise_descriptors() -> usize {
    let now = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: now.maximum,
            maximum: now.maximum,
        },
    )
    .unwrap();
    usize::try_from(now.maximum.unwrap_or(1 << 20)).unwrap()
}

#[test]
fn ten_thousand_silent_or_garbage_connections_are_survived() {
    let number = raise_descriptors().saturating_sub(500).min(10_000);
    let mut daemon = TestDaemon::started();
    let before = memory(&daemon);
    let mut crowd = Vec::with_capacity(number);
    for at in 0..number {
        let mut socket = connect(&daemon);
        if at % 10 == 0 {
            // The connection may be refused before everything is sent.
            socket.write_all(GARBAGE[at / 10 % GARBAGE.len()]).ok();
        }
        crowd.push(socket);
    }
    serves(&daemon);
    let grown = memory(&daemon).saturating_sub(before);
    println!("{number} connections: {before} MiB and {grown} more");
    assert!(grown < 64, "{number} connections took {grown} MiB");
    // A busy machine may not run the threads of 256 connections in time. They are abandoned then.
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn endless_requests_are_bounded() {
    let daemon = &mut TestDaemon::started();
    let piece = vec![b'a'; 1 << 20];
    let mut header = connect(daemon);
    header.write_all(b"GET /healthz HTTP/1.1\r\nX: ").unwrap();
    let mut body = connect(daemon);
    body.write_all(b"POST /images HTTP/1.1\r\nContent-Length: 8388608\r\n\r\n")
        .unwrap();
    let pipelined = connect(daemon);
    pipelined.set_nonblocking(true).unwrap();
    let many = b"GET /config HTTP/1.1\r\n\r\n".repeat(1000);
    for _ in 0..300 {
        // The daemon closes these connections at some point and does not buffer without limit.
        header.write_all(&piece).ok();
        let mut rest = &many[..];
        while let Ok(sent @ 1..) = (&pipelined).write(rest) {
            rest = &rest[sent..];
        }
    }
    body.write_all(&piece).unwrap();
    is_well(daemon);
    let memory = memory(daemon);
    assert!(memory < 64, "{memory} MiB");
    assert_eq!(daemon.stop(), Some(0));
}

/// Work that is quadratic in the length is refused, or cheap.
#[test]
fn bodies_of_many_small_values_are_refused_or_read() {
    let daemon = TestDaemon::started();
    let text = |at: u32| format!("k{at}").into();
    let list: Vec<Value> = (0..200_000).map(text).collect();
    let object = |list: &[Value]| -> Map<String, Value> {
        list.iter()
            .map(|name| (name.as_str().unwrap().to_owned(), json!(1)))
            .collect()
    };
    let check = |method: &str, path: &str, body: Value, status: u16| {
        let before = daemon.processor_time();
        let answer = daemon
            .client()
            .send(method, path, "", body.to_string().as_bytes());
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(
            answer.body.len() < 10_000,
            "{path} answers {} bytes",
            answer.body.len()
        );
        let took = daemon.processor_time() - before;
        assert!(took < Duration::from_secs(5), "{path} costs {took:?}");
    };
    let images: Vec<_> = (1..200_000)
        .map(|id| json!({"image_id": id, "time": 1}))
        .collect();
    check(
        "POST",
        "/wallpaper/set",
        json!({"image_id": 1, "monitors": list}),
        400,
    );
    check(
        "POST",
        "/wallpaper/random",
        json!({"monitor": "x".repeat(7 << 20)}),
        400,
    );
    check("POST", "/playlists/1/start", json!({"monitors": list}), 400);
    check(
        "POST",
        "/playlists",
        json!({"name": "x".repeat(7 << 20)}),
        400,
    );
    check(
        "POST",
        "/playlists",
        json!({"name": "many", "images": images}),
        400,
    );
    check("PATCH", "/config", json!({"app": object(&list)}), 400);
    check(
        "PATCH",
        "/config/app",
        json!({"x": {"y": "x".repeat(2 << 20)}}),
        400,
    );
    check(
        "PATCH",
        "/config/monitors",
        json!({"selected_monitors": list}),
        400,
    );
    check(
        "PATCH",
        "/config/backends/wal-qt",
        json!({"env": list}),
        400,
    );
    check("PATCH", "/images/1", json!({"tags": list}), 400);
    check(
        "DELETE",
        "/images",
        json!({"ids": (1..200_000).collect::<Vec<_>>()}),
        200,
    );
    let ids = (1..200_000).collect::<Vec<_>>();
    check(
        "POST",
        "/folders/move-images",
        json!({"image_ids": ids, "folder_id": null}),
        200,
    );
    // Two requests fit into the file; it does not grow without end.
    for (part, status) in list[..2000].chunks(500).zip([200, 200, 400, 400]) {
        let long = |name: &Value| (name.as_str().unwrap().to_owned(), json!("x".repeat(1000)));
        let part: Map<String, Value> = part.iter().map(long).collect();
        let body = json!(part).to_string();
        let answer = daemon
            .client()
            .send("PATCH", "/config/app", "", body.as_bytes());
        assert_eq!(answer.status, status);
    }
    assert!(daemon.config_file().metadata().unwrap().len() <= 1 << 20);
    daemon.client().post("/config/reset", &json!({})).ok();
    assert!(
        daemon
            .client()
            .get("/config/app")
            .ok()
            .as_object()
            .unwrap()
            .len()
            < 50
    );
    is_well(&daemon);
}
