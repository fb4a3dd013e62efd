//! mpvpaper 1.4 to 1.9: one process for each output, and mpv's own socket to change its video.
//!
//! A new process is started only where there is none with the right options, or the old one does not
//! answer; frames of it are seen before the old one goes, and be it hours later, as the output is off
//! (`handover`). One that cannot load its file hangs, deaf to SIGTERM: so those that do not come up
//! are killed.

mod args;
mod frames;
pub(super) mod fuzz;
mod handover;
mod ipc;
mod screen;
mod watch;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use super::context::{Context, Settings};
use super::copies::{Copies, Takes};
use super::{Backend, Error, Placement};
use crate::config::Mpvpaper as Options;
use crate::process::plain_name;
use crate::sys::Cancel;
use crate::wire::Format;

use args::{Wanted, args, matched};
use handover::Handover;
use screen::{PLAYS_WITHIN, Screen, Told};
use watch::Watch;

const NAME: &str = "mpvpaper";
/// mpv is told of a file in JSON, which has no place for other bytes than UTF-8.
const TAKES: Takes = Takes {
    formats: Some(&[Format::Mp4, Format::Webm, Format::Mkv, Format::Mov, Format::Avi]),
    turns: true,
    name: Some(|path| path.to_str().is_some()),
};

pub(super) struct Mpvpaper {
    context: Context,
    settings: Settings,
    copies: Copies,
    screens: Vec<Screen>,
    /// Of outputs whose new film was not seen yet.
    handovers: Vec<Handover>,
    /// Processes that run are not to be used.
    renew: bool,
    /// The number of the last socket that was named.
    last_socket: u32,
}

impl Mpvpaper {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let screens = context.take_over(NAME).into_iter().filter_map(Screen::taken_over).collect();
        let copies = Copies::new(context.cache.join("copies"));
        let handovers = Vec::new();
        Self { context, settings, copies, screens, handovers, renew: false, last_socket: 0 }
    }

    fn wanted(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<Vec<Wanted>, Error> {
        let outputs = self.context.outputs.list();
        let wanted = |placement: &Placement| {
            Ok(Wanted {
                output: placement.output.name.clone(),
                matched: matched(&placement.output, &outputs)?,
                file: self.copies.ready(&placement.path, &TAKES, cancel)?,
                content: placement.content.clone(),
                audio: placement.audio_enabled,
                fit: placement.fit,
            })
        };
        placements.iter().map(wanted).collect()
    }

    /// The last process that was started for an output, if its options are those of now.
    fn current(&mut self, wanted: &Wanted, options: &Options) -> Option<&mut Screen> {
        if self.renew {
            return None;
        }
        let screen = self.screens.iter_mut().rev().find(|s| s.output == wanted.output)?;
        let same = args(options, wanted, &screen.socket);
        let recorded = screen.process.record().args();
        let same = match options.auto_stop {
            // It comes back with the film that it was started with.
            true => recorded == same && !screen.is_rewritten(wanted),
            // All but the file, which may have been changed since.
            false => recorded.split_last()?.1 == same.split_last()?.1,
        };
        (same && screen.process.child().is_running()).then_some(screen)
    }

    /// Starts a process for an output; it does not play yet.
    fn start(&mut self, wanted: &Wanted, options: &Options) -> Result<Screen, Error> {
        let socket = self.unused_socket()?;
        let launch =
            self.context.launch(self.context.program(NAME)?).args(args(options, wanted, &socket));
        let process = self.context.start(&launch, NAME, Some(&wanted.output))?;
        Ok(Screen::started(process, wanted, socket))
    }

    fn unused_socket(&mut self) -> Result<PathBuf, Error> {
        let directory = self.context.records.directory();
        // It splits its options at every space.
        if directory.as_os_str().as_bytes().iter().any(u8::is_ascii_whitespace) {
            let why = format!("{NAME} cannot have its socket in {}", directory.display());
            return Err(Error::Unavailable(why));
        }
        // Those that see to other outputs count for themselves.
        let name = match &self.context.output {
            Some(output) => format!("{NAME}@{}", plain_name(output)),
            None => NAME.to_owned(),
        };
        loop {
            self.last_socket += 1;
            let path = directory.join(format!("{name}-{}.sock", self.last_socket));
            // One of an earlier daemon's process may have this number.
            if !path.exists() && self.screens.iter().all(|screen| screen.socket != path) {
                return Ok(path);
            }
        }
    }

    /// Has every output play its file: by a word where one plays already, else by a new process.
    fn bring_up(&mut self, wanted: &[Wanted], cancel: &Cancel) -> Result<BroughtUp, Error> {
        let settings = (self.settings)();
        let mut up = BroughtUp { started: Vec::new(), unseen: Vec::new() };
        let mut result = Ok(());
        for wanted in wanted {
            result = self.play(wanted, &settings.mpvpaper, &mut up, cancel);
            if result.is_err() {
                break;
            }
        }
        let until = Instant::now() + PLAYS_WITHIN;
        match result.and_then(|()| up.wait(until, cancel)) {
            Ok(()) => Ok(up),
            Err(error) => {
                up.started.into_iter().for_each(Screen::kill);
                Err(error)
            }
        }
    }

    fn play(
        &mut self,
        wanted: &Wanted,
        options: &Options,
        up: &mut BroughtUp,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let told = match self.current(wanted, options) {
            Some(screen) => screen.play(wanted, cancel)?,
            None => Told::Silent,
        };
        match told {
            Told::Seen => {}
            Told::Unseen(watch) => up.unseen.push((wanted.output.clone(), watch)),
            Told::Silent => up.started.push(self.start(wanted, options)?),
        }
        Ok(())
    }

    /// Ends the processes that nobody needs any more, or has them ended once nobody sees them.
    fn replace(&mut self, wanted: &[Wanted], BroughtUp { started, unseen }: BroughtUp) {
        let mut kept: Vec<Screen> = Vec::new();
        let mut gone: Vec<Screen> = Vec::new();
        // The newest first: one for each output stays.
        for screen in self.screens.drain(..).rev() {
            let stays = wanted.iter().any(|wanted| wanted.output == screen.output)
                && started.iter().all(|new| new.output != screen.output)
                && kept.iter().all(|other| other.output != screen.output);
            if stays { kept.push(screen) } else { gone.push(screen) }
        }
        for (output, watch) in unseen {
            // The oldest first.
            let mut old: Vec<_> = gone.extract_if(.., |screen| screen.output == output).collect();
            old.reverse();
            let tell = self.context.tell.clone();
            self.handovers.extend(Handover::start(
                &self.context.spawner,
                (output, watch),
                old,
                tell,
            ));
        }
        kept.extend(started);
        gone.into_iter().for_each(Screen::end);
        self.screens = kept;
    }

    fn note_seen(&mut self) {
        for screen in &mut self.screens {
            let is_its = |handover: &Handover| handover.output == screen.output;
            screen.is_seen |= self.handovers.iter().any(|one| is_its(one) && one.is_seen());
        }
    }

    /// Takes back what was to be ended later.
    fn settle(&mut self) {
        self.note_seen();
        let waiting: Vec<Screen> = self.handovers.drain(..).flat_map(Handover::settle).collect();
        // The oldest first.
        self.screens.splice(..0, waiting);
    }
}

/// What came of having outputs play their files.
struct BroughtUp {
    started: Vec<Screen>,
    /// The outputs on which no frame was seen yet, with what will tell.
    unseen: Vec<(String, Watch)>,
}

impl BroughtUp {
    /// Waits until those that were started play.
    fn wait(&mut self, until: Instant, cancel: &Cancel) -> Result<(), Error> {
        for screen in &mut self.started {
            let unseen = screen.wait_until_it_plays(until, cancel)?;
            screen.is_seen = unseen.is_none();
            self.unseen.extend(unseen.map(|watch| (screen.output.clone(), watch)));
        }
        Ok(())
    }
}

impl Backend for Mpvpaper {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        self.settle();
        self.is_whole();
        let wanted = self.wanted(placements, cancel)?;
        let up = self.bring_up(&wanted, cancel);
        self.renew = false;
        let up = up?;
        self.replace(&wanted, up);
        let files: Vec<PathBuf> = wanted.into_iter().map(|wanted| wanted.file).collect();
        self.copies.tidy(&files);
        Ok(())
    }

    fn renew(&mut self) {
        self.renew = true;
    }

    fn warnings(&mut self) -> Vec<String> {
        let warning = |output: String| {
            format!(
                "{NAME} plays on {output}, but none of its frames has been seen: the output is off \
                 or covered; what was there before stays until one is"
            )
        };
        self.unseen().into_iter().map(warning).collect()
    }

    fn unseen(&mut self) -> Vec<String> {
        let unseen = self.handovers.iter().filter(|handover| !handover.is_seen());
        unseen.map(|handover| handover.output.clone()).collect()
    }

    fn pause(&mut self, outputs: &BTreeSet<String>, cancel: &Cancel) -> Result<(), Error> {
        self.note_seen();
        let mut result = Ok(());
        for screen in &mut self.screens {
            result = screen.rest(outputs.contains(&screen.output), cancel).and(result);
        }
        for handover in &self.handovers {
            result = handover.rest(outputs.contains(&handover.output), cancel).and(result);
        }
        result
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.settle();
        self.screens.drain(..).for_each(Screen::end);
        self.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        let before = self.screens.len();
        for dead in self.screens.extract_if(.., |screen| !screen.process.child().is_running()) {
            let how = dead.process.ended().map_or_else(String::new, |ended| format!(" ({ended})"));
            log::info!("{NAME} on {} ended{how}", dead.output);
            dead.forget();
        }
        self.screens.len() == before
    }
}
