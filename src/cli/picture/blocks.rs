//! Half blocks: two pixels to a character, the upper one its colour, the lower one its background.

use std::fmt::Write as _;

use super::super::terminal::Terminal;
use super::super::terminal::color_code;
use super::Raster;

pub(super) fn encode(raster: &Raster, terminal: Terminal) -> String {
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
    use super::super::tests::two;
    use super::*;

    #[test]
    fn an_odd_row_has_no_lower_half() {
        let terminal = |true_color| Terminal { columns: 80, color: true, true_color };
        assert_eq!(
            encode(&two(), terminal(true)),
            "\x1b[0;38;2;255;0;0m▀\x1b[0;38;2;0;0;0m▀\x1b[0m\n"
        );
        assert_eq!(encode(&two(), terminal(false)), "\x1b[0;38;5;196m▀\x1b[0;38;5;16m▀\x1b[0m\n");
    }
}
