//! Controls a process that plays on an output: its video and sound, the watch for its first frames, and
//! the handover from the previous process.
//!
//! Runs on the worker's thread, the handover on a thread of its own. A video that another program has
//! paused is neither paused nor resumed. Our own pauses are noted in a file beside the socket, so that
//! the next daemon resumes the video. The note also says whether frames were visible, as a paused video
//! reports none.
//!
//! With `auto_stop`, or for a program of its `stoplist`, mpvpaper becomes `mpvpaper-holder` while
//! it is not visible: another program with the same PID, without mpv and its socket. When it would
//! be visible it becomes mpvpaper again, with the video that it was started with.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::args::{NAME, STOPS, Wanted};
use super::ipc::{self, FOR_GOOD, Ipc};
use crate::backends::Error;
use crate::backends::context::GRACE;
use crate::backends::socket::{NotUp, connect_when_up, made};
use crate::process::{BackendProcess, Child};
use crate::sys::{Cancel, CancelOnDrop, lock};
use crate::thread::{Spawner, Thread};
use crate::wire::{Sound, SoundChange};

const PLAYS_WITHIN: Duration = Duration::from_secs(10);
/// mpv answers within milliseconds.
const PAUSES_WITHIN: Duration = Duration::from_secs(2);
/// The file beside the socket that notes that murald has paused the video.
const PAUSED: &str = "paused";
/// The text of that note if no frame was visible before.
const UNSEEN: &str = "unseen";
/// The file beside the socket that notes, also for the next daemon, that the sound was set.
const SOUND: &str = "sound";

#[derive(Debug)]
pub(super) struct Player {
    pub(super) process: BackendProcess,
    /// The file that it plays, and the checksum of its content then. `None` if unknown, because the
    /// process was adopted and not asked yet.
    plays: Option<(PathBuf, String)>,
    /// Frames of its video have been visible.
    pub(super) is_seen: bool,
    /// Waits for its first frames, if none has been visible yet.
    pub(super) unseen: Option<FrameWatch>,
    /// It is paused because we paused it.
    paused: bool,
    /// The last pause or resume was not confirmed.
    is_unconfirmed: bool,
}

impl Player {
    /// A process that was just started with a video, or was adopted.
    pub(super) fn new(process: BackendProcess, wanted: Option<&Wanted>) -> Self {
        let plays = wanted.map(|wanted| (wanted.file.clone(), wanted.content.clone()));
        let note = fs::read_to_string(process.beside(PAUSED)).ok();
        let paused = note.is_some();
        let is_seen = note.is_some_and(|note| note != UNSEEN);
        Self {
            process,
            plays,
            is_seen,
            unseen: None,
            paused,
            is_unconfirmed: paused,
        }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.process.beside("sock")
    }

    /// Plays another file. Fails if mpv cannot play it, and mpv goes on with the file before. Returns
    /// false if mpv does not answer.
    pub(super) fn play(&mut self, wanted: &Wanted, cancel: &Cancel) -> Result<bool, Error> {
        let done = self.connect(PLAYS_WITHIN, cancel).and_then(|mut ipc| {
            let played = self.tell(&mut ipc, wanted, cancel)?;
            Ok(played.map(|seen| (seen, ipc)))
        });
        match done {
            Ok(Ok((seen, ipc))) => {
                self.know(wanted);
                self.is_seen = seen;
                self.unseen = if seen {
                    None
                } else {
                    Some(self.watch(Some(ipc)))
                };
                Ok(true)
            }
            Ok(Err(why)) => Err(Error::File {
                path: wanted.file.clone(),
                why,
            }),
            Err(NotUp::Cancelled) => Err(Error::Cancelled),
            Err(_) => Ok(self.comes_back_with(wanted, cancel)),
        }
    }

    /// Plays the file over the socket; returns whether its frames are visible, or why it cannot be
    /// played.
    fn tell(
        &mut self,
        ipc: &mut Ipc,
        wanted: &Wanted,
        cancel: &Cancel,
    ) -> Result<Result<bool, String>, NotUp> {
        let before = match &self.plays {
            Some((file, _)) => Some(file.clone()),
            None => ipc.playing(cancel)?,
        };
        let is_new = before.as_ref() != Some(&wanted.file) || self.is_rewritten(wanted);
        if self.is_seen && !is_new {
            return Ok(Ok(true));
        }
        // mpv stays paused over a change of files, and a paused video counts as seen.
        self.resume(ipc, cancel)?;
        if is_new {
            ipc.load(&wanted.file, before.as_deref(), cancel)
        } else {
            ipc.watch(cancel).map(Ok)
        }
    }

    /// Whether a process that does not answer has stopped itself with this video, and will play it once
    /// it is visible again.
    fn comes_back_with(&mut self, wanted: &Wanted, cancel: &Cancel) -> bool {
        let begun_with = self.process.record().args().pop();
        let is_its = begun_with.is_some_and(|file| file == wanted.file.as_os_str());
        if !is_its || self.is_rewritten(wanted) || !has_stopped(self.process.child(), cancel) {
            return false;
        }
        self.know(wanted);
        self.unseen = if self.is_seen {
            None
        } else {
            Some(self.watch(None))
        };
        true
    }

    fn watch(&self, ipc: Option<Ipc>) -> FrameWatch {
        FrameWatch {
            socket: self.socket(),
            child: self.process.child().clone(),
            ipc,
        }
    }

    /// Whether the content of its file has changed since it was loaded.
    pub(super) fn is_rewritten(&self, wanted: &Wanted) -> bool {
        self.plays
            .as_ref()
            .is_some_and(|(_, content)| *content != wanted.content)
    }

    /// Whether the process stops itself while it is not visible.
    pub(super) fn stops_itself(&self) -> bool {
        self.process.record().args().iter().any(|arg| arg == STOPS)
    }

    fn connect(&self, within: Duration, cancel: &Cancel) -> Result<Ipc, NotUp> {
        Ipc::connect(
            &self.socket(),
            self.process.child(),
            Instant::now() + within,
            cancel,
        )
    }

    fn know(&mut self, wanted: &Wanted) {
        self.plays = Some((wanted.file.clone(), wanted.content.clone()));
    }

    /// Waits until it plays what it was started with.
    pub(super) fn wait_until_it_plays(&mut self, cancel: &Cancel) -> Result<(), Error> {
        let child = self.process.child();
        let until = Instant::now() + PLAYS_WITHIN;
        self.unseen = match ipc::wait_until_it_plays(&self.socket(), child, until, cancel) {
            Ok(Ok(ipc)) => ipc.map(|ipc| self.watch(Some(ipc))),
            Ok(Err(why)) => {
                let path = self.plays.as_ref().map(|(file, _)| file.clone());
                return Err(Error::File {
                    path: path.unwrap_or_default(),
                    why,
                });
            }
            Err(NotUp::Cancelled) => return Err(Error::Cancelled),
            Err(_) if has_stopped(child, cancel) => Some(self.watch(None)),
            Err(NotUp::Late) => {
                let name = self.name();
                let said = self.process.last_words();
                let why = format!("{name}: it did not start playing in time: {said}");
                return Err(Error::Unavailable(why));
            }
            Err(other) => return Err(other.error(self.name(), Some(&self.process))),
        };
        self.is_seen = self.unseen.is_none();
        Ok(())
    }

    /// The player's name in messages.
    fn name(&self) -> String {
        format!("{NAME} on {}", self.output())
    }

    fn output(&self) -> &str {
        self.process.record().output.as_deref().unwrap_or_default()
    }

    /// Pauses the video if it plays, or resumes it if murald has paused it.
    pub(super) fn set_paused(&mut self, paused: bool, cancel: &Cancel) -> Result<(), Error> {
        if self.paused == paused && !self.is_unconfirmed {
            return Ok(());
        }
        let done = self.connect(PAUSES_WITHIN, cancel).and_then(|mut ipc| {
            if paused {
                self.pause(&mut ipc, cancel)
            } else {
                self.resume(&mut ipc, cancel)
            }
        });
        if done.is_err() && is_stopped(self.process.child()) {
            // A stopped process does not play.
            return Ok(());
        }
        done.map_err(|error| error.error(self.name(), None))
    }

    /// Changes the sound while the video plays; returns the resulting sound, also without a change.
    pub(super) fn set_sound(
        &mut self,
        change: SoundChange,
        cancel: &Cancel,
    ) -> Result<Sound, Error> {
        let done = self.connect(PAUSES_WITHIN, cancel).and_then(|mut ipc| {
            if !ipc.has_audio(cancel)? {
                return Ok(None);
            }
            if change != SoundChange::default() {
                fs::write(self.process.beside(SOUND), "")?;
            }
            ipc.change_sound(change, cancel).map(Some)
        });
        let mute = || Error::Refused(format!("the video on {} has no audio track", self.output()));
        done.map_err(|error| error.error(self.name(), None))?
            .ok_or_else(mute)
    }

    /// Whether its sound was set since it was started.
    pub(super) fn has_own_sound(&self) -> bool {
        self.process.beside(SOUND).exists()
    }

    fn pause(&mut self, ipc: &mut Ipc, cancel: &Cancel) -> Result<(), NotUp> {
        // Somebody else has paused the video, so murald must not resume it.
        if !self.paused && ipc.is_paused(cancel)? {
            return Ok(());
        }
        // Noted before the pause, so that the next daemon can resume the video if this one is killed.
        fs::write(
            self.process.beside(PAUSED),
            if self.is_seen { "" } else { UNSEEN },
        )?;
        (self.paused, self.is_unconfirmed) = (true, true);
        ipc.pause(true, cancel)?;
        self.is_unconfirmed = false;
        Ok(())
    }

    fn resume(&mut self, ipc: &mut Ipc, cancel: &Cancel) -> Result<(), NotUp> {
        if self.paused {
            ipc.pause(false, cancel)?;
            (self.paused, self.is_unconfirmed) = (false, false);
            fs::remove_file(self.process.beside(PAUSED)).ok();
        }
        Ok(())
    }
}

const HOLDER: &str = "mpvpaper-holder";
/// The time limit from the loss of mpv's socket until the process is the holder, or has exited.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct FrameWatch {
    pub(super) socket: PathBuf,
    pub(super) child: Child,
    /// None while it has stopped itself.
    pub(super) ipc: Option<Ipc>,
}

impl FrameWatch {
    /// Waits without a time limit until frames are visible; returns false if the process exits before,
    /// or if this is cancelled. Calls `stopped` each time the process has stopped itself.
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
        // The holder has no socket, so a socket file from before it is stale.
        let before = before.filter(|_| is_stopped(&self.child));
        let until = Instant::now() + FOR_GOOD;
        let stream = connect_when_up(&self.socket, before, &self.child, until, cancel)?;
        let mut ipc = Ipc::new(stream, &self.child, until);
        ipc.observe()?;
        Ok(ipc)
    }
}

/// Whether a process that does not answer has stopped itself, or does so within [`STOPS_WITHIN`].
pub(super) fn has_stopped(child: &Child, cancel: &Cancel) -> bool {
    let until = Some(Instant::now() + STOPS_WITHIN);
    is_stopped(child) || (!child.wait(until, Some(cancel)) && is_stopped(child))
}

pub(super) fn is_stopped(child: &Child) -> bool {
    let program = fs::read_link(format!("/proc/{}/exe", child.identity().pid)).ok();
    let name = program.as_deref().and_then(|program| program.file_name());
    // The name is longer if the program is wrapped or was replaced on disk.
    name.is_some_and(|name| name.to_string_lossy().contains(HOLDER))
}

#[derive(Debug)]
pub(super) struct Handover {
    cancel: CancelOnDrop,
    seen: Arc<AtomicBool>,
    /// The old process, until it is ended.
    old: Arc<Mutex<Option<Player>>>,
    _thread: Thread,
}

impl Handover {
    /// Ends `old` once frames of `new` are visible, and reports this on `tell`. If both stop themselves
    /// while they are not visible, `old` ends when `new` stops: it shows nothing either, and would come
    /// back above `new`. If the thread cannot be started, `old` stays; it is recorded, so the next
    /// daemon ends it.
    pub(super) fn start(
        spawner: &Spawner,
        mut new: FrameWatch,
        old: Option<Player>,
        tell: Sender<()>,
    ) -> Option<Self> {
        let cancel = Cancel::new().ok()?;
        let seen = Arc::new(AtomicBool::new(false));
        let old = Arc::new(Mutex::new(old));
        let until = cancel.clone();
        let is_seen = Arc::clone(&seen);
        let its = Arc::clone(&old);
        let wait = move || {
            let end_stopping = || {
                if let Some(old) = lock(&its).take_if(|old| old.stops_itself()) {
                    old.process.end(GRACE);
                }
            };
            if new.wait(&until, end_stopping) {
                if let Some(old) = lock(&its).take() {
                    old.process.end(GRACE);
                }
                is_seen.store(true, Ordering::SeqCst);
                // If the channel is full, a message is waiting already.
                tell.try_send(()).ok();
            }
        };
        let thread = spawner.spawn("mpv-handover", wait);
        let thread = thread
            .inspect_err(|error| log::error!("cannot start a thread for changing videos: {error}"));
        Some(Self {
            cancel: CancelOnDrop(cancel),
            seen,
            old,
            _thread: thread.ok()?,
        })
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }

    /// Calls `tell` with the old process, if it has not been ended.
    pub(super) fn on_old<T>(&self, tell: impl FnOnce(&mut Player) -> T) -> Option<T> {
        lock(&self.old).as_mut().map(tell)
    }

    /// Stops waiting, and returns the old process if it has not been ended.
    pub(super) fn settle(self) -> Option<Player> {
        self.cancel.0.cancel();
        lock(&self.old).take()
    }
}
