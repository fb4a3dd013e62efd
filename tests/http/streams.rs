//! Event streams.

use std::time::{Duration, Instant};

use murald::internals::events::BUFFER;
use murald::internals::http::Limits;
use murald::internals::wire::{Event, GalleryDomain};

use super::support::{Client, ENDLESS, PATIENCE, TestServer};
use crate::wait::wait_until;

fn gallery() -> Event {
    Event::GalleryChanged {
        domain: GalleryDomain::Images,
    }
}

fn listen(server: &TestServer) -> Client {
    let mut client = server.connect();
    let reply = client
        .say("GET /events HTTP/1.1\r\nX-Request-ID: me\r\n\r\n")
        .reply();
    assert_eq!(reply.header("Content-Type"), Some("text/event-stream"));
    assert_eq!(reply.header("X-Request-ID"), Some("me"));
    // Sent at once, so that a script knows from when on it gets all events.
    client.read_until(": connected\n\n");
    client
}

fn subscribers(server: &TestServer) -> usize {
    let shown = format!("{:?}", server.bus);
    shown
        .chars()
        .filter(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap()
}

#[test]
fn every_stream_gets_all_events_and_ends_cleanly() {
    let server = TestServer::new();
    let mut clients: Vec<_> = (0..20).map(|_| listen(&server)).collect();
    for _ in 0..50 {
        server.bus.publish(&gallery());
    }
    for client in &mut clients {
        for _ in 0..50 {
            let text = client.read_until("\n\n");
            assert!(
                text.contains(
                    "event: gallery_changed\ndata: {\"domain\":\"images\",\"timestamp\":"
                )
            );
        }
    }
    server.bus.publish(&gallery());
    server.end();
    for client in &mut clients {
        client.read_until("event: gallery_changed\n");
        client.read_until("\r\n0\r\n\r\n");
        assert!(client.is_hung_up());
    }
}

#[test]
fn http_1_0_gets_no_chunks_and_head_gets_no_stream() {
    let server = TestServer::new();
    let mut client = server.connect();
    let reply = client.say("GET /events HTTP/1.0\r\n\r\n").reply();
    assert_eq!(reply.header("Transfer-Encoding"), None);
    assert_eq!(client.read_until("\n\n"), ": connected\n\n");
    server.bus.publish(&gallery());
    assert!(
        client
            .read_until("\n\n")
            .starts_with("event: gallery_changed\n")
    );
    let mut client = server.connect();
    assert_eq!(
        client
            .say("HEAD /events HTTP/1.1\r\n\r\n")
            .reply_to(true)
            .unwrap()
            .status,
        200
    );
    assert!(client.is_hung_up());
    server.end();
}

#[test]
fn event_stream_sends_keepalives() {
    let server = TestServer::with(Limits {
        keepalive: Duration::from_millis(30),
        ..Limits::default()
    });
    let mut client = listen(&server);
    for _ in 0..3 {
        client.read_until(": keepalive\n\n");
    }
    server.end();
}

#[test]
fn disconnected_event_client_is_noticed_at_once() {
    let server = TestServer::new();
    let client = listen(&server);
    assert_eq!(subscribers(&server), 1);
    drop(client);
    wait_until("the stream ends", || subscribers(&server) == 0);
    server.end();
}

#[test]
fn only_the_slow_client_loses_events_and_their_number_is_sent() {
    let server = TestServer::new();
    let (mut slow, mut quick) = (listen(&server), listen(&server));
    // This fills the socket, the thread's buffer and the bus's buffer, and some events are lost.
    for _ in 0..20_000 {
        server.bus.publish(&gallery());
        quick.read_until("\n\n");
    }
    let began = Instant::now();
    let mut heard = 0;
    let mut lost = 0;
    server.bus.publish(&gallery());
    while heard + lost < 20_001 {
        let text = slow.read_until("\n\n");
        if let Some((_, rest)) = text.split_once(": lost ") {
            lost += rest.split('\n').next().unwrap().parse::<usize>().unwrap();
        }
        heard += usize::from(text.contains("event: gallery_changed"));
        // The number of lost events is sent before the next event that fits.
        server.bus.publish(&gallery());
        assert!(began.elapsed() < PATIENCE);
    }
    assert!(
        lost > BUFFER && heard > BUFFER,
        "heard {heard}, lost {lost}"
    );
    server.end();
}

#[test]
fn client_that_never_reads_is_closed_and_does_not_delay_the_shutdown() {
    let server = TestServer::with(Limits {
        stream_pause: Duration::from_millis(50),
        ..Limits::default()
    });
    let _stuck = listen(&server);
    wait_until("the stream is closed", || {
        server.bus.publish(&gallery());
        subscribers(&server) == 0
    });
    server.end();

    let server = TestServer::new();
    let _stuck = listen(&server);
    for _ in 0..20_000 {
        server.bus.publish(&gallery());
    }
    server.end();
}

#[test]
fn event_streams_are_limited_and_later_requests_have_no_effect() {
    let server = TestServer::with(Limits {
        streams: 2,
        ..Limits::default()
    });
    let mut one = server.connect();
    one.say("GET /events HTTP/1.1\r\n\r\n")
        .say("GET /tiny HTTP/1.1\r\n\r\n".repeat(16));
    assert_eq!(one.reply().status, 200);
    let two = listen(&server);
    assert_eq!(server.connect().get("/events").status, 503);
    server.is_well();
    server.bus.publish(&gallery());
    one.read_until("event: gallery_changed");
    drop(two);
    wait_until("a place is free", || {
        server
            .connect()
            .say("GET /events HTTP/1.0\r\n\r\n")
            .reply()
            .status
            == 200
    });
    server.end();
}

#[test]
fn panic_in_an_event_stream_ends_only_that_stream() {
    // Adding this to the current time overflows, and the stream's thread panics.
    let server = TestServer::with(Limits {
        keepalive: Duration::MAX,
        ..Limits::default()
    });
    for _ in 0..3 {
        let mut client = server.connect();
        client.say("GET /events HTTP/1.1\r\n\r\n");
        while client.more() {}
        wait_until("the stream ends", || subscribers(&server) == 0);
        server.is_well();
    }
    server.end();
}

#[test]
fn event_stream_is_refused_if_no_thread_can_start() {
    let server = TestServer::with(Limits {
        stream_stack: ENDLESS,
        ..Limits::default()
    });
    let mut client = server.connect();
    let refused = client.get("/events");
    assert_eq!(
        (refused.status, refused.header("Retry-After")),
        (503, Some("1"))
    );
    assert_eq!(client.get("/tiny").text(), "tiny");
    assert_eq!(subscribers(&server), 0);
    server.end();
}
