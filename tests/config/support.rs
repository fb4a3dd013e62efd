//! A watched configuration in a directory of its own.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use murald::internals::config::{ConfigHandle, Watch};
use murald::internals::events::{EventBus, EventFilter, Subscription};
use murald::internals::thread::{Deaths, Spawner};
use serde_json::Value;

/// An edit is heard after a fraction of this.
const SOON: Duration = Duration::from_secs(60);
/// Three times what the watch gives an edit after its end, for a second event to come.
const QUIET: Duration = Duration::from_millis(800);

/// Fields are dropped in order: the watch before its directory.
pub(crate) struct Watched {
    _watch: Watch,
    pub(crate) handle: ConfigHandle,
    events: Subscription,
    deaths: Deaths,
    pub(crate) dir: tempfile::TempDir,
}

impl Watched {
    /// The file, full of defaults, at a path under the directory; `prepare` may lay links first.
    pub(crate) fn at(path: &str, prepare: impl FnOnce(&tempfile::TempDir)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        prepare(&dir);
        let bus = EventBus::new();
        let events = bus.subscribe(EventFilter::ALL, || ());
        let handle = ConfigHandle::open(dir.path().join(path), bus).unwrap();
        let (spawner, deaths) = Spawner::new();
        let watch = Watch::start(handle.clone(), &spawner).unwrap();
        Self { _watch: watch, handle, events, deaths, dir }
    }

    pub(crate) fn new() -> Self {
        Self::at("murald/config.toml", |_| ())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.handle.path()).unwrap()
    }

    /// The file's text with another theme.
    pub(crate) fn themed(&self, theme: &str) -> String {
        let line = |line: &str| match line.starts_with("theme = ") {
            true => format!("theme = \"{theme}\"\n"),
            false => format!("{line}\n"),
        };
        self.text().lines().map(line).collect()
    }

    pub(crate) fn theme(&self) -> String {
        self.handle.current().app.theme.clone()
    }

    /// The next change, and that no other follows it.
    #[track_caller]
    pub(crate) fn hears_once(&self, sections: &[&str]) {
        let heard = self.events.receiver().recv_timeout(SOON).expect("no event came");
        let event: Value = serde_json::from_str(&heard.json).unwrap();
        assert_eq!(event["sections"], serde_json::json!(sections));
        assert_eq!(event["source"], "file");
        self.hears_nothing();
    }

    #[track_caller]
    pub(crate) fn hears_nothing(&self) {
        let heard = self.events.receiver().recv_timeout(QUIET);
        assert!(heard.is_err(), "one event too many: {}", heard.unwrap().json);
        assert!(self.deaths.is_empty());
    }

    /// Whatever the events were, they are no matter.
    pub(crate) fn forget(&self) {
        self.events.receiver().try_iter().count();
    }
}
