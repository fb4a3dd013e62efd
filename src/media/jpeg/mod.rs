//! JPEG: reduced by our own decoder where less than all is wanted, whole through zune-jpeg.

mod bits;
mod component;
mod huffman;
mod idct;
mod progressive;
mod scaled;

use std::io::Read;
use std::sync::Arc;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::Error;
use super::exif::Orientation;
use super::icc::{Conversion, PROFILE_MAX};
use super::picture::Picture;
use super::probe::{Goal, Header, Input, MEMORY_MAX, check_bounds};
use super::shrink::Shrink;
use crate::wire::Format;

/// More than that is held only where there is no way around it.
const COEFFICIENTS_MAX: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub(super) struct Details {
    /// Of the file, in bytes.
    length: u64,
    /// What the coefficients take where all of them are held at once: progressive pictures.
    coefficients: u64,
    /// Of a kind that our own decoder takes: eight bits, Huffman codes, grey or three colours.
    ours: bool,
    pub(super) icc: Option<Arc<Conversion>>,
}

/// Walks all segments. A file without its end marker is cut off, whatever a decoder makes of it.
pub(super) fn header(input: &mut dyn Input) -> Result<(Header, Details), Error> {
    let mut frame = None;
    let mut orientation = Orientation::default();
    let mut icc = Profile::default();
    let mut scans = 0;
    loop {
        match marker(input)? {
            // End of image.
            0xd9 => break,
            // Start of image and markers without content.
            0xd8 | 0x01 => {}
            // Start of frame; c4, c8 and cc are something else.
            kind @ 0xc0..=0xcf if !matches!(kind, 0xc4 | 0xc8 | 0xcc) => {
                let content = segment(input)?;
                frame.get_or_insert(Frame::read(kind, &content)?);
            }
            0xe1 if scans == 0 => {
                let content = segment(input)?;
                if content.starts_with(b"Exif\0\0") {
                    orientation = Orientation::of_exif(&content);
                }
            }
            0xe2 if scans == 0 => icc.add(&segment(input)?),
            kind => {
                scans += u32::from(kind == 0xda);
                segment(input)?;
            }
        }
    }
    let length = input.stream_position().map_err(Error::Read)?;
    let frame = frame.filter(|_| scans > 0).ok_or_else(|| damaged("it holds no picture"))?;
    let header = Header { size: frame.size, channels: 3, orientation, animated: false };
    let (coefficients, ours) = (frame.coefficients, frame.ours);
    Ok((header, Details { length, coefficients, ours, icc: icc.conversion() }))
}

/// A colour profile, in as many segments as it takes.
#[derive(Default)]
struct Profile(Vec<(u8, Vec<u8>)>);

impl Profile {
    fn add(&mut self, segment: &[u8]) {
        if let Some([number, _count, part @ ..]) = segment.strip_prefix(b"ICC_PROFILE\0")
            && self.0.iter().map(|(_, part)| part.len()).sum::<usize>() < PROFILE_MAX
        {
            self.0.push((*number, part.to_vec()));
        }
    }

    fn conversion(mut self) -> Option<Arc<Conversion>> {
        self.0.sort_by_key(|(number, _)| *number);
        let whole: Vec<u8> = self.0.into_iter().flat_map(|(_, part)| part).collect();
        Conversion::of(&whole).map(Arc::new)
    }
}

struct Frame {
    size: (u32, u32),
    coefficients: u64,
    ours: bool,
}

impl Frame {
    fn read(kind: u8, content: &[u8]) -> Result<Self, Error> {
        let [precision, h1, h2, w1, w2, _count, components @ ..] = content else {
            return Err(damaged("its frame header is too short"));
        };
        let size =
            (u32::from(u16::from_be_bytes([*w1, *w2])), u32::from(u16::from_be_bytes([*h1, *h2])));
        if size.0 == 0 || size.1 == 0 {
            return Err(damaged("it has no pixels"));
        }
        check_bounds(size, 3)?;
        let sampling =
            || components.chunks_exact(3).map(|c| (u64::from(c[1] >> 4), u64::from(c[1] & 15)));
        let (h, v) = sampling().fold((1, 1), |(h, v), s| (s.0.max(h), s.1.max(v)));
        let pixels = u64::from(size.0) * u64::from(size.1);
        // Two bytes each.
        let all = sampling().map(|s| 2 * pixels * s.0 * s.1 / (h * v)).sum();
        let simple = |(own_h, own_v): (u64, u64)| {
            let simple = |most: u64, own: u64| own > 0 && matches!(most * 4 / own, 4 | 8 | 16);
            simple(h, own_h) && simple(v, own_v)
        };
        let ours = *precision == 8
            && kind <= 0xc2
            && matches!(components.len(), 3 | 9)
            && sampling().all(simple);
        // c0 and c1 are decoded block by block.
        Ok(Self { size, coefficients: if kind > 0xc1 { all } else { 0 }, ours })
    }
}

impl Details {
    pub(super) fn memory(&self, header: &Header, goal: Goal) -> u64 {
        match self.side(header, goal) {
            8 => self.whole(header),
            side => {
                let (width, height) = scaled_size(header.size, side);
                let held = self.coefficients / if self.means(side) { 64 } else { 1 };
                // Planes, and the pixels made of them.
                self.length + held + 2 * 3 * u64::from(width) * u64::from(height)
            }
        }
    }

    pub(super) fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
    ) -> Result<Picture, Error> {
        let mut data = Vec::with_capacity(self.length as usize);
        input.take(self.length).read_to_end(&mut data).map_err(Error::Read)?;
        match self.side(header, goal) {
            8 => finish(header, header.size, whole(data)?, goal),
            side => {
                let scaled =
                    scaled::decode(&data, side as usize, self.means(side)).map_err(damaged)?;
                drop(data);
                finish(header, scaled.size, scaled.pixels, goal)
            }
        }
    }

    /// Samples of a block's side: the fewest of 1, 2, 4 that are enough, else all 8. Where all are
    /// more than a picture is given, half of it must do.
    fn side(&self, header: &Header, goal: Goal) -> u32 {
        let enough = |&side: &u32| {
            let (width, height) = scaled_size(header.size, side);
            width >= goal.enough.0 && height >= goal.enough.1
        };
        match [1, 2, 4].into_iter().find(enough) {
            Some(side) if self.ours => side,
            None if self.ours && self.whole(header) > MEMORY_MAX => 4,
            _ => 8,
        }
    }

    /// Whether of each block only the mean is held: at an eighth of the size that is nearly all
    /// that is wanted.
    fn means(&self, side: u32) -> bool {
        side == 1 && self.coefficients > COEFFICIENTS_MAX
    }

    fn whole(&self, header: &Header) -> u64 {
        let (width, height) = header.size;
        self.length + self.coefficients + 3 * u64::from(width) * u64::from(height)
    }
}

fn whole(data: Vec<u8>) -> Result<Vec<u8>, Error> {
    let options = DecoderOptions::default()
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    // Strict, or what is missing in the middle would be made up in grey.
    let strict = options.set_strict_mode(true);
    match JpegDecoder::new_with_options(ZCursor::new(&data), strict).decode() {
        // Some cameras leave fill between the segments; nothing is missing then.
        Err(error) if error.to_string().contains("Extra bytes between headers") => {
            JpegDecoder::new_with_options(ZCursor::new(&data), options).decode()
        }
        other => other,
    }
    .map_err(|error| damaged(error.to_string()))
}

fn finish(
    header: &Header,
    size: (u32, u32),
    pixels: Vec<u8>,
    goal: Goal,
) -> Result<Picture, Error> {
    if pixels.len() != size.0 as usize * size.1 as usize * 3 {
        return Err(damaged("it holds another number of pixels than it says"));
    }
    let mut shrink = Shrink::new(size, 3, Shrink::factor(size, goal.ample));
    shrink.rows(&pixels);
    Ok(shrink.finish(header.orientation))
}

fn scaled_size(size: (u32, u32), side: u32) -> (u32, u32) {
    ((size.0 * side).div_ceil(8), (size.1 * side).div_ceil(8))
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

fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Jpg, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const SAMPLES: &[(&str, &[u8])] = &[
        ("halved", include_bytes!("samples/halved.jpg")),
        ("upright", include_bytes!("samples/upright.jpg")),
        ("wide", include_bytes!("samples/wide.jpg")),
        ("progressive", include_bytes!("samples/progressive.jpg")),
        ("grey-progressive", include_bytes!("samples/grey-progressive.jpg")),
        ("restarts", include_bytes!("samples/restarts.jpg")),
    ];

    /// How alike two pictures are, in dB; above 40 nobody sees a difference.
    fn likeness(a: &[u8], b: &[u8]) -> f64 {
        let square = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
        let error = a.iter().zip(b).map(square).sum::<f64>() / a.len() as f64;
        10.0 * (255.0 * 255.0 / error).log10()
    }

    #[test]
    fn scaled_is_what_the_whole_is_from_afar() {
        for (name, data) in SAMPLES {
            let (header, details) = header(&mut Cursor::new(*data)).unwrap();
            assert!(details.ours, "{name}");
            let all = whole(data.to_vec()).unwrap();
            for side in [1, 2, 4] {
                let mut shrink = Shrink::new(header.size, 3, 8 / side);
                shrink.rows(&all);
                let averaged = shrink.finish(Orientation::default());
                let scaled = scaled::decode(data, side as usize, false).unwrap();
                assert_eq!(scaled.size, (averaged.width(), averaged.height()));
                let likeness = likeness(&scaled.pixels, averaged.pixels());
                assert!(likeness > 36.0, "{name} at {side}: {likeness:.1} dB");
            }
        }
    }

    #[test]
    fn means_alone_are_close() {
        let data = SAMPLES.iter().find(|(name, _)| *name == "progressive").unwrap().1;
        let all = scaled::decode(data, 1, false).unwrap();
        let means = scaled::decode(data, 1, true).unwrap();
        assert_eq!(all.size, means.size);
        assert!(likeness(&all.pixels, &means.pixels) > 25.0);
    }

    #[test]
    fn nothing_is_made_up() {
        for (name, data) in SAMPLES {
            for part in 1..16 {
                // Data are missing, but the end mark is there.
                let mut cut = data[..data.len() * part / 16].to_vec();
                cut.extend([0xff, 0xd9]);
                // Whole passes may be missing of a progressive picture: coarser, but a picture.
                let coarse = name.contains("progressive");
                assert!(coarse || scaled::decode(&cut, 2, false).is_err(), "{name}: {part}");
            }
        }
    }

    #[test]
    fn damage_is_no_panic() {
        for (_, data) in SAMPLES {
            for at in (0..data.len()).step_by(7) {
                let mut damaged = data.to_vec();
                damaged[at] ^= 1 << (at % 8);
                let header = header(&mut Cursor::new(&damaged[..]));
                // The size is bounded by who calls.
                if header.is_ok_and(|(header, _)| header.size == (141, 93)) {
                    let means = at % 2 == 0;
                    scaled::decode(&damaged, if means { 1 } else { 4 }, means).map(drop).ok();
                }
            }
        }
    }

    #[test]
    fn inks_are_left_to_the_other_decoder() {
        let data = include_bytes!("samples/inks.jpg");
        let (_, details) = header(&mut Cursor::new(&data[..])).unwrap();
        assert!(!details.ours);
        let inks = whole(data.to_vec()).unwrap();
        let plain = whole(SAMPLES[0].1.to_vec()).unwrap();
        assert!(likeness(&inks, &plain) > 25.0);
    }
}
