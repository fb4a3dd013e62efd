//! awww, or swww as it was called until 2025: a server of its own that a client program controls.
//!
//! The success of its client is checked afterwards: the server's query reports which picture it has
//! on which output, and for which size the picture was made.
//!
//! A server that already runs is used as it is, and is not ours to end. Its end is noticed at the
//! next call: it reads everything that a client sends before it does anything else, so no client
//! may keep it waiting only to notice its end. Calls come one after the other, as the worker makes
//! them: concurrent ones glitch (LGFae/swww#220).

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
/// The time for a server to come up, and the pauses between questions: the first and the longest.
const UP_WITHIN: (Duration, Duration, Duration) =
    (Duration::from_secs(10), Duration::from_millis(5), Duration::from_millis(500));
/// A server that answers knows its outputs a moment later.
const OUTPUTS_WITHIN: Duration = Duration::from_secs(2);
/// The time for the first frame of a new server, with a margin.
const DRAWN_AFTER: Duration = Duration::from_millis(200);
/// It hears of sizes from its compositor, as we do, and of pictures from its client.
const HEARS_WITHIN: Duration = Duration::from_millis(500);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(20);
const TRIES: usize = 3;
/// Between the loss of its socket and its end.
const ENDED_WITHIN: Duration = Duration::from_millis(100);
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
    /// The server, where it is ours.
    servers: Processes,
    /// The picture that this daemon has set on each output; `None` if that failed.
    shown: HashMap<String, Option<MonitorPicture>>,
    /// The settings when it was last told something.
    told: Option<Options>,
}

impl Awww {
    pub(super) fn new(context: Context) -> Self {
        let servers = Processes::taken_over(&context);
        Self { context, servers, shown: HashMap::new(), told: None }
    }

    /// The client and server of one name: awww's, else swww's.
    fn programs(&self) -> Result<(PathBuf, PathBuf), Error> {
        let pair =
            |client, server| Ok((self.context.program(client)?, self.context.program(server)?));
        pair("awww", "awww-daemon")
            .or_else(|error: Error| pair("swww", "swww-daemon").map_err(|_| error))
    }

    /// The outputs as the server reports them; `None` if no server answers.
    fn query(&self, client: &Path, cancel: &Cancel) -> Result<Option<Vec<Queried>>, Error> {
        let output = self.call(client, ["query".into()].into(), cancel)?;
        Ok(output.is_success().then(|| queried(&String::from_utf8_lossy(&output.stdout))))
    }

    fn call(&self, client: &Path, args: Vec<OsString>, cancel: &Cancel) -> Result<Output, Error> {
        Ok(run(&self.context.launch(client).args(args), CALL, Some(cancel))?)
    }

    /// Starts a server of ours and waits until it answers and knows the outputs.
    fn start(
        &mut self,
        client: &Path,
        server: PathBuf,
        placements: &[Placement],
        cancel: &Cancel,
    ) -> Result<Vec<Queried>, Error> {
        // Without --no-cache it shows a picture of its own choice and races us.
        let mut launch = self.context.launch(server).args(["--no-cache"]);
        let format = self.context.settings().awww.daemon_format;
        if format != AwwwFormat::Default {
            launch = launch.args(["--format", format.as_str()]);
        }
        let process = self.context.start(&launch)?;
        let begun = Instant::now();
        let outputs =
            ask_until_up(&process, UP_WITHIN, cancel, || match self.query(client, cancel) {
                Err(Error::Cancelled) => Err(Error::Cancelled),
                // Too early: it has no socket yet, or not all outputs.
                answer => Ok(answer.ok().flatten().filter(|outputs| {
                    unknown(placements, outputs).is_none() || begun.elapsed() > OUTPUTS_WITHIN
                })),
            });
        let outputs =
            outputs.and_then(|outputs| outputs.ok_or_else(|| failed(&process, "does not start")));
        match outputs {
            Ok(_) => self.servers.push(process),
            Err(_) => process.end(GRACE),
        }
        outputs
    }

    /// That our server has ended, if it has: whoever calls it may notice first.
    fn ended(&self) -> Option<Error> {
        let server = self.servers.newest()?;
        server
            .child()
            .wait(Some(Instant::now() + ENDED_WITHIN), None)
            .then(|| failed(server, "has ended"))
    }

    /// Whether a new server outlives its first picture: it answers before it has drawn, and its
    /// compositor ends one whose pixel format it does not take.
    fn has_drawn(&self, cancel: &Cancel) -> Result<(), Error> {
        let Some(new) = self.servers.newest() else { return Ok(()) };
        if new.child().wait(Some(Instant::now() + DRAWN_AFTER), Some(cancel)) {
            return Err(failed(new, "has ended"));
        }
        if cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Has a server that answers show all of it.
    fn show_by(
        &mut self,
        client: &Path,
        outputs: &[Queried],
        placements: &[Placement],
        cancel: &Cancel,
    ) -> Result<(), Error> {
        // It drops a name that it does not know without a word.
        if let Some(name) = unknown(placements, outputs) {
            return Err(Error::Refused(format!("{NAME} does not know the output {name}")));
        }
        let options = self.context.settings();
        self.note_settings(&options.awww);
        let mut wanted = Vec::new();
        for placement in placements {
            let resize = fit_or(BackendName::Awww, placement.fit, options.awww.resize);
            let cut = seen_part(placement, resize == AwwwResize::Crop);
            let path = self.context.copies.ready(placement, &cut, &TAKES, cancel)?;
            let look = PictureLook::new(path, &options.awww, resize);
            let geometry = Geometry::of(&placement.output);
            wanted.push((placement.output.name.clone(), MonitorPicture { look, geometry }));
        }
        for call in calls(&wanted, &self.shown, outputs) {
            self.set(client, &call, outputs.to_vec(), cancel)?;
        }
        let files: Vec<PathBuf> = wanted.iter().map(|(_, shown)| shown.look.path.clone()).collect();
        self.shown.extend(wanted.into_iter().map(|(name, shown)| (name, Some(shown))));
        self.context.copies.tidy(&files);
        Ok(())
    }

    /// After a change of the settings all pictures are set again, as only this shows the change.
    fn note_settings(&mut self, options: &Options) {
        if self.context.transition.is_some() {
            return;
        }
        if self.told.replace(options.clone()).is_some_and(|told| told != *options) {
            self.shown.values_mut().for_each(|shown| *shown = None);
        }
    }

    /// Has one picture shown on some outputs, of the sizes that the server has said `before`.
    fn set(
        &mut self,
        client: &Path,
        call: &Call,
        mut before: Vec<Queried>,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        self.shown.extend(call.outputs.iter().map(|name| (name.clone(), None)));
        let mut is_resize = call.is_resize;
        for _ in 0..TRIES {
            self.img(client, call, is_resize, cancel)?;
            let after = self.hears(client, call, cancel)?;
            if call.are_sizes_of(&before, &after) {
                return Ok(());
            }
            // Made for another size, the picture is not drawn, or breaks off in its transition.
            (before, is_resize) = (after, true);
        }
        Err(Error::Refused(format!("the outputs of {NAME} keep changing size")))
    }

    fn img(&self, client: &Path, call: &Call, at_once: bool, cancel: &Cancel) -> Result<(), Error> {
        let mut options =
            Options { resize: call.look.resize, ..self.context.settings().awww.clone() };
        // A transition begins with black on what another server shows, and with what is left of the
        // same picture on another size.
        if at_once || self.servers.has_older() {
            options.transition_type = AwwwTransition::None;
        }
        let output = self.call(client, args(&options, &call.outputs, &call.look.path), cancel)?;
        if !output.is_success() {
            let decoder = self.context.shared.decoder.until(cancel);
            return Err(self
                .ended()
                .unwrap_or_else(|| failure(&output, &call.look.path, &decoder)));
        }
        Ok(())
    }

    /// Waits until the server says that it has a picture, and the sizes that its outputs have: its
    /// client is content when it has heard of the one, and it may hear of the others later than we.
    fn hears(&self, client: &Path, call: &Call, cancel: &Cancel) -> Result<Vec<Queried>, Error> {
        let until = Instant::now() + HEARS_WITHIN;
        loop {
            let outputs = self.query(client, cancel)?.ok_or_else(|| {
                let why = format!("the {NAME} server stopped during the call");
                self.ended().unwrap_or(Error::Unavailable(why))
            })?;
            let (missing, is_late) = (call.missing(&outputs), Instant::now() > until);
            match missing {
                Some(name) if is_late => {
                    let path = call.look.path.display();
                    return Err(Error::Refused(format!("{NAME} does not show {path} on {name}")));
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
            // One of ours that has crashed is started once more.
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
                self.servers.pop().into_iter().for_each(|new| new.end(GRACE));
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

/// An error with the last error that a server named, or its last words: it ends by itself where its
/// compositor breaks with it, as if all were well.
fn failed(server: &BackendProcess, how: &str) -> Error {
    let (shown, tail) = (server.record().shown(), server.log_tail());
    let error = tail.lines().rfind(|line| line.contains("ERROR"));
    let why = error.map_or_else(|| server.last_words(), |error| error.trim().to_owned());
    Error::Unavailable(format!("{shown} {how}: {why}"))
}

/// Why a call has failed. awww says it alike of a file and of its own flags: the file is at fault
/// where it cannot be read here either.
fn failure(output: &Output, path: &Path, decoder: &Decoder) -> Error {
    decoding::read_whole(decoder, path)
        .err()
        .unwrap_or_else(|| Error::Refused(format!("{NAME} failed: {}", complaint(output))))
}

/// The first line names a wrong flag, the last one only points to the help.
fn complaint(output: &Output) -> String {
    let first = output.stderr.lines().find_map(|line| line.strip_prefix("error: "));
    first.map_or_else(|| output.complaint(), str::to_owned)
}

/// An output that is to be used and that the server does not know.
fn unknown<'a>(placements: &'a [Placement], outputs: &[Queried]) -> Option<&'a str> {
    let names = placements.iter().map(|placement| placement.output.name.as_str());
    names.into_iter().find(|name| outputs.iter().all(|output| output.name != *name))
}
