//! The rules of a playlist: what its fields may be.

use std::collections::BTreeSet;
use std::fmt;

use rusqlite::Connection;

use super::super::Error;
use super::rows::Row;
use crate::wire::{
    NewConfiguration, NewPlaylistItem, PlaylistConfiguration, PlaylistOrder, PlaylistType,
};

/// Seconds: a second to a year.
const INTERVALS: std::ops::RangeInclusive<i64> = 1..=31_536_000;
/// Minutes since midnight.
const MINUTES: std::ops::RangeInclusive<i64> = 0..=1439;
/// Items of a playlist.
const ITEMS_MAX: usize = 10_000;
/// Ids that a refusal names at most.
const NAMED: usize = 20;

pub(super) const DEFAULT: PlaylistConfiguration = PlaylistConfiguration {
    kind: PlaylistType::Timer,
    interval: 300,
    order: PlaylistOrder::Ordered,
    always_start_on_first_image: false,
};

/// Why a playlist is not made or changed.
#[derive(Debug)]
pub enum Refusal {
    NoPlaylist {
        id: i64,
    },
    Taken {
        name: String,
    },
    Interval {
        seconds: i64,
    },
    TooMany {
        items: usize,
    },
    UnknownImages {
        ids: Vec<i64>,
    },
    /// One of this type does not live.
    Lives {
        kind: PlaylistType,
    },
    Time {
        minutes: i64,
    },
    NoTime {
        image_id: i64,
    },
    SameTime {
        minutes: i64,
    },
    Store(Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlaylist { id } => write!(f, "there is no playlist {id}"),
            Self::Taken { name } => write!(f, "there is a playlist {name:?} already"),
            Self::Interval { seconds } => write!(
                f,
                "configuration.interval cannot be {seconds}: it is {} to {} seconds",
                INTERVALS.start(),
                INTERVALS.end()
            ),
            Self::TooMany { items } => {
                write!(f, "images cannot have {items} items: a playlist has {ITEMS_MAX} at most")
            }
            Self::UnknownImages { ids } => {
                let named: Vec<_> = ids.iter().take(NAMED).map(ToString::to_string).collect();
                let more = if ids.len() > NAMED { " and more" } else { "" };
                write!(f, "the library has no image {}{more}", named.join(", "))
            }
            Self::Lives { kind } => write!(
                f,
                "a playlist of the type {kind} has images: a source is for timer and manual"
            ),
            Self::Time { minutes } => write!(
                f,
                "images.time cannot be {minutes}: it is {} to {} minutes since midnight",
                MINUTES.start(),
                MINUTES.end()
            ),
            Self::NoTime { image_id } => {
                write!(f, "image {image_id} has no time, which time_of_day needs")
            }
            Self::SameTime { minutes } => write!(
                f,
                "two images have the time {minutes} ({:02}:{:02})",
                minutes / 60,
                minutes % 60
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// What a configuration becomes.
pub(super) fn configuration(
    before: PlaylistConfiguration,
    change: &NewConfiguration,
) -> Result<PlaylistConfiguration, Refusal> {
    let interval = match change.interval {
        None => before.interval,
        Some(seconds) if INTERVALS.contains(&seconds) => seconds as u32,
        Some(seconds) => return Err(Refusal::Interval { seconds }),
    };
    let first = change.always_start_on_first_image;
    Ok(PlaylistConfiguration {
        kind: change.kind.unwrap_or(before.kind),
        interval,
        order: change.order.unwrap_or(before.order),
        always_start_on_first_image: first.unwrap_or(before.always_start_on_first_image),
    })
}

/// Images that there are. Their times are looked at in [`fit`].
pub(super) fn images(
    connection: &Connection,
    images: &[NewPlaylistItem],
) -> Result<Vec<Row>, Refusal> {
    if images.len() > ITEMS_MAX {
        return Err(Refusal::TooMany { items: images.len() });
    }
    let mut known = connection.prepare_cached("SELECT 1 FROM image WHERE id = ?1")?;
    let mut unknown = BTreeSet::new();
    for item in images {
        if !known.exists([item.image_id])? {
            unknown.insert(item.image_id);
        }
    }
    if unknown.is_empty() {
        Ok(images.iter().map(|item| (item.image_id, item.time)).collect())
    } else {
        Err(Refusal::UnknownImages { ids: unknown.into_iter().collect() })
    }
}

/// Whether a playlist of this type may have a source.
pub(super) fn lives(kind: PlaylistType, has_source: bool) -> Result<(), Refusal> {
    match kind {
        PlaylistType::Timer | PlaylistType::Manual => Ok(()),
        kind if has_source => Err(Refusal::Lives { kind }),
        _ => Ok(()),
    }
}

/// Whether images are such as a playlist of this type needs.
pub(super) fn fit(kind: PlaylistType, rows: &[Row]) -> Result<(), Refusal> {
    if kind != PlaylistType::TimeOfDay {
        return Ok(());
    }
    let mut times = BTreeSet::new();
    for &(image_id, time) in rows {
        let minutes = time.ok_or(Refusal::NoTime { image_id })?;
        if !MINUTES.contains(&minutes) {
            return Err(Refusal::Time { minutes });
        }
        if !times.insert(minutes) {
            return Err(Refusal::SameTime { minutes });
        }
    }
    Ok(())
}

/// The name is the only thing that can be taken.
pub(super) fn taken(written: rusqlite::Result<usize>, name: &str) -> Result<(), Refusal> {
    match written.map_err(Error::from) {
        Ok(_) => Ok(()),
        Err(error) if error.is_taken() => Err(Refusal::Taken { name: name.to_owned() }),
        Err(error) => Err(error.into()),
    }
}
