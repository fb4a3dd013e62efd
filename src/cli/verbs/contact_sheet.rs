//! A grid of thumbnails in the terminal, each with its id and name.

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::picture::{Grid, Wish};
use super::super::stdout::Stdout;
use super::super::terminal::Terminal;
use super::super::terminal::{cut, harmless, width};
use super::super::verb::{Flag, Verb};
use super::gallery;
use super::image_list::{list, table, tell_of_the_rest};
use super::image_sheet::{PICTURE, SIZE};
use crate::wire::{Image, Page};

/// Columns between two pictures.
const GAP: usize = 2;
const FLAGS: &[Flag] =
    &gallery::with::<2, { 2 + gallery::FLAGS.len() }>([SIZE, PICTURE], gallery::FLAGS);

pub(super) const SHEET: Verb =
    Verb::new(&["images", "sheet"], "Show a contact sheet of the library", sheet)
        .flags(FLAGS)
        .help(
            "    murald images sheet --tags sea --all\n\n\
             Drawn as by `images show`; where nothing can be drawn it is the list.",
        );

fn sheet(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let wish = Wish::of(call.text("--size"), call.text("--picture"))?;
    let assumed = || wish.is_forced().then(Terminal::assumed);
    let terminal = stdout.terminal().or_else(assumed).filter(|it| wish.is_drawn(*it));
    let Some(terminal) = terminal.filter(|_| !stdout.wants_data()) else {
        return list(call, stdout);
    };
    let page: Page<Image> = gallery::answer(call)?.read()?;
    if page.data.is_empty() {
        return table(stdout, &page, call);
    }
    tell_of_the_rest(call, stdout, page.data.len(), &page.pagination);
    draw(&call.connect()?, stdout, &page.data, terminal, &wish)
}

/// Row by row: the first ones are seen while others are on their way.
fn draw(
    connection: &Connection,
    stdout: &mut Stdout,
    images: &[Image],
    terminal: Terminal,
    wish: &Wish,
) -> Result<(), Error> {
    let grid = Grid::new(terminal, wish, GAP)?;
    for row in images.chunks(grid.across()) {
        let file = |image: &Image| {
            let thumbnail = RequestPath::new(&[&"images", &image.id, &"thumbnail"]);
            // Where there is none, the name stands alone.
            connection.get(&thumbnail).map(|answer| answer.body).unwrap_or_default()
        };
        let files: Vec<Vec<u8>> = row.iter().map(file).collect();
        stdout.raw(grid.row(&files).as_bytes())?;
        stdout.raw(captions(row, grid.columns()).as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

fn captions(row: &[Image], columns: usize) -> String {
    let mut line = String::new();
    for image in row {
        let text = cut(&harmless(&format!("{} {}", image.id, image.name)), columns);
        let fill = " ".repeat(columns + GAP - width(&text).min(columns));
        line.push_str(&text.replace('\n', " "));
        line.push_str(&fill);
    }
    format!("{}\n\n", line.trim_end())
}
