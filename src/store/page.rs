//! Pages of the library: the index says which images, and their rows are written as they are read.

use std::sync::PoisonError;

use super::index::{Found, Known, Query, SortBy};
use super::index_sync::note_unreadable;
use super::playlists::Item;
use super::{Error, Store, folders, images, lock};
use crate::wire::ImageRow;

impl Store {
    /// Appends the records of one page to `out`, with commas between them, and returns the number of
    /// images on all pages. `complete` gives each what is not in its row.
    pub fn write_page(
        &self,
        query: &Query,
        out: &mut Vec<u8>,
        complete: impl Fn(&mut ImageRow<'_>),
    ) -> Result<u64, Error> {
        let begin = out.len();
        let mut page = match self.page_without_index(query)? {
            Some(page) => page,
            None => self.find(query)?,
        };
        loop {
            let unreadable = self.write_rows(&page.ids, out, &complete)?;
            if unreadable.is_empty() {
                return Ok(page.total);
            }
            out.truncate(begin);
            self.leave_out(&unreadable)?;
            page = self.find(query)?;
        }
    }

    /// Appends the records of these images; the ids of those that cannot be read.
    pub(crate) fn write_rows(
        &self,
        ids: &[i64],
        out: &mut Vec<u8>,
        complete: impl Fn(&mut ImageRow<'_>),
    ) -> Result<Vec<i64>, Error> {
        let begin = out.len();
        let mut unreadable = Vec::new();
        self.read(|connection| {
            images::each(connection, ids, |id, row| match row {
                Ok(mut row) => {
                    complete(&mut row);
                    if out.len() > begin {
                        out.push(b',');
                    }
                    write(&row, out)
                }
                Err(error) if error.is_of_a_row() => {
                    unreadable.push(id);
                    Ok(())
                }
                Err(error) => Err(error),
            })
        })?;
        Ok(unreadable)
    }

    /// The ids of one page.
    pub(super) fn find(&self, query: &Query) -> Result<Found, Error> {
        let known = self.known(query)?;
        self.with_index(|index| index.find(query, &known))
    }

    /// All images that pass the filters of a query.
    pub fn find_all(&self, query: &Query) -> Result<Vec<i64>, Error> {
        let all = Query { offset: 0, limit: u64::MAX, ..query.clone() };
        self.find(&all).map(|found| found.ids)
    }

    /// The same as items of a playlist.
    pub(crate) fn find_items(&self, query: &Query) -> Result<Vec<Item>, Error> {
        let known = self.known(query)?;
        self.with_index(|index| {
            let mut items = Vec::new();
            index.each(query, &known, |image_id, (media_type, animated)| {
                items.push(Item {
                    image_id,
                    media_type,
                    animated,
                    time: None,
                    at: None,
                    when: None,
                });
            });
            items
        })
    }

    /// Whether any image passes the filters of a query.
    pub(crate) fn finds_any(&self, query: &Query) -> Result<bool, Error> {
        let one = Query { offset: 0, limit: 1, ..query.clone() };
        self.find(&one).map(|found| found.total > 0)
    }

    fn known(&self, query: &Query) -> Result<Known, Error> {
        self.read(|connection| {
            let named = query.name.as_deref().map(|name| images::named(connection, name));
            let held = query.checksum.as_ref().map(|sum| images::by_checksum(connection, sum));
            let named = named.transpose()?.map(Vec::from_iter);
            let held = held.transpose()?.map(|image| Vec::from_iter(image.map(|image| image.id)));
            let only = match (named, held) {
                (Some(one), Some(other)) => {
                    Some(one.into_iter().filter(|id| other.contains(id)).collect())
                }
                (one, other) => one.or(other),
            };
            let folders = match query.folder {
                Some(Some(folder)) if query.recursive => {
                    let within = folders::subtree(connection, folder)?;
                    Some(within.into_iter().map(|(id, _)| id).collect())
                }
                _ => None,
            };
            Ok(Known { only, folders })
        })
    }

    /// All tags in use, sorted.
    pub fn tags(&self) -> Result<Vec<String>, Error> {
        self.with_index(|index| index.tags())
    }

    /// Has the index forget those that cannot be read.
    fn leave_out(&self, ids: &[i64]) -> Result<(), Error> {
        self.with_index(|_| ())?;
        // Nobody mends them meanwhile.
        let writer = lock(&self.shared.writer);
        for &id in ids {
            match images::get(&writer, id) {
                Ok(_) => continue,
                Err(error) if error.is_of_a_row() => {
                    note_unreadable(&mut lock(&self.shared.unreadable), id, &error);
                }
                Err(error) => return Err(error),
            }
            let mut index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(index) = &mut *index {
                index.remove(id);
            }
        }
        Ok(())
    }

    /// One page in SQL, while the index is not there, of what SQL sorts as the index does; none of
    /// anything else.
    fn page_without_index(&self, query: &Query) -> Result<Option<Found>, Error> {
        let &Query { sort_by, descending, offset, limit, .. } = query;
        let plain = Query { sort_by, descending, offset, limit, ..Query::default() };
        let standing = self.shared.index.read().unwrap_or_else(PoisonError::into_inner).is_some();
        let column = match sort_by {
            SortBy::ImportedAt => "imported_at",
            SortBy::FileSize => "file_size",
            SortBy::Name | SortBy::Hue => return Ok(None),
        };
        if standing || plain != *query {
            return Ok(None);
        }
        self.read(|connection| {
            let total = images::count(connection)?;
            let ids = images::page(connection, column, descending, (offset, limit))?;
            Ok(Some(Found { ids, total }))
        })
    }
}

fn write(row: &ImageRow<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let written = serde_json::to_writer(out, row);
    written.map_err(|error| Error::Damaged { what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::images::tests::picture;
    use crate::store::tests::scratch;

    #[test]
    fn lists_without_the_index_are_the_same() {
        let (_directory, store) = scratch();
        for number in 0..40 {
            let name = format!("{number:032}");
            store.write(|c| images::insert(c, &picture(&name, number))).unwrap();
        }
        for sort_by in [SortBy::ImportedAt, SortBy::FileSize] {
            for descending in [true, false] {
                let query = Query { sort_by, descending, offset: 7, limit: 9, ..Query::default() };
                let without = store.page_without_index(&query).unwrap().unwrap();
                store.warm().unwrap();
                assert!(store.page_without_index(&query).unwrap().is_none());
                assert_eq!(without, store.find(&query).unwrap());
                *store.shared.index.write().unwrap() = None;
            }
        }
    }
}
