//! Shows pictures through swaybg 1.2: one process for all outputs, which is replaced at every change.
//!
//! All outputs of a change are decoded together, and stretched pictures are cut and shown together. A
//! slow output therefore delays the others of the same change, and later changes.
//!
//! The old process ends only after the new one has drawn on every output, which its Wayland trace
//! shows (`trace`). Until then either may lie on top: both show a picture.

use std::ffi::OsString;
use std::fs;
use std::mem;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memchr::memmem;

use super::context::{Context, GRACE, Processes};
use super::copies::{Takes, seen_part};
use super::fit_and_transition::fit_or;
use super::follow::follow;
use super::socket::NotUp;
use super::trace::{self, Trace};
use super::{Backend, Error, Placement};
use crate::config::{BackendName, SwaybgFit};
use crate::process::{BackendProcess, Launch};
use crate::sys::Cancel;
use crate::wire::Format;

const NAME: &str = "swaybg";
/// A 48 MB PNG takes half a second.
const DRAWN_WITHIN: Duration = Duration::from_secs(10);
/// Niri takes a picture within a frame.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);
/// swaybg writes this before the path of a file.
const FAILED: &str = "Failed to load image: ";
/// gdk-pixbuf has these formats built in; its other loaders are separate packages. swaybg 1.2.0 does not
/// rotate.
const TAKES: Takes = Takes {
    formats: Some(&[Format::Jpg, Format::Png]),
    turns: false,
    profiles: false,
    animates: false,
    name: None,
};

pub(super) struct Swaybg {
    context: Context,
    processes: Processes,
    /// The next pictures need a new process.
    renew: bool,
}

impl Swaybg {
    pub(super) fn new(context: Context) -> Self {
        Self {
            processes: Processes::taken_over(&context),
            context,
            renew: false,
        }
    }

    /// The command line, and the files in it: the pictures, or copies that swaybg can load.
    fn launch(
        &mut self,
        placements: &[Placement],
        cancel: &Cancel,
    ) -> Result<(Launch, Vec<PathBuf>), Error> {
        let settings = self.context.settings();
        let fit = |one: &Placement| fit_or(BackendName::Swaybg, one.fit, settings.swaybg.fit_mode);
        let ready = |placement: &Placement| {
            let cut = seen_part(placement, fit(placement) == SwaybgFit::Fill);
            self.context.copies.ready(placement, &cut, &TAKES, cancel)
        };
        let files = placements
            .iter()
            .map(ready)
            .collect::<Result<Vec<_>, _>>()?;
        let shown = placements.iter().zip(&files);
        let shown = shown.map(|(one, file)| (one.output.name.as_str(), file, fit(one)));
        let launch = self
            .context
            .launch(self.context.program(NAME)?)
            .args(args(shown, &settings.swaybg.fill_color))
            .env("WAYLAND_DEBUG", "client");
        Ok((launch, files))
    }
}

impl Backend for Swaybg {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        if placements.is_empty() {
            return self.clear();
        }
        // Checked before, since on a busy machine the picture may be drawn before the first check of a
        // wait.
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let (launch, files) = self.launch(placements, cancel)?;
        let is_niri = self.context.shared.dirs.env().var("NIRI_SOCKET").is_some();
        let renew = mem::take(&mut self.renew);
        let same = |process: &BackendProcess| {
            let is_it = !renew && process.record().is(&launch) && process.child().is_running();
            is_it && !has_failed(process)
        };
        if let Some(kept) = self.processes.take(same) {
            // A process that an earlier daemon started may not have drawn yet.
            if drawn(&kept, &files, is_niri, cancel).is_ok() {
                self.processes.replace(kept);
                self.context.copies.tidy(&files);
                return Ok(());
            }
            kept.end(GRACE);
        }
        let new = self.context.start(|_| launch)?;
        if let Err(error) = drawn(&new, &files, is_niri, cancel) {
            new.end(GRACE);
            return Err(error);
        }
        self.processes.replace(new);
        self.context.copies.tidy(&files);
        Ok(())
    }

    fn renew(&mut self) {
        self.renew = true;
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.processes.end_all();
        self.context.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        self.processes.is_whole()
    }
}

fn args<'a>(
    shown: impl Iterator<Item = (&'a str, &'a PathBuf, SwaybgFit)>,
    fill: &str,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    for (output, file, fit) in shown {
        args.extend(["-o".into(), output.into()]);
        args.extend(["-i".into(), file.clone().into_os_string()]);
        args.extend(["-m", fit.as_str(), "-c", &format!("#{fill}")].map(OsString::from));
    }
    args
}

/// Waits until the process has drawn on all its connected outputs. Niri 25.11 does not report that, as
/// no other event follows: there the process has drawn a moment after it has sent its pictures.
fn drawn(
    process: &BackendProcess,
    files: &[PathBuf],
    is_niri: bool,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut trace = Trace::default();
    let is_it = if is_niri {
        Trace::is_sent
    } else {
        Trace::is_done
    };
    if !until(is_it, DRAWN_WITHIN, process, files, cancel, &mut trace)? {
        let drawn = trace.drawn();
        let limit = DRAWN_WITHIN.as_secs();
        let why = format!(
            "swaybg drew on {drawn} of {} outputs within {limit} s",
            files.len()
        );
        return Err(Error::Refused(why));
    }
    if is_niri {
        until(
            Trace::is_done,
            TAKEN_WITHIN,
            process,
            files,
            cancel,
            &mut Trace::default(),
        )?;
    }
    Ok(())
}

/// Reads the trace of the process from its start until `is_it`; returns whether that was in time.
fn until(
    is_it: fn(&Trace) -> bool,
    within: Duration,
    process: &BackendProcess,
    files: &[PathBuf],
    cancel: &Cancel,
    trace: &mut Trace,
) -> Result<bool, Error> {
    let marks = [FAILED, trace::PROTOCOL, trace::UNWANTED];
    let followed = follow(
        process,
        0,
        &marks,
        Instant::now() + within,
        cancel,
        |line| {
            if let Some((_, path)) = line.split_once(FAILED) {
                return ControlFlow::Break(Err(unreadable(path, files)));
            }
            trace.read(line);
            if is_it(trace) {
                return ControlFlow::Break(Ok(true));
            }
            if trace.is_idle() {
                let why = "none of the outputs is connected".to_owned();
                return ControlFlow::Break(Err(Error::Refused(why)));
            }
            ControlFlow::Continue(())
        },
    );
    followed.unwrap_or_else(|not_up| match not_up {
        NotUp::Late => Ok(false),
        other => Err(other.error(NAME, Some(process))),
    })
}

/// Whether the process could not load a file, perhaps later than at its start: swaybg loads its files
/// again when an output changes.
fn has_failed(process: &BackendProcess) -> bool {
    let log = fs::read(process.log_path()).unwrap_or_default();
    memmem::find(&log, FAILED.as_bytes()).is_some()
}

fn unreadable(said: &str, files: &[PathBuf]) -> Error {
    // The message has only the first line of a name.
    let meant = |file: &&PathBuf| file.to_string_lossy().lines().next() == Some(said);
    let path = files
        .iter()
        .find(meant)
        .map_or(Path::new(said), PathBuf::as_path);
    Error::File {
        path: path.to_owned(),
        why: "swaybg cannot load it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_has_each_output_and_its_file() {
        let check = |shown: &[(&str, &str)], fit_mode, expected: &[&str]| {
            let shown: Vec<_> = shown
                .iter()
                .map(|(o, file)| (*o, PathBuf::from(file)))
                .collect();
            assert_eq!(
                args(shown.iter().map(|(o, file)| (*o, file, fit_mode)), "1e1e2E"),
                expected
            );
        };
        check(&[], SwaybgFit::Fill, &[]);
        let fill = ["-c", "#1e1e2E"];
        let dp = ["-o", "DP-1", "-i", "/a b\n.png", "-m", "fit"];
        check(
            &[("DP-1", "/a b\n.png")],
            SwaybgFit::Fit,
            &[&dp[..], &fill].concat(),
        );
        let hdmi = ["-o", "HDMI-A-1", "-i", "/-o.png", "-m", "fit"];
        check(
            &[("DP-1", "/a b\n.png"), ("HDMI-A-1", "/-o.png")],
            SwaybgFit::Fit,
            &[&dp[..], &fill, &hdmi, &fill].concat(),
        );
    }

    #[test]
    fn picture_counts_as_drawn_on_niri_which_never_reports_it() {
        // swaybg 1.2.1 on niri 25.11, shortened.
        const TRACE: [&str; 4] = [
            "-> wl_registry#2.bind(40, \"wl_output\", 4, new id [unknown]#8)",
            "wl_callback#3.done(0)",
            "-> zwlr_layer_shell_v1#5.get_layer_surface(new id x#9, wl_surface#3, wl_output#8, 0)",
            "-> wl_surface#3.attach(wl_buffer#11, 0, 0)",
        ];
        let dir = tempfile::tempdir().unwrap();
        let records = crate::process::ProcessRecords::open(dir.path()).unwrap();
        let trace = TRACE.join("\n");
        let words = ["-c", "echo \"$0\"; exec sleep 60", &trace];
        let process = records
            .start("test", None, |_| Launch::new("/bin/sh").args(words))
            .unwrap();
        drawn(&process, &[], true, &Cancel::new().unwrap()).unwrap();
        process.end(GRACE);
    }

    #[test]
    fn unreadable_picture_is_named_in_full() {
        let files = [PathBuf::from("/b.png"), PathBuf::from("/x\ny.png")];
        let named = |said| match unreadable(said, &files) {
            Error::File { path, .. } => path,
            other => panic!("{other}"),
        };
        assert_eq!(named("/x"), files[1]);
        assert_eq!(named("/b.png"), files[0]);
        assert_eq!(named("/other"), PathBuf::from("/other"));
    }
}
