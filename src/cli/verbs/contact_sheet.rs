//! A grid of thumbnails in the terminal, each with its id and name.

use serde::Deserialize;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::picture::{Grid, Wish};
use super::super::stdout::Stdout;
use super::super::terminal::Terminal;
use super::super::terminal::{count, cut, harmless, width};
use super::super::verb::{Flag, Verb};
use super::filters::{self, LISTED};
use super::image_sheet::{IMAGES, PICTURE, SIZE, list, table, warn_of_more};
use crate::wire::{Page, Pagination};

/// The fields of an image that its caption has.
#[derive(Deserialize)]
struct Captioned {
    id: i64,
    name: String,
}

/// Columns between two pictures.
const GAP: usize = 2;

pub(super) const SHEET: Verb =
    Verb::own(&["images", "sheet"], "Show a contact sheet of the library", sheet)
        .flags(joined!(LISTED; SIZE, PICTURE))
        .shows(&[&IMAGES])
        .help(
            "    murald images sheet --tags sea --all\n\n\
             Drawn as by `images show`, as many images as the screen has space for. If pictures cannot\n\
             be drawn, the output is the list.",
        );

fn sheet(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let wish = Wish::of(call.text("--size"), call.text("--picture"))?;
    let assumed = || wish.is_forced().then(Terminal::assumed);
    let terminal = stdout.terminal().or_else(assumed).filter(|it| wish.is_drawn(*it));
    let Some(terminal) = terminal.filter(|_| !stdout.wants_data()) else {
        return list(call, stdout);
    };
    let grid = Grid::new(terminal, &wish, GAP);
    let is_screenful = stdout.terminal().is_some() && !call.has("--all") && !call.has("--per-page");
    let answer = filters::answer(call, is_screenful.then(|| grid.on_a_screen()))?;
    let page: Page<Captioned> = answer.read()?;
    if page.data.is_empty() {
        return table(stdout, &answer.read()?, call);
    }
    if !is_screenful {
        warn_of_more(call, stdout, &answer.read()?);
    }
    draw(&call.connect()?, stdout, &page.data, &grid)?;
    let Pagination { page, total_pages, total_items, .. } = page.pagination;
    if is_screenful && page < total_pages {
        let images = count(total_items, "image");
        let next = page + 1;
        stdout.note(format!("page {page} of {total_pages}, {images}; --page {next} for more"))?;
    }
    Ok(())
}

/// Row by row: the first ones are seen while others are loaded.
fn draw(
    connection: &Connection,
    stdout: &mut Stdout,
    images: &[Captioned],
    grid: &Grid,
) -> Result<(), Error> {
    for row in images.chunks(grid.across()) {
        let file = |image: &Captioned| {
            let thumbnail = RequestPath::new(&[&"images", &image.id, &"thumbnail"]);
            // An image without a thumbnail has its name alone.
            connection.get(&thumbnail).map(|answer| answer.body).unwrap_or_default()
        };
        let files: Vec<Vec<u8>> = row.iter().map(file).collect();
        grid.draw(stdout, &files)?;
        stdout.raw(captions(row, grid.columns()).as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

fn captions(row: &[Captioned], columns: usize) -> String {
    let mut line = String::new();
    for image in row {
        let text = cut(&harmless(&format!("{} {}", image.id, image.name)), columns);
        let fill = " ".repeat(columns + GAP - width(&text).min(columns));
        line.push_str(&text.replace('\n', " "));
        line.push_str(&fill);
    }
    format!("{}\n\n", line.trim_end())
}
