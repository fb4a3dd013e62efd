//! Why a file is not taken as a picture.

use std::{fmt, io};

use crate::wire::Format;

/// Says nothing of the path: whoever opened the file knows it.
#[derive(Debug)]
pub enum Error {
    Read(io::Error),
    Empty,
    /// Nothing that we know by its content.
    Unknown,
    /// Only ffmpeg decodes it: this format at all, or what is special about the file.
    NeedsTranscoder {
        format: Format,
        why: Option<String>,
    },
    /// More pixels than are ever decoded.
    TooLarge {
        width: u32,
        height: u32,
    },
    /// This kind of file is decoded as a whole, and the whole is more than a picture is given.
    TooMuchMemory {
        format: Format,
        width: u32,
        height: u32,
        bytes: u64,
    },
    Truncated(Format),
    Damaged {
        format: Format,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Sound perhaps, but a variety that we don't decode.
    Unsupported {
        format: Format,
        what: String,
    },
    /// Whoever asked for it has meanwhile thought better of it.
    Stopped,
    /// The encoder refused what we made.
    Encode(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(super) fn damaged(
        format: Format,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Damaged { format, source: source.into() }
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(_) => write!(f, "cannot be read"),
            Self::Empty => write!(f, "the file is empty"),
            Self::Unknown => write!(f, "its content is no picture or video that murald knows"),
            Self::NeedsTranscoder { format, why: None } => {
                write!(f, "{} files need the transcoder (ffmpeg and ffprobe)", name(*format))
            }
            Self::NeedsTranscoder { format, why: Some(why) } => {
                write!(f, "this variety of {} is decoded by ffmpeg at most: {why}", name(*format))
            }
            Self::TooLarge { width, height } => write!(
                f,
                "{width} × {height} pixels are more than murald decodes (512 MiB of pixels, \
                 65535 a side)"
            ),
            Self::TooMuchMemory { format, width, height, bytes } => write!(
                f,
                "decoding this {} of {width} × {height} pixels takes {} MiB of memory, more than \
                 murald gives to a picture",
                name(*format),
                bytes >> 20
            ),
            Self::Truncated(format) => {
                write!(f, "the {} is cut off: its end is missing", name(*format))
            }
            Self::Damaged { format, .. } => write!(f, "the {} is damaged", name(*format)),
            Self::Unsupported { format, what } => {
                write!(f, "this variety of {} is not supported: {what}", name(*format))
            }
            Self::Stopped => write!(f, "it is no longer wanted"),
            Self::Encode(_) => write!(f, "the result cannot be encoded"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(source) => Some(source),
            Self::Damaged { source, .. } | Self::Encode(source) => Some(&**source),
            _ => None,
        }
    }
}

/// What people call a format.
fn name(format: Format) -> &'static str {
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
        Format::Mp4 => "MP4",
        Format::Webm => "WebM",
        Format::Mkv => "Matroska",
        Format::Mov => "QuickTime",
        Format::Avi => "AVI",
        Format::Html => "HTML",
    }
}
