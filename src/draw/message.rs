//! Defines the messages on the renderer's socket, a line of JSON each way, and the server that reads
//! them.
//!
//! Each message names the version of its sender. A message of another version is not understood: the
//! daemon then replaces the process with one of its own version.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::fit::Span;
use crate::process::text;
use crate::wire::{Fit, Position};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The longest line in bytes, enough for some thousand outputs.
pub(super) const LINE_MAX: usize = 1 << 20;

/// The wanted pictures of all outputs. Outputs that it does not name are cleared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub version: String,
    pub outputs: Vec<Wanted>,
    pub transition: Transition,
}

/// The wanted picture of one output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub output: String,
    #[serde(with = "text")]
    pub path: OsString,
    /// The checksum of the file: the same picture may have another path by now.
    pub content: String,
    pub style: Style,
    /// How the second surface of the output differs from the wallpaper, if there is to be one.
    pub backdrop: Option<Backdrop>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Backdrop {
    /// The standard deviation in pixels of the output.
    pub blur: f64,
    /// How much black is laid over, from 0 to 1.
    pub dim: f64,
}

/// Everything that decides how a picture looks after the transition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Style {
    pub fit: Fit,
    pub position: Position,
    /// Red, green and blue of the area that the picture leaves free.
    pub fill: [u8; 3],
    /// The part of the picture if it is stretched over several outputs, which it covers together.
    pub span: Option<Span>,
    /// An animated picture plays.
    pub animate: bool,
}

/// How one picture replaces another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transition {
    pub effect: Effect,
    /// In seconds.
    pub duration: f64,
    /// The two inner points of a cubic Bézier curve, as CSS has them.
    pub easing: [f64; 4],
    pub fps_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    None,
    Fade,
    /// A straight edge; 0 degrees: from right to left, 90: from top to bottom.
    Wipe {
        angle: f64,
    },
    /// A circle.
    Grow {
        origin: Position,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Response {
    pub version: String,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// These outputs show what they should; others that were named are not connected.
    Shown(Vec<String>),
    File {
        #[serde(with = "text")]
        path: OsString,
        why: String,
    },
    /// The picture cannot be shown here, and a retry would not change that.
    Refused(String),
    /// Another request came before this one was carried out.
    Superseded,
    /// A new process must draw the pictures: this one's surfaces would be in the wrong order.
    Replace,
    /// The request is of another version, or is invalid.
    NotUnderstood,
}

impl Request {
    /// `None` for a request of another version.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let request: Self = serde_json::from_slice(line).ok()?;
        (request.version == VERSION).then_some(request)
    }
}

impl Response {
    pub(crate) fn new(outcome: Outcome) -> Self {
        Self {
            version: VERSION.to_owned(),
            outcome,
        }
    }

    /// `None` for a response of another version.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let response: Self = serde_json::from_slice(line).ok()?;
        (response.version == VERSION).then_some(response)
    }
}

/// A message as it goes over the socket.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("texts, numbers and lists");
    line.push(b'\n');
    line
}

impl Wanted {
    /// Whether the wallpaper would be the same.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let same_file = self.path == other.path;
        let same_content = !self.content.is_empty() && self.content == other.content;
        self.style == other.style && (same_content || same_file && self.content == other.content)
    }
}

/// The most clients at once. A daemon has one connection; another daemon may be starting.
const CLIENTS_MAX: usize = 16;

/// The number of a connection, which is never used again.
pub(super) type ClientId = u64;

pub(super) struct Server {
    listener: UnixListener,
    clients: Vec<Client>,
    last: ClientId,
}

struct Client {
    id: ClientId,
    stream: UnixStream,
    /// A line that has not ended yet.
    heard: Vec<u8>,
}

impl Server {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            clients: Vec::new(),
            last: 0,
        })
    }

    /// The descriptors to wait for.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|client| client.stream.as_fd());
        std::iter::once(self.listener.as_fd())
            .chain(clients)
            .collect()
    }

    /// Returns the requests that have arrived, without waiting. A request whose client has disconnected
    /// is dropped, since the daemon has reported it as failed.
    pub(super) fn receive(&mut self) -> Vec<(ClientId, Request)> {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < CLIENTS_MAX && stream.set_nonblocking(true).is_ok() {
                self.last += 1;
                self.clients.push(Client {
                    id: self.last,
                    stream,
                    heard: Vec::new(),
                });
            }
        }
        let mut requests = Vec::new();
        self.clients.retain_mut(|client| {
            if !client.read() {
                return false;
            }
            for line in client.lines() {
                match Request::read(&line) {
                    Some(request) => requests.push((client.id, request)),
                    None => client.say(Outcome::NotUnderstood),
                }
            }
            true
        });
        requests
    }

    /// Whether a client still waits for its response.
    pub(super) fn is_waiting(&self, client: ClientId) -> bool {
        self.clients.iter().any(|known| known.id == client)
    }

    /// Responds to the client, if it is still there.
    pub(super) fn respond(&mut self, to: ClientId, outcome: Outcome) {
        if let Some(client) = self.clients.iter_mut().find(|client| client.id == to) {
            client.say(outcome);
        }
    }
}

impl Client {
    /// Reads what has arrived; returns false if the client has disconnected, or its line is too long.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        while self.heard.len() <= LINE_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.heard.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        false
    }

    fn lines(&mut self) -> Vec<Vec<u8>> {
        let end = self
            .heard
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.heard.drain(..end).collect();
        let lines = whole
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        lines.map(<[u8]>::to_vec).collect()
    }

    /// The line is far smaller than the socket's buffer. A client that does not read loses it.
    fn say(&mut self, outcome: Outcome) {
        self.stream.write_all(&line(&Response::new(outcome))).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn request() -> Request {
        Request {
            version: VERSION.to_owned(),
            outputs: vec![Wanted {
                output: "DP-1".to_owned(),
                path: OsString::from_vec(b"/a b\n\xff.png".to_vec()),
                content: "sha256:1".to_owned(),
                style: Style {
                    fit: Fit::Cover,
                    position: Position::CENTER,
                    fill: [0, 1, 2],
                    span: None,
                    animate: false,
                },
                backdrop: Some(Backdrop {
                    blur: 24.0,
                    dim: 0.25,
                }),
            }],
            transition: Transition {
                effect: Effect::Fade,
                duration: 0.6,
                easing: [0.0, 0.0, 0.58, 1.0],
                fps_max: 60,
            },
        }
    }

    #[test]
    fn message_is_read_as_it_was_written() {
        let sent = line(&request());
        assert_eq!(sent.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(Request::read(&sent), Some(request()));
        let response = Response::new(Outcome::Shown(vec!["DP-1".to_owned()]));
        assert_eq!(Response::read(&line(&response)), Some(response));
    }

    #[test]
    fn message_of_another_version_is_not_understood() {
        let other = Request {
            version: "0.0.1".to_owned(),
            ..request()
        };
        assert_eq!(Request::read(&line(&other)), None);
        assert_eq!(
            Response::read(br#"{"version":"9.0","outcome":{"strange":1}}"#),
            None
        );
        assert_eq!(Request::read(b"nonsense"), None);
    }

    #[test]
    fn picture_at_another_path_looks_the_same() {
        let one = request().outputs.remove(0);
        assert!(one.looks_like(&Wanted {
            path: "/held.png".into(),
            ..one.clone()
        }));
        assert!(!one.looks_like(&Wanted {
            content: "sha256:2".to_owned(),
            ..one.clone()
        }));
        let nameless = Wanted {
            content: String::new(),
            ..one.clone()
        };
        assert!(nameless.looks_like(&nameless));
        assert!(!nameless.looks_like(&Wanted {
            path: "/x".into(),
            ..nameless.clone()
        }));
        let style = Style {
            fill: [9, 9, 9],
            ..one.style.clone()
        };
        assert!(!one.looks_like(&Wanted {
            style,
            ..one.clone()
        }));
    }

    fn request_line() -> String {
        let request = br#"{"version":"VERSION","outputs":[],"transition":{"effect":"none",
            "duration":0,"easing":[0,0,1,1],"fps_max":60}}"#;
        let request = String::from_utf8_lossy(request).replace('\n', "");
        request.replace("VERSION", VERSION)
    }

    #[test]
    fn line_is_read_in_pieces_and_nonsense_is_answered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("draw.sock");
        let mut server = Server::bind(&path).unwrap();
        let mut client = crate::sys::connect(&path).unwrap();
        client.set_nonblocking(false).unwrap();
        let request = request_line();
        let (one, other) = request.split_at(30);
        client.write_all(one.as_bytes()).unwrap();
        assert!(server.receive().is_empty());
        client
            .write_all(format!("{other}\nnonsense\n").as_bytes())
            .unwrap();
        let requests = server.receive();
        assert_eq!(requests.len(), 1);
        server.respond(requests[0].0, Outcome::Shown(Vec::new()));
        let mut lines = BufReader::new(client).lines();
        let mut next = || {
            Response::read(lines.next().unwrap().unwrap().as_bytes())
                .unwrap()
                .outcome
        };
        assert_eq!(next(), Outcome::NotUnderstood);
        assert_eq!(next(), Outcome::Shown(Vec::new()));
        drop(lines);
        server.receive();
        assert_eq!(
            server.descriptors().len(),
            1,
            "the closed connection is forgotten"
        );
    }

    #[test]
    fn request_of_a_disconnected_client_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("draw.sock");
        let mut server = Server::bind(&path).unwrap();
        let ask = || {
            let mut client = crate::sys::connect(&path).unwrap();
            client
                .write_all(format!("{}\n", request_line()).as_bytes())
                .unwrap();
            client
        };
        let (gone, waits) = (ask(), ask());
        drop(gone);
        let requests = server.receive();
        assert_eq!(requests.len(), 1);
        let asker = requests[0].0;
        assert!(server.is_waiting(asker));
        drop(waits);
        server.receive();
        assert!(!server.is_waiting(asker));
    }
}
