//! Clients that take their time: every wait has an end.

use std::time::Duration;

use murald::http::{Limits, Response};

use super::support::{House, LARGE, PATIENCE};

const SHORT: Duration = Duration::from_millis(60);

fn one(change: impl FnOnce(&mut Limits)) -> House {
    let mut limits = Limits::default();
    change(&mut limits);
    House::with(limits)
}

#[test]
fn an_idle_connection_is_closed() {
    let house = one(|limits| limits.idle = SHORT);
    let mut client = house.connect();
    assert_eq!(client.get("/tiny").text(), "tiny");
    assert!(client.is_hung_up());
    assert!(house.connect().is_hung_up());
    house.is_well();
    house.end();
}

#[test]
fn a_head_or_body_that_does_not_come_is_given_up() {
    let check = |house: House, bytes: &str| {
        let mut clients: Vec<_> = (0..16).map(|_| house.connect()).collect();
        for client in &mut clients {
            client.say(bytes);
        }
        house.is_well();
        for client in &mut clients {
            assert_eq!(client.reply().status, 408);
            client.socket.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(client.is_hung_up());
        }
        house.is_well();
        house.end();
    };
    check(one(|limits| limits.head_time = SHORT), "GET / HTTP/1.1\r\nHost: ");
    check(
        one(|limits| limits.body_pause = SHORT),
        "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\na",
    );
    check(
        one(|limits| limits.body_time = SHORT),
        "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\na",
    );
}

#[test]
fn dripping_a_head_does_not_prolong_it() {
    let house = one(|limits| limits.head_time = SHORT);
    let mut client = house.connect();
    client.say("GET / HTTP/1.1\r\nX: ");
    client.socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut piece = [0; 16];
    let end = std::time::Instant::now() + PATIENCE;
    // The read's time-out paces the drip.
    while std::io::Read::read(&mut client.socket, &mut piece).is_err() {
        client.say("x");
        assert!(std::time::Instant::now() < end, "it drips on and on");
    }
    assert!(piece.starts_with(b"HTTP/1.1 408"));
    house.end();
}

#[test]
fn clients_that_do_not_read_are_closed_and_hold_nobody_up() {
    let house = one(|limits| limits.write_pause = SHORT);
    let mut clients: Vec<_> = (0..16).map(|_| house.connect()).collect();
    for client in &mut clients {
        client.say("GET /large HTTP/1.1\r\n\r\n");
    }
    house.is_well();
    for client in &mut clients {
        // Read only once the server has given up: there is a part of the answer at most.
        let mut waited =
            [rustix::event::PollFd::new(&client.socket, rustix::event::PollFlags::empty())];
        let time = rustix::event::Timespec::try_from(PATIENCE).unwrap();
        assert_eq!(rustix::event::poll(&mut waited, Some(&time)), Ok(1), "never closed");
        while client.more() {}
        assert!(client.text().len() < LARGE);
    }
    house.is_well();
    house.end();
}

#[test]
fn promised_answers_come_when_they_are_given() {
    let house = House::new();
    let mut clients: Vec<_> = (0..8).map(|_| house.connect()).collect();
    for client in &mut clients {
        // The next request waits its turn.
        client.say("GET /later HTTP/1.1\r\n\r\nGET /tiny HTTP/1.1\r\n\r\n");
    }
    let givers: Vec<_> = clients.iter().map(|_| house.givers.recv().unwrap()).collect();
    house.is_well();
    for giver in givers {
        giver.give(Ok(Response::bytes(200, "text/plain", b"late".as_slice())));
    }
    for client in &mut clients {
        assert_eq!((client.reply().text(), client.reply().text()), ("late", "tiny"));
    }
    house.end();
}

#[test]
fn promises_that_are_not_kept_are_answered_all_the_same() {
    let house = one(|limits| limits.promises = 1);
    let mut client = house.connect();
    client.say("GET /later HTTP/1.1\r\n\r\n");
    let giver = house.givers.recv().unwrap();
    assert_eq!(house.connect().get("/later").status, 503);
    drop(giver);
    assert_eq!(client.reply().status, 500);
    // The place is free again once the answer is out.
    client.say("GET /later?ms=30 HTTP/1.1\r\n\r\n");
    let giver = house.givers.recv().unwrap();
    assert_eq!(client.reply().status, 503);
    assert!(!giver.is_awaited());
    drop(giver);
    // A client that leaves is noticed at once.
    client.say("GET /later HTTP/1.1\r\n\r\n");
    let giver = house.givers.recv().unwrap();
    drop(client);
    super::support::until("the client is gone", || !giver.is_awaited());
    drop(giver);
    house.end();
}

#[test]
fn large_bodies_that_do_not_come_are_counted() {
    let house = one(|limits| limits.bodies = 2);
    let large = "POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
    let mut slow = [house.connect(), house.connect()];
    for client in &mut slow {
        client.say("POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 70000\r\n\r\n");
        assert_eq!(client.reply().status, 100);
    }
    let mut third = house.connect();
    assert_eq!(third.say(large).reply().status, 503);
    let mut small = house.connect();
    assert_eq!(
        small.say("POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").reply().text(),
        "hello"
    );
    slow[0].say(vec![b'x'; 70_000]);
    assert_eq!(slow[0].reply().body.len(), 70_000);
    let mut fourth = house.connect();
    fourth.say(large).say(vec![b'y'; 100_000]);
    assert_eq!(fourth.reply().body.len(), 100_000);
    house.end();
}
