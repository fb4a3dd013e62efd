//! BMP, row by row; only run-length coded pictures are held whole, as indices.

use std::io::SeekFrom;

use super::Error;
use super::exif::Orientation;
use super::picture::Picture;
use super::probe::{Goal, Header, Input, check_bounds};
use super::shrink::Shrink;
use crate::wire::Format;

/// Bytes before the second header.
const FILE_HEADER: u64 = 14;

#[derive(Clone, Debug)]
pub(super) struct Details {
    bits: u16,
    coding: Coding,
    /// Where the pixels begin.
    offset: u64,
    /// The lowest row comes first.
    bottom_up: bool,
    palette: Vec<[u8; 3]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Plain,
    Runs,
    /// Where red, green, blue and alpha are in a pixel.
    Masks([u32; 4]),
}

pub(super) fn header(input: &mut dyn Input) -> Result<(Header, Details), Error> {
    let head: [u8; 18] = bytes(input)?;
    let (offset, length) = (u32_at(&head, 10), u32_at(&head, 14));
    let mut info = vec![0; length.clamp(12, 124) as usize - 4];
    input.read_exact(&mut info).map_err(|error| Error::read(Format::Bmp, error))?;
    let core = length == 12;
    let (width, height, bits) = if core {
        let side = |at| i32::from(u16_at(&info, at));
        (side(0), side(2), u16_at(&info, 6))
    } else {
        (u32_at(&info, 0) as i32, u32_at(&info, 4) as i32, u16_at(&info, 10))
    };
    if width <= 0 || height == 0 {
        return Err(damaged("it has no pixels"));
    }
    let size = (width as u32, height.unsigned_abs());
    check_bounds(size, 3)?;
    let coding = coding(input, &info, core, bits)?;
    let palette = palette(input, &info, core, bits)?;
    let alpha = matches!(coding, Coding::Masks([.., alpha]) if alpha != 0);
    let header = Header {
        size,
        channels: if alpha { 4 } else { 3 },
        orientation: Orientation::default(),
        animated: false,
    };
    let details =
        Details { bits, coding, offset: u64::from(offset), bottom_up: height > 0, palette };
    details.check_length(&header, input)?;
    Ok((header, details))
}

fn coding(input: &mut dyn Input, info: &[u8], core: bool, bits: u16) -> Result<Coding, Error> {
    let compression = if core { 0 } else { u32_at(info, 12) };
    let masks = match (compression, bits) {
        (0, 1 | 2 | 4 | 8 | 24) => return Ok(Coding::Plain),
        (1, 8) | (2, 4) => return Ok(Coding::Runs),
        (0, 16) => [0x7c00, 0x3e0, 0x1f, 0],
        (0, 32) => [0xff_0000, 0xff00, 0xff, 0],
        // From the longer headers on, the masks are part of them.
        (3 | 6, 16 | 32) if info.len() >= 48 => {
            let alpha = if info.len() >= 52 { u32_at(info, 48) } else { 0 };
            [u32_at(info, 36), u32_at(info, 40), u32_at(info, 44), alpha]
        }
        (3, 16 | 32) => {
            let masks: [u8; 12] = bytes(input)?;
            [u32_at(&masks, 0), u32_at(&masks, 4), u32_at(&masks, 8), 0]
        }
        _ => {
            let what = format!("compression {compression} with {bits} bits a pixel");
            return Err(Error::Unsupported { format: Format::Bmp, what });
        }
    };
    Ok(Coding::Masks(masks))
}

fn palette(
    input: &mut dyn Input,
    info: &[u8],
    core: bool,
    bits: u16,
) -> Result<Vec<[u8; 3]>, Error> {
    if bits > 8 {
        return Ok(Vec::new());
    }
    let most = 1_u32 << bits;
    let stated = if core { 0 } else { u32_at(info, 28) };
    let count = if stated == 0 { most } else { stated.min(most) } as usize;
    let width = if core { 3 } else { 4 };
    let mut table = vec![0; count * width];
    input.read_exact(&mut table).map_err(|error| Error::read(Format::Bmp, error))?;
    let mut palette: Vec<_> = table.chunks_exact(width).map(|c| [c[2], c[1], c[0]]).collect();
    // Colours that it lacks are black.
    palette.resize(256, [0; 3]);
    Ok(palette)
}

impl Details {
    pub(super) fn memory(&self, header: &Header) -> u64 {
        let (width, height) = (u64::from(header.size.0), u64::from(header.size.1));
        let indices = if self.coding == Coding::Runs { width * height } else { 0 };
        indices + 8 * width
    }

    pub(super) fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
    ) -> Result<Picture, Error> {
        let (width, height) = (header.size.0 as usize, header.size.1 as usize);
        let mut shrink =
            Shrink::new(header.size, header.channels, Shrink::factor(header.size, goal.ample));
        let mut line = Vec::with_capacity(width * header.channels);
        let order = |y: usize| if self.bottom_up { height - 1 - y } else { y };
        if self.coding == Coding::Runs {
            let indices = self.runs(width, height, input)?;
            for y in 0..height {
                line.clear();
                let row = &indices[order(y) * width..][..width];
                line.extend(row.iter().flat_map(|&index| self.palette[usize::from(index)]));
                shrink.row(&line);
            }
        } else {
            let mut row = vec![0; self.stride(header) as usize];
            for y in 0..height {
                let at = self.offset + order(y) as u64 * self.stride(header);
                input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
                input.read_exact(&mut row).map_err(|error| Error::read(Format::Bmp, error))?;
                self.widen(&row, width, header.channels, &mut line);
                shrink.row(&line);
            }
        }
        Ok(shrink.finish(header.orientation))
    }

    /// Bytes of a row in the file: whole words.
    fn stride(&self, header: &Header) -> u64 {
        (u64::from(header.size.0) * u64::from(self.bits)).div_ceil(32) * 4
    }

    fn check_length(&self, header: &Header, input: &mut dyn Input) -> Result<(), Error> {
        let length = input.seek(SeekFrom::End(0)).map_err(Error::Read)?;
        let needed = match self.coding {
            // At least one byte; the runs themselves say where they end.
            Coding::Runs => 1,
            _ => u64::from(header.size.1) * self.stride(header),
        };
        if self.offset < FILE_HEADER || self.offset + needed > length {
            return Err(Error::Truncated(Format::Bmp));
        }
        Ok(())
    }

    /// A row as RGB or RGBA.
    fn widen(&self, row: &[u8], width: usize, channels: usize, line: &mut Vec<u8>) {
        line.clear();
        match (self.coding, self.bits) {
            (Coding::Masks(masks), bits) => {
                let bytes = usize::from(bits / 8);
                for pixel in row.chunks_exact(bytes).take(width) {
                    let mut word = [0; 4];
                    word[..bytes].copy_from_slice(pixel);
                    let word = u32::from_le_bytes(word);
                    line.extend(masks[..channels].iter().map(|&mask| channel(word, mask)));
                }
            }
            (_, 24) => {
                line.extend(row.chunks_exact(3).take(width).flat_map(|p| [p[2], p[1], p[0]]));
            }
            (_, bits) => {
                let per_byte = 8 / usize::from(bits);
                let mask = ((1_u16 << bits) - 1) as u8;
                line.extend((0..width).flat_map(|x| {
                    let shift = 8 - usize::from(bits) * (x % per_byte + 1);
                    self.palette[usize::from(row[x / per_byte] >> shift & mask)]
                }));
            }
        }
    }

    /// Decodes runs into one index a pixel, in the order of the file.
    fn runs(&self, width: usize, height: usize, input: &mut dyn Input) -> Result<Vec<u8>, Error> {
        input.seek(SeekFrom::Start(self.offset)).map_err(Error::Read)?;
        let mut indices = vec![0; width * height];
        let (mut x, mut y) = (0, 0);
        let nibbles = self.bits == 4;
        let index = |byte: u8, at: usize| match (nibbles, at % 2) {
            (false, _) => byte,
            (true, 0) => byte >> 4,
            (true, _) => byte & 15,
        };
        while y < height {
            let mut put = |x: &mut usize, value| {
                if *x < width {
                    indices[y * width + *x] = value;
                }
                *x += 1;
            };
            match bytes(input)? {
                [0, 0] => (x, y) = (0, y + 1),
                [0, 1] => break,
                [0, 2] => {
                    let [right, up] = bytes(input)?;
                    (x, y) = (x + usize::from(right), y + usize::from(up));
                }
                [0, count] => {
                    let count = usize::from(count);
                    let packed = if nibbles { count.div_ceil(2) } else { count };
                    // Padded to an even length.
                    let mut literal = vec![0; packed + packed % 2];
                    input
                        .read_exact(&mut literal)
                        .map_err(|error| Error::read(Format::Bmp, error))?;
                    for at in 0..count {
                        let byte = literal[if nibbles { at / 2 } else { at }];
                        put(&mut x, index(byte, at));
                    }
                }
                [count, byte] => {
                    (0..usize::from(count)).for_each(|at| put(&mut x, index(byte, at)))
                }
            }
        }
        Ok(indices)
    }
}

/// The bits of `word` under `mask`, as eight.
fn channel(word: u32, mask: u32) -> u8 {
    if mask == 0 {
        return 0;
    }
    let shift = mask.trailing_zeros();
    let most = mask >> shift;
    // A mask with gaps is nonsense; it gives some colour, not a panic.
    (u64::from((word & mask) >> shift) * 255 / u64::from(most)) as u8
}

fn bytes<const N: usize>(input: &mut dyn Input) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|error| Error::read(Format::Bmp, error))?;
    Ok(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn damaged(what: &'static str) -> Error {
    Error::damaged(Format::Bmp, what)
}
