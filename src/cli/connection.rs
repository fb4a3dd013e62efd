//! Requests to the daemon over its socket, and its answers.
//!
//! Runs on the only thread of a client. A change has no time limit once the daemon has accepted the
//! request; the user can interrupt it.

use std::fmt::{Display, Write as _};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{HeaderValue, Request, Response};
use ureq::{Agent, Body};

use crate::paths::{Dirs, Env};
use crate::sys::{connect, is_listened_on};
use crate::wire::{Session, unix};

use super::Error;
use super::error::Exit;
use super::terminal::{variable, warn};

/// The largest answer that is read into memory, far above what the daemon sends.
const MOST: u64 = 256 << 20;
/// The time for the response to a `GET` to begin.
const REPLY: Duration = Duration::from_secs(10);

/// The daemon's socket, for a client: `--socket` (`named`), else `MURALD_SOCKET`, else the default.
pub(super) fn socket(named: Option<PathBuf>, env: &Env) -> Result<PathBuf, Error> {
    let named = named.or_else(|| env.var("MURALD_SOCKET").map(PathBuf::from));
    if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
        return Ok(path);
    }
    let found = Dirs::new(env.clone()).and_then(|dirs| {
        let answers = |path: &&PathBuf| is_listened_on(path);
        match dirs.sockets() {
            sockets if sockets.len() > 1 => {
                Ok(sockets.iter().find(answers).unwrap_or(&sockets[0]).clone())
            }
            _ => dirs.socket(),
        }
    });
    found.map_err(|error| {
        Error::new(Exit::Unavailable, "cannot find the daemon's socket")
            .because(error)
            .hint("set it with --socket PATH")
    })
}

/// A connection to the daemon.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    agent: Agent,
    socket: PathBuf,
}

/// A successful answer, with the body as the daemon sent it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::new(Exit::Internal, "cannot read the daemon's answer")
                .because(error)
                .hint("the daemon may have another version: run `murald status`")
        })
    }
}

impl Connection {
    pub(super) fn new(socket: &Path) -> Self {
        Self {
            agent: unix::agent(socket, None),
            socket: socket.to_owned(),
        }
    }

    /// Another connection, whose waits end when `interrupt` becomes readable or hangs up.
    pub(super) fn interruptible(&self, interrupt: OwnedFd) -> Self {
        let agent = unix::agent(&self.socket, Some(interrupt));
        Self {
            agent,
            socket: self.socket.clone(),
        }
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether no daemon listens on the socket, as opposed to a daemon that does not answer.
    pub(super) fn has_nobody(&self) -> bool {
        connect(&self.socket).is_err_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            )
        })
    }

    pub(super) fn get(&self, place: &RequestPath) -> Result<Answer, Error> {
        self.ask("GET", place, None)
    }

    /// The record at a path of these segments.
    pub(super) fn read<T: DeserializeOwned>(&self, segments: &[&dyn Display]) -> Result<T, Error> {
        self.get(&RequestPath::new(segments))?.read()
    }

    pub(super) fn post(&self, place: &RequestPath, body: &Value) -> Result<Answer, Error> {
        self.ask("POST", place, Some(body))
    }

    pub(super) fn patch(&self, place: &RequestPath, body: &Value) -> Result<Answer, Error> {
        self.ask("PATCH", place, Some(body))
    }

    /// Sends a request and reads the whole answer. All but `GET` and `DELETE` have a body.
    pub(super) fn ask(
        &self,
        method: &str,
        place: &RequestPath,
        body: Option<&Value>,
    ) -> Result<Answer, Error> {
        let mut answer = self.send(method, place, body)?;
        let length = answer.body().content_length().unwrap_or_default();
        let mut body = Vec::with_capacity(length.min(MOST) as usize);
        let mut reader = answer.body_mut().with_config().limit(MOST).reader();
        reader
            .read_to_end(&mut body)
            .map_err(|error| self.lost(error.into()))?;
        Ok(Answer { body })
    }

    /// The body of a `GET`, to be read as it arrives.
    pub(super) fn stream(&self, place: &RequestPath) -> Result<impl Read + use<>, Error> {
        Ok(self.send("GET", place, None)?.into_body().into_reader())
    }

    fn send(
        &self,
        method: &str,
        place: &RequestPath,
        body: Option<&Value>,
    ) -> Result<Response<Body>, Error> {
        let url = format!("http://localhost{}", place.0);
        let mut request = Request::builder().method(method).uri(url);
        // A change by a hook of the daemon must not run a hook again.
        if variable("MURALD_HOOK").is_some() {
            request = request.header("X-Murald-Hook", "1");
        }
        // A daemon that has no session takes this one. A path with unusual letters is not sent.
        let session = Session::from_env(|name| std::env::var_os(name));
        let header = session.and_then(|it| HeaderValue::from_str(&it.to_header()).ok());
        if let Some(header) = header {
            request = request.header(Session::HEADER, header);
        }
        let sent = match body {
            Some(body) => request
                .header("Content-Type", "application/json")
                .body(body.to_string())
                .map(|request| self.agent.run(request)),
            None => request.body(()).map(|request| {
                // A thumbnail may be made when it is asked for, which takes long for large files.
                let is_quick = method == "GET" && !place.0.contains("/thumbnail");
                let limit = is_quick.then_some(REPLY);
                let limited = self.agent.configure_request(request);
                self.agent.run(limited.timeout_recv_response(limit).build())
            }),
        };
        let sent = sent.map_err(ureq::Error::from).flatten();
        let mut answer = sent.map_err(|error| self.lost(error))?;
        if answer.status().is_success() {
            if method == "POST" && place.changes_screens() {
                self.name_other_session();
            }
            return Ok(answer);
        }
        let body = answer.body_mut().with_config().limit(MOST).read_to_vec();
        Err(Error::from_answer(
            answer.status().as_u16(),
            body.map_err(|error| self.lost(error))?,
        ))
    }

    /// Prints once which session's screens were changed, if it is not the command's own session.
    fn name_other_session(&self) {
        static SAID: Once = Once::new();
        let var = |name: &str| std::env::var_os(name);
        let is_in_session = ["WAYLAND_DISPLAY", "DISPLAY"]
            .iter()
            .any(|name| var(name).is_some());
        SAID.call_once(|| {
            let info = is_in_session.then(|| self.read(&[&"info"]));
            let Some(Ok(Info {
                session: Some(session),
            })) = info
            else {
                return;
            };
            if session.is_another(var) {
                warn(format!(
                    "changed {session}, in which the daemon runs, not this session"
                ));
            }
        });
    }

    /// The error if no daemon answers, or the daemon has stopped.
    fn lost(&self, error: ureq::Error) -> Error {
        let socket = self.socket.display();
        let source = match error {
            ureq::Error::Io(source) => source,
            ureq::Error::Timeout(_) => {
                let text = format!("the daemon at {socket} does not reply");
                return Error::new(Exit::Unavailable, text)
                    .hint("the daemon is suspended or has hung; run `murald doctor`");
            }
            error => io::Error::other(error),
        };
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Error::new(Exit::Unavailable, format!("the daemon is not running (no socket at {socket})"))
                    .hint("start it with `murald start`; if it uses another socket, set --socket or MURALD_SOCKET")
            }
            io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => {
                Error::new(Exit::Unavailable, format!("{socket} is not a valid socket path"))
                    .because(source)
                    .hint("a socket's path has at most 107 bytes; set --socket or MURALD_SOCKET")
            }
            io::ErrorKind::Interrupted => {
                Error::new(Exit::Interrupted, "interrupted").because(source)
            }
            io::ErrorKind::PermissionDenied => {
                Error::new(Exit::Unavailable, format!("no permission to use {socket}"))
                    .because(source)
                    .hint("each user runs their own daemon")
            }
            _ => Error::lost_daemon(source),
        }
    }
}

#[derive(Deserialize)]
struct Info {
    session: Option<Session>,
}

/// A path of the API with its query, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestPath(String);

impl RequestPath {
    pub(super) fn new(segments: &[&dyn Display]) -> Self {
        let mut place = String::new();
        for segment in segments {
            place.push('/');
            encode(&mut place, &segment.to_string());
        }
        Self(place)
    }

    /// Whether a `POST` there may show other wallpapers.
    fn changes_screens(&self) -> bool {
        ["/wallpaper/", "/playlists/", "/backends/"]
            .iter()
            .any(|of| self.0.starts_with(of))
    }

    /// Adds a parameter, if there is a value.
    pub(super) fn query(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            self.0.push(if self.0.contains('?') { '&' } else { '?' });
            self.0.push_str(name);
            self.0.push('=');
            encode(&mut self.0, &value.to_string());
        }
        self
    }
}

/// A path as the API needs it: absolute, as the daemon has another working directory.
pub(super) fn travelling(path: &Path) -> Result<String, Error> {
    let failed = || format!("{} is not a path", path.display());
    let whole = std::path::absolute(path).map_err(|error| Error::usage(failed()).because(error))?;
    let text = whole.into_os_string().into_string();
    text.map_err(|path| Error::usage(format!("{} is not UTF-8", path.to_string_lossy())))
}

/// Appends a text with `%XX` for everything but the unreserved characters of RFC 3986.
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => write!(out, "%{byte:02X}").expect("a String takes all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_encoded() {
        let place = RequestPath::new(&[&"playlists", &"active", &"HDMI A/1"])
            .query("search", Some("ä&b"))
            .query("page", None::<u64>)
            .query("per_page", Some(7));
        assert_eq!(
            place.0,
            "/playlists/active/HDMI%20A%2F1?search=%C3%A4%26b&per_page=7"
        );
    }

    #[test]
    fn socket_is_found() {
        #[track_caller]
        fn check(flag: Option<&str>, variable: &'static str, expected: &str) {
            let env = Env::from([
                ("HOME", "/home/mia"),
                ("XDG_RUNTIME_DIR", "/run/user/7"),
                ("MURALD_SOCKET", variable),
            ]);
            assert_eq!(
                socket(flag.map(PathBuf::from), &env).unwrap(),
                Path::new(expected)
            );
        }
        check(Some("/a"), "/b", "/a");
        check(None, "/b", "/b");
        check(None, "", "/run/user/7/murald.sock");
    }
}
