//! The owner of the settings: reads the file, changes it and notifies subscribers.
//!
//! Runs in the thread that calls: the connection's for a request, `config` for an edit of the
//! file, `main` for SIGHUP. The snapshot follows from the file's text alone, so the two never disagree.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};

use super::file::Written;
use super::schema::Section;
use super::snapshot::{ChangeSource, changed_sections, event_names};
use super::{Config, Error, document, file, overlay, patch, toml};
use crate::error_chain::plain;
use crate::events::EventBus;
use crate::sys::{lock, read, write};
use crate::wire::Event;

mod request;

/// The settings; clones share them.
#[derive(Clone)]
pub struct ConfigHandle(Arc<SharedConfig>);

/// Whether an edit of the file seems to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Yes,
    /// The file is missing, empty or broken: the edit may be unfinished.
    Perhaps,
}

struct SharedConfig {
    path: PathBuf,
    bus: EventBus,
    /// Separate from `state`, so that readers never wait for the disk.
    current: RwLock<Arc<Config>>,
    state: Mutex<FileState>,
    /// Notified when the file has been read again.
    loaded: Condvar,
    /// Why edits of the file are not noticed, if so.
    unwatched: Mutex<Option<String>>,
}

struct FileState {
    /// The file's text when it was last read, which identifies our own writes. `None`: no file.
    seen: Option<String>,
    /// The text that `current` follows from.
    good: String,
    /// The error in `seen`, if any.
    trouble: Option<String>,
    subscribers: Vec<Subscriber>,
}

type Subscriber = Box<dyn Fn(&[Section]) + Send>;

impl ConfigHandle {
    /// Reads the file and completes it.
    pub fn open(path: PathBuf, bus: EventBus) -> Result<Self, Error> {
        let config = Self::read(path, bus)?;
        config.complete();
        Ok(config)
    }

    /// Reads the file without changing it; if there is none, every key has its default.
    pub fn read(path: PathBuf, bus: EventBus) -> Result<Self, Error> {
        // Made absolute now: the directory is watched, and the file may be created in it.
        let path = std::path::absolute(&path).unwrap_or(path);
        file::answers(&path)?;
        let seen = file::read(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let text = seen.clone().unwrap_or_else(toml::template);
        let config = parse(&text, &path)?.config;
        let state = FileState {
            seen,
            good: text,
            trouble: None,
            subscribers: Vec::new(),
        };
        let current = RwLock::new(Arc::new(config));
        let state = Mutex::new(state);
        let unwatched = Mutex::default();
        Ok(Self(Arc::new(SharedConfig {
            path,
            bus,
            current,
            state,
            loaded: Condvar::new(),
            unwatched,
        })))
    }

    /// Creates the file if it is missing, and adds missing keys. A file that cannot be written becomes a
    /// warning.
    pub fn complete(&self) {
        let mut state = self.lock();
        let Ok(parsed) = parse(&state.good, &self.0.path) else {
            return;
        };
        let (filled, filled_config) = complete(&state.good, &self.0.path, &parsed)
            .unwrap_or_else(|| (state.good.clone(), parsed.config));
        if state.seen.as_ref() == Some(&filled) {
            return;
        }
        match file::write(&self.0.path, &filled, state.seen.as_deref(), None) {
            Ok(Written::Yes) => {
                state.seen = Some(filled.clone());
                state.good = filled;
                self.replace(filled_config);
            }
            // The file was saved since it was read: the watch reads it when it starts.
            Ok(Written::Overtaken) => {}
            Err(error) => {
                let mut config = Config::clone(&self.current());
                config.warnings.push(format!(
                    "cannot write {}, some defaults are not saved: {}",
                    self.0.path.display(),
                    plain(&error)
                ));
                self.replace(config);
            }
        }
    }

    /// The warnings, for people.
    pub fn warnings(&self) -> Vec<String> {
        let unwatched = lock(&self.0.unwatched);
        self.current()
            .warnings
            .iter()
            .chain(&*unwatched)
            .cloned()
            .collect()
    }

    /// Records why edits of the file are not noticed.
    pub fn is_unwatched(&self, why: &str) {
        let warning = format!("{why}; edits apply only on SIGHUP");
        log::error!("{warning}");
        *lock(&self.0.unwatched) = Some(warning);
    }

    /// Records that edits of the file are noticed.
    pub(super) fn is_watched(&self) {
        *lock(&self.0.unwatched) = None;
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The settings now.
    pub fn current(&self) -> Arc<Config> {
        Arc::clone(&read(&self.0.current))
    }

    /// Reads the file again (SIGHUP).
    pub fn reload(&self) {
        self.refresh(false);
    }

    /// Calls `tell` with the sections of each change, in the thread that made it. `tell` must not
    /// block or change settings.
    pub fn subscribe(&self, tell: impl Fn(&[Section]) + Send + 'static) {
        self.lock().subscribers.push(Box::new(tell));
    }

    /// Logs the warnings. The log is opened only after the file was read.
    pub fn log_warnings(&self) {
        for warning in &self.current().warnings {
            log::warn!("{}: {warning}", self.0.path.display());
        }
    }

    /// Reads the file again, unless its disk does not answer. With `patience`, a file that may be half
    /// of an edit is left alone.
    pub(super) fn refresh(&self, patience: bool) -> Settled {
        if file::answers(&self.0.path).is_err() {
            return Settled::Yes;
        }
        let settled = self.load(&mut self.lock(), patience);
        self.0.loaded.notify_all();
        settled
    }

    fn load(&self, state: &mut FileState, patience: bool) -> Settled {
        let (text, problem) = match file::read(&self.0.path) {
            Ok(seen) if seen == state.seen && state.trouble.is_none() => return Settled::Yes,
            Ok(Some(text)) if text.trim().is_empty() => {
                (Some(text), format!("{} is empty", self.0.path.display()))
            }
            Ok(Some(text)) => match parse(&text, &self.0.path) {
                Ok(parsed) => {
                    self.adopt(state, text, parsed.config, ChangeSource::File);
                    return Settled::Yes;
                }
                Err(error) => (Some(text), error.to_string()),
            },
            Ok(None) => (None, format!("{} was deleted", self.0.path.display())),
            Err(error) => (
                None,
                format!("cannot read {}: {}", self.0.path.display(), plain(&error)),
            ),
        };
        if patience {
            return Settled::Perhaps;
        }
        state.seen = text;
        self.keep_last_good(state, problem);
        Settled::Yes
    }

    /// Makes a text that was read the current one and notifies subscribers. Returns the sections that
    /// changed.
    fn adopt(
        &self,
        state: &mut FileState,
        text: String,
        config: Config,
        source: ChangeSource,
    ) -> Vec<Section> {
        let old = self.current();
        let sections = changed_sections(&old, &config);
        for warning in config
            .warnings
            .iter()
            .filter(|warning| !old.warnings.contains(warning))
        {
            log::warn!("{}: {warning}", self.0.path.display());
        }
        if state.trouble.take().is_some() {
            log::info!("{} is valid again", self.0.path.display());
        }
        state.seen = Some(text.clone());
        state.good = text;
        self.replace(config);
        if !sections.is_empty() {
            self.tell(state, &sections, source);
        }
        sections
    }

    fn tell(&self, state: &FileState, sections: &[Section], source: ChangeSource) {
        self.0.bus.publish(&Event::ConfigChanged {
            sections: event_names(sections),
            source: source.event_name(),
        });
        for subscriber in &state.subscribers {
            subscriber(sections);
        }
    }

    fn keep_last_good(&self, state: &mut FileState, problem: String) {
        let problem = format!("{problem}; keeping the previous settings");
        if state.trouble.as_ref() != Some(&problem) {
            log::error!("{problem}");
            let mut config = Config::clone(&self.current());
            config.warnings = vec![problem.clone()];
            self.replace(config);
            state.trouble = Some(problem);
        }
    }

    fn replace(&self, config: Config) {
        *write(&self.0.current) = Arc::new(config);
    }

    fn lock(&self) -> MutexGuard<'_, FileState> {
        // Texts are replaced whole, so a panic between two replacements leaves an older text at worst.
        lock(&self.0.state)
    }
}

/// Reads a file without changing it: its settings and warnings.
pub(crate) fn check(path: &Path) -> Result<Config, Error> {
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let text = file::read(path).map_err(failed)?;
    let text = text.ok_or_else(|| failed(rustix::io::Errno::NOENT.into()))?;
    let mut config = document::read(&text, path)?.config;
    config
        .warnings
        .extend(patch::unusable_paths(&config, Section::Library));
    Ok(config)
}

/// Reads a text for the running daemon: problems that would make its next start fail become warnings.
fn parse(text: &str, path: &Path) -> Result<document::Parsed, Error> {
    let mut parsed = document::read(text, path)?;
    for section in [Section::Daemon, Section::Library] {
        let wrong = patch::unusable_paths(&parsed.config, section);
        parsed
            .warned
            .extend(wrong.iter().map(|text| (section, text.clone())));
        parsed.config.warnings.extend(wrong);
    }
    Ok(parsed)
}

/// The text with its missing keys added, if that does not change its other settings.
fn complete(text: &str, path: &Path, parsed: &document::Parsed) -> Option<(String, Config)> {
    let filled = overlay::complete(text, &parsed.missing).ok()?;
    let again = parse(&filled, path).ok()?;
    changed_sections(&again.config, &parsed.config)
        .is_empty()
        .then_some((filled, again.config))
}

#[cfg(test)]
mod tests;
