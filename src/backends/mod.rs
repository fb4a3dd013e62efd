//! The six setters behind one trait.
//!
//! A backend makes the screen show what it is told and keeps it shown. Each backend in use is owned
//! by one thread of `wallpaper` (its worker), which calls it and may wait for it: nothing here is
//! called by a thread that others need. A backend knows no database, no playlist and no client.

mod awww;
mod context;
mod copies;
mod error;
mod feh;
mod follow;
mod foreign;
mod hanging;
mod hyprpaper;
mod mpvpaper;
mod registry;
mod socket;
mod swaybg;
mod trace;
mod version;
mod wal_qt;

pub use error::Error;
pub use hanging::{Hanging, Kind, Web};
pub use registry::{REGISTRY, Registration, Setters, Settings};
pub use version::Versions;
pub use wal_qt::Client as WalQtClient;

use crate::process::Cancel;

/// A setter in use.
pub trait Backend: Send {
    /// Makes the outputs of this backend show exactly `scene`, changing only what differs from what
    /// hangs there already (also what an earlier daemon has left hanging). Returns once the new
    /// pictures are up; what they replace goes only then. An error leaves what hung.
    fn show(&mut self, scene: &[Hanging], cancel: &Cancel) -> Result<(), Error>;

    /// What people are to be told about the scene that [`Self::show`] has just shown: what hides it,
    /// or keeps it from being seen. A sentence each.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Takes down all that is ours: pictures and processes.
    fn clear(&mut self) -> Result<(), Error>;

    /// Called when one of its processes has ended: whether all that it needs still runs. If not,
    /// its scene is shown again.
    fn is_whole(&mut self) -> bool;
}
