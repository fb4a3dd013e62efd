//! Talks to the wal-qt host over HTTP: sends and retries requests, and keeps track of the paused
//! sources.
//!
//! Runs on the caller's thread. Every wait has a time limit and can be cancelled. Each request is a
//! single write, because the host takes a second part for another request. Pauses are kept by file, as
//! the host identifies them, and noted on disk, so that the next daemon resumes them. A host that cannot
//! pause answers with success and keeps playing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backends::Error;
use crate::backends::socket::{NotUp, pause, read_answer};
use crate::config::WalQt as Options;
use crate::paths::{self, Dirs};
use crate::sys::{Cancel, connect};

/// How often a request is tried if a retry may help, and the first and the longest pause between tries.
const TRIES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// The host's answer to a request that reached it in parts.
const IN_PARTS: &str = "bad json";

/// The host behind a socket.
pub(crate) struct Client {
    cancel: Cancel,
    socket: PathBuf,
    /// The time limit of requests other than loads.
    limit: Duration,
}

/// Why a request has no good answer.
#[derive(Debug)]
pub(super) enum Failed {
    Cancelled,
    /// Nobody listens, or the connection broke.
    Unreachable(String),
    /// It took too long.
    Late(Duration),
    /// The status is not 2xx.
    Status(u16, String),
    /// The body is not JSON.
    Garbage,
}

impl Client {
    /// The host that the settings name.
    pub(crate) fn open(dirs: &Dirs, options: &Options, cancel: &Cancel) -> Result<Self, Error> {
        let socket = dirs.expand(&options.socket_path);
        let socket = socket.map_err(|error| Error::Unavailable(format!("socket_path: {error}")))?;
        let limit = Duration::from_millis(options.request_timeout_ms.into());
        Ok(Self {
            cancel: cancel.clone(),
            socket,
            limit,
        })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Moves the picture of one output, or of all, by one step: `left`, `right`, `up` or `down`. Not
    /// retried, because a late step would be wrong.
    pub(crate) fn parallax_move(&self, direction: &str, output: Option<&str>) -> Result<(), Error> {
        let mut body = json!({ "direction": direction });
        if let Some(name) = output {
            body["name"] = name.into();
        }
        const PATH: &str = "/wallpaper/parallax-move";
        self.judge(PATH, self.once(PATH, Some(&body), self.limit))
    }

    /// Pauses or resumes a video or HTML wallpaper by its file. Not retried.
    pub(super) fn playback(&self, source: &str, paused: bool) -> Result<(), Error> {
        const PATH: &str = "/wallpaper/playback";
        let body = json!({ "source_target": source, "paused": paused });
        self.judge(PATH, self.once(PATH, Some(&body), self.limit))
    }

    /// Sends a request once, and once more if it reached the host in parts.
    pub(super) fn once(
        &self,
        path: &str,
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<Value, Failed> {
        match self.ask(path, body, limit) {
            Err(Failed::Status(400, why)) if why == IN_PARTS => self.ask(path, body, limit),
            answer => answer,
        }
    }

    fn ask(&self, path: &str, body: Option<&Value>, limit: Duration) -> Result<Value, Failed> {
        if self.cancel.is_cancelled() {
            return Err(Failed::Cancelled);
        }
        let until = Instant::now() + limit;
        let answer = connect(&self.socket)
            .map_err(NotUp::from)
            .and_then(|mut stream| {
                stream.write_all(&request(path, body))?;
                let is_whole = |heard: &[u8]| answered(heard, false).is_some();
                read_answer(&mut stream, None, until, &self.cancel, is_whole)
            });
        let heard = answer.map_err(|error| match error {
            NotUp::Cancelled => Failed::Cancelled,
            NotUp::Late => Failed::Late(limit),
            other => Failed::Unreachable(other.to_string()),
        })?;
        match answered(&heard, true) {
            Some((200..=299, body)) => serde_json::from_slice(body).map_err(|_| Failed::Garbage),
            Some((status, body)) => Err(Failed::Status(
                status,
                complaint(&String::from_utf8_lossy(body)),
            )),
            None => Err(Failed::Unreachable("it closed the connection".to_owned())),
        }
    }

    /// Sends a request, and retries it as long as that may help and time is left.
    pub(super) fn insist(
        &self,
        path: &str,
        body: &Value,
        limit: Duration,
        until: Option<Instant>,
    ) -> Result<Value, Failed> {
        let mut wait = FIRST_PAUSE;
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let failed = match self.once(path, Some(body), left.map_or(limit, |l| l.min(limit))) {
                Err(Failed::Late(_)) => Failed::Late(limit),
                Err(failed) if failed.may_pass() => failed,
                result => return result,
            };
            if tries == 0 || until.is_some_and(|until| Instant::now() + wait >= until) {
                return Err(failed);
            }
            log::debug!("wal-qt: {path}: {failed:?}");
            pause(wait, &self.cancel).map_err(|_| Failed::Cancelled)?;
            wait = (wait * 2).min(LAST_PAUSE);
        }
    }

    /// Sends a request whose answer only reports success or an error.
    pub(super) fn tell(&self, path: &str, body: &Value) -> Result<(), Error> {
        self.judge(path, self.insist(path, body, self.limit, None))
    }

    fn judge(&self, path: &str, answer: Result<Value, Failed>) -> Result<(), Error> {
        match answer {
            Ok(answer) if answer["ok"] == false => {
                let why = answer["error"].as_str().unwrap_or("it refused the request");
                Err(Error::Refused(format!("wal-qt: {path}: {why}")))
            }
            Ok(_) => Ok(()),
            Err(failed) => Err(self.error(path, failed)),
        }
    }

    pub(super) fn error(&self, path: &str, failed: Failed) -> Error {
        match failed {
            Failed::Cancelled => Error::Cancelled,
            Failed::Unreachable(why) => {
                let socket = self.socket.display();
                Error::Unavailable(format!("wal-qt does not answer at {socket}: {why}"))
            }
            Failed::Late(limit) => {
                let limit = limit.as_millis();
                Error::Unavailable(format!("wal-qt does not answer {path} within {limit} ms"))
            }
            Failed::Status(status, why) => {
                Error::Refused(format!("wal-qt answers {path} with {status}: {why}"))
            }
            Failed::Garbage => Error::Refused(format!("wal-qt answers {path} with invalid JSON")),
        }
    }
}

impl Failed {
    fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Late(_) => true,
            Self::Status(status, _) => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::Cancelled | Self::Garbage => false,
        }
    }
}

/// Head and body of a request. The host closes each connection.
fn request(path: &str, body: Option<&Value>) -> Vec<u8> {
    let (method, body) = body.map_or(("GET", String::new()), |body| ("POST", body.to_string()));
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Version: 0\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The status and the body of an answer; `None` while it is incomplete. An answer without a length ends
/// with the connection.
fn answered(heard: &[u8], is_end: bool) -> Option<(u16, &[u8])> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(end)) = head.parse(heard) else {
        return None;
    };
    let mut headers = head.headers.iter();
    let body = match headers.find(|header| header.name.eq_ignore_ascii_case("Content-Length")) {
        Some(length) => {
            let length = std::str::from_utf8(length.value)
                .ok()?
                .trim()
                .parse()
                .ok()?;
            heard[end..].get(..length)?
        }
        None => is_end.then_some(&heard[end..])?,
    };
    Some((head.code?, body))
}

/// The message in an error answer.
pub(super) fn complaint(text: &str) -> String {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    let error = said["error"].as_str().or(said["message"].as_str());
    error.map_or_else(|| text.chars().take(200).collect(), str::to_owned)
}

pub(super) struct PausedSources {
    note: PathBuf,
    /// The sources that murald has paused and not loaded since.
    paused: BTreeSet<String>,
    /// The last pause was not confirmed for all of them.
    is_unconfirmed: bool,
}

impl PausedSources {
    /// Reads the pauses of an earlier daemon, which are ours to resume.
    pub(super) fn open(directory: &Path) -> Self {
        let note = directory.join("wal-qt.paused");
        let noted = fs::read(&note)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            note,
            paused: noted.unwrap_or_default(),
            is_unconfirmed: false,
        }
    }

    /// Notes that the host has loaded a file and plays it.
    pub(super) fn loaded(&mut self, source: &str) {
        if self.paused.remove(source) {
            // If this fails, the next daemon resumes a source that plays, which is harmless.
            self.write(&self.paused).ok();
        }
    }

    /// Removes all pauses, because the host has ended.
    pub(super) fn forget(&mut self) {
        self.paused.clear();
        self.is_unconfirmed = false;
        fs::remove_file(&self.note).ok();
    }

    /// Whether exactly these sources are paused.
    pub(super) fn is(&self, wanted: &BTreeSet<String>) -> bool {
        !self.is_unconfirmed && self.paused == *wanted
    }

    /// Pauses these sources, and resumes the other sources that murald has paused.
    pub(super) fn pause(
        &mut self,
        client: &Client,
        wanted: &BTreeSet<String>,
    ) -> Result<(), Error> {
        for source in self.paused.difference(wanted) {
            match client.playback(source, false) {
                // The host no longer shows the source, or cannot pause.
                Err(Error::Refused(why)) => log::debug!("{why}"),
                result => result?,
            }
        }
        // Noted before the pause, so that the next daemon can resume the sources if this one is killed.
        if let Err(error) = self.write(wanted) {
            let why = format!(
                "cannot save the paused outputs to {}: {error}",
                self.note.display()
            );
            return Err(Error::Unavailable(why));
        }
        let before = std::mem::replace(&mut self.paused, wanted.clone());
        let is_new = |source: &&String| self.is_unconfirmed || !before.contains(*source);
        let new: Vec<&String> = wanted.iter().filter(is_new).collect();
        // If one request fails, the sources before it are paused, and its own may be.
        self.is_unconfirmed = true;
        new.into_iter()
            .try_for_each(|source| client.playback(source, true))?;
        self.is_unconfirmed = false;
        Ok(())
    }

    fn write(&self, paused: &BTreeSet<String>) -> io::Result<()> {
        paths::replace(&self.note, &serde_json::to_vec(paused)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sources_of_a_pause_that_failed_are_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let host = std::thread::spawn(move || {
            ["true", "false", "true", "true"].map(|ok| {
                let mut stream = listener.accept().unwrap().0;
                let mut heard = [0; 4096];
                let length = stream.read(&mut heard).unwrap();
                let answer = format!("HTTP/1.1 200 OK\r\n\r\n{{\"ok\": {ok}}}");
                stream.write_all(answer.as_bytes()).unwrap();
                let heard = String::from_utf8_lossy(&heard[..length]).into_owned();
                serde_json::from_str(heard.lines().last().unwrap()).unwrap()
            })
        });
        let limit = Duration::from_secs(60);
        let client = Client {
            cancel: Cancel::new().unwrap(),
            socket,
            limit,
        };
        let mut paused = PausedSources::open(dir.path());
        let wanted = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        assert!(matches!(
            paused.pause(&client, &wanted),
            Err(Error::Refused(_))
        ));
        assert!(!paused.is(&wanted), "it is tried again");
        paused.pause(&client, &BTreeSet::new()).unwrap();
        let playback = |source: &str, paused| json!({ "source_target": source, "paused": paused });
        let expected = [
            playback("a", true),
            playback("b", true),
            playback("a", false),
            playback("b", false),
        ];
        let heard: [Value; 4] = host.join().unwrap();
        assert_eq!(heard, expected);
        assert!(paused.is(&BTreeSet::new()));
    }

    #[test]
    fn answer_is_complete_once_its_whole_body_has_arrived() {
        let whole = b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}";
        for end in 0..whole.len() {
            assert_eq!(answered(&whole[..end], true), None, "{end}");
        }
        assert_eq!(answered(whole, false), Some((202, &b"{}"[..])));
        let endless = b"HTTP/1.1 200 OK\r\n\r\n{}";
        assert_eq!(answered(endless, false), None);
        assert_eq!(answered(endless, true), Some((200, &b"{}"[..])));
        for odd in ["HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "x\r\n\r\n"] {
            assert_eq!(answered(odd.as_bytes(), true), None, "{odd}");
        }
    }
}
