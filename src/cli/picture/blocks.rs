//! Half blocks: two pixels to a character, the upper one its colour, the lower its background.

use std::fmt::Write as _;

use crate::media::Picture;

use super::opaque;

/// `true_color`: 24 bits, else the 256 colours of xterm.
pub(super) fn encode(picture: &Picture, true_color: bool) -> String {
    let width = picture.width() as usize;
    let pixels = opaque(picture);
    let rows: Vec<&[[u8; 3]]> = pixels.chunks_exact(width).collect();
    let mut out = String::new();
    for pair in rows.chunks(2) {
        for column in 0..width {
            let upper = color(pair[0][column], true_color);
            match pair.get(1) {
                Some(lower) => {
                    let lower = color(lower[column], true_color);
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

fn color([red, green, blue]: [u8; 3], true_color: bool) -> String {
    if true_color {
        return format!("2;{red};{green};{blue}");
    }
    // The cube of six levels a channel begins at 16.
    let level = |value: u8| (u32::from(value) * 5 + 127) / 255;
    format!("5;{}", 16 + 36 * level(red) + 6 * level(green) + level(blue))
}

#[cfg(test)]
mod tests {
    use super::super::tests::two;
    use super::*;

    #[test]
    fn an_odd_row_has_no_lower_half() {
        assert_eq!(encode(&two(), true), "\x1b[0;38;2;255;0;0m▀\x1b[0;38;2;0;0;0m▀\x1b[0m\n");
        assert_eq!(encode(&two(), false), "\x1b[0;38;5;196m▀\x1b[0;38;5;16m▀\x1b[0m\n");
    }
}
