//! One image as a sheet, and how commands name one image or several.

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::picture;
use super::super::stdout::Stdout;
use super::super::table::{Cell, Table};
use super::super::terminal::bytes;
use super::super::verb::{Argument, Flag, Kind};
use super::moment;
use crate::wire::{Data, Folder, Image, MediaType, Playlist};

pub(super) const ONE: Argument = Argument::one("IMAGE", Kind::Image, "The image");
pub(super) const MANY: Argument =
    Argument::any("IMAGE", Kind::Image, "The images; - reads them from standard input");

pub(super) const SIZE: Flag =
    Flag::value("--size", "COLUMNS[xROWS]", Kind::Text, "How large a picture is");
pub(super) const PICTURE: Flag = Flag::value(
    "--picture",
    "HOW",
    Kind::Words(picture::WORDS),
    "How to draw it: auto (the default), as half blocks even into a pipe, or not at all",
);

/// Everything about an image, for people.
pub(super) fn show(call: &Call, stdout: &mut Stdout, image: &Image) -> Result<(), Error> {
    stdout.table(&sheet(image, &call.connect()?))
}

pub(super) fn sheet(image: &Image, connection: &Connection) -> Table {
    let mut sheet = Table::sheet();
    sheet.field("id", image.id);
    sheet.field("name", &image.name);
    let moving = if image.animated { ", animated" } else { "" };
    sheet.field("type", format!("{} ({}{moving})", image.media_type, image.format));
    sheet.field("pixels", format!("{}x{}", image.width, image.height));
    if image.media_type == MediaType::Video {
        sheet.field("duration", format!("{:.2} s", image.duration));
        sheet.field("audio", if image.audio_enabled { "on" } else { "off" });
    }
    sheet.field("size", Cell::from(bytes(image.file_size)).raw(image.file_size));
    sheet.field("tags", Cell::list(&image.tags));
    sheet.field("colors", Cell::palette(&image.colors));
    sheet.field("folder", folder(image.folder_id, connection));
    let playlists = playlists(image.id, connection);
    if !playlists.is_empty() {
        sheet.field("playlists", Cell::list(&playlists));
    }
    sheet.field("selected", if image.is_selected { "yes" } else { "no" });
    sheet.field("imported", Cell::from(moment(image.imported_at)).raw(image.imported_at));
    sheet.field("file", image.path.display());
    sheet.field("from", image.source_path.display());
    sheet.field("checksum", &image.checksum);
    if let Some(preview) = &image.preview_path {
        sheet.field("preview", preview.display());
    }
    if let Some(web) = &image.web_meta {
        sheet.field("title", &web.title);
        sheet.field("author", &web.author);
        sheet.field("entry", web.entry_path.display());
    }
    sheet
}

/// `sea/bay (2)`; where its names cannot be had, its id must do.
fn folder(id: Option<i64>, connection: &Connection) -> Cell {
    let Some(id) = id else { return "root".into() };
    let path = connection.get(&RequestPath::new(&[&"folders", &id, &"path"]));
    match path.and_then(|answer| answer.read::<Data<Folder>>()) {
        Ok(path) => {
            let names: Vec<String> = path.data.into_iter().map(|folder| folder.name).collect();
            Cell::from(format!("{} ({id})", names.join("/"))).raw(id)
        }
        Err(_) => id.into(),
    }
}

/// Those that an image was put into.
fn playlists(image: i64, connection: &Connection) -> Vec<String> {
    let all = connection.get(&RequestPath::new(&[&"playlists"])).and_then(|answer| answer.read());
    let all: Vec<Playlist> = all.unwrap_or_default();
    let has = |playlist: &&Playlist| playlist.images.iter().any(|item| item.image_id == image);
    all.iter().filter(has).map(|playlist| format!("{} ({})", playlist.name, playlist.id)).collect()
}
