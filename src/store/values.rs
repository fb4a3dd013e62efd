//! Keeps a column of all images in memory, for filters that SQL cannot evaluate or evaluates slowly:
//! [`super::texts`] and [`super::palettes`]. A version in the table `library` tells when it is outdated.

use std::sync::{Arc, Mutex};

use rusqlite::Connection;

use super::Error;
use crate::sys::lock;

/// The values of all images: each has any number of `T`.
#[derive(Debug, Default)]
pub(super) struct Values<T> {
    version: i64,
    /// Sorted by id.
    images: Vec<Part>,
    all: Vec<T>,
}

/// The values of an image, as a range of `Values::all`.
#[derive(Clone, Copy, Debug)]
struct Part {
    id: i64,
    start: u32,
    count: u32,
}

impl<T> Values<T> {
    /// Returns the values of this version. If `kept` has another, reads the column again while other
    /// threads wait; `convert` appends the values of an image.
    pub(super) fn of_version(
        kept: &Mutex<Arc<Self>>,
        version: i64,
        connection: &Connection,
        column: &str,
        convert: impl Fn(&[u8], &mut Vec<T>),
    ) -> Result<Arc<Self>, Error> {
        let mut kept = lock(kept);
        if kept.version != version {
            let mut values = Self { version, images: Vec::new(), all: Vec::new() };
            // The index has both columns, and the table is five times as large.
            let sql = format!("SELECT id, {column} FROM image INDEXED BY image_list");
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // An unreadable value is treated as empty; lists omit the image anyway.
                let stored = row.get_ref(1)?.as_bytes().unwrap_or_default();
                values.add(row.get(0)?, |all| convert(stored, all));
            }
            values.images.sort_unstable_by_key(|part| part.id);
            values.images.shrink_to_fit();
            values.all.shrink_to_fit();
            *kept = Arc::new(values);
        }
        Ok(Arc::clone(&kept))
    }

    pub(super) fn add(&mut self, id: i64, append: impl FnOnce(&mut Vec<T>)) {
        let start = self.all.len();
        append(&mut self.all);
        let count = (self.all.len() - start) as u32;
        self.images.push(Part { id, start: start as u32, count });
    }

    /// Returns the values of an image; empty if it does not exist.
    pub(super) fn of(&self, id: i64) -> &[T] {
        let at = self.images.binary_search_by_key(&id, |part| part.id);
        at.map_or(&[], |at| self.part(&self.images[at]))
    }

    /// Returns the images of `among` for which `test` returns something, sorted by id.
    pub(super) fn find<M>(
        &self,
        among: &[i64],
        test: impl Fn(i64, &[T]) -> Option<M>,
    ) -> Vec<(i64, M)> {
        let mut among = among.to_vec();
        among.sort_unstable();
        let mut parts = self.images.iter().peekable();
        let found = among.into_iter().filter_map(|id| {
            while parts.next_if(|part| part.id < id).is_some() {}
            let part = parts.next_if(|part| part.id == id)?;
            Some((id, test(id, self.part(part))?))
        });
        found.collect()
    }

    fn part(&self, part: &Part) -> &[T] {
        &self.all[part.start as usize..][..part.count as usize]
    }
}
