//! One playlist, for people, and how commands name it.

use super::super::Error;
use super::super::call::{Call, shown};
use super::super::connection::{Connection, Place};
use super::super::screen::Screen;
use super::super::table::{Cell, Look, Table};
use super::super::text::span;
use super::super::verb::{Argument, Kind};
use crate::wire::{Image, Page, Playlist, PlaylistType};

pub(super) const ONE: Argument = Argument::one("PLAYLIST", Kind::Playlist, "The playlist");
pub(super) fn place(call: &Call) -> Place {
    Place::new(&[&"playlists", &call.word("PLAYLIST")])
}

/// Names are looked up for so many images; the others are told by their ids.
const NAMES: usize = 200;

const COLUMNS: &[&str] = &[">PLACE", ">ID", "NAME", "=TYPE", "=WHEN"];

/// Everything about a playlist, for people.
pub(super) fn people(
    screen: &mut Screen,
    playlist: &Playlist,
    connection: &Connection,
) -> Result<(), Error> {
    let mut sheet = Table::sheet();
    sheet.field("id", playlist.id);
    sheet.field("name", &playlist.name);
    sheet.field("changes", changes(playlist));
    sheet.field("order", playlist.configuration.order);
    let first = playlist.configuration.always_start_on_first_image;
    sheet.field("starts", if first { "with the first image" } else { "where it last was" });
    sheet.field("state", state(playlist));
    if playlist.source.is_some() {
        return people_living(screen, sheet, playlist, connection);
    }
    sheet.field("images", playlist.images.len());
    screen.table(&sheet)?;
    if playlist.images.is_empty() {
        return Ok(());
    }
    screen.note("")?;
    let mut table = Table::new(COLUMNS);
    for (place, item) in playlist.images.iter().enumerate() {
        table.row([
            (place + 1).into(),
            item.image_id.into(),
            if place < NAMES { name(connection, item.image_id) } else { String::new() }.into(),
            item.media_type.into(),
            when(playlist, place).into(),
        ]);
    }
    screen.table(&table)
}

/// What a playlist that lives finds now.
fn people_living(
    screen: &mut Screen,
    mut sheet: Table,
    playlist: &Playlist,
    connection: &Connection,
) -> Result<(), Error> {
    let source = playlist.source.iter().flatten();
    let filters: Vec<String> =
        source.map(|(name, value)| format!("{name}={}", shown(value))).collect();
    let found = images(playlist, NAMES, connection)?;
    let (first, all) = (found.data.len() as u64, found.pagination.total_items);
    let filters = if filters.is_empty() { "every image".to_owned() } else { filters.join(" ") };
    sheet.field("finds", filters);
    sheet.field("images", all);
    screen.table(&sheet)?;
    if found.data.is_empty() {
        return Ok(());
    }
    screen.note("")?;
    let mut table = Table::new(COLUMNS);
    for (image, place) in found.data.iter().zip(1_u64..) {
        let when = Cell::default();
        table.row([
            place.into(),
            image.id.into(),
            (&image.name).into(),
            image.media_type.into(),
            when,
        ]);
    }
    screen.table(&table)?;
    if first < all { screen.note(format!("and {} more", all - first)) } else { Ok(()) }
}

/// The first images of a playlist.
pub(super) fn images(
    playlist: &Playlist,
    number: usize,
    connection: &Connection,
) -> Result<Page<Image>, Error> {
    let place = Place::new(&[&"playlists", &playlist.id, &"images"]);
    connection.get(&place.query("per_page", Some(number)))?.read()
}

/// The time or the day of an image, where it has one.
fn when(playlist: &Playlist, place: usize) -> String {
    const DAYS: [&str; 7] =
        ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let last = place + 1 == playlist.images.len();
    let item = &playlist.images[place];
    match (playlist.configuration.kind, item.time) {
        (PlaylistType::Appearance, _) => {
            item.when.map(|tone| tone.as_str().to_owned()).unwrap_or_default()
        }
        (PlaylistType::TimeOfDay, None) => item.at.clone().unwrap_or_default(),
        (PlaylistType::TimeOfDay, Some(time)) => format!("{:02}:{:02}", time / 60, time % 60),
        // The last one serves the rest of the week.
        (PlaylistType::DayOfWeek, _) if last && place < 6 => format!("from {}", DAYS[place]),
        (PlaylistType::DayOfWeek, _) => DAYS.get(place).copied().unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

pub(super) fn name(connection: &Connection, image: i64) -> String {
    let image = connection.get(&Place::new(&[&"images", &image])).and_then(|it| it.read());
    image.map(|image: Image| image.name).unwrap_or_default()
}

/// When it changes.
pub(super) fn changes(playlist: &Playlist) -> String {
    match playlist.configuration.kind {
        PlaylistType::Timer => format!("every {}", span(playlist.configuration.interval.into())),
        PlaylistType::Manual => "by hand".to_owned(),
        PlaylistType::TimeOfDay => "at times of day".to_owned(),
        PlaylistType::DayOfWeek => "by day of the week".to_owned(),
        PlaylistType::Appearance => "with light and dark".to_owned(),
    }
}

/// What it does now.
pub(super) fn state(playlist: &Playlist) -> Cell {
    match &playlist.playback {
        Some(playback) if playback.was_running && playback.paused => "paused".into(),
        Some(playback) if playback.was_running => Cell::from("running").look(Look::Good),
        _ => Cell::from("stopped").look(Look::Dim),
    }
}
