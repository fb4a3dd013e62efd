//! `[hooks]`: what the daemon runs when something happens.

use super::key::Key;
use super::settings::settings;

settings! {
    /// `[hooks]`: no `Debug`, since a command may hold a secret.
    Hooks {
        /// Command for sh -c after each change of a wallpaper; empty for none
        wallpaper_changed: String = Key::text("").secret(),
        /// Seconds after which a command that still runs is ended
        timeout_seconds: u32 = Key::integer(60).within(1, 600),
    }
}
