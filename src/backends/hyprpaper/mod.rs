//! hyprpaper: one process for all outputs, started with a file of ours and told of changes through
//! `hyprctl`.
//!
//! Only what cannot be said that way (the fit `fill`, since 0.8) needs a new process, which is up
//! before the old one goes. A hyprpaper that we did not start is left alone, and ours is not started
//! beside it: the two would fight for one socket.

mod dialect;
mod file;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::Context;
use super::copies::{Copies, Takes};
use super::registry::Settings;
use super::socket::{self, NotUp};
use super::{Backend, Error, Hanging};
use crate::config::HyprpaperFit;
use crate::process::{Cancel, Launch, Setter, run};
use crate::wire::Format;

use dialect::Dialect;

const NAME: &str = "hyprpaper";
const SIGNATURE: &str = "HYPRLAND_INSTANCE_SIGNATURE";
/// hyprctl is known to hang (hyprpaper#361).
const CALL: Duration = Duration::from_secs(3);
const UP_WITHIN: Duration = Duration::from_secs(10);
/// It does not tell when it has drawn: what a 4K picture takes it, and some more.
const DRAWN_AFTER: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(2);
/// In its files and calls commas, `#`, `$` and blanks at the ends mean something, and a line is a
/// line: any other name than a plain one is linked.
const TAKES: Takes = Takes {
    formats: &[Format::Jpg, Format::Png, Format::Webp],
    turns: false,
    name: Some(is_plain),
};

/// A picture on an output.
#[derive(Clone, Debug, PartialEq)]
struct Hung {
    output: String,
    path: PathBuf,
    fit: HyprpaperFit,
}

pub(super) struct Hyprpaper {
    context: Context,
    settings: Settings,
    copies: Copies,
    /// All of ours that run; the last one has the socket.
    running: Vec<Setter>,
    /// What this daemon has had shown.
    shown: HashMap<String, Hung>,
}

/// The Hyprland that runs.
struct Instance {
    signature: String,
    /// Of its sockets.
    directory: PathBuf,
}

impl Hyprpaper {
    pub(super) fn new(context: Context, settings: Settings) -> Self {
        let running = context.take_over(NAME);
        let copies = Copies::new(context.cache.join("copies"));
        Self { context, settings, copies, running, shown: HashMap::new() }
    }

    fn instance(&self) -> Result<Instance, Error> {
        let none = || Error::Unavailable("there is no Hyprland that runs".to_owned());
        let runtime = self.context.dirs.runtime().map_err(|_| none())?.join("hypr");
        let named = self.context.dirs.env().var(SIGNATURE).and_then(|name| name.into_string().ok());
        let signature = named.or_else(|| newest(&runtime)).ok_or_else(none)?;
        Ok(Instance { directory: runtime.join(&signature), signature })
    }

    fn dialect(&self) -> Result<Dialect, Error> {
        let program = self.context.program(NAME)?;
        Ok(Dialect::of(self.context.versions.of(&program, VERSION_FLAGS).as_deref()))
    }

    /// The file that it reads, and that we write.
    fn file(&self) -> Result<PathBuf, Error> {
        let settings = (self.settings)();
        if settings.hyprpaper.config_path.is_empty() {
            return Ok(self.context.dirs.config_home().join("hypr/murald-hyprpaper.conf"));
        }
        let expanded = self.context.dirs.expand(&settings.hyprpaper.config_path);
        expanded.map_err(|error| Error::Unavailable(format!("config_path: {error}")))
    }

    /// Tells the running one of a picture.
    fn tell(
        &self,
        hung: &Hung,
        dialect: Dialect,
        instance: &Instance,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        for words in dialect.set(hung) {
            let answer = self.call(&words, instance, cancel)?;
            dialect.check(&answer).map_err(|why| {
                Error::Refused(format!("{NAME} does not show {}: {why}", hung.path.display()))
            })?;
        }
        // Old ones keep every picture in memory that is not let go.
        let unused = |path: &Path| {
            self.shown.values().all(|other| other.output == hung.output || other.path != path)
        };
        let before = self.shown.get(&hung.output).map(|old| old.path.as_path());
        let before = before.filter(|&path| path != hung.path && unused(path));
        if let Some(words) = before.and_then(|path| dialect.forget(path)) {
            self.call(&words, instance, cancel)?;
        }
        Ok(())
    }

    fn call(
        &self,
        words: &[String],
        instance: &Instance,
        cancel: &Cancel,
    ) -> Result<crate::process::Output, Error> {
        let launch = self
            .launch("hyprctl", instance)?
            .args(["hyprpaper"])
            .args(words.iter().map(String::as_str));
        Ok(run(&launch, CALL, Some(cancel))?)
    }

    fn launch(&self, program: &str, instance: &Instance) -> Result<Launch, Error> {
        let launch = self.context.launch(self.context.program(program)?);
        Ok(launch.env(SIGNATURE, &instance.signature))
    }

    /// A new process that shows all of it, and then the end of those before.
    fn restart(&mut self, file: &Path, instance: &Instance, cancel: &Cancel) -> Result<(), Error> {
        let path = instance.directory.join(".hyprpaper.sock");
        if self.running.is_empty() && socket::connect(&path).is_ok() {
            let why = "a hyprpaper that murald did not start is running: end it first";
            return Err(Error::Unavailable(why.to_owned()));
        }
        let before = socket::made(&path);
        let launch = self.launch(NAME, instance)?.args(["-c"]).args([file.as_os_str()]);
        let new = self.context.start(&launch, NAME, None)?;
        let until = Instant::now() + UP_WITHIN;
        if let Err(not_up) = socket::connect_when_up(&path, before, new.child(), until, cancel) {
            let said = new.log_tail();
            let said = said.lines().last().unwrap_or("it said nothing").to_owned();
            new.end(GRACE);
            return Err(match not_up {
                NotUp::Cancelled => Error::Cancelled,
                NotUp::Ended => Error::Unavailable(format!("{NAME} ended: {said}")),
                NotUp::Late => Error::Unavailable(format!("{NAME} does not come up: {said}")),
                NotUp::Io(error) => Error::Unavailable(format!("{NAME}: {error}")),
            });
        }
        let ended = new.child().wait(Some(Instant::now() + DRAWN_AFTER), Some(cancel));
        if ended {
            let said = new.log_tail();
            new.forget();
            return Err(Error::Unavailable(format!("{NAME} ended: {said}")));
        }
        for old in std::mem::replace(&mut self.running, vec![new]) {
            old.end(GRACE);
        }
        Ok(())
    }

    /// Which of these it must be told of: those that are not shown; all, when none differs, as
    /// somebody else may have changed them.
    fn changed(&self, wanted: &[Hung]) -> Vec<Hung> {
        let differs = |hung: &&Hung| self.shown.get(&hung.output) != Some(*hung);
        let changed: Vec<Hung> = wanted.iter().filter(differs).cloned().collect();
        if changed.is_empty() { wanted.to_vec() } else { changed }
    }
}

impl Backend for Hyprpaper {
    fn show(&mut self, scene: &[Hanging], cancel: &Cancel) -> Result<(), Error> {
        if scene.is_empty() {
            return self.clear();
        }
        let (instance, dialect, file) = (self.instance()?, self.dialect()?, self.file()?);
        let fit = dialect.fit((self.settings)().hyprpaper.fit_mode);
        let mut wanted = Vec::new();
        for hanging in scene {
            let path = self.copies.ready(&hanging.path, &TAKES, cancel)?;
            wanted.push(Hung { output: hanging.output.name.clone(), path, fit });
        }
        self.context.bury(&mut self.running);
        file::write(&file, &dialect.file(&wanted))?;
        let changed = self.changed(&wanted);
        let by_call = changed.iter().all(|hung| dialect.can_be_told(hung.fit));
        if self.running.is_empty() || !by_call {
            self.restart(&file, &instance, cancel)?;
        } else {
            for hung in &changed {
                self.tell(hung, dialect, &instance, cancel)?;
                self.shown.insert(hung.output.clone(), hung.clone());
            }
        }
        let files: Vec<PathBuf> = wanted.iter().map(|hung| hung.path.clone()).collect();
        // What has left the scene is told again when it comes back.
        self.shown = wanted.into_iter().map(|hung| (hung.output.clone(), hung)).collect();
        self.copies.tidy(&files);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.running.drain(..).for_each(|setter| setter.end(GRACE));
        self.shown.clear();
        self.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        let before = self.running.last().map(|setter| setter.child().identity());
        self.context.bury(&mut self.running);
        self.running.last().map(|setter| setter.child().identity()) == before
    }
}

/// Before 0.8 there is `--version`; the first of 0.8 told it in their help only.
pub(super) const VERSION_FLAGS: &[&str] = &["--version", "--help"];

/// The instance that was started last.
fn newest(runtime: &Path) -> Option<String> {
    let entries = std::fs::read_dir(runtime).ok()?.flatten();
    let running = entries.filter(|entry| entry.path().join(".socket.sock").exists());
    let newest = running.max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).ok())?;
    newest.file_name().into_string().ok()
}

fn is_plain(path: &Path) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@ ".contains(&byte);
    path.to_str().is_some_and(|path| path.bytes().all(plain) && path.trim() == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_nothing_else() {
        for name in ["/a/b c.png", "/x_y-z+1@2.jpeg"] {
            assert!(is_plain(Path::new(name)), "{name}");
        }
        for name in ["/a,b", "/a#b", "/$HOME", "/a\nb", "/a ", "/a\\b", "/é", "/{x}", "/a=b"] {
            assert!(!is_plain(Path::new(name)), "{name}");
        }
    }
}
