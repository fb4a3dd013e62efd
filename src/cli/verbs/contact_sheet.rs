//! A grid of thumbnails in the terminal, each with its id and name.

use serde_json::Value;

use super::super::Error;
use super::super::call::Call;
use super::super::columns::{items, number, text};
use super::super::connection::{Connection, RequestPath};
use super::super::picture::{Grid, Wish};
use super::super::stdout::Stdout;
use super::super::terminal::{count, cut, harmless, width};
use super::super::verb::{Flag, Verb};
use super::filters::{self, LISTED};
use super::image_sheet::{IMAGES, LIST, PICTURE, SIZE, list, warn_of_more};

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
    let terminal = wish.terminal(stdout.terminal()).filter(|_| !stdout.wants_data());
    let Some(terminal) = terminal else {
        return list(call, stdout);
    };
    let grid = Grid::new(terminal, &wish, GAP);
    let is_screenful = stdout.terminal().is_some() && !call.has("--all") && !call.has("--per-page");
    let page = filters::page(call, is_screenful.then(|| grid.on_a_screen()))?;
    let images = items(&page, "data");
    if images.is_empty() {
        return LIST.tell(call, stdout, &page);
    }
    if !is_screenful {
        warn_of_more(call, stdout, &page);
    }
    draw(&call.connect()?, stdout, images, &grid)?;
    let number = |name| number(&page["pagination"], name);
    let (at, pages) = (number("page"), number("total_pages"));
    if is_screenful && at < pages {
        let images = count(number("total_items"), "image");
        let next = at + 1;
        stdout.note(format!("page {at} of {pages}, {images}; --page {next} for more"))?;
    }
    Ok(())
}

/// Draws row by row, so that the first rows are visible while others are loaded.
fn draw(
    connection: &Connection,
    stdout: &mut Stdout,
    images: &[Value],
    grid: &Grid,
) -> Result<(), Error> {
    for row in images.chunks(grid.across()) {
        let file = |image: &Value| {
            let thumbnail = RequestPath::new(&[&"images", &image["id"], &"thumbnail"]);
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

fn captions(row: &[Value], columns: usize) -> String {
    let mut line = String::new();
    for image in row {
        let text = format!("{} {}", image["id"], text(image, "name"));
        let text = cut(&harmless(&text), columns);
        let fill = " ".repeat(columns + GAP - width(&text).min(columns));
        line.push_str(&text.replace('\n', " "));
        line.push_str(&fill);
    }
    format!("{}\n\n", line.trim_end())
}
