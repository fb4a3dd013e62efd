//! awww, or swww as it was called until 2025: a server of its own that is told by a client program.
//!
//! A server that already runs is used as it is and is not ours to end. That it has ended is seen at
//! the next call: it reads what a client has to say before it does anything else, so none may keep
//! it waiting only to hear of its end. Calls come one after the
//! other, as the worker makes them: concurrent ones glitch (LGFae/swww#220).

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::{Context, Settings};
use super::copies::{Copies, Takes};
use super::processes::Processes;
use super::wish::fit_or;
use super::{Backend, Error, Placement};
use crate::config::{
    Awww as Options, AwwwFilter, AwwwFormat, AwwwResize, AwwwTransition, BackendName,
};
use crate::process::{Ended, Output, run};
use crate::sys::Cancel;
use crate::wire::{Fit, Format};

const NAME: &str = "awww";
/// The client answers as soon as the server has the picture, before any transition.
const CALL: Duration = Duration::from_secs(10);
const UP_WITHIN: Duration = Duration::from_secs(10);
/// A server that answers knows its outputs a moment later.
const OUTPUTS_WITHIN: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(2);
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
    name: None,
};

pub(super) struct Awww {
    context: Context,
    settings: Settings,
    copies: Copies,
    /// The server, where it is ours.
    servers: Processes,
    /// What this daemon has had shown on each output, and how.
    shown: HashMap<String, Shown>,
}

/// A picture and what decides how it looks once the transition is over.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    path: PathBuf,
    resize: AwwwResize,
    fill_color: String,
    filter: AwwwFilter,
}

impl Shown {
    fn new(path: PathBuf, options: &Options, fit: Option<Fit>) -> Self {
        let resize = fit_or(BackendName::Awww, fit, options.resize);
        let filter = options.filter_type;
        Self { path, resize, fill_color: options.fill_color.clone(), filter }
    }
}

impl Awww {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let servers = Processes::taken_over(&context, NAME, |server| server.end(GRACE));
        let copies = Copies::new(context.cache.join("copies"));
        Self { context, settings, copies, servers, shown: HashMap::new() }
    }

    /// The client and server of one name: awww's, else swww's.
    fn programs(&self) -> Result<(PathBuf, PathBuf), Error> {
        let pair =
            |client, server| Ok((self.context.program(client)?, self.context.program(server)?));
        pair("awww", "awww-daemon")
            .or_else(|error: Error| pair("swww", "swww-daemon").map_err(|_| error))
    }

    /// What the server says that its outputs show; none where no server answers.
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
        let format = (self.settings)().awww.daemon_format;
        if format != AwwwFormat::Default {
            launch = launch.args(["--format", format.as_str()]);
        }
        self.shown.clear();
        let process = self.context.start(&launch, NAME, None)?;
        let (begun, mut pause) = (Instant::now(), Duration::from_millis(5));
        let outputs = loop {
            match self.query(client, cancel) {
                Ok(Some(outputs)) if unknown(placements, &outputs).is_none() => break Ok(outputs),
                Ok(Some(outputs)) if begun.elapsed() > OUTPUTS_WITHIN => break Ok(outputs),
                Err(Error::Cancelled) => break Err(Error::Cancelled),
                // Too early: it has no socket yet, or not all outputs.
                Ok(_) | Err(_) => {}
            }
            // Wakes at once when it ends instead.
            let ended = process.child().wait(Some(Instant::now() + pause), Some(cancel));
            if ended || begun.elapsed() > UP_WITHIN {
                let why = format!("{} does not come up: {}", launch.shown(), process.log_tail());
                break Err(Error::Unavailable(why));
            }
            pause = (pause * 2).min(Duration::from_millis(500));
        };
        match outputs {
            Ok(_) => self.servers.replace(process),
            Err(_) => process.end(GRACE),
        }
        outputs
    }

    /// Has one picture shown on some outputs.
    fn set(&mut self, client: &Path, call: Call, cancel: &Cancel) -> Result<(), Error> {
        let options = Options { resize: call.shown.resize, ..(self.settings)().awww.clone() };
        let output = self.call(client, args(&options, &call.outputs, &call.shown.path), cancel)?;
        if !output.is_success() {
            let why = output.complaint();
            return Err(match output.ended {
                Ended::Code(2) => Error::File { path: call.shown.path, why },
                _ => Error::Refused(format!("{NAME} failed: {why}")),
            });
        }
        for name in call.outputs {
            self.shown.insert(name, call.shown.clone());
        }
        Ok(())
    }
}

impl Backend for Awww {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        let (client, server) = self.programs()?;
        let outputs = match self.query(&client, cancel)? {
            Some(outputs) => outputs,
            None => self.start(&client, server, placements, cancel)?,
        };
        // It drops a name that it does not know without a word.
        if let Some(name) = unknown(placements, &outputs) {
            return Err(Error::Refused(format!("{NAME} does not know the output {name}")));
        }
        let options = (self.settings)();
        let mut wanted = Vec::new();
        for placement in placements {
            let path = self.copies.ready(&placement.path, &TAKES, cancel)?;
            wanted.push((
                placement.output.name.clone(),
                Shown::new(path, &options.awww, placement.fit),
            ));
        }
        for call in calls(&wanted, &self.shown, &outputs) {
            self.set(&client, call, cancel)?;
        }
        let files: Vec<PathBuf> = wanted.into_iter().map(|(_, shown)| shown.path).collect();
        self.copies.tidy(&files);
        Ok(())
    }

    fn knows_by_path(&self) -> bool {
        true
    }

    fn clear(&mut self) -> Result<(), Error> {
        if self.servers.newest().is_none() {
            log::info!("the {NAME} server was not started by murald and goes on");
        }
        self.servers.end_all();
        self.shown.clear();
        self.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        self.servers.is_whole()
    }
}

/// An output that is to be used and that the server does not know.
fn unknown<'a>(placements: &'a [Placement], outputs: &[Queried]) -> Option<&'a str> {
    let names = placements.iter().map(|placement| placement.output.name.as_str());
    names.into_iter().find(|name| outputs.iter().all(|output| output.name != *name))
}

/// One call of the client: a picture, and the outputs that share it.
#[derive(Debug, PartialEq)]
struct Call {
    shown: Shown,
    outputs: Vec<String>,
}

/// What is to be called for outputs that do not show what they should.
fn calls(
    wanted: &[(String, Shown)],
    shown: &HashMap<String, Shown>,
    outputs: &[Queried],
) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for (name, want) in wanted {
        // The server knows the picture, not how it was fitted; that only whoever asked for it.
        let same_look = shown.get(name).is_none_or(|shown| shown == want);
        let hangs = |output: &Queried| output.name == *name && output.shows(&want.path);
        if same_look && outputs.iter().any(hangs) {
            continue;
        }
        match calls.iter_mut().find(|call| call.shown == *want) {
            Some(call) => call.outputs.push(name.clone()),
            None => calls.push(Call { shown: want.clone(), outputs: vec![name.clone()] }),
        }
    }
    calls
}

fn args(options: &Options, outputs: &[String], path: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["img".into(), "--outputs".into(), outputs.join(",").into()];
    let mut add = |flag: &str, value: String| args.extend([flag.into(), value.into()]);
    add("--resize", options.resize.to_string());
    add("--fill-color", options.fill_color.clone());
    add("--filter", options.filter_type.to_string());
    add("--transition-type", options.transition_type.to_string());
    if options.transition_type != AwwwTransition::None {
        add("--transition-step", options.transition_step.to_string());
    }
    if options.transition_duration > 0.0 {
        add("--transition-duration", options.transition_duration.to_string());
    }
    add("--transition-fps", options.transition_fps.to_string());
    add("--transition-angle", options.transition_angle.to_string());
    add("--transition-pos", options.transition_pos.clone());
    add("--transition-bezier", options.transition_bezier.clone());
    add("--transition-wave", options.transition_wave.clone());
    if options.invert_y {
        args.push("--invert-y".into());
    }
    args.extend(["--".into(), path.as_os_str().to_owned()]);
    args
}

/// What the server says of an output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Queried {
    name: String,
    /// A path, as far as a line of text can hold it; none for a colour.
    image: Option<String>,
}

impl Queried {
    fn shows(&self, path: &Path) -> bool {
        let text = path.to_string_lossy();
        self.image.as_deref().is_some_and(|image| text.lines().next() == Some(image))
    }
}

/// Lines like `NS: DP-1: 1920x1080, scale: 1, currently displaying: image: /a.png`; the namespace is
/// empty by default, and was not there before 0.11.
pub(super) fn queried(text: &str) -> Vec<Queried> {
    let line = |line: &str| {
        let (before, shows) = line.split_once("currently displaying: ")?;
        let mut fields = before.split(": ").map(str::trim).filter(|field| !field.is_empty());
        // The name stands before the first field that is a size.
        let mut name = fields.next()?.trim_start_matches(": ").to_owned();
        for field in fields {
            if field.starts_with(|c: char| c.is_ascii_digit()) && field.contains('x') {
                break;
            }
            name = field.to_owned();
        }
        let image = shows.strip_prefix("image: ").map(str::to_owned);
        Some(Queried { name, image })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line() {
        let outputs = ["DP-1".to_owned(), "HDMI-A-1".to_owned()];
        let check = |options: &Options, changed: &[(&str, Option<&str>)]| {
            let mut expected: Vec<(&str, Option<&str>)> = vec![
                ("--resize", Some("crop")),
                ("--fill-color", Some("000000")),
                ("--filter", Some("Lanczos3")),
                ("--transition-type", Some("wipe")),
                ("--transition-step", Some("90")),
                ("--transition-duration", Some("3")),
                ("--transition-fps", Some("60")),
                ("--transition-angle", Some("45")),
                ("--transition-pos", Some("center")),
                ("--transition-bezier", Some("0.25,0.1,0.25,1.0")),
                ("--transition-wave", Some("20,20")),
            ];
            for &(flag, value) in changed {
                match expected.iter_mut().find(|(known, _)| *known == flag) {
                    Some(entry) => entry.1 = value,
                    None => expected.push((flag, Some(""))),
                }
            }
            let mut words = vec!["img", "--outputs", "DP-1,HDMI-A-1"];
            for (flag, value) in expected {
                words.extend(value.map(|_| flag));
                words.extend(value.filter(|value| !value.is_empty()));
            }
            words.extend(["--", "/-a b,#.png"]);
            assert_eq!(args(options, &outputs, Path::new("/-a b,#.png")), words);
        };
        let default = Options::default();
        check(&default, &[]);
        check(
            &Options { transition_type: AwwwTransition::None, ..default.clone() },
            &[("--transition-type", Some("none")), ("--transition-step", None)],
        );
        check(
            &Options { transition_duration: 0.0, ..default.clone() },
            &[("--transition-duration", None)],
        );
        check(&Options { invert_y: true, ..default }, &[("--invert-y", Some(""))]);
    }

    #[test]
    fn what_the_server_says() {
        let queried =
            |text| queried(text).into_iter().map(|q| (q.name, q.image)).collect::<Vec<_>>();
        let image = |path: &str| Some(path.to_owned());
        let now = ": DP-1: 1920x1080, scale: 1, currently displaying: image: /a: b.png\n\
                   other: eDP-1: 800x600, scale: 2, currently displaying: color: 000000\n";
        assert_eq!(queried(now), [("DP-1".into(), image("/a: b.png")), ("eDP-1".into(), None)]);
        let before = "HDMI-A-1: 1280x720, scale: 1, currently displaying: image: /x.png";
        assert_eq!(queried(before), [("HDMI-A-1".into(), image("/x.png"))]);
        assert!(queried("nonsense").is_empty());
    }

    #[test]
    fn only_what_differs_is_called_for() {
        let options = Options::default();
        let shown = |path: &str| Shown::new(path.into(), &options, None);
        let fit = |path: &str| Shown::new(path.into(), &options, Some(Fit::Contain));
        let output =
            |name: &str, path: &str| Queried { name: name.into(), image: Some(path.into()) };
        let check =
            |wanted: &[(&str, Shown)], had: &[(&str, Shown)], expected: &[(&str, &[&str])]| {
                let own = |list: &[(&str, Shown)]| -> Vec<(String, Shown)> {
                    list.iter().map(|(name, shown)| ((*name).to_owned(), shown.clone())).collect()
                };
                let outputs = [output("A", "/a"), output("B", "/b"), output("C", "/c")];
                let calls = calls(&own(wanted), &own(had).into_iter().collect(), &outputs);
                let seen: Vec<_> = calls
                    .iter()
                    .map(|call| (call.shown.path.to_str().unwrap(), call.outputs.clone()))
                    .collect();
                let expected: Vec<_> = expected
                    .iter()
                    .map(|(path, names)| (*path, names.iter().map(|n| (*n).to_owned()).collect()))
                    .collect();
                assert_eq!(seen, expected);
            };
        check(&[("A", shown("/a"))], &[], &[]);
        check(
            &[("A", shown("/x")), ("B", shown("/b")), ("C", shown("/x"))],
            &[],
            &[("/x", &["A", "C"])],
        );
        check(&[("A", shown("/a"))], &[("A", fit("/a"))], &[("/a", &["A"])]);
        // Somebody else has painted over it.
        check(&[("A", shown("/x"))], &[("A", shown("/x"))], &[("/x", &["A"])]);
    }
}
