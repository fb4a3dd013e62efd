//! The placeholder image for a web package without a picture: its title on plain grey.

use font8x8::UnicodeFonts;

use super::error::Error;
use super::exif::Orientation;
use super::picture::{Picture, fit};
use super::probe::Thumbnail;
use super::webp;

const SIZE: (u32, u32) = (480, 270);
const GROUND: u8 = 0x30;
const INK: u8 = 0xd0;
/// Pixels of a letter's side, before it is made larger.
const LETTER: usize = 8;
/// How much larger letters are drawn.
const SCALE: usize = 2;
/// Pixels that stay free at each side.
const MARGIN: usize = 32;

/// A card with a title, which fits into `frame`. Letters that the font has not are boxes.
pub(crate) fn placeholder(title: &str, frame: (u32, u32)) -> Result<Thumbnail, Error> {
    let (width, height) = (SIZE.0 as usize, SIZE.1 as usize);
    let mut pixels = vec![GROUND; width * height * 3];
    let step = LETTER * SCALE;
    let columns = (width - 2 * MARGIN) / step;
    let rows = (height - 2 * MARGIN) / (2 * step);
    let lines = lines(title, columns, rows);
    let top = (height - lines.len() * 2 * step + step) / 2;
    for (row, line) in lines.iter().enumerate() {
        let left = (width - line.len() * step) / 2;
        for (column, &letter) in line.iter().enumerate() {
            draw(&mut pixels, letter, left + column * step, top + row * 2 * step);
        }
    }
    let extent = (f64::from(SIZE.0), f64::from(SIZE.1));
    let whole = Picture::new(SIZE.0, SIZE.1, extent, 3, pixels, Orientation::NoTransforms);
    let (width, height) = fit(SIZE, frame);
    let picture = whole.resized(width, height);
    Ok(Thumbnail { webp: webp::encode(&picture)?, picture })
}

/// A title in as many lines as fit, broken between words if possible.
fn lines(title: &str, columns: usize, rows: usize) -> Vec<Vec<char>> {
    let mut lines: Vec<Vec<char>> = Vec::new();
    for word in title.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for part in letters.chunks(columns) {
            match lines.last_mut().filter(|line| line.len() + 1 + part.len() <= columns) {
                Some(line) => {
                    line.push(' ');
                    line.extend(part);
                }
                None => lines.push(part.to_vec()),
            }
        }
    }
    lines.truncate(rows);
    lines
}

fn draw(pixels: &mut [u8], letter: char, left: usize, top: usize) {
    const BOX: [u8; LETTER] = [0xff, 0x81, 0x81, 0x81, 0x81, 0x81, 0x81, 0xff];
    let fonts = [
        font8x8::BASIC_FONTS.get(letter),
        font8x8::LATIN_FONTS.get(letter),
        font8x8::GREEK_FONTS.get(letter),
        font8x8::HIRAGANA_FONTS.get(letter),
    ];
    let glyph = fonts.into_iter().flatten().next().unwrap_or(BOX);
    for y in 0..LETTER * SCALE {
        for x in 0..LETTER * SCALE {
            if glyph[y / SCALE] & (1 << (x / SCALE)) != 0 {
                let at = ((top + y) * SIZE.0 as usize + left + x) * 3;
                pixels[at..at + 3].fill(INK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_any_length_fit() {
        let check = |title: &str, ink: bool| {
            let card = placeholder(title, (500, 500)).unwrap();
            assert_eq!((card.picture.width(), card.picture.height()), SIZE);
            assert_eq!(card.picture.pixels().iter().any(|&pixel| pixel > 0x80), ink, "{title}");
        };
        check("", false);
        check("Rain on a window", true);
        check("Ünïcödé ひ 漢字 \u{1f600}", true);
        check(&"long ".repeat(900), true);
        check(&"x".repeat(4096), true);
    }

    #[test]
    fn lines_break_between_words() {
        let check = |title: &str, expected: &[&str]| {
            let lines: Vec<String> =
                lines(title, 8, 3).iter().map(|l| l.iter().collect()).collect();
            assert_eq!(lines, expected);
        };
        check("a bc  def gh", &["a bc def", "gh"]);
        check("abcdefghij k", &["abcdefgh", "ij k"]);
        check("aaaaaaaa b c dddddddd e", &["aaaaaaaa", "b c", "dddddddd"]);
    }
}
