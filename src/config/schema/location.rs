//! `[location]`: where the sun is looked at from.

use super::key::{Key, Rule};
use super::settings::settings;

settings! {
    /// `[location]`
    #[derive(Debug)]
    Location {
        /// Degrees north of the equator, south of it negative: for playlists that go by the sun
        latitude: Option<f64> = Key::optional_number().ruled(Rule::Range(-90.0, 90.0)),
        /// Degrees east of Greenwich, west of it negative
        longitude: Option<f64> = Key::optional_number().ruled(Rule::Range(-180.0, 180.0)),
    }
}
