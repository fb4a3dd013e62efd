//! Checks the rules of playlists: which values their fields may have.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::super::{Error, images};
use super::rows::Row;
use crate::color;
use crate::wire::{
    DAY_TIMES, DayTime, INTERVALS, NewConfiguration, NewPlaylistItem, PlaylistConfiguration,
    PlaylistOrder, PlaylistType, Tone, labelled,
};

/// Valid minutes since midnight.
const MINUTES: std::ops::RangeInclusive<i64> = 0..=1439;
/// Maximum number of items of a playlist.
pub(crate) const ITEMS_MAX: usize = 10_000;
/// Maximum number of ids that an error lists.
const NAMED: usize = 20;

pub(super) const DEFAULT: PlaylistConfiguration = PlaylistConfiguration {
    kind: PlaylistType::Timer,
    interval: 300,
    order: PlaylistOrder::Ordered,
    always_start_on_first_image: false,
};

/// Why a playlist is not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("no playlist with ID {id}")]
    NoPlaylist { id: i64 },
    #[error("a playlist named {name:?} already exists")]
    Taken { name: String },
    #[error(
        "the interval must be {} to {} seconds, not {seconds}",
        INTERVALS.start(),
        INTERVALS.end()
    )]
    Interval { seconds: i64 },
    #[error("a playlist can have at most {ITEMS_MAX} images, not {items}")]
    TooMany { items: usize },
    #[error("no image with ID {}", some_of(ids))]
    UnknownImages { ids: Vec<i64> },
    /// A playlist of this type cannot be dynamic.
    #[error("a playlist of type {kind} cannot be dynamic; only timer and manual can")]
    NotDynamic { kind: PlaylistType },
    /// Images cannot be added to the filters of a playlist, or removed from them.
    #[error("playlist {name:?} is dynamic: its images are those that match its filters")]
    Dynamic { name: String },
    #[error(
        "the time of an image must be {} to {} minutes since midnight, not {minutes}",
        MINUTES.start(),
        MINUTES.end()
    )]
    Time { minutes: i64 },
    /// The images are not one for light and one for dark.
    #[error("a playlist of type appearance needs two images: one for light, one for dark")]
    Tones,
    /// An image has `when`, but the playlist is not of type `appearance`.
    #[error("{image} is for light or dark mode, but the playlist is not of type appearance")]
    When { image: String },
    #[error("an item of a playlist needs either image_id or color")]
    ImageOrColor,
    #[error("color must be #rrggbb or #rgb, not {text:?}")]
    Color { text: String },
    /// An image has neither `time` nor `at`.
    #[error("{image} needs a time, because the type of the playlist is time_of_day")]
    NoTime { image: String },
    #[error("{image} has two times (`time` and `at`): give one")]
    TwoTimes { image: String },
    #[error("the time of an image must be {DAY_TIMES}, not {text:?}")]
    At { text: String },
    #[error("two images have the time {time}")]
    SameTime { time: DayTime },
    /// The time depends on the sun, but no location is set.
    #[error("{time} needs your location, but location.latitude or location.longitude is not set")]
    NoLocation { time: DayTime },
    #[error(transparent)]
    Store(#[from] Error),
}

/// Lists the first of these ids.
fn some_of(ids: &[i64]) -> String {
    let named: Vec<_> = ids.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if ids.len() > NAMED { " and more" } else { "" };
    format!("{}{more}", named.join(", "))
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Returns the configuration with the change applied.
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

/// Fails if a playlist cannot have so many items.
pub(super) fn number(items: usize) -> Result<(), Refusal> {
    match items {
        0..=ITEMS_MAX => Ok(()),
        _ => Err(Refusal::TooMany { items }),
    }
}

/// Checks that all images exist. Their times are checked by [`fit`].
pub(super) fn images(
    connection: &Connection,
    images: &[NewPlaylistItem],
) -> Result<Vec<Row>, Refusal> {
    let mut known = connection.prepare_cached("SELECT 1 FROM image WHERE id = ?1")?;
    let mut unknown = BTreeSet::new();
    let mut rows = Vec::with_capacity(images.len());
    for item in images {
        let image_id = match (item.image_id, &item.color) {
            (Some(id), None) => {
                if !known.exists([id])? {
                    unknown.insert(id);
                }
                id
            }
            (None, Some(text)) => color::marked(text)
                .map(color::image_id)
                .ok_or_else(|| Refusal::Color { text: text.clone() })?,
            (Some(_), Some(_)) | (None, None) => return Err(Refusal::ImageOrColor),
        };
        rows.push(Row {
            image_id,
            time: item.time,
            at: item.at.clone(),
            when: item.when,
        });
    }
    if unknown.is_empty() {
        Ok(rows)
    } else {
        Err(Refusal::UnknownImages {
            ids: unknown.into_iter().collect(),
        })
    }
}

/// Fails if the playlist has a source, but its type does not allow one.
pub(super) fn source(kind: PlaylistType, has_source: bool) -> Result<(), Refusal> {
    match kind {
        PlaylistType::Timer | PlaylistType::Manual => Ok(()),
        PlaylistType::TimeOfDay | PlaylistType::DayOfWeek | PlaylistType::Appearance => {
            if has_source {
                Err(Refusal::NotDynamic { kind })
            } else {
                Ok(())
            }
        }
    }
}

/// Fails if the images do not fit the type of the playlist.
pub(super) fn fit(
    connection: &Connection,
    kind: PlaylistType,
    rows: &[Row],
    located: bool,
) -> Result<(), Refusal> {
    let label = |id| {
        let image = images::assigned(connection, id)?;
        Ok::<_, Error>(image.map_or_else(|| id.to_string(), |image| labelled(&image.name, id)))
    };
    if kind == PlaylistType::Appearance {
        let has = |tone| rows.iter().any(|row| row.when == Some(tone));
        let both = rows.len() == 2 && has(Tone::Light) && has(Tone::Dark);
        return if both { Ok(()) } else { Err(Refusal::Tones) };
    }
    if let Some(row) = rows.iter().find(|row| row.when.is_some()) {
        return Err(Refusal::When {
            image: label(row.image_id)?,
        });
    }
    if kind != PlaylistType::TimeOfDay {
        return Ok(());
    }
    let mut times = BTreeSet::new();
    for &Row {
        image_id,
        time,
        ref at,
        ..
    } in rows
    {
        let time = match (time, at) {
            (Some(minutes), None) if MINUTES.contains(&minutes) => DayTime::Clock(minutes as u16),
            (Some(minutes), None) => return Err(Refusal::Time { minutes }),
            (None, Some(at)) => at.parse().map_err(|()| Refusal::At { text: at.clone() })?,
            (None, None) => {
                return Err(Refusal::NoTime {
                    image: label(image_id)?,
                });
            }
            (Some(_), Some(_)) => {
                return Err(Refusal::TwoTimes {
                    image: label(image_id)?,
                });
            }
        };
        if matches!(time, DayTime::Sun(..)) && !located {
            return Err(Refusal::NoLocation { time });
        }
        if !times.insert(time) {
            return Err(Refusal::SameTime { time });
        }
    }
    Ok(())
}
