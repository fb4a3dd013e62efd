//! The enumerations that several records of the API share, and how the names of all enumerations are
//! read and written. Those of one record are beside it; those of the settings are in `config::schema`.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::str::FromStr;

use serde::de::{Error, Visitor};

/// A word that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub value: String,
    pub allowed: &'static [&'static str],
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not one of {}",
            self.value,
            self.allowed.join(", ")
        )
    }
}

impl std::error::Error for Unknown {}

/// Reads a word from JSON. The code that serde derives would report a number as invalid JSON.
pub(crate) struct Word<T> {
    allowed: &'static [&'static str],
    kind: PhantomData<T>,
}

impl<T> Word<T> {
    pub(crate) fn new(allowed: &'static [&'static str]) -> Self {
        Self {
            allowed,
            kind: PhantomData,
        }
    }
}

impl<T: FromStr> Visitor<'_> for Word<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", self.allowed.join(", "))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        word.parse()
            .map_err(|_| E::unknown_variant(word, self.allowed))
    }
}

/// An enumeration of words: one list gives the variants, `as_str`, `FromStr`, serde and `WORDS`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize,
        )]
        #[allow(unreachable_pub, reason = "the tests see some of them")]
        pub enum $name { $(#[serde(rename = $word)] $variant),+ }

        #[allow(unreachable_pub, reason = "the tests see some of them")]
        impl $name {
            #[allow(dead_code, reason = "not every list is walked")]
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::wire::Unknown;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::wire::Unknown { value: word.to_owned(), allowed: Self::WORDS }),
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::wire::Word::new(Self::WORDS))
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The media type of a library item.
    MediaType { Image = "image", Video = "video", Web = "web" }
}

words! {
    /// A filter of a list: a media type, or animated pictures in whatever format.
    MediaFilter { Image = "image", Video = "video", Gif = "gif", Web = "web" }
}

words! {
    /// The orientation of a picture as shown; square only if both sides are equal.
    Orientation { Landscape = "landscape", Portrait = "portrait", Square = "square" }
}

impl Orientation {
    pub fn from_size((width, height): (u32, u32)) -> Self {
        match width.cmp(&height) {
            std::cmp::Ordering::Greater => Self::Landscape,
            std::cmp::Ordering::Less => Self::Portrait,
            std::cmp::Ordering::Equal => Self::Square,
        }
    }
}

words! {
    /// How pictures are placed on monitors; `each` shows a different one on each.
    Mode { Individual = "individual", Clone = "clone", Extend = "extend", Each = "each" }
}

#[expect(
    clippy::derivable_impls,
    reason = "no word of the macro can be marked as the default"
)]
impl Default for Mode {
    fn default() -> Self {
        Self::Individual
    }
}

words! {
    /// How a picture fills a monitor of another shape.
    Fit { Cover = "cover", Contain = "contain", Fill = "fill", Tile = "tile", Center = "center" }
}

words! {
    /// Light or dark: what the desktop looks like, and when an image is shown.
    Tone { Light = "light", Dark = "dark" }
}

words! {
    /// The reason why playlists, videos and web pages are paused.
    PauseReason { Battery = "battery", Locked = "locked", Idle = "idle", Covered = "covered" }
}

impl PauseReason {
    /// The reason as a clause.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Battery => "the machine is on battery power",
            Self::Locked => "the session is locked",
            Self::Idle => "the session is idle",
            Self::Covered => "a window covers it",
        }
    }
}

words! {
    /// The mode that decides between light and dark; auto follows the sun.
    AppearanceMode { Light = "light", Dark = "dark", Auto = "auto" }
}

words! {
    /// The source of a wallpaper.
    Source {
        Manual = "manual", Random = "random", Playlist = "playlist", Restore = "restore",
        Workspace = "workspace",
    }
}

words! {
    /// The format of an exported loop.
    LoopPreset { WebmVp9 = "webm_vp9", Mp4H264 = "mp4_h264" }
}

impl LoopPreset {
    pub fn format(self) -> Format {
        match self {
            Self::WebmVp9 => Format::Webm,
            Self::Mp4H264 => Format::Mp4,
        }
    }
}

words! {
    /// The use of an exported loop.
    LoopAction { Replace = "replace", ImportNew = "import_new" }
}

words! {
    /// The keys that a list can be sorted by.
    SortBy { Name = "name", ImportedAt = "imported_at", FileSize = "file_size", Hue = "hue" }
}

words! {
    /// Which end of a list comes first.
    SortOrder { Asc = "asc", Desc = "desc" }
}

words! {
    /// A thumbnail's size.
    Resolution {
        Default = "default", P720 = "720p", P1080 = "1080p", P1440 = "1440p", P2160 = "4k",
    }
}

impl Resolution {
    /// The box that a thumbnail fits into: width and height in pixels.
    pub fn fits(self) -> (u32, u32) {
        match self {
            Self::Default => (500, 500),
            Self::P720 => (1280, 720),
            Self::P1080 => (1920, 1080),
            Self::P1440 => (2560, 1440),
            Self::P2160 => (3840, 2160),
        }
    }
}

words! {
    /// The format of a library file, by its content.
    Format {
        Jpg = "jpg", Png = "png", Gif = "gif", Webp = "webp", Bmp = "bmp", Tiff = "tiff",
        Avif = "avif", Jxl = "jxl", Heic = "heic", Svg = "svg", Mp4 = "mp4", Webm = "webm",
        Mkv = "mkv", Mov = "mov", Avi = "avi", Html = "html",
    }
}

impl Format {
    /// Whether files of this format may have this extension.
    pub(crate) fn has_extension(self, extension: &str) -> bool {
        let is = |word: &&str| extension.eq_ignore_ascii_case(word);
        is(&self.as_str()) || self.aliases().iter().any(is)
    }

    /// Other extensions of files of this format.
    fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Jpg => &["jpeg", "jpe", "jfif"],
            Self::Png => &["apng"],
            Self::Bmp => &["dib"],
            Self::Tiff => &["tif"],
            Self::Heic => &["heif"],
            Self::Svg => &["svgz"],
            Self::Mp4 => &["m4v"],
            Self::Gif
            | Self::Webp
            | Self::Avif
            | Self::Jxl
            | Self::Webm
            | Self::Mkv
            | Self::Mov
            | Self::Avi
            | Self::Html => &[],
        }
    }

    /// Whether the extension of a file is one of this format.
    pub(crate) fn is_named(self, path: &Path) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| self.has_extension(extension))
    }

    pub fn media_type(self) -> MediaType {
        match self {
            Self::Mp4 | Self::Webm | Self::Mkv | Self::Mov | Self::Avi => MediaType::Video,
            Self::Html => MediaType::Web,
            Self::Jpg
            | Self::Png
            | Self::Gif
            | Self::Webp
            | Self::Bmp
            | Self::Tiff
            | Self::Avif
            | Self::Jxl
            | Self::Heic
            | Self::Svg => MediaType::Image,
        }
    }

    /// The `Content-Type` of a file of this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Jpg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Bmp => "image/bmp",
            Self::Tiff => "image/tiff",
            Self::Avif => "image/avif",
            Self::Jxl => "image/jxl",
            Self::Heic => "image/heic",
            Self::Svg => "image/svg+xml",
            Self::Mp4 => "video/mp4",
            Self::Webm => "video/webm",
            Self::Mkv => "video/x-matroska",
            Self::Mov => "video/quicktime",
            Self::Avi => "video/x-msvideo",
            Self::Html => "text/html; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for &format in Format::ALL {
            assert_eq!(format.as_str().parse(), Ok(format));
        }
        let number = serde_json::from_str::<Mode>("5").unwrap_err();
        let expected = "invalid type: integer `5`, expected one of individual, clone, extend, each";
        assert!(
            number.is_data() && number.to_string().starts_with(expected),
            "{number}"
        );
        let unknown = "stretch".parse::<Mode>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "\"stretch\" is not one of individual, clone, extend, each"
        );
    }
}
