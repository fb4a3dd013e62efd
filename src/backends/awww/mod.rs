//! Shows pictures through awww (swww until 2025): a server that a client program controls.
//!
//! Success is checked after each call of the client: the server's query reports the picture and the size
//! of each output.
//!
//! A server that already runs is used, but never stopped. Its exit is noticed at the next call. The
//! server reads everything that a client sends before it does anything else, so a connection that stays
//! open to notice the exit would block it. Calls are made one after another, because concurrent ones
//! glitch (LGFae/swww#220).

mod call;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::{Context, GRACE, Processes, ask_until_up};
use super::copies::{Takes, seen_part};
use super::fit_and_transition::fit_or;
use super::socket::pause;
use super::{Backend, Error, Placement, decoding};
use crate::config::{Awww as Options, AwwwFormat, AwwwResize, AwwwTransition, BackendName};
use crate::decode::Decoder;
use crate::process::{BackendProcess, Output, run};
use crate::sys::Cancel;
use crate::wire::Format;

pub(super) use call::queried;
use call::{Call, MonitorPicture, PictureLook, args, calls};
use call::{Geometry, Queried};

const NAME: &str = "awww";
/// The client answers as soon as the server has the picture, before any transition.
const CALL: Duration = Duration::from_secs(10);
/// The time limit for the start of a server, and the first and the longest pause between queries.
const UP_WITHIN: (Duration, Duration, Duration) = (
    Duration::from_secs(10),
    Duration::from_millis(5),
    Duration::from_millis(500),
);
/// The time limit for a server that answers to know its outputs.
const OUTPUTS_WITHIN: Duration = Duration::from_secs(2);
/// The time for the first frame of a new server, with a margin.
const DRAWN_AFTER: Duration = Duration::from_millis(200);
/// The time limit for the server to know the picture of its client and the sizes of the compositor.
const HEARS_WITHIN: Duration = Duration::from_millis(500);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(20);
const TRIES: usize = 3;
const TAKES: Takes = Takes {
    formats: Some(&[
        Format::Jpg,
        Format::Png,
        Format::Gif,
        Format::Webp,
        Format::Bmp,
        Format::Tiff,
    ]),
    turns: false,
    profiles: true,
    animates: true,
    name: None,
};

pub(super) struct Awww {
    context: Context,
    /// The servers that murald started.
    servers: Processes,
    /// The picture that this daemon has set on each output; `None` if that failed.
    shown: HashMap<String, Option<MonitorPicture>>,
    /// The settings at the last change.
    options: Option<Options>,
}

impl Awww {
    pub(super) fn new(context: Context) -> Self {
        let servers = Processes::taken_over(&context);
        Self {
            context,
            servers,
            shown: HashMap::new(),
            options: None,
        }
    }

    /// The client and the server of the same name, awww or else swww.
    fn programs(&self) -> Result<(PathBuf, PathBuf), Error> {
        let pair =
            |client, server| Ok((self.context.program(client)?, self.context.program(server)?));
        pair("awww", "awww-daemon")
            .or_else(|error: Error| pair("swww", "swww-daemon").map_err(|_| error))
    }

    /// The outputs as the server reports them; `None` if no server answers.
    fn query(&self, client: &Path, cancel: &Cancel) -> Result<Option<Vec<Queried>>, Error> {
        let output = self.call(client, ["query".into()].into(), cancel)?;
        Ok(output
            .is_success()
            .then(|| queried(&String::from_utf8_lossy(&output.stdout))))
    }

    fn call(&self, client: &Path, args: Vec<OsString>, cancel: &Cancel) -> Result<Output, Error> {
        let launch = self.context.launch(client).args(args);
        Ok(run(&launch, CALL, &[cancel])?)
    }

    /// Starts a server of ours and waits until it answers and knows the outputs.
    fn start(
        &mut self,
        client: &Path,
        server: PathBuf,
        placements: &[Placement],
        cancel: &Cancel,
    ) -> Result<Vec<Queried>, Error> {
        // Without --no-cache the server also shows a picture from its cache, which may replace ours.
        let mut launch = self.context.launch(server).args(["--no-cache"]);
        let format = self.context.settings().awww.daemon_format;
        if format != AwwwFormat::Default {
            launch = launch.args(["--format", format.as_str()]);
        }
        let process = self.context.start(|_| launch)?;
        let begun = Instant::now();
        let outputs = ask_until_up(&process, UP_WITHIN, cancel, || {
            match self.query(client, cancel) {
                Err(Error::Cancelled) => Err(Error::Cancelled),
                // Too early: it has no socket yet, or not all outputs.
                answer => Ok(answer.ok().flatten().filter(|outputs| {
                    unknown(placements, outputs).is_none() || begun.elapsed() > OUTPUTS_WITHIN
                })),
            }
        });
        let outputs =
            outputs.and_then(|outputs| outputs.ok_or_else(|| failed(&process, "does not start")));
        match outputs {
            Ok(_) => self.servers.push(process),
            Err(_) => process.end(GRACE),
        }
        outputs
    }

    /// An error if our server has exited.
    fn ended(&self) -> Option<Error> {
        let server = self.servers.newest()?;
        self.servers.has_ended().then(|| failed(server, "exited"))
    }

    /// Checks that a new server survives its first picture. It answers before it has drawn, and the
    /// compositor disconnects it if it does not support its pixel format.
    fn has_drawn(&self, cancel: &Cancel) -> Result<(), Error> {
        let Some(new) = self.servers.newest() else {
            return Ok(());
        };
        if new
            .child()
            .wait(Some(Instant::now() + DRAWN_AFTER), Some(cancel))
        {
            return Err(failed(new, "exited"));
        }
        if cancel.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Shows the placements through a server that answers.
    fn show_by(
        &mut self,
        client: &Path,
        outputs: &[Queried],
        placements: &[Placement],
        cancel: &Cancel,
    ) -> Result<(), Error> {
        // The server ignores unknown outputs without an error.
        if let Some(name) = unknown(placements, outputs) {
            return Err(Error::Refused(format!(
                "{NAME} does not know the output {name}"
            )));
        }
        let options = self.context.settings();
        self.note_settings(&options.awww);
        let mut wanted = Vec::new();
        for placement in placements {
            let resize = fit_or(BackendName::Awww, placement.fit, options.awww.resize);
            let cut = seen_part(placement, resize == AwwwResize::Crop);
            let path = self.context.copies.ready(placement, &cut, &TAKES, cancel)?;
            let look = PictureLook::new(path, &options.awww, resize);
            let geometry = Geometry::from_output(&placement.output);
            wanted.push((
                placement.output.name.clone(),
                MonitorPicture { look, geometry },
            ));
        }
        for call in calls(&wanted, &self.shown, outputs) {
            self.set(client, &call, outputs.to_vec(), cancel)?;
        }
        let files: Vec<PathBuf> = wanted
            .iter()
            .map(|(_, shown)| shown.look.path.clone())
            .collect();
        self.shown
            .extend(wanted.into_iter().map(|(name, shown)| (name, Some(shown))));
        self.context.copies.tidy(&files);
        Ok(())
    }

    /// After a change of the settings all pictures are set again, as only this shows the change.
    fn note_settings(&mut self, options: &Options) {
        if self.context.transition.is_some() {
            return;
        }
        if self
            .options
            .replace(options.clone())
            .is_some_and(|last| last != *options)
        {
            self.shown.values_mut().for_each(|shown| *shown = None);
        }
    }

    /// Shows a picture on the outputs of a call. `before` has the sizes that the server has reported
    /// last.
    fn set(
        &mut self,
        client: &Path,
        call: &Call,
        mut before: Vec<Queried>,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        self.shown
            .extend(call.outputs.iter().map(|name| (name.clone(), None)));
        let mut is_resize = call.is_resize;
        for _ in 0..TRIES {
            self.img(client, call, is_resize, cancel)?;
            let after = self.hears(client, call, cancel)?;
            if call.are_sizes_of(&before, &after) {
                return Ok(());
            }
            // A picture made for another size is not drawn, or its transition stops midway.
            (before, is_resize) = (after, true);
        }
        Err(Error::Refused(format!(
            "the outputs of {NAME} keep changing size"
        )))
    }

    fn img(&self, client: &Path, call: &Call, at_once: bool, cancel: &Cancel) -> Result<(), Error> {
        let mut options = Options {
            resize: call.look.resize,
            ..self.context.settings().awww.clone()
        };
        // A transition would start from black over another server's picture, and from remains of the
        // picture after a resize.
        if at_once || self.servers.has_older() {
            options.transition_type = AwwwTransition::None;
        }
        let output = self.call(
            client,
            args(&options, &call.outputs, &call.look.path),
            cancel,
        )?;
        if !output.is_success() {
            let decoder = self.context.shared.decoder.until(cancel);
            return Err(self
                .ended()
                .unwrap_or_else(|| failure(&output, &call.look.path, &decoder)));
        }
        Ok(())
    }

    /// Waits until the server reports the picture and the current sizes of the outputs. Its client exits
    /// before the server has the picture everywhere, and the server may learn sizes later than murald.
    fn hears(&self, client: &Path, call: &Call, cancel: &Cancel) -> Result<Vec<Queried>, Error> {
        let until = Instant::now() + HEARS_WITHIN;
        loop {
            let outputs = self.query(client, cancel)?.ok_or_else(|| {
                let why = format!("the {NAME} server stopped during the call");
                self.ended().unwrap_or(Error::Unavailable(why))
            })?;
            let missing = call.missing(&outputs);
            let is_late = Instant::now() > until;
            match missing {
                Some(name) if is_late => {
                    let path = call.look.path.display();
                    return Err(Error::Refused(format!(
                        "{NAME} does not show {path} on {name}"
                    )));
                }
                // Not every server reports fractional scales.
                None if is_late || call.sizes_are_known(&outputs) => return Ok(outputs),
                _ => pause(BETWEEN_QUESTIONS, cancel)?,
            }
        }
    }
}

impl Backend for Awww {
    fn use_transition(&mut self, word: Option<&str>) {
        self.context.transition = word.map(str::to_owned);
    }

    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        let (client, server) = self.programs()?;
        self.servers.reap();
        if let Some(outputs) = self.query(&client, cancel)? {
            let shown = self.show_by(&client, &outputs, placements, cancel);
            // If our server has crashed, it is started once more.
            if shown.is_ok() || cancel.is_cancelled() || self.servers.is_whole() {
                return shown;
            }
        }
        let outputs = self.start(&client, server, placements, cancel)?;
        self.shown.clear();
        let shown = self.show_by(&client, &outputs, placements, cancel);
        let shown = shown.and_then(|()| self.has_drawn(cancel));
        match shown {
            // The older servers have lost their socket.
            Ok(()) => self.servers.kill_older(),
            // The older picture is still on the screen.
            Err(_) => {
                self.servers
                    .pop()
                    .into_iter()
                    .for_each(|new| new.end(GRACE));
                self.shown.clear();
            }
        }
        shown
    }

    fn clear(&mut self) -> Result<(), Error> {
        if self.servers.newest().is_none() {
            log::info!("not stopping the {NAME} server: murald did not start it");
        }
        self.servers.end_all();
        self.shown.clear();
        self.context.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        self.servers.is_whole()
    }
}

/// An error with the last `ERROR` in the server's log, or else its last lines. A server that loses its
/// compositor exits as if nothing were wrong.
fn failed(server: &BackendProcess, how: &str) -> Error {
    let shown = server.record().shown();
    let tail = server.log_tail();
    let error = tail.lines().rfind(|line| line.contains("ERROR"));
    let why = error.map_or_else(|| server.last_words(), |error| error.trim().to_owned());
    Error::Unavailable(format!("{shown} {how}: {why}"))
}

/// The reason why a call has failed. awww fails alike for files and for flags, so the file is to blame
/// if murald cannot read it either.
fn failure(output: &Output, path: &Path, decoder: &Decoder) -> Error {
    decoding::read_whole(decoder, path)
        .err()
        .unwrap_or_else(|| Error::Refused(format!("{NAME} failed: {}", complaint(output))))
}

/// The error of a client. Its first line names a wrong flag; its last line only points to the help.
fn complaint(output: &Output) -> String {
    let first = output
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("error: "));
    first.map_or_else(|| output.complaint(), str::to_owned)
}

/// An output of the placements that the server does not know.
fn unknown<'a>(placements: &'a [Placement], outputs: &[Queried]) -> Option<&'a str> {
    let names = placements
        .iter()
        .map(|placement| placement.output.name.as_str());
    names
        .into_iter()
        .find(|name| outputs.iter().all(|output| output.name != *name))
}
