//! The settings' one owner: reads the file, changes it, tells who wants to know.
//!
//! Runs in the thread that calls: a worker of http for a request, `config` for an edit of the
//! file, `main` for SIGHUP. The snapshot follows from the file's text and nothing else, so that
//! the two never disagree; what is not in the file is not in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::{Map, Value as Json};

use super::change::{Change, ChangeSource, Changed};
use super::overlay::{self, Edit};
use super::schema::{BackendName, Section};
use super::{Config, Error, diff, document, file, patch, template};
use crate::events::EventBus;
use crate::wire::Event;

/// Bytes of the file. As written by us it has about 7000.
const TEXT_MAX: usize = 1 << 20;

/// The settings; clones are the same.
#[derive(Clone)]
pub struct ConfigHandle(Arc<Shared>);

/// Whether the file is as somebody wants it, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Yes,
    /// It is missing, empty or broken: it may be on its way.
    Perhaps,
}

struct Shared {
    path: PathBuf,
    bus: EventBus,
    /// Apart from `state`, so that readers never wait for the disk.
    current: RwLock<Arc<Config>>,
    state: Mutex<State>,
    /// Why edits of the file go unseen, if they do.
    unwatched: Mutex<Option<String>>,
}

struct State {
    /// The file as it was last seen: our own writes are known by it. `None`: there was none.
    seen: Option<String>,
    /// The text that `current` follows from.
    good: String,
    /// What is wrong with `seen`.
    trouble: Option<String>,
    subscribers: Vec<Subscriber>,
}

type Subscriber = Box<dyn Fn(&Change) + Send>;

impl ConfigHandle {
    /// Reads the file and completes it.
    pub fn open(path: PathBuf, bus: EventBus) -> Result<Self, Error> {
        let config = Self::read(path, bus)?;
        config.complete();
        Ok(config)
    }

    /// Reads the file, and leaves it as it is; where there is none, everything has its default.
    pub fn read(path: PathBuf, bus: EventBus) -> Result<Self, Error> {
        // Said once, where we are now: a directory to look at and to make the file in.
        let path = std::path::absolute(&path).unwrap_or(path);
        file::answers(&path)?;
        let seen =
            file::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let text = seen.clone().unwrap_or_else(template::text);
        let config = document::read(&text, &path)?.config;
        let state = State { seen, good: text, trouble: None, subscribers: Vec::new() };
        let current = RwLock::new(Arc::new(config));
        let (state, unwatched) = (Mutex::new(state), Mutex::default());
        Ok(Self(Arc::new(Shared { path, bus, current, state, unwatched })))
    }

    /// Makes the file where there is none, and adds the keys that it lacks. A file that cannot be
    /// written does not stand in the way: that becomes a warning.
    pub fn complete(&self) {
        let mut state = self.lock();
        let Ok(parsed) = document::read(&state.good, &self.0.path) else { return };
        let (filled, filled_config) = complete(&state.good, &self.0.path, &parsed)
            .unwrap_or_else(|| (state.good.clone(), parsed.config));
        if state.seen.as_ref() == Some(&filled) {
            return;
        }
        match file::write(&self.0.path, &filled) {
            Ok(()) => {
                state.seen = Some(filled.clone());
                state.good = filled;
                self.replace(filled_config);
            }
            Err(error) => {
                let mut config = Config::clone(&self.current());
                config.warnings.push(format!(
                    "{} cannot be written, some defaults are in memory only: {error}",
                    self.0.path.display()
                ));
                self.replace(config);
            }
        }
    }

    /// What is not as it should be, for people.
    pub fn warnings(&self) -> Vec<String> {
        let unwatched = self.0.unwatched.lock().unwrap_or_else(PoisonError::into_inner);
        self.current().warnings.iter().chain(&*unwatched).cloned().collect()
    }

    /// Says that edits of the file go unseen, and why.
    pub fn is_unwatched(&self, why: &str) {
        let warning = format!("{why}; edits are taken up at SIGHUP only");
        log::error!("{warning}");
        *self.0.unwatched.lock().unwrap_or_else(PoisonError::into_inner) = Some(warning);
    }

    /// Says that edits of the file are seen.
    pub(super) fn is_watched(&self) {
        *self.0.unwatched.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The settings now.
    pub fn current(&self) -> Arc<Config> {
        Arc::clone(&self.0.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// `PATCH /config`: an object of sections, each an object of keys; all of it or nothing.
    pub fn patch(&self, body: &Map<String, Json>) -> Result<Changed, Error> {
        let edits = patch::whole(body)?;
        patch::check_paths(&edits, &self.current().daemon)?;
        self.change(ChangeSource::Patch, |_| edits)
    }

    /// `PATCH` of one section or backend: an object of keys; all of it or nothing.
    pub fn patch_section(
        &self,
        section: Section,
        body: &Map<String, Json>,
    ) -> Result<Changed, Error> {
        let edits = patch::section(section, body)?;
        patch::check_paths(&edits, &self.current().daemon)?;
        self.change(ChangeSource::Patch, |_| edits)
    }

    /// Fails where it is known beforehand that no change can be written.
    pub fn can_change(&self) -> Result<(), Error> {
        file::answers(&self.0.path)?;
        self.take_up_edits(&mut self.lock())?;
        let failed = |source| Error::Write { path: self.0.path.clone(), source };
        file::writable(&self.0.path).map(drop).map_err(failed)
    }

    /// Every key to its default; keys that the client added go.
    pub fn reset_all(&self) -> Result<Changed, Error> {
        self.change(ChangeSource::ResetAll, |config| {
            patch::reset_all(|section| config.section(section))
        })
    }

    pub fn reset_backend(&self, name: BackendName) -> Result<Changed, Error> {
        self.change(ChangeSource::ResetBackend, |_| patch::reset_backend(name))
    }

    /// Reads the file again (SIGHUP).
    pub fn reload(&self) {
        self.refresh(false);
    }

    /// `tell` is called after each change, in the thread that made it and before it goes on: it
    /// must not block, and not change settings.
    pub fn subscribe(&self, tell: impl Fn(&Change) + Send + 'static) {
        self.lock().subscribers.push(Box::new(tell));
    }

    /// To the log, which is opened only after the file was read.
    pub fn log_warnings(&self) {
        for warning in &self.current().warnings {
            log::warn!("{}: {warning}", self.0.path.display());
        }
    }

    /// Takes up the file as it is now, unless its disk does not answer: the log says so.
    /// With `patience`, what may be half of an edit is left alone.
    pub(super) fn refresh(&self, patience: bool) -> Settled {
        if file::answers(&self.0.path).is_err() {
            return Settled::Yes;
        }
        let mut state = self.lock();
        let (text, problem) = match file::read(&self.0.path) {
            Ok(seen) if seen == state.seen && state.trouble.is_none() => return Settled::Yes,
            Ok(Some(text)) if text.trim().is_empty() => {
                (Some(text), format!("{} is empty", self.0.path.display()))
            }
            Ok(Some(text)) => match document::read(&text, &self.0.path) {
                Ok(parsed) => {
                    self.adopt(&mut state, text, parsed.config, ChangeSource::File);
                    return Settled::Yes;
                }
                Err(error) => (Some(text), error.to_string()),
            },
            Ok(None) => (None, format!("{} is gone", self.0.path.display())),
            Err(error) => (None, format!("cannot read {}: {error}", self.0.path.display())),
        };
        if patience {
            return Settled::Perhaps;
        }
        state.seen = text;
        self.keep_last_good(&mut state, problem);
        Settled::Yes
    }

    fn change(
        &self,
        source: ChangeSource,
        edits: impl FnOnce(&Config) -> Vec<Edit>,
    ) -> Result<Changed, Error> {
        file::answers(&self.0.path)?;
        let mut state = self.lock();
        let on_disk = self.take_up_edits(&mut state)?;
        let edits = edits(&self.current());
        let (text, parsed) = self.edited(&state.good, &edits)?;
        let warnings = warnings_of(&edits, parsed.warned);
        if on_disk && text == state.good {
            return Ok(Changed { warnings, ..Changed::default() });
        }
        let writes_daemon = source == ChangeSource::Patch && alters_daemon(&state.good, &edits);
        let failed = |source| Error::Write { path: self.0.path.clone(), source };
        let resets = matches!(source, ChangeSource::ResetAll | ChangeSource::ResetBackend);
        let backup = (on_disk && resets).then(|| file::back_up(&self.0.path, &state.good));
        let backup = backup.transpose().map_err(failed)?;
        file::write(&self.0.path, &text).map_err(|error| {
            // Nothing was reset.
            backup.iter().for_each(|backup| drop(std::fs::remove_file(backup)));
            failed(error)
        })?;
        let sections = self.adopt(&mut state, text, parsed.config, source);
        let restart_required = writes_daemon || sections.contains(&Section::Daemon);
        Ok(Changed { sections, restart_required, warnings, backup })
    }

    /// What somebody wrote into the file a moment ago comes first, or our change would undo it.
    /// Whether there is a file at all.
    fn take_up_edits(&self, state: &mut State) -> Result<bool, Error> {
        let broken = |message: String| Error::Broken { path: self.0.path.clone(), message };
        let found = file::read(&self.0.path);
        match found.map_err(|source| Error::Read { path: self.0.path.clone(), source })? {
            None => Ok(false),
            seen if seen == state.seen => match &state.trouble {
                None => Ok(true),
                Some(trouble) => Err(broken(trouble.clone())),
            },
            Some(text) if text.trim().is_empty() => {
                Err(broken("it is empty, and may be being written".to_owned()))
            }
            Some(text) => {
                let parsed = document::read(&text, &self.0.path);
                let parsed = parsed.map_err(|error| broken(error.to_string()))?;
                self.adopt(state, text, parsed.config, ChangeSource::File);
                Ok(true)
            }
        }
    }

    /// The text with the edits in it, if it can be read again, and what it says.
    fn edited(&self, text: &str, edits: &[Edit]) -> Result<(String, document::Parsed), Error> {
        let stored = |edited: String| {
            let read = document::read(&edited, &self.0.path).map_err(|error| error.to_string())?;
            self.has_room(text, &edited, &read.config).map(|()| (edited, read))
        };
        let edited = overlay::apply(text, edits).map_err(|error| error.to_string());
        edited.and_then(stored).map_err(|problem| Error::Refused {
            key: edits.first().map(|edit| edit.section.heading()).unwrap_or_default(),
            problem: format!("it cannot be stored: {problem}"),
        })
    }

    /// The client's own keys are bounded: the file is read at each start and at each change. What a
    /// person wrote into it may be longer.
    fn has_room(&self, before: &str, after: &str, config: &Config) -> Result<(), String> {
        if after.len() > TEXT_MAX.max(before.len()) {
            return Err(format!("the file would have more than {TEXT_MAX} bytes"));
        }
        let current = self.current();
        let keys = |config: &Config, section| config.entries(section).count();
        let grown = |section: &Section| {
            keys(config, *section) > patch::KEYS_MAX.max(keys(&current, *section))
        };
        match Section::ALL.into_iter().find(grown) {
            Some(section) => {
                Err(format!("{} would have more than {} keys", section.heading(), patch::KEYS_MAX))
            }
            None => Ok(()),
        }
    }

    /// Makes a text that was read the one that counts, and tells of it. What really changed.
    fn adopt(
        &self,
        state: &mut State,
        text: String,
        config: Config,
        source: ChangeSource,
    ) -> Vec<Section> {
        let old = self.current();
        let sections = diff::changed(&old, &config);
        for warning in config.warnings.iter().filter(|warning| !old.warnings.contains(warning)) {
            log::warn!("{}: {warning}", self.0.path.display());
        }
        if state.trouble.take().is_some() {
            log::info!("{} is mended", self.0.path.display());
        }
        state.seen = Some(text.clone());
        state.good = text;
        self.replace(config);
        if !sections.is_empty() {
            self.tell(state, Change { sections: sections.clone(), source });
        }
        sections
    }

    fn tell(&self, state: &State, change: Change) {
        self.0.bus.publish(&Event::ConfigChanged {
            sections: diff::event_names(&change.sections),
            source: change.source.event_name(),
        });
        for subscriber in &state.subscribers {
            subscriber(&change);
        }
    }

    fn keep_last_good(&self, state: &mut State, problem: String) {
        let problem = format!("{problem}; the last good settings are kept");
        if state.trouble.as_ref() != Some(&problem) {
            log::error!("{problem}");
            let mut config = Config::clone(&self.current());
            config.warnings = vec![problem.clone()];
            self.replace(config);
            state.trouble = Some(problem);
        }
    }

    fn replace(&self, config: Config) {
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Texts are replaced whole, so a panic between two of them leaves an older one at worst.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of the warnings about sections, those about the ones that were to be changed.
fn warnings_of(edits: &[Edit], warned: Vec<(Section, String)>) -> Vec<String> {
    let is_edited = |section: Section| edits.iter().any(|edit| edit.section == section);
    let own = warned.into_iter().filter(|(section, _)| is_edited(*section));
    own.map(|(_, warning)| warning).collect()
}

/// Whether `[daemon]` is written otherwise afterwards, also where what it says is of no use.
fn alters_daemon(text: &str, edits: &[Edit]) -> bool {
    let own = edits.iter().filter(|edit| edit.section == Section::Daemon);
    let own: Vec<Edit> = own.cloned().collect();
    overlay::apply(text, &own).is_ok_and(|edited| edited != text)
}

/// Reads a file without touching it: its settings and warnings, or what is wrong with it.
pub(crate) fn check(path: &Path) -> Result<Config, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let text = file::read(path).map_err(failed)?;
    let text = text.ok_or_else(|| failed(rustix::io::Errno::NOENT.into()))?;
    Ok(document::read(&text, path)?.config)
}

/// The text with the keys that it lacks, where that can be done without changing what it says.
fn complete(text: &str, path: &Path, parsed: &document::Parsed) -> Option<(String, Config)> {
    let filled = overlay::apply(text, &parsed.missing).ok()?;
    let again = document::read(&filled, path).ok()?;
    diff::changed(&again.config, &parsed.config).is_empty().then_some((filled, again.config))
}

#[cfg(test)]
mod tests;
