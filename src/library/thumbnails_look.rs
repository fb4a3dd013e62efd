//! What a page of the library says of its thumbnails: a look at their directories, and at a file
//! only where the same was not seen there before.
//!
//! Runs in the thread that writes the page; never writes to the disk.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::thumbnails::{Thumbnails, bit, is_whole};
use super::thumbnails_seen::Directories;
use crate::digest;
use crate::wire::ImageRow;

/// The clock of a file system stands still for up to two seconds: within them a directory can change
/// and keep its times.
const SETTLED: Duration = Duration::from_secs(3);
/// For the rows of one page.
#[derive(Debug)]
pub(crate) struct Look<'t> {
    thumbnails: &'t Thumbnails,
    generation: u64,
    /// The sizes of which what is seen now may be known later, as bits.
    lasting: u8,
    answers: bool,
}

impl Thumbnails {
    pub(crate) fn look(&self) -> Look<'_> {
        self.look_at(SystemTime::now())
    }

    pub(super) fn look_at(&self, now: SystemTime) -> Look<'_> {
        let answers = self.answers().is_ok();
        let Directories { generation, sizes, changed } = self.directories(answers);
        let is_settled = now.duration_since(changed).is_ok_and(|age| age > SETTLED);
        let lasting = if is_settled { sizes } else { 0 };
        Look { thumbnails: self, generation, lasting, answers }
    }
}

impl Look<'_> {
    /// Equal numbers mean that [`Self::complete`] would say the same: it differs after each
    /// thumbnail or preview that comes or goes, also by a stranger's hand.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Gives an image that is being written what is not in its row: what the cache has of it.
    pub(crate) fn complete(&self, row: &mut ImageRow<'_>) {
        let is_there = |preview: &&str| self.answers && Path::new(preview).exists();
        row.preview_path = row.preview_path.filter(is_there);
        let Some(&first) = row.checksum.first_chunk().filter(|_| self.answers) else { return };
        let (number, hex) = (u64::from_be_bytes(first), digest::hex(row.checksum));
        let seen = self.thumbnails.seen();
        let known = self.lasting & seen.of(number, self.generation);
        let mut fresh = 0;
        let path = |size| self.thumbnails.path(&hex, size);
        let there = self.thumbnails.there((row.width, row.height), number, |size| {
            let whole = known & bit(size) != 0 || is_whole(&path(size));
            fresh |= if whole { bit(size) & !known } else { 0 };
            whole
        });
        row.thumbnails = there.map(|(size, made)| (size.as_str(), path(made))).collect();
        if fresh & self.lasting != 0 {
            seen.add(number, fresh & self.lasting, self.generation);
        }
    }
}
