//! A process that plays on an output: what it is told, and what is known of it.
//!
//! Runs on the worker's thread. It never pauses a film, nor has one go on, that somebody else has
//! paused. What it has paused itself is noted in a file beside the socket, so that the next daemon has
//! it go on, with whether it was seen: one that stands still tells of no frames.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::args::{NAME, STOPS, Wanted, socket_in};
use super::ipc::{self, Ipc, Loaded};
use super::watch::{Watch, has_stopped, is_stopped};
use crate::backends::Error;
use crate::backends::socket::NotUp;
use crate::process::BackendProcess;
use crate::sys::Cancel;

pub(super) const PLAYS_WITHIN: Duration = Duration::from_secs(10);
/// mpv answers within milliseconds.
const PAUSES_WITHIN: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(2);
/// What is in the note of a pause where no frame was seen before.
const UNSEEN: &str = "unseen";

#[derive(Debug)]
pub(super) struct Screen {
    pub(super) output: String,
    pub(super) process: BackendProcess,
    pub(super) socket: PathBuf,
    /// None where that is not known: taken over, and not asked yet.
    file: Option<PathBuf>,
    /// What was in it then.
    content: Option<String>,
    /// Frames of it were seen.
    pub(super) is_seen: bool,
    /// It stands still because we have told it to.
    rests: bool,
    /// Or perhaps it does not: it has not said that it heard.
    half_told: bool,
}

/// What came of telling a process of a file.
pub(super) enum Told {
    Seen,
    Unseen(Watch),
    Silent,
}

impl Screen {
    /// One that was just started.
    pub(super) fn started(
        process: BackendProcess,
        output: String,
        wanted: &Wanted,
        socket: PathBuf,
    ) -> Self {
        let (file, content) = (Some(wanted.file.clone()), Some(wanted.content.clone()));
        let (is_seen, rests, half_told) = (false, false, false);
        Self { output, process, socket, file, content, is_seen, rests, half_told }
    }

    /// None for one whose command line is not ours to understand.
    pub(super) fn taken_over(process: BackendProcess) -> Option<Self> {
        let output = process.record().output.clone();
        let socket = socket_in(&process.record().args());
        match (output, socket) {
            (Some(output), Some(socket)) => {
                let (file, content) = (None, None);
                let note = fs::read_to_string(note_beside(&socket));
                let rests = note.is_ok();
                let is_seen = note.is_ok_and(|note| note != UNSEEN);
                let half_told = rests;
                Some(Self { output, process, socket, file, content, is_seen, rests, half_told })
            }
            _ => {
                process.end(GRACE);
                None
            }
        }
    }

    /// Has it play another file; an error if it cannot, and then it plays the one before.
    pub(super) fn play(&mut self, wanted: &Wanted, cancel: &Cancel) -> Result<Told, Error> {
        let file = wanted.file.as_path();
        let Ok(mut ipc) = self.connect(PLAYS_WITHIN, cancel) else {
            return Ok(self.silent(wanted, cancel));
        };
        let before = match &self.file {
            Some(known) => Some(known.clone()),
            None => ipc.playing(cancel)?,
        };
        let is_new = before.as_deref() != Some(file) || self.is_rewritten(wanted);
        let loaded = if self.is_seen && !is_new {
            Loaded::Plays { seen: true }
        } else {
            // mpv keeps the pause over files, and a film that stands still counts as seen.
            match self.go_on(&mut ipc, cancel) {
                Ok(()) if is_new => ipc.load(file, before.as_deref(), cancel)?,
                Ok(()) => ipc.watch(cancel)?,
                Err(NotUp::Cancelled) => return Err(Error::Cancelled),
                Err(_) => Loaded::Silent,
            }
        };
        match loaded {
            Loaded::Plays { seen } => {
                self.know(wanted);
                self.is_seen = seen;
                Ok(if seen { Told::Seen } else { Told::Unseen(self.watch(Some(ipc))) })
            }
            Loaded::Silent => Ok(self.silent(wanted, cancel)),
            Loaded::Refused(why) => Err(Error::File { path: file.to_owned(), why }),
        }
    }

    /// Of one that does not answer: where it has stopped itself it is left to come back with its film.
    fn silent(&mut self, wanted: &Wanted, cancel: &Cancel) -> Told {
        let begun_with = self.process.record().args().pop();
        let is_its = begun_with.is_some_and(|file| file == wanted.file.as_os_str());
        if !is_its || self.is_rewritten(wanted) || !has_stopped(self.process.child(), cancel) {
            return Told::Silent;
        }
        self.know(wanted);
        if self.is_seen { Told::Seen } else { Told::Unseen(self.watch(None)) }
    }

    fn watch(&self, ipc: Option<Ipc>) -> Watch {
        Watch { socket: self.socket.clone(), child: self.process.child().clone(), ipc }
    }

    /// Whether its file holds something else by now than what it plays.
    pub(super) fn is_rewritten(&self, wanted: &Wanted) -> bool {
        self.content.as_ref().is_some_and(|content| *content != wanted.content)
    }

    /// Whether it stops itself while nobody sees it.
    pub(super) fn stops_itself(&self) -> bool {
        self.process.record().args().iter().any(|arg| arg == STOPS)
    }

    fn connect(&self, within: Duration, cancel: &Cancel) -> Result<Ipc, NotUp> {
        Ipc::connect(&self.socket, self.process.child(), Instant::now() + within, cancel)
    }

    fn know(&mut self, wanted: &Wanted) {
        self.file = Some(wanted.file.clone());
        self.content = Some(wanted.content.clone());
    }

    pub(super) fn wait_until_it_plays(
        &self,
        until: Instant,
        cancel: &Cancel,
    ) -> Result<Option<Watch>, Error> {
        let (child, file) = (self.process.child(), self.file.as_deref().unwrap_or(Path::new("")));
        match ipc::wait_until_it_plays(&self.socket, child, file, until, cancel) {
            Ok(ipc) => Ok(ipc.map(|ipc| self.watch(Some(ipc)))),
            Err(Error::Unavailable(_)) if has_stopped(child, cancel) => Ok(Some(self.watch(None))),
            Err(Error::Unavailable(why)) => {
                let said = self.process.log_tail();
                let said = said.lines().last().unwrap_or("it said nothing").trim().to_owned();
                Err(Error::Unavailable(format!("{NAME} on {}: {why}: {said}", self.output)))
            }
            Err(other) => Err(other),
        }
    }

    /// Pauses it where it plays, or has it go on where it was this that paused it.
    pub(super) fn rest(&mut self, rests: bool, cancel: &Cancel) -> Result<(), Error> {
        if self.rests == rests && !self.half_told {
            return Ok(());
        }
        let told = self.connect(PAUSES_WITHIN, cancel).and_then(|mut ipc| match rests {
            true => self.stand_still(&mut ipc, cancel),
            false => self.go_on(&mut ipc, cancel),
        });
        if told.is_err() && is_stopped(self.process.child()) {
            // It does not play.
            return Ok(());
        }
        told.map_err(|error| {
            let why = match error {
                NotUp::Cancelled => return Error::Cancelled,
                NotUp::Ended => "it ended".to_owned(),
                NotUp::Late => "it does not answer".to_owned(),
                NotUp::Io(error) => error.to_string(),
            };
            Error::Unavailable(format!("{NAME} on {}: {why}", self.output))
        })
    }

    fn stand_still(&mut self, ipc: &mut Ipc, cancel: &Cancel) -> Result<(), NotUp> {
        // Somebody else's pause: he ends it when he likes.
        if !self.rests && ipc.is_paused(cancel)? {
            return Ok(());
        }
        // Before it stands still: else, after a kill, nobody would have it go on.
        fs::write(note_beside(&self.socket), if self.is_seen { "" } else { UNSEEN })?;
        (self.rests, self.half_told) = (true, true);
        ipc.pause(true, cancel)?;
        self.half_told = false;
        Ok(())
    }

    fn go_on(&mut self, ipc: &mut Ipc, cancel: &Cancel) -> Result<(), NotUp> {
        if self.rests {
            ipc.pause(false, cancel)?;
            (self.rests, self.half_told) = (false, false);
            fs::remove_file(note_beside(&self.socket)).ok();
        }
        Ok(())
    }

    pub(super) fn end(self) {
        self.process.end(GRACE);
        remove_files(&self.socket);
    }

    pub(super) fn kill(self) {
        self.process.kill();
        remove_files(&self.socket);
    }

    /// Of one that has ended by itself.
    pub(super) fn forget(self) {
        remove_files(&self.socket);
        self.process.forget();
    }
}

/// The socket last: its name is not given again before.
fn remove_files(socket: &Path) {
    fs::remove_file(note_beside(socket)).ok();
    fs::remove_file(socket).ok();
}

/// Where it is noted that we have paused it.
fn note_beside(socket: &Path) -> PathBuf {
    socket.with_extension("paused")
}
