//! Converts pictures to PNGs in a decoding process, for backends that do not accept a format and for
//! pictures that are cut for several outputs. Runs on the worker's thread.

use std::path::{Path, PathBuf};

use super::Error;
use crate::decode::{self, Decoder};
use crate::error_chain::chain;
use crate::media::{Cut, Shown, Traits, covering};
use crate::sys::Cancel;
use crate::transcode::{self, Ffmpeg, Limits};
use crate::wire::{Format, MediaType};

pub(crate) fn file_error(path: &Path, error: &dyn std::error::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        why: chain(error),
    }
}

/// Converts an error of writing below this directory.
pub(crate) fn unwritable(directory: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Unavailable(format!("cannot write to {}: {error}", directory.display()))
}

/// Converts the error of a decoding job about this file.
pub(crate) fn failed(path: &Path) -> impl Fn(decode::Error) -> Error {
    use decode::Error as Why;
    move |error| match error {
        Why::Stopped => Error::Cancelled,
        Why::Silent => {
            Error::Unavailable(format!("the disk of {} does not answer", path.display()))
        }
        Why::NoProcess(why) => Error::Unavailable(why),
        Why::Read(io) => file_error(path, &io.error()),
        Why::Write { path, io } => {
            let path = Path::new(&path).display();
            Error::Unavailable(format!("cannot write {path}: {io}"))
        }
        error => file_error(path, &error),
    }
}

/// Makes PNGs of a picture, even if only another program can decode it. Those of a drawing cover a
/// screen of this size.
pub(crate) fn cut(
    decoder: &Decoder,
    path: &Path,
    (cut, size): (&Cut, (u32, u32)),
    to: &[PathBuf],
    cancel: &Cancel,
) -> Result<(), Error> {
    let (format, traits) = match decoder.slices(path, cut, to) {
        Err(decode::Error::NeedsTranscoder { format, traits, .. }) => (format, traits),
        done => return done.map_err(failed(path)),
    };
    // The whole picture is read before the first PNG replaces it.
    let whole = &to[0];
    let reader = transcode(decoder, (path, format, &traits), size, whole, cancel)?;
    reader.slices(whole, cut, to).map_err(failed(path))
}

/// Reads a picture to its end, to check that it is intact. Formats that only other programs decode are
/// not checked.
pub(super) fn read_whole(decoder: &Decoder, path: &Path) -> Result<(), Error> {
    match decoder.read_whole(path) {
        Err(decode::Error::NeedsTranscoder { .. }) => Ok(()),
        read => read.map_err(failed(path)),
    }
}

/// Converts a picture, or the first frame of a video, by another program to a file whose name ends in
/// `.png`. A drawing covers a screen of this size. Returns the decoder that reads the file correctly.
fn transcode(
    decoder: &Decoder,
    (path, format, traits): (&Path, Format, &Traits),
    size: (u32, u32),
    to: &Path,
    cancel: &Cancel,
) -> Result<Decoder, Error> {
    let ffmpeg = Ffmpeg::new(Limits::default(), cancel.clone());
    let shown = match format.media_type() {
        MediaType::Video => {
            let facts = ffmpeg.facts(path, format);
            facts.and_then(|facts| {
                ffmpeg.frame((path, format), &facts, 0.0, (facts.width, facts.height), to)?;
                Ok(Shown::default())
            })
        }
        MediaType::Image | MediaType::Web => {
            ffmpeg.picture((path, format), traits, covering(traits.size, size), to)
        }
    };
    let shown = shown.map_err(|error| match error {
        transcode::Error::Ended => Error::Cancelled,
        error @ transcode::Error::Write { .. } => Error::Unavailable(chain(&error)),
        error => file_error(path, &error),
    })?;
    Ok(decoder.shown(shown))
}
