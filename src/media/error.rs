//! The reasons why a file is not accepted as a picture, what is known of one that other programs decode,
//! and the catching of decoders' panics.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::thread::panic_text;
use crate::wire::{Format, MediaType};

/// Does not name the path: the caller that opened the file knows it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot be read")]
    Read(#[source] io::Error),
    #[error("the file is empty")]
    Empty,
    /// Nothing that we know by its content.
    #[error("not a supported image or video")]
    Unknown,
    /// Only ffmpeg decodes it: this format at all, or what is special about the file.
    #[error("{}", needs_transcoder(*format, why.as_deref()))]
    NeedsTranscoder { format: Format, why: Option<String>, traits: Traits },
    /// More pixels than are ever decoded.
    #[error("{width} × {height} pixels exceed the limit (512 MiB of pixels, 65535 per side)")]
    TooLarge { width: u32, height: u32 },
    #[error("the {} is truncated", name(*.0))]
    Truncated(Format),
    #[error("the {} is damaged", name(*format))]
    Damaged { format: Format, source: Box<dyn std::error::Error + Send + Sync> },
    /// Sound perhaps, but a variety that we don't decode.
    #[error("this variety of {} is not supported: {what}", name(*format))]
    Unsupported { format: Format, what: String },
    /// The encoder refused what we made.
    #[error("the result cannot be encoded")]
    Encode(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The properties of a picture that decide which program shows it right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Composed of other pictures, such as tiles.
    pub derived: bool,
    pub cropped: bool,
    pub alpha: bool,
    /// It has an ICC profile of other colours than those of sRGB.
    pub profile: bool,
    /// H.273's numbers for primaries and transfer function, unless they are those of sRGB.
    pub points: Option<(u8, u8)>,
    /// The turn of the decoded pixels as EXIF numbers it; 0: none.
    pub orientation: u8,
    /// The number of the primary picture, if there are others beside it.
    pub number: Option<usize>,
    /// Pixels of a drawing.
    pub size: (u32, u32),
}

impl Traits {
    /// Whether its brightness is coded for screens brighter than ours, as PQ or HLG.
    pub(crate) fn is_hdr(&self) -> bool {
        matches!(self.points, Some((_, 16 | 18)))
    }
}

impl Error {
    pub(super) fn damaged(
        format: Format,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Damaged { format, source: source.into() }
    }

    /// A variety that other programs may decode.
    pub(super) fn special(format: Format, why: impl Into<String>) -> Self {
        Self::NeedsTranscoder { format, why: Some(why.into()), traits: Traits::default() }
    }

    /// A reader's failure: an early end is the file's fault, everything else the disk's.
    pub(super) fn read(format: Format, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated(format),
            // Decoders of the crates wrap their own complaints this way.
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
            format!("{name} files are decoded by other programs")
        }
        None => format!("{name} files need the transcoder (ffmpeg and ffprobe)"),
        Some(why) => format!("this variety of {name} is decoded by ffmpeg at most: {why}"),
    }
}

/// The name of a format in messages.
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

/// The result of a decoder, or the text of its panic.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| panic_text(&*panic).to_owned())
}
