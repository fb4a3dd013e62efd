//! What the playlists' decisions are made from: the time, by both clocks, and the place.

use jiff::Zoned;

use super::sun::Place;
use crate::clock::{self, Boottime};
use crate::wire::Tone;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Now {
    pub(super) boot: Boottime,
    /// In the zone of the system.
    pub(super) wall: Zoned,
    /// Where the sun is looked at from; none where the settings do not say.
    pub(super) place: Option<Place>,
    /// Whether it is light or dark.
    pub(super) tone: Tone,
}

impl Now {
    /// What it is decided by is the player's to know: light, until then.
    pub(super) fn read(place: Option<Place>) -> Self {
        let clock::Now { boot, wall } = clock::Now::read();
        Self { boot, wall, place, tone: Tone::Light }
    }
}
