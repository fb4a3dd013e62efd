//! The seven backends behind one trait.
//!
//! A backend makes the screen show what it is told and keeps it shown. Each backend in use is owned
//! by one thread of `wallpaper` (its worker), which calls it and may wait for it: nothing here is
//! called by a thread that others need. A backend knows no database, no playlist and no client.

mod awww;
mod builtin;
mod context;
mod copies;
pub(crate) mod decoding;
mod error;
mod feh;
mod follow;
mod foreign;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/backends.rs"]
pub mod fuzz;
mod hyprpaper;
mod lack;
mod mpvpaper;
mod observant;
mod placement;
mod processes;
mod registry;
mod socket;
mod swaybg;
mod trace;
mod version;
mod wal_qt;
mod wish;

pub use context::RootPainter;
pub(crate) use context::Settings;
pub use error::Error;
pub(crate) use lack::Lack;
pub use placement::{Kind, Placement, Web};
pub use registry::Backends;
pub(crate) use registry::{REGISTRY, Registration, registration};
pub use version::Versions;
pub(crate) use wal_qt::Client as WalQtClient;
pub(crate) use wish::{fit_word, has_transition};

use std::collections::BTreeSet;

use crate::sys::Cancel;

/// One way to put wallpapers on screens, in use.
pub trait Backend: Send {
    /// Makes the outputs of this backend show exactly `placements`, changing only what differs from what
    /// is there already (also what an earlier daemon has left). Returns once the new
    /// pictures are up; what they replace goes only then. An error leaves what was there.
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error>;

    /// Changes with this transition from now on; none: as the settings have it.
    fn use_transition(&mut self, _: Option<&str>) {}

    /// Has the next [`Self::show`] show all by new processes in place of those that run.
    fn renew(&mut self) {}

    /// What people are to be told about the placements that [`Self::show`] has just shown: what
    /// hides it, or keeps it from being seen. A sentence each.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it stretches a picture over several outputs by itself; else it is given what was cut
    /// for each.
    fn spans_outputs(&self) -> bool {
        false
    }

    /// Whether it takes a file that was written anew for what it shows: it is given another name then.
    fn knows_by_path(&self) -> bool {
        false
    }

    /// The outputs on which nothing of what [`Self::show`] has last shown was seen yet: they are off or
    /// covered. What others show there stays until it is; whoever tells of the end of processes tells
    /// of that, too.
    fn unseen(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Pauses the films and pages on these outputs, and has those go on elsewhere that this has paused,
    /// also through an earlier daemon. What somebody else has paused is left to them; what was not seen
    /// yet is no more seen for it.
    fn pause(&mut self, _: &BTreeSet<String>, _: &Cancel) -> Result<(), Error> {
        Ok(())
    }

    /// Takes down all that is ours: pictures and processes.
    fn clear(&mut self) -> Result<(), Error>;

    /// Called when one of its processes has ended, or was seen at last: whether all that it needs
    /// still runs. If not, what it shows is shown again.
    fn is_whole(&mut self) -> bool;
}
