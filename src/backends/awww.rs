//! awww, or swww as it was called until 2025: a server of its own that is told by a client program.
//!
//! A server that already runs is used as it is and is not ours to end. Calls come one after the
//! other, as the hand makes them: concurrent ones glitch (LGFae/swww#220).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::Context;
use super::registry::Settings;
use super::{Backend, Error, Hanging};
use crate::config::{Awww as Options, AwwwFormat, AwwwTransition};
use crate::process::{Cancel, Ended, Output, Setter, run};

const NAME: &str = "awww";
/// The client answers as soon as the server has the picture, before any transition.
const CALL: Duration = Duration::from_secs(10);
const UP_WITHIN: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Awww {
    context: Context,
    settings: Settings,
    /// The server, where it is ours.
    server: Option<Setter>,
}

impl Awww {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let server = context.roster.running(NAME).pop();
        if let Some(Err(error)) = server.as_ref().map(|server| context.watch(server)) {
            log::warn!("{NAME}: {error}");
        }
        Self { context, settings, server }
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

    /// Starts a server of ours and waits until it answers.
    fn start(
        &mut self,
        client: &Path,
        server: PathBuf,
        format: AwwwFormat,
        cancel: &Cancel,
    ) -> Result<Vec<Queried>, Error> {
        // Without --no-cache it shows a picture of its own choice and races us.
        let mut launch = self.context.launch(server).args(["--no-cache"]);
        if format != AwwwFormat::Default {
            launch = launch.args(["--format", format.as_str()]);
        }
        let setter = self.context.roster.start(&launch, NAME, None)?;
        let (until, mut pause) = (Instant::now() + UP_WITHIN, Duration::from_millis(5));
        let outputs = loop {
            match self.query(client, cancel) {
                Ok(Some(outputs)) if !outputs.is_empty() => break Ok(outputs),
                Err(Error::Cancelled) => break Err(Error::Cancelled),
                // Too early: it has no socket yet, or no output.
                Ok(_) | Err(_) => {}
            }
            // Wakes at once when it ends instead.
            let ended = setter.child().wait(Some(Instant::now() + pause), Some(cancel));
            if ended || Instant::now() > until {
                break Err(Error::Unavailable(format!(
                    "{} does not come up: {}",
                    launch.shown(),
                    setter.log_tail()
                )));
            }
            pause = (pause * 2).min(Duration::from_millis(500));
        };
        match outputs {
            Ok(outputs) => {
                self.context.watch(&setter)?;
                self.server = Some(setter);
                Ok(outputs)
            }
            Err(error) => {
                setter.end(GRACE);
                Err(error)
            }
        }
    }
}

impl Backend for Awww {
    fn show(&mut self, scene: &[Hanging], cancel: &Cancel) -> Result<(), Error> {
        let (client, server) = self.programs()?;
        let settings = (self.settings)();
        let outputs = match self.query(&client, cancel)? {
            Some(outputs) => outputs,
            None => self.start(&client, server, settings.awww.daemon_format, cancel)?,
        };
        for hanging in scene {
            let name = &hanging.output.name;
            // It drops a name that it does not know without a word.
            if outputs.iter().all(|output| output.name != *name) {
                return Err(Error::Refused(format!("{NAME} does not know the output {name}")));
            }
        }
        for (path, names) in calls(scene, &outputs) {
            let output = self.call(&client, args(&settings.awww, &names, &path), cancel)?;
            if !output.is_success() {
                let why = output.complaint();
                return Err(match output.ended {
                    Ended::Code(2) => Error::File { path, why },
                    _ => Error::Refused(format!("{NAME} failed: {why}")),
                });
            }
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        match self.server.take() {
            Some(server) => server.end(GRACE),
            None => log::info!("the {NAME} server was not started by murald and goes on"),
        }
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        match self.server.take_if(|server| !server.child().is_running()) {
            Some(dead) => {
                dead.ended();
                dead.forget();
                false
            }
            None => true,
        }
    }
}

/// One call for each picture, with the outputs that do not show it yet.
fn calls(scene: &[Hanging], outputs: &[Queried]) -> Vec<(PathBuf, Vec<String>)> {
    let mut calls: Vec<(PathBuf, Vec<String>)> = Vec::new();
    for hanging in scene {
        let name = &hanging.output.name;
        let shows = |output: &Queried| {
            output.name == *name && output.image.as_deref() == Some(hanging.path.as_path())
        };
        if outputs.iter().any(shows) {
            continue;
        }
        match calls.iter_mut().find(|(path, _)| *path == hanging.path) {
            Some((_, names)) => names.push(name.clone()),
            None => calls.push((hanging.path.clone(), vec![name.clone()])),
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
    add("--transition-pos", options.transition_pos.to_string());
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
struct Queried {
    name: String,
    image: Option<PathBuf>,
}

/// Lines like `NS: DP-1: 1920x1080, scale: 1, currently displaying: image: /a.png`; the namespace is
/// empty by default, and was not there before 0.11.
fn queried(text: &str) -> Vec<Queried> {
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
        let image = shows.strip_prefix("image: ").map(PathBuf::from);
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
        let image = |path: &str| Some(PathBuf::from(path));
        let now = ": DP-1: 1920x1080, scale: 1, currently displaying: image: /a: b.png\n\
                   other: eDP-1: 800x600, scale: 2, currently displaying: color: 000000\n";
        assert_eq!(queried(now), [("DP-1".into(), image("/a: b.png")), ("eDP-1".into(), None)]);
        let before = "HDMI-A-1: 1280x720, scale: 1, currently displaying: image: /x.png";
        assert_eq!(queried(before), [("HDMI-A-1".into(), image("/x.png"))]);
        assert!(queried("nonsense").is_empty());
    }
}
