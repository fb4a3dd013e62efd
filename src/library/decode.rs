//! Makes the thumbnail or still picture of a file. Pictures are decoded in a separate process, videos
//! by ffmpeg, and formats that murald does not decode by other programs.
//!
//! A video is shown by its poster frame, at one tenth of its length, or later if that is black. The
//! programs write to a scratch file, which is decoded like any picture. Runs on threads that may wait
//! for a program.

use std::path::Path;

use super::Error;
use super::disk::Scratch;
use crate::color::{Rgb, lab};
use crate::decode::{self, Decoder, Drawn, Header};
use crate::media::{Traits, fit};
use crate::transcode::{Facts, Ffmpeg};
use crate::wire::{Format, MediaType, Resolution};

/// The position of a video's poster frame, as a fraction of the video's length: the first that is not
/// black.
const POSTER: [f64; 4] = [0.1, 0.25, 0.5, 0.75];
/// Lightness in CIELAB up to which a frame is black.
const BLACK: f32 = 3.0;
/// Up to this width, ffmpeg scales a frame to twice the thumbnail's size, for a sharper thumbnail.
const CHEAP: u32 = 1280;
/// The size at which a frame is checked for black.
const SMALL: (u32, u32) = (64, 64);

/// Makes a scratch file for the output of a program.
pub(super) type MakeScratch<'a> = &'a dyn Fn() -> Result<Scratch, Error>;

/// The decoder and ffmpeg, which stop when their job is cancelled.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    pub(super) decoder: &'a Decoder,
    pub(super) ffmpeg: &'a Ffmpeg,
}

/// The properties of a file whose thumbnail was written.
#[derive(Debug)]
pub(super) struct FileLook {
    pub(super) format: Format,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) animated: bool,
    pub(super) colors: Vec<Rgb>,
    /// The facts of a video.
    pub(super) facts: Option<Facts>,
}

impl Tools<'_> {
    /// Decodes the file at `path`, and writes its thumbnail to `to`, if given.
    pub(super) fn thumbnail(
        self,
        path: &Path,
        resolution: Resolution,
        scratch: MakeScratch<'_>,
        to: Option<&Path>,
    ) -> Result<FileLook, Error> {
        match self.decoder.thumbnail(path, resolution.fits(), to) {
            Err(
                source @ decode::Error::NeedsTranscoder {
                    format,
                    special,
                    traits,
                    ..
                },
            ) => {
                let made = match format.media_type() {
                    MediaType::Video => self.frame((path, format), None, resolution, scratch, to),
                    MediaType::Image | MediaType::Web => {
                        self.picture((path, format), &traits, (resolution, &scratch()?), to)
                    }
                };
                // The decoder's error for a special file says more than ffmpeg's.
                if special {
                    made.map_err(|_| Error::decoding(path)(source))
                } else {
                    made
                }
            }
            drawn => {
                let Drawn {
                    format,
                    header,
                    colors,
                } = drawn.map_err(Error::decoding(path))?;
                let Header {
                    width,
                    height,
                    animated,
                    ..
                } = header;
                Ok(FileLook {
                    format,
                    width,
                    height,
                    animated,
                    colors,
                    facts: None,
                })
            }
        }
    }

    /// Like [`Self::thumbnail`], for a video's frame at `moment` (in seconds), by default the poster
    /// frame.
    pub(super) fn frame(
        self,
        (path, format): (&Path, Format),
        moment: Option<f64>,
        resolution: Resolution,
        scratch: MakeScratch<'_>,
        to: Option<&Path>,
    ) -> Result<FileLook, Error> {
        let facts = self
            .ffmpeg
            .facts(path, format)
            .map_err(Error::transcoding(path))?;
        let whole = (facts.width, facts.height);
        let frame = resolution.fits();
        let (width, height) = fit(whole, frame);
        let spare = if frame.0 <= CHEAP { 2 } else { 1 };
        // Exactly the thumbnail's shape; never larger than the source.
        let ample = (width * spare, height * spare);
        let size = if ample.0 <= whole.0 && ample.1 <= whole.1 {
            ample
        } else {
            whole
        };
        let scratch = scratch()?;
        self.poster((path, format), &facts, moment, (size, scratch.path()))?;
        let drawn = self.decoder.thumbnail(scratch.path(), frame, to);
        let Drawn { colors, .. } = drawn.map_err(Error::decoding(path))?;
        let (width, height) = whole;
        Ok(FileLook {
            format,
            width,
            height,
            animated: false,
            colors,
            facts: Some(facts),
        })
    }

    /// Like [`Self::thumbnail`], for a picture that another program decodes.
    fn picture(
        self,
        file: (&Path, Format),
        traits: &Traits,
        (resolution, scratch): (Resolution, &Scratch),
        to: Option<&Path>,
    ) -> Result<FileLook, Error> {
        let reader = self.converted(file, traits, scratch.path())?;
        let drawn = reader.thumbnail(scratch.path(), resolution.fits(), to);
        let Drawn { header, colors, .. } = drawn.map_err(Error::decoding(file.0))?;
        let Header { width, height, .. } = header;
        Ok(FileLook {
            format: file.1,
            width,
            height,
            animated: false,
            colors,
            facts: None,
        })
    }

    /// Has another program write a picture as PNG; returns the decoder that reads it right.
    fn converted(
        self,
        (path, format): (&Path, Format),
        traits: &Traits,
        to: &Path,
    ) -> Result<Decoder, Error> {
        let shown = self.ffmpeg.picture((path, format), traits, traits.size, to);
        Ok(self.decoder.shown(shown.map_err(Error::transcoding(path))?))
    }

    /// Writes a still picture of a file to a new PNG file, no larger than `resolution`, over the colour
    /// `fill`. Returns the colours of a picture that was transparent.
    pub(super) fn still(
        self,
        path: &Path,
        (resolution, fill): (Resolution, Rgb),
        to: &Path,
    ) -> Result<Option<Vec<Rgb>>, Error> {
        let size = resolution.fits();
        let decoding = Error::decoding(path);
        let (format, traits) = match self.decoder.still(path, (size, fill), to) {
            Err(decode::Error::NeedsTranscoder { format, traits, .. }) => (format, traits),
            drawn => return drawn.map_err(decoding),
        };
        if format.media_type() != MediaType::Video {
            let reader = self.converted((path, format), &traits, to)?;
            return reader.still(to, (size, fill), to).map_err(decoding);
        }
        let facts = self
            .ffmpeg
            .facts(path, format)
            .map_err(Error::transcoding(path))?;
        let size = fit((facts.width, facts.height), size);
        self.poster((path, format), &facts, None, (size, to))?;
        Ok(None)
    }

    /// Writes the frame at `moment` (in seconds), by default the poster frame, as PNG.
    fn poster(
        self,
        (path, format): (&Path, Format),
        facts: &Facts,
        moment: Option<f64>,
        (size, to): ((u32, u32), &Path),
    ) -> Result<(), Error> {
        let moments = match moment {
            Some(at) => vec![at.clamp(0.0, facts.duration)],
            None => POSTER.map(|share| share * facts.duration).to_vec(),
        };
        for at in moments {
            self.ffmpeg
                .frame((path, format), facts, at, size, to)
                .map_err(Error::transcoding(path))?;
            if moment.is_some() {
                break;
            }
            let drawn = self.decoder.thumbnail(to, SMALL, None);
            let colors = drawn.map_err(Error::decoding(path))?.colors;
            if colors.iter().any(|&color| lab(color).l > BLACK) {
                break;
            }
        }
        Ok(())
    }
}
