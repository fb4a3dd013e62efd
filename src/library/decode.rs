//! Decoding for the library: within the memory budget, and with panics of decoders caught.

use std::path::Path;

use super::Error;
use super::memory_budget::MemoryBudget;
use crate::media::{self, Input, Probe, Stop, Thumbnail};
use crate::wire::Resolution;

#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) probe: Probe,
    pub(super) thumbnail: Thumbnail,
}

/// Makes a thumbnail of the file at `path`, which is open as `input`. Waits for memory.
pub(super) fn thumbnail(
    path: &Path,
    input: &mut dyn Input,
    resolution: Resolution,
    budget: &MemoryBudget,
    stop: Stop<'_>,
) -> Result<Decoded, Error> {
    let frame = resolution.fits();
    guarded(path, || {
        let probe = media::probe(input)?;
        let target = probe.fit(frame);
        // Beside the picture: what the encoder takes of the thumbnail's size.
        let encoder = 16 * u64::from(target.0) * u64::from(target.1);
        let _permit = budget.take(probe.memory(target) + encoder);
        let thumbnail = probe.thumbnail(input, frame, stop)?;
        Ok(Decoded { probe, thumbnail })
    })
}

/// Calls a decoder; its panic is an error, too.
pub(super) fn guarded<T>(
    path: &Path,
    body: impl FnOnce() -> Result<T, media::Error>,
) -> Result<T, Error> {
    media::caught(body)
        .map_err(|what| Error::Decoder { path: path.to_owned(), what })?
        .map_err(|source| Error::Media { path: path.to_owned(), source })
}
