//! Plays videos through mpvpaper 1.4 to 1.9: one process for one output, whose video is changed over
//! mpv's own socket.
//!
//! A new process is started only if none has the right options, or if the old one does not answer. The
//! old process ends once frames of the new one are visible, which may be hours later if the output is
//! off (`player`). Processes in between that were never visible are ended. A process that cannot load
//! its file hangs and ignores SIGTERM, so processes that do not start are killed.

mod args;
mod frames;
#[cfg(parsers)]
#[path = "../../../tests/fuzz/src/parsers/mpvpaper.rs"]
pub(super) mod fuzz;
mod ipc;
mod player;

use std::collections::BTreeSet;
use std::mem;
use std::os::unix::ffi::OsStrExt;

use super::context::{Context, GRACE};
use super::copies::{Names, Takes};
use super::{Backend, Error, Placement};
use crate::config::Mpvpaper as Options;
use crate::media::Cut;
use crate::process::BackendProcess;
use crate::sys::Cancel;
use crate::wire::{Format, Sound, SoundChange};

use args::{NAME, Wanted, args, matched, sound_in};
use player::{Handover, Player};

/// mpv gets paths in JSON, which allows only UTF-8.
const TAKES: Takes = Takes {
    formats: Some(&[
        Format::Mp4,
        Format::Webm,
        Format::Mkv,
        Format::Mov,
        Format::Avi,
    ]),
    turns: true,
    profiles: true,
    animates: true,
    name: Some(Names::Linked(|path| path.to_str().is_some())),
};

pub(super) struct Mpvpaper {
    context: Context,
    output: String,
    /// The processes, the oldest first. All but the last were left by an earlier daemon, or are still to
    /// be ended.
    players: Vec<Player>,
    /// The handover to a new video that is not visible yet.
    handover: Option<Handover>,
    /// The running processes must not be used.
    renew: bool,
}

impl Mpvpaper {
    pub(super) fn new(context: Context) -> Self {
        let output = context
            .output
            .clone()
            .expect("the registry says that it is for one output");
        let running = context.take_over().into_iter();
        let players = running.map(|process| Player::new(process, None)).collect();
        Self {
            context,
            output,
            players,
            handover: None,
            renew: false,
        }
    }

    fn wanted(&mut self, placement: &Placement, cancel: &Cancel) -> Result<Wanted, Error> {
        Ok(Wanted {
            matched: matched(&placement.output, &self.context.shared.outputs.list())?,
            file: self
                .context
                .copies
                .ready(placement, &Cut::WHOLE, &TAKES, cancel)?,
            content: placement.content.clone(),
            audio: placement.audio_enabled,
            sound: placement.sound,
            fit: placement.fit,
            position: placement.position,
        })
    }

    /// The newest process, if it runs with the current options.
    fn current(&mut self, wanted: &Wanted, options: &Options) -> Option<&mut Player> {
        if mem::take(&mut self.renew) {
            return None;
        }
        let player = self.players.last_mut()?;
        let recorded = player.process.record().args();
        let socket = player.socket();
        let is_so = |sound: &Option<Sound>| {
            let same = args(
                options,
                &Wanted {
                    sound: *sound,
                    ..wanted.clone()
                },
                &socket,
            );
            if options.auto_stop {
                // mpvpaper starts the player again with the video of its command line.
                recorded == same && !player.is_rewritten(wanted)
            } else {
                // The process may play another file by now, so the file is not compared.
                recorded.split_last().map(|(_, all)| all) == same.split_last().map(|(_, all)| all)
            }
        };
        let begun_with = [None, sound_in(&recorded)].into_iter().find(is_so)?;
        // The sound of one video is not kept for the next.
        let is_set = begun_with.is_some() || player.has_own_sound();
        let same = is_set == wanted.sound.is_some();
        (same && player.process.child().is_running()).then_some(player)
    }

    /// Starts a process; it does not play yet.
    fn start(&mut self, wanted: &Wanted, options: &Options) -> Result<Player, Error> {
        let directory = self.context.shared.records.directory();
        // mpvpaper splits its options at every space.
        if directory
            .as_os_str()
            .as_bytes()
            .iter()
            .any(u8::is_ascii_whitespace)
        {
            let why = format!("{NAME} cannot have its socket in {}", directory.display());
            return Err(Error::Unavailable(why));
        }
        let launch = self.context.launch(self.context.program(NAME)?);
        let process = self
            .context
            .start(|socket| launch.args(args(options, wanted, socket)))?;
        Ok(Player::new(process, Some(wanted)))
    }

    /// Plays the file in the running process, or else in a new one, which becomes the last.
    fn play(&mut self, wanted: &Wanted, cancel: &Cancel) -> Result<(), Error> {
        let settings = self.context.settings();
        if let Some(player) = self.current(wanted, &settings.mpvpaper)
            && player.play(wanted, cancel)?
        {
            return Ok(());
        }
        let mut player = self.start(wanted, &settings.mpvpaper)?;
        match player.wait_until_it_plays(cancel) {
            Ok(()) => {
                player.process.release_log();
                self.players.push(player);
                Ok(())
            }
            Err(error) => {
                player.process.kill();
                Err(error)
            }
        }
    }

    /// Ends all processes but the last. The one on the screen ends only once frames of the last one are
    /// visible.
    fn replace(&mut self) {
        let Some(mut last) = self.players.pop() else {
            return;
        };
        let mut old = mem::take(&mut self.players);
        if let Some(watch) = last.unseen.take() {
            // If an earlier daemon left several processes, the oldest is the one on the screen.
            let on_screen = old.iter().rposition(|player| player.is_seen).unwrap_or(0);
            let kept = (on_screen < old.len()).then(|| old.remove(on_screen));
            let tell = self.context.tell.clone();
            self.handover = Handover::start(&self.context.shared.spawner, watch, kept, tell);
        }
        self.players.push(last);
        old.into_iter().for_each(|player| player.process.end(GRACE));
    }

    fn note_seen(&mut self) {
        let is_seen = self.handover.as_ref().is_some_and(Handover::is_seen);
        for player in &mut self.players {
            player.is_seen |= is_seen;
        }
    }

    /// Cancels the handover, and takes back the process that it would have ended.
    fn settle(&mut self) {
        self.note_seen();
        let waiting = self.handover.take().and_then(Handover::settle);
        self.players.splice(..0, waiting);
    }
}

impl Backend for Mpvpaper {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        let mut its = placements
            .iter()
            .filter(|placement| placement.output.name == self.output);
        let Some(placement) = its.next() else {
            return self.clear();
        };
        self.settle();
        self.is_whole();
        let wanted = self.wanted(placement, cancel)?;
        self.play(&wanted, cancel)?;
        self.replace();
        self.context.copies.tidy(&[wanted.file]);
        Ok(())
    }

    fn renew(&mut self) {
        self.renew = true;
    }

    fn warnings(&mut self) -> Vec<String> {
        let warning = |output: String| {
            format!(
                "{NAME} plays on {output}, but has shown no frame: the output is off or covered, or \
                 this machine is too slow for the video; the previous wallpaper stays until then"
            )
        };
        self.unseen().into_iter().map(warning).collect()
    }

    fn unseen(&mut self) -> Vec<String> {
        let is_unseen = self
            .handover
            .as_ref()
            .is_some_and(|handover| !handover.is_seen());
        is_unseen.then(|| self.output.clone()).into_iter().collect()
    }

    fn pause(&mut self, outputs: &BTreeSet<String>, cancel: &Cancel) -> Result<(), Error> {
        self.note_seen();
        let paused = outputs.contains(&self.output);
        let mut result = Ok(());
        for player in &mut self.players {
            result = player.set_paused(paused, cancel).and(result);
        }
        match &self.handover {
            Some(handover) => {
                let old = handover.on_old(|old| old.set_paused(paused, cancel));
                old.unwrap_or(Ok(())).and(result)
            }
            None => result,
        }
    }

    fn sound(&mut self, change: SoundChange, cancel: &Cancel) -> Result<Sound, Error> {
        if let Some(handover) = &self.handover {
            // The old process may have been ended just now.
            handover
                .on_old(|old| old.set_sound(change, cancel))
                .transpose()
                .ok();
        }
        let nothing = Err(Error::Refused(format!(
            "{NAME} plays nothing on {}",
            self.output
        )));
        self.players
            .iter_mut()
            .fold(nothing, |_, player| player.set_sound(change, cancel))
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.settle();
        self.players
            .drain(..)
            .for_each(|player| player.process.end(GRACE));
        self.context.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        let before = self.players.len();
        let dead = self
            .players
            .extract_if(.., |player| !player.process.child().is_running());
        dead.map(|player| player.process)
            .for_each(BackendProcess::forget);
        self.players.len() == before
    }
}
