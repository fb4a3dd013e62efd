//! Thumbnails in the records of a page of the library: looks at their directories, and at a file only
//! if it was not seen there before.
//!
//! Runs on the thread that writes the page; never writes to the disk.

use std::cell::OnceCell;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;

use super::thumbnails::{Thumbnails, is_whole, serves};
use super::thumbnails_state::Directories;
use crate::digest;
use crate::wire::{ImageRow, Resolution, zone};

/// The clock of a file system stands still for up to two seconds: within them a directory can change
/// and keep its times.
const SETTLED: Duration = Duration::from_secs(3);
/// The sizes as records have them.
const BY_NAME: [Resolution; Resolution::ALL.len()] = [
    Resolution::P1080,
    Resolution::P1440,
    Resolution::P2160,
    Resolution::P720,
    Resolution::Default,
];

/// For the rows of one page.
#[derive(Debug)]
pub(crate) struct PageThumbnails<'t> {
    thumbnails: &'t Thumbnails,
    generation: u64,
    /// The sizes of which what is seen now may be known later, as bits.
    lasting: u8,
    /// The time zone of the times in its rows.
    zone: OnceCell<TimeZone>,
}

impl Thumbnails {
    pub(crate) fn look(&self) -> PageThumbnails<'_> {
        self.look_at(SystemTime::now())
    }

    pub(super) fn look_at(&self, now: SystemTime) -> PageThumbnails<'_> {
        let Directories { generation, sizes, changed } = self.directories();
        let is_settled = now.duration_since(changed).is_ok_and(|age| age > SETTLED);
        let lasting = if is_settled { sizes } else { 0 };
        PageThumbnails { thumbnails: self, generation, lasting, zone: OnceCell::new() }
    }
}

impl PageThumbnails<'_> {
    /// Appends an image with what is not in its row: what the cache has of it.
    pub(crate) fn write(&self, mut row: ImageRow<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let is_there = |preview: &&str| Path::new(preview).exists();
        row.preview_path = row.preview_path.filter(is_there);
        let (size, there) = ((row.width, row.height), self.there(&row));
        let serving =
            |asked: &Resolution| Some((asked.as_str(), serves(size, *asked, there)?.as_str()));
        let thumbnails = BY_NAME.iter().filter_map(serving);
        let zone = self.zone.get_or_init(zone::local);
        row.write(out, zone, self.thumbnails.directory_as_json(), thumbnails)
    }

    /// The sizes that are there, as bits.
    fn there(&self, row: &ImageRow<'_>) -> u8 {
        let Some(&first) = row.checksum.first_chunk() else { return 0 };
        let (number, seen) = (u64::from_be_bytes(first), self.thumbnails.seen());
        if self.lasting != 0
            && let Some(known) = seen.of(number, self.generation)
        {
            return known;
        }
        let hex = digest::hex(row.checksum);
        let is_there = |made| is_whole(&self.thumbnails.path(&hex, made));
        let there = self.thumbnails.there((row.width, row.height), number, is_there);
        if self.lasting != 0 && there & !self.lasting == 0 {
            seen.add(number, there, self.generation);
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_all_sizes_by_their_names() {
        let mut all = Resolution::ALL.to_vec();
        all.sort_by_key(|size| size.as_str());
        assert_eq!(all, BY_NAME);
    }
}
