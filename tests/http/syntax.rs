//! Malformed requests, and some that are merely unusual.

use super::support::{PATIENCE, TestServer};

/// Sends bytes and compares the statuses of all answers. `closed`: the server hangs up after them.
fn check(server: &TestServer, bytes: &[u8], statuses: &[u16], closed: bool) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    let mut client = server.connect();
    client.say(bytes);
    for &status in statuses {
        let reply = client.reply_to(bytes.starts_with(b"HEAD")).expect(&shown);
        assert_eq!(reply.status, status, "{shown:?}: {reply:?}");
        let id = reply.header("X-Request-ID");
        assert!(
            status == 100 || id.is_some_and(|id| !id.is_empty()),
            "{shown:?} has no id"
        );
        if status >= 400 && !bytes.starts_with(b"HEAD") {
            let body = reply.json();
            assert_eq!(
                (&body["code"], body["error"].is_string()),
                (&status.into(), true)
            );
        }
        assert_eq!(
            reply.header("Connection") == Some("close"),
            closed,
            "{shown:?}: {reply:?}"
        );
    }
    if closed {
        assert!(client.is_hung_up(), "{shown:?}");
    } else {
        assert_eq!(client.get("/tiny").text(), "tiny", "{shown:?}");
    }
}

#[test]
fn refused_requests_are_answered_and_the_connection_closed() {
    let server = TestServer::new();
    let check = |bytes: &[u8], status| check(&server, bytes, &[status], true);
    check(b"garbage\r\n\r\n", 400);
    check(b"GET /\r\n\r\n", 400);
    check(b"GET /tiny HTTP/1.1\nHost: x\n\n", 400);
    check(b"GET /tiny HTTP/0.9\r\n\r\n", 505);
    check(b"GET /tiny HTTP/2.0\r\n\r\n", 505);
    check(b"GET /tiny HTTP/3.0\r\n\r\n", 505);
    check(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
    check(b"GET /tiny HTTP/1.1\r\nnocolon\r\n\r\n", 400);
    check(b"GET /tiny HTTP/1.1\r\nHost : x\r\n\r\n", 400);
    check(
        b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        400,
    );
    check(b"POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400);
    check(
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc",
        501,
    );
    for chunks in [
        "x\r\nabc",
        "3\r\nabcd\r\n0\r\n\r\n",
        "\r\n\r\n",
        "-1\r\n",
        "0\r\nTrailer: x\r\n\r\n",
    ] {
        let head = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(format!("{head}{chunks}").as_bytes(), 400);
    }
    check(b"GET /tiny HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
    check(
        b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc",
        400,
    );
    check(
        b"POST /echo HTTP/1.1\r\nExpect: x\r\nContent-Length: 3\r\n\r\n",
        417,
    );
    for length in [
        "8388609",
        "1000000000000",
        "9223372036854775808",
        "18446744073709551615",
    ] {
        check(
            format!("POST /echo HTTP/1.1\r\nContent-Length: {length}\r\n\r\nabc").as_bytes(),
            413,
        );
    }
    check(
        format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(9000)).as_bytes(),
        414,
    );
    check(&[b'a'; 20_000], 414);
    check(
        format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(20_000)).as_bytes(),
        431,
    );
    check(
        format!("GET / HTTP/1.1\r\n{}\r\n", "X: a\r\n".repeat(65)).as_bytes(),
        431,
    );
    server.end();
}

#[test]
fn well_formed_but_wrong_requests_keep_the_connection() {
    let server = TestServer::new();
    let check = |bytes: &[u8], status| check(&server, bytes, &[status], false);
    check(b"GET /nothing HTTP/1.1\r\n\r\n", 404);
    check(b"GET /tiny/ HTTP/1.1\r\n\r\n", 404);
    check(b"OPTIONS * HTTP/1.1\r\n\r\n", 404);
    check(b"POST /tiny HTTP/1.1\r\n\r\n", 405);
    check(b"get /tiny HTTP/1.1\r\n\r\n", 405);
    check(b"FROB /tiny HTTP/1.1\r\n\r\n", 405);
    check(b"GET /echo/%zz HTTP/1.1\r\n\r\n", 400);
    check(b"GET /echo/%ff HTTP/1.1\r\n\r\n", 400);
    check(b"GET /tiny?a=%f HTTP/1.1\r\n\r\n", 400);
    check(b"GET /panic HTTP/1.1\r\n\r\n", 500);
    check(b"GET /fail HTTP/1.1\r\n\r\n", 500);
    server.end();
}

#[test]
fn unusual_requests_are_served() {
    let server = TestServer::new();
    let ok = |bytes: &[u8]| check(&server, bytes, &[200], false);
    ok(b"GET /tiny HTTP/1.1\r\n\r\n");
    ok(b"\r\nGET /tiny HTTP/1.1\r\n\r\n");
    ok(b"GET http://localhost/tiny HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n");
    ok(b"GET /t%69ny?x=y HTTP/1.1\r\n\r\n");
    ok(b"HEAD /large HTTP/1.1\r\n\r\n");
    ok(b"GET /tiny HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    check(&server, b"GET /empty HTTP/1.1\r\n\r\n", &[204], false);
    check(&server, b"GET /tiny HTTP/1.0\r\n\r\n", &[200], true);
    check(
        &server,
        b"GET /tiny HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        &[200],
        true,
    );
    check(
        &server,
        b"GET /tiny HTTP/1.1\r\nConnection: close\r\n\r\n",
        &[200],
        true,
    );
    let three = b"GET /tiny HTTP/1.1\r\n\r\n".repeat(3);
    check(&server, &three, &[200, 200, 200], false);
    // The client shuts down its sending side after the request, as netcat does.
    let mut client = server.connect();
    client.say("GET /large HTTP/1.1\r\n\r\n");
    client.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.reply().body.len(), super::support::LARGE);
    server.end();
}

#[test]
fn expect_continue_is_answered() {
    let server = TestServer::new();
    let mut client = server.connect();
    client.say("POST /echo HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.reply().status, 100);
    assert_eq!(client.say("abc").reply().text(), "abc");
    // If the body is there already, no 100 is sent.
    client.say("POST /echo HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\ndef");
    assert_eq!(client.reply().text(), "def");
    server.end();
}

#[test]
fn path_parameters_keep_encoded_slashes_and_are_decoded_once() {
    let server = TestServer::new();
    let mut client = server.connect();
    for (path, name) in [("a%2Fb", "a/b"), ("%2525", "%25"), ("caf%C3%A9+", "café+")] {
        assert_eq!(client.get(&format!("/echo/{path}")).text(), name);
    }
    assert_eq!(client.get("/echo/").status, 404);
    server.end();
}

#[test]
fn valid_request_ids_are_kept() {
    let server = TestServer::new();
    let mut client = server.connect();
    let mut check = |offered: &str, kept: bool| {
        client.say(format!(
            "GET /tiny HTTP/1.1\r\nx-request-id: {offered}\r\n\r\n"
        ));
        let reply = client.reply();
        assert_eq!(
            reply.header("X-Request-ID") == Some(offered),
            kept,
            "{offered}"
        );
    };
    check("abc.DEF_1-2", true);
    check(&"x".repeat(64), true);
    check(&"x".repeat(65), false);
    check("no spaces", false);
    let reply = client
        .say("POST / HTTP/1.1\r\nX-Request-ID: me\r\nExpect: x\r\n\r\n")
        .reply();
    assert_eq!(
        (reply.status, reply.header("X-Request-ID")),
        (417, Some("me"))
    );
    server.end();
}

#[test]
fn pipelined_requests_are_answered_in_order_without_blocking_others() {
    let server = TestServer::new();
    let mut client = server.connect();
    let many: String = (0..900)
        .map(|n| format!("GET /echo/{n} HTTP/1.1\r\n\r\n"))
        .collect();
    client.say(many);
    server.is_well();
    for number in 0..900 {
        assert_eq!(client.reply().text(), number.to_string());
    }
    server.end();
}

#[test]
fn connection_serves_a_thousand_requests() {
    let server = TestServer::new();
    let mut client = server.connect();
    for _ in 0..999 {
        assert_eq!(client.get("/tiny").header("Connection"), None);
    }
    assert_eq!(client.get("/tiny").header("Connection"), Some("close"));
    assert!(client.is_hung_up());
    server.end();
}

#[test]
fn bodies_up_to_the_limit_are_accepted() {
    let server = TestServer::new();
    let body = vec![b'b'; 8 << 20];
    let mut client = server.connect();
    let mut writer = client.socket.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write;
            writer
                .write_all(b"POST /echo HTTP/1.1\r\nContent-Length: 8388608\r\n\r\n")
                .unwrap();
            writer.write_all(&body).unwrap();
        });
        assert!(client.reply().body == body);
    });
    // Chunked bodies have the same limit.
    for (chunks, status) in [(8, 200), (9, 413)] {
        let mut client = server.connect();
        client.say("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut writer = client.socket.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                use std::io::Write;
                let chunk = [b"100000\r\n", &body[..1 << 20], b"\r\n"].concat();
                // The server closes the connection after a refusal.
                for part in std::iter::repeat_n(&*chunk, chunks).chain([&b"0\r\n\r\n"[..]]) {
                    writer.write_all(part).ok();
                }
            });
            assert_eq!(client.reply().status, status);
        });
    }
    // An endless line of a chunk is refused, however fast it comes: chunks may be six times as large as
    // their body.
    let mut client = server.connect();
    client.say("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;");
    for _ in 0..6 {
        client.say(&body);
    }
    assert_eq!(client.reply().status, 400);
    // A client that is refused during its body can still read the answer.
    let mut client = server.connect();
    client.socket.set_write_timeout(Some(PATIENCE)).unwrap();
    client
        .say("POST /echo HTTP/1.1\r\nContent-Length: 20000000\r\n\r\n")
        .say(&body)
        .say(&body);
    assert_eq!(client.reply().status, 413);
    server.end();
}
