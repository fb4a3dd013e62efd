//! swaybg 1.2: one process for all outputs, replaced at every change.
//!
//! The old process goes only when the new one has drawn on every output. How that is known: with
//! `WAYLAND_DEBUG=client` libwayland writes each request and event to stderr; after a buffer was
//! attached and committed, the compositor's `delete_id` of that buffer says that it was taken.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::context::Context;
use super::follow::{Followed, follow};
use super::registry::Settings;
use super::{Backend, Error, Hanging};
use crate::config::SwaybgFit;
use crate::process::{Cancel, Launch, Setter};

const NAME: &str = "swaybg";
/// A 48 MB PNG takes half a second.
const DRAWN_WITHIN: Duration = Duration::from_secs(10);
/// It dies of SIGTERM at once.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Swaybg {
    context: Context,
    settings: Settings,
    /// All of ours that run; the last one is what is seen.
    running: Vec<Setter>,
}

impl Swaybg {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let running = context.roster.running(NAME);
        for setter in &running {
            if let Err(error) = context.watch(setter) {
                log::warn!("{NAME}: {error}");
            }
        }
        Self { context, settings, running }
    }

    fn start(&self, launch: &Launch, outputs: usize, cancel: &Cancel) -> Result<Setter, Error> {
        let setter = self.context.roster.start(launch, NAME, None)?;
        match drawn(&setter, outputs, cancel) {
            Ok(()) => Ok(setter),
            Err(error) => {
                setter.end(GRACE);
                Err(error)
            }
        }
    }
}

impl Backend for Swaybg {
    fn show(&mut self, scene: &[Hanging], cancel: &Cancel) -> Result<(), Error> {
        let launch = self
            .context
            .launch(self.context.program(NAME)?)
            .args(args(scene, (self.settings)().swaybg.fit_mode))
            .env("WAYLAND_DEBUG", "client");
        let seen = self.running.last();
        if seen.is_some_and(|seen| seen.record().is(&launch) && seen.child().is_running()) {
            return Ok(());
        }
        let new = self.start(&launch, scene.len(), cancel)?;
        self.context.watch(&new)?;
        for old in std::mem::replace(&mut self.running, vec![new]) {
            old.end(GRACE);
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.running.drain(..).for_each(|setter| setter.end(GRACE));
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        let seen = self.running.last().map(|setter| setter.child().identity());
        let (alive, dead): (Vec<_>, Vec<_>) =
            self.running.drain(..).partition(|setter| setter.child().is_running());
        self.running = alive;
        for setter in dead {
            setter.ended();
            setter.forget();
        }
        self.running.last().map(|setter| setter.child().identity()) == seen
    }
}

fn args(scene: &[Hanging], fit_mode: SwaybgFit) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    for hanging in scene {
        args.extend(["-o".into(), hanging.output.name.clone().into()]);
        args.extend(["-i".into(), hanging.path.clone().into_os_string()]);
        args.extend(["-m", fit_mode.as_str(), "-c", "#000000"].map(OsString::from));
    }
    args
}

/// Waits until it has drawn on so many outputs.
fn drawn(setter: &Setter, outputs: usize, cancel: &Cancel) -> Result<(), Error> {
    let mut trace = Trace::default();
    let until = Instant::now() + DRAWN_WITHIN;
    let followed =
        follow(&setter.log_path(), setter.child(), until, cancel, |line| match trace.read(line) {
            Err(error) => ControlFlow::Break(Err(error)),
            Ok(()) if trace.drawn == outputs => ControlFlow::Break(Ok(())),
            Ok(()) => ControlFlow::Continue(()),
        })
        .map_err(|error| Error::Unavailable(format!("cannot read what swaybg says: {error}")))?;
    match followed {
        Followed::Seen(result) => result,
        Followed::Ended => Err(Error::Unavailable(format!("swaybg ended: {}", said(setter)))),
        Followed::Late => Err(Error::Refused(format!(
            "swaybg drew on {} of {outputs} outputs within {} s",
            trace.drawn,
            DRAWN_WITHIN.as_secs()
        ))),
        Followed::Cancelled => Err(Error::Cancelled),
    }
}

/// The last thing that it said itself.
fn said(setter: &Setter) -> String {
    let tail = setter.log_tail();
    let own = tail.lines().rev().find(|line| !line.starts_with('['));
    own.map_or_else(|| "it said nothing".to_owned(), |line| message(line).to_owned())
}

/// What its log says of drawing.
#[derive(Debug, Default)]
struct Trace {
    /// Surface and the buffer that was attached to it and is not taken yet.
    attached: Vec<(u32, u32)>,
    /// Surfaces whose first buffer was taken.
    surfaces: Vec<u32>,
    drawn: usize,
}

impl Trace {
    fn read(&mut self, line: &str) -> Result<(), Error> {
        if let Some((surface, buffer)) = attach(line) {
            self.attached.retain(|&(_, old)| old != buffer);
            self.attached.push((surface, buffer));
        } else if let Some(id) = number_after(line, "wl_display@1.delete_id(") {
            let taken = self.attached.iter().position(|&(_, buffer)| buffer == id);
            if let Some((surface, _)) = taken.map(|at| self.attached.swap_remove(at))
                && !self.surfaces.contains(&surface)
            {
                self.surfaces.push(surface);
                self.drawn += 1;
            }
        } else if let Some(at) = line.find("Failed to load image") {
            let why = line[at..].to_owned();
            let path = line[at..].split_once(": ").map_or("", |(_, path)| path);
            return Err(Error::File { path: PathBuf::from(path.trim_end_matches(')')), why });
        } else if line.contains("Could not find config for output") {
            log::debug!("swaybg: {}", message(line));
        }
        Ok(())
    }
}

/// From `-> wl_surface@3.attach(wl_buffer@16, 0, 0)`: 3 and 16. Newer libwayland writes `#` for `@`.
fn attach(line: &str) -> Option<(u32, u32)> {
    let line = line.replace('#', "@");
    let rest = &line[line.find("-> wl_surface@")? + "-> wl_surface@".len()..];
    let (surface, rest) = rest.split_once(".attach(wl_buffer@")?;
    Some((surface.parse().ok()?, leading_number(rest)?))
}

fn number_after(line: &str, mark: &str) -> Option<u32> {
    let line = line.replace('#', "@");
    leading_number(&line[line.find(mark)? + mark.len()..])
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// A line of its own without the time and place before it.
fn message(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, message)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_tells_when_every_output_is_drawn() {
        let check = |lines: &[&str], drawn: usize| {
            let mut trace = Trace::default();
            lines.iter().for_each(|line| trace.read(line).unwrap());
            assert_eq!(trace.drawn, drawn, "{lines:?}");
        };
        let attach = "[3697967.855]  -> wl_surface@12.attach(wl_buffer@10, 0, 0)";
        let other = "[3697986.139]  -> wl_surface@3.attach(wl_buffer@16, 0, 0)";
        let taken = "[3697988.711] wl_display@1.delete_id(10)";
        check(&[taken, attach], 0);
        check(&[attach, other, taken], 1);
        check(&[attach, other, taken, "[3697988.717] wl_display@1.delete_id(16)"], 2);
        check(&[attach, taken, attach, taken], 1);
        check(&["[1.0]  -> wl_surface#12.attach(wl_buffer#10, 0, 0)", &taken.replace('@', "#")], 1);
    }

    #[test]
    fn an_unreadable_picture_is_an_error() {
        let line = "2026-11-21 05:44:58 - [background-image.c:37] Failed to load image: /x y.png";
        let error = Trace::default().read(line).unwrap_err();
        assert!(matches!(error, Error::File { path, .. } if path.as_os_str() == "/x y.png"));
    }
}
