//! Shows pictures in the terminal: with chafa if it is installed, else as coloured half blocks.
//!
//! chafa gets the thumbnail's bytes and writes to the terminal itself, so that it can find out what the
//! terminal can show. For half blocks the client decodes thumbnails with the module `media`.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::process::Stdio;

use crate::media::{self, Picture, fit};

use super::stdout::Stdout;
use super::terminal::{Terminal, color_code};
use super::{Error, start};

/// The maximum size of a picture, in columns and rows.
const FRAME: (u32, u32) = (60, 20);
/// A picture has at least this many rows, however much text is beneath it.
const LEAST: u32 = 4;
/// Pixels of a character cell if the terminal does not say.
const CELL: (u32, u32) = (9, 18);

/// The values of `--picture`.
pub(super) const WORDS: &[&str] = &["auto", "blocks", "none"];

/// The value of `--picture`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Auto,
    Blocks,
    None,
}

/// How the user wants to see a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// In columns and rows; without rows, the height follows from the picture's shape.
    pub(super) size: Option<(u32, Option<u32>)>,
    way: Way,
}

impl Wish {
    /// Reads `--size` and `--picture`.
    pub(super) fn from_flags(size: Option<&str>, way: Option<&str>) -> Result<Self, Error> {
        let size = size.map(|text| {
            let wrong = || {
                Error::usage(format!(
                    "--size must be COLUMNS or COLUMNSxROWS, not {text:?}"
                ))
            };
            let number = |text: &str| {
                text.parse()
                    .ok()
                    .filter(|&number| number > 0 && number <= 1000)
            };
            let (columns, rows) = match text.split_once('x') {
                Some((columns, rows)) => (columns, Some(number(rows).ok_or_else(wrong)?)),
                None => (text, None),
            };
            Ok((number(columns).ok_or_else(wrong)?, rows))
        });
        let way = match way {
            Some("blocks") => Way::Blocks,
            Some("none") => Way::None,
            _ => Way::Auto,
        };
        Ok(Self {
            size: size.transpose()?,
            way,
        })
    }

    /// The terminal to draw for, if anything is drawn. `auto` draws only with colours, `blocks`
    /// wherever the output goes, such as into the preview of another program.
    pub(super) fn terminal(self, stdout: Option<Terminal>) -> Option<Terminal> {
        match self.way {
            Way::Auto => stdout.filter(|terminal| terminal.color),
            Way::Blocks => Some(stdout.unwrap_or_else(Terminal::assumed)),
            Way::None => None,
        }
    }

    /// Whether chafa draws.
    pub(super) fn is_for_chafa(self) -> bool {
        self.way == Way::Auto && has_chafa()
    }
}

/// Shows the picture in `file`, which will have `beneath` lines of text beneath it. Shows nothing if
/// the file is not a picture.
pub(super) fn show(
    file: &[u8],
    stdout: &mut Stdout,
    terminal: Terminal,
    wish: &Wish,
    beneath: usize,
) -> Result<(), Error> {
    let (cell, rows) = cell();
    let frame = frame(terminal.columns, rows, wish.size, beneath);
    if wish.is_for_chafa() {
        let scale = if wish.size.is_some() {
            &["--scale", "max"][..]
        } else {
            &[]
        };
        if draw_with_chafa(stdout, file, frame, scale)? {
            return Ok(());
        }
    }
    let Some((picture, size)) = decoded(file) else {
        return Ok(());
    };
    // Small pictures are enlarged only if a size is given.
    let frame = (frame.0 * cell.0, frame.1 * cell.1);
    let grown = if wish.size.is_some() {
        enlarged(size, frame)
    } else {
        size
    };
    let (width, height) = fit(grown, frame);
    let (columns, rows) = (
        width.div_ceil(cell.0).max(1),
        height.div_ceil(cell.1).max(1),
    );
    let raster = Raster::from_picture(&picture.resized(columns, rows * 2));
    stdout.raw(half_blocks(&raster, terminal).as_bytes())
}

/// A decoded picture, and its size if fitted into 1024 pixels. The decoder may return more pixels.
pub(super) fn decoded(file: &[u8]) -> Option<(Picture, (u32, u32))> {
    let mut input = Cursor::new(file);
    let probe = media::probe(&mut input).ok()?;
    let size = probe.fit((1024, 1024));
    Some((probe.decode(&mut input, size).ok()?, size))
}

/// The maximum columns and rows, so that the text beneath does not scroll the picture off the screen.
fn frame(
    columns: usize,
    rows: u32,
    size: Option<(u32, Option<u32>)>,
    beneath: usize,
) -> (u32, u32) {
    let columns = u32::try_from(columns).unwrap_or(u32::MAX);
    // One line more, for the prompt.
    let beneath = u32::try_from(beneath).unwrap_or(u32::MAX).saturating_add(1);
    let most = rows.saturating_sub(beneath).max(LEAST);
    match size {
        Some((columns, Some(rows))) => (columns, rows),
        Some((columns, None)) => (columns, columns.max(rows)),
        None => (columns.min(FRAME.0), most.min(FRAME.1)),
    }
}

/// A multiple of the size that is at least as large as the frame.
fn enlarged((width, height): (u32, u32), frame: (u32, u32)) -> (u32, u32) {
    let factor = (frame.0.div_ceil(width.max(1)))
        .max(frame.1.div_ceil(height.max(1)))
        .max(1);
    (width * factor, height * factor)
}

/// The pixels of a character cell, and the rows of the terminal.
pub(super) fn cell() -> ((u32, u32), u32) {
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

const CHAFA: &str = "chafa";

fn has_chafa() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(CHAFA).is_file())
}

/// Has chafa draw the picture in `file` on at most `columns` and `rows`; false if it fails.
pub(super) fn draw_with_chafa(
    stdout: &mut Stdout,
    file: &[u8],
    (columns, rows): (u32, u32),
    more: &[&str],
) -> Result<bool, Error> {
    // chafa writes to the terminal itself, after this text.
    stdout.flush()?;
    let mut command = start::command(CHAFA);
    command
        .args(["--animate", "off", "--size", &format!("{columns}x{rows}")])
        .args(more)
        .arg("-");
    let Ok(mut child) = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        return Ok(false);
    };
    if let Some(mut pipe) = child.stdin.take() {
        // The write fails if chafa stops reading; then its exit status is an error, too.
        pipe.write_all(file).ok();
    }
    Ok(child.wait().is_ok_and(|status| status.success()))
}

/// The raster as WebP, which every version of chafa reads.
pub(super) fn chafa_file(raster: &Raster) -> Vec<u8> {
    let pixels = raster.pixels.as_flattened();
    webp::Encoder::from_rgb(pixels, raster.width, raster.height)
        .encode(90.0)
        .to_vec()
}

/// Pixels of red, green and blue, row by row.
pub(super) struct Raster {
    pub(super) width: u32,
    pub(super) height: u32,
    pixels: Vec<[u8; 3]>,
}

impl Raster {
    pub(super) fn black(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            pixels: vec![[0; 3]; width as usize * height as usize],
        }
    }

    /// Transparent pixels become black.
    pub(super) fn from_picture(picture: &Picture) -> Self {
        let channels = if picture.has_alpha() { 4 } else { 3 };
        let over_black = |value: u8, alpha: u8| (u16::from(value) * u16::from(alpha) / 255) as u8;
        let opaque = |pixel: &[u8]| match *pixel {
            [red, green, blue, alpha] => [red, green, blue].map(|value| over_black(value, alpha)),
            [red, green, blue] => [red, green, blue],
            _ => [0; 3],
        };
        let pixels = picture
            .pixels()
            .chunks_exact(channels)
            .map(opaque)
            .collect();
        Self {
            width: picture.width(),
            height: picture.height(),
            pixels,
        }
    }

    /// Copies `other` into this raster, where it must fit.
    pub(super) fn paste(&mut self, other: &Self, left: u32, top: u32) {
        let (whole, wide) = (self.width as usize, other.width as usize);
        let rows = self.pixels.chunks_exact_mut(whole).skip(top as usize);
        for (into, row) in rows.zip(other.pixels.chunks_exact(wide)) {
            into[left as usize..][..wide].copy_from_slice(row);
        }
    }
}

/// Draws two pixels per character, the upper one as its colour, the lower one as its background.
pub(super) fn half_blocks(raster: &Raster, terminal: Terminal) -> String {
    let width = raster.width as usize;
    let rows: Vec<&[[u8; 3]]> = raster.pixels.chunks_exact(width).collect();
    let mut out = String::new();
    for pair in rows.chunks(2) {
        for column in 0..width {
            let upper = color_code(pair[0][column], terminal);
            match pair.get(1) {
                Some(lower) => {
                    let lower = color_code(lower[column], terminal);
                    write!(out, "\x1b[38;{upper};48;{lower}m▀")
                }
                None => write!(out, "\x1b[0;38;{upper}m▀"),
            }
            .expect("a String takes all");
        }
        out.push_str("\x1b[0m\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pixels: opaque red, and fully transparent blue.
    fn two() -> Raster {
        let mut file = Cursor::new(Vec::new());
        let mut picture = image::RgbaImage::new(2, 1);
        picture.put_pixel(0, 0, image::Rgba([255, 0, 0, 255]));
        picture.put_pixel(1, 0, image::Rgba([0, 0, 255, 0]));
        picture
            .write_to(&mut file, image::ImageFormat::Png)
            .unwrap();
        let probe = media::probe(&mut file).unwrap();
        Raster::from_picture(&probe.decode(&mut file, (2, 1)).unwrap())
    }

    #[test]
    fn size_and_picture_flags_are_read() {
        let size = |text| {
            Wish::from_flags(Some(text), None)
                .ok()
                .and_then(|wish| wish.size)
        };
        assert_eq!(size("40"), Some((40, None)));
        assert_eq!(size("40x10"), Some((40, Some(10))));
        for bad in ["", "x", "0", "40x", "40x0", "-1", "4000"] {
            assert!(Wish::from_flags(Some(bad), None).is_err(), "{bad}");
        }
        let dumb = Terminal {
            columns: 80,
            color: false,
            true_color: false,
        };
        let drawn = |way| {
            Wish::from_flags(None, way)
                .unwrap()
                .terminal(Some(dumb))
                .is_some()
        };
        assert_eq!(
            [drawn(None), drawn(Some("none")), drawn(Some("blocks"))],
            [false, false, true]
        );
    }

    #[test]
    fn picture_leaves_room_for_the_text_beneath() {
        assert_eq!(frame(80, 24, None, 13), (60, 10));
        assert_eq!(frame(40, 100, None, 13), (40, 20));
        assert_eq!(frame(80, 10, None, 13), (60, LEAST));
        assert_eq!(frame(80, 24, Some((30, Some(5))), 13), (30, 5));
    }

    #[test]
    fn transparent_pixels_become_black() {
        assert_eq!(two().pixels, [[255, 0, 0], [0, 0, 0]]);
    }

    #[test]
    fn odd_last_row_has_no_lower_half() {
        let terminal = |true_color| Terminal {
            columns: 80,
            color: true,
            true_color,
        };
        assert_eq!(
            half_blocks(&two(), terminal(true)),
            "\x1b[0;38;2;255;0;0m▀\x1b[0;38;2;0;0;0m▀\x1b[0m\n"
        );
        assert_eq!(
            half_blocks(&two(), terminal(false)),
            "\x1b[0;38;5;196m▀\x1b[0;38;5;16m▀\x1b[0m\n"
        );
    }
}
