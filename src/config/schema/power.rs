//! `[power]`: when playlists rest.

use super::key::Key;
use super::settings::settings;

settings! {
    /// `[power]`
    #[derive(Copy, Debug)]
    Power {
        /// Playlists rest while the session is locked
        pause_when_locked: bool = Key::flag(false),
        /// Playlists rest while nobody uses the machine
        pause_when_idle: bool = Key::flag(false),
    }
}
