//! `[backend.mpvpaper]`

use super::key::Key;
use super::settings::settings;

settings! {
    /// `[backend.mpvpaper]`
    #[derive(Debug)]
    Mpvpaper {
        /// Options for mpv, as its command line writes them without --
        mpv_options: String = Key::text("loop"),
        /// How much it tells
        verbose: u8 = Key::integer(0).within(0, 2),
        /// Pause while the wallpaper is hidden
        auto_pause: bool = Key::flag(false),
        /// Stop while the wallpaper is hidden; goes before auto_pause
        auto_stop: bool = Key::flag(false),
        /// Layer of the surface; empty leaves it to mpvpaper
        layer: String = Key::text(""),
        /// Seconds between the files of a slideshow; 0 is none
        slideshow_secs: u32 = Key::integer(0).from(0),
    }
}
