//! Decodes pictures for the library: within the memory budget, with panics of decoders caught, and with
//! ffmpeg for videos, AVIF, JPEG XL and HEIC.
//!
//! A video is shown by its frame at one tenth of its length; all of its thumbnails are made of that
//! frame. ffmpeg writes it to a scratch file, which is decoded like any picture. Runs on threads that
//! may wait, for memory or for a program.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Condvar, Mutex};

use super::Error;
use crate::media::{self, Input, Probe, Stop, Thumbnail, fit};
use crate::sys::{lock, unpoisoned};
use crate::transcode::{Facts, Ffmpeg};
use crate::wire::{Format, MediaType, Resolution};

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
    media::catch_panic(body)
        .map_err(|what| Error::Decoder { path: path.to_owned(), what })?
        .map_err(|source| Error::Media { path: path.to_owned(), source })
}

/// Bytes that may be in use at once.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    total: u64,
    used: Mutex<u64>,
    freed: Condvar,
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    budget: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    pub(super) fn new(total: u64) -> Self {
        Self { total, used: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until `bytes` are free. More than all counts as all.
    pub(super) fn take(&self, bytes: u64) -> Permit<'_> {
        let bytes = bytes.min(self.total);
        let used = lock(&self.used);
        let mut used = unpoisoned(self.freed.wait_while(used, |used| *used + bytes > self.total));
        *used += bytes;
        Permit { budget: self, bytes }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.budget.used) -= self.bytes;
        // All: the one that is woken might need more than what is free now.
        self.budget.freed.notify_all();
    }
}

/// The moment of a video that stands for it, as a share of its length.
const POSTER: f64 = 0.1;
/// Up to this width a frame is taken at twice the thumbnail's size, for the filter to work on.
const CHEAP: u32 = 1280;

/// The frame that stands for a file.
#[derive(Debug)]
pub(super) struct VideoFrame {
    pub(super) facts: Facts,
    pub(super) thumbnail: Thumbnail,
}

/// Makes the thumbnail of a file, of the moment given or of the one that stands for it.
pub(super) fn video_frame(
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
    // Exactly the thumbnail's shape; never larger than the source.
    let ample = (width * spare, height * spare);
    let size = if ample.0 <= whole.0 && ample.1 <= whole.1 { ample } else { whole };
    ffmpeg.frame((path, format), &facts, at, size, scratch).map_err(failed)?;
    let frame = File::open(scratch).map_err(Error::file("read", scratch))?;
    let decoded = thumbnail(path, &mut BufReader::new(frame), resolution, budget, &|| false)?;
    Ok(VideoFrame { facts, thumbnail: decoded.thumbnail })
}

/// Writes the picture that stands for a file to a new PNG file, no larger than `resolution`.
pub(super) fn video_still(
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn no_more_than_the_total_is_ever_out() {
        let (budget, out) = (MemoryBudget::new(10), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (budget, out) = (&budget, &out);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let bytes = number * 3 % 12 + 1;
                        let permit = budget.take(bytes);
                        let granted = bytes.min(10);
                        assert!(out.fetch_add(granted, Ordering::SeqCst) + granted <= 10);
                        out.fetch_sub(granted, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        drop(budget.take(10));
    }
}
