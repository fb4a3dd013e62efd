//! Defines why a file cannot be decoded and what is known about an image that other programs
//! decode. Catches panics of decoders.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::thread::panic_text;
use crate::wire::{Format, MediaType};

/// The reason without the path, which the caller adds.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot be read")]
    Read(#[source] io::Error),
    #[error("the file is empty")]
    Empty,
    /// No known format.
    #[error("not a supported image or video")]
    Unknown,
    /// Only another program, such as ffmpeg, can decode the format or this variety of it.
    #[error("{}", needs_transcoder(*format, why.as_deref()))]
    NeedsTranscoder {
        format: Format,
        why: Option<String>,
        traits: Traits,
    },
    /// The image exceeds the limits.
    #[error("{width} × {height} pixels exceed the limit (512 MiB of pixels, 65535 per side)")]
    TooLarge { width: u32, height: u32 },
    #[error("the {} is truncated", name(*.0))]
    Truncated(Format),
    #[error("the {} is damaged", name(*format))]
    Damaged {
        format: Format,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file may be intact, but uses a variety that is not supported.
    #[error("this variety of {} is not supported: {what}", name(*format))]
    Unsupported { format: Format, what: String },
    /// The encoder failed.
    #[error("the result cannot be encoded")]
    Encode(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The properties of an image that decide which program decodes it correctly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// The image is composed of others, such as tiles.
    pub derived: bool,
    pub cropped: bool,
    pub alpha: bool,
    /// The colours are multiplied by alpha.
    pub premultiplied: bool,
    /// The image has an ICC profile that differs from sRGB.
    pub profile: bool,
    /// H.273's code points of primaries and transfer function, if they are not sRGB's.
    pub points: Option<(u8, u8)>,
    /// The orientation of the decoded pixels as in EXIF; 0 means none.
    pub orientation: u8,
    /// The number of the primary image, from 1, if there are several.
    pub number: Option<usize>,
    /// The size of a vector image in pixels.
    pub size: (u32, u32),
}

impl Traits {
    /// Whether the transfer function is PQ or HLG, for HDR screens.
    pub(crate) fn is_hdr(&self) -> bool {
        matches!(self.points, Some((_, 16 | 18)))
    }
}

impl Error {
    pub(super) fn damaged(
        format: Format,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Damaged {
            format,
            source: source.into(),
        }
    }

    /// The error for a variety that other programs may decode.
    pub(super) fn special(format: Format, why: impl Into<String>) -> Self {
        Self::NeedsTranscoder {
            format,
            why: Some(why.into()),
            traits: Traits::default(),
        }
    }

    /// Converts a read error: an unexpected end means that the file is damaged, most others that
    /// the disk failed.
    pub(super) fn read(format: Format, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated(format),
            // The crates wrap their own errors in these kinds.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                Self::damaged(format, source)
            }
            _ => Self::Read(source),
        }
    }
}

fn needs_transcoder(format: Format, why: Option<&str>) -> String {
    let name = name(format);
    match why {
        None if format.media_type() == MediaType::Image => {
            format!("murald needs another program to decode {name} files")
        }
        None => format!("{name} files need the transcoder (ffmpeg and ffprobe)"),
        Some(why) => format!("murald cannot decode this variety of {name}; only ffmpeg may: {why}"),
    }
}

/// The name of a format for messages.
pub(crate) fn name(format: Format) -> &'static str {
    match format {
        Format::Jpg => "JPEG",
        Format::Png => "PNG",
        Format::Gif => "GIF",
        Format::Webp => "WebP",
        Format::Bmp => "BMP",
        Format::Tiff => "TIFF",
        Format::Avif => "AVIF",
        Format::Jxl => "JPEG XL",
        Format::Heic => "HEIC",
        Format::Svg => "SVG",
        Format::Mp4 => "MP4",
        Format::Webm => "WebM",
        Format::Mkv => "Matroska",
        Format::Mov => "QuickTime",
        Format::Avi => "AVI",
        Format::Html => "HTML",
    }
}

/// Runs a decoder; returns the message of a panic as an error.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| panic_text(&*panic).to_owned())
}
