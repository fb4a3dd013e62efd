//! The library: listing, searching, looking.

use serde_json::Value;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::picture;
use super::super::request::Record;
use super::super::screen::Screen;
use super::super::table::{Cell, Table};
use super::super::terminal::Terminal;
use super::super::text::{bytes, count};
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::delete::DELETE;
use super::favourite::FAVOURITE;
use super::image_sheet::{ONE, sheet, show};
use super::{edit, files, gallery};
use crate::wire::{Image, Page};

pub(super) const GROUP: Group = Group {
    title: "Images",
    verbs: &[
        Verb::new(&["images", "list"], "List the images of the library", list)
            .flags(gallery::FLAGS)
            .help("With several filters, only images that pass all of them."),
        Verb::new(&["images", "search"], "Search images by words in their names and tags", list)
            .arguments(&[Argument::some(
                "WORD",
                Kind::Text,
                "Words that must all be there; capitals do not matter",
            )])
            .flags(gallery::FLAGS),
        Verb::new(&["images", "show"], "Show a picture in the terminal, and all about it", picture)
            .arguments(&[ONE])
            .flags(&[SIZE, PICTURE])
            .help(
                "The picture is drawn with kitty's graphics or with sixels where the terminal has\n\
                 them, else with coloured half blocks; with NO_COLOR it is left out, unless --picture\n\
                 says how it is to be drawn.",
            ),
        edit::UPDATE,
        edit::RENAME,
        edit::TAG,
        edit::MOVE,
        edit::SELECT,
        edit::TAGS,
        files::THUMBNAIL,
        files::RAW,
        DELETE,
        FAVOURITE,
    ],
};

const SIZE: Flag = Flag::value("--size", "COLUMNS[xROWS]", Kind::Text, "How large the picture is");
const PICTURE: Flag = Flag::value(
    "--picture",
    "HOW",
    Kind::Words(picture::WORDS),
    "How it is drawn, whatever the terminal says of itself",
);
impl Record for Image {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Error> {
        show(screen, &self)
    }
}

fn list(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let answer = gallery::answer(call)?;
    if screen.is_json() {
        return screen.body(&answer.body);
    }
    let page: Page<Value> = answer.read()?;
    let (shown, total) = (page.data.len() as u64, page.pagination.total_items);
    if shown < total && !call.has("--page") {
        screen.warn(format!("{shown} of {}; --all shows every one", count(total, "image")));
    }
    screen.show(&answer, |screen, page: Page<Image>| table(screen, &page, call))
}

fn table(screen: &mut Screen, page: &Page<Image>, call: &Call) -> Result<(), Error> {
    let all = &page.pagination;
    let images = count(all.total_items, "image");
    if all.total_items == 0 {
        return screen.note(match gallery::filters(call) {
            true => "no image matches",
            false => "the library is empty; `murald import PATH` brings images in",
        });
    }
    if page.data.is_empty() {
        let pages = count(all.total_pages, "page");
        return screen.note(format!("no page {}; {images} on {pages}", all.page));
    }
    let mut table = Table::new(&[">ID", "NAME", "=TYPE", ">PIXELS", ">SIZE", "TAGS", "COLORS"]);
    let swatches = screen.terminal().is_none_or(|terminal| terminal.color);
    for image in &page.data {
        // As words they would take the room of the name.
        let shown = if swatches { image.colors.as_slice() } else { &[] };
        table.row([
            image.id.into(),
            (&image.name).into(),
            image.media_type.into(),
            format!("{}x{}", image.width, image.height).into(),
            Cell::from(bytes(image.file_size)).raw(image.file_size),
            Cell::list(&image.tags),
            Cell::palette(shown),
        ]);
    }
    screen.table(&table)?;
    match call.has("--page") {
        true => screen.note(format!("page {} of {}, {images}", all.page, all.total_pages)),
        false if (page.data.len() as u64) < all.total_items => Ok(()),
        false => screen.note(images),
    }
}

fn picture(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let connection = call.connect()?;
    let wish = picture::Wish::of(call.text("--size"), call.text("--picture"))?;
    let id = call.word("IMAGE");
    let answer = connection.get(&Place::new(&[&"images", &id]))?;
    let thumbnail = Place::new(&[&"images", &id, &"thumbnail"]);
    screen.show(&answer, |screen, image: Image| {
        let sheet = sheet(&image);
        let assumed = || wish.is_forced().then(Terminal::assumed);
        if let Some(terminal) = screen.terminal().or_else(assumed)
            && wish.is_drawn(terminal)
            // Where there is no thumbnail, the words tell enough.
            && let Ok(file) = connection.get(&thumbnail)
            && let Some(shown) = picture::render(&file.body, terminal, &wish, sheet.lines())?
        {
            screen.raw(shown.as_bytes())?;
        }
        screen.table(&sheet)
    })
}
