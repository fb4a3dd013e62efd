//! A picture in the terminal: by its graphics where it has any, else by half blocks in colours.
//!
//! Decoding is the room `media`'s, which is why the client sees it.

mod blocks;
mod kitty;
mod question;
mod sixel;

use std::io::Cursor;

use crate::media::{self, Picture, fit};

use super::screen::Terminal;

/// The most that a picture takes, in columns and rows.
const FRAME: (u32, u32) = (60, 20);
/// Pixels of a character cell where the terminal does not say.
const CELL: (u32, u32) = (9, 18);

/// How a terminal shows pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Kitty,
    Sixel,
    Blocks,
}

/// What is printed to show the picture in this file; `None` where the terminal has no colours, or
/// the file is none that we read.
pub(super) fn render(file: &[u8], terminal: Terminal) -> Option<String> {
    if !terminal.color {
        return None;
    }
    let mut input = Cursor::new(file);
    let probe = media::probe(&mut input).ok()?;
    let size = probe.fit((1024, 1024));
    let picture = probe.decode(&mut input, size, &|| false).ok()?;
    let (cell, rows) = cell();
    let columns = u32::try_from(terminal.columns).unwrap_or(u32::MAX).min(FRAME.0);
    let rows = rows.saturating_sub(2).clamp(2, FRAME.1);
    let frame = (columns * cell.0, rows * cell.1);
    // Small ones are not blown up, as the daemon's thumbnails are not.
    let (width, height) = fit(size, frame);
    let columns = width.div_ceil(cell.0).max(1);
    let rows = height.div_ceil(cell.1).max(1);
    Some(match question::ask() {
        Way::Kitty => kitty::encode(&picture.resized(width, height), columns, rows),
        Way::Sixel => sixel::encode(&picture.resized(width, height)),
        Way::Blocks => blocks::encode(&picture.resized(columns, rows * 2), terminal),
    })
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

/// Rows of red, green and blue; what is transparent lies on black.
fn opaque(picture: &Picture) -> Vec<[u8; 3]> {
    let channels = if picture.has_alpha() { 4 } else { 3 };
    let over_black = |value: u8, alpha: u8| (u16::from(value) * u16::from(alpha) / 255) as u8;
    picture
        .pixels()
        .chunks_exact(channels)
        .map(|pixel| match *pixel {
            [red, green, blue, alpha] => [red, green, blue].map(|value| over_black(value, alpha)),
            [red, green, blue] => [red, green, blue],
            _ => [0; 3],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pixels: red, and blue of half transparency.
    pub(super) fn two() -> Picture {
        let mut file = Cursor::new(Vec::new());
        let mut picture = image::RgbaImage::new(2, 1);
        picture.put_pixel(0, 0, image::Rgba([255, 0, 0, 255]));
        picture.put_pixel(1, 0, image::Rgba([0, 0, 255, 0]));
        picture.write_to(&mut file, image::ImageFormat::Png).unwrap();
        let probe = media::probe(&mut file).unwrap();
        probe.decode(&mut file, (2, 1), &|| false).unwrap()
    }

    #[test]
    fn transparency_lies_on_black() {
        assert_eq!(opaque(&two()), [[255, 0, 0], [0, 0, 0]]);
    }
}
