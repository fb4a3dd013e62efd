//! GIF: walks the blocks to count the frames and to find a truncated file, and decodes the first frame
//! or all of them. A frame's own pixels need a byte each.

use std::sync::Arc;
use std::time::Duration;

use super::canvas::{Blend, Canvas, FrameArea};
use super::decoder::{self, Goal, Header, Input, MEMORY_MAX, Opened, Stop, check_bounds};
use super::error::Error;
use super::gif_blocks::{Blocks, Frame};
use super::icc::{Profile, Samples};
use super::picture::Picture;
use crate::wire::Format;

#[derive(Debug)]
struct Gif {
    /// The size of the first frame.
    pixels: u64,
}

/// Walks all blocks to the trailer.
pub(super) fn open(input: &mut dyn Input) -> Result<Opened, Error> {
    let mut blocks = Blocks::new(input)?;
    let (mut first, mut frames) = (None, 0_u64);
    while let Some(frame) = blocks.next()? {
        blocks.skip_data()?;
        first.get_or_insert(frame.place);
        frames += 1;
    }
    let first = first.ok_or_else(|| damaged("it holds no picture"))?;
    check_bounds((first.width, first.height), 3)?;
    let size = blocks.size;
    if size.0 == 0 || size.1 == 0 {
        return Err(damaged("it has no pixels"));
    }
    check_bounds(size, 3)?;
    let mut header = Header::plain(size, 4);
    header.animated = frames > 1;
    header.profile = Profile::read(&blocks.profile, Samples::Rgb);
    let pixels = u64::from(first.width) * u64::from(first.height);
    let bytes = pixels + u64::from(size.0) * u64::from(size.1) * 4;
    // A fourth for what is made of it.
    if bytes + bytes / 4 > MEMORY_MAX {
        let why = Some(format!("decoding it takes {} MiB of memory", bytes >> 20));
        return Err(Error::NeedsTranscoder { format: Format::Gif, why });
    }
    Ok((header, Arc::new(Gif { pixels })))
}

impl decoder::Decoder for Gif {
    fn memory(&self, header: &Header, goal: Goal) -> u64 {
        // And what is kept of rows, or a row, of up to 65535.
        self.pixels + header.result_bytes(goal) + (2 << 20)
    }

    fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
        stop: Stop<'_>,
    ) -> Result<Picture, Error> {
        let mut blocks = Blocks::new(input)?;
        let frame = blocks.next()?.ok_or_else(|| damaged("it holds no picture"))?;
        let place = frame.place;
        let pixels = u64::from(place.width) * u64::from(place.height);
        if (blocks.size, pixels) != (header.size, self.pixels) {
            return Err(damaged("it has changed meanwhile"));
        }
        let (indices, outcome) = blocks.indices(&frame, stop);
        outcome?;
        if (indices.len() as u64) < pixels {
            return Err(damaged("it has fewer pixels than it says"));
        }
        let colors = blocks.colors(&frame)?;
        let covers = (place.left, place.top) == (0, 0)
            && place.width >= header.size.0
            && place.height >= header.size.1;
        let mut header = header.clone();
        if covers && indices.iter().all(|&index| colors[usize::from(index)][3] == 255) {
            header.channels = 3;
        }
        let (mut shrink, rows) = (header.shrink(goal), rows(&frame));
        let mut line = vec![0; header.size.0 as usize * header.channels];
        let (before, width) = (place.left as usize * header.channels, place.width as usize);
        for y in 0..header.size.1 {
            line.fill(0);
            let row = y.checked_sub(place.top).and_then(|y| rows.get(y as usize));
            if let (Some(&row), Some(line)) = (row, line.get_mut(before..)) {
                let indices = &indices[row * width..(row + 1) * width];
                for (pixel, &index) in line.chunks_exact_mut(header.channels).zip(indices) {
                    pixel.copy_from_slice(&colors[usize::from(index)][..header.channels]);
                }
            }
            shrink.row(&line);
        }
        Ok(shrink.finish(header.orientation))
    }
}

/// Gives all frames as they are seen, with the time that each stays, until `each` wants no more. Of one
/// that is damaged what there is of it.
pub(super) fn frames(
    input: &mut dyn Input,
    each: &mut dyn FnMut(&Canvas, Duration) -> bool,
) -> Result<(), Error> {
    let mut blocks = Blocks::new(input)?;
    let covered = u64::from(blocks.size.0) * u64::from(blocks.size.1) * 4;
    let mut canvas = Canvas::new(Format::Gif, blocks.size, covered)?;
    let mut line = Vec::new();
    while let Some(frame) = blocks.next()? {
        let FrameArea { width, height, .. } = frame.place;
        let pixels = u64::from(width) * u64::from(height);
        if pixels > MEMORY_MAX / 4 {
            let why = Some(format!("decoding a frame takes {} MiB of memory", pixels >> 20));
            return Err(Error::NeedsTranscoder { format: Format::Gif, why });
        }
        let colors = blocks.colors(&frame)?;
        let (indices, outcome) = blocks.indices(&frame, &|| false);
        canvas.begin(frame.place, frame.disposal);
        let shown = rows(&frame);
        for (y, &row) in (0..).zip(&shown) {
            let from = (row * width as usize).min(indices.len());
            let to = (from + width as usize).min(indices.len());
            line.clear();
            line.extend(indices[from..to].iter().flat_map(|&index| colors[usize::from(index)]));
            line.resize(width as usize * 4, 0);
            canvas.row(y, &line, Blend::Over);
        }
        if !each(&canvas, frame.delay) {
            break;
        }
        outcome?;
    }
    Ok(())
}

/// For each row of a frame as it is shown, which of those it is that are stored.
fn rows(frame: &Frame) -> Vec<usize> {
    let height = frame.place.height as usize;
    if !frame.interlaced {
        return (0..height).collect();
    }
    let passes = [(0, 8), (4, 8), (2, 4), (1, 2)];
    let stored = passes.into_iter().flat_map(|(first, step)| (first..height).step_by(step));
    let mut rows = vec![0; height];
    stored.enumerate().for_each(|(at, shown)| rows[shown] = at);
    rows
}

fn damaged(what: &'static str) -> Error {
    Error::damaged(Format::Gif, what)
}

#[cfg(test)]
mod tests {
    use super::super::canvas::Disposal;
    use super::*;

    #[test]
    fn rows_are_put_in_the_order_in_which_they_are_shown() {
        let check = |height: u32, expected: &[usize]| {
            let place = FrameArea { left: 0, top: 1, width: 2, height };
            let (disposal, delay) = (Disposal::Keep, Duration::ZERO);
            let frame = Frame { place, interlaced: true, disposal, delay, clear: None, own: None };
            assert_eq!(rows(&frame), expected, "{height}");
            assert_eq!(
                rows(&Frame { interlaced: false, ..frame }),
                Vec::from_iter(0..expected.len())
            );
        };
        check(0, &[]);
        check(1, &[0]);
        check(2, &[0, 1]);
        check(3, &[0, 2, 1]);
        check(5, &[0, 3, 2, 4, 1]);
        check(9, &[0, 5, 3, 6, 2, 7, 4, 8, 1]);
    }
}
