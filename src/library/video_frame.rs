//! What only ffmpeg decodes: videos, and stills in AVIF, JPEG XL and HEIC.
//!
//! A video looks like its frame at one tenth of its length; all of its thumbnails are made of that
//! one. ffmpeg writes it to a scratch file, which then is decoded as any picture. Runs on threads
//! that may wait for a program.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::memory_budget::MemoryBudget;
use super::{Error, decode};
use crate::media::{Thumbnail, fit};
use crate::transcode::{Facts, Ffmpeg};
use crate::wire::{Format, MediaType, Resolution};

/// The moment of a video that stands for it, as a share of its length.
const POSTER: f64 = 0.1;
/// Up to this width a frame is taken at twice the thumbnail's size, for the filter to work on.
const CHEAP: u32 = 1280;

/// What a file looks like.
#[derive(Debug)]
pub(super) struct VideoFrame {
    pub(super) facts: Facts,
    pub(super) thumbnail: Thumbnail,
}

/// Makes the thumbnail of a file, of the moment given or of the one that stands for it.
pub(super) fn look(
    ffmpeg: &Ffmpeg,
    (path, format): (&Path, Format),
    moment: Option<f64>,
    resolution: Resolution,
    scratch: &Path,
    budget: &MemoryBudget,
) -> Result<VideoFrame, Error> {
    let failed = |source| Error::Transcode { path: path.to_owned(), source };
    let facts = ffmpeg.facts(path, format).map_err(failed)?;
    let at = moment_of(&facts, format, moment);
    let (whole, frame) = ((facts.width, facts.height), resolution.fits());
    let (width, height) = fit(whole, frame);
    let spare = if frame.0 <= CHEAP { 2 } else { 1 };
    // Of exactly the thumbnail's shape; never larger than the source.
    let ample = (width * spare, height * spare);
    let size = if ample.0 <= whole.0 && ample.1 <= whole.1 { ample } else { whole };
    ffmpeg.frame((path, format), &facts, at, size, scratch).map_err(failed)?;
    let frame = File::open(scratch).map_err(Error::file("read", scratch))?;
    let decoded =
        decode::thumbnail(path, &mut BufReader::new(frame), resolution, budget, &|| false)?;
    Ok(VideoFrame { facts, thumbnail: decoded.thumbnail })
}

/// Writes the picture that stands for a file to a new PNG file, no larger than `resolution`.
pub(super) fn still(
    ffmpeg: &Ffmpeg,
    (path, format): (&Path, Format),
    resolution: Resolution,
    to: &Path,
) -> Result<(), Error> {
    let failed = |source| Error::Transcode { path: path.to_owned(), source };
    let facts = ffmpeg.facts(path, format).map_err(failed)?;
    let size = fit((facts.width, facts.height), resolution.fits());
    let at = moment_of(&facts, format, None);
    ffmpeg.frame((path, format), &facts, at, size, to).map_err(failed)
}

/// The second of the frame that is taken.
fn moment_of(facts: &Facts, format: Format, moment: Option<f64>) -> f64 {
    match format.media_type() {
        MediaType::Video => moment.unwrap_or(facts.duration * POSTER).clamp(0.0, facts.duration),
        _ => 0.0,
    }
}
