//! feh 3.9 and later: one call for all monitors of the X server, and no process that stays.
//!
//! File n goes to the n-th monitor, one mode for all. A file that feh cannot read is dropped and
//! those after it move up, so each is looked at before.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::context::Context;
use super::registry::Settings;
use super::{Backend, Error, Hanging};
use crate::compositor::Output;
use crate::config::FehMode;
use crate::process::{Cancel, run};

/// 225 ms for a 4K JPEG; a wall of monitors with large PNGs takes seconds.
const LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Feh {
    context: Context,
    settings: Settings,
}

impl Feh {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        Self { context, settings }
    }
}

impl Backend for Feh {
    fn show(&mut self, scene: &[Hanging], cancel: &Cancel) -> Result<(), Error> {
        for hanging in scene {
            // A file that vanishes after this shifts the others; nothing more can be asked of feh.
            File::open(&hanging.path).map_err(|error| Error::File {
                path: hanging.path.clone(),
                why: error.to_string(),
            })?;
        }
        let files = files(scene, &self.context.outputs.list(), &|| self.black())?;
        let launch = self
            .context
            .launch(self.context.program("feh")?)
            .args(args((self.settings)().feh.mode, &files));
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

    /// The root window keeps its pixels: nothing of ours runs that could take them away.
    fn clear(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

impl Feh {
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

/// One file for each monitor, in the order of the X server's list.
fn files(
    scene: &[Hanging],
    outputs: &[Output],
    black: &dyn Fn() -> Result<PathBuf, Error>,
) -> Result<Vec<PathBuf>, Error> {
    let file = |output: &Output| {
        let hanging = scene.iter().find(|hanging| hanging.output.name == output.name);
        hanging.map_or_else(black, |hanging| Ok(hanging.path.clone()))
    };
    outputs.iter().map(file).collect()
}

fn args(mode: FehMode, files: &[impl AsRef<Path>]) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        vec!["--no-fehbg".into(), format!("--bg-{mode}").into(), "--".into()];
    args.extend(files.iter().map(|file| file.as_ref().as_os_str().to_owned()));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line() {
        let check = |mode, expected: &[&str]| {
            assert_eq!(args(mode, &["/a b.png", "/-c.png"]), expected);
        };
        check(FehMode::Fill, &["--no-fehbg", "--bg-fill", "--", "/a b.png", "/-c.png"]);
        check(FehMode::Max, &["--no-fehbg", "--bg-max", "--", "/a b.png", "/-c.png"]);
    }
}
