//! Conversion of pictures to PNGs: for backends that do not accept a format, and for pictures that
//! are cut for several outputs. Runs on the worker's thread.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::Error;
use crate::error_chain::chain;
use crate::media::{self, Probe, Tile};
use crate::paths::open_regular;
use crate::sys::Cancel;
use crate::transcode::{self, Ffmpeg, Limits};
use crate::wire::Format;

pub(crate) fn file_error(path: &Path, error: &dyn std::error::Error) -> Error {
    Error::File { path: path.to_owned(), why: chain(error) }
}

pub(crate) fn open(path: &Path) -> Result<BufReader<File>, Error> {
    open_regular(path).map(BufReader::new).map_err(|error| file_error(path, &error))
}

/// The content of a file, or its format if only ffmpeg decodes it.
pub(crate) fn look(
    path: &Path,
    file: &mut BufReader<File>,
) -> Result<Result<Probe, Format>, Error> {
    guarded(path, || match media::probe(file) {
        Err(media::Error::NeedsTranscoder { format, .. }) => Ok(Err(format)),
        probe => probe.map(Ok),
    })
}

/// Reads a picture to its end, to see whether it is whole.
pub(super) fn read_whole(path: &Path, cancel: &Cancel) -> Result<(), Error> {
    let mut file = open(path)?;
    // For a format that only ffmpeg decodes nothing more is checked.
    let Ok(probe) = look(path, &mut file)? else { return Ok(()) };
    guarded(path, || probe.decode(&mut file, (1, 1), &|| cancel.is_cancelled())).map(drop)
}

/// Parts of a picture, as PNGs.
pub(crate) fn cut(
    (path, file): (&Path, &mut BufReader<File>),
    probe: &Probe,
    tiles: &[Tile],
    cancel: &Cancel,
) -> Result<Vec<Vec<u8>>, Error> {
    guarded(path, || probe.slices(file, tiles, &|| cancel.is_cancelled()))
}

/// Converts a picture, or the first frame of a video, to a PNG with ffmpeg.
pub(crate) fn transcode(
    (path, format): (&Path, Format),
    to: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let ffmpeg = Ffmpeg::new(Limits::default(), cancel.clone());
    ffmpeg.still((path, format), to).map_err(|error| match error {
        transcode::Error::Ended => Error::Cancelled,
        error => file_error(path, &error),
    })
}

/// Calls a decoder; its panic is an error, too.
pub(super) fn guarded<T>(
    path: &Path,
    body: impl FnOnce() -> Result<T, media::Error>,
) -> Result<T, Error> {
    let broke = |what| {
        let why = format!("its content broke the decoder: {what}");
        Error::File { path: path.to_owned(), why }
    };
    media::catch_panic(body).map_err(broke)?.map_err(|error| file_error(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_decoder_is_an_error_of_the_file() {
        let path = Path::new("/x.png");
        let error = guarded(path, || -> Result<(), _> { panic!("on purpose") }).unwrap_err();
        let why = "its content broke the decoder: on purpose".to_owned();
        assert_eq!(error, Error::File { path: path.to_owned(), why });
    }
}
