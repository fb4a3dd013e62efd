//! What a file holds: kind, size as shown, whether it moves, and what decoding it will cost.

use std::io::Read;
use std::sync::Arc;

use super::decoder::{Decoder, Goal, Header, Input, MEMORY_MAX, Opened, Stop, check_bounds};
use super::error::Error;
use super::exif::{self, Orientation};
use super::icc::Profile;
use super::kind::{HEAD, sniff};
use super::picture::Picture;
use super::{gif, jpeg, png, tiff, webp, whole};
use crate::wire::Format;

/// A file that is a picture which we decode.
#[derive(Clone, Debug)]
pub struct Probe {
    pub format: Format,
    /// Pixels as shown, orientation applied.
    pub width: u32,
    pub height: u32,
    /// More than one frame.
    pub animated: bool,
    header: Header,
    decoder: Arc<dyn Decoder>,
}

type Open = fn(&mut dyn Input) -> Result<Opened, Error>;

/// What reads the headers of a file of this format; none where only ffmpeg decodes it.
fn opener(format: Format) -> Option<Open> {
    match format {
        Format::Jpg => Some(jpeg::open),
        Format::Png => Some(png::open),
        Format::Gif => Some(gif::open),
        Format::Webp => Some(webp::open),
        Format::Bmp => Some(whole::open_bmp),
        Format::Tiff => Some(tiff::open),
        _ => None,
    }
}

/// What a file is by its first bytes. Refuses what is not decoded here.
pub(crate) fn format(input: &mut dyn Input) -> Result<Format, Error> {
    let mut head = Vec::with_capacity(HEAD);
    input.rewind().map_err(Error::Read)?;
    input.take(HEAD as u64).read_to_end(&mut head).map_err(Error::Read)?;
    if head.is_empty() {
        return Err(Error::Empty);
    }
    let format = sniff(&head).ok_or(Error::Unknown)?;
    opener(format).map(|_| format).ok_or(Error::NeedsTranscoder { format, why: None })
}

/// Reads the headers of a picture, and to its end where only that shows that it is whole.
pub fn probe(input: &mut dyn Input) -> Result<Probe, Error> {
    let format = format(input)?;
    let open = opener(format).ok_or(Error::NeedsTranscoder { format, why: None })?;
    input.rewind().map_err(Error::Read)?;
    let (header, decoder) = open(input)?;
    check_bounds(header.size, header.channels)?;
    let (width, height) = exif::size(header.orientation, header.size);
    Ok(Probe { format, width, height, animated: header.animated, header, decoder })
}

/// How a picture lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub format: Format,
    /// As it is shown: not every program looks at the orientation.
    pub upright: bool,
    /// It may have more than one frame; of GIFs they are not counted.
    pub animated: bool,
}

/// Reads no pixels.
pub(crate) fn stored(input: &mut dyn Input) -> Result<Stored, Error> {
    let format = format(input)?;
    input.rewind().map_err(Error::Read)?;
    let (orientation, animated) = match format {
        // Its header is read to its end.
        Format::Jpg => (jpeg::orientation(input)?, false),
        // GIF and BMP have no way to turn.
        Format::Gif | Format::Bmp => (Orientation::NoTransforms, format == Format::Gif),
        _ => opener(format).map_or(Ok((Orientation::NoTransforms, false)), |open| {
            open(input).map(|(header, _)| (header.orientation, header.animated))
        })?,
    };
    Ok(Stored { format, upright: orientation == Orientation::NoTransforms, animated })
}

/// Whether programs that ignore orientations and colour profiles show a picture as it is meant. Reads no
/// pixels.
pub(crate) fn is_plain(input: &mut dyn Input) -> Result<bool, Error> {
    let Header { orientation, profile, .. } = probe(input)?.header;
    let is_srgb = profile.is_none_or(|profile| !profile.changes_anything());
    Ok(orientation == Orientation::NoTransforms && is_srgb)
}

impl Probe {
    /// How the stored pixels are to be turned.
    pub(super) fn orientation(&self) -> Orientation {
        self.header.orientation
    }

    /// Where the colours are not sRGB's.
    pub(super) fn profile(&self) -> Option<&Profile> {
        self.header.profile.as_ref()
    }

    /// Bytes that [`Self::decode`] will need at most, its result included.
    pub fn memory(&self, target: (u32, u32)) -> u64 {
        self.decoder.memory(&self.header, Goal::of(target, self.header.orientation))
    }

    /// The first frame, reduced by averages on the way where it is far larger than `target`
    /// (as shown); never reduced below it. Reads `input` from its beginning. `stop` is asked again and
    /// again whether the picture is still wanted.
    pub fn decode(
        &self,
        input: &mut dyn Input,
        target: (u32, u32),
        stop: Stop<'_>,
    ) -> Result<Picture, Error> {
        let bytes = self.memory(target);
        if bytes > MEMORY_MAX {
            let (format, (width, height)) = (self.format, (self.width, self.height));
            return Err(Error::TooMuchMemory { format, width, height, bytes });
        }
        input.rewind().map_err(Error::Read)?;
        let goal = Goal::of(target, self.header.orientation);
        let mut picture = self.decoder.decode(&self.header, input, goal, stop)?;
        // Reduced by now: the fewer pixels to convert.
        if let Some(profile) = &self.header.profile {
            picture.convert(profile);
        }
        Ok(picture)
    }
}
