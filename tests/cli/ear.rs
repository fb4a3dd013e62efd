//! A stand-in for the daemon, which hears what the command asks.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

use crate::support::House;

/// Answers, and tells what was asked.
pub(crate) struct Ear {
    pub(crate) house: House,
    pub(crate) asked: Receiver<String>,
}

impl Ear {
    /// With the same body whatever is asked, but for what an id is looked up by.
    pub(crate) fn new() -> Self {
        Self::saying(|asked| match asked {
            "GET /images/ids" => (200, r#"{"ids":[1,2,3,4,5,6,7,8,9]}"#),
            "GET /playlists" => (200, "[]"),
            asked if is_look_up(asked) => (200, NOTHING),
            _ => (200, ANSWER),
        })
    }

    pub(crate) fn saying(says: fn(&str) -> (u16, &str)) -> Self {
        let house = House::new();
        let listener = UnixListener::bind(house.socket()).unwrap();
        let (sender, asked) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                while let Some(request) = request(&mut reader) {
                    // Before the answer, which lets the verb end and what was asked be looked at.
                    sender.send(request.clone()).unwrap();
                    let (status, body) = says(&request);
                    let length = body.len();
                    let head = format!("HTTP/1.1 {status} \r\nContent-Length: {length}\r\n\r\n");
                    write!(reader.get_mut(), "{head}{body}").unwrap();
                }
            }
        });
        Self { house, asked }
    }

    /// Checks that a line leads to these requests and no others.
    #[track_caller]
    pub(crate) fn check(&self, line: &str, expected: &[&str]) {
        let words: Vec<&str> = ["--json"].into_iter().chain(line.split(' ')).collect();
        let output = self.house.murald(&words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {told}");
        let is_meant = |asked: &String| expected.contains(&&**asked) || !is_look_up(asked);
        let asked: Vec<String> = self.asked.try_iter().filter(is_meant).collect();
        assert_eq!(asked, expected, "{line}");
    }
}

/// Whether it only asks what an id or a number may mean.
fn is_look_up(asked: &str) -> bool {
    let named =
        |asked: &str| asked.starts_with("GET /images?name=") && asked.ends_with("per_page=200");
    matches!(asked, "GET /images/ids" | "GET /playlists" | "GET /folders?parent_id=all")
        || named(asked)
}

/// `METHOD PATH BODY`; a connection's end is none.
fn request(reader: &mut BufReader<UnixStream>) -> Option<String> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
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
        // Once more through the parser: whoever sends no JSON is found out.
        body => format!(" {}", serde_json::from_slice::<Value>(body).unwrap()),
    };
    Some(format!("{method} {path}{body}"))
}

const NOTHING: &str =
    r#"{"data":[],"pagination":{"page":1,"per_page":200,"total_items":0,"total_pages":0}}"#;
const ANSWER: &str = r#"{"version":"99.0.0","watch":[{"path":"/w","directory":"/w"}],"images":[{"image_id":1,"media_type":"image"},{"image_id":2,"media_type":"image"}],"ids":[5],"data":[{"id":5}],"pagination":{"page":1,"per_page":200,"total_items":1,"total_pages":1}}"#;
