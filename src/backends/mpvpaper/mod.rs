//! mpvpaper 1.4 to 1.9: one process for each output, and mpv's own socket to change its video.
//!
//! A new process is started only where there is none with the right options, or the old one does not
//! answer; it plays before the old one goes. One that cannot load its file hangs, deaf to SIGTERM:
//! so those that do not come up are killed.

mod ipc;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::Context;
use super::copies::{Copies, Takes};
use super::registry::Settings;
use super::{Backend, Error, Hanging};
use crate::compositor::Output;
use crate::config::Mpvpaper as Options;
use crate::process::{Cancel, Setter};
use crate::wire::Format;

use ipc::{Ipc, Loaded};

const NAME: &str = "mpvpaper";
const PLAYS_WITHIN: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(2);
const SOCKET_OPTION: &str = "input-ipc-server=";
/// mpv is told of a file in JSON, which has no place for other bytes than UTF-8.
const TAKES: Takes = Takes {
    formats: &[Format::Mp4, Format::Webm, Format::Mkv, Format::Mov, Format::Avi],
    turns: true,
    name: Some(|path| path.to_str().is_some()),
};

pub(super) struct Mpvpaper {
    context: Context,
    settings: Settings,
    copies: Copies,
    screens: Vec<Screen>,
    /// The number of the last socket that was named.
    last_socket: u32,
}

/// A process that plays on an output.
struct Screen {
    output: String,
    setter: Setter,
    socket: PathBuf,
    /// None where that is not known: taken over, and not asked yet.
    file: Option<PathBuf>,
    /// What was in it then.
    content: Option<String>,
}

/// What is to play on an output.
struct Wanted {
    output: String,
    /// As mpvpaper finds the output.
    matched: String,
    file: PathBuf,
    content: String,
    audio: bool,
}

impl Mpvpaper {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let screens = context.take_over(NAME).into_iter().filter_map(Screen::taken_over).collect();
        let copies = Copies::new(context.cache.join("copies"));
        Self { context, settings, copies, screens, last_socket: 0 }
    }

    fn wanted(&mut self, scene: &[Hanging], cancel: &Cancel) -> Result<Vec<Wanted>, Error> {
        let outputs = self.context.outputs.list();
        let wanted = |hanging: &Hanging| {
            Ok(Wanted {
                output: hanging.output.name.clone(),
                matched: matched(&hanging.output, &outputs)?,
                file: self.copies.ready(&hanging.path, &TAKES, cancel)?,
                content: hanging.content.clone(),
                audio: hanging.audio_enabled,
            })
        };
        scene.iter().map(wanted).collect()
    }

    /// The last process that was started for an output, if its options are those of now.
    fn current(&mut self, wanted: &Wanted, options: &Options) -> Option<&mut Screen> {
        let screen = self.screens.iter_mut().rev().find(|s| s.output == wanted.output)?;
        let same = args(options, wanted, &screen.socket);
        let recorded = screen.setter.record().args();
        // All but the file, which may have been changed since.
        let same = recorded.split_last()?.1 == same.split_last()?.1;
        (same && screen.setter.child().is_running()).then_some(screen)
    }

    /// Starts a process for an output; it does not play yet.
    fn start(&mut self, wanted: &Wanted, options: &Options) -> Result<Screen, Error> {
        let socket = self.unused_socket()?;
        let launch =
            self.context.launch(self.context.program(NAME)?).args(args(options, wanted, &socket));
        let setter = self.context.start(&launch, NAME, Some(&wanted.output))?;
        let (file, content) = (Some(wanted.file.clone()), Some(wanted.content.clone()));
        Ok(Screen { output: wanted.output.clone(), setter, socket, file, content })
    }

    fn unused_socket(&mut self) -> Result<PathBuf, Error> {
        let directory = self.context.roster.directory();
        // It splits its options at every space.
        if directory.as_os_str().as_bytes().iter().any(u8::is_ascii_whitespace) {
            let why = format!("{NAME} cannot have its socket in {}", directory.display());
            return Err(Error::Unavailable(why));
        }
        loop {
            self.last_socket += 1;
            let path = directory.join(format!("{NAME}-{}.sock", self.last_socket));
            // One of an earlier daemon's process may have this number.
            if !path.exists() && self.screens.iter().all(|screen| screen.socket != path) {
                return Ok(path);
            }
        }
    }

    /// Has every output play its file: by a word where one plays already, else by a new process.
    fn bring_up(&mut self, wanted: &[Wanted], cancel: &Cancel) -> Result<Vec<Screen>, Error> {
        let settings = (self.settings)();
        let mut started = Vec::new();
        let mut result = Ok(());
        for wanted in wanted {
            let told = match self.current(wanted, &settings.mpvpaper) {
                Some(screen) => screen.play(wanted, cancel),
                None => Ok(false),
            };
            result = match told {
                Ok(true) => Ok(()),
                Ok(false) => self.start(wanted, &settings.mpvpaper).map(|new| started.push(new)),
                Err(error) => Err(error),
            };
            if result.is_err() {
                break;
            }
        }
        let until = Instant::now() + PLAYS_WITHIN;
        let up = |screen: &Screen| screen.wait_until_it_plays(until, cancel);
        match result.and_then(|()| started.iter().try_for_each(up)) {
            Ok(()) => Ok(started),
            Err(error) => {
                started.into_iter().for_each(Screen::kill);
                Err(error)
            }
        }
    }
}

impl Backend for Mpvpaper {
    fn show(&mut self, scene: &[Hanging], cancel: &Cancel) -> Result<(), Error> {
        self.is_whole();
        let wanted = self.wanted(scene, cancel)?;
        let started = self.bring_up(&wanted, cancel)?;
        let fresh: Vec<String> = started.iter().map(|screen| screen.output.clone()).collect();
        let mut kept: Vec<Screen> = Vec::new();
        // The newest first: one for each output stays.
        for screen in self.screens.drain(..).rev() {
            let stays = wanted.iter().any(|wanted| wanted.output == screen.output)
                && !fresh.contains(&screen.output)
                && kept.iter().all(|other| other.output != screen.output);
            if stays {
                kept.push(screen);
            } else {
                screen.end();
            }
        }
        kept.extend(started);
        self.screens = kept;
        let files: Vec<PathBuf> = wanted.into_iter().map(|wanted| wanted.file).collect();
        self.copies.tidy(&files);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.screens.drain(..).for_each(Screen::end);
        self.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        let before = self.screens.len();
        for dead in self.screens.extract_if(.., |screen| !screen.setter.child().is_running()) {
            let how = dead.setter.ended().map_or_else(String::new, |ended| format!(" ({ended})"));
            log::info!("{NAME} on {} ended{how}", dead.output);
            std::fs::remove_file(&dead.socket).ok();
            dead.setter.forget();
        }
        self.screens.len() == before
    }
}

impl Screen {
    /// None for one whose command line is not ours to understand.
    fn taken_over(setter: Setter) -> Option<Self> {
        let output = setter.record().output.clone();
        let socket = socket_in(&setter.record().args());
        match (output, socket) {
            (Some(output), Some(socket)) => {
                Some(Self { output, setter, socket, file: None, content: None })
            }
            _ => {
                setter.end(GRACE);
                None
            }
        }
    }

    /// Has it play another file. `false` if it does not answer; an error if it cannot play the file,
    /// and then it plays the one before.
    fn play(&mut self, wanted: &Wanted, cancel: &Cancel) -> Result<bool, Error> {
        let file = wanted.file.as_path();
        let until = Instant::now() + PLAYS_WITHIN;
        let Ok(mut ipc) = Ipc::connect(&self.socket, self.setter.child(), until, cancel) else {
            return Ok(false);
        };
        let before = match &self.file {
            Some(known) => Some(known.clone()),
            None => ipc.playing(cancel)?,
        };
        let changed = self.content.replace(wanted.content.clone());
        let changed = changed.is_some_and(|before| before != wanted.content);
        if before.as_deref() == Some(file) && !changed {
            self.file = before;
            return Ok(true);
        }
        match ipc.load(file, cancel)? {
            Loaded::Plays => self.file = Some(file.to_owned()),
            Loaded::Silent => return Ok(false),
            Loaded::Refused(why) => {
                if let Some(before) = before {
                    ipc.load(&before, cancel)?;
                }
                return Err(Error::File { path: file.to_owned(), why });
            }
        }
        Ok(true)
    }

    fn wait_until_it_plays(&self, until: Instant, cancel: &Cancel) -> Result<(), Error> {
        let child = self.setter.child();
        match ipc::wait_until_it_plays(&self.socket, child, until, cancel) {
            Err(Error::Unavailable(why)) => {
                let said = self.setter.log_tail();
                let said = said.lines().last().unwrap_or("it said nothing").trim().to_owned();
                Err(Error::Unavailable(format!("{NAME} on {}: {why}: {said}", self.output)))
            }
            other => other,
        }
    }

    fn end(self) {
        self.setter.end(GRACE);
        std::fs::remove_file(&self.socket).ok();
    }

    fn kill(self) {
        self.setter.kill();
        std::fs::remove_file(&self.socket).ok();
    }
}

fn args(options: &Options, wanted: &Wanted, socket: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    match options.verbose {
        0 => {}
        1 => args.push("-v".into()),
        _ => args.push("-vv".into()),
    }
    if options.auto_stop {
        args.push("-s".into());
    } else if options.auto_pause {
        args.push("-p".into());
    }
    if options.slideshow_secs > 0 {
        args.extend(["-n".into(), options.slideshow_secs.to_string().into()]);
    }
    if !options.layer.is_empty() {
        args.extend(["-l".into(), options.layer.clone().into()]);
    }
    let mut mpv = OsString::new();
    if !wanted.audio {
        mpv.push("no-audio ");
    }
    if !options.mpv_options.trim().is_empty() {
        mpv.push(options.mpv_options.trim());
        mpv.push(" ");
    }
    mpv.push(SOCKET_OPTION);
    mpv.push(socket);
    args.extend(["-o".into(), mpv, wanted.matched.clone().into()]);
    args.push(wanted.file.clone().into_os_string());
    args
}

/// The socket that a command line of ours names.
fn socket_in(args: &[OsString]) -> Option<PathBuf> {
    let at = args.iter().position(|arg| arg == "-o")?;
    let socket = args.get(at + 1)?.to_str()?.rsplit(' ').next()?.strip_prefix(SOCKET_OPTION)?;
    Some(PathBuf::from(socket))
}

/// What names an output for mpvpaper. Up to 1.8 it takes every output whose name is a part of what
/// it is given: where that would be another one, the description has to do.
fn matched(output: &Output, outputs: &[Output]) -> Result<String, Error> {
    let alone = |text: &str| {
        outputs.iter().all(|other| other.name == output.name || !text.contains(&other.name))
    };
    if alone(&output.name) {
        return Ok(output.name.clone());
    }
    // It knows the description without the name that compositors put behind it.
    let suffix = format!(" ({})", output.name);
    let description = output.description.strip_suffix(&suffix).unwrap_or(&output.description);
    let same = outputs.iter().filter(|other| other.description.starts_with(description)).count();
    if !description.is_empty() && same == 1 && alone(description) {
        return Ok(description.to_owned());
    }
    Err(Error::Refused(format!(
        "{NAME} cannot tell the output {} from one whose name is a part of it",
        output.name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(name: &str, description: &str) -> Output {
        Output {
            name: name.to_owned(),
            description: description.to_owned(),
            width: 1,
            height: 1,
            x: 0,
            y: 0,
            logical_width: 1,
            logical_height: 1,
            scale: 1.0,
            refresh_rate: 60.0,
            transform: 0,
            primary: false,
        }
    }

    #[test]
    fn the_command_line() {
        let check = |options: &Options, audio, expected: &[&str]| {
            let (matched, file) = ("DP-1".to_owned(), "/a b, #.mp4".into());
            let (output, content) = (matched.clone(), String::new());
            let wanted = Wanted { output, matched, file, content, audio };
            let args = args(options, &wanted, Path::new("/run/m.sock"));
            assert_eq!(args, expected);
            assert_eq!(socket_in(&args).as_deref(), Some(Path::new("/run/m.sock")));
        };
        let socket = "input-ipc-server=/run/m.sock";
        let silent = format!("no-audio loop {socket}");
        let tail = ["DP-1", "/a b, #.mp4"];
        let default = Options::default();
        check(&default, false, &[&["-o", &silent][..], &tail].concat());
        check(&default, true, &[&["-o", &format!("loop {socket}")][..], &tail].concat());
        let all = Options {
            mpv_options: " hwdec=auto  ".to_owned(),
            verbose: 2,
            auto_pause: true,
            auto_stop: true,
            layer: "bottom".to_owned(),
            slideshow_secs: 30,
        };
        let options = format!("no-audio hwdec=auto {socket}");
        let words = ["-vv", "-s", "-n", "30", "-l", "bottom", "-o", &options];
        check(&all, false, &[&words[..], &tail].concat());
        let pause = Options {
            mpv_options: String::new(),
            verbose: 1,
            auto_pause: true,
            ..Options::default()
        };
        check(&pause, true, &[&["-v", "-p", "-o", socket][..], &tail].concat());
    }

    #[test]
    fn an_output_whose_name_holds_another_s() {
        let check = |name, outputs: &[(&str, &str)], expected: Option<&str>| {
            let outputs: Vec<_> = outputs.iter().map(|(n, d)| output(n, d)).collect();
            let meant = outputs.iter().find(|output| output.name == name).unwrap();
            assert_eq!(matched(meant, &outputs).ok().as_deref(), expected, "{name}");
        };
        let both = [("DP-1", "Acer X 1 (DP-1)"), ("eDP-1", "BOE 0x0A (eDP-1)")];
        check("DP-1", &both, Some("DP-1"));
        check("eDP-1", &both, Some("BOE 0x0A"));
        check("eDP-1", &both[1..], Some("eDP-1"));
        check("DP-11", &[("DP-1", "Same"), ("DP-11", "Same")], None);
        check("DP-11", &[("DP-1", "A"), ("DP-11", "")], None);
    }
}
