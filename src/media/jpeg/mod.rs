//! Decodes JPEG with murald's own decoder: baseline and progressive, Huffman codes, 8 bits per
//! sample.

mod bits;
mod component;
mod decoder;
mod frame;
mod huffman;
mod idct;
mod progressive;
mod rows;

pub(super) use rows::to_rgb;
#[cfg(test)]
mod tests;

use super::decoder::{Goal, Header, Input, MEMORY_MAX, Note, whole};
use super::error::Error;
use super::exif::{self, Orientation};
use super::icc::{PROFILE_MAX, Profile, Samples};
use super::picture::Picture;
use super::shrink::Shrink;
use crate::wire::Format;

use bits::{END_OF_IMAGE, START_OF_SCAN, segment};
use frame::{Effort, Frame, Output, Plan, damaged};

/// A file and how to decode it.
#[derive(Debug)]
struct Jpeg {
    /// The file up to its end marker, which is added if it is missing.
    data: Vec<u8>,
    frame: Frame,
    /// Whether the image has several scans.
    buffered: bool,
    lacks_end: bool,
}

pub(super) fn open(input: &mut dyn Input) -> Result<Header, Error> {
    read(input).map(|(header, _)| header)
}

/// Reads all segments. If the file ends within coded data, decoding will show whether these are
/// complete.
fn read(input: &mut dyn Input) -> Result<(Header, Jpeg), Error> {
    let mut data = whole(input)?;
    let mut frame = None::<Frame>;
    let mut buffered = None;
    let mut orientation = Orientation::NoTransforms;
    let (mut icc, mut effort) = (Segments::default(), Effort::default());
    let mut lacks_end = false;
    let mut has_tables = false;
    let mut at = 0;
    loop {
        let (kind, content) = match segment(&data, &mut at) {
            Err(Error::Truncated(_)) if buffered.is_some() => {
                (lacks_end, at) = (true, data.len());
                break;
            }
            segment => match segment? {
                Some(segment) => segment,
                None => break,
            },
        };
        match kind {
            kind if is_frame(kind) => {
                let earlier = frame.replace(Frame::read(kind, content)?);
                if earlier.is_some() {
                    return Err(damaged("it has two frames"));
                }
            }
            START_OF_SCAN => {
                let frame = frame
                    .as_ref()
                    .ok_or_else(|| damaged("it contains no picture"))?;
                effort.add(frame, content)?;
                let count = content.first().map_or(0, |&count| usize::from(count));
                buffered.get_or_insert(frame.progressive || count < frame.components.len());
            }
            HUFFMAN_TABLES => has_tables = true,
            0xe1 if buffered.is_none() && content.starts_with(b"Exif\0\0") => {
                orientation = exif::orientation(content);
            }
            0xe2 if buffered.is_none() => icc.add(content),
            _ => {}
        }
    }
    let (Some(frame), Some(buffered)) = (frame, buffered) else {
        return Err(damaged("it contains no picture"));
    };
    data.truncate(at);
    if lacks_end {
        data.extend([0xff, END_OF_IMAGE]);
    }
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
    let header = Header {
        orientation,
        profile,
        note,
        ..Header::plain(frame.size, 3)
    };
    Ok((
        header,
        Jpeg {
            data,
            frame,
            buffered,
            lacks_end,
        },
    ))
}

const HUFFMAN_TABLES: u8 = 0xc4;

fn is_frame(kind: u8) -> bool {
    matches!(kind, 0xc0..=0xcf) && !matches!(kind, HUFFMAN_TABLES | 0xc8 | 0xcc)
}

/// A colour profile, possibly split into several segments.
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

pub(super) fn decode(header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
    let (now, jpeg) = read(input)?;
    header.check(Format::Jpg, now.size, 3)?;
    let side = jpeg.side(goal);
    let size = jpeg.frame.scaled(side);
    let mut shrink = Shrink::new(size, 3, Shrink::factor(size, goal.ample));
    let plan = jpeg.plan(side);
    let data = (&jpeg.data[..], &jpeg.frame);
    let decoded = match header.profile.as_ref().and_then(Profile::of_inks) {
        None => decoder::decode(data, plan, &mut |row| shrink.row(row)),
        Some(inks) => {
            let mut colors = vec![0; 3 * size.0 as usize];
            decoder::decode(
                data,
                Plan {
                    output: Output::Inks,
                    ..plan
                },
                &mut |row| {
                    inks.apply(row, &mut colors);
                    shrink.row(&colors);
                },
            )
        }
    };
    match decoded {
        // The end of the coded data is missing, too.
        Err(Error::Damaged { .. }) if jpeg.lacks_end => return Err(Error::Truncated(Format::Jpg)),
        decoded => decoded?,
    }
    Ok(shrink.finish(header.orientation))
}

impl Jpeg {
    /// Returns the samples per block side: the smallest of 1, 2 and 4 that suffices, or else 8. If
    /// 8 needs too much memory, 4 is used.
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
        Plan {
            side: side as usize,
            buffered: self.buffered,
            output: Output::Colors,
        }
    }

    fn cost(&self, side: u32, goal: Goal) -> u64 {
        let size = self.frame.scaled(side);
        let result = Shrink::bytes(size, 3, Shrink::factor(size, goal.ample));
        self.data.len() as u64 + self.frame.memory(&self.plan(side)) + result
    }
}
