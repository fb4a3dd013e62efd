//! murald's own drawing: one process of ours for all outputs, told over its socket what to show.
//!
//! The process says when the new pictures are up and changes them without a gap. A process of another
//! version, or one that does not answer in time, is replaced: the new one shows everything first.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::Processes;
use super::context::{Context, Settings};
use super::copies::{Copies, Takes};
use super::fit_and_transition::fit_or;
use super::socket::{NotUp, connect_when_up, wait};
use super::{Backend, Error, Kind, Placement};
use crate::color;
use crate::compositor::{Output, Session};
use crate::config::{self, BackendName, BuiltinBackdrop, BuiltinFit, BuiltinTransition};
use crate::draw::{
    self, Backdrop, Effect, Fit, LINE_MAX, Outcome, Request, Response, Span, Style, Transition,
    Wanted,
};
use crate::media::Cut;
use crate::process::{self, BackendProcess, run};
use crate::random;
use crate::sys::{Cancel, connect};

const NAME: &str = "builtin";
/// It connects to the compositor, and listens.
const UP_WITHIN: Duration = Duration::from_secs(10);
/// A process that runs already is replaced when it neither answers nor works for this long: it may be
/// stopped.
const WORKS_WITHIN: Duration = Duration::from_secs(5);
/// A large PNG for several outputs takes seconds, more on a busy machine.
const SHOWN_WITHIN: Duration = Duration::from_secs(30);
/// It dies of SIGTERM at once.
const GRACE: Duration = Duration::from_secs(2);
const SOCKET: &str = "--socket";
/// Formats that murald does not decode are converted first.
const TAKES: Takes =
    Takes { formats: None, turns: true, profiles: true, animates: true, name: None };

pub(super) struct Builtin {
    context: Context,
    settings: Settings,
    copies: Copies,
    processes: Processes,
}

/// The result of a question.
enum Asked {
    Shown,
    /// It is of another version, or does not listen or answer: another one has to take its place.
    Useless(String),
}

impl Builtin {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let processes = Processes::taken_over(&context, NAME, end);
        let copies = Copies::new(context.cache.join("copies"), context.decoder.clone());
        Self { context, settings, copies, processes }
    }

    fn request(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<Request, Error> {
        let settings = (self.settings)();
        let mut outputs = Vec::new();
        for placement in placements {
            outputs.push(Wanted {
                output: placement.output.name.clone(),
                path: self.copies.ready(placement, &Cut::WHOLE, &TAKES, cancel)?.into_os_string(),
                content: placement.content.clone(),
                style: style(&settings.builtin, placement),
                backdrop: backdrop(&settings.builtin).filter(|_| !self.is_on_root()),
            });
        }
        let transition = transition(&settings.builtin);
        Ok(Request { version: draw::VERSION.to_owned(), outputs, transition })
    }

    /// Starts a process and has it show everything.
    fn start(&mut self, request: &Request, cancel: &Cancel) -> Result<BackendProcess, Error> {
        let socket = self.unused_socket();
        let arguments = [OsStr::new(draw::VERB), OsStr::new(SOCKET), socket.as_os_str()];
        let launch = self.context.launch(self.program()).args(arguments);
        let process = self.context.start(&launch, NAME, None)?;
        let until = Instant::now() + UP_WITHIN;
        let asked = connect_when_up(&socket, None, process.child(), until, cancel)
            .map_err(|error| not_up(error, &process))
            .and_then(|stream| ask(stream, request, &process, SHOWN_WITHIN, cancel));
        match asked {
            Ok(Asked::Shown) => Ok(process),
            Ok(Asked::Useless(why)) => {
                end(process);
                Err(Error::Unavailable(format!("the built-in renderer cannot start: {why}")))
            }
            Err(error) => {
                end(process);
                Err(error)
            }
        }
    }

    fn unused_socket(&self) -> PathBuf {
        let directory = self.context.records.directory();
        let path = |number: u32| directory.join(format!("draw-{number}.sock"));
        let is_used = |path: &PathBuf| {
            self.processes.any(|process| socket_of(process).as_ref() == Some(path))
        };
        let unused = (1..).map(path).find(|path| !is_used(path)).unwrap_or_else(|| path(0));
        // One that died has left its own.
        std::fs::remove_file(&unused).ok();
        unused
    }

    fn is_on_root(&self) -> bool {
        matches!(self.context.outputs.session(), Some(Session::X11 { .. }))
    }

    /// Has the X server's root window painted, by a process that ends then.
    fn paint_root(&self, request: &Request, cancel: &Cancel) -> Result<(), Error> {
        let message = draw::line(request);
        let message = OsStr::from_bytes(message.trim_ascii_end());
        let words = [OsStr::new(draw::VERB), OsStr::new("--once"), message];
        let launch = self.context.launch(self.program()).args(words);
        let output = run(&launch, SHOWN_WITHIN, Some(cancel))?;
        let unusable = || {
            Error::Unavailable(format!(
                "the built-in renderer cannot start: {}",
                output.complaint()
            ))
        };
        match Response::read(&output.stdout).ok_or_else(unusable)?.outcome {
            Outcome::Shown(_) => self.context.root_painter.painted(BackendName::Builtin),
            outcome => return Err(refusal(outcome)),
        }
        Ok(())
    }

    fn program(&self) -> PathBuf {
        self.context.own_program.clone().unwrap_or_else(process::own_program)
    }

    fn tidy(&mut self, request: Request) {
        let paths = request.outputs.into_iter().map(|wanted| wanted.path.into());
        self.copies.tidy(&paths.collect::<Vec<PathBuf>>());
    }
}

impl Backend for Builtin {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        if placements.is_empty() {
            return self.clear();
        }
        let request = self.request(placements, cancel)?;
        if self.is_on_root() {
            self.paint_root(&request, cancel).map_err(|error| error.of(placements, &request))?;
            self.tidy(request);
            return Ok(());
        }
        self.processes.reap();
        let asked = self.processes.newest().map(|process| {
            let stream = socket_of(process).and_then(|socket| connect(&socket).ok());
            match stream {
                Some(stream) => ask(stream, &request, process, WORKS_WITHIN, cancel),
                None => Ok(Asked::Useless("it does not listen".to_owned())),
            }
        });
        match asked.transpose().map_err(|error| error.of(placements, &request))? {
            Some(Asked::Shown) => self.processes.keep_newest(),
            other => {
                if let Some(Asked::Useless(why)) = other {
                    log::info!("replacing the renderer process: {why}");
                }
                let new = self.start(&request, cancel);
                self.processes.replace(new.map_err(|error| error.of(placements, &request))?);
            }
        }
        self.tidy(request);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.processes.end_all();
        self.copies.tidy(&[]);
        // The root window keeps its pixels, so it is painted over.
        if self.is_on_root() && self.context.root_painter.may_be(BackendName::Builtin) {
            let never = Cancel::new().map_err(|error| Error::Unavailable(error.to_string()))?;
            let request = self.request(&[], &never)?;
            self.paint_root(&request, &never)?;
        }
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        self.processes.is_whole()
    }
}

impl Error {
    /// The same about the picture itself where it is about a copy of it.
    fn of(self, placements: &[Placement], request: &Request) -> Self {
        let Self::File { path, why } = self else { return self };
        let at = request.outputs.iter().position(|wanted| Path::new(&wanted.path) == path);
        let placement = at.and_then(|at| placements.get(at));
        Self::File { path: placement.map_or(path, |placement| placement.path.clone()), why }
    }
}

/// The socket of a process, from its command line.
fn socket_of(process: &BackendProcess) -> Option<PathBuf> {
    let mut words = process.record().args().into_iter().skip_while(|word| word != SOCKET);
    words.nth(1).map(PathBuf::from)
}

fn end(process: BackendProcess) {
    let socket = socket_of(&process);
    process.end(GRACE);
    if let Some(socket) = socket {
        std::fs::remove_file(socket).ok();
    }
}

/// Says what is to be shown and waits until it is.
fn ask(
    mut stream: UnixStream,
    request: &Request,
    process: &BackendProcess,
    patience: Duration,
    cancel: &Cancel,
) -> Result<Asked, Error> {
    let useless = |error: std::io::Error| Ok(Asked::Useless(error.to_string()));
    // Far less than a socket takes at once.
    if let Err(error) = stream.write_all(&draw::line(request)) {
        return useless(error);
    }
    let asked = Instant::now();
    let worked = || process.child().identity().processor_time();
    let mut before = worked();
    let (mut heard, mut buffer) = (Vec::new(), [0; 4096]);
    while !heard.ends_with(b"\n") && heard.len() < LINE_MAX {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(Asked::Useless("it hung up".to_owned())),
            Ok(count) => heard.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let until = Instant::now() + patience;
                wait(&[stream.as_fd()], process.child(), until, cancel)
                    .map_err(|error| not_up(error, process))?;
                let works = std::mem::replace(&mut before, worked()) != before;
                if Instant::now() >= until && (!works || asked.elapsed() >= SHOWN_WITHIN) {
                    let seconds = asked.elapsed().as_secs();
                    return Ok(Asked::Useless(format!("it does not answer within {seconds} s")));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return useless(error),
        }
    }
    let Some(response) = Response::read(&heard) else {
        return Ok(Asked::Useless("it is of another version".to_owned()));
    };
    match response.outcome {
        Outcome::Shown(_) => Ok(Asked::Shown),
        Outcome::NotUnderstood => {
            Ok(Asked::Useless("it does not understand the message".to_owned()))
        }
        Outcome::Replace => Ok(Asked::Useless("it has no surface for a backdrop".to_owned())),
        outcome => Err(refusal(outcome)),
    }
}

fn refusal(outcome: Outcome) -> Error {
    let why = match outcome {
        Outcome::File { path, why } => return Error::File { path: path.into(), why },
        Outcome::NoMemory(why) => return Error::NoMemory(why),
        Outcome::Refused(why) => why,
        Outcome::Superseded => "another change came before it".to_owned(),
        Outcome::NotUnderstood | Outcome::Replace | Outcome::Shown(_) => {
            "it does not understand the message".to_owned()
        }
    };
    Error::Refused(why)
}

fn not_up(error: NotUp, process: &BackendProcess) -> Error {
    let why = match error {
        NotUp::Cancelled => return Error::Cancelled,
        NotUp::Late => "it does not respond in time".to_owned(),
        NotUp::Io(error) => error.to_string(),
        NotUp::Ended => match process.log_tail() {
            said if said.is_empty() => "its process exited".to_owned(),
            said => said,
        },
    };
    Error::Unavailable(format!("the built-in renderer cannot start: {why}"))
}

fn style(settings: &config::Builtin, placement: &Placement) -> Style {
    let fit = match fit_or(BackendName::Builtin, placement.fit, settings.fit_mode) {
        BuiltinFit::Cover => Fit::Cover,
        BuiltinFit::Contain => Fit::Contain,
        BuiltinFit::Fill => Fit::Fill,
        BuiltinFit::Tile => Fit::Tile,
        BuiltinFit::Center => Fit::Center,
    };
    let position = placement.position.filter(|_| fit == Fit::Cover);
    Style {
        fit,
        position: position.unwrap_or(settings.position),
        fill: color::parse_hex(&settings.fill_color).unwrap_or_default(),
        span: span(placement),
        animate: settings.animate && placement.kind == Kind::AnimatedImage,
    }
}

fn transition(settings: &config::Builtin) -> Transition {
    let effect = effect(settings.transition_type, settings);
    let (duration, easing) = (settings.transition_duration, settings.transition_easing.0);
    Transition { effect, duration, easing, fps_max: settings.fps_max }
}

fn effect(kind: BuiltinTransition, settings: &config::Builtin) -> Effect {
    const MOVING: [BuiltinTransition; 3] =
        [BuiltinTransition::Fade, BuiltinTransition::Wipe, BuiltinTransition::Grow];
    match kind {
        BuiltinTransition::None => Effect::None,
        BuiltinTransition::Fade => Effect::Fade,
        BuiltinTransition::Wipe => Effect::Wipe { angle: settings.transition_angle },
        BuiltinTransition::Grow => Effect::Grow { origin: settings.transition_pos },
        BuiltinTransition::Random => effect(MOVING[random::below(MOVING.len())], settings),
    }
}

fn backdrop(settings: &config::Builtin) -> Option<Backdrop> {
    let (blur, dim) = match settings.backdrop {
        BuiltinBackdrop::None => return None,
        BuiltinBackdrop::Same => (0.0, 0.0),
        BuiltinBackdrop::Blur => (settings.backdrop_blur, settings.backdrop_dim.unwrap_or(0.0)),
        BuiltinBackdrop::Dim => (0.0, settings.backdrop_dim.unwrap_or(0.3)),
    };
    Some(Backdrop { blur, dim })
}

/// The area that a stretched picture covers, and the part of this output.
fn span(placement: &Placement) -> Option<Span> {
    if placement.extended_over.len() < 2 {
        return None;
    }
    let area = |output: &Output| {
        let (x, y) = (f64::from(output.x), f64::from(output.y));
        let (width, height) = (output.logical_width.max(1), output.logical_height.max(1));
        [x, y, x + f64::from(width), y + f64::from(height)]
    };
    let around = |one: [f64; 4], other: [f64; 4]| {
        let [left, top, right, bottom] = other;
        [one[0].min(left), one[1].min(top), one[2].max(right), one[3].max(bottom)]
    };
    let own = area(&placement.output);
    let whole = placement.span.iter().map(area).fold(own, around);
    let size = |[left, top, right, bottom]: [f64; 4]| [left, top, right - left, bottom - top];
    Some(Span { all: size(whole), own: size(own) })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn settings_are_what_the_child_is_told() {
        let settings = |toml: &str| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("config.toml");
            std::fs::write(&path, format!("[backend.builtin]\n{toml}")).unwrap();
            config::check(&path).unwrap().builtin.clone()
        };
        let told = |toml: &str| transition(&settings(toml));
        let below = |toml: &str| backdrop(&settings(toml)).map(|it| (it.blur, it.dim));
        assert_eq!((below(""), below("backdrop = 'same'")), (None, Some((0.0, 0.0))));
        assert_eq!(below("backdrop = 'blur'\nbackdrop_blur = 7"), Some((7.0, 0.0)));
        assert_eq!(below("backdrop = 'blur'\nbackdrop_dim = 0.5"), Some((24.0, 0.5)));
        assert_eq!(below("backdrop = 'dim'"), Some((0.0, 0.3)));
        let wipe = told("transition_type = 'wipe'\ntransition_angle = 90\nfps_max = 24");
        assert_eq!((wipe.effect, wipe.fps_max), (Effect::Wipe { angle: 90.0 }, 24));
        let grow = told("transition_type = 'grow'\ntransition_pos = 'top-left'");
        assert_eq!(grow.effect, Effect::Grow { origin: "top-left".parse().unwrap() });
        let fade = told("transition_duration = 2.5\ntransition_easing = '0.1,0.2,0.3,0.4'");
        assert_eq!((fade.effect, fade.duration), (Effect::Fade, 2.5));
        assert_eq!(fade.easing, [0.1, 0.2, 0.3, 0.4]);
        assert_eq!(told("transition_type = 'none'").effect, Effect::None);
        let random = || discriminant(&told("transition_type = 'random'").effect);
        let kinds: HashSet<_> = (0..100).map(|_| random()).collect();
        let moving = [fade.effect, wipe.effect, grow.effect];
        assert_eq!(kinds, moving.map(|it| discriminant(&it)).into());
    }
}
