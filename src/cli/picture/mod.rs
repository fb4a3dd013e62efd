//! Shows a picture in the terminal: by its graphics protocol, else by coloured half blocks.
//!
//! The client decodes thumbnails with the module `media`.

mod blocks;
mod grid;
mod kitty;
mod question;
mod sixel;

use std::io::Cursor;

use crate::media::{self, Picture, fit};

use super::Error;
use super::terminal::Terminal;

pub(super) use grid::Grid;

/// The most that a picture takes, in columns and rows.
const FRAME: (u32, u32) = (60, 20);
/// Rows below which a picture shows nothing.
const LEAST: u32 = 4;
/// Pixels of a character cell where the terminal does not say.
const CELL: (u32, u32) = (9, 18);

/// How a terminal shows pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Kitty,
    Sixel,
    Blocks,
}

/// What `--picture` may be.
pub(super) const WORDS: &[&str] = &["none", "blocks", "sixel", "kitty"];

/// How a person wants to see a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// In columns and rows; without rows as high as it gets.
    size: Option<(u32, Option<u32>)>,
    /// Not at all, or in this way; otherwise the terminal decides.
    way: Option<Option<Way>>,
}

impl Wish {
    pub(super) fn of(size: Option<&str>, way: Option<&str>) -> Result<Self, Error> {
        let size = size.map(|text| {
            let wrong =
                || Error::usage(format!("--size must be COLUMNS or COLUMNSxROWS, not {text:?}"));
            let number =
                |text: &str| text.parse().ok().filter(|&number| number > 0 && number <= 1000);
            let (columns, rows) = match text.split_once('x') {
                Some((columns, rows)) => (columns, Some(number(rows).ok_or_else(wrong)?)),
                None => (text, None),
            };
            Ok((number(columns).ok_or_else(wrong)?, rows))
        });
        let way = way.map(|word| match word {
            "kitty" => Some(Way::Kitty),
            "sixel" => Some(Way::Sixel),
            "blocks" => Some(Way::Blocks),
            _ => None,
        });
        Ok(Self { size: size.transpose()?, way })
    }

    /// Whether it is to be drawn wherever it goes, such as into the preview of another program.
    pub(super) fn is_forced(self) -> bool {
        self.way.flatten().is_some()
    }

    /// Whether anything is drawn at all: where nobody says how, only with colours.
    pub(super) fn is_drawn(self, terminal: Terminal) -> bool {
        self.way.map_or(terminal.color, |way| way.is_some())
    }
}

/// What is printed to show the picture in this file, with so many lines of text to come beneath it;
/// `None` where the file is none that we read.
pub(super) fn render(
    file: &[u8],
    terminal: Terminal,
    wish: &Wish,
    beneath: usize,
) -> Result<Option<String>, Error> {
    let Some((picture, size)) = decoded(file) else { return Ok(None) };
    let (cell, rows) = cell();
    let (columns, rows) = frame(terminal.columns, rows, wish.size, beneath);
    // Small ones are not blown up, as the daemon's thumbnails are not; unless that is asked for.
    let frame = (columns * cell.0, rows * cell.1);
    let grown = if wish.size.is_some() { enlarged(size, frame) } else { size };
    let (width, height) = fit(grown, frame);
    let columns = width.div_ceil(cell.0).max(1);
    let rows = height.div_ceil(cell.1).max(1);
    let way = match wish.way.flatten() {
        Some(way) => way,
        None => question::ask()?,
    };
    let (width, height) = if way == Way::Blocks { (columns, rows * 2) } else { (width, height) };
    let raster = Raster::of(&picture.resized(width, height));
    Ok(Some(encode(&raster, way, (columns, rows), terminal)))
}

/// What is printed to show this over so many columns and rows.
fn encode(raster: &Raster, way: Way, size: (u32, u32), terminal: Terminal) -> String {
    match way {
        Way::Kitty => kitty::encode(raster, size.0, size.1),
        Way::Sixel => sixel::encode(raster),
        Way::Blocks => blocks::encode(raster, terminal),
    }
}

/// A picture and its size, which is smaller than what its decoder may give.
fn decoded(file: &[u8]) -> Option<(Picture, (u32, u32))> {
    let mut input = Cursor::new(file);
    let probe = media::probe(&mut input).ok()?;
    let size = probe.fit((1024, 1024));
    Some((probe.decode(&mut input, size, &|| false).ok()?, size))
}

/// The most columns and rows: what is beneath the picture must not push it out of sight.
fn frame(
    columns: usize,
    rows: u32,
    size: Option<(u32, Option<u32>)>,
    beneath: usize,
) -> (u32, u32) {
    let columns = u32::try_from(columns).unwrap_or(u32::MAX);
    // The prompt has a line, too.
    let beneath = u32::try_from(beneath).unwrap_or(u32::MAX).saturating_add(1);
    let room = rows.saturating_sub(beneath).max(LEAST);
    match size {
        Some((columns, Some(rows))) => (columns, rows),
        Some((columns, None)) => (columns, columns.max(rows)),
        None => (columns.min(FRAME.0), room.min(FRAME.1)),
    }
}

/// The same shape, at least as large as the frame.
fn enlarged((width, height): (u32, u32), frame: (u32, u32)) -> (u32, u32) {
    let factor = (frame.0.div_ceil(width.max(1))).max(frame.1.div_ceil(height.max(1))).max(1);
    (width * factor, height * factor)
}

/// Pixels of a cell, and how many rows there are.
fn cell() -> ((u32, u32), u32) {
    let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout()) else {
        return (CELL, FRAME.1);
    };
    let [columns, rows, width, height] =
        [size.ws_col, size.ws_row, size.ws_xpixel, size.ws_ypixel].map(u32::from);
    if columns == 0 || rows == 0 || width < columns || height < rows {
        return (CELL, if rows == 0 { FRAME.1 } else { rows });
    }
    ((width / columns, height / rows), rows)
}

/// Red, green and blue, row by row.
struct Raster {
    width: u32,
    height: u32,
    pixels: Vec<[u8; 3]>,
}

impl Raster {
    fn black(width: u32, height: u32) -> Self {
        Self { width, height, pixels: vec![[0; 3]; width as usize * height as usize] }
    }

    /// What is transparent lies on black.
    fn of(picture: &Picture) -> Self {
        let channels = if picture.has_alpha() { 4 } else { 3 };
        let over_black = |value: u8, alpha: u8| (u16::from(value) * u16::from(alpha) / 255) as u8;
        let opaque = |pixel: &[u8]| match *pixel {
            [red, green, blue, alpha] => [red, green, blue].map(|value| over_black(value, alpha)),
            [red, green, blue] => [red, green, blue],
            _ => [0; 3],
        };
        let pixels = picture.pixels().chunks_exact(channels).map(opaque).collect();
        Self { width: picture.width(), height: picture.height(), pixels }
    }

    /// Lays another one into it, which fits there.
    fn paste(&mut self, other: &Self, left: u32, top: u32) {
        let (whole, wide) = (self.width as usize, other.width as usize);
        let rows = self.pixels.chunks_exact_mut(whole).skip(top as usize);
        for (into, row) in rows.zip(other.pixels.chunks_exact(wide)) {
            into[left as usize..][..wide].copy_from_slice(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pixels: red, and blue of half transparency.
    pub(super) fn two() -> Raster {
        let mut file = Cursor::new(Vec::new());
        let mut picture = image::RgbaImage::new(2, 1);
        picture.put_pixel(0, 0, image::Rgba([255, 0, 0, 255]));
        picture.put_pixel(1, 0, image::Rgba([0, 0, 255, 0]));
        picture.write_to(&mut file, image::ImageFormat::Png).unwrap();
        let probe = media::probe(&mut file).unwrap();
        Raster::of(&probe.decode(&mut file, (2, 1), &|| false).unwrap())
    }

    #[test]
    fn wishes_are_read() {
        let size = |text| Wish::of(Some(text), None).ok().and_then(|wish| wish.size);
        assert_eq!(size("40"), Some((40, None)));
        assert_eq!(size("40x10"), Some((40, Some(10))));
        for bad in ["", "x", "0", "40x", "40x0", "-1", "4000"] {
            assert!(Wish::of(Some(bad), None).is_err(), "{bad}");
        }
        let dumb = Terminal { columns: 80, color: false, true_color: false };
        let drawn = |way| Wish::of(None, way).unwrap().is_drawn(dumb);
        assert_eq!([drawn(None), drawn(Some("none")), drawn(Some("blocks"))], [false, false, true]);
    }

    #[test]
    fn a_picture_stays_in_sight() {
        assert_eq!(frame(80, 24, None, 13), (60, 10));
        assert_eq!(frame(40, 100, None, 13), (40, 20));
        assert_eq!(frame(80, 10, None, 13), (60, LEAST));
        assert_eq!(frame(80, 24, Some((30, Some(5))), 13), (30, 5));
    }

    #[test]
    fn transparency_lies_on_black() {
        assert_eq!(two().pixels, [[255, 0, 0], [0, 0, 0]]);
    }
}
