//! The library: listing, searching, looking, deleting.

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::request::{From, Record, Request};
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
        Verb::asking(&["images", "list"], "List the images of the library, page by page", PAGE)
            .flags(gallery::FLAGS)
            .help("With several filters, only images that pass all of them."),
        Verb::asking(&["images", "search"], "Search images by words in their names and tags", PAGE)
            .arguments(&[Argument::some(
                "WORD",
                Kind::Text,
                "Words that must all be there; capitals do not matter",
            )])
            .flags(gallery::FLAGS),
        Verb::new(&["images", "show"], "Show a picture in the terminal, and all about it", picture)
            .arguments(&[ONE])
            .help(
                "The picture is drawn with kitty's graphics or with sixels where the terminal has\n\
                 them, else with coloured half blocks; with NO_COLOR it is left out.",
            ),
        edit::UPDATE,
        edit::RENAME,
        edit::TAG,
        edit::SELECT,
        edit::TAGS,
        files::THUMBNAIL,
        files::RAW,
        Verb::asking(
            &["images", "delete"],
            "Delete images and their files from the library",
            DELETE,
        )
        .arguments(&[Argument::some("ID", Kind::Image, "The images")])
        .help("The files that they were imported from stay."),
    ],
};

const PAGE: Request = Request::get(gallery::PLACE).shows::<Page<Image>>();
const DELETE: Request =
    Request::delete_with("/images", &[("ids", From::All("ID"))]).shows::<Deleted>();

impl Record for Page<Image> {
    fn show(self, call: &Call, screen: &mut Screen) -> Result<(), Failure> {
        page(screen, &self, call)
    }
}

impl Record for Image {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        show(screen, &self)
    }
}

fn page(screen: &mut Screen, page: &Page<Image>, call: &Call) -> Result<(), Failure> {
    let all = &page.pagination;
    let images = count(all.total_items, "image");
    if all.total_items == 0 {
        return screen.line(match gallery::filters(call) {
            true => "no image matches",
            false => "the library is empty; `murald import PATH` brings images in",
        });
    }
    if page.data.is_empty() {
        return screen.line(format!(
            "no page {}; {images} on {}",
            all.page,
            count(all.total_pages, "page")
        ));
    }
    let mut table = Table::new(&[">ID", "NAME", "=TYPE", ">PIXELS", ">SIZE", "COLORS", "TAGS"]);
    let swatches = screen.terminal().is_some_and(|terminal| terminal.color);
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
    screen.line(format!("page {} of {}, {images}", all.page, all.total_pages))
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

impl Record for Deleted {
    fn show(self, call: &Call, screen: &mut Screen) -> Result<(), Failure> {
        let rest = match self.deleted < call.all("ID").len() as u64 {
            true => "; there are no others of these",
            false => "",
        };
        screen.line(format!("{} deleted{rest}", count(self.deleted, "image")))
    }
}
