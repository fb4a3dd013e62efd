//! Talks to mpv over its JSON socket: each line is a command, an answer or an event.
//!
//! Runs on the worker's thread, and on that of a handover. Every wait ends at its deadline, with the
//! process, or when it is cancelled.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::frames::Frames;
use crate::backends::socket::{NotUp, connect_when_up, wait};
use crate::process::Child;
use crate::sys::{Cancel, connect};
use crate::wire::{Sound, SoundChange};

/// The longest line from mpv, in bytes.
const LINE_MAX: usize = 1 << 20;
/// The time limit for frames of a playing video to be visible, unless its output is off or covered.
const SEEN_WITHIN: Duration = Duration::from_secs(3);
pub(super) const FOR_GOOD: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Debug)]
pub(super) struct Ipc {
    stream: UnixStream,
    child: Child,
    until: Instant,
    pending: Vec<u8>,
    frames: Frames,
}

impl Ipc {
    /// Connects to an mpv that already listens.
    pub(super) fn connect(
        socket: &Path,
        child: &Child,
        until: Instant,
        cancel: &Cancel,
    ) -> Result<Self, NotUp> {
        if cancel.is_cancelled() {
            return Err(NotUp::Cancelled);
        }
        Ok(Self::new(connect(socket)?, child, until))
    }

    pub(super) fn new(stream: UnixStream, child: &Child, until: Instant) -> Self {
        Self {
            stream,
            child: child.clone(),
            until,
            pending: Vec::new(),
            frames: Frames::default(),
        }
    }

    /// The file that mpv plays; `None` if it does not say.
    pub(super) fn playing(&mut self, cancel: &Cancel) -> Result<Option<PathBuf>, NotUp> {
        Ok(self.get("path", cancel)?.as_str().map(PathBuf::from))
    }

    /// Plays another file. Returns whether its frames are visible soon, or why mpv cannot play it; mpv
    /// then goes on with the file `before`.
    pub(super) fn load(
        &mut self,
        file: &Path,
        before: Option<&Path>,
        cancel: &Cancel,
    ) -> Result<Result<bool, String>, NotUp> {
        self.observe()?;
        self.say(&load_command(file, "replace", 2))?;
        if let Some(before) = before {
            // mpv exits after its last file, and mpvpaper with it, which would leave the screen empty.
            // If mpv has already failed with the first file and exited, this fails and its report is
            // read below.
            self.say(&load_command(before, "append", 3)).ok();
        }
        let said = self.hear(cancel, |said, _| {
            let refused = said["request_id"] == 2 && said["error"] != "success";
            said["event"] == "file-loaded" || failed(said) || refused
        })?;
        if said["event"] != "file-loaded" {
            return Ok(Err(refusal(&said)));
        }
        if before.is_some() {
            self.say(&json!({ "command": ["playlist-remove", 1], "request_id": 4 }))?;
        }
        Ok(Ok(self.is_seen(cancel)?))
    }

    /// Whether frames of the current file are visible soon.
    pub(super) fn watch(&mut self, cancel: &Cancel) -> Result<bool, NotUp> {
        self.observe()?;
        self.is_seen(cancel)
    }

    /// Whether frames are visible soon. If not, this is no failure, as the output may be off.
    fn is_seen(&mut self, cancel: &Cancel) -> Result<bool, NotUp> {
        self.until = self.until.min(Instant::now() + SEEN_WITHIN);
        match self.hear(cancel, |_, frames| frames.are_seen()) {
            Ok(_) => Ok(true),
            // It is a failure if not even the video output is configured.
            Err(NotUp::Late) if self.frames.are_set_up() => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Waits without a time limit until frames are visible.
    pub(super) fn wait_until_seen(&mut self, cancel: &Cancel) -> Result<(), NotUp> {
        self.until = Instant::now() + FOR_GOOD;
        self.frames.reset();
        self.hear(cancel, |_, frames| frames.are_seen()).map(drop)
    }

    /// Whether mpv is paused.
    pub(super) fn is_paused(&mut self, cancel: &Cancel) -> Result<bool, NotUp> {
        Ok(self.get("pause", cancel)? == true)
    }

    /// Pauses or resumes mpv.
    pub(super) fn pause(&mut self, paused: bool, cancel: &Cancel) -> Result<(), NotUp> {
        self.set("pause", paused, cancel)
    }

    /// Whether what it plays has sound that can be turned on.
    pub(super) fn has_audio(&mut self, cancel: &Cancel) -> Result<bool, NotUp> {
        let tracks = self.get("track-list", cancel)?;
        Ok(tracks
            .as_array()
            .into_iter()
            .flatten()
            .any(|track| track["type"] == "audio"))
    }

    /// Changes the sound; returns the resulting sound.
    pub(super) fn change_sound(
        &mut self,
        SoundChange { muted, volume }: SoundChange,
        cancel: &Cancel,
    ) -> Result<Sound, NotUp> {
        // The volume comes first, or a moment would be too loud.
        if let Some(volume) = volume {
            self.set("volume", volume, cancel)?;
        }
        if let Some(muted) = muted {
            self.set("mute", muted, cancel)?;
        }
        let mut is_off = self.get("aid", cancel)? == false;
        if is_off && muted == Some(false) {
            self.set("aid", "auto", cancel)?;
            is_off = false;
        }
        let muted = is_off || self.get("mute", cancel)? == true;
        let volume = self.get("volume", cancel)?.as_f64().unwrap_or(100.0);
        Ok(Sound {
            muted,
            volume: volume.round().clamp(0.0, 100.0) as u8,
        })
    }

    fn get(&mut self, property: &str, cancel: &Cancel) -> Result<Value, NotUp> {
        self.say(&json!({ "command": ["get_property", property], "request_id": 5 }))?;
        Ok(self.hear(cancel, |said, _| said["request_id"] == 5)?["data"].take())
    }

    fn set(
        &mut self,
        property: &str,
        value: impl Into<Value>,
        cancel: &Cancel,
    ) -> Result<(), NotUp> {
        let value: Value = value.into();
        self.say(&json!({ "command": ["set_property", property, value], "request_id": 6 }))?;
        let said = self.hear(cancel, |said, _| said["request_id"] == 6)?;
        match said["error"].as_str() {
            Some("success") => Ok(()),
            why => Err(io::Error::other(why.unwrap_or("mpv refused it").to_owned()).into()),
        }
    }

    pub(super) fn observe(&mut self) -> Result<(), NotUp> {
        Frames::PROPERTIES
            .iter()
            .zip(1..)
            .try_for_each(|(property, id)| {
                self.say(&json!({ "command": ["observe_property", id, property] }))
            })
    }

    fn say(&mut self, command: &Value) -> Result<(), NotUp> {
        let mut line = command.to_string();
        line.push('\n');
        // The message is far smaller than the socket's buffer, so this does not block.
        Ok(self.stream.write_all(line.as_bytes())?)
    }

    /// Reads lines until one is `wanted`, and returns it.
    fn hear(
        &mut self,
        cancel: &Cancel,
        mut wanted: impl FnMut(&Value, &Frames) -> bool,
    ) -> Result<Value, NotUp> {
        loop {
            while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                // Lines that are not JSON are skipped.
                let said: Value = serde_json::from_slice(&line).unwrap_or_default();
                self.frames.hear(&said);
                if wanted(&said, &self.frames) {
                    return Ok(said);
                }
            }
            if Instant::now() >= self.until || self.pending.len() > LINE_MAX {
                return Err(NotUp::Late);
            }
            wait(
                &[self.stream.as_fd()],
                Some(&self.child),
                self.until,
                cancel,
            )?;
            self.read()?;
        }
    }

    /// Reads what is available. The end is reported after everything from before it was read.
    fn read(&mut self) -> Result<(), NotUp> {
        let mut buffer = [0; 4096];
        let before = self.pending.len();
        let end = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break NotUp::Ended,
                Ok(read) => self.pending.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break error.into(),
            }
        };
        if self.pending.len() > before {
            Ok(())
        } else {
            Err(end)
        }
    }
}

fn load_command(file: &Path, how: &str, id: u32) -> Value {
    let file = file.to_str().unwrap_or_default();
    json!({ "command": ["loadfile", file, how], "request_id": id })
}

fn failed(said: &Value) -> bool {
    said["event"] == "end-file" && said["reason"] == "error"
}

/// Why mpv does not play a file.
fn refusal(said: &Value) -> String {
    let why = said["file_error"].as_str().or(said["error"].as_str());
    why.unwrap_or("mpv cannot play it").to_owned()
}

/// Waits until a new process shows its first frames. Returns `None` once they are visible, or a
/// connection that will report them if the video plays without being visible. The inner error says why
/// mpv cannot play the file.
pub(super) fn wait_until_it_plays(
    socket: &Path,
    child: &Child,
    until: Instant,
    cancel: &Cancel,
) -> Result<Result<Option<Ipc>, String>, NotUp> {
    let stream = connect_when_up(socket, None, child, until, cancel)?;
    let mut ipc = Ipc::new(stream, child, until);
    ipc.observe()?;
    let said = ipc.hear(cancel, |said, frames| frames.are_set_up() || failed(said))?;
    if failed(&said) {
        return Ok(Err(refusal(&said)));
    }
    Ok(Ok(if ipc.is_seen(cancel)? {
        None
    } else {
        Some(ipc)
    }))
}
