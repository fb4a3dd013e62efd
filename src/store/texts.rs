//! Finds words in the texts of images. All texts are in memory: looking through them takes a tenth of
//! the time that SQL takes, and an index would make each change of a tag slower.

use std::sync::{Arc, Mutex};

use memchr::memmem::Finder;
use rusqlite::Connection;

use super::Error;
use super::query::Query;
use super::values::Values;
use crate::wire::collate::folded;

/// The column `words` of all images, in UTF-8.
pub(super) type Texts = Values<u8>;

impl Texts {
    pub(super) fn read(
        kept: &Mutex<Arc<Self>>,
        version: i64,
        connection: &Connection,
    ) -> Result<Arc<Self>, Error> {
        let convert = |text: &[u8], all: &mut Vec<u8>| all.extend_from_slice(text);
        Self::of_version(kept, version, connection, "words", convert)
    }

    /// Returns those of `ids` whose texts have all words of the query, and begin as it says.
    pub(super) fn matching(&self, query: &Query, ids: &[i64]) -> Vec<i64> {
        let (search, prefix) = (folded(&query.search), folded(&query.name_prefix));
        let mut words: Vec<&str> = search.split_whitespace().collect();
        // The longest is the least likely.
        words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        let words: Vec<Finder<'_>> = words.into_iter().map(Finder::new).collect();
        self.find(ids, |id, text| {
            // A text begins with the name.
            let fits = text.starts_with(prefix.as_bytes())
                && words.iter().all(|word| word.find(text).is_some());
            fits.then_some(id)
        })
    }
}
