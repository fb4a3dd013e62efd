//! Finds the images of a query, and writes their records page by page. A list is read in one
//! transaction, so that all of it is of the same moment.

use std::sync::Arc;

use rusqlite::Connection;

use super::playlists::Item;
use super::query::{Hits, LastList, Query};
use super::{Error, Store, images, select};
use crate::sys::lock;
use crate::wire::Image;
use crate::wire::collate::sort_key;

impl Store {
    /// Appends the records of a page to `out`, separated by commas, and returns the number of
    /// images on all pages. `write` adds the fields that are not stored in the row.
    pub fn write_page(
        &self,
        query: &Query,
        out: &mut Vec<u8>,
        write: impl Fn(Image, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<u64, Error> {
        self.read_moment(|moment| {
            let hits = self.hits(moment, query)?;
            put_rows(moment, page(&hits, query), out, &write)?;
            Ok(hits.len() as u64)
        })
    }

    /// Appends the records of images.
    pub(crate) fn write_rows(
        &self,
        ids: &[i64],
        out: &mut Vec<u8>,
        write: impl Fn(Image, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<(), Error> {
        self.read(|connection| put_rows(connection, ids, out, &write))
    }

    /// Appends the record of an image; returns `false` if it does not exist.
    pub(crate) fn write_row(
        &self,
        id: i64,
        out: &mut Vec<u8>,
        write: impl Fn(Image, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<bool, Error> {
        let begin = out.len();
        self.read(|connection| images::each(connection, &[id], |row| put(row, out, &write)))?;
        Ok(out.len() > begin)
    }

    /// Returns all images that match a query, in its order; ignores paging.
    pub fn find_all(&self, query: &Query) -> Result<Vec<i64>, Error> {
        let hits = self.read_moment(|moment| self.hits(moment, query))?;
        Ok(Arc::unwrap_or_clone(hits))
    }

    /// Like [`Store::find_all`], as items of a playlist.
    pub(crate) fn find_items(&self, query: &Query) -> Result<Vec<Item>, Error> {
        self.read_moment(|moment| {
            let kinds = images::ids(moment)?;
            let item = |&image_id: &i64| {
                let at = kinds.binary_search_by_key(&image_id, |(id, ..)| *id).ok()?;
                let (_, media_type, animated) = kinds[at];
                Some(Item {
                    image_id,
                    media_type,
                    animated,
                    time: None,
                    at: None,
                    when: None,
                })
            };
            Ok(self.hits(moment, query)?.iter().filter_map(item).collect())
        })
    }

    /// Whether any image matches the query.
    pub(crate) fn finds_any(&self, query: &Query) -> Result<bool, Error> {
        Ok(!self
            .read_moment(|moment| self.hits(moment, query))?
            .is_empty())
    }

    /// A number that grows when queries may find other images. If it was the same before a query as
    /// it is now, the query would find the same images.
    pub(crate) fn findings(&self) -> Result<u64, Error> {
        self.read(|connection| Ok(version(connection)?.unsigned_abs()))
    }

    /// Returns all tags in use, sorted.
    pub fn tags(&self) -> Result<Vec<String>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT name FROM tag")?;
            let tags = statement.query_map([], |row| row.get(0))?;
            let mut tags: Vec<String> = tags.collect::<Result<_, _>>()?;
            tags.sort_by_cached_key(|tag| (sort_key(tag), tag.clone()));
            Ok(tags)
        })
    }

    /// Runs `body` in a read transaction: all its statements see the same data.
    fn read_moment<T>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.read(|connection| body(&*connection.unchecked_transaction()?))
    }

    /// Returns the ids on all pages.
    fn hits(&self, moment: &Connection, query: &Query) -> Result<Hits, Error> {
        let version = version(moment)?;
        let query = query.without_page();
        if let Some(last) = &*lock(&self.shared.last_list)
            && last.version == version
            && last.query == query
        {
            return Ok(Arc::clone(&last.hits));
        }
        let hits = Arc::new(select::ids(moment, &query)?);
        *lock(&self.shared.last_list) = Some(LastList {
            version,
            query,
            hits: Arc::clone(&hits),
        });
        Ok(hits)
    }
}

/// A number that triggers increase with every change that may affect the result of a query.
fn version(connection: &Connection) -> Result<i64, Error> {
    let mut statement = connection.prepare_cached("SELECT lists FROM library")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Returns the ids on one page.
fn page<'h>(hits: &'h [i64], query: &Query) -> &'h [i64] {
    let place = |number: u64| {
        usize::try_from(number)
            .unwrap_or(usize::MAX)
            .min(hits.len())
    };
    &hits[place(query.offset)..place(query.offset.saturating_add(query.limit))]
}

/// Appends the records of images.
fn put_rows(
    connection: &Connection,
    ids: &[i64],
    out: &mut Vec<u8>,
    write: &impl Fn(Image, &mut Vec<u8>) -> serde_json::Result<()>,
) -> Result<(), Error> {
    let begin = out.len();
    images::each(connection, ids, |row| {
        if out.len() > begin {
            out.push(b',');
        }
        put(row, out, write)
    })
}

fn put(
    row: Image,
    out: &mut Vec<u8>,
    write: &impl Fn(Image, &mut Vec<u8>) -> serde_json::Result<()>,
) -> Result<(), Error> {
    write(row, out).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })
}

#[cfg(test)]
pub(super) mod tests;
