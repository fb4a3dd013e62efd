//! Answers with a file: the whole of it, a range, or 304 if the client has it already.

use super::support::{LARGE, TestServer};
use crate::wait::wait_until;

fn server() -> TestServer {
    let server = TestServer::new();
    std::fs::write(server.directory.path().join("ten"), b"0123456789").unwrap();
    std::fs::write(server.directory.path().join("none"), b"").unwrap();
    // A time before 1970 does no harm.
    let old = std::time::SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1 << 20);
    let ten = std::fs::File::options()
        .write(true)
        .open(server.directory.path().join("ten"));
    ten.unwrap().set_modified(old).unwrap();
    server
}

#[test]
fn files_are_sent_with_cache_headers() {
    let server = server();
    let mut client = server.connect();
    let whole = client.get("/file/ten");
    assert_eq!((whole.status, whole.text()), (200, "0123456789"));
    assert_eq!(whole.header("Content-Type"), Some("image/png"));
    let tag = whole.header("ETag").unwrap();
    assert!(tag.starts_with('"'), "{tag}");

    let mut check = |headers: &str, status: u16, body: &str, range: Option<&str>| {
        client.say(format!("GET /file/ten HTTP/1.1\r\n{headers}\r\n\r\n"));
        let reply = client.reply();
        assert_eq!(
            (reply.status, reply.header("Content-Range")),
            (status, range),
            "{headers}"
        );
        assert!(
            status == 416 || reply.text() == body,
            "{headers}: {}",
            reply.text()
        );
        assert!(
            status == 416 || reply.header("ETag") == Some(tag),
            "{headers}"
        );
    };
    check(&format!("If-None-Match: {tag}"), 304, "", None);
    check(&format!("If-None-Match: \"other\", {tag}"), 304, "", None);
    check("If-None-Match: *", 304, "", None);
    check("If-None-Match: \"other\"", 200, "0123456789", None);
    // Other conditions are ignored.
    check(
        "If-Modified-Since: Thu, 01 Jan 2037 00:00:00 GMT",
        200,
        "0123456789",
        None,
    );
    check("Range: bytes=2-4", 206, "234", Some("bytes 2-4/10"));
    check("Range: bytes=-1", 206, "9", Some("bytes 9-9/10"));
    check("Range: bytes=8-", 206, "89", Some("bytes 8-9/10"));
    check("Range: bytes=10-", 416, "", Some("bytes */10"));
    check("Range: bytes=0-1,3-4", 200, "0123456789", None);
    check(
        "Range: bytes=0-0\r\nIf-Range: \"old\"",
        206,
        "0",
        Some("bytes 0-0/10"),
    );
    server.end();
}

#[test]
fn odd_files_and_requests_are_answered() {
    let server = server();
    let mut client = server.connect();
    assert_eq!(
        (
            client.get("/file/none").status,
            client.get("/file/gone").status
        ),
        (200, 404)
    );
    assert_eq!(client.get("/file/%2e").status, 404);
    let fifo = server.directory.path().join("fifo");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, 0o600.into(), 0).unwrap();
    assert_eq!(client.get("/file/fifo").status, 404);
    client.say("HEAD /file/ten HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n");
    let head = client.reply_to(true).unwrap();
    assert_eq!(
        (head.status, head.header("Content-Length")),
        (200, Some("10"))
    );
    assert_eq!(client.get("/file/ten").text(), "0123456789");
    server.end();
}

#[test]
fn large_file_is_streamed_between_other_requests() {
    let server = server();
    let bytes: Vec<u8> = (0..LARGE).map(|at| (at / 7) as u8).collect();
    std::fs::write(server.directory.path().join("large"), &bytes).unwrap();
    let mut client = server.connect();
    client.say("GET /file/large HTTP/1.1\r\n\r\nGET /file/ten HTTP/1.1\r\n\r\n");
    server.is_well();
    assert!(client.reply().body == bytes);
    assert_eq!(client.reply().text(), "0123456789");
    server.end();
}

#[test]
fn connection_is_closed_if_the_file_shrinks() {
    let server = server();
    let path = server.directory.path().join("large");
    std::fs::write(&path, vec![1; LARGE]).unwrap();
    let mut client = server.connect();
    client
        .say("GET /file/large HTTP/1.1\r\n\r\n")
        .read_until("\r\n\r\n");
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(10)
        .unwrap();
    let mut read = 0;
    wait_until("the connection ends", || {
        read += 1;
        !client.more()
    });
    assert!(client.text().len() < LARGE);
    server.end();
}
