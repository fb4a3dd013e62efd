//! What a file holds: kind, size as shown, whether it moves, and what decoding it will cost.

use std::io::{BufRead, Read, Seek, SeekFrom};

use super::exif::Orientation;
use super::icc::Conversion;
use super::kind::{HEAD, sniff};
use super::picture::Picture;
use super::shrink::Shrink;
use super::{Error, bmp, gif, jpeg, png, tiff, webp};
use crate::wire::Format;

/// Longest side of a picture (contract 4).
pub const SIDE_MAX: u32 = 65_535;
/// Most bytes of pixels that a picture may have (contract 4).
pub const PIXELS_MAX: u64 = 512 << 20;
/// Most memory that decoding one picture may take: the daemon stays under 300 MiB with it.
pub const MEMORY_MAX: u64 = 224 << 20;

/// Where pictures are read from.
pub trait Input: BufRead + Seek {}

impl<T: BufRead + Seek + ?Sized> Input for T {}

/// Asked whether what is being made is no longer wanted.
pub type Stop<'a> = &'a dyn Fn() -> bool;

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
    details: Details,
}

/// What all formats have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Width and height as stored.
    pub(super) size: (u32, u32),
    /// 3 without, 4 with alpha, once decoded.
    pub(super) channels: usize,
    pub(super) orientation: Orientation,
    pub(super) animated: bool,
}

/// What a decoder should leave for the resize that follows: more than that takes, where it is
/// cheap, for the filter to work on. As stored, not as shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// For reduction by whole numbers.
    pub(super) ample: (u32, u32),
    /// For reduction by halves.
    pub(super) enough: (u32, u32),
}

#[derive(Clone, Debug)]
enum Details {
    Jpeg(jpeg::Details),
    Png(png::Details),
    Gif(gif::Details),
    Webp(webp::Details),
    Bmp(bmp::Details),
    Tiff(tiff::Details),
}

/// What a file is by its first bytes. Refuses what is not decoded here.
pub fn format(input: &mut dyn Input) -> Result<Format, Error> {
    let mut head = Vec::with_capacity(HEAD);
    input.rewind().map_err(Error::Read)?;
    input.take(HEAD as u64).read_to_end(&mut head).map_err(Error::Read)?;
    if head.is_empty() {
        return Err(Error::Empty);
    }
    match sniff(&head).ok_or(Error::Unknown)? {
        format @ (Format::Jpg
        | Format::Png
        | Format::Gif
        | Format::Webp
        | Format::Bmp
        | Format::Tiff) => Ok(format),
        other => Err(Error::NeedsTranscoder(other)),
    }
}

/// Reads the headers of a picture, and to its end where only that shows that it is whole.
pub fn probe(input: &mut dyn Input) -> Result<Probe, Error> {
    let format = format(input)?;
    input.rewind().map_err(Error::Read)?;
    let (header, details) = match format {
        Format::Jpg => jpeg::header(input).map(|(h, d)| (h, Details::Jpeg(d))),
        Format::Png => png::header(input).map(|(h, d)| (h, Details::Png(d))),
        Format::Gif => gif::header(input).map(|(h, d)| (h, Details::Gif(d))),
        Format::Webp => webp::header(input).map(|(h, d)| (h, Details::Webp(d))),
        Format::Bmp => bmp::header(input).map(|(h, d)| (h, Details::Bmp(d))),
        Format::Tiff => tiff::header(input).map(|(h, d)| (h, Details::Tiff(d))),
        other => Err(Error::NeedsTranscoder(other)),
    }?;
    check_bounds(header.size, header.channels)?;
    let (width, height) = header.orientation.size(header.size);
    Ok(Probe { format, width, height, animated: header.animated, header, details })
}

/// What a picture is by its first bytes, and whether it is stored as it is shown: not every program
/// looks at the orientation. Reads no pixels.
pub fn upright(input: &mut dyn Input) -> Result<(Format, bool), Error> {
    let format = format(input)?;
    input.rewind().map_err(Error::Read)?;
    let orientation = match format {
        Format::Jpg => jpeg::orientation(input)?,
        Format::Png => png::header(input)?.0.orientation,
        Format::Webp => webp::header(input)?.0.orientation,
        Format::Tiff => tiff::header(input)?.0.orientation,
        // GIF and BMP have no way to say it.
        _ => Orientation::Upright,
    };
    Ok((format, orientation == Orientation::Upright))
}

/// Refuses what is larger than is ever decoded; before anything is allocated for it.
pub(super) fn check_bounds((width, height): (u32, u32), channels: usize) -> Result<(), Error> {
    // Each of the factors has 32 bits at most, and the last one is small.
    let bytes = (u64::from(width) * u64::from(height)).saturating_mul(channels as u64);
    if width > SIDE_MAX || height > SIDE_MAX || bytes > PIXELS_MAX {
        return Err(Error::TooLarge { width, height });
    }
    Ok(())
}

impl Probe {
    /// Bytes that [`Self::decode`] will need at most, its result included.
    pub fn memory(&self, target: (u32, u32)) -> u64 {
        let (size, channels) = (self.header.size, self.header.channels);
        let goal = self.goal(target);
        let working = match &self.details {
            Details::Jpeg(details) => return details.memory(goal),
            Details::Png(details) => details.memory(&self.header),
            Details::Gif(details) => details.memory(),
            Details::Webp(details) => details.memory(&self.header),
            Details::Bmp(details) => details.memory(&self.header),
            Details::Tiff(details) => details.memory(&self.header),
        };
        working + Shrink::bytes(size, channels, Shrink::factor(size, goal.ample))
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
        input.seek(SeekFrom::Start(0)).map_err(Error::Read)?;
        let (header, goal) = (&self.header, self.goal(target));
        let mut picture = match &self.details {
            Details::Jpeg(details) => details.decode(header, input, goal, stop),
            Details::Png(details) => details.decode(header, input, goal, stop),
            Details::Gif(details) => details.decode(header, input, goal),
            Details::Webp(details) => details.decode(header, input, goal),
            Details::Bmp(details) => details.decode(header, input, goal),
            Details::Tiff(details) => details.decode(header, input, goal, stop),
        }?;
        // Reduced by now: the fewer pixels to convert.
        if let Some(conversion) = self.conversion() {
            picture.convert(conversion);
        }
        Ok(picture)
    }

    /// None where the colours are sRGB's, or nothing else is said of them.
    fn conversion(&self) -> Option<&Conversion> {
        match &self.details {
            Details::Jpeg(details) => details.icc.as_deref(),
            Details::Png(details) => details.icc.as_deref(),
            Details::Webp(details) => details.icc.as_deref(),
            Details::Tiff(details) => details.icc.as_deref(),
            Details::Gif(_) | Details::Bmp(_) => None,
        }
    }

    fn goal(&self, target: (u32, u32)) -> Goal {
        const CHEAP: u32 = 1024;
        let (width, height) = self.header.orientation.size(target);
        let spare = if width.max(height) <= CHEAP { 2 } else { 1 };
        let times = |spare: u32| (width * spare, height * spare);
        // Scaled decoding knows only halves: 1.5 times is enough of a rest for the filter.
        let enough = (width * (spare + 1) / 2, height * (spare + 1) / 2);
        Goal { ample: times(spare), enough }
    }
}
