//! feh 3.9 and later: one call for all monitors of the X server, and no process that stays.
//!
//! File n goes to the n-th monitor, one mode for all. A file that feh cannot read is dropped and
//! those after it move up, so each is looked at before. Black goes to monitors without a picture.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::context::{Context, Settings};
use super::copies::{Copies, Takes};
use super::fit_and_transition::fit_or;
use super::{Backend, Error, Placement};
use crate::compositor::Output;
use crate::config::{BackendName, FehMode};
use crate::process::run;
use crate::sys::Cancel;
use crate::wire::{Fit, Format};

/// 225 ms for a 4K JPEG; a wall of monitors with large PNGs takes seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// Imlib2's other loaders differ from build to build; it turns pictures only in some.
const TAKES: Takes = Takes {
    formats: Some(&[Format::Jpg, Format::Png]),
    turns: false,
    profiles: false,
    animates: false,
    name: None,
};

pub(super) struct Feh {
    context: Context,
    settings: Settings,
    copies: Copies,
}

impl Backend for Feh {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        let mut files = Vec::new();
        for placement in placements {
            files.push(self.copies.ready(placement, &TAKES, cancel)?);
        }
        let shown = |output: &Output| {
            let at =
                placements.iter().position(|placement| placement.output.name == output.name)?;
            Some(files[at].clone())
        };
        let in_order = for_heads(&self.context.outputs.list(), shown);
        // One for all of them: those that decide what is shown have seen to that.
        let fit = placements.iter().find_map(|placement| placement.fit);
        self.paint(&in_order, fit, cancel)?;
        self.context.root_painter.painted(BackendName::Feh);
        self.copies.tidy(&files);
        Ok(())
    }

    /// The root window keeps its pixels, so it is painted over.
    fn clear(&mut self) -> Result<(), Error> {
        self.copies.tidy(&[]);
        let outputs = self.context.outputs.list();
        if outputs.is_empty() || !self.context.root_painter.may_be(BackendName::Feh) {
            return Ok(());
        }
        let never = Cancel::new().map_err(|error| Error::Unavailable(error.to_string()))?;
        self.paint(&for_heads(&outputs, |_| None), None, &never)
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

impl Feh {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let copies = Copies::new(context.cache.join("copies"), context.decoder.clone());
        Self { context, settings, copies }
    }

    /// Gives each monitor its file, in the order of the X server's list; black where there is none.
    fn paint(
        &self,
        files: &[Option<PathBuf>],
        fit: Option<Fit>,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let black = self.black()?;
        let files: Vec<&Path> = files.iter().map(|f| f.as_deref().unwrap_or(&black)).collect();
        let mode = fit_or(BackendName::Feh, fit, (self.settings)().feh.mode);
        let launch = self.context.launch(self.context.program("feh")?).args(args(mode, &files));
        // A file that vanishes now shifts the others; nothing more can be asked of feh.
        let output = run(&launch, LIMIT, Some(cancel))?;
        if !output.is_success() {
            return Err(Error::Refused(format!("feh failed: {}", output.complaint())));
        }
        // It drops what it cannot load with a warning and exits 0.
        match output.stderr.lines().find(|line| line.contains("WARNING")) {
            Some(line) => Err(Error::Refused(format!("feh: {}", line.trim()))),
            None => Ok(()),
        }
    }

    /// A black picture for monitors that have none of ours.
    fn black(&self) -> Result<PathBuf, Error> {
        let path = self.context.cache.join("black.pgm");
        let failed = |error: std::io::Error| {
            Error::Unavailable(format!("cannot write {}: {error}", path.display()))
        };
        if !path.exists() {
            std::fs::create_dir_all(&self.context.cache).map_err(failed)?;
            std::fs::write(&path, b"P5 1 1 255 \0").map_err(failed)?;
        }
        Ok(path)
    }
}

/// The file of each output, in the order of the X server's monitors, which are more where some are
/// clones.
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

fn args(mode: FehMode, files: &[&Path]) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        vec!["--no-fehbg".into(), format!("--bg-{mode}").into(), "--".into()];
    args.extend(files.iter().map(|file| file.as_os_str().to_owned()));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line() {
        let check = |mode, expected: &[&str]| {
            assert_eq!(args(mode, &[Path::new("/a b.png"), Path::new("/-c.png")]), expected);
        };
        check(FehMode::Fill, &["--no-fehbg", "--bg-fill", "--", "/a b.png", "/-c.png"]);
        check(FehMode::Max, &["--no-fehbg", "--bg-max", "--", "/a b.png", "/-c.png"]);
    }
}
