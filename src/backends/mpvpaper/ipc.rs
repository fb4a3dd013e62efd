//! mpv's JSON socket: a command or an answer a line, events in between.
//!
//! Runs on the hand's thread; every wait ends with its deadline, with the process, or on demand.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backends::Error;
use crate::backends::socket::{NotUp, connect, connect_when_up, wait};
use crate::process::{Cancel, Child};

/// An answer that comes late is none; what is longer is no answer of mpv's.
const LINE_MAX: usize = 1 << 20;
/// One that is hidden gives no frames: then it is enough that it has set up its picture.
const HIDDEN: Duration = Duration::from_secs(1);

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    Plays,
    /// It does not answer any more.
    Silent,
    Refused(String),
}

pub(super) struct Ipc<'a> {
    stream: UnixStream,
    child: &'a Child,
    until: Instant,
    pending: Vec<u8>,
}

impl<'a> Ipc<'a> {
    /// To one that is up.
    pub(super) fn connect(
        socket: &Path,
        child: &'a Child,
        until: Instant,
        cancel: &Cancel,
    ) -> Result<Self, NotUp> {
        if cancel.is_cancelled() {
            return Err(NotUp::Cancelled);
        }
        let stream = connect(socket)?;
        Ok(Self { stream, child, until, pending: Vec::new() })
    }

    /// The file that it plays; none where it does not say.
    pub(super) fn playing(&mut self, cancel: &Cancel) -> Result<Option<PathBuf>, Error> {
        let asked = self.say(&json!({ "command": ["get_property", "path"], "request_id": 1 }));
        let answer = asked.and_then(|()| self.hear(cancel, |said| said["request_id"] == 1));
        match answer {
            Ok(said) => Ok(said["data"].as_str().map(PathBuf::from)),
            Err(NotUp::Cancelled) => Err(Error::Cancelled),
            Err(_) => Ok(None),
        }
    }

    /// Has it play another file and waits until it has loaded it.
    pub(super) fn load(&mut self, file: &Path, cancel: &Cancel) -> Result<Loaded, Error> {
        let file = file.to_str().unwrap_or_default();
        let command = json!({ "command": ["loadfile", file, "replace"], "request_id": 2 });
        let told = self.say(&command);
        let heard = told.and_then(|()| {
            self.hear(cancel, |said| {
                let failed = said["event"] == "end-file" && said["reason"] == "error";
                let refused = said["request_id"] == 2 && said["error"] != "success";
                said["event"] == "file-loaded" || failed || refused
            })
        });
        match heard {
            Ok(said) if said["event"] == "file-loaded" => Ok(Loaded::Plays),
            Ok(said) => {
                let why = said["file_error"].as_str().or(said["error"].as_str());
                Ok(Loaded::Refused(why.unwrap_or("mpv cannot play it").to_owned()))
            }
            Err(NotUp::Cancelled) => Err(Error::Cancelled),
            Err(_) => Ok(Loaded::Silent),
        }
    }

    fn say(&mut self, command: &Value) -> Result<(), NotUp> {
        let mut line = command.to_string();
        line.push('\n');
        // Far less than a socket takes at once.
        Ok(self.stream.write_all(line.as_bytes())?)
    }

    /// The first thing said that is wanted.
    fn hear(
        &mut self,
        cancel: &Cancel,
        mut wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Value, NotUp> {
        loop {
            while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                // What is no JSON is nothing that was asked for.
                let said: Value = serde_json::from_slice(&line).unwrap_or_default();
                if wanted(&said) {
                    return Ok(said);
                }
            }
            if Instant::now() >= self.until || self.pending.len() > LINE_MAX {
                return Err(NotUp::Late);
            }
            wait(&[self.stream.as_fd()], self.child, self.until, cancel)?;
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), NotUp> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(NotUp::Ended),
                Ok(read) => self.pending.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits until a process that was just started shows its first frames.
pub(super) fn wait_until_it_plays(
    socket: &Path,
    child: &Child,
    until: Instant,
    cancel: &Cancel,
) -> Result<(), Error> {
    let plays = || -> Result<(), NotUp> {
        let stream = connect_when_up(socket, None, child, until, cancel)?;
        let mut ipc = Ipc { stream, child, until, pending: Vec::new() };
        for (id, property) in [(1, "vo-configured"), (2, "time-pos")] {
            ipc.say(&json!({ "command": ["observe_property", id, property] }))?;
        }
        ipc.hear(cancel, |said| said["name"] == "vo-configured" && said["data"] == true)?;
        // Time passes once frames are taken from it.
        ipc.until = until.min(Instant::now() + HIDDEN);
        let moves = |said: &Value| {
            said["name"] == "time-pos" && said["data"].as_f64().is_some_and(|at| at > 0.0)
        };
        match ipc.hear(cancel, moves) {
            Ok(_) | Err(NotUp::Late) => Ok(()),
            Err(other) => Err(other),
        }
    };
    plays().map_err(|not_up| match not_up {
        NotUp::Cancelled => Error::Cancelled,
        NotUp::Ended => Error::Unavailable("it ended".to_owned()),
        NotUp::Late => Error::Unavailable("it does not play in time".to_owned()),
        NotUp::Io(error) => Error::Unavailable(error.to_string()),
    })
}
