//! What the playlists' decisions are made from: the time, by both clocks, and the place.

use jiff::Zoned;

use super::sun::Place;
use crate::clock::{self, Boottime};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Now {
    pub(super) boot: Boottime,
    /// In the zone of the system.
    pub(super) wall: Zoned,
    /// Where the sun is looked at from; none where the settings do not say.
    pub(super) place: Option<Place>,
}

impl Now {
    pub(super) fn read(place: Option<Place>) -> Self {
        let clock::Now { boot, wall } = clock::Now::read();
        Self { boot, wall, place }
    }
}
