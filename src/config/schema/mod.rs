//! Every section and key of the configuration, with type, default and allowed values.
//!
//! One list per section gives the struct that modules use, the validation, the generated file,
//! completion and the list that the manual is compared with. Nothing here reads a file.

mod backend_options;
mod forms;
mod key;
mod sections;
mod settings_macro;
mod wal_qt;

pub(crate) use backend_options::{
    Awww, AwwwFilter, AwwwFormat, AwwwResize, AwwwTransition, Builtin, BuiltinBackdrop,
    BuiltinTransition, Feh, FehMode, Hyprpaper, HyprpaperFit, Mpvpaper, MpvpaperLayer, Swaybg,
    SwaybgFit,
};
pub(in crate::config) use key::beginning;
pub use key::{Key, Rule, ValueType};
pub(crate) use key::{OnInvalid, Value};
pub use sections::BackendName;
pub(crate) use sections::{
    App, AutoPriorities, Backend, Compositor, Daemon, Desktop, Hooks, Library, Location, LogLevel,
    Monitors, Power, RemoteGallery, SelectionMode, StillFiles,
};
pub(crate) use wal_qt::{ImageFit, ParallaxDirection, ParallaxDriver, WalQt, WalQtTransition};

/// A table of the file; those at the top are in the order of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    App,
    Daemon,
    Backend,
    AutoPriorities,
    BackendOptions(BackendName),
    Library,
    Location,
    Hooks,
    Power,
    Desktop,
    Workspaces,
    Monitors,
    RemoteGallery,
}

/// Frequently changed sections.
const BEFORE: [Section; 2] = [Section::Backend, Section::AutoPriorities];
/// The others; clients' sections last.
const AFTER: [Section; 10] = [
    Section::Library,
    Section::Location,
    Section::Hooks,
    Section::Power,
    Section::Desktop,
    Section::Workspaces,
    Section::Daemon,
    Section::App,
    Section::Monitors,
    Section::RemoteGallery,
];
const BACKENDS: &[BackendName] = BackendName::ALL;

/// The name of `remote_gallery` in requests and answers of a graphical client.
pub(in crate::config) const WALLHAVEN: &str = "wallhaven";

impl Section {
    /// In the order of the file.
    pub const ALL: [Self; BEFORE.len() + BACKENDS.len() + AFTER.len()] = {
        let mut all = [Self::App; _];
        let mut at = 0;
        while at < all.len() {
            all[at] = match at.checked_sub(BEFORE.len()) {
                None => BEFORE[at],
                Some(at) if at < BACKENDS.len() => Self::BackendOptions(BACKENDS[at]),
                Some(at) => AFTER[at - BACKENDS.len()],
            };
            at += 1;
        }
        all
    };

    /// The top-level tables of the file, in the order of the API.
    pub(crate) fn top() -> Vec<Self> {
        let mut top = Self::ALL.to_vec();
        top.retain(|section| !section.heading().contains('.'));
        top.sort();
        top
    }

    /// The top-level table of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|section| section.path().eq([name]))
    }

    /// The section that a request names.
    pub fn requested(name: &str) -> Option<Self> {
        match name {
            WALLHAVEN => Some(Self::RemoteGallery),
            name => Self::named(name),
        }
    }

    /// Its heading in the file, and its keys.
    fn table(self) -> (&'static str, &'static [Key]) {
        match self {
            Self::App => ("app", App::KEYS),
            Self::Daemon => ("daemon", Daemon::KEYS),
            Self::Backend => ("backend", Backend::KEYS),
            Self::AutoPriorities => ("backend.auto_priorities", AutoPriorities::KEYS),
            Self::BackendOptions(name) => match name {
                BackendName::Awww => ("backend.awww", Awww::KEYS),
                BackendName::Feh => ("backend.feh", Feh::KEYS),
                BackendName::Hyprpaper => ("backend.hyprpaper", Hyprpaper::KEYS),
                BackendName::Mpvpaper => ("backend.mpvpaper", Mpvpaper::KEYS),
                BackendName::Swaybg => ("backend.swaybg", Swaybg::KEYS),
                BackendName::WalQt => ("backend.wal-qt", WalQt::KEYS),
                BackendName::Builtin => ("backend.builtin", Builtin::KEYS),
            },
            Self::Library => ("library", Library::KEYS),
            Self::Location => ("location", Location::KEYS),
            Self::Hooks => ("hooks", Hooks::KEYS),
            Self::Power => ("power", Power::KEYS),
            Self::Desktop => ("desktop", Desktop::KEYS),
            Self::Workspaces => ("workspaces", &[]),
            Self::Monitors => ("monitors", Monitors::KEYS),
            Self::RemoteGallery => ("remote_gallery", RemoteGallery::KEYS),
        }
    }

    pub fn keys(self) -> &'static [Key] {
        self.table().1
    }

    /// The names of its table and its parents, outermost first.
    pub fn path(self) -> impl Iterator<Item = &'static str> {
        self.table().0.split('.')
    }

    /// The heading in the file: `backend.wal-qt`.
    pub fn heading(self) -> String {
        self.table().0.to_owned()
    }

    /// The name in `config_changed`: a change of the priorities is one of `backend`.
    pub fn event_name(self) -> String {
        if self == Self::AutoPriorities {
            return "backend".to_owned();
        }
        self.heading()
    }

    /// Kept for the client, which may add keys of its own; the daemon does not read it.
    pub fn is_client_s(self) -> bool {
        matches!(self, Self::App | Self::Monitors | Self::RemoteGallery)
    }

    /// Whether it takes keys beyond the schema's: the client's own, and names of workspaces.
    pub fn is_open(self) -> bool {
        self.is_client_s() || self == Self::Workspaces
    }

    /// The settings of a backend: `-` and `_` in its keys are the same when read.
    pub fn is_backend_options(self) -> bool {
        matches!(self, Self::BackendOptions(_))
    }

    /// The key of this name; backends accept `-` for `_`.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        let same = |key: &&Key| {
            key.name == name || (self.is_backend_options() && is_alike(key.name, name))
        };
        self.keys().iter().find(same)
    }

    /// Tables inside this one.
    pub fn children(self) -> impl Iterator<Item = (&'static str, Self)> {
        let all: &[Self] = if self == Self::Backend {
            &Self::ALL
        } else {
            &[]
        };
        all.iter()
            .filter_map(|child| Some((child.path().nth(1)?, *child)))
    }
}

/// Whether two names are equal if `-` and `_` are the same.
pub(super) fn is_alike(one: &str, other: &str) -> bool {
    let plain = |byte| if byte == b'-' { b'_' } else { byte };
    one.bytes().map(plain).eq(other.bytes().map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_pass_their_own_validation() {
        for section in Section::ALL {
            for key in section.keys() {
                let heading = section.heading();
                let Some(default) = key.default.to_json() else {
                    continue;
                };
                assert!(key.has_type_of(&default), "{heading}.{}", key.name);
                assert_eq!(key.validate(&default), Ok(()), "{heading}.{}", key.name);
                assert!(!key.meaning.is_empty());
            }
        }
    }

    #[test]
    fn each_table_at_the_top_is_found_by_its_name() {
        for section in Section::ALL {
            let heading = section.heading();
            let is_at_top = !heading.contains('.');
            assert_eq!(
                Section::named(&heading),
                is_at_top.then_some(section),
                "{heading}"
            );
        }
    }

    #[test]
    fn hyphens_count_as_underscores_in_backends_only() {
        let awww = Section::BackendOptions(BackendName::Awww);
        assert_eq!(
            awww.key("fill-color").map(|key| key.name),
            Some("fill_color")
        );
        assert!(Section::App.key("images-per-page").is_none());
        assert!(Section::Daemon.key("log-level").is_none());
    }
}
