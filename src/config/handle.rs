//! The settings' one owner: reads the file, changes it, tells who wants to know.
//!
//! Runs in the thread that calls: a worker of http for a request, `config` for an edit of the
//! file, `main` for SIGHUP. The snapshot follows from the file's text and nothing else, so that
//! the two never disagree; what is not in the file is not in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::{Map, Value as Json};

use super::overlay::{self, Edit};
use super::schema::{BackendName, Section};
use super::{Config, Error, diff, document, file, patch, template};
use crate::events::Hub;
use crate::wire::Event;

/// The settings; clones are the same.
#[derive(Clone)]
pub struct ConfigHandle(Arc<Shared>);

/// Settings that are other than they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Never empty.
    pub sections: Vec<Section>,
    pub source: Source,
}

/// What changed the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Patch,
    File,
    ResetAll,
    ResetBackend,
}

/// What a request changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub sections: Vec<Section>,
    /// `[daemon]` is among them.
    pub restart_required: bool,
}

/// Whether the file is as somebody wants it, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Yes,
    /// It is missing, empty or broken: it may be on its way.
    Perhaps,
}

struct Shared {
    path: PathBuf,
    hub: Hub,
    /// Apart from `state`, so that readers never wait for the disk.
    current: RwLock<Arc<Config>>,
    state: Mutex<State>,
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
    /// Reads the file, makes it where there is none, and adds the keys that it lacks. A file that
    /// cannot be written does not stand in the way: that becomes a warning.
    pub fn open(path: PathBuf, hub: Hub) -> Result<Self, Error> {
        let seen =
            file::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let text = seen.clone().unwrap_or_else(template::text);
        let reading = document::read(&text, &path)?;
        let (filled, filled_config) = complete(&text, &path, &reading)
            .unwrap_or_else(|| (text.clone(), reading.config.clone()));
        let mut state = State { seen, good: text, trouble: None, subscribers: Vec::new() };
        let mut config = reading.config;
        if state.seen.as_ref() != Some(&filled) {
            match file::write(&path, &filled) {
                Ok(()) => {
                    state.seen = Some(filled.clone());
                    (state.good, config) = (filled, filled_config);
                }
                Err(error) => config.warnings.push(format!(
                    "{} cannot be written, some defaults are in memory only: {error}",
                    path.display()
                )),
            }
        }
        let current = RwLock::new(Arc::new(config));
        Ok(Self(Arc::new(Shared { path, hub, current, state: Mutex::new(state) })))
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
        self.change(Source::Patch, |_| edits)
    }

    /// `PATCH` of one section or backend: an object of keys; all of it or nothing.
    pub fn patch_section(
        &self,
        section: Section,
        body: &Map<String, Json>,
    ) -> Result<Changed, Error> {
        let edits = patch::section(section, body)?;
        self.change(Source::Patch, |_| edits)
    }

    /// Every key to its default; keys that the client added go.
    pub fn reset_all(&self) -> Result<Changed, Error> {
        self.change(Source::ResetAll, |config| patch::reset_all(|section| config.section(section)))
    }

    pub fn reset_backend(&self, name: BackendName) -> Result<Changed, Error> {
        self.change(Source::ResetBackend, |_| patch::reset_backend(name))
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

    /// Takes up the file as it is now. With `patience`, what may be half of an edit is left alone.
    pub(super) fn refresh(&self, patience: bool) -> Settled {
        let mut state = self.lock();
        let found = file::read(&self.0.path);
        let (text, problem) = match found {
            Ok(seen) if seen == state.seen && state.trouble.is_none() => return Settled::Yes,
            Ok(Some(text)) if patience && text.trim().is_empty() => return Settled::Perhaps,
            Ok(Some(text)) => match document::read(&text, &self.0.path) {
                Ok(reading) => {
                    self.adopt(&mut state, text, reading.config, Source::File);
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
        source: Source,
        edits: impl FnOnce(&Config) -> Vec<Edit>,
    ) -> Result<Changed, Error> {
        let mut state = self.lock();
        let on_disk = self.take_up_edits(&mut state)?;
        let text = self.edited(&state.good, &edits(&self.current()))?;
        if on_disk && text == state.good {
            return Ok(Changed::default());
        }
        let reading = document::read(&text, &self.0.path)?;
        file::write(&self.0.path, &text)
            .map_err(|source| Error::Write { path: self.0.path.clone(), source })?;
        let sections = self.adopt(&mut state, text, reading.config, source);
        Ok(Changed { restart_required: sections.contains(&Section::Daemon), sections })
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
                let reading = document::read(&text, &self.0.path);
                let reading = reading.map_err(|error| broken(error.to_string()))?;
                self.adopt(state, text, reading.config, Source::File);
                Ok(true)
            }
        }
    }

    /// The text with the edits in it, if it can be read again.
    fn edited(&self, text: &str, edits: &[Edit]) -> Result<String, Error> {
        let stored = |text: String| {
            document::read(&text, &self.0.path).map(|_| text).map_err(|error| error.to_string())
        };
        let edited = overlay::apply(text, edits).map_err(|error| error.to_string());
        edited.and_then(stored).map_err(|problem| Error::Refused {
            key: edits.first().map(|edit| edit.section.heading()).unwrap_or_default(),
            problem: format!("it cannot be stored: {problem}"),
        })
    }

    /// Makes a text that was read the one that counts, and tells of it. What really changed.
    fn adopt(
        &self,
        state: &mut State,
        text: String,
        config: Config,
        source: Source,
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
        self.0.hub.publish(&Event::ConfigChanged {
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

impl Source {
    /// As `config_changed` says it; nothing for a plain patch.
    fn event_name(self) -> Option<&'static str> {
        match self {
            Self::Patch => None,
            Self::File => Some("file"),
            Self::ResetAll => Some("api_reset_all"),
            Self::ResetBackend => Some("api_reset_backend"),
        }
    }
}

/// Reads a file without touching it: its warnings, or what is wrong with it.
pub fn check(path: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let text = file::read(path).map_err(failed)?;
    let text = text.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    Ok(document::read(&text, path)?.config.warnings)
}

/// The text with the keys that it lacks, where that can be done without changing what it says.
fn complete(text: &str, path: &Path, reading: &document::Reading) -> Option<(String, Config)> {
    let filled = overlay::apply(text, &reading.missing).ok()?;
    let again = document::read(&filled, path).ok()?;
    diff::changed(&again.config, &reading.config).is_empty().then_some((filled, again.config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Kinds, Subscription};
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    struct Room {
        dir: tempfile::TempDir,
        handle: ConfigHandle,
        events: Subscription,
    }

    impl Room {
        #[track_caller]
        fn with(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("c.toml"), text).unwrap();
            let hub = Hub::new();
            let events = hub.subscribe(Kinds::ALL, || ());
            let handle = ConfigHandle::open(dir.path().join("c.toml"), hub).unwrap();
            Self { dir, handle, events }
        }

        fn text(&self) -> String {
            fs::read_to_string(self.dir.path().join("c.toml")).unwrap()
        }

        fn write(&self, text: &str) {
            fs::write(self.dir.path().join("c.toml"), text).unwrap();
        }

        fn patch(&self, body: Json) -> Result<Changed, String> {
            self.handle.patch(body.as_object().unwrap()).map_err(|error| error.to_string())
        }

        /// The events since the last look, without their time.
        fn heard(&self) -> Vec<String> {
            let event = |json: &str| json[..json.rfind(",\"timestamp\"").unwrap()].to_owned();
            self.events.receiver().try_iter().map(|frame| event(&frame.json)).collect()
        }

        fn shown(&self) -> Map<String, Json> {
            self.handle.current().to_json()
        }
    }

    #[test]
    fn the_file_is_made_and_filled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/c.toml");
        let handle = ConfigHandle::open(path.clone(), Hub::new()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), template::text());
        assert_eq!(handle.current().to_json(), Config::default().to_json());

        let room = Room::with("# mine\n[app]\ntheme = 'x' # y\n");
        assert!(
            room.text().starts_with("# mine\n[app]\ntheme = 'x' # y\nkill_daemon_on_exit = false")
        );
        let again = ConfigHandle::open(room.handle.path().to_owned(), Hub::new()).unwrap();
        assert_eq!(again.current().to_json(), room.shown());
        assert_eq!(room.heard(), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_lacks_nothing_is_left_alone() {
        let text = template::text().replace(" = ", "   =  ");
        let room = Room::with(&text);
        let before = fs::metadata(room.handle.path()).unwrap().modified().unwrap();
        ConfigHandle::open(room.handle.path().to_owned(), Hub::new()).unwrap();
        assert_eq!(room.text(), text);
        assert_eq!(fs::metadata(room.handle.path()).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn what_cannot_be_written_does_not_prevent_a_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, "app.theme = 'x'\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let handle = ConfigHandle::open(path.clone(), Hub::new()).unwrap();
        assert_eq!(handle.current().app.theme, "x");
        assert_eq!(handle.current().warnings.len(), 1);
        let body = json!({"app": {"theme": "y"}});
        let refused = handle.patch(body.as_object().unwrap()).unwrap_err();
        assert!(matches!(refused, Error::Write { .. }), "{refused:?}");
        assert_eq!(handle.current().app.theme, "x");
        assert_eq!(fs::read_to_string(&path).unwrap(), "app.theme = 'x'\n");
    }

    #[test]
    fn a_bad_file_prevents_a_start_and_is_left_alone() {
        for bad in ["[app\n", "app.images_per_page = 'x'"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("c.toml");
            fs::write(&path, bad).unwrap();
            let error = ConfigHandle::open(path.clone(), Hub::new()).err().unwrap();
            assert!(error.is_in_file());
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
    }

    #[test]
    fn one_event_per_change_and_none_without() {
        let room = Room::with("# mine\n");
        let changed = room.patch(json!({
            "daemon": {"log_level": "debug"},
            "backend": {"type": "feh", "feh": {"mode": "max"}, "auto_priorities": {"web": []}},
        }));
        let changed = changed.unwrap();
        assert!(changed.restart_required);
        assert_eq!(room.heard(), [r#"{"sections":["daemon","backend","backend.feh"]"#]);
        assert!(
            !room.patch(json!({"backend": {"feh": {"mode": "max"}}})).unwrap().restart_required
        );
        assert_eq!(room.heard(), Vec::<String>::new());
        room.handle.reset_backend(BackendName::Feh).unwrap();
        let reset = r#"{"sections":["backend.feh"],"source":"api_reset_backend""#;
        assert_eq!(room.heard(), [reset]);
        room.handle.reset_all().unwrap();
        let reset = r#"{"sections":["daemon","backend"],"source":"api_reset_all""#;
        assert_eq!(room.heard(), [reset]);
        room.handle.reset_all().unwrap();
        room.handle.reload();
        assert_eq!(room.heard(), Vec::<String>::new());
        assert_eq!(room.shown(), Config::default().to_json());
        assert!(room.text().starts_with("# mine\n"));
    }

    #[test]
    fn all_sections_or_none() {
        let room = Room::with("");
        let (before, text) = (room.shown(), room.text());
        let body = json!({"app": {"theme": "x"}, "backend": {"mpvpaper": {"verbose": 9}}});
        assert!(room.patch(body).unwrap_err().contains("backend.mpvpaper.verbose"));
        let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
        let body = json!({"app": {"theme": "x", "deep": deep}});
        assert!(room.patch(body).unwrap_err().starts_with("app: it cannot be stored"));
        assert_eq!((room.shown(), room.text()), (before, text));
        assert_eq!(room.heard(), Vec::<String>::new());
    }

    #[test]
    fn an_edit_just_made_is_not_undone_by_a_request() {
        let room = Room::with("");
        room.write(&room.text().replace("\"dark\"", "\"mine\" # my theme"));
        room.patch(json!({"app": {"sort_order": "asc"}})).unwrap();
        assert!(room.text().contains("theme = \"mine\" # my theme"));
        let file = r#"{"sections":["app"],"source":"file""#;
        assert_eq!(room.heard(), [file, r#"{"sections":["app"]"#]);
        let app = &room.handle.current().app;
        assert_eq!((app.theme.as_str(), app.sort_order.as_str()), ("mine", "asc"));
    }

    #[test]
    fn a_bad_edit_keeps_the_last_good_settings() {
        let room = Room::with("app.theme = 'x'\n");
        let good = room.text();
        room.write("[app\n");
        assert_eq!(room.handle.refresh(true), Settled::Perhaps);
        assert!(room.handle.current().warnings.is_empty());
        room.handle.reload();
        assert_eq!(room.handle.current().app.theme, "x");
        let warnings = room.shown()["warnings"].to_string();
        assert!(warnings.contains("line 1") && warnings.contains("last good"), "{warnings}");
        assert!(room.patch(json!({"app": {"theme": "y"}})).unwrap_err().contains("mended"));
        assert!(room.handle.reset_all().is_err());
        assert_eq!(room.text(), "[app\n");
        room.write(&good);
        room.handle.reload();
        assert!(!room.shown().contains_key("warnings"));
        assert_eq!(room.heard(), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_went_comes_back_with_the_next_change() {
        let room = Room::with("# mine\n");
        fs::remove_file(room.handle.path()).unwrap();
        assert_eq!(room.handle.refresh(true), Settled::Perhaps);
        room.handle.reload();
        assert!(room.shown()["warnings"].to_string().contains("is gone"));
        room.patch(json!({"app": {"theme": "y"}})).unwrap();
        assert!(room.text().starts_with("# mine\n"));
        assert!(!room.shown().contains_key("warnings"));
        assert_eq!(room.heard(), [r#"{"sections":["app"]"#]);
    }

    #[test]
    fn a_reset_takes_the_client_s_own_keys_and_mends_misfits() {
        let room = Room::with("[app]\n# note\nmine = 1\n[backend.awww]\nresize = 'zoom'\n");
        assert_eq!(room.shown()["app"]["mine"], 1);
        room.handle.reset_all().unwrap();
        assert_eq!(room.shown(), Config::default().to_json());
        let text = room.text();
        assert!(text.contains("# note\n") && !text.contains("'zoom'"), "{text}");
    }
}
