//! The library: listing, searching, looking, deleting.

use serde::Deserialize;
use serde_json::json;

use super::super::Failure;
use super::super::arguments::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::table::{Cell, Table};
use super::super::text::{bytes, count};
use super::super::verb::{Argument, Group, Kind, Verb};
use super::{edit, files, gallery, moment};
use crate::wire::{Image, MediaType, Page};

pub(super) const ONE: Argument = Argument::one("ID", Kind::Image, "The image");

pub(super) const GROUP: Group = Group {
    title: "Images",
    verbs: &[
        Verb::new(&["images", "list"], "Images, page by page", list)
            .flags(gallery::FLAGS)
            .help("Several filters are all to be met."),
        Verb::new(&["images", "search"], "Images by words in name or tags", search)
            .arguments(&[Argument::some("WORD", Kind::Text, "All of these, in any case")])
            .flags(gallery::FLAGS),
        Verb::new(&["images", "get"], "Everything about an image", get).arguments(&[ONE]),
        Verb::new(
            &["images", "show"],
            "An image in the terminal, and everything about it",
            picture,
        )
        .arguments(&[ONE])
        .help(
            "By the graphics of kitty or by sixels where the terminal has them, else by half\n\
                 blocks. Where the output is not a terminal it is the JSON of `images get`.",
        ),
        edit::UPDATE,
        edit::RENAME,
        edit::TAG,
        edit::SELECT,
        edit::TAGS,
        files::THUMBNAIL,
        files::RAW,
        Verb::new(&["images", "delete"], "Delete images with their files", delete)
            .arguments(&[Argument::some("ID", Kind::Image, "The images")])
            .help("The files that they were imported from are left alone."),
    ],
};

fn list(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&gallery::place(call, None))?;
    screen.show(&answer, |screen, images| page(screen, images, "`murald import` brings some in"))
}

fn search(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let words: Vec<_> = call.all("WORD").into_iter().filter_map(|word| word.as_str()).collect();
    let answer = call.connect()?.get(&gallery::place(call, Some(&words.join(" "))))?;
    screen.show(&answer, |screen, images| page(screen, images, "fewer words find more"))
}

fn page(screen: &mut Screen, page: Page<Image>, hint: &str) -> Result<(), Failure> {
    let all = page.pagination;
    if all.total_items == 0 {
        return screen.line(format!("no images; {hint}"));
    }
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
    screen.table(&table)?;
    let images = count(all.total_items, "image");
    screen.line(format!("page {} of {}, {images}", all.page, all.total_pages))
}

fn get(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&Place::new(&[&"images", &call.word("ID")]))?;
    screen.show(&answer, |screen, image| show(screen, &image))
}

fn picture(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let connection = call.connect()?;
    let id = call.word("ID");
    let answer = connection.get(&Place::new(&[&"images", &id]))?;
    let thumbnail = Place::new(&[&"images", &id, &"thumbnail"]);
    screen.show(&answer, |screen, image: Image| {
        // Where there is no thumbnail, the words tell enough.
        let file = connection.get(&thumbnail).ok();
        if let (Some(file), Some(terminal)) = (file, screen.terminal())
            && let Some(shown) = super::super::picture::render(&file.body, terminal)
        {
            screen.raw(shown.as_bytes())?;
        }
        show(screen, &image)
    })
}

/// Everything about an image, for people.
pub(super) fn show(screen: &mut Screen, image: &Image) -> Result<(), Failure> {
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
    if let Some(preview) = &image.preview_path {
        sheet.field("preview", preview.display());
    }
    if let Some(web) = &image.web_meta {
        sheet.field("title", &web.title);
        sheet.field("author", &web.author);
        sheet.field("entry", web.entry_path.display());
    }
    screen.table(&sheet)
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
