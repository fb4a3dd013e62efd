//! The blocks of a GIF, one after another: frames, their descriptions and their indices. Holds the
//! colours and the indices of one frame.

use std::time::Duration;

use weezl::decode::Configuration;
use weezl::{BitOrder, LzwStatus};

use super::canvas::{Disposal, FrameArea};
use super::decoder::{Input, Stop};
use super::error::Error;
use super::icc::PROFILE_MAX;
use crate::wire::Format;

/// Bytes of fill between the blocks of a file.
const FILL_MAX: u32 = 64 << 10;
const INTERLACED: u8 = 0x40;
/// The program whose extension is a colour profile.
const PROFILE: &[u8] = b"ICCRGBG1012";
/// Bits of a code at first; the largest code has twelve.
const SIZES: std::ops::RangeInclusive<u8> = 1..=11;

pub(super) struct Blocks<'a> {
    input: &'a mut dyn Input,
    /// The size of the canvas.
    pub(super) size: (u32, u32),
    /// The colours of frames that have none of their own.
    common: Vec<u8>,
    /// Nothing where there is none before the frames that were seen, or one that is too long.
    pub(super) profile: Vec<u8>,
    fill: u32,
}

/// A frame, before its pixels.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) place: FrameArea,
    pub(super) interlaced: bool,
    pub(super) disposal: Disposal,
    pub(super) delay: Duration,
    /// The colour that is none.
    pub(super) clear: Option<u8>,
    /// Its own colours.
    pub(super) own: Option<Vec<u8>>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(input: &'a mut dyn Input) -> Result<Self, Error> {
        input.rewind().map_err(Error::Read)?;
        let mut blocks =
            Self { input, size: (0, 0), common: Vec::new(), profile: Vec::new(), fill: 0 };
        let head: [u8; 13] = blocks.bytes()?;
        if !matches!(&head[..6], b"GIF87a" | b"GIF89a") {
            return Err(Error::damaged(Format::Gif, "an unknown version"));
        }
        blocks.size = (u16_at(&head, 6), u16_at(&head, 8));
        blocks.common = blocks.table(head[10])?.unwrap_or_default();
        Ok(blocks)
    }

    /// Goes to the data of the next frame; none at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Error> {
        let mut control = [0; 4];
        loop {
            match self.bytes::<1>()?[0] {
                0x21 => match self.bytes::<1>()?[0] {
                    0xf9 => control = self.control()?,
                    0xff => self.program()?,
                    // A text is shown by it, and by nobody else.
                    0x01 => {
                        control = [0; 4];
                        self.skip_blocks()?;
                    }
                    _ => self.skip_blocks()?,
                },
                0x2c => return self.frame(control).map(Some),
                0x3b => return Ok(None),
                // Fill, which some writers leave between blocks; a file of holes is nothing else.
                0 if self.fill < FILL_MAX => self.fill += 1,
                _ => return Err(Error::damaged(Format::Gif, "an unknown block")),
            }
        }
    }

    fn frame(&mut self, [flags, low, high, clear]: [u8; 4]) -> Result<Frame, Error> {
        let place: [u8; 9] = self.bytes()?;
        let [left, top, width, height] = [0, 2, 4, 6].map(|at| u16_at(&place, at));
        let disposal = match flags >> 2 & 7 {
            2 => Disposal::Clear,
            // Some have read the specification so that a bit says it.
            3 | 4 => Disposal::Restore,
            _ => Disposal::Keep,
        };
        Ok(Frame {
            place: FrameArea { left, top, width, height },
            interlaced: place[8] & INTERLACED != 0,
            disposal,
            delay: Duration::from_millis(u64::from(u16::from_le_bytes([low, high])) * 10),
            clear: (flags & 1 != 0).then_some(clear),
            own: self.table(place[8])?,
        })
    }

    /// The colours of a frame; what the table lacks can be seen through.
    pub(super) fn colors(&self, frame: &Frame) -> Result<[[u8; 4]; 256], Error> {
        let mut colors = [[0; 4]; 256];
        let table = frame.own.as_ref().unwrap_or(&self.common);
        if table.is_empty() {
            return Err(Error::damaged(Format::Gif, "it has no colours"));
        }
        for (color, &[red, green, blue]) in colors.iter_mut().zip(table.as_chunks().0) {
            *color = [red, green, blue, 255];
        }
        if let Some(clear) = frame.clear {
            colors[usize::from(clear)] = [0; 4];
        }
        Ok(colors)
    }

    /// The indices of a frame whose data come next, as far as there are any, in the order in which
    /// they are stored; and whether the file goes on behind them.
    pub(super) fn indices(
        &mut self,
        frame: &Frame,
        stop: Stop<'_>,
    ) -> (Vec<u8>, Result<(), Error>) {
        let mut indices = vec![0; frame.place.width as usize * frame.place.height as usize];
        let mut count = 0;
        let outcome = self.unpack(&mut indices, &mut count, stop);
        indices.truncate(count);
        (indices, outcome)
    }

    fn unpack(
        &mut self,
        indices: &mut [u8],
        count: &mut usize,
        stop: Stop<'_>,
    ) -> Result<(), Error> {
        let [size] = self.bytes()?;
        if !SIZES.contains(&size) {
            return self.skip_blocks();
        }
        let codes = Configuration::new(BitOrder::Lsb, size).with_yield_on_full_buffer(true);
        let (mut codes, mut ended) = (codes.build(), false);
        self.blocks(stop, |mut block| {
            while !ended {
                let step = codes.decode_bytes(block, &mut indices[*count..]);
                *count += step.consumed_out;
                block = &block[step.consumed_in..];
                // No frame has more than its pixels.
                match step.status {
                    Ok(LzwStatus::Ok) if *count < indices.len() => {}
                    Ok(LzwStatus::NoProgress) => break,
                    _ => ended = true,
                }
            }
        })
    }

    /// Skips the data of a frame.
    pub(super) fn skip_data(&mut self) -> Result<(), Error> {
        self.skip(1)?;
        self.skip_blocks()
    }

    fn control(&mut self) -> Result<[u8; 4], Error> {
        let mut control = [0; 4];
        self.blocks(&|| false, |block| {
            if let Some(first) = block.first_chunk() {
                control = *first;
            }
        })?;
        Ok(control)
    }

    /// An application's block: a colour profile, mostly how often the frames are shown.
    fn program(&mut self) -> Result<(), Error> {
        let (mut name, mut profile) = (None, std::mem::take(&mut self.profile));
        let known = !profile.is_empty();
        self.blocks(&|| false, |block| match name {
            None => name = Some(block == PROFILE),
            Some(true) if !known && profile.len() <= PROFILE_MAX => {
                profile.extend_from_slice(block)
            }
            Some(_) => {}
        })?;
        self.profile = profile;
        Ok(())
    }

    /// Reads sub-blocks to the last.
    fn blocks(&mut self, stop: Stop<'_>, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut block = [0; 255];
        loop {
            if stop() {
                return Err(Error::Stopped);
            }
            let [length] = self.bytes()?;
            let block = &mut block[..usize::from(length)];
            if block.is_empty() {
                return Ok(());
            }
            self.input.read_exact(block).map_err(failed)?;
            each(block);
        }
    }

    fn skip_blocks(&mut self) -> Result<(), Error> {
        loop {
            match self.bytes::<1>()?[0] {
                0 => return Ok(()),
                length => self.skip(u64::from(length))?,
            }
        }
    }

    /// The colour table that these flags announce.
    fn table(&mut self, flags: u8) -> Result<Option<Vec<u8>>, Error> {
        if flags & 0x80 == 0 {
            return Ok(None);
        }
        let mut table = vec![0; 3 << ((flags & 7) + 1)];
        self.input.read_exact(&mut table).map_err(failed)?;
        Ok(Some(table))
    }

    /// Skips inside what is buffered; past the end it fails.
    fn skip(&mut self, mut length: u64) -> Result<(), Error> {
        while length > 0 {
            let have = self.input.fill_buf().map_err(failed)?.len();
            if have == 0 {
                return Err(Error::Truncated(Format::Gif));
            }
            let step = length.min(have as u64);
            self.input.consume(step as usize);
            length -= step;
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::read(Format::Gif, error)
}

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}
