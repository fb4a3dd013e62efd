//! `[backend.hyprpaper]`

use super::key::Key;
use super::settings::settings;
use crate::wire::words;

words! {
    HyprpaperFit { Cover = "cover", Contain = "contain", Tile = "tile", Fill = "fill" }
}

settings! {
    /// `[backend.hyprpaper]`
    #[derive(Debug)]
    Hyprpaper {
        /// How an image fits its monitor
        fit_mode: HyprpaperFit = Key::word("cover", HyprpaperFit::WORDS),
        /// The file that murald writes for it; empty is one under $XDG_CONFIG_HOME/hypr
        config_path: String = Key::path(""),
    }
}
