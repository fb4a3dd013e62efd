//! Several pictures side by side as one strip, which any terminal shows like one picture.

use crate::media::fit;

use super::super::Error;
use super::super::terminal::Terminal;
use super::{Raster, Way, Wish, cell, decoded, encode, question};

/// Columns and rows of one picture, where nobody says.
const SIZE: (u32, u32) = (18, 6);

/// How pictures are laid side by side.
pub(in crate::cli) struct Grid {
    way: Way,
    terminal: Terminal,
    /// Of one picture, in columns and rows.
    size: (u32, u32),
    /// Columns between two.
    gap: u32,
    across: u32,
}

impl Grid {
    pub(in crate::cli) fn new(terminal: Terminal, wish: &Wish, gap: usize) -> Result<Self, Error> {
        let way = match wish.way.flatten() {
            Some(way) => way,
            None => question::ask()?,
        };
        let whole = u32::try_from(terminal.columns).unwrap_or(u32::MAX).max(1);
        let gap = u32::try_from(gap).unwrap_or_default();
        let (columns, rows) = match wish.size {
            Some((columns, Some(rows))) => (columns, rows),
            Some((columns, None)) => (columns, (columns * SIZE.1).div_ceil(SIZE.0)),
            None => SIZE,
        };
        let columns = columns.min(whole);
        let across = ((whole + gap) / (columns + gap)).max(1);
        Ok(Self { way, terminal, size: (columns, rows), gap, across })
    }

    /// How many are in a row.
    pub(in crate::cli) fn across(&self) -> usize {
        self.across as usize
    }

    /// Columns of one picture.
    pub(in crate::cli) fn columns(&self) -> usize {
        self.size.0 as usize
    }

    /// What is printed for these files; one that cannot be read leaves its place empty.
    pub(in crate::cli) fn row(&self, files: &[Vec<u8>]) -> String {
        let count = u32::try_from(files.len()).unwrap_or(self.across);
        let columns = count * self.size.0 + count.saturating_sub(1) * self.gap;
        // Half blocks have two pixels to a cell.
        let unit = if self.way == Way::Blocks { (1, 2) } else { cell().0 };
        let frame = (self.size.0 * unit.0, self.size.1 * unit.1);
        let mut strip = Raster::black(columns * unit.0, frame.1);
        for (at, file) in (0..).zip(files) {
            let Some((picture, size)) = decoded(file) else { continue };
            let (width, height) = fit(size, frame);
            let one = Raster::of(&picture.resized(width.max(1), height.max(1)));
            let left = at * (self.size.0 + self.gap) * unit.0;
            strip.paste(&one, left + (frame.0 - one.width) / 2, (frame.1 - one.height) / 2);
        }
        encode(&strip, self.way, (columns, self.size.1), self.terminal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_in_a_row_as_there_is_room_for() {
        let check = |columns, size, across, each| {
            let terminal = Terminal { columns, color: true, true_color: true };
            let grid = Grid::new(terminal, &Wish::of(size, Some("blocks")).unwrap(), 2).unwrap();
            assert_eq!((grid.across(), grid.columns()), (across, each), "{columns} {size:?}");
        };
        check(80, None, 4, 18);
        check(40, None, 2, 18);
        check(10, None, 1, 10);
        check(80, Some("39"), 2, 39);
        check(80, Some("300x2"), 1, 80);
    }

    #[test]
    fn a_picture_lies_in_the_middle_of_its_place() {
        let terminal = Terminal { columns: 9, color: true, true_color: true };
        let grid = Grid::new(terminal, &Wish::of(Some("4x1"), Some("blocks")).unwrap(), 1).unwrap();
        let mut file = std::io::Cursor::new(Vec::new());
        let red = image::RgbImage::from_pixel(2, 2, image::Rgb([255, 0, 0]));
        red.write_to(&mut file, image::ImageFormat::Png).unwrap();
        let row = grid.row(&[file.into_inner(), Vec::new()]);
        let (black, red) = ("2;0;0;0", "2;255;0;0");
        let cell = |color: &str| format!("\x1b[38;{color};48;{color}m▀");
        let expected = [black, red, red, black, black, black, black, black, black].map(cell);
        assert_eq!(row, format!("{}\x1b[0m\n", expected.concat()));
    }
}
