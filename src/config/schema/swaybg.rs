//! `[backend.swaybg]`

use super::key::Key;
use super::settings::settings;
use crate::wire::words;

words! {
    SwaybgFit {
        Stretch = "stretch", Fit = "fit", Fill = "fill", Center = "center", Tile = "tile",
    }
}

settings! {
    /// `[backend.swaybg]`
    #[derive(Debug)]
    Swaybg {
        /// How an image fits its monitor
        fit_mode: SwaybgFit = Key::word("fill", SwaybgFit::WORDS),
    }
}
