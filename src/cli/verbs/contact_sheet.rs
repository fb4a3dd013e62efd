//! Draws a grid of thumbnails in the terminal, each with its id and name. The pictures of a row are
//! drawn as a single wide one, so that any terminal can show them side by side.

use serde_json::Value;

use super::filters::{self, LISTED};
use super::image_sheet::{IMAGES, LIST, PICTURE, SIZE, list, warn_of_more};
use super::{
    Call, Connection, Error, Flag, Raster, RequestPath, Stdout, Terminal, Verb, Wish, cell,
    chafa_file, count, cut, decoded, draw_with_chafa, half_blocks, harmless, items, number, text,
    width,
};
use crate::media::fit;

/// Columns between two pictures.
const GAP: usize = 2;
/// Columns and rows of one picture if no size is given.
const PICTURE_SIZE: (u32, u32) = (18, 6);
/// Lines beneath each row of pictures, for names and a gap.
const CAPTION: u32 = 2;
/// Lines of the screen that the prompt and the number of the page need.
const BENEATH: u32 = 2;

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
    let wish = Wish::from_flags(call.text("--size"), call.text("--picture"))?;
    let terminal = wish
        .terminal(stdout.terminal())
        .filter(|_| !stdout.wants_data());
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
        stdout.note(format!(
            "page {at} of {pages}, {images}; --page {next} for more"
        ))?;
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
            // Only the name of an image without a thumbnail is shown.
            connection
                .get(&thumbnail)
                .map(|answer| answer.body)
                .unwrap_or_default()
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

/// How pictures are laid side by side.
struct Grid {
    with_chafa: bool,
    terminal: Terminal,
    /// The columns and rows of one picture.
    size: (u32, u32),
    /// Columns between two pictures.
    gap: u32,
    across: u32,
}

impl Grid {
    fn new(terminal: Terminal, wish: &Wish, gap: usize) -> Self {
        let whole = u32::try_from(terminal.columns).unwrap_or(u32::MAX).max(1);
        let gap = u32::try_from(gap).unwrap_or_default();
        let (columns, rows) = match wish.size {
            Some((columns, Some(rows))) => (columns, rows),
            Some((columns, None)) => (columns, (columns * PICTURE_SIZE.1).div_ceil(PICTURE_SIZE.0)),
            None => PICTURE_SIZE,
        };
        let columns = columns.min(whole);
        let across = ((whole + gap) / (columns + gap)).max(1);
        Self {
            with_chafa: wish.is_for_chafa(),
            terminal,
            size: (columns, rows),
            gap,
            across,
        }
    }

    /// The number of pictures in a row.
    fn across(&self) -> usize {
        self.across as usize
    }

    /// Columns of one picture.
    fn columns(&self) -> usize {
        self.size.0 as usize
    }

    /// The number of pictures that fit on the screen; at least one row.
    fn on_a_screen(&self) -> u32 {
        self.on(cell().1)
    }

    fn on(&self, lines: u32) -> u32 {
        self.across * (lines.saturating_sub(BENEATH) / (self.size.1 + CAPTION)).max(1)
    }

    /// Draws a row of thumbnails. A file that cannot be decoded leaves its place empty.
    fn draw(&self, stdout: &mut Stdout, files: &[Vec<u8>]) -> Result<(), Error> {
        let count = u32::try_from(files.len()).unwrap_or(self.across);
        let size = (
            count * self.size.0 + count.saturating_sub(1) * self.gap,
            self.size.1,
        );
        if self.with_chafa {
            let file = chafa_file(&self.strip(files, size.0, cell().0));
            if draw_with_chafa(stdout, &file, size, &["--stretch"])? {
                return Ok(());
            }
        }
        stdout.raw(self.blocks(files, size.0).as_bytes())
    }

    fn blocks(&self, files: &[Vec<u8>], columns: u32) -> String {
        half_blocks(&self.strip(files, columns, (1, 2)), self.terminal)
    }

    /// The pictures of a row in one raster, `columns` wide, with `unit` pixels per cell.
    fn strip(&self, files: &[Vec<u8>], columns: u32, unit: (u32, u32)) -> Raster {
        let frame = (self.size.0 * unit.0, self.size.1 * unit.1);
        let mut strip = Raster::black(columns * unit.0, frame.1);
        for (at, file) in (0..).zip(files) {
            let Some((picture, size)) = decoded(file) else {
                continue;
            };
            let (width, height) = fit(size, frame);
            let one = Raster::from_picture(&picture.resized(width.max(1), height.max(1)));
            let left = at * (self.size.0 + self.gap) * unit.0;
            strip.paste(
                &one,
                left + (frame.0 - one.width) / 2,
                (frame.1 - one.height) / 2,
            );
        }
        strip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_as_many_pictures_as_fit() {
        let check = |columns, size, across, each| {
            let terminal = Terminal {
                columns,
                color: true,
                true_color: true,
            };
            let grid = Grid::new(
                terminal,
                &Wish::from_flags(size, Some("blocks")).unwrap(),
                2,
            );
            assert_eq!(
                (grid.across(), grid.columns()),
                (across, each),
                "{columns} {size:?}"
            );
        };
        check(80, None, 4, 18);
        check(40, None, 2, 18);
        check(10, None, 1, 10);
        check(80, Some("39"), 2, 39);
        check(80, Some("300x2"), 1, 80);
        let terminal = Terminal {
            columns: 80,
            color: true,
            true_color: true,
        };
        let grid = Grid::new(
            terminal,
            &Wish::from_flags(None, Some("blocks")).unwrap(),
            2,
        );
        assert_eq!([5, 10, 18, 50].map(|lines| grid.on(lines)), [4, 4, 8, 24]);
    }

    #[test]
    fn picture_is_centred_in_its_place() {
        let terminal = Terminal {
            columns: 9,
            color: true,
            true_color: true,
        };
        let grid = Grid::new(
            terminal,
            &Wish::from_flags(Some("4x1"), Some("blocks")).unwrap(),
            1,
        );
        let mut file = std::io::Cursor::new(Vec::new());
        let red = image::RgbImage::from_pixel(2, 2, image::Rgb([255, 0, 0]));
        red.write_to(&mut file, image::ImageFormat::Png).unwrap();
        let row = grid.blocks(&[file.into_inner(), Vec::new()], 9);
        let (black, red) = ("2;0;0;0", "2;255;0;0");
        let cell = |color: &str| format!("\x1b[38;{color};48;{color}m▀");
        let expected = [black, red, red, black, black, black, black, black, black].map(cell);
        assert_eq!(row, format!("{}\x1b[0m\n", expected.concat()));
    }
}
