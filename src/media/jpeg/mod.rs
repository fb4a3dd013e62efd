//! JPEG, by our own decoder: baseline and progressive, with Huffman codes and eight bits a sample.

mod bits;
mod component;
mod decoder;
mod frame;
mod huffman;
mod idct;
mod progressive;
mod rows;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::sync::Arc;

use super::decoder::{Decoder, Goal, Header, Input, MEMORY_MAX, Note, Opened};
use super::error::Error;
use super::exif::{self, Orientation};
use super::icc::{PROFILE_MAX, Profile, Samples};
use super::picture::Picture;
use super::shrink::Shrink;
use crate::wire::Format;

use frame::{Effort, Frame, Output, Plan, damaged};

/// More than that is buffered only where there is no way around it.
const COEFFICIENTS_MAX: u64 = 64 << 20;

#[derive(Debug)]
struct Jpeg {
    /// Bytes of the file.
    length: u64,
    frame: Frame,
    /// It comes in several scans.
    buffered: bool,
    lacks_end: bool,
}

pub(super) fn open(input: &mut dyn Input) -> Result<Opened, Error> {
    let (header, jpeg) = read(input)?;
    Ok((header, Arc::new(jpeg)))
}

/// Walks all segments. A file that ends within its coded data may yet have all of them: decoding shows
/// it.
fn read(input: &mut dyn Input) -> Result<(Header, Jpeg), Error> {
    let (mut frame, mut buffered) = (None::<Frame>, None);
    let mut orientation = Orientation::NoTransforms;
    let (mut icc, mut effort) = (Segments::default(), Effort::default());
    let (mut lacks_end, mut has_tables) = (false, false);
    loop {
        let kind = match marker(input) {
            Err(Error::Truncated(_)) if buffered.is_some() => {
                lacks_end = true;
                END_OF_IMAGE
            }
            kind => kind?,
        };
        match kind {
            END_OF_IMAGE => break,
            // Start of image and markers without content.
            0xd8 | 0x01 => {}
            // Start of frame; c4, c8 and cc are something else.
            kind @ 0xc0..=0xcf if !matches!(kind, 0xc4 | 0xc8 | 0xcc) => {
                let content = segment(input)?;
                frame = Some(Frame::read(kind, &content)?);
            }
            START_OF_SCAN => {
                let content = segment(input)?;
                let frame = frame.as_ref().ok_or_else(|| damaged("it contains no picture"))?;
                effort.add(frame, &content)?;
                let count = content.first().map_or(0, |&count| usize::from(count));
                buffered.get_or_insert(frame.progressive || count < frame.components.len());
            }
            HUFFMAN_TABLES => {
                has_tables = true;
                drop(segment(input)?);
            }
            _ if buffered.is_some() => drop(segment(input)?),
            0xe1 => orientation = of_segment(&segment(input)?).unwrap_or(orientation),
            0xe2 => icc.add(&segment(input)?),
            _ => drop(segment(input)?),
        }
    }
    let length = input.stream_position().map_err(Error::Read)?;
    let (Some(frame), Some(buffered)) = (frame, buffered) else {
        return Err(damaged("it contains no picture"));
    };
    let samples = match frame.components.len() {
        1 => Samples::Gray,
        4 => Samples::Cmyk,
        _ => Samples::Rgb,
    };
    let profile = Profile::read(&icc.whole(), samples);
    let note = match (has_tables, lacks_end) {
        (false, _) => Some(Note::NoTables),
        (true, true) => Some(Note::NoEnd),
        (true, false) => None,
    };
    let header = Header { orientation, profile, note, ..Header::plain(frame.size, 3) };
    Ok((header, Jpeg { length, frame, buffered, lacks_end }))
}

/// How it is turned. Reads no further than to the first of its coded data.
pub(super) fn orientation(input: &mut dyn Input) -> Result<Orientation, Error> {
    let mut orientation = Orientation::NoTransforms;
    loop {
        match marker(input)? {
            START_OF_SCAN | END_OF_IMAGE => return Ok(orientation),
            0xd8 | 0x01 => {}
            0xe1 => orientation = of_segment(&segment(input)?).unwrap_or(orientation),
            _ => drop(segment(input)?),
        }
    }
}

const END_OF_IMAGE: u8 = 0xd9;
const HUFFMAN_TABLES: u8 = 0xc4;
const START_OF_SCAN: u8 = 0xda;

fn of_segment(content: &[u8]) -> Option<Orientation> {
    content.starts_with(b"Exif\0\0").then(|| exif::orientation(content))
}

/// A colour profile, in as many segments as it takes.
#[derive(Default)]
struct Segments(Vec<(u8, Vec<u8>)>);

impl Segments {
    fn add(&mut self, segment: &[u8]) {
        if let Some([number, _count, part @ ..]) = segment.strip_prefix(b"ICC_PROFILE\0")
            && self.0.iter().map(|(_, part)| part.len()).sum::<usize>() < PROFILE_MAX
        {
            self.0.push((*number, part.to_vec()));
        }
    }

    fn whole(mut self) -> Vec<u8> {
        self.0.sort_by_key(|(number, _)| *number);
        self.0.into_iter().flat_map(|(_, part)| part).collect()
    }
}

impl Decoder for Jpeg {
    fn decode(&self, header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
        let mut data = Vec::with_capacity(self.length as usize + 2);
        input.take(self.length).read_to_end(&mut data).map_err(Error::Read)?;
        if self.lacks_end {
            data.extend([0xff, END_OF_IMAGE]);
        }
        let side = self.side(goal);
        let size = self.frame.scaled(side);
        let mut shrink = Shrink::new(size, 3, Shrink::factor(size, goal.ample));
        let plan = self.plan(side);
        let data = (&data[..], &self.frame);
        let decoded = match header.profile.as_ref().and_then(Profile::of_inks) {
            None => decoder::decode(data, plan, &mut |row| shrink.row(row)),
            Some(inks) => {
                let mut colors = vec![0; 3 * size.0 as usize];
                decoder::decode(data, Plan { output: Output::Inks, ..plan }, &mut |row| {
                    inks.apply(row, &mut colors);
                    shrink.row(&colors);
                })
            }
        };
        match decoded {
            // Some of its data are missing, too.
            Err(Error::Damaged { .. }) if self.lacks_end => {
                return Err(Error::Truncated(Format::Jpg));
            }
            decoded => decoded?,
        }
        Ok(shrink.finish(header.orientation))
    }
}

impl Jpeg {
    /// Samples of a block's side: the fewest of 1, 2, 4 that are enough, else all 8. Where all are
    /// more than a picture is given, half of it must do.
    fn side(&self, goal: Goal) -> u32 {
        let enough = |&side: &u32| {
            let (width, height) = self.frame.scaled(side);
            width >= goal.enough.0 && height >= goal.enough.1
        };
        match [1, 2, 4].into_iter().find(enough) {
            _ if self.frame.has_thirds() => 8,
            Some(side) => side,
            None if self.cost(8, goal) > MEMORY_MAX => 4,
            None => 8,
        }
    }

    fn plan(&self, side: u32) -> Plan {
        let buffered = self.buffered;
        let plan = Plan { side: side as usize, dc_only: false, buffered, output: Output::Colors };
        // At an eighth of the size the means of the blocks are nearly all that is wanted.
        let dc_only = side == 1 && self.buffered && self.frame.memory(&plan) > COEFFICIENTS_MAX;
        Plan { dc_only, ..plan }
    }

    fn cost(&self, side: u32, goal: Goal) -> u64 {
        let size = self.frame.scaled(side);
        let result = Shrink::bytes(size, 3, Shrink::factor(size, goal.ample));
        self.length + self.frame.memory(&self.plan(side)) + result
    }
}

/// Skips to the next marker that is neither fill nor part of coded data.
fn marker(input: &mut dyn Input) -> Result<u8, Error> {
    loop {
        input.skip_until(0xff).map_err(Error::Read)?;
        let mut kind = 0xff;
        while kind == 0xff {
            kind = byte(input)?;
        }
        // A zero stands for a coded 0xff; d0 to d7 are restarts.
        if !matches!(kind, 0 | 0xd0..=0xd7) {
            return Ok(kind);
        }
    }
}

/// The content of the segment that begins here.
fn segment(input: &mut dyn Input) -> Result<Vec<u8>, Error> {
    let length = u16::from_be_bytes([byte(input)?, byte(input)?]);
    let length = length.checked_sub(2).ok_or_else(|| damaged("a segment has no length"))?;
    let mut content = vec![0; usize::from(length)];
    input.read_exact(&mut content).map_err(|error| Error::read(Format::Jpg, error))?;
    Ok(content)
}

fn byte(input: &mut dyn Input) -> Result<u8, Error> {
    let mut byte = [0];
    input.read_exact(&mut byte).map_err(|error| Error::read(Format::Jpg, error))?;
    Ok(byte[0])
}
