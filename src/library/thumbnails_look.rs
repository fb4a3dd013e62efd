//! Thumbnails in the records of a page of the library: looks at their directories, and at a file only
//! if it was not seen there before.
//!
//! Runs on the thread that writes the page; never writes to the disk.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;

use super::thumbnails::{Thumbnails, is_whole, serves};
use super::thumbnails_state::Directories;
use crate::digest;
use crate::wire::{Image, Resolution, ThumbnailPaths, zone};

/// The times of some file systems have steps of two seconds, within which a directory can change and
/// keep its times.
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

    /// Gives an image what is not in its row: what the cache has of it now.
    pub fn complete(&self, image: &mut Image) {
        self.look().complete(image);
    }

    pub(super) fn look_at(&self, now: SystemTime) -> PageThumbnails<'_> {
        let Directories {
            generation,
            sizes,
            changed,
        } = self.directories();
        let is_settled = now.duration_since(changed).is_ok_and(|age| age > SETTLED);
        let lasting = if is_settled { sizes } else { 0 };
        PageThumbnails {
            thumbnails: self,
            generation,
            lasting,
            zone: OnceCell::new(),
        }
    }
}

impl PageThumbnails<'_> {
    /// Appends an image with what is not in its row.
    pub(crate) fn write(&self, mut image: Image, out: &mut Vec<u8>) -> serde_json::Result<()> {
        self.complete(&mut image);
        image.write(out, self.zone.get_or_init(zone::local))
    }

    fn complete(&self, image: &mut Image) {
        // The cache may have been deleted.
        image.preview_path = image.preview_path.take().filter(|preview| preview.exists());
        let (size, there) = ((image.width, image.height), self.there(image));
        let serving =
            |asked: &Resolution| Some((asked.as_str(), serves(size, *asked, there)?.as_str()));
        image.thumbnails = ThumbnailPaths {
            cache: Arc::clone(self.thumbnails.directory_as_json()),
            sizes: BY_NAME.iter().filter_map(serving).collect(),
        };
    }

    /// The sizes that are there, as bits.
    fn there(&self, image: &Image) -> u8 {
        let number = image
            .checksum
            .first_chunk()
            .map_or(0, |&first| u64::from_be_bytes(first));
        let seen = self.thumbnails.seen();
        if self.lasting != 0
            && let Some(known) = seen.of(number, self.generation)
        {
            return known;
        }
        let hex = digest::hex(&image.checksum);
        let is_there = |made| is_whole(&self.thumbnails.path(&hex, made));
        let there = self
            .thumbnails
            .there((image.width, image.height), number, is_there);
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
