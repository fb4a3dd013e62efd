//! Lists the backends in the order of the API: their programs, what they can show and where.
//!
//! A new backend begins with its name in `config::schema`: the compiler then names all other places.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use crossbeam_channel::Sender;

use super::awww::Awww;
use super::builtin::Builtin;
use super::context::{Backends, Context};
use super::feh::Feh;
use super::foreign;
use super::hyprpaper::{self, Hyprpaper};
use super::mpvpaper::Mpvpaper;
use super::swaybg::Swaybg;
use super::wal_qt::WalQt;
use super::{Backend, Kind};
use crate::compositor::Compositor;
use crate::config::BackendName;
use crate::draw::VERSION;
use crate::process::{self, version};
use crate::wire::Conflict;

/// The time limit for a program to print its version. Short, because a client waits for the answer.
const VERSION_PATIENCE: Duration = Duration::from_millis(500);

/// The properties of a backend that are known without starting it.
pub struct Registration {
    pub name: BackendName,
    /// The programs, all of which are needed. Each is listed by its possible names, the preferred first.
    pub programs: &'static [&'static [&'static str]],
    /// The flags of [`version::FLAGS`] that the first program accepts; empty if it reports no
    /// version.
    pub version_flags: &'static [&'static str],
    pub compositors: &'static [Compositor],
    pub kinds: &'static [Kind],
    /// Each output has its own process, so that none has to wait for another.
    pub apart: bool,
    /// A change may start a new process, whose surfaces lie above all others.
    pub restarts_with_each_change: bool,
    /// Its pictures stay on X11's root window, without a process that could be asked about them.
    pub stays_on_root: bool,
    /// It has one fit for all outputs.
    pub one_fit: bool,
    /// It has a window over every output and shows all kinds, so that no other backend is visible beside
    /// it.
    pub covers_all: bool,
    /// It stretches a picture over several outputs by itself; other backends get a slice for each
    /// output.
    pub spans_outputs: bool,
    /// It ignores changes of a file under the same name, so a rewritten file gets another name.
    pub knows_by_path: bool,
    build: fn(Context) -> Box<dyn Backend>,
}

impl Registration {
    pub(super) fn is_for(&self, compositor: Compositor) -> bool {
        self.compositors.contains(&compositor)
    }
}

const STILLS: &[Kind] = &[Kind::StaticImage];
const PICTURES: &[Kind] = &[Kind::StaticImage, Kind::AnimatedImage];
const ALL: &[Kind] = &[
    Kind::StaticImage,
    Kind::AnimatedImage,
    Kind::Video,
    Kind::Web,
];
const WAYLAND: &[Compositor] = &[Compositor::Wayland];
const BOTH: &[Compositor] = &[Compositor::Wayland, Compositor::X11];

/// All backends, in the order of the API.
pub(crate) static REGISTRY: LazyLock<Vec<Registration>> = LazyLock::new(|| {
    BackendName::ALL
        .iter()
        .map(|&name| register(name))
        .collect()
});

fn register(name: BackendName) -> Registration {
    match name {
        BackendName::Awww => Registration {
            programs: &[&["awww", "swww"], &["awww-daemon", "swww-daemon"]],
            version_flags: &["--version"],
            knows_by_path: true,
            ..plain(name, WAYLAND, PICTURES, |context| {
                Box::new(Awww::new(context))
            })
        },
        BackendName::Feh => Registration {
            programs: &[&["feh"]],
            version_flags: &["--version"],
            stays_on_root: true,
            one_fit: true,
            ..plain(name, &[Compositor::X11], STILLS, |context| {
                Box::new(Feh::new(context))
            })
        },
        BackendName::Hyprpaper => Registration {
            programs: &[&["hyprpaper"], &["hyprctl"]],
            version_flags: &version::FLAGS,
            restarts_with_each_change: true,
            knows_by_path: true,
            ..plain(name, WAYLAND, STILLS, |context| {
                Box::new(Hyprpaper::new(context))
            })
        },
        BackendName::Mpvpaper => Registration {
            programs: &[&["mpvpaper"]],
            apart: true,
            restarts_with_each_change: true,
            ..plain(name, WAYLAND, &[Kind::Video], |context| {
                Box::new(Mpvpaper::new(context))
            })
        },
        BackendName::Swaybg => Registration {
            programs: &[&["swaybg"]],
            version_flags: &["--version"],
            restarts_with_each_change: true,
            knows_by_path: true,
            ..plain(name, WAYLAND, STILLS, |context| {
                Box::new(Swaybg::new(context))
            })
        },
        BackendName::WalQt => Registration {
            programs: &[&["wal-qt-host"]],
            covers_all: true,
            ..plain(name, WAYLAND, ALL, |context| Box::new(WalQt::new(context)))
        },
        // Over X11 it shows stills only: [`Backends::kinds`].
        BackendName::Builtin => Registration {
            stays_on_root: true,
            spans_outputs: true,
            ..plain(name, BOTH, PICTURES, |context| {
                Box::new(Builtin::new(context))
            })
        },
    }
}

/// A registration without programs and special properties.
fn plain(
    name: BackendName,
    compositors: &'static [Compositor],
    kinds: &'static [Kind],
    build: fn(Context) -> Box<dyn Backend>,
) -> Registration {
    Registration {
        name,
        programs: &[],
        version_flags: &[],
        compositors,
        kinds,
        apart: false,
        restarts_with_each_change: false,
        stays_on_root: false,
        one_fit: false,
        covers_all: false,
        spans_outputs: false,
        knows_by_path: false,
        build,
    }
}

/// The registration of the backend of this name.
pub(crate) fn registration(name: BackendName) -> &'static Registration {
    &REGISTRY[name as usize]
}

impl Backends {
    /// The backends that could be used now, in order of preference if the settings name none of them:
    /// our own renderer, which has transitions, comes first.
    pub fn available(&self) -> Vec<&'static Registration> {
        let mut available: Vec<_> = REGISTRY
            .iter()
            .filter(|entry| self.is_available(entry))
            .collect();
        available.sort_by_key(|entry| entry.name != BackendName::Builtin);
        available
    }

    /// The preferred backend, or else the first that could be used now.
    pub(crate) fn available_or_first(
        &self,
        preferred: BackendName,
    ) -> Option<&'static Registration> {
        let available = self.available();
        let mut all = available.iter();
        let found = all.find(|entry| entry.name == preferred);
        found.or(available.first()).copied()
    }

    /// Whether a backend works with the running compositor. On Wayland all backends need
    /// wlr-layer-shell.
    pub fn fits(&self, entry: &Registration) -> bool {
        let may_draw = self.compositor() == Some(Compositor::X11) || self.outputs.has_backgrounds();
        may_draw && self.is_for_session(entry)
    }

    fn is_for_session(&self, entry: &Registration) -> bool {
        self.outputs.session().is_some_and(|session| {
            entry.is_for(session.compositor())
                && (entry.name != BackendName::Hyprpaper || hyprpaper::fits(&session, &self.dirs))
        })
    }

    /// Whether a backend is installed and fits.
    pub fn is_available(&self, entry: &Registration) -> bool {
        self.fits(entry)
            && self.missing(entry).is_empty()
            && (entry.name != BackendName::Builtin || self.can_draw())
    }

    /// The kinds that a backend can show in this session. The built-in renderer shows nothing
    /// animated over X11.
    pub fn kinds(&self, entry: &Registration) -> &'static [Kind] {
        if entry.name == BackendName::Builtin && self.compositor() == Some(Compositor::X11) {
            STILLS
        } else {
            entry.kinds
        }
    }

    /// Whether the builtin backend can draw here and is enabled.
    fn can_draw(&self) -> bool {
        self.outputs.has_backgrounds() && (self.settings)().builtin.enabled
    }

    /// The programs of a backend that are not on `PATH`, under their preferred names.
    pub fn missing(&self, entry: &Registration) -> Vec<&'static str> {
        let missing =
            |names: &&&[&'static str]| names.iter().all(|name| self.which(name).is_none());
        entry
            .programs
            .iter()
            .filter(missing)
            .map(|names| names[0])
            .collect()
    }

    /// The executable of this name on `PATH`, which is read each time.
    pub(super) fn which(&self, name: &str) -> Option<PathBuf> {
        process::which_in(name, &self.dirs.env().var("PATH")?)
    }

    /// The kind of compositor that runs.
    pub fn compositor(&self) -> Option<Compositor> {
        self.outputs.session().map(|session| session.compositor())
    }

    /// Builds a backend, for one output or for all; `tell` gets a message when one of its processes has
    /// exited.
    pub fn build(
        &self,
        name: BackendName,
        output: Option<&str>,
        tell: Sender<()>,
    ) -> Box<dyn Backend> {
        (registration(name).build)(Context::new(self.clone(), name, output, tell))
    }

    /// Returns a function that lists the programs that conflict with a backend: those that draw
    /// backgrounds on our compositor and that murald did not start.
    pub fn conflicts(&self) -> impl Fn(&Registration) -> Vec<Conflict> {
        let found = foreign::find(self);
        let compositor = self.compositor();
        move |entry| {
            let draws_here = compositor.is_some_and(|one| entry.is_for(one));
            let is_in_the_way = |conflict: &&Conflict| {
                draws_here && !foreign::is_used(entry.name, &conflict.program)
            };
            found.iter().filter(is_in_the_way).cloned().collect()
        }
    }

    /// The programs that conflict with this backend: a warning and a remedy for each. May take a second.
    pub fn in_the_way(&self, name: BackendName) -> Vec<(String, &'static str)> {
        let found = foreign::find(self).into_iter();
        let found = found.filter(|conflict| !foreign::is_used(name, &conflict.program));
        found
            .map(|conflict| (conflict.to_string(), foreign::remedy(&conflict)))
            .collect()
    }

    /// The same as warnings about a picture that this backend has just shown.
    pub fn conflict_warnings(&self, name: BackendName) -> Vec<String> {
        let warnings = self.in_the_way(name).into_iter();
        warnings
            .map(|(warning, remedy)| format!("{warning}: {remedy}"))
            .collect()
    }

    /// The directory of a backend's copies and state.
    pub fn cache_of(&self, name: BackendName, output: Option<&str>) -> PathBuf {
        let cache = self.cache.join(name.as_str());
        output.map_or_else(
            || cache.clone(),
            |output| cache.join(process::plain_name(output)),
        )
    }

    /// The version of a backend's program. The program is asked once, and again if it did not answer or
    /// was replaced, which may take half a second.
    pub fn version(&self, entry: &Registration) -> Option<String> {
        // The backend without a program is our own.
        let Some(names) = entry.programs.first() else {
            return Some(VERSION.to_owned());
        };
        let program = names.iter().find_map(|name| self.which(name))?;
        self.versions
            .of(&program, entry.version_flags, VERSION_PATIENCE, None)
            .ok()?
    }

    /// The programs of a backend, or of all that fit the session.
    pub fn programs(&self, name: Option<BackendName>) -> Vec<String> {
        let fits = |entry: &&Registration| match (name, self.compositor()) {
            (Some(name), _) => entry.name == name,
            (None, Some(_)) => self.is_for_session(entry),
            (None, None) => true,
        };
        let entries = REGISTRY.iter().filter(fits);
        entries
            .flat_map(|entry| entry.programs)
            .map(|names| names[0].to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_backend_of_the_settings_is_registered() {
        for &name in BackendName::ALL {
            let entry = registration(name);
            assert_eq!(entry.name, name);
            assert!(
                entry
                    .version_flags
                    .iter()
                    .all(|flag| version::FLAGS.contains(flag)),
                "{name}"
            );
        }
    }
}
