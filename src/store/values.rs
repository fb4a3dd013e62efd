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
            let mut values = Self {
                version,
                images: Vec::new(),
                all: Vec::new(),
            };
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
        self.images.push(Part {
            id,
            start: start as u32,
            count,
        });
    }

    /// Returns the values of an image; empty if it does not exist.
    pub(super) fn of(&self, id: i64) -> &[T] {
        self.part(id).map_or(&[], |part| self.values(part))
    }

    /// Returns the results of `test` for the images `ids`, in their order.
    pub(super) fn find<M>(&self, ids: &[i64], test: impl Fn(i64, &[T]) -> Option<M>) -> Vec<M> {
        ids.iter()
            .filter_map(|&id| test(id, self.values(self.part(id)?)))
            .collect()
    }

    fn values(&self, part: &Part) -> &[T] {
        &self.all[part.start as usize..][..part.count as usize]
    }

    fn part(&self, id: i64) -> Option<&Part> {
        let (first, last) = (self.images.first()?.id, self.images.last()?.id);
        if id < first || id > last {
            return None;
        }
        // Ids are distinct, so an image is at most as far from each end as its id; if no image was
        // deleted, a single place is left.
        let to = self.images.len().min(id.abs_diff(first) as usize + 1);
        let from = self
            .images
            .len()
            .saturating_sub(id.abs_diff(last) as usize + 1);
        let near = &self.images[from..to];
        near.binary_search_by_key(&id, |part| part.id)
            .ok()
            .map(|at| &near[at])
    }
}
