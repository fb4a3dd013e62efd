//! A stand-in for the daemon that records the requests of the command.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

use crate::support::TestDaemon;

/// Answers requests, and passes them on.
pub(crate) struct StandIn {
    pub(crate) daemon: TestDaemon,
    pub(crate) asked: Receiver<String>,
}

impl StandIn {
    /// Gives the same answer to every request, except those that look up an id.
    pub(crate) fn new() -> Self {
        Self::saying(|asked| match asked {
            "GET /images/ids" => (200, r#"{"ids":[1,2,3,4,5,6,7,8,9]}"#),
            "GET /playlists" => (200, "[]"),
            "GET /folders?parent_id=all" => (200, FOLDERS),
            asked if is_look_up(asked) => (200, NOTHING),
            _ => (200, ANSWER),
        })
    }

    pub(crate) fn saying(says: fn(&str) -> (u16, &str)) -> Self {
        let daemon = TestDaemon::new();
        let listener = UnixListener::bind(daemon.socket()).unwrap();
        let (sender, asked) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                while let Some(request) = request(&mut reader) {
                    // Sent before the answer, after which the command may exit and the test check
                    // `asked`.
                    sender.send(request.clone()).unwrap();
                    let (status, body) = says(&request);
                    let length = body.len();
                    let head = format!("HTTP/1.1 {status} \r\nContent-Length: {length}\r\n\r\n");
                    write!(reader.get_mut(), "{head}{body}").unwrap();
                }
            }
        });
        Self { daemon, asked }
    }

    /// Checks that a line makes exactly these requests, look-ups aside.
    #[track_caller]
    pub(crate) fn check(&self, line: &str, expected: &[&str]) {
        let words: Vec<&str> = ["--json"].into_iter().chain(line.split(' ')).collect();
        let output = self.daemon.murald(&words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {told}");
        let is_meant = |asked: &String| expected.contains(&&**asked) || !is_look_up(asked);
        let asked: Vec<String> = self.asked.try_iter().filter(is_meant).collect();
        assert_eq!(asked, expected, "{line}");
    }
}

/// Whether the request only looks up an id or a name.
fn is_look_up(asked: &str) -> bool {
    let named =
        |asked: &str| asked.starts_with("GET /images?name=") && asked.ends_with("per_page=200");
    matches!(
        asked,
        "GET /images/ids" | "GET /playlists" | "GET /folders?parent_id=all"
    ) || named(asked)
}

/// The next request as `METHOD PATH BODY`; `None` at the end of the connection.
fn request(reader: &mut BufReader<UnixStream>) -> Option<String> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let body = match body.as_slice() {
        b"" => String::new(),
        // Parsing the body ensures that it is JSON.
        body => format!(" {}", serde_json::from_slice::<Value>(body).unwrap()),
    };
    Some(format!("{method} {path}{body}"))
}

const NOTHING: &str =
    r#"{"data":[],"pagination":{"page":1,"per_page":200,"total_items":0,"total_pages":0}}"#;
const FOLDERS: &str = r#"{"data":[{"id":3,"name":"f","parent_id":null}],"pagination":{"page":1,"per_page":200,"total_items":1,"total_pages":1}}"#;
const ANSWER: &str = r#"{"version":"99.0.0","watch":[{"path":"/w","directory":"/w"}],"images":[{"image_id":1,"media_type":"image"},{"image_id":2,"media_type":"image"}],"ids":[5],"data":[{"id":5}],"pagination":{"page":1,"per_page":200,"total_items":1,"total_pages":1}}"#;
