//! A watched configuration file in a temporary directory.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use murald::internals::config::{ConfigHandle, Watch};
use murald::internals::events::{EventBus, EventFilter, Subscription};
use murald::internals::kernel::Kernel;
use murald::internals::thread::{Deaths, Spawner};
use serde_json::Value;

/// The longest wait for an event; it usually comes much sooner.
const SOON: Duration = Duration::from_secs(60);
/// A second event would come within this: three times as long as the watch waits after an edit.
const QUIET: Duration = Duration::from_millis(800);

/// Fields are dropped in this order: the watch before its directory.
pub(crate) struct Watched {
    _watch: Watch,
    _kernel: Kernel,
    pub(crate) handle: ConfigHandle,
    events: Subscription,
    deaths: Deaths,
    pub(crate) dir: tempfile::TempDir,
}

impl Watched {
    /// Creates the file with all defaults at a path in the directory; `prepare` may create links first.
    pub(crate) fn prepared(path: &str, prepare: impl FnOnce(&tempfile::TempDir)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        prepare(&dir);
        let bus = EventBus::new();
        let events = bus.subscribe(EventFilter::ALL, || ());
        let handle = ConfigHandle::open(dir.path().join(path), bus).unwrap();
        let (spawner, deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let watch = Watch::start(handle.clone(), &kernel, &spawner).unwrap();
        Self {
            _watch: watch,
            _kernel: kernel,
            handle,
            events,
            deaths,
            dir,
        }
    }

    pub(crate) fn new() -> Self {
        Self::prepared("murald/config.toml", |_| ())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.handle.path()).unwrap()
    }

    /// The file's text with another theme.
    pub(crate) fn themed(&self, theme: &str) -> String {
        let line = |line: &str| {
            if line.starts_with("theme = ") {
                format!("theme = \"{theme}\"\n")
            } else {
                format!("{line}\n")
            }
        };
        self.text().lines().map(line).collect()
    }

    pub(crate) fn theme(&self) -> String {
        self.handle.current().app.theme.clone()
    }

    /// Checks that the next event is for these sections, and that no other follows.
    #[track_caller]
    pub(crate) fn hears_once(&self, sections: &[&str]) {
        let heard = self
            .events
            .receiver()
            .recv_timeout(SOON)
            .expect("no event came");
        let event: Value = serde_json::from_str(&heard.json).unwrap();
        assert_eq!(event["sections"], serde_json::json!(sections));
        assert_eq!(event["source"], "file");
        self.hears_nothing();
    }

    #[track_caller]
    pub(crate) fn hears_nothing(&self) {
        let heard = self.events.receiver().recv_timeout(QUIET);
        assert!(
            heard.is_err(),
            "one event too many: {}",
            heard.unwrap().json
        );
        assert!(self.deaths.is_empty());
    }

    /// Discards all events so far.
    pub(crate) fn forget(&self) {
        self.events.receiver().try_iter().count();
    }
}
