//! `[backend.mpvpaper]`

use super::key::Key;
use super::settings::settings;
use crate::wire::words;

words! {
    /// The layers of layer-shell; mpvpaper's own choice if empty.
    MpvpaperLayer {
        Default = "", Background = "background", Bottom = "bottom", Top = "top",
        Overlay = "overlay",
    }
}

settings! {
    /// `[backend.mpvpaper]`
    #[derive(Debug)]
    Mpvpaper {
        /// Options for mpv, as on its command line without --
        mpv_options: String = Key::text("loop"),
        /// How much mpvpaper prints
        verbose: u8 = Key::integer(0).within(0, 2),
        /// Pause the video while windows hide it
        auto_pause: bool = Key::flag(false),
        /// Stop mpv while windows hide the video, whatever auto_pause says
        auto_stop: bool = Key::flag(false),
        /// Layer to draw on; empty leaves it to mpvpaper
        layer: MpvpaperLayer = Key::word("", MpvpaperLayer::WORDS),
        /// Seconds between the files of a slideshow; 0 for none
        slideshow_secs: u32 = Key::integer(0).from(0),
    }
}
