//! Strips and tiles that are JPEGs, whose tables may stand in the directory (TIFF's second technical
//! note).
//!
//! Our own decoder reads them: the crate's would allocate whatever size such a JPEG claims.

use std::io::{Read, Seek, SeekFrom};

use tiff::decoder::Decoder;
use tiff::tags::Tag;

use super::{Patched, damaged, from_crate, unsupported};
use crate::media::decoder::Stop;
use crate::media::error::Error;
use crate::media::jpeg;
use crate::wire::Format;

#[derive(Debug)]
pub(super) struct Jpegs {
    /// A JPEG without a picture, to be read before each.
    tables: Vec<u8>,
    /// Where each begins, and its bytes.
    places: Vec<(u64, u64)>,
    /// White is the least of a sample, and not black.
    inverted: bool,
}

const END_OF_IMAGE: &[u8] = &[0xff, 0xd9];

impl Jpegs {
    pub(super) fn read(decoder: &mut Decoder<Patched<'_>>, inverted: bool) -> Result<Self, Error> {
        let length = decoder.inner().seek(SeekFrom::End(0)).map_err(Error::Read)?;
        let mut numbers = |strips, tiles| match decoder.find_tag_unsigned_vec::<u64>(strips) {
            Ok(None) => decoder.find_tag_unsigned_vec(tiles),
            numbers => numbers,
        };
        let starts = numbers(Tag::StripOffsets, Tag::TileOffsets).map_err(from_crate)?;
        let counts = numbers(Tag::StripByteCounts, Tag::TileByteCounts).map_err(from_crate)?;
        let starts = starts.into_iter().flatten();
        let places = starts.zip(counts.into_iter().flatten());
        let places = places.map(|(at, count)| (at, count.min(length.saturating_sub(at)))).collect();
        let tables = decoder.find_tag_unsigned_vec(Tag::JPEGTables).map_err(from_crate)?;
        let mut tables: Vec<u8> = tables.unwrap_or_default();
        if tables.ends_with(END_OF_IMAGE) {
            tables.truncate(tables.len() - END_OF_IMAGE.len());
        }
        Ok(Self { tables, places, inverted })
    }

    /// Bytes that [`Self::samples`] takes at most, beside its result.
    pub(super) fn memory(&self, width: u32, count: usize) -> u64 {
        let longest = self.places.iter().map(|place| place.1).max().unwrap_or(0);
        self.tables.len() as u64 + longest + jpeg::components_memory(width, count)
    }

    /// What is in a strip or tile of this size, `count` samples a pixel. The last may be lower.
    pub(super) fn samples(
        &self,
        input: &mut Patched<'_>,
        index: u32,
        (size, count): ((u32, u32), usize),
        stop: Stop<'_>,
    ) -> Result<Vec<u8>, Error> {
        let place = self.places.get(index as usize);
        let &(at, length) = place.ok_or_else(|| damaged("a strip or tile is missing"))?;
        let mut data = Vec::with_capacity(self.tables.len() + length as usize);
        data.extend(&self.tables);
        input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
        input.take(length).read_to_end(&mut data).map_err(Error::Read)?;
        let mut samples = jpeg::components(&data, size, count, stop).map_err(of_tiff)?;
        if self.inverted {
            samples.iter_mut().for_each(|sample| *sample = 255 - *sample);
        }
        Ok(samples)
    }
}

/// The JPEG's fault as the TIFF's.
fn of_tiff(error: Error) -> Error {
    match error {
        Error::Stopped | Error::Read(_) => error,
        Error::Truncated(_) => Error::Truncated(Format::Tiff),
        Error::Unsupported { what, .. } => unsupported(format!("JPEGs with {what}")),
        other => damaged(other),
    }
}

#[cfg(test)]
mod tests {
    use crate::media::probe;
    use image::codecs::jpeg::JpegEncoder;
    use std::io::Cursor;

    /// A grey picture of 4 × 3 pixels in one strip, which is a JPEG of this size.
    fn file(width: u32, height: u32) -> Vec<u8> {
        let mut jpeg = Vec::new();
        let pixels = vec![200; (width * height) as usize];
        let encoder = JpegEncoder::new(&mut jpeg);
        image::ImageEncoder::write_image(
            encoder,
            &pixels,
            width,
            height,
            image::ExtendedColorType::L8,
        )
        .unwrap();
        let (count, start) = (9_u16, 8 + 2 + 9 * 12 + 4);
        let mut bytes = [b"II*\0\x08\0\0\0", &count.to_le_bytes()[..]].concat();
        let length = jpeg.len() as u32;
        let fields = [(256, 4), (257, 3), (258, 8), (259, 7), (262, 1)];
        let strip = [(273, start), (277, 1), (278, 3), (279, length)];
        for (tag, value) in fields.into_iter().chain(strip) {
            bytes.extend([u16::to_le_bytes(tag), 4_u16.to_le_bytes()].concat());
            bytes.extend([1_u32.to_le_bytes(), u32::to_le_bytes(value)].concat());
        }
        bytes.extend([0; 4]);
        [bytes, jpeg].concat()
    }

    #[test]
    fn tiff_strips_that_are_jpegs_have_the_size_that_was_announced() {
        let decoded = |width, height| {
            let mut input = Cursor::new(file(width, height));
            let probe = probe(&mut input).unwrap();
            let picture = probe.decode(&mut input, (4, 3), &|| false);
            picture.map(|picture| picture.pixels().to_vec()).map_err(|error| error.to_string())
        };
        assert_eq!(decoded(4, 3), Ok(vec![200; 36]));
        let damaged = Err("the TIFF is damaged".to_owned());
        for (width, height) in [(5, 3), (3, 3), (4, 4), (4, 2), (15_123, 13)] {
            assert_eq!(decoded(width, height), damaged, "{width} × {height}");
        }
    }
}
