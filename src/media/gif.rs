//! GIF: the first frame on its canvas, row by row; the others are only counted.

use gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};

use super::Error;
use super::exif::Orientation;
use super::picture::Picture;
use super::probe::{Goal, Header, Input, check_bounds};
use super::shrink::Shrink;
use crate::wire::Format;

/// Bytes of fill between the blocks of a file.
const FILL_MAX: u32 = 64 << 10;

#[derive(Clone, Debug)]
pub(super) struct Details {
    first: Frame,
    canvas: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    /// Its rows come in four passes, so that all are held at once.
    interlaced: bool,
    transparent: bool,
}

/// Walks all blocks to the trailer: so the frames are counted and a cut is seen.
pub(super) fn header(input: &mut dyn Input) -> Result<(Header, Details), Error> {
    let head: [u8; 13] = bytes(input)?;
    let size = (u16_at(&head, 6), u16_at(&head, 8));
    skip(input, table(head[10]))?;
    let (mut first, mut frames, mut transparent) = (None, 0_u64, false);
    let mut fill = 0;
    loop {
        match bytes::<1>(input)?[0] {
            // Extension; f9 is the graphic control of the frame that follows.
            0x21 => {
                let [label] = bytes(input)?;
                if label == 0xf9 {
                    let [_length, flags] = bytes(input)?;
                    transparent = flags & 1 == 1;
                    skip(input, 3)?;
                }
                sub_blocks(input)?;
            }
            0x2c => {
                let place: [u8; 9] = bytes(input)?;
                first.get_or_insert(Frame {
                    left: u16_at(&place, 0) as usize,
                    top: u16_at(&place, 2) as usize,
                    width: u16_at(&place, 4) as usize,
                    height: u16_at(&place, 6) as usize,
                    interlaced: place[8] & 0x40 != 0,
                    transparent,
                });
                frames += 1;
                transparent = false;
                // Colour table, code size, data.
                skip(input, table(place[8]) + 1)?;
                sub_blocks(input)?;
            }
            0x3b => break,
            // Fill, which some writers leave between blocks; a file of holes is nothing else.
            0 if fill < FILL_MAX => fill += 1,
            _ => return Err(damaged("an unknown block")),
        }
    }
    let first = first.ok_or_else(|| damaged("it holds no picture"))?;
    let canvas = canvas(size, &first)?;
    let covered = first.left == 0
        && first.top == 0
        && (first.width, first.height) == (canvas.0 as usize, canvas.1 as usize);
    let channels = if covered && !first.transparent { 3 } else { 4 };
    let orientation = Orientation::default();
    let header = Header { size: canvas, channels, orientation, animated: frames > 1 };
    Ok((header, Details { first, canvas }))
}

/// The size that the file states, or its first frame's where it states none.
fn canvas(stated: (u32, u32), first: &Frame) -> Result<(u32, u32), Error> {
    let size = match stated {
        (0, _) | (_, 0) => ((first.left + first.width) as u32, (first.top + first.height) as u32),
        stated => stated,
    };
    if size.0 == 0 || size.1 == 0 || first.width == 0 || first.height == 0 {
        return Err(damaged("it has no pixels"));
    }
    check_bounds((first.width as u32, first.height as u32), 3)?;
    check_bounds(size, 3)?;
    Ok(size)
}

impl Details {
    pub(super) fn memory(&self) -> u64 {
        let (width, height) = (self.first.width as u64, self.first.height as u64);
        let rows = if self.first.interlaced { height } else { 1 };
        width * rows + 4 * u64::from(self.canvas.0) + (1 << 20)
    }

    pub(super) fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
    ) -> Result<Picture, Error> {
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::Indexed);
        options.set_memory_limit(MemoryLimit::Unlimited);
        let mut decoder = options.read_info(input).map_err(from_crate)?;
        let frame = decoder.next_frame_info().map_err(from_crate)?;
        let transparent = frame.ok_or(Error::Truncated(Format::Gif))?.transparent;
        let colors = colors(decoder.palette().map_err(from_crate)?, transparent);
        let mut canvas = Canvas::new(header, &self.first, colors, goal);
        let width = self.first.width;
        if self.first.interlaced {
            let mut indices = vec![0; width * self.first.height];
            decoder.read_into_buffer(&mut indices).map_err(from_crate)?;
            indices.chunks_exact(width).for_each(|row| canvas.row(row));
        } else {
            let mut row = vec![0; width];
            for _ in 0..self.first.height {
                if !decoder.fill_buffer(&mut row).map_err(from_crate)? {
                    return Err(damaged("rows are missing"));
                }
                canvas.row(&row);
            }
        }
        Ok(canvas.finish())
    }
}

/// Puts the frame's rows where they belong; around it, nothing.
struct Canvas<'a> {
    frame: &'a Frame,
    colors: [[u8; 4]; 256],
    channels: usize,
    height: usize,
    next: usize,
    line: Vec<u8>,
    shrink: Shrink,
}

impl<'a> Canvas<'a> {
    fn new(header: &Header, frame: &'a Frame, colors: [[u8; 4]; 256], goal: Goal) -> Self {
        let (size, channels) = (header.size, header.channels);
        let mut canvas = Self {
            frame,
            colors,
            channels,
            height: size.1 as usize,
            next: 0,
            line: vec![0; size.0 as usize * channels],
            shrink: Shrink::new(size, channels, Shrink::factor(size, goal.ample)),
        };
        canvas.fill(frame.top.min(canvas.height));
        canvas
    }

    fn row(&mut self, indices: &[u8]) {
        if self.next >= self.height {
            return;
        }
        let start = (self.frame.left * self.channels).min(self.line.len());
        for (pixel, &index) in self.line[start..].chunks_exact_mut(self.channels).zip(indices) {
            pixel.copy_from_slice(&self.colors[usize::from(index)][..self.channels]);
        }
        self.shrink.row(&self.line);
        self.next += 1;
    }

    fn fill(&mut self, until: usize) {
        self.line.fill(0);
        while self.next < until {
            self.shrink.row(&self.line);
            self.next += 1;
        }
    }

    fn finish(mut self) -> Picture {
        self.fill(self.height);
        self.shrink.finish(Orientation::default())
    }
}

/// The palette as RGBA; colours that it lacks are black.
fn colors(palette: &[u8], transparent: Option<u8>) -> [[u8; 4]; 256] {
    let mut colors = [[0, 0, 0, 255]; 256];
    for (color, rgb) in colors.iter_mut().zip(palette.chunks_exact(3)) {
        color[..3].copy_from_slice(rgb);
    }
    if let Some(index) = transparent {
        colors[usize::from(index)] = [0; 4];
    }
    colors
}

/// Bytes of the colour table that these flags announce.
fn table(flags: u8) -> u64 {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

fn sub_blocks(input: &mut dyn Input) -> Result<(), Error> {
    loop {
        match bytes::<1>(input)?[0] {
            0 => return Ok(()),
            length => skip(input, u64::from(length))?,
        }
    }
}

/// Skips inside what is buffered; past the end it fails at the next read.
fn skip(input: &mut dyn Input, mut length: u64) -> Result<(), Error> {
    while length > 0 {
        let have = input.fill_buf().map_err(|error| Error::read(Format::Gif, error))?.len();
        if have == 0 {
            return Err(Error::Truncated(Format::Gif));
        }
        let step = length.min(have as u64);
        input.consume(step as usize);
        length -= step;
    }
    Ok(())
}

fn bytes<const N: usize>(input: &mut dyn Input) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|error| Error::read(Format::Gif, error))?;
    Ok(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Gif, what)
}

fn from_crate(error: DecodingError) -> Error {
    match error {
        DecodingError::Io(error) => Error::read(Format::Gif, error),
        other => damaged(other),
    }
}
