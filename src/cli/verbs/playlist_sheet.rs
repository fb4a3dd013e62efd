//! One playlist as a sheet, and how commands name it.

use std::collections::HashMap;
use std::fmt::Display;

use serde_json::{Map, Value};

use super::super::Error;
use super::super::call::{Call, shown};
use super::super::connection::{Answer, Connection, RequestPath};
use super::super::stdout::Stdout;
use super::super::table::{Cell, CellStyle, Table};
use super::super::terminal::span;
use super::super::verb::{Argument, Kind};
use super::gallery;
use crate::wire::{Image, MediaType, Page, Playlist, PlaylistItem, PlaylistType};

pub(super) const ONE: Argument = Argument::one("PLAYLIST", Kind::Playlist, "The playlist");
pub(super) fn place(call: &Call) -> RequestPath {
    RequestPath::new(&[&"playlists", &call.word("PLAYLIST")])
}

/// On a terminal so many images are shown; elsewhere all are. As many as the daemon gives at once.
const SHOWN: usize = 200;

const COLUMNS: &[&str] = &[">PLACE", ">ID", "NAME", "=TYPE", "=WHEN"];

/// An image in its place.
struct Row {
    id: i64,
    name: String,
    media_type: MediaType,
    when: String,
}

/// Everything about a playlist, for people.
pub(super) fn people(
    stdout: &mut Stdout,
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
    let is_cut = stdout.terminal().is_some();
    let (rows, all) = match &playlist.source {
        Some(source) => {
            sheet.field("finds", finds(source));
            found(playlist, is_cut, connection)?
        }
        None => (listed(playlist, is_cut, connection)?, playlist.images.len() as u64),
    };
    sheet.field("images", all);
    stdout.table(&sheet)?;
    if rows.is_empty() {
        return Ok(());
    }
    stdout.note("")?;
    let more = all.saturating_sub(rows.len() as u64);
    let mut table = Table::new(COLUMNS);
    for (Row { id, name, media_type, when }, place) in rows.into_iter().zip(1_u64..) {
        table.row([place.into(), id.into(), name.into(), media_type.into(), when.into()]);
    }
    stdout.table(&table)?;
    if more > 0 { stdout.note(format!("and {more} more")) } else { Ok(()) }
}

/// The filters of a playlist that lives.
fn finds(source: &Map<String, Value>) -> String {
    let filters = source.iter().map(|(name, value)| format!("{name}={}", shown(value)));
    let filters: Vec<String> = filters.collect();
    if filters.is_empty() { "every image".to_owned() } else { filters.join(" ") }
}

/// What a playlist that lives finds now, and how much that is in all.
fn found(
    playlist: &Playlist,
    is_cut: bool,
    connection: &Connection,
) -> Result<(Vec<Row>, u64), Error> {
    let (images, all) = if is_cut {
        let page = images(playlist, 1, SHOWN, connection)?;
        (page.data, page.pagination.total_items)
    } else {
        let path: &[&dyn Display] = &[&"playlists", &playlist.id, &"images"];
        let images = gallery::every(connection, path, |place| place)?;
        let images: Vec<Image> = Answer::of(&images)?.read()?;
        let all = images.len() as u64;
        (images, all)
    };
    let row =
        |Image { id, name, media_type, .. }| Row { id, name, media_type, when: String::new() };
    Ok((images.into_iter().map(row).collect(), all))
}

/// The images of a playlist that has a list of them.
fn listed(playlist: &Playlist, is_cut: bool, connection: &Connection) -> Result<Vec<Row>, Error> {
    let number = playlist.images.len().min(if is_cut { SHOWN } else { usize::MAX });
    let mut names = HashMap::new();
    for page in 1..=number.div_ceil(SHOWN) {
        let page = images(playlist, page, SHOWN, connection)?;
        names.extend(page.data.into_iter().map(|image| (image.id, image.name)));
    }
    let row = |(place, item): (usize, &PlaylistItem)| Row {
        id: item.image_id,
        // The list may have changed meanwhile, and what a page is of.
        name: names.get(&item.image_id).cloned().unwrap_or_else(|| name(connection, item.image_id)),
        media_type: item.media_type,
        when: when(playlist, place),
    };
    Ok(playlist.images[..number].iter().enumerate().map(row).collect())
}

/// A page of the images of a playlist.
pub(super) fn images(
    playlist: &Playlist,
    page: usize,
    per_page: usize,
    connection: &Connection,
) -> Result<Page<Image>, Error> {
    let place = RequestPath::new(&[&"playlists", &playlist.id, &"images"]);
    let place = place.query("per_page", Some(per_page)).query("page", Some(page));
    connection.get(&place)?.read()
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
    let image = connection.get(&RequestPath::new(&[&"images", &image])).and_then(|it| it.read());
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
        Some(playback) if playback.was_running => Cell::from("running").look(CellStyle::Good),
        _ => Cell::from("stopped").look(CellStyle::Dim),
    }
}
