//! Interlaced GIFs: their rows are put in order here, and not by the crate that decodes them.
//!
//! It asks for one row at a time, and its LZW decoder (weezl 0.1) loses what a code tells of the rows
//! behind that one, where it is the last: sound files with a plain bottom would be refused as cut off.
//! So the crate is not shown that the frame is interlaced. Called where a picture is decoded; holds one
//! row.

use std::io::{self, Read, Seek};

/// A frame that lies in its canvas from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interlaced {
    /// Where the byte stands that says so.
    pub(super) flags_at: u64,
    /// Rows of the canvas.
    pub(super) top: u32,
    pub(super) height: u32,
}

/// What says so.
pub(super) const FLAG: u8 = 0x40;

impl Interlaced {
    /// Reads what comes next, without the flag.
    pub(super) fn read(
        self,
        input: &mut (impl Read + Seek),
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        let start = input.stream_position()?;
        let count = input.read(buffer)?;
        let at = self.flags_at.checked_sub(start).and_then(|at| usize::try_from(at).ok());
        if let Some(flags) = at.and_then(|at| buffer[..count].get_mut(at)) {
            *flags &= !FLAG;
        }
        Ok(count)
    }

    /// Puts the rows of a canvas in order that were decoded as they come.
    pub(super) fn arrange(self, pixels: &mut [u8], stride: usize) {
        let (top, height) = (self.top as usize, self.height as usize);
        let Some(rows) = pixels.get_mut(top * stride..(top + height) * stride) else { return };
        let passes = [(0, 8), (4, 8), (2, 4), (1, 2)];
        let shown: Vec<_> =
            passes.into_iter().flat_map(|(first, step)| (first..height).step_by(step)).collect();
        let (mut settled, mut held) = (vec![false; height], vec![0; stride]);
        for start in 0..height {
            // Each row takes the place of the next, until one takes that of the first.
            let mut at = start;
            held.copy_from_slice(&rows[start * stride..][..stride]);
            while !settled[at] {
                settled[at] = true;
                at = shown[at];
                held.swap_with_slice(&mut rows[at * stride..][..stride]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_put_in_the_order_in_which_they_are_shown() {
        let check = |height: u32, expected: &[u8]| {
            // The canvas has a row before and after; each pixel of a row is its number as it came.
            let mut pixels: Vec<u8> =
                [99, 99].into_iter().chain((0..height as u8).flat_map(|y| [y; 2])).collect();
            pixels.extend([77, 77]);
            Interlaced { flags_at: 0, top: 1, height }.arrange(&mut pixels, 2);
            let expected: Vec<u8> =
                [99].iter().chain(expected).chain(&[77]).flat_map(|&y| [y; 2]).collect();
            assert_eq!(pixels, expected, "{height}");
        };
        check(1, &[0]);
        check(2, &[0, 1]);
        check(3, &[0, 2, 1]);
        check(5, &[0, 3, 2, 4, 1]);
        check(9, &[0, 5, 3, 6, 2, 7, 4, 8, 1]);
        let mut few = [1, 2];
        Interlaced { flags_at: 0, top: 1, height: 9 }.arrange(&mut few, 1);
        assert_eq!(few, [1, 2]);
    }
}
