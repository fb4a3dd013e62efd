//! Decoding for the library: within the memory budget, and with panics of decoders caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::Error;
use super::memory_budget::MemoryBudget;
use crate::media::{self, Input, Probe, Stop, Thumbnail};
use crate::thread::panic_text;
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

/// Turns a panic of a decoder into an error: hostile bytes must not end a thread.
pub(super) fn guarded<T>(
    path: &Path,
    body: impl FnOnce() -> Result<T, media::Error>,
) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result.map_err(|source| Error::Media { path: path.to_owned(), source }),
        Err(panic) => {
            Err(Error::Decoder { path: path.to_owned(), what: panic_text(&*panic).to_owned() })
        }
    }
}
