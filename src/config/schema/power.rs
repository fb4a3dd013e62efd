//! `[power]`: when playlists, films and pages rest.

use super::key::Key;
use super::settings::settings;

settings! {
    /// `[power]`
    #[derive(Copy, Debug)]
    Power {
        /// Playlists, films and pages rest while the machine runs on its battery
        pause_on_battery: bool = Key::flag(false),
        /// Playlists, films and pages rest while the session is locked
        pause_when_locked: bool = Key::flag(false),
        /// Playlists, films and pages rest while nobody uses the machine
        pause_when_idle: bool = Key::flag(false),
        /// MiB above which a process that shows films or pages is replaced; 0 for never
        max_child_memory_mb: u32 = Key::integer(0).within(0, 1 << 20),
    }
}
