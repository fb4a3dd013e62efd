//! Event streams.

use std::time::{Duration, Instant};

use murald::internals::events::BUFFER;
use murald::internals::http::Limits;
use murald::internals::wire::{Event, GalleryDomain};

use super::support::{Client, ENDLESS, House, PATIENCE};
use crate::wait::wait_until;

fn gallery() -> Event {
    Event::GalleryChanged { domain: GalleryDomain::Images }
}

fn listen(house: &House) -> Client {
    let mut client = house.connect();
    let reply = client.say("GET /events HTTP/1.1\r\nX-Request-ID: me\r\n\r\n").reply();
    assert_eq!(reply.header("Content-Type"), Some("text/event-stream"));
    assert_eq!(reply.header("X-Request-ID"), Some("me"));
    // Sent at once, so that a script knows from when on it gets all events.
    client.read_until(": connected\n\n");
    client
}

fn subscribers(house: &House) -> usize {
    let shown = format!("{:?}", house.bus);
    shown.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn every_stream_gets_all_events_and_ends_cleanly() {
    let house = House::new();
    let mut clients: Vec<_> = (0..20).map(|_| listen(&house)).collect();
    for _ in 0..50 {
        house.bus.publish(&gallery());
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
    house.bus.publish(&gallery());
    house.end();
    for client in &mut clients {
        client.read_until("event: gallery_changed\n");
        client.read_until("\r\n0\r\n\r\n");
        assert!(client.is_hung_up());
    }
}

#[test]
fn http_1_0_gets_no_chunks_and_head_gets_no_stream() {
    let house = House::new();
    let mut client = house.connect();
    let reply = client.say("GET /events HTTP/1.0\r\n\r\n").reply();
    assert_eq!(reply.header("Transfer-Encoding"), None);
    assert_eq!(client.read_until("\n\n"), ": connected\n\n");
    house.bus.publish(&gallery());
    assert!(client.read_until("\n\n").starts_with("event: gallery_changed\n"));
    let mut client = house.connect();
    assert_eq!(client.say("HEAD /events HTTP/1.1\r\n\r\n").reply_to(true).unwrap().status, 200);
    assert!(client.is_hung_up());
    house.end();
}

#[test]
fn event_stream_sends_keepalives() {
    let house = House::with(Limits { keepalive: Duration::from_millis(30), ..Limits::default() });
    let mut client = listen(&house);
    for _ in 0..3 {
        client.read_until(": keepalive\n\n");
    }
    house.end();
}

#[test]
fn disconnected_event_client_is_noticed_at_once() {
    let house = House::new();
    let client = listen(&house);
    assert_eq!(subscribers(&house), 1);
    drop(client);
    wait_until("the stream ends", || subscribers(&house) == 0);
    house.end();
}

#[test]
fn only_the_slow_client_loses_events_and_their_number_is_sent() {
    let house = House::new();
    let (mut slow, mut quick) = (listen(&house), listen(&house));
    // This fills the socket, the thread's buffer and the bus's buffer, and some events are lost.
    for _ in 0..20_000 {
        house.bus.publish(&gallery());
        quick.read_until("\n\n");
    }
    let began = Instant::now();
    let mut heard = 0;
    let mut lost = 0;
    house.bus.publish(&gallery());
    while heard + lost < 20_001 {
        let text = slow.read_until("\n\n");
        if let Some((_, rest)) = text.split_once(": lost ") {
            lost += rest.split('\n').next().unwrap().parse::<usize>().unwrap();
        }
        heard += usize::from(text.contains("event: gallery_changed"));
        // The number of lost events is sent before the next event that fits.
        house.bus.publish(&gallery());
        assert!(began.elapsed() < PATIENCE);
    }
    assert!(lost > BUFFER && heard > BUFFER, "heard {heard}, lost {lost}");
    house.end();
}

#[test]
fn client_that_never_reads_is_closed_and_does_not_delay_the_shutdown() {
    let house =
        House::with(Limits { stream_pause: Duration::from_millis(50), ..Limits::default() });
    let _stuck = listen(&house);
    wait_until("the stream is closed", || {
        house.bus.publish(&gallery());
        subscribers(&house) == 0
    });
    house.end();

    let house = House::new();
    let _stuck = listen(&house);
    for _ in 0..20_000 {
        house.bus.publish(&gallery());
    }
    house.end();
}

#[test]
fn event_streams_are_limited_and_later_requests_have_no_effect() {
    let house = House::with(Limits { streams: 2, ..Limits::default() });
    let mut one = house.connect();
    one.say("GET /events HTTP/1.1\r\n\r\n").say("GET /tiny HTTP/1.1\r\n\r\n".repeat(16));
    assert_eq!(one.reply().status, 200);
    let two = listen(&house);
    assert_eq!(house.connect().get("/events").status, 503);
    house.is_well();
    house.bus.publish(&gallery());
    one.read_until("event: gallery_changed");
    drop(two);
    wait_until("a place is free", || {
        house.connect().say("GET /events HTTP/1.0\r\n\r\n").reply().status == 200
    });
    house.end();
}

#[test]
fn panic_in_an_event_stream_ends_only_that_stream() {
    // Adding this to the current time overflows, and the stream's thread panics.
    let house = House::with(Limits { keepalive: Duration::MAX, ..Limits::default() });
    for _ in 0..3 {
        let mut client = house.connect();
        client.say("GET /events HTTP/1.1\r\n\r\n");
        while client.more() {}
        wait_until("the stream ends", || subscribers(&house) == 0);
        house.is_well();
    }
    house.end();
}

#[test]
fn event_stream_is_refused_if_no_thread_can_start() {
    let house = House::with(Limits { stream_stack: ENDLESS, ..Limits::default() });
    let mut client = house.connect();
    let refused = client.get("/events");
    assert_eq!((refused.status, refused.header("Retry-After")), (503, Some("1")));
    assert_eq!(client.get("/tiny").text(), "tiny");
    assert_eq!(subscribers(&house), 0);
    house.end();
}
