//! `[backend.feh]`

use super::key::{Key, Value};
use super::settings::settings;
use crate::wire::words;

words! {
    FehMode { Fill = "fill", Scale = "scale", Tile = "tile", Center = "center", Max = "max" }
}

settings! {
    /// `[backend.feh]`
    #[derive(Debug)]
    Feh {
        /// How an image fits its monitor; other words act as fill
        mode: FehMode = Key::word("fill", FehMode::WORDS).otherwise(Value::Text("fill")),
    }
}
