//! The settings at one moment, and how two snapshots differ. A snapshot never changes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value as Json};

use super::schema::{
    App, AutoPriorities, Awww, Backend, BackendName, Builtin, Daemon, Desktop, Feh, Hooks,
    Hyprpaper, Library, Location, Monitors, Mpvpaper, Power, RemoteGallery, Section, Swaybg,
    WALLHAVEN, WalQt,
};

/// The settings that modules read and the API shows.
#[derive(Clone)]
pub struct Config {
    pub app: App,
    pub daemon: Daemon,
    pub location: Location,
    pub backend: Backend,
    pub auto_priorities: AutoPriorities,
    /// Its duration is `backend.transition_duration_seconds` if that is above 0.
    pub awww: Awww,
    pub feh: Feh,
    pub hyprpaper: Hyprpaper,
    pub mpvpaper: Mpvpaper,
    pub swaybg: Swaybg,
    /// Its duration is `backend.transition_duration_seconds` if that is above 0.
    pub wal_qt: WalQt,
    /// Its duration is `backend.transition_duration_seconds` if that is above 0.
    pub builtin: Builtin,
    pub library: Library,
    pub hooks: Hooks,
    pub power: Power,
    pub desktop: Desktop,
    /// The wallpaper of each workspace: a reference to an image, or `playlist:NAME`.
    pub workspaces: BTreeMap<String, String>,
    pub monitors: Monitors,
    pub remote_gallery: RemoteGallery,
    /// Problems of the file, for people.
    pub warnings: Vec<String>,
    tables: Map<String, Json>,
}

impl Config {
    /// `tables` must be complete and of the schema's types, as the API shows them.
    pub(super) fn new(tables: Map<String, Json>, warnings: Vec<String>) -> Self {
        let none = Map::new();
        let table = |section: Section| table(&tables, section).unwrap_or(&none);
        let options = |name| table(Section::BackendOptions(name));
        let backend = Backend::read(table(Section::Backend));
        let mut awww = Awww::read(options(BackendName::Awww));
        let mut wal_qt = WalQt::read(options(BackendName::WalQt));
        let mut builtin = Builtin::read(options(BackendName::Builtin));
        if let Some(seconds) = backend.transition_duration_seconds.filter(|&s| s > 0.0) {
            awww.transition_duration = seconds;
            builtin.transition_duration = seconds;
            // A positive time never becomes 0, which wal-qt does not take.
            wal_qt.duration_ms = ((seconds * 1000.0).round() as u32).max(1);
        }
        Self {
            app: App::read(table(Section::App)),
            daemon: Daemon::read(table(Section::Daemon)),
            location: Location::read(table(Section::Location)),
            backend,
            auto_priorities: AutoPriorities::read(table(Section::AutoPriorities)),
            awww,
            feh: Feh::read(options(BackendName::Feh)),
            hyprpaper: Hyprpaper::read(options(BackendName::Hyprpaper)),
            mpvpaper: Mpvpaper::read(options(BackendName::Mpvpaper)),
            swaybg: Swaybg::read(options(BackendName::Swaybg)),
            wal_qt,
            builtin,
            library: Library::read(table(Section::Library)),
            hooks: Hooks::read(table(Section::Hooks)),
            power: Power::read(table(Section::Power)),
            desktop: Desktop::read(table(Section::Desktop)),
            workspaces: table(Section::Workspaces)
                .iter()
                .filter_map(|(name, shown)| Some((name.clone(), shown.as_str()?.to_owned())))
                .collect(),
            monitors: Monitors::read(table(Section::Monitors)),
            remote_gallery: RemoteGallery::read(table(Section::RemoteGallery)),
            warnings,
            tables,
        }
    }

    /// The answer of `GET /config`; `warnings` only if there are some.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut whole = self.tables.clone();
        whole.insert(
            WALLHAVEN.to_owned(),
            self.section(Section::RemoteGallery).into(),
        );
        if !self.warnings.is_empty() {
            whole.insert("warnings".to_owned(), self.warnings.clone().into());
        }
        whole
    }

    /// One section as `GET /config/{section}` and `GET /config/backends/{backend}` show it.
    pub fn section(&self, section: Section) -> Map<String, Json> {
        table(&self.tables, section).cloned().unwrap_or_default()
    }

    /// The entries of a section, without a copy.
    pub(super) fn entries(&self, section: Section) -> impl Iterator<Item = (&String, &Json)> {
        table(&self.tables, section).into_iter().flatten()
    }
}

/// A section's table among the tables of the whole.
pub(super) fn table(tables: &Map<String, Json>, section: Section) -> Option<&Map<String, Json>> {
    section
        .path()
        .try_fold(tables, |table, name| table.get(name)?.as_object())
}

/// The table of a section; creates it and its parents if missing.
pub(super) fn table_mut(
    tables: &mut Map<String, Json>,
    section: Section,
) -> &mut Map<String, Json> {
    section.path().fold(tables, |table, name| {
        let inner = table
            .entry(name)
            .or_insert_with(|| Json::Object(Map::new()));
        inner.as_object_mut().expect("sections are tables")
    })
}

impl Default for Config {
    /// Every key at its default.
    fn default() -> Self {
        let mut tables = Map::new();
        for section in Section::ALL {
            let defaults = section.keys().iter();
            let defaults = defaults.filter_map(|k| Some((k.name.to_owned(), k.default.to_json()?)));
            table_mut(&mut tables, section).extend(defaults);
        }
        Self::new(tables, Vec::new())
    }
}

/// The origin of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeSource {
    Patch,
    File,
    ResetAll,
    ResetBackend,
}

/// The result of a request that changes settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub sections: Vec<Section>,
    /// `[daemon]` is among them, or its text changed.
    pub restart_required: bool,
    /// Warnings about the sections that the request changes.
    pub warnings: Vec<String>,
    /// The copy of the old file, after a reset.
    pub backup: Option<PathBuf>,
}

impl ChangeSource {
    pub(super) fn is_reset(self) -> bool {
        matches!(self, Self::ResetAll | Self::ResetBackend)
    }

    /// The name in `config_changed`; nothing for a plain patch.
    pub(super) fn event_name(self) -> Option<&'static str> {
        match self {
            Self::Patch => None,
            Self::File => Some("file"),
            Self::ResetAll => Some("api_reset_all"),
            Self::ResetBackend => Some("api_reset_backend"),
        }
    }
}

/// The sections that differ, in the order of the file.
pub(super) fn changed_sections(old: &Config, new: &Config) -> Vec<Section> {
    Section::ALL
        .into_iter()
        .filter(|section| differs(old, new, *section))
        .collect()
}

/// Whether a section's keys differ, without the tables in it that are sections themselves.
fn differs(old: &Config, new: &Config, section: Section) -> bool {
    own_entries(old, section).collect::<BTreeMap<_, _>>() != own_entries(new, section).collect()
}

fn own_entries(config: &Config, section: Section) -> impl Iterator<Item = (&String, &Json)> {
    let is_own = move |name: &str| section.children().all(|(child, _)| child != name);
    config
        .entries(section)
        .filter(move |(name, _)| is_own(name))
}

/// The names of sections in `config_changed`, each once.
pub(super) fn event_names(sections: &[Section]) -> Vec<String> {
    let mut names: Vec<_> = sections
        .iter()
        .map(|section| section.event_name())
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::config::{BackendName, document};

    #[test]
    fn backend_duration_overrides_those_of_backends() {
        #[track_caller]
        fn check(seconds: Json, awww: f64, wal_qt: u32) {
            let tables = json!({"backend": {"transition_duration_seconds": seconds}});
            let config = Config::new(tables.as_object().unwrap().clone(), Vec::new());
            assert_eq!(config.awww.transition_duration, awww);
            assert_eq!(config.wal_qt.duration_ms, wal_qt);
        }
        check(json!(0), 3.0, 300);
        check(json!(1.5), 1.5, 1500);
        check(json!(0.0001), 0.0001, 1);
    }

    #[test]
    fn default_config_shows_every_section() {
        let config = Config::default();
        let names: Vec<_> = config.to_json().keys().cloned().collect();
        assert_eq!(
            names,
            [
                "backend",
                "library",
                "location",
                "hooks",
                "power",
                "desktop",
                "workspaces",
                "daemon",
                "app",
                "monitors",
                "remote_gallery",
                "wallhaven"
            ]
        );
        assert_eq!(
            config.section(Section::AutoPriorities)["web"],
            json!(["wal-qt"])
        );
        assert_eq!(
            config.section(Section::BackendOptions(BackendName::Awww))["transition_duration"],
            3
        );
        assert!(
            !config
                .section(Section::Backend)
                .contains_key("transition_duration_seconds")
        );
    }

    #[test]
    fn changed_sections_are_found() {
        #[track_caller]
        fn check(text: &str, expected: &[Section], names: &[&str]) {
            let new = document::read(text, Path::new("/c.toml")).unwrap().config;
            let sections = changed_sections(&Config::default(), &new);
            assert_eq!(sections, expected);
            assert_eq!(event_names(&sections), names);
        }
        check("# nothing\napp.theme = 'dark'", &[], &[]);
        check("app.new = 1", &[Section::App], &["app"]);
        // Invalid values of keys without a default count as absent.
        check(
            "location.latitude = 95\nbackend.transition_duration_seconds = -1",
            &[],
            &[],
        );
        check(
            "backend.type = 'feh'\nbackend.auto_priorities.web = []\nbackend.feh.mode = 'max'",
            &[
                Section::Backend,
                Section::AutoPriorities,
                Section::BackendOptions(BackendName::Feh),
            ],
            &["backend", "backend.feh"],
        );
        check(
            "backend.wal-qt.env = ['A=1']",
            &[Section::BackendOptions(BackendName::WalQt)],
            &["backend.wal-qt"],
        );
    }
}
