//! What is to be taken into the library, as it is seen before any of it is copied. Runs in the import
//! workers.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::Error;
use super::decode::guarded;
use super::disk;
use super::name::Name;
use crate::media;
use crate::media::Error::NeedsTranscoder;
use crate::sys::Patient;
use crate::transcode;
use crate::wire::Format;

/// A file of a format that we know.
pub(super) struct Source {
    pub(super) file: File,
    pub(super) format: Format,
    /// What it is to be called.
    pub(super) name: Name,
    pub(super) size: u64,
}

impl Source {
    pub(super) fn look_at(path: &Path) -> Result<Self, Error> {
        let file = disk::open(path)?;
        let format = format(path, &file)?;
        let name = Name::of(path, format)?;
        let size = file.metadata().map_err(Error::file("read", path))?.len();
        Ok(Self { file, format, name, size })
    }
}

/// What the file is by its content; refuses what is not decoded before anything is copied.
pub(super) fn format(path: &Path, file: &File) -> Result<Format, Error> {
    match guarded(path, || media::format(&mut BufReader::with_capacity(512, Patient(file)))) {
        Err(Error::Media { source: NeedsTranscoder { format, .. }, .. })
            if transcode::is_available() =>
        {
            Ok(format)
        }
        other => other,
    }
}
