//! Shows pictures through hyprpaper: one process for all outputs, started with a file of ours and
//! changed through `hyprctl`, or over its own socket before 0.8. Success is checked after each call
//! (`dialect`).
//!
//! A new process is needed only for the fit `fill` (since 0.8), or if the socket was removed. The new
//! process is ready before the old one ends. A hyprpaper that murald did not start is left alone, and
//! none is started beside it, because both would use the same socket.

mod dialect;
#[cfg(parsers)]
#[path = "../../../tests/fuzz/src/parsers/hyprpaper.rs"]
pub(super) mod fuzz;
pub(super) mod instance;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::{Context, GRACE, Processes};
use super::copies::{Names, Takes, seen_part};
use super::fit_and_transition::fit_or;
use super::socket::{self, pause};
use super::{Backend, Error, Placement};
use crate::config::{BackendName, HyprpaperFit};
use crate::process::version::FLAGS;
use crate::process::{BackendProcess, Launch, run};
use crate::sys::Cancel;
use crate::wire::Format;

use dialect::{Dialect, NAME, Wallpaper};
use dialect::{come_up, has_drawn, not_shown};
use instance::Lock;
pub(super) use instance::is_in as fits;
use instance::{Instance, SIGNATURE};

/// The time limit of a call: hyprctl is known to hang (hyprpaper#361).
const CALL: Duration = Duration::from_secs(10);
/// The time limit for the version, which decides the dialect.
const VERSION: Duration = Duration::from_secs(3);
/// The time limit for the list of what is shown to have the wallpapers.
const LISTED_WITHIN: Duration = Duration::from_secs(3);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);
/// In its files and calls, commas, `#`, `$`, line ends, and blanks at the ends have a meaning, so
/// such names are replaced by plain ones. Versions before 0.8 follow a link and draw its target
/// only once.
const TAKES: Takes = Takes {
    formats: Some(&[Format::Jpg, Format::Png, Format::Webp]),
    turns: false,
    profiles: true,
    animates: false,
    name: Some(Names::Own(is_plain)),
};

pub(super) struct Hyprpaper {
    context: Context,
    /// The newest process has the socket.
    processes: Processes,
    /// The wallpapers that this daemon has set.
    shown: HashMap<String, Wallpaper>,
    /// The outputs whose requested fit this version lacks.
    unfit: Vec<String>,
}

/// The instance, and how its hyprpaper is controlled.
struct Channel {
    instance: Instance,
    dialect: Dialect,
    /// Hyprpaper can list what it shows.
    can_be_asked: bool,
}

impl Hyprpaper {
    pub(super) fn new(context: Context) -> Self {
        let processes = Processes::taken_over(&context);
        Self {
            context,
            processes,
            shown: HashMap::new(),
            unfit: Vec::new(),
        }
    }

    fn channel(&self, cancel: &Cancel) -> Result<Channel, Error> {
        let instance = instance::find(&self.context.shared.dirs)
            .ok_or_else(|| Error::Unavailable("Hyprland is not running".to_owned()))?;
        let program = self.context.program(NAME)?;
        let versions = &self.context.shared.versions;
        let version = versions.of(&program, &FLAGS, VERSION, Some(cancel))?;
        let dialect = Dialect::from_version(version.as_deref());
        let can_be_asked = dialect.can_be_asked(version.as_deref());
        Ok(Channel {
            instance,
            dialect,
            can_be_asked,
        })
    }

    /// The configuration file that murald writes and hyprpaper reads.
    fn file(&self) -> Result<PathBuf, Error> {
        let settings = self.context.settings();
        if settings.hyprpaper.config_path.is_empty() {
            return Ok(self
                .context
                .shared
                .dirs
                .config_home()
                .join("hypr/murald-hyprpaper.conf"));
        }
        let expanded = self
            .context
            .shared
            .dirs
            .expand(&settings.hyprpaper.config_path);
        expanded.map_err(|error| Error::Unavailable(format!("config_path: {error}")))
    }

    /// Whether our process listens on the socket, which may be gone. Fails if a hyprpaper that murald
    /// did not start has the socket.
    fn listens(&self, channel: &Channel) -> Result<bool, Error> {
        let listener = socket::listener(&channel.instance.socket()).map(|it| it.identity());
        let is_it = |process: &BackendProcess| Some(process.child().identity()) == listener;
        if listener.is_none() || self.processes.any(is_it) {
            return Ok(self.processes.newest().is_some_and(is_it));
        }
        let why = "a hyprpaper that murald did not start is running: stop it first";
        Err(Error::Unavailable(why.to_owned()))
    }

    fn tell_all(
        &mut self,
        changed: &[Wallpaper],
        channel: &Channel,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        for wallpaper in changed {
            self.tell(wallpaper, channel, cancel)?;
            self.shown
                .insert(wallpaper.output.clone(), wallpaper.clone());
        }
        Ok(())
    }

    /// Sets a picture, and waits until the running process shows it.
    fn tell(&self, wallpaper: &Wallpaper, channel: &Channel, cancel: &Cancel) -> Result<(), Error> {
        let running = self.processes.newest();
        let from = running.map_or(0, BackendProcess::log_length);
        for words in channel.dialect.set(wallpaper) {
            let answer = self.call(&words, channel, cancel)?;
            channel
                .dialect
                .check(&answer)
                .map_err(|why| not_shown(wallpaper, &why))?;
        }
        if let Some(running) = running {
            self.prove(
                running,
                from,
                std::slice::from_ref(wallpaper),
                channel,
                cancel,
            )?;
        }
        // Versions before 0.8 keep each picture in memory until it is unloaded.
        let unused = |path: &str| {
            self.shown
                .values()
                .all(|other| other.output == wallpaper.output || other.path != path)
        };
        let before = self
            .shown
            .get(&wallpaper.output)
            .map(|old| old.path.as_str());
        let before = before.filter(|&path| path != wallpaper.path && unused(path));
        if let Some(words) = before.and_then(|path| channel.dialect.forget(path)) {
            self.call(&words, channel, cancel)?;
        }
        Ok(())
    }

    /// Sends a request; returns the answer.
    fn call(&self, words: &[String], channel: &Channel, cancel: &Cancel) -> Result<String, Error> {
        if channel.dialect == Dialect::Old {
            let answer = socket::ask(&channel.instance.socket(), &words.join(" "), CALL, cancel);
            return answer.map_err(|not_up| not_up.error(NAME, None));
        }
        let launch = self
            .launch("hyprctl", &channel.instance)?
            .args(["hyprpaper"])
            .args(words.iter().map(String::as_str));
        let answer = run(&launch, CALL, &[cancel])?;
        let said = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        match (answer.is_success(), said.is_empty()) {
            (true, _) => Ok(said),
            (false, false) => Err(Error::Refused(format!("{NAME}: {said}"))),
            (false, true) => Err(Error::Refused(format!("{NAME}: {}", answer.complaint()))),
        }
    }

    fn launch(&self, program: &str, instance: &Instance) -> Result<Launch, Error> {
        let launch = self.context.launch(self.context.program(program)?);
        Ok(launch.env(SIGNATURE, &instance.signature))
    }

    /// Waits until the wallpapers are shown, as far as this version reports it.
    fn prove(
        &self,
        process: &BackendProcess,
        from: u64,
        wanted: &[Wallpaper],
        channel: &Channel,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        has_drawn(process, from, wanted, channel.dialect, cancel)?;
        if !channel.can_be_asked {
            return Ok(());
        }
        let until = Instant::now() + LISTED_WITHIN;
        loop {
            let list = match self.call(&["listactive".to_owned()], channel, cancel) {
                // A hyprctl that is older than its hyprpaper does not know this request.
                Err(Error::Refused(_)) => return Ok(()),
                answer => answer?,
            };
            let Some(missing) = wanted
                .iter()
                .find(|wallpaper| !dialect::is_listed(&list, wallpaper))
            else {
                return Ok(());
            };
            if Instant::now() > until {
                return Err(not_shown(missing, "it reports another wallpaper"));
            }
            pause(BETWEEN_QUESTIONS, cancel)?;
        }
    }

    /// Starts a new process that shows everything, then ends the older ones.
    fn restart(
        &mut self,
        file: &Path,
        wanted: &[Wallpaper],
        channel: &Channel,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let lock = self.take_lock(channel.dialect);
        let new = self.start(file, wanted, channel, cancel).inspect_err(|_| {
            lock.into_iter().for_each(Lock::put_back);
        })?;
        self.processes.replace(new);
        Ok(())
    }

    /// Removes the lock: versions before 0.8 do not start beside another process.
    fn take_lock(&self, dialect: Dialect) -> Option<Lock> {
        let runtime = self
            .context
            .shared
            .dirs
            .runtime()
            .ok()
            .filter(|_| dialect == Dialect::Old)?;
        let is_ours = |number: &i32| {
            self.processes
                .any(|process| process.child().identity().pid == *number)
        };
        Lock::take_from(&runtime, is_ours)
    }

    fn start(
        &self,
        file: &Path,
        wanted: &[Wallpaper],
        channel: &Channel,
        cancel: &Cancel,
    ) -> Result<BackendProcess, Error> {
        let path = channel.instance.socket();
        let before = socket::made(&path);
        let launch = self
            .launch(NAME, &channel.instance)?
            .args(["-c"])
            .args([file.as_os_str()]);
        let new = self.context.start(|_| launch)?;
        let shown = come_up(&new, &path, before, cancel)
            .and_then(|()| self.prove(&new, 0, wanted, channel, cancel));
        match shown {
            Ok(()) => Ok(new),
            Err(error) => {
                new.end(GRACE);
                Err(error)
            }
        }
    }

    /// The wallpapers that must be set: those that are not shown, or all if none differs, as another
    /// program may have changed them.
    fn changed(&self, wanted: &[Wallpaper]) -> Vec<Wallpaper> {
        let differs =
            |wallpaper: &&Wallpaper| self.shown.get(&wallpaper.output) != Some(*wallpaper);
        let changed: Vec<Wallpaper> = wanted.iter().filter(differs).cloned().collect();
        if changed.is_empty() {
            wanted.to_vec()
        } else {
            changed
        }
    }
}

impl Backend for Hyprpaper {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        if placements.is_empty() {
            return self.clear();
        }
        let channel = self.channel(cancel)?;
        let file = self.file()?;
        let dialect = channel.dialect;
        let setting = self.context.settings().hyprpaper.fit_mode;
        let (mut wanted, mut unfit) = (Vec::new(), Vec::new());
        for placement in placements {
            let output = placement.output.name.clone();
            let asked = fit_or(BackendName::Hyprpaper, placement.fit, setting);
            let fit = dialect.fit(asked);
            let cut = seen_part(placement, fit == HyprpaperFit::Cover);
            let file = self.context.copies.ready(placement, &cut, &TAKES, cancel)?;
            unfit.extend((fit != asked).then(|| output.clone()));
            let path = dialect.path(&file, fit);
            wanted.push(Wallpaper { output, path, fit });
        }
        self.processes.reap();
        let listens = self.listens(&channel)?;
        instance::write_config(&file, &dialect.file(&wanted))?;
        let changed = self.changed(&wanted);
        let by_call = changed
            .iter()
            .all(|wallpaper| dialect.accepts(wallpaper.fit));
        if !listens || !by_call {
            self.restart(&file, &wanted, &channel, cancel)?;
        } else if let Err(error) = self.tell_all(&changed, &channel, cancel) {
            // If our process has crashed, it is started once more.
            if !self.processes.has_ended() {
                return Err(error);
            }
            self.processes.reap();
            log::info!("{NAME} exited during a call: {error}");
            self.restart(&file, &wanted, &channel, cancel)?;
        }
        let files: Vec<PathBuf> = wanted.iter().map(|it| PathBuf::from(&it.path)).collect();
        // A wallpaper that is no longer shown is set again when it comes back.
        self.shown = wanted
            .into_iter()
            .map(|wallpaper| (wallpaper.output.clone(), wallpaper))
            .collect();
        self.context.copies.tidy(&files);
        self.unfit = unfit;
        Ok(())
    }

    fn warnings(&mut self) -> Vec<String> {
        let warning = |output: &String| {
            format!(
                "{NAME} before 0.8 has no fit `fill`: on {output} the picture is cropped as with \
                 `cover`"
            )
        };
        self.unfit.iter().map(warning).collect()
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.processes.end_all();
        self.shown.clear();
        self.unfit.clear();
        self.context.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        self.processes.is_whole()
    }
}

/// The longest path, in bytes: versions before 0.8 truncate longer ones in their requests.
const PATH_MAX: usize = 900;

fn is_plain(path: &Path) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@ ".contains(&byte);
    path.to_str().is_some_and(|path| {
        path.len() <= PATH_MAX && path.bytes().all(plain) && path.trim() == path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_name_has_no_special_characters() {
        for name in ["/a/b c.png", "/x_y-z+1@2.jpeg"] {
            assert!(is_plain(Path::new(name)), "{name}");
        }
        for name in [
            "/a,b", "/a#b", "/$HOME", "/a\nb", "/a ", "/a\\b", "/é", "/{x}", "/a=b",
        ] {
            assert!(!is_plain(Path::new(name)), "{name}");
        }
    }
}
