//! Slow clients: every wait has a time limit.

use std::time::Duration;

use murald::internals::http::{Limits, Response};

use super::support::{LARGE, PATIENCE, TestServer};

const SHORT: Duration = Duration::from_millis(60);

fn one(change: impl FnOnce(&mut Limits)) -> TestServer {
    let mut limits = Limits::default();
    change(&mut limits);
    TestServer::with(limits)
}

#[test]
fn idle_connection_is_closed() {
    let server = one(|limits| limits.idle = SHORT);
    let mut client = server.connect();
    assert_eq!(client.get("/tiny").text(), "tiny");
    assert!(client.is_hung_up());
    assert!(server.connect().is_hung_up());
    server.is_well();
    server.end();
}

#[test]
fn unfinished_head_or_body_times_out() {
    let check = |server: TestServer, bytes: &str| {
        let mut clients: Vec<_> = (0..16).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.say(bytes);
        }
        server.is_well();
        for client in &mut clients {
            assert_eq!(client.reply().status, 408);
            assert!(client.is_hung_up());
        }
        server.is_well();
        server.end();
    };
    check(
        one(|limits| limits.pause = SHORT),
        "GET / HTTP/1.1\r\nHost: ",
    );
    check(
        one(|limits| limits.pause = SHORT),
        "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\na",
    );
    check(
        one(|limits| limits.body_time = SHORT),
        "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\na",
    );
}

#[test]
fn slowly_sent_head_does_not_extend_its_deadline() {
    let server = one(|limits| limits.pause = SHORT);
    let mut client = server.connect();
    client.say("GET / HTTP/1.1\r\nX: ");
    client
        .socket
        .set_read_timeout(Some(Duration::from_millis(5)))
        .unwrap();
    let mut piece = [0; 16];
    let end = std::time::Instant::now() + PATIENCE;
    // The read's timeout is the pause between two bytes.
    while std::io::Read::read(&mut client.socket, &mut piece).is_err() {
        client.say("x");
        assert!(
            std::time::Instant::now() < end,
            "the slow head is never refused"
        );
    }
    assert!(piece.starts_with(b"HTTP/1.1 408"));
    server.end();
}

#[test]
fn clients_that_do_not_read_their_answer_are_closed() {
    let server = one(|limits| limits.write_pause = SHORT);
    let mut clients: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.say("GET /large HTTP/1.1\r\n\r\n");
    }
    server.is_well();
    for client in &mut clients {
        // Waits until the server has closed the connection, so only a part of the answer can be read.
        let mut waited = [rustix::event::PollFd::new(
            &client.socket,
            rustix::event::PollFlags::empty(),
        )];
        let time = rustix::event::Timespec::try_from(PATIENCE).unwrap();
        assert_eq!(
            rustix::event::poll(&mut waited, Some(&time)),
            Ok(1),
            "never closed"
        );
        while client.more() {}
        assert!(client.text().len() < LARGE);
    }
    server.is_well();
    server.end();
}

#[test]
fn slow_request_does_not_block_others() {
    let server = TestServer::new();
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut clients {
        // The second request must wait for the answer to the first.
        client.say("GET /later HTTP/1.1\r\n\r\nGET /tiny HTTP/1.1\r\n\r\n");
    }
    let givers: Vec<_> = clients
        .iter()
        .map(|_| server.givers.recv().unwrap())
        .collect();
    server.is_well();
    for giver in givers {
        giver(Ok(Response::bytes(200, "text/plain", b"late".as_slice())));
    }
    for client in &mut clients {
        assert_eq!(
            (client.reply().text(), client.reply().text()),
            ("late", "tiny")
        );
    }
    server.end();
}

#[test]
fn slow_requests_are_bounded_in_number_and_time() {
    let server = one(|limits| limits.waiting = 1);
    let mut client = server.connect();
    client.say("GET /later HTTP/1.1\r\n\r\n");
    let giver = server.givers.recv().unwrap();
    let refused = server.connect().get("/later");
    assert_eq!(
        (refused.status, refused.header("Retry-After")),
        (503, Some("1"))
    );
    server.is_well();
    drop(giver);
    assert_eq!(client.reply().status, 500);
    // The place is free again after the answer.
    client.say("GET /later?ms=30 HTTP/1.1\r\n\r\n");
    let giver = server.givers.recv().unwrap();
    assert_eq!(client.reply().status, 503);
    giver(Ok(Response::empty(204)));
    // A client that disconnects does no harm.
    client.say("GET /later HTTP/1.1\r\n\r\n");
    let giver = server.givers.recv().unwrap();
    drop(client);
    giver(Ok(Response::empty(204)));
    server.is_well();
    server.end();
}

#[test]
fn slow_bodies_do_not_block_other_bodies() {
    let server = TestServer::new();
    let head = "POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
    // Bodies that are large already, and then stop.
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let mut client = server.connect();
            client.say(head).say(vec![b'x'; 70_000]);
            client
        })
        .collect();
    for _ in 0..3 {
        let mut quick = server.connect();
        quick.say(head).say(vec![b'y'; 100_000]);
        assert_eq!(quick.reply().body.len(), 100_000);
    }
    server.is_well();
    drop(slow);
    server.is_well();
    server.end();
}

#[test]
fn chunked_body_may_come_in_pieces_and_times_out() {
    let server = TestServer::new();
    let mut client = server.connect();
    client.say("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.reply().status, 100);
    for byte in b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET /tiny HTTP/1.1\r\n\r\n" {
        client.say([*byte]);
    }
    assert_eq!(
        (client.reply().text(), client.reply().text()),
        ("hello world", "tiny")
    );
    server.end();
    let server = one(|limits| limits.pause = SHORT);
    let mut client = server.connect();
    client.say("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    assert_eq!(client.reply().status, 408);
    server.end();
}
