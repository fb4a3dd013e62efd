//! Every section and key of the configuration, with type, default and allowed values.
//!
//! One list per section gives the struct that modules use, the validation, the generated file,
//! completion and the list that the manual is compared with. Nothing here reads a file.

mod backend_options;
mod builtin;
mod key;
mod sections;
mod settings_macro;
mod wal_qt;

pub(crate) use backend_options::{
    Awww, AwwwFilter, AwwwFormat, AwwwResize, AwwwTransition, Feh, FehMode, Hyprpaper,
    HyprpaperFit, Mpvpaper, MpvpaperLayer, Swaybg, SwaybgFit,
};
pub(crate) use builtin::{Builtin, BuiltinBackdrop, BuiltinFit, BuiltinTransition};
pub(in crate::config) use key::beginning;
pub use key::{Key, Rule, ValueType};
pub(crate) use key::{OnInvalid, Value};
pub use sections::BackendName;
pub(crate) use sections::{
    App, AutoPriorities, Backend, Compositor, Daemon, Desktop, Hooks, Library, Location, LogLevel,
    Monitors, Power, RemoteGallery, SelectionMode, StillFiles,
};
pub(crate) use wal_qt::{ImageFit, ParallaxDirection, ParallaxDriver, WalQt, WalQtTransition};

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    App,
    Daemon,
    Location,
    Backend,
    AutoPriorities,
    BackendOptions(BackendName),
    Library,
    Hooks,
    Power,
    Desktop,
    Workspaces,
    Monitors,
    RemoteGallery,
}

impl Section {
    /// In the order of the file: frequently changed sections first, clients' sections last.
    pub const ALL: [Self; 19] = [
        Self::Backend,
        Self::AutoPriorities,
        Self::BackendOptions(BackendName::Awww),
        Self::BackendOptions(BackendName::Feh),
        Self::BackendOptions(BackendName::Hyprpaper),
        Self::BackendOptions(BackendName::Mpvpaper),
        Self::BackendOptions(BackendName::Swaybg),
        Self::BackendOptions(BackendName::WalQt),
        Self::BackendOptions(BackendName::Builtin),
        Self::Library,
        Self::Location,
        Self::Hooks,
        Self::Power,
        Self::Desktop,
        Self::Workspaces,
        Self::Daemon,
        Self::App,
        Self::Monitors,
        Self::RemoteGallery,
    ];

    /// The top-level tables of the file, in the order of the API.
    pub const TOP: [Self; 11] = [
        Self::App,
        Self::Daemon,
        Self::Backend,
        Self::Library,
        Self::Location,
        Self::Hooks,
        Self::Power,
        Self::Desktop,
        Self::Workspaces,
        Self::Monitors,
        Self::RemoteGallery,
    ];

    /// The top-level table of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::TOP.into_iter().find(|section| section.path().eq([name]))
    }

    pub fn keys(self) -> &'static [Key] {
        match self {
            Self::App => App::KEYS,
            Self::Daemon => Daemon::KEYS,
            Self::Location => Location::KEYS,
            Self::Backend => Backend::KEYS,
            Self::AutoPriorities => AutoPriorities::KEYS,
            Self::BackendOptions(BackendName::Awww) => Awww::KEYS,
            Self::BackendOptions(BackendName::Feh) => Feh::KEYS,
            Self::BackendOptions(BackendName::Hyprpaper) => Hyprpaper::KEYS,
            Self::BackendOptions(BackendName::Mpvpaper) => Mpvpaper::KEYS,
            Self::BackendOptions(BackendName::Swaybg) => Swaybg::KEYS,
            Self::BackendOptions(BackendName::WalQt) => WalQt::KEYS,
            Self::BackendOptions(BackendName::Builtin) => Builtin::KEYS,
            Self::Library => Library::KEYS,
            Self::Hooks => Hooks::KEYS,
            Self::Power => Power::KEYS,
            Self::Desktop => Desktop::KEYS,
            Self::Workspaces => &[],
            Self::Monitors => Monitors::KEYS,
            Self::RemoteGallery => RemoteGallery::KEYS,
        }
    }

    /// The names of its table and its parents, outermost first.
    pub fn path(self) -> impl Iterator<Item = &'static str> {
        let (first, second) = match self {
            Self::App => ("app", None),
            Self::Daemon => ("daemon", None),
            Self::Location => ("location", None),
            Self::Backend => ("backend", None),
            Self::AutoPriorities => ("backend", Some("auto_priorities")),
            Self::BackendOptions(name) => ("backend", Some(name.as_str())),
            Self::Library => ("library", None),
            Self::Hooks => ("hooks", None),
            Self::Power => ("power", None),
            Self::Desktop => ("desktop", None),
            Self::Workspaces => ("workspaces", None),
            Self::Monitors => ("monitors", None),
            Self::RemoteGallery => ("remote_gallery", None),
        };
        std::iter::once(first).chain(second)
    }

    /// The heading in the file: `backend.wal-qt`.
    pub fn heading(self) -> String {
        self.path().collect::<Vec<_>>().join(".")
    }

    /// The name in `config_changed`: a change of the priorities is one of `backend`.
    pub fn event_name(self) -> String {
        match self {
            Self::AutoPriorities => "backend".to_owned(),
            section => section.heading(),
        }
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
        let all: &[Self] = if self == Self::Backend { &Self::ALL } else { &[] };
        all.iter().filter_map(|child| Some((child.path().nth(1)?, *child)))
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
                let Some(default) = key.default.to_json() else { continue };
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
            assert_eq!(Section::named(&heading), is_at_top.then_some(section), "{heading}");
        }
    }

    #[test]
    fn hyphens_count_as_underscores_in_backends_only() {
        let awww = Section::BackendOptions(BackendName::Awww);
        assert_eq!(awww.key("fill-color").map(|key| key.name), Some("fill_color"));
        assert!(Section::App.key("images-per-page").is_none());
        assert!(Section::Daemon.key("log-level").is_none());
    }
}
