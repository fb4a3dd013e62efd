//! The library: listing, looking, deleting.

use serde::Deserialize;
use serde_json::json;

use super::super::Failure;
use super::super::arguments::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::table::{Cell, Table};
use super::super::text::{bytes, count};
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::{MEDIA_TYPES, moment};
use crate::wire::{Image, MediaType, Page};

pub(super) const GROUP: Group = Group {
    title: "Images",
    verbs: &[
        Verb::new(&["images", "list"], "Images, page by page", list)
            .flags(&[PAGE, PER_PAGE, SORT_BY, SORT_ORDER, MEDIA_TYPE]),
        Verb::new(&["images", "get"], "Everything about an image", get)
            .arguments(&[Argument::one("ID", Kind::Image, "The image")]),
        Verb::new(&["images", "delete"], "Delete images with their files", delete)
            .arguments(&[Argument::some("ID", Kind::Image, "The images")])
            .help("The files that they were imported from are left alone."),
    ],
};

const PAGE: Flag = Flag::value("--page", "N", Kind::Count, "Which page, from 1");
const PER_PAGE: Flag =
    Flag::value("--per-page", "N", Kind::Count, "Images on a page, at most 200; 50 without");
const SORT_BY: Flag = Flag::value(
    "--sort-by",
    "WHAT",
    Kind::Words(&["name", "imported_at", "file_size", "hue"]),
    "What decides the order",
);
const SORT_ORDER: Flag = Flag::value(
    "--sort-order",
    "ORDER",
    Kind::Words(&["asc", "desc"]),
    "Rising or falling; desc without",
);
const MEDIA_TYPE: Flag =
    Flag::value("--media-type", "TYPE", Kind::Words(MEDIA_TYPES), "Only these");

fn list(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let place = Place::new(&[&"images"])
        .query("page", call.query("--page"))
        .query("per_page", call.query("--per-page"))
        .query("sort_by", call.query("--sort-by"))
        .query("sort_order", call.query("--sort-order"))
        .query("media_type", call.query("--media-type"));
    let answer = call.connect()?.get(&place)?;
    screen.show(&answer, page)
}

fn page(screen: &mut Screen, page: Page<Image>) -> Result<(), Failure> {
    let mut table = Table::new(&[">ID", "NAME", "TYPE", ">PIXELS", ">SIZE", "COLORS", "TAGS"]);
    let swatches = screen.terminal().is_some_and(|terminal| terminal.true_color);
    for image in &page.data {
        // As words they would take the room of the name.
        let shown = if swatches { image.colors.as_slice() } else { &[] };
        table.row([
            image.id.into(),
            (&image.name).into(),
            image.format.into(),
            format!("{}x{}", image.width, image.height).into(),
            bytes(image.file_size).into(),
            Cell::palette(shown),
            image.tags.join(", ").into(),
        ]);
    }
    let all = page.pagination;
    if all.total_items == 0 {
        return screen.line("no images; `murald import PATH...` brings some in");
    }
    screen.table(&table)?;
    let images = count(all.total_items, "image");
    screen.line(format!("page {} of {}, {images}", all.page, all.total_pages))
}

fn get(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&Place::new(&[&"images", &call.word("ID")]))?;
    screen.show(&answer, |screen, image: Image| screen.table(&sheet(&image)))
}

fn sheet(image: &Image) -> Table {
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
    sheet.field("size", bytes(image.file_size));
    sheet.field("tags", image.tags.join(", "));
    sheet.field("colors", Cell::palette(&image.colors));
    sheet.field("folder", image.folder_id.map_or_else(|| "root".to_owned(), |id| id.to_string()));
    sheet.field("selected", if image.is_selected { "yes" } else { "no" });
    sheet.field("imported", moment(image.imported_at));
    sheet.field("file", image.path.display());
    sheet.field("from", image.source_path.display());
    sheet.field("checksum", &image.checksum);
    if let Some(web) = &image.web_meta {
        sheet.field("title", &web.title);
        sheet.field("author", &web.author);
        sheet.field("entry", web.entry_path.display());
    }
    sheet
}

#[derive(Deserialize)]
struct Deleted {
    deleted: u64,
}

fn delete(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let ids = call.all("ID");
    let wanted = ids.len() as u64;
    let answer = call.connect()?.delete(&Place::new(&[&"images"]), Some(&json!({"ids": ids})))?;
    screen.show(&answer, |screen, Deleted { deleted }| {
        let rest = if deleted < wanted { "; the others are not there" } else { "" };
        screen.line(format!("{} deleted{rest}", count(deleted, "image")))
    })
}
