//! Turns the configurations of other wallpaper programs into steps, one file for each program.
//!
//! Pure, but for a look whether a path leads to a file or to a directory. Never writes another
//! program's files and does not know the daemon; the verb `migrate` carries the steps out.

mod broken;
mod disk;
mod fit;
mod ini;
mod known;
mod span;
mod step;
mod toml;
mod variety;
mod waypaper;
mod waypaper_engine;
mod wpaperd;

use std::path::PathBuf;

pub(super) use broken::Broken;
pub(super) use disk::Disk;
pub(super) use known::{Known, Library};
pub(super) use step::{Item, NewPlaylist, Pictures, Source, Step};

use crate::paths::Dirs;

/// The programs, by the words of the command line.
pub(super) const PROGRAMS: &[&str] = &["wpaperd", "waypaper", "variety", "waypaper-engine"];

/// A program whose configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Wpaperd,
    Waypaper,
    Variety,
    WaypaperEngine,
}

impl Program {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "wpaperd" => Self::Wpaperd,
            "waypaper" => Self::Waypaper,
            "variety" => Self::Variety,
            _ => Self::WaypaperEngine,
        }
    }

    /// Where its own documentation says that its configuration is, the first that there is.
    pub(super) fn files(self, dirs: &Dirs) -> Vec<PathBuf> {
        let config = |name: &str| dirs.config_home().join(name);
        match self {
            // The older name goes first, as it does for wpaperd.
            Self::Wpaperd => vec![config("wpaperd/wallpaper.toml"), config("wpaperd/config.toml")],
            Self::Waypaper => vec![config("waypaper/config.ini")],
            // It does not ask for XDG_CONFIG_HOME.
            Self::Variety => vec![
                dirs.home().join(".config/variety/variety.conf"),
                config("variety/variety.conf"),
            ],
            Self::WaypaperEngine => vec![config("waypaper-engine/config.toml")],
        }
    }

    /// What it has besides its configuration, and where the state that belongs to it is.
    pub(super) fn state(self, text: &str, dirs: &Dirs) -> Option<PathBuf> {
        match self {
            Self::Waypaper if waypaper::keeps_state(text) => {
                Some(dirs.state().with_file_name("waypaper").join("state.ini"))
            }
            _ => None,
        }
    }

    /// Where it has its images, unless its configuration says otherwise.
    pub(super) fn usual_images(dirs: &Dirs) -> PathBuf {
        dirs.data().with_file_name("waypaper-engine").join("images")
    }

    /// The socket of its daemon, where that is to be asked.
    pub(super) fn socket(self, text: &str, disk: &Disk, dirs: &Dirs) -> Option<PathBuf> {
        match self {
            Self::WaypaperEngine => waypaper_engine::socket(text, disk, dirs),
            _ => None,
        }
    }

    /// All that the configuration asks for, and all of it that is not taken.
    pub(super) fn steps(self, text: &str, known: &Known<'_>) -> Result<Vec<Step>, Broken> {
        match self {
            Self::Wpaperd => wpaperd::steps(text, known.disk),
            Self::Waypaper => waypaper::steps(text, known.state, known.disk),
            Self::Variety => variety::steps(text, known.disk),
            Self::WaypaperEngine => waypaper_engine::steps(text, known),
        }
    }
}
