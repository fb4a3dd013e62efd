//! The host's HTTP interface: requests, answers, and when to try again.
//!
//! Runs in the thread that asks. Every wait ends with its limit, or when it is cancelled.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::Agent;

use crate::backends::Error;
use crate::backends::socket::pause;
use crate::config::WalQt as Options;
use crate::paths::Dirs;
use crate::sys::Cancel;
use crate::wire::unix;

/// Tries of a request that may go through the next time, and the pauses between them.
const TRIES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// The host's answers are short.
const ANSWER_MAX: u64 = 1 << 20;

/// The host behind a socket.
pub(crate) struct Client {
    agent: Agent,
    cancel: Cancel,
    socket: PathBuf,
    /// Of a request that only asks.
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
    /// Another status than a good one.
    Status(u16, String),
    /// Not JSON.
    Garbage,
}

impl Client {
    /// `limit` is for requests that have none of their own (`request_timeout_ms`).
    pub(crate) fn new(socket: PathBuf, limit: Duration, cancel: &Cancel) -> Result<Self, Error> {
        let interrupt = cancel.as_fd().try_clone_to_owned();
        let interrupt = interrupt.map_err(|e| Error::Unavailable(e.to_string()))?;
        let agent = unix::agent(&socket, Some(interrupt));
        Ok(Self { agent, cancel: cancel.clone(), socket, limit })
    }

    /// The one that the settings name.
    pub(crate) fn open(dirs: &Dirs, options: &Options, cancel: &Cancel) -> Result<Self, Error> {
        let socket = dirs.expand(&options.socket_path);
        let socket = socket.map_err(|error| Error::Unavailable(format!("socket_path: {error}")))?;
        Self::new(socket, Duration::from_millis(options.request_timeout_ms.into()), cancel)
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Moves one output's picture, or all, a step: `left`, `right`, `up` or `down`. Tried once: a
    /// step that comes late is a wrong one.
    pub(crate) fn parallax_move(&self, direction: &str, output: Option<&str>) -> Result<(), Error> {
        let mut body = json!({ "direction": direction });
        if let Some(name) = output {
            body["name"] = name.into();
        }
        const PATH: &str = "/wallpaper/parallax-move";
        self.judge(PATH, self.once(PATH, Some(&body), self.limit))
    }

    /// Pauses a film or page by its file, or has it go on. Tried once.
    pub(super) fn playback(&self, source: &str, paused: bool) -> Result<(), Error> {
        const PATH: &str = "/wallpaper/playback";
        let body = json!({ "source_target": source, "paused": paused });
        self.judge(PATH, self.once(PATH, Some(&body), self.limit))
    }

    /// A request that is tried once.
    pub(super) fn once(
        &self,
        path: &str,
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<Value, Failed> {
        if self.cancel.is_cancelled() {
            return Err(Failed::Cancelled);
        }
        let url = format!("http://localhost{path}");
        // One request for each connection: the host closes it.
        let answer = match body {
            None => {
                let request = self.agent.get(url).header("X-API-Version", "0");
                let request = request.header("Connection", "close").config();
                request.timeout_global(Some(limit)).build().call()
            }
            Some(body) => {
                let request = self.agent.post(url).header("X-API-Version", "0");
                let request = request.header("Connection", "close");
                let request = request.content_type("application/json").config();
                request.timeout_global(Some(limit)).build().send(body.to_string())
            }
        };
        let text = answer.and_then(|mut answer| {
            let status = answer.status().as_u16();
            let body = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_string();
            Ok((status, body?))
        });
        match text {
            Ok((200..=299, text)) => serde_json::from_str(&text).map_err(|_| Failed::Garbage),
            Ok((status, text)) => Err(Failed::Status(status, complaint(&text))),
            Err(_) if self.cancel.is_cancelled() => Err(Failed::Cancelled),
            Err(error) if is_late(&error) => Err(Failed::Late(limit)),
            Err(error) => Err(Failed::Unreachable(error.to_string())),
        }
    }

    /// A request that is tried again where that may help, and as long as it may.
    pub(super) fn insist(
        &self,
        path: &str,
        body: &Value,
        limit: Duration,
        until: Option<Instant>,
    ) -> Result<Value, Failed> {
        let (mut wait, mut tries) = (FIRST_PAUSE, TRIES);
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

    /// A request whose answer says no more than that it went well.
    pub(super) fn tell(&self, path: &str, body: &Value) -> Result<(), Error> {
        self.judge(path, self.insist(path, body, self.limit, None))
    }

    fn judge(&self, path: &str, answer: Result<Value, Failed>) -> Result<(), Error> {
        match answer {
            Ok(answer) if answer["ok"] == false => {
                let why = answer["error"].as_str().unwrap_or("it says no");
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
            Failed::Garbage => {
                Error::Refused(format!("wal-qt answers {path} with what is no JSON"))
            }
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

fn is_late(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Timeout(_) => true,
        ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::TimedOut,
        _ => false,
    }
}

/// What an answer of an error says.
pub(super) fn complaint(text: &str) -> String {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    let error = said["error"].as_str().or(said["message"].as_str());
    error.map_or_else(|| text.chars().take(200).collect(), str::to_owned)
}
