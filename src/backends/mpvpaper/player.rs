//! A process that plays on an output, the watch for its first frames, and the handover from the
//! process before.
//!
//! Runs on the worker's thread, the handover on a thread of its own. It never pauses or resumes a
//! video that somebody else has paused. Its own pauses are noted in a file beside the socket, so
//! that the next daemon resumes the video. The note also says whether frames were seen, as a paused
//! video reports none.
//!
//! With `auto_stop`, or for a program of its `stoplist`, mpvpaper becomes `mpvpaper-holder` while
//! it is not visible: another program with the same PID, without mpv and its socket. When it would
//! be visible it becomes mpvpaper again, with the video that it was started with.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::args::{NAME, STOPS, Wanted, socket_in};
use super::ipc::{self, FOR_GOOD, Ipc, Loaded};
use crate::backends::Error;
use crate::backends::socket::{NotUp, connect_when_up, made};
use crate::process::{BackendProcess, Child};
use crate::sys::{Cancel, CancelOnDrop, lock};
use crate::thread::{Spawner, Thread};
use crate::wire::{Sound, SoundChange};

pub(super) const PLAYS_WITHIN: Duration = Duration::from_secs(10);
/// mpv answers within milliseconds.
const PAUSES_WITHIN: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(2);
/// The note of a pause if no frame was seen before.
const UNSEEN: &str = "unseen";
/// The note beside the socket that the sound was set, also for the next daemon.
const SOUND: &str = "sound";

#[derive(Debug)]
pub(super) struct Player {
    pub(super) output: String,
    pub(super) process: BackendProcess,
    pub(super) socket: PathBuf,
    /// `None` if it is not known: the process was taken over and not asked yet.
    file: Option<PathBuf>,
    /// The content of the file at that time.
    content: Option<String>,
    /// Frames of it were seen.
    pub(super) is_seen: bool,
    /// It is paused because we paused it.
    paused: bool,
    /// The last pause or resume was not confirmed.
    half_told: bool,
}

/// The result of playing a file in a running process.
pub(super) enum PlayOutcome {
    Seen,
    Unseen(FrameWatch),
    Silent,
}

impl Player {
    /// One that was just started.
    pub(super) fn started(
        process: BackendProcess,
        output: String,
        wanted: &Wanted,
        socket: PathBuf,
    ) -> Self {
        let (file, content) = (Some(wanted.file.clone()), Some(wanted.content.clone()));
        let (is_seen, paused, half_told) = (false, false, false);
        Self { output, process, socket, file, content, is_seen, paused, half_told }
    }

    /// None for one whose command line is not ours to understand.
    pub(super) fn taken_over(process: BackendProcess) -> Option<Self> {
        let output = process.record().output.clone();
        let socket = socket_in(&process.record().args());
        match (output, socket) {
            (Some(output), Some(socket)) => {
                let (file, content) = (None, None);
                let note = fs::read_to_string(note_beside(&socket));
                let paused = note.is_ok();
                let is_seen = note.is_ok_and(|note| note != UNSEEN);
                let half_told = paused;
                Some(Self { output, process, socket, file, content, is_seen, paused, half_told })
            }
            _ => {
                process.end(GRACE);
                None
            }
        }
    }

    /// Has it play another file; an error if it cannot, and then it plays the one before.
    pub(super) fn play(&mut self, wanted: &Wanted, cancel: &Cancel) -> Result<PlayOutcome, Error> {
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
            // mpv stays paused over a change of files, and a paused video counts as seen.
            match self.resume(&mut ipc, cancel) {
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
                Ok(if seen {
                    PlayOutcome::Seen
                } else {
                    PlayOutcome::Unseen(self.watch(Some(ipc)))
                })
            }
            Loaded::Silent => Ok(self.silent(wanted, cancel)),
            Loaded::Refused(why) => Err(Error::File { path: file.to_owned(), why }),
        }
    }

    /// The result if the process does not answer. If it has stopped itself it is left to come back
    /// with its video.
    fn silent(&mut self, wanted: &Wanted, cancel: &Cancel) -> PlayOutcome {
        let begun_with = self.process.record().args().pop();
        let is_its = begun_with.is_some_and(|file| file == wanted.file.as_os_str());
        if !is_its || self.is_rewritten(wanted) || !has_stopped(self.process.child(), cancel) {
            return PlayOutcome::Silent;
        }
        self.know(wanted);
        if self.is_seen { PlayOutcome::Seen } else { PlayOutcome::Unseen(self.watch(None)) }
    }

    fn watch(&self, ipc: Option<Ipc>) -> FrameWatch {
        FrameWatch { socket: self.socket.clone(), child: self.process.child().clone(), ipc }
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
    ) -> Result<Option<FrameWatch>, Error> {
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
    pub(super) fn set_paused(&mut self, paused: bool, cancel: &Cancel) -> Result<(), Error> {
        if self.paused == paused && !self.half_told {
            return Ok(());
        }
        let told = self.connect(PAUSES_WITHIN, cancel).and_then(|mut ipc| match paused {
            true => self.pause(&mut ipc, cancel),
            false => self.resume(&mut ipc, cancel),
        });
        if told.is_err() && is_stopped(self.process.child()) {
            // It does not play.
            return Ok(());
        }
        told.map_err(|error| self.not_told(error))
    }

    fn not_told(&self, error: NotUp) -> Error {
        let why = match error {
            NotUp::Cancelled => return Error::Cancelled,
            NotUp::Ended => "it ended".to_owned(),
            NotUp::Late => "it does not answer".to_owned(),
            NotUp::Io(error) => error.to_string(),
        };
        Error::Unavailable(format!("{NAME} on {}: {why}", self.output))
    }

    /// Changes its sound as it plays; without a change, says how it is.
    pub(super) fn set_sound(
        &mut self,
        change: SoundChange,
        cancel: &Cancel,
    ) -> Result<Sound, Error> {
        let told = self.connect(PAUSES_WITHIN, cancel).and_then(|mut ipc| {
            if !ipc.has_audio(cancel)? {
                return Ok(None);
            }
            if change != SoundChange::default() {
                fs::write(self.socket.with_extension(SOUND), "")?;
            }
            ipc.change_sound(change, cancel).map(Some)
        });
        let mute = || Error::Refused(format!("the video on {} has no audio track", self.output));
        told.map_err(|error| self.not_told(error))?.ok_or_else(mute)
    }

    /// Whether its sound was set since it was started.
    pub(super) fn has_own_sound(&self) -> bool {
        self.socket.with_extension(SOUND).exists()
    }

    fn pause(&mut self, ipc: &mut Ipc, cancel: &Cancel) -> Result<(), NotUp> {
        // Somebody else's pause: he ends it when he likes.
        if !self.paused && ipc.is_paused(cancel)? {
            return Ok(());
        }
        // Before it stands still: else, after a kill, nobody would have it go on.
        fs::write(note_beside(&self.socket), if self.is_seen { "" } else { UNSEEN })?;
        (self.paused, self.half_told) = (true, true);
        ipc.pause(true, cancel)?;
        self.half_told = false;
        Ok(())
    }

    fn resume(&mut self, ipc: &mut Ipc, cancel: &Cancel) -> Result<(), NotUp> {
        if self.paused {
            ipc.pause(false, cancel)?;
            (self.paused, self.half_told) = (false, false);
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

    /// Cleans up after a process that has ended by itself.
    pub(super) fn forget(self) {
        remove_files(&self.socket);
        self.process.forget();
    }
}

/// The socket last: its name is not given again before.
fn remove_files(socket: &Path) {
    fs::remove_file(note_beside(socket)).ok();
    fs::remove_file(socket.with_extension(SOUND)).ok();
    fs::remove_file(socket).ok();
}

/// The file that notes our pause.
fn note_beside(socket: &Path) -> PathBuf {
    socket.with_extension("paused")
}

const HOLDER: &str = "mpvpaper-holder";
/// From the end of mpv's socket to the other program, or to the end.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct FrameWatch {
    pub(super) socket: PathBuf,
    pub(super) child: Child,
    /// None while it has stopped itself.
    pub(super) ipc: Option<Ipc>,
}

impl FrameWatch {
    /// Waits for good until frames are seen; `false` when it ends before, or this is cancelled. Each
    /// time that it has stopped itself, `stopped` is called.
    pub(super) fn wait(&mut self, cancel: &Cancel, mut stopped: impl FnMut()) -> bool {
        loop {
            match self.ipc.as_mut().map(|ipc| ipc.wait_until_seen(cancel)) {
                Some(Ok(())) => return true,
                Some(Err(NotUp::Ended | NotUp::Io(_))) if has_stopped(&self.child, cancel) => {}
                Some(Err(_)) => return false,
                None => {}
            }
            stopped();
            self.ipc = self.come_back(cancel).ok();
            if self.ipc.is_none() {
                return false;
            }
        }
    }

    fn come_back(&self, cancel: &Cancel) -> Result<Ipc, NotUp> {
        let before = made(&self.socket);
        // The holder makes none: what was there before it is of no use any more.
        let before = before.filter(|_| is_stopped(&self.child));
        let until = Instant::now() + FOR_GOOD;
        let stream = connect_when_up(&self.socket, before, &self.child, until, cancel)?;
        let mut ipc = Ipc::new(stream, &self.child, until);
        ipc.observe()?;
        Ok(ipc)
    }
}

/// Whether one that does not answer has stopped itself; it may be about to.
pub(super) fn has_stopped(child: &Child, cancel: &Cancel) -> bool {
    let until = Some(Instant::now() + STOPS_WITHIN);
    is_stopped(child) || (!child.wait(until, Some(cancel)) && is_stopped(child))
}

pub(super) fn is_stopped(child: &Child) -> bool {
    let program = fs::read_link(format!("/proc/{}/exe", child.identity().pid)).ok();
    let name = program.as_deref().and_then(|program| program.file_name());
    // Wrapped, or replaced by a newer one, it is called a little more than that.
    name.is_some_and(|name| name.to_string_lossy().contains(HOLDER))
}

#[derive(Debug)]
pub(super) struct Handover {
    cancel: CancelOnDrop,
    seen: Arc<AtomicBool>,
    /// The old process, while it has not been ended.
    old: Arc<Mutex<Option<Player>>>,
    _thread: Thread,
}

impl Handover {
    /// Ends `old` once frames of `new` were seen, and reports it on `tell`. Never ends a process
    /// without a frame of the new one, except one that stops itself, after the new one has stopped
    /// itself: it shows nothing either, and would come back over the new one. Without a thread
    /// `old` stays: it is recorded, and the next daemon ends it.
    pub(super) fn start(
        spawner: &Spawner,
        mut new: FrameWatch,
        old: Option<Player>,
        tell: Sender<()>,
    ) -> Option<Self> {
        let cancel = Cancel::new().ok()?;
        let seen = Arc::new(AtomicBool::new(false));
        let old = Arc::new(Mutex::new(old));
        let (until, is_seen, its) = (cancel.clone(), Arc::clone(&seen), Arc::clone(&old));
        let wait = move || {
            let end_stopping = || {
                if let Some(old) = lock(&its).take_if(|old| old.stops_itself()) {
                    old.end();
                }
            };
            if new.wait(&until, end_stopping) {
                if let Some(old) = lock(&its).take() {
                    old.end();
                }
                is_seen.store(true, Ordering::SeqCst);
                // A full channel has it looked at as well.
                tell.try_send(()).ok();
            }
        };
        let thread = spawner.spawn("mpv-handover", wait);
        let thread = thread
            .inspect_err(|error| log::error!("cannot start a thread for a handover: {error}"));
        Some(Self { cancel: CancelOnDrop(cancel), seen, old, _thread: thread.ok()? })
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }

    /// Tells the old process something, if it has not been ended.
    pub(super) fn on_old<T>(&self, tell: impl FnOnce(&mut Player) -> T) -> Option<T> {
        lock(&self.old).as_mut().map(tell)
    }

    /// Stops waiting, and gives back what still runs.
    pub(super) fn settle(self) -> Option<Player> {
        self.cancel.0.cancel();
        lock(&self.old).take()
    }
}
