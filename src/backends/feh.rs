//! Shows pictures through feh 3.9 and later: one call for all monitors of the X server, without a
//! process that keeps running.
//!
//! File n goes to the n-th monitor, with one mode for all. feh skips a file that it cannot read, and
//! moves the files after it up, so each is checked before. Monitors without a picture get a plain one.
//! feh's own tile mode shows the first file on all monitors, so each monitor gets a picture of its tiles
//! instead.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::context::Context;
use super::copies::{Takes, output_cut, seen_part};
use super::fit_and_transition::fit_or;
use super::{Backend, Error, Placement};
use crate::color;
use crate::compositor::Output;
use crate::config::{BackendName, FehMode};
use crate::media::Cut;
use crate::process::run;
use crate::sys::Cancel;
use crate::wire::Format;

/// The time limit of a call. A 4K JPEG takes 225 ms; many monitors with large PNGs take seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// Imlib2's other loaders differ from build to build, and only some builds rotate pictures.
const TAKES: Takes = Takes {
    formats: Some(&[Format::Jpg, Format::Png]),
    turns: false,
    profiles: false,
    animates: false,
    name: None,
};

pub(super) struct Feh {
    context: Context,
}

impl Backend for Feh {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        // The plan gives all placements the same fit.
        let fit = placements.iter().find_map(|placement| placement.fit);
        let settings = self.context.settings();
        let mode = fit_or(BackendName::Feh, fit, settings.feh.mode);
        let fill = color::parse_hex(&settings.feh.fill_color).unwrap_or_default();
        let mut files = Vec::new();
        for placement in placements {
            let cut = match (mode, seen_part(placement, mode == FehMode::Fill)) {
                (FehMode::Fill, whole) if whole.is_whole() => output_cut(placement),
                (FehMode::Tile, _) => Cut {
                    repeats: true,
                    ..output_cut(placement)
                },
                (FehMode::Fill | FehMode::Scale | FehMode::Center | FehMode::Max, cut) => cut,
            };
            // Transparent parts are filled here, since feh would show them in its own way.
            let cut = Cut {
                fill: Some(fill),
                ..cut
            };
            files.push(self.context.copies.ready(placement, &cut, &TAKES, cancel)?);
        }
        let shown = |output: &Output| {
            let at = placements
                .iter()
                .position(|placement| placement.output.name == output.name)?;
            Some(files[at].clone())
        };
        let in_order = for_heads(&self.context.shared.outputs.list(), shown);
        self.paint(&in_order, (mode, fill), cancel)?;
        self.context.note_painted();
        self.context.copies.tidy(&files);
        Ok(())
    }

    /// The root window keeps its pixels, so it is painted over.
    fn clear(&mut self) -> Result<(), Error> {
        self.context.copies.tidy(&[]);
        let outputs = self.context.shared.outputs.list();
        if outputs.is_empty() || !self.context.has_painted() {
            return Ok(());
        }
        let never = Cancel::new().map_err(|error| Error::Unavailable(error.to_string()))?;
        self.paint(
            &for_heads(&outputs, |_| None),
            (FehMode::Fill, [0; 3]),
            &never,
        )
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

impl Feh {
    pub(super) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Paints the file of each monitor, in the order of the X server's list, or a colour if it has none.
    fn paint(
        &self,
        files: &[Option<PathBuf>],
        (mode, fill): (FehMode, color::Rgb),
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let plain = self.plain(fill)?;
        let files: Vec<&Path> = files
            .iter()
            .map(|f| f.as_deref().unwrap_or(&plain))
            .collect();
        let mode = if mode == FehMode::Tile {
            FehMode::Fill
        } else {
            mode
        };
        let args = args(mode, fill, &files);
        let launch = self.context.launch(self.context.program("feh")?).args(args);
        // If a file vanishes now, the others move up; this cannot be prevented with feh.
        let output = run(&launch, LIMIT, &[cancel])?;
        if !output.is_success() {
            return Err(Error::Refused(format!(
                "feh failed: {}",
                output.complaint()
            )));
        }
        match complaint(&output.stderr, &files) {
            Some(line) => Err(Error::Refused(format!("feh: {}", line.trim()))),
            None => Ok(()),
        }
    }

    /// A picture of one colour for monitors without a picture of ours.
    fn plain(&self, fill: color::Rgb) -> Result<PathBuf, Error> {
        let path = self.context.cache.join("plain.ppm");
        let failed = |error: std::io::Error| {
            Error::Unavailable(format!("cannot write {}: {error}", path.display()))
        };
        std::fs::create_dir_all(&self.context.cache).map_err(failed)?;
        std::fs::write(&path, [&b"P6 1 1 255 "[..], &fill].concat()).map_err(failed)?;
        Ok(path)
    }
}

/// The line about a file that feh has skipped, for which it exits with 0. Other warnings are about its
/// display or its settings.
fn complaint<'a>(stderr: &'a str, files: &[&Path]) -> Option<&'a str> {
    let names_a_file = |line: &&str| {
        let mut names = files.iter().map(|file| file.to_string_lossy());
        line.contains("WARNING") && names.any(|name| line.contains(&*name))
    };
    stderr.lines().find(names_a_file)
}

/// The file of each of the X server's monitors, in their order. Cloned monitors share an output.
fn for_heads(
    outputs: &[Output],
    file: impl Fn(&Output) -> Option<PathBuf>,
) -> Vec<Option<PathBuf>> {
    let count = outputs.iter().map(|output| output.heads.len()).sum();
    let mut files = vec![None; count];
    for output in outputs {
        for &head in &output.heads {
            files[head] = file(output);
        }
    }
    files
}

fn args(mode: FehMode, fill: color::Rgb, files: &[&Path]) -> Vec<OsString> {
    let mut args: Vec<OsString> = [
        "--no-fehbg",
        &format!("--bg-{mode}"),
        "--image-bg",
        &color::hex(fill),
        "--",
    ]
    .map(OsString::from)
    .into();
    args.extend(files.iter().map(|file| file.as_os_str().to_owned()));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_warning_that_names_a_file_is_a_failure() {
        let check = |stderr, expected| {
            let files = [Path::new("/a b.png"), Path::new("/c.png")];
            assert_eq!(complaint(stderr, &files), expected);
        };
        check("feh WARNING: Unable to open display config\n", None);
        check("feh: /a b.png was loaded\n", None);
        let skipped = "feh WARNING: /c.png - No Imlib2 loader for that file format";
        check(
            &format!("feh WARNING: no fonts\n{skipped}\n"),
            Some(skipped),
        );
    }

    #[test]
    fn command_line_has_the_mode_and_the_files() {
        let check = |mode, expected: &[&str]| {
            let files = [Path::new("/a b.png"), Path::new("/-c.png")];
            assert_eq!(args(mode, [30, 30, 46], &files), expected);
        };
        check(
            FehMode::Fill,
            &[
                "--no-fehbg",
                "--bg-fill",
                "--image-bg",
                "#1e1e2e",
                "--",
                "/a b.png",
                "/-c.png",
            ],
        );
        check(
            FehMode::Max,
            &[
                "--no-fehbg",
                "--bg-max",
                "--image-bg",
                "#1e1e2e",
                "--",
                "/a b.png",
                "/-c.png",
            ],
        );
    }
}
