//! A client of the API that speaks plain HTTP/1.1 over the socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use super::PATIENCE;

pub struct Client {
    socket: PathBuf,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", b"")
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "", b"")
    }

    /// Deletes images and their files.
    pub fn delete_images(&self, ids: &[i64]) -> Answer {
        let body = serde_json::json!({ "ids": ids }).to_string();
        self.send("DELETE", "/images", "", body.as_bytes())
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "", body.to_string().as_bytes())
    }

    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, "", body.to_string().as_bytes())
    }

    /// `headers` are complete lines with line ends.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Whether a new client is served. The connection of a refused client may be closed before the
    /// client has sent its request or read the answer.
    pub fn is_served(&self, path: &str) -> bool {
        self.try_send("GET", path, "", b"")
            .is_ok_and(|answer| answer.status == 200)
    }

    fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> std::io::Result<Answer> {
        self.ask(method, path, headers, body)?.answer()
    }

    /// Sends a request, whose answer can be read later.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> std::io::Result<Asked> {
        let mut stream = connect(&self.socket);
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        Ok(Asked(BufReader::new(stream)))
    }
}

/// A request that was sent.
pub struct Asked(BufReader<UnixStream>);

impl Asked {
    pub fn answer(mut self) -> std::io::Result<Answer> {
        let (status, headers) = read_head(&mut self.0)?;
        let mut body = Vec::new();
        self.0.read_to_end(&mut body)?;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body of a successful response.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!(
            (200..300).contains(&self.status),
            "{}: {}",
            self.status,
            self.text()
        );
        self.json()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// Checks that the response is an error with this status; returns its body.
    #[track_caller]
    pub fn fails(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        assert_eq!(body["code"], status, "{body}");
        assert!(
            body["error"]
                .as_str()
                .is_some_and(|error| !error.is_empty()),
            "{body}"
        );
        body
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Reads the event stream.
pub struct Events {
    reader: BufReader<UnixStream>,
}

impl Events {
    pub fn new(socket: &Path, types: &str) -> Self {
        let mut stream = connect(socket);
        let query = if types.is_empty() {
            String::new()
        } else {
            format!("?types={types}")
        };
        // The stream is not chunked with HTTP/1.0.
        write!(stream, "GET /events{query} HTTP/1.0\r\n\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let (status, _) = read_head(&mut reader).unwrap();
        assert_eq!(status, 200);
        Self { reader }
    }

    /// Returns the type and payload of the next event.
    #[track_caller]
    pub fn next(&mut self) -> (String, Value) {
        self.try_next().expect("the event stream has ended")
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub fn try_next(&mut self) -> Option<(String, Value)> {
        let mut kind = String::new();
        let mut line = String::new();
        // Keepalive lines arrive in between.
        let deadline = Instant::now() + PATIENCE;
        loop {
            line.clear();
            assert!(Instant::now() < deadline, "no event came");
            match self.reader.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => panic!("no event came: {error}"),
            }
            if let Some(name) = line.strip_prefix("event: ") {
                kind = name.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((kind, serde_json::from_str(data).unwrap()));
            }
        }
    }

    /// Returns the payload of the next event of this type; skips others.
    #[track_caller]
    pub fn wait_for(&mut self, wanted: &str) -> Value {
        let mut passed = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let (kind, data) = self.next();
            if kind == wanted {
                return data;
            }
            passed.push(kind);
        }
        panic!("no {wanted} came, but {passed:?}");
    }
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket)
        .unwrap_or_else(|error| panic!("cannot connect to {}: {error}", socket.display()));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn read_head(reader: &mut impl BufRead) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no status: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => return Ok((status, headers)),
        }
    }
}
