//! Decodes GIF: the `gif` crate decodes frames, which are drawn on the canvas. Finds truncated
//! files.
//!
//! The crate gets a buffer for a whole frame: asked for single rows, it loses some if the bottom is
//! uniform.

use std::time::Duration;

use gif::streaming_decoder::{Block, Decoded, OutputBuffer, StreamingDecoder};
use gif::{AnyExtension, DecodingError, DisposalMethod, Extension, Frame};

use super::canvas::{Blend, Canvas, Disposal, FrameArea};
use super::decoder::{Each, Goal, Header, Input, Note, check_bounds, check_memory};
use super::error::Error;
use super::icc::{PROFILE_MAX, Profile, Samples};
use super::picture::Picture;
use crate::wire::Format;

/// Frames are composited, so they have alpha.
const CHANNELS: usize = 4;
/// Maximum number of zero bytes between the blocks of a file.
const FILL_MAX: u32 = 64 << 10;
/// Identifies the application extension that contains a colour profile.
const PROFILE: &[u8] = b"ICCRGBG1012";
const PROGRAM: AnyExtension = AnyExtension(Extension::Application as u8);
/// How many more pixels than the canvas a frame may have.
const OUTSIDE_MAX: u64 = 8 << 20;
/// Size of the buffer for surplus pixels; larger than the longest code.
const SURPLUS: usize = 4 << 10;

/// Reads all blocks up to the trailer.
pub(super) fn open(input: &mut dyn Input) -> Result<Header, Error> {
    let mut blocks = Blocks::new(input)?;
    let mut first = None;
    let mut frames = 0_u64;
    while let Some(frame) = blocks.next()? {
        blocks.indices(&mut []).1?;
        first.get_or_insert(area(&frame));
        frames += 1;
    }
    let first = first.ok_or_else(|| damaged("it contains no picture"))?;
    check_bounds((first.width, first.height), 3)?;
    let size = blocks.size();
    if size.0 == 0 || size.1 == 0 {
        return Err(damaged("it has no pixels"));
    }
    check_bounds(size, 3)?;
    let mut header = Header::plain(size, CHANNELS);
    header.animated = frames > 1;
    header.profile = Profile::read(&blocks.profile, Samples::Rgb);
    header.note = blocks.lacks_end.then_some(Note::NoEnd);
    let pixels = u64::from(first.width) * u64::from(first.height);
    let bytes = pixels + u64::from(size.0) * u64::from(size.1) * 4;
    // A quarter more, for the resized image.
    check_memory(Format::Gif, bytes + bytes / 4)?;
    Ok(header)
}

pub(super) fn decode(header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
    let mut blocks = Blocks::new(input)?;
    let frame = blocks
        .next()?
        .ok_or_else(|| damaged("it contains no picture"))?;
    header.check(Format::Gif, blocks.size(), CHANNELS)?;
    let mut canvas = Canvas::new(Format::Gif, header.size, 0)?;
    let (count, outcome) = blocks.lay(&frame, &mut canvas)?;
    outcome?;
    if count < usize::from(frame.width) * usize::from(frame.height) {
        return Err(damaged("some of its pixels are missing"));
    }
    Ok(header.reduced(goal, canvas.into_pixels()))
}

/// Passes all frames with their delays until `each` returns `false`. A damaged frame is passed with
/// the pixels that it has.
pub(super) fn frames(input: &mut dyn Input, each: Each<'_>) -> Result<(), Error> {
    let mut blocks = Blocks::new(input)?;
    let covered = u64::from(blocks.size().0) * u64::from(blocks.size().1) * 4;
    let mut canvas = Canvas::new(Format::Gif, blocks.size(), covered)?;
    while let Some(frame) = blocks.next()? {
        let (_, outcome) = blocks.lay(&frame, &mut canvas)?;
        if !each(
            canvas.size(),
            canvas.pixels(),
            Duration::from_millis(u64::from(frame.delay) * 10),
        ) {
            break;
        }
        outcome?;
    }
    Ok(())
}

/// Iterates over the blocks of a file.
struct Blocks<'a> {
    input: &'a mut dyn Input,
    decoder: StreamingDecoder,
    /// The global colour table, for frames without their own.
    common: Vec<u8>,
    /// The colour profile; empty if none was found so far, longer than `PROFILE_MAX` if it is too
    /// long.
    profile: Vec<u8>,
    /// Whether the input is between two blocks.
    between: bool,
    fill: u32,
    lacks_end: bool,
}

impl<'a> Blocks<'a> {
    fn new(input: &'a mut dyn Input) -> Result<Self, Error> {
        input.rewind().map_err(Error::Read)?;
        let mut blocks = Self {
            input,
            decoder: StreamingDecoder::new(),
            common: Vec::new(),
            profile: Vec::new(),
            between: false,
            fill: 0,
            lacks_end: false,
        };
        // The global colour table is the last item before the blocks; the crate reports an empty
        // one if there is none.
        while let Some(decoded) = blocks.step(OutputBuffer::None)? {
            if let Decoded::GlobalPalette(colors) = decoded {
                blocks.common = colors.into_vec();
                return Ok(blocks);
            }
        }
        Err(damaged("it contains no picture"))
    }

    /// The size of the canvas.
    fn size(&self) -> (u32, u32) {
        (
            u32::from(self.decoder.width()),
            u32::from(self.decoder.height()),
        )
    }

    /// Advances to the data of the next frame; returns `None` at the end of the file.
    fn next(&mut self) -> Result<Option<Frame<'static>>, Error> {
        let mut named = None;
        loop {
            match self.step(OutputBuffer::None)? {
                None | Some(Decoded::BlockStart(Block::Trailer)) => return Ok(None),
                Some(Decoded::FrameMetadata(_)) => {
                    return Ok(Some(std::mem::take(self.decoder.current_frame_mut())));
                }
                Some(Decoded::SubBlock {
                    ext: PROGRAM,
                    is_last,
                }) => {
                    self.program(&mut named);
                    named = named.filter(|_| !is_last);
                }
                Some(_) => {}
            }
        }
    }

    /// Reads a part of an application extension, which may be a colour profile; usually it is the
    /// number of repetitions.
    fn program(&mut self, named: &mut Option<bool>) {
        let block = self.decoder.last_ext_sub_block();
        match named {
            None => *named = Some(block == PROFILE && self.profile.is_empty()),
            Some(true) if self.profile.len() <= PROFILE_MAX => self.profile.extend(block),
            Some(_) => {}
        }
    }

    /// Reads the data of a frame and draws the pixels that it has. Returns their number, and an
    /// error if the rest of the file cannot be read.
    fn lay(
        &mut self,
        frame: &Frame<'_>,
        canvas: &mut Canvas,
    ) -> Result<(usize, Result<(), Error>), Error> {
        let area = area(frame);
        let pixels = u64::from(area.width) * u64::from(area.height);
        let size = self.size();
        if pixels > u64::from(size.0) * u64::from(size.1) + OUTSIDE_MAX {
            return Err(damaged("a frame is much larger than the picture"));
        }
        let colors = self.colors(frame)?;
        let mut indices = vec![0; pixels as usize];
        let (count, outcome) = self.indices(&mut indices);
        indices.truncate(count);
        canvas.begin(area, disposal(frame.dispose));
        let width = area.width as usize;
        let mut line = Vec::new();
        for (y, row) in (0..).zip(rows(area.height as usize, frame.interlaced)) {
            let from = (row * width).min(indices.len());
            let to = (from + width).min(indices.len());
            line.clear();
            line.extend(
                indices[from..to]
                    .iter()
                    .flat_map(|&index| colors[usize::from(index)]),
            );
            line.resize(width * 4, 0);
            canvas.row(y, &line, Blend::Over);
        }
        Ok((count, outcome))
    }

    /// Reads a frame's pixels to the end of its data, in stored order; ignores surplus pixels.
    fn indices(&mut self, to: &mut [u8]) -> (usize, Result<(), Error>) {
        let mut count = 0;
        let mut surplus = [0; SURPLUS];
        loop {
            let out = match &mut to[count..] {
                [] if count == 0 => OutputBuffer::None,
                [] => OutputBuffer::Slice(&mut surplus),
                left => OutputBuffer::Slice(left),
            };
            match self.step(out) {
                Ok(Some(Decoded::BytesDecoded(more))) => {
                    count = (count + more.get()).min(to.len());
                }
                Ok(Some(Decoded::DataEnd)) => return (count, Ok(())),
                Ok(Some(_)) => {}
                Ok(None) => return (count, Err(Error::Truncated(Format::Gif))),
                Err(error) => return (count, Err(error)),
            }
        }
    }

    /// Returns the colours of a frame; missing ones are transparent.
    fn colors(&self, frame: &Frame<'_>) -> Result<[[u8; 4]; 256], Error> {
        let mut colors = [[0; 4]; 256];
        let table = frame.palette.as_ref().unwrap_or(&self.common);
        if table.is_empty() {
            return Err(damaged("it has no colour table"));
        }
        for (color, &[red, green, blue]) in colors.iter_mut().zip(table.as_chunks().0) {
            *color = [red, green, blue, 255];
        }
        if let Some(clear) = frame.transparent {
            colors[usize::from(clear)] = [0; 4];
        }
        Ok(colors)
    }

    /// Decodes the next item; returns `None` if the file ends between two blocks.
    fn step(&mut self, mut out: OutputBuffer<'_>) -> Result<Option<Decoded>, Error> {
        loop {
            let have = self
                .input
                .fill_buf()
                .map_err(|error| Error::read(Format::Gif, error))?;
            match have.first() {
                None if self.between => {
                    self.lacks_end = true;
                    return Ok(None);
                }
                None => return Err(Error::Truncated(Format::Gif)),
                // Some writers leave zero bytes between blocks. Limited, as a sparse file may have
                // nothing else.
                Some(0) if self.between && self.fill < FILL_MAX => {
                    self.fill += 1;
                    self.input.consume(1);
                    continue;
                }
                Some(_) => {}
            }
            let (count, decoded) = self.decoder.update(have, &mut out).map_err(from_crate)?;
            self.input.consume(count);
            self.between = match &decoded {
                Decoded::DataEnd | Decoded::SubBlock { is_last: true, .. } => true,
                Decoded::Nothing => self.between && count == 0,
                _ => false,
            };
            if !matches!(decoded, Decoded::Nothing) {
                return Ok(Some(decoded));
            }
        }
    }
}

fn area(frame: &Frame<'_>) -> FrameArea {
    let [left, top, width, height] =
        [frame.left, frame.top, frame.width, frame.height].map(u32::from);
    FrameArea {
        left,
        top,
        width,
        height,
    }
}

fn disposal(method: DisposalMethod) -> Disposal {
    match method {
        DisposalMethod::Background => Disposal::Clear,
        DisposalMethod::Previous => Disposal::Restore,
        DisposalMethod::Any | DisposalMethod::Keep => Disposal::Keep,
    }
}

/// Returns the index of the stored row for each row of the frame.
fn rows(height: usize, interlaced: bool) -> Vec<usize> {
    if !interlaced {
        return (0..height).collect();
    }
    let passes = [(0, 8), (4, 8), (2, 4), (1, 2)];
    let stored = passes
        .into_iter()
        .flat_map(|(first, step)| (first..height).step_by(step));
    let mut rows = vec![0; height];
    stored.enumerate().for_each(|(at, shown)| rows[shown] = at);
    rows
}

fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Gif, what)
}

fn from_crate(error: DecodingError) -> Error {
    match error {
        DecodingError::Io(error) => Error::read(Format::Gif, error),
        // Converted to text, as its source would repeat the message.
        other => damaged(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interlaced_rows_are_sorted() {
        let check = |height, expected: &[usize]| assert_eq!(rows(height, true), expected);
        check(0, &[]);
        check(1, &[0]);
        check(2, &[0, 1]);
        check(3, &[0, 2, 1]);
        check(5, &[0, 3, 2, 4, 1]);
        check(9, &[0, 5, 3, 6, 2, 7, 4, 8, 1]);
        assert_eq!(rows(3, false), [0, 1, 2]);
    }
}
