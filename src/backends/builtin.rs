//! Shows pictures through murald's own renderer: one process for all outputs, controlled over its
//! socket.
//!
//! The process reports when the new pictures are shown, and changes them without a gap. A process of
//! another version, or one that does not answer in time, is replaced once a new one shows everything.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::{Context, GRACE, Processes};
use super::copies::Takes;
use super::socket::{NotUp, connect_when_up, read_answer, wait};
use super::{Backend, Error, Kind, Placement};
use crate::color;
use crate::compositor::{Output, Session, root_painter};
use crate::config::{self, BuiltinBackdrop, BuiltinTransition};
use crate::draw::{
    self, Backdrop, Effect, Outcome, Request, Response, Span, Style, Transition, Wanted,
};
use crate::media::Cut;
use crate::process::{self, BackendProcess, Child, Launch, run};
use crate::random;
use crate::sys::{Cancel, connect};
use crate::wire::Fit;

/// The time limit for a new process to connect to the compositor and to listen.
const UP_WITHIN: Duration = Duration::from_secs(10);
/// A running process is replaced if it neither answers nor uses processor time for this long, even if it
/// only waits for a disk.
const WORKS_WITHIN: Duration = Duration::from_secs(5);
/// A large PNG for several outputs takes seconds, more on a busy machine.
const SHOWN_WITHIN: Duration = Duration::from_secs(30);
/// Begins the errors about a process that cannot be used.
const CANNOT_START: &str = "the built-in renderer cannot start";
/// Formats that murald does not decode are converted first.
const TAKES: Takes = Takes {
    formats: None,
    turns: true,
    profiles: true,
    animates: true,
    name: None,
};

pub(super) struct Builtin {
    context: Context,
    processes: Processes,
    /// The next pictures need new surfaces.
    renew: bool,
}

/// The answer to a question; an error says why the process must be replaced.
type Asked = Result<(), String>;

impl Builtin {
    pub(super) fn new(context: Context) -> Self {
        Self {
            processes: Processes::taken_over(&context),
            context,
            renew: false,
        }
    }

    fn request(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<Request, Error> {
        let settings = self.context.settings();
        let mut outputs = Vec::new();
        for placement in placements {
            let path = self
                .context
                .copies
                .ready(placement, &Cut::WHOLE, &TAKES, cancel)?;
            outputs.push(Wanted {
                output: placement.output.name.clone(),
                path: path.into_os_string(),
                content: placement.content.clone(),
                style: style(&settings.builtin, placement),
                backdrop: backdrop(&settings.builtin).filter(|_| !self.is_on_root()),
            });
        }
        let transition = transition(&settings.builtin);
        Ok(Request {
            version: draw::VERSION.to_owned(),
            outputs,
            transition,
        })
    }

    /// Starts a process that shows everything.
    fn start(&mut self, request: &Request, cancel: &Cancel) -> Result<BackendProcess, Error> {
        let process = self.context.start(|socket| {
            let arguments = [
                OsStr::new(draw::VERB),
                OsStr::new("--socket"),
                socket.as_os_str(),
            ];
            self.context.launch(self.program()).args(arguments)
        })?;
        let until = Instant::now() + UP_WITHIN;
        let shown = connect_when_up(&socket_of(&process), None, process.child(), until, cancel)
            .map_err(|not_up| not_up.error(CANNOT_START, Some(&process)))
            .and_then(|stream| ask(stream, request, &process, SHOWN_WITHIN, cancel))
            .and_then(|asked| {
                asked.map_err(|why| Error::Unavailable(format!("{CANNOT_START}: {why}")))
            });
        match shown {
            Ok(()) => Ok(process),
            Err(error) => {
                process.end(GRACE);
                Err(error)
            }
        }
    }

    fn is_on_root(&self) -> bool {
        matches!(
            self.context.shared.outputs.session(),
            Some(Session::X11 { .. })
        )
    }

    /// Paints the X server's root window, by a process that exits afterwards.
    fn paint_root(&self, request: &Request, cancel: &Cancel) -> Result<(), Error> {
        let launch = self.context.launch(self.program()).args(once(request));
        let output = run(&launch, SHOWN_WITHIN, &[cancel])?;
        let unusable = || Error::Unavailable(format!("{CANNOT_START}: {}", output.complaint()));
        match Response::read(&output.stdout).ok_or_else(unusable)?.outcome {
            Outcome::Shown(_) => self.context.note_painted(),
            outcome => return Err(refusal(outcome)),
        }
        Ok(())
    }

    fn program(&self) -> PathBuf {
        self.context
            .shared
            .own_program
            .clone()
            .unwrap_or_else(process::own_program)
    }

    fn tidy(&mut self, request: Request) {
        let paths = request.outputs.into_iter().map(|wanted| wanted.path.into());
        self.context.copies.tidy(&paths.collect::<Vec<PathBuf>>());
    }
}

impl Backend for Builtin {
    fn use_transition(&mut self, word: Option<&str>) {
        self.context.transition = word.map(str::to_owned);
    }

    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        if placements.is_empty() {
            return self.clear();
        }
        let request = self.request(placements, cancel)?;
        if self.is_on_root() {
            self.paint_root(&request, cancel)
                .map_err(|error| error.name_picture(placements, &request))?;
            self.tidy(request);
            return Ok(());
        }
        self.processes.reap();
        let renew = mem::take(&mut self.renew);
        let asked = self.processes.newest().filter(|_| !renew).map(|process| {
            match connect(&socket_of(process)) {
                Ok(stream) => ask(stream, &request, process, WORKS_WITHIN, cancel),
                Err(_) => Ok(Err("it is not listening".to_owned())),
            }
        });
        match asked
            .transpose()
            .map_err(|error| error.name_picture(placements, &request))?
        {
            Some(Ok(())) => self.processes.keep_newest(),
            other => {
                if let Some(Err(why)) = other {
                    log::info!("replacing the renderer process: {why}");
                }
                let new = self.start(&request, cancel);
                self.processes
                    .replace(new.map_err(|error| error.name_picture(placements, &request))?);
            }
        }
        self.tidy(request);
        Ok(())
    }

    fn renew(&mut self) {
        self.renew = true;
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.processes.end_all();
        self.context.copies.tidy(&[]);
        // The root window keeps its pixels, so it is painted over.
        if self.context.has_painted() {
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
    /// Names the picture in an error that is about a copy of it.
    fn name_picture(self, placements: &[Placement], request: &Request) -> Self {
        let Self::File { path, why } = self else {
            return self;
        };
        let at = request
            .outputs
            .iter()
            .position(|wanted| Path::new(&wanted.path) == path);
        let placement = at.and_then(|at| placements.get(at));
        Self::File {
            path: placement.map_or(path, |placement| placement.path.clone()),
            why,
        }
    }
}

/// The arguments of a process that paints the root window.
fn once(request: &Request) -> [OsString; 3] {
    let message = draw::line(request);
    let message = OsStr::from_bytes(message.trim_ascii_end());
    [draw::VERB.into(), "--once".into(), message.into()]
}

/// Paints an X server's root window black if it shows a picture of murald, whose daemon has stopped;
/// returns whether it did.
pub(crate) fn clear_root(display: &str) -> bool {
    if root_painter(display).is_none() {
        return false;
    }
    let request = Request {
        version: draw::VERSION.to_owned(),
        outputs: Vec::new(),
        transition: transition(&config::Config::default().builtin),
    };
    let launch = Launch::new(process::own_program()).args(once(&request));
    let output = run(&launch.env("DISPLAY", display), SHOWN_WITHIN, &[]);
    let response = output
        .ok()
        .and_then(|output| Response::read(&output.stdout));
    response.is_some_and(|response| matches!(response.outcome, Outcome::Shown(_)))
}

fn socket_of(process: &BackendProcess) -> PathBuf {
    process.beside("sock")
}

/// Sends the request and waits until it is carried out.
fn ask(
    mut stream: UnixStream,
    request: &Request,
    process: &BackendProcess,
    patience: Duration,
    cancel: &Cancel,
) -> Result<Asked, Error> {
    // The message is far smaller than the socket's buffer, so this does not block.
    let said = stream.write_all(&draw::line(request)).map_err(NotUp::from);
    let answer = said.and_then(|()| hear_answer(&mut stream, process.child(), patience, cancel));
    let useless = |why: &str| Ok(Err(why.to_owned()));
    let heard = match answer {
        Ok(heard) => heard,
        Err(NotUp::Cancelled) => return Err(Error::Cancelled),
        Err(ended @ NotUp::Ended) => return Err(ended.error(CANNOT_START, Some(process))),
        Err(late) => return useless(&late.to_string()),
    };
    match Response::read(&heard).map(|response| response.outcome) {
        None if heard.is_empty() => useless("it closed the connection"),
        None => useless("it has another version"),
        Some(Outcome::Shown(_)) => Ok(Ok(())),
        Some(Outcome::NotUnderstood) => useless("it does not understand the message"),
        Some(Outcome::Replace) => useless("it has no surface for a backdrop"),
        Some(outcome) => Err(refusal(outcome)),
    }
}

/// Waits for the answer as long as the process uses processor time. A stopped process uses none; one
/// that waits for a disk uses none either and counts as stopped.
fn hear_answer(
    stream: &mut UnixStream,
    child: &Child,
    patience: Duration,
    cancel: &Cancel,
) -> Result<Vec<u8>, NotUp> {
    let asked = Instant::now();
    let mut before = child.identity().processor_time();
    loop {
        let until = Instant::now() + patience;
        wait(&[stream.as_fd()], Some(child), until, cancel)?;
        if Instant::now() < until {
            return read_answer(stream, Some(child), until, cancel, |heard| {
                heard.ends_with(b"\n")
            });
        }
        let now = child.identity().processor_time();
        if mem::replace(&mut before, now) == now || asked.elapsed() >= SHOWN_WITHIN {
            return Err(NotUp::Late);
        }
    }
}

fn refusal(outcome: Outcome) -> Error {
    let why = match outcome {
        Outcome::File { path, why } => {
            return Error::File {
                path: path.into(),
                why,
            };
        }
        Outcome::Refused(why) => why,
        Outcome::Superseded => "another change replaced it".to_owned(),
        Outcome::NotUnderstood | Outcome::Replace | Outcome::Shown(_) => {
            "it does not understand the message".to_owned()
        }
    };
    Error::Refused(why)
}

fn style(settings: &config::Builtin, placement: &Placement) -> Style {
    let fit = placement.fit.unwrap_or(settings.fit_mode);
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
    Transition {
        effect: effect(settings.transition_type, settings),
        duration: settings.transition_duration,
        easing: settings.transition_easing.0,
        fps_max: settings.fps_max,
    }
}

fn effect(kind: BuiltinTransition, settings: &config::Builtin) -> Effect {
    const MOVING: [BuiltinTransition; 3] = [
        BuiltinTransition::Fade,
        BuiltinTransition::Wipe,
        BuiltinTransition::Grow,
    ];
    match kind {
        BuiltinTransition::None => Effect::None,
        BuiltinTransition::Fade => Effect::Fade,
        BuiltinTransition::Wipe => Effect::Wipe {
            angle: settings.transition_angle,
        },
        BuiltinTransition::Grow => Effect::Grow {
            origin: settings.transition_pos,
        },
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
        [
            one[0].min(left),
            one[1].min(top),
            one[2].max(right),
            one[3].max(bottom),
        ]
    };
    let own = area(&placement.output);
    let whole = placement.span.iter().map(area).fold(own, around);
    let size = |[left, top, right, bottom]: [f64; 4]| [left, top, right - left, bottom - top];
    Some(Span {
        all: size(whole),
        own: size(own),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn settings_are_passed_to_the_renderer() {
        let settings = |toml: &str| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("config.toml");
            std::fs::write(&path, format!("[backend.builtin]\n{toml}")).unwrap();
            config::check(&path).unwrap().builtin.clone()
        };
        let told = |toml: &str| transition(&settings(toml));
        let below = |toml: &str| backdrop(&settings(toml)).map(|it| (it.blur, it.dim));
        assert_eq!(
            (below(""), below("backdrop = 'same'")),
            (None, Some((0.0, 0.0)))
        );
        assert_eq!(
            below("backdrop = 'blur'\nbackdrop_blur = 7"),
            Some((7.0, 0.0))
        );
        assert_eq!(
            below("backdrop = 'blur'\nbackdrop_dim = 0.5"),
            Some((24.0, 0.5))
        );
        assert_eq!(below("backdrop = 'dim'"), Some((0.0, 0.3)));
        let wipe = told("transition_type = 'wipe'\ntransition_angle = 90\nfps_max = 24");
        assert_eq!(
            (wipe.effect, wipe.fps_max),
            (Effect::Wipe { angle: 90.0 }, 24)
        );
        let grow = told("transition_type = 'grow'\ntransition_pos = 'top-left'");
        assert_eq!(
            grow.effect,
            Effect::Grow {
                origin: "top-left".parse().unwrap()
            }
        );
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
