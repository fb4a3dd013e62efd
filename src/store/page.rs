//! Pages of the library: the index says which images, and their rows are written as they are read.

use std::collections::HashSet;

use super::index::{Found, Known, Query, SortBy};
use super::index_sync::note_unreadable;
use super::playlists::Item;
use super::{Error, Store, folders, images, lock, watched};
use crate::sys::{read, write};
use crate::wire::ImageRow;

impl Store {
    /// Appends the records of one page to `out`, with commas between them, and returns the number of
    /// images on all pages. `write` knows what is not in a row.
    pub fn write_page(
        &self,
        query: &Query,
        out: &mut Vec<u8>,
        write: impl Fn(ImageRow<'_>, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<u64, Error> {
        let begin = out.len();
        let mut page = match self.page_without_index(query)? {
            Some(page) => page,
            None => self.find(query)?,
        };
        loop {
            let unreadable = self.write_rows(&page.ids, out, &write)?;
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
        write: impl Fn(ImageRow<'_>, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<Vec<i64>, Error> {
        let begin = out.len();
        let mut unreadable = Vec::new();
        self.read(|connection| {
            images::each(connection, ids, |id, row| match row {
                Ok(row) => {
                    if out.len() > begin {
                        out.push(b',');
                    }
                    put(row, out, &write)
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

    /// Appends the record of one image; false where there is none.
    pub(crate) fn write_row(
        &self,
        id: i64,
        out: &mut Vec<u8>,
        write: impl Fn(ImageRow<'_>, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<bool, Error> {
        let begin = out.len();
        self.read(|connection| images::each(connection, &[id], |_, row| put(row?, out, &write)))?;
        Ok(out.len() > begin)
    }

    /// The ids of one page.
    pub(super) fn find(&self, query: &Query) -> Result<Found, Error> {
        let known = self.known(query)?;
        self.with_index(|index| index.find(query, &known))
    }

    /// All images that pass the filters of a query.
    pub fn find_all(&self, query: &Query) -> Result<Vec<i64>, Error> {
        let known = self.known(query)?;
        self.with_index(|index| {
            let mut ids = Vec::new();
            index.each(query, &known, |id, _| ids.push(id));
            ids
        })
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
        let known = self.known(query)?;
        self.with_index(|index| index.has_any(query, &known))
    }

    fn known(&self, query: &Query) -> Result<Known, Error> {
        self.read(|connection| {
            let named = query.name.as_deref().map(|name| images::named(connection, name));
            let held = query.checksum.as_ref().map(|sum| images::by_checksum(connection, sum));
            let named = named.transpose()?.map(Vec::from_iter);
            let held = held.transpose()?.map(|image| Vec::from_iter(image.map(|image| image.id)));
            let lying = query.directory.as_deref();
            let lying = lying.map(|path| watched::ids_in(connection, path, query.recursive));
            let only = [named, held, lying.transpose()?].into_iter().flatten();
            let only = only.reduce(|mut one, other| {
                let other: HashSet<i64> = other.into_iter().collect();
                one.retain(|id| other.contains(id));
                one
            });
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
            let mut index = write(&self.shared.index);
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
        let standing = read(&self.shared.index).is_some();
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

fn put(
    row: ImageRow<'_>,
    out: &mut Vec<u8>,
    write: impl Fn(ImageRow<'_>, &mut Vec<u8>) -> serde_json::Result<()>,
) -> Result<(), Error> {
    write(row, out).map_err(|error| Error::Damaged { what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::store::edits::{self, ImageChange};
    use crate::store::images::tests::picture;
    use crate::store::tests::scratch;
    use crate::store::watched::{Stamp, WatchedFile};

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
    /// A library whose first is in a folder, the second in one within it, the others at the root.
    fn of_sixty() -> (tempfile::TempDir, Store, (i64, i64)) {
        let (directory, store) = scratch();
        let filled = store.write(|c| -> Result<_, folders::Refusal> {
            for number in 0..60 {
                let mut new = picture(&format!("{number:032}"), number);
                new.checksum[0] = u8::try_from(number).unwrap();
                images::insert(c, &new)?;
            }
            let outer = folders::insert(c, "outer", None)?;
            let inner = folders::insert(c, "inner", Some(outer))?;
            folders::move_images(c, &[1], Some(outer))?;
            folders::move_images(c, &[2], Some(inner))?;
            let tags = |tags: &[&str]| ImageChange {
                tags: Some(tags.iter().map(ToString::to_string).collect()),
                ..ImageChange::default()
            };
            edits::change(c, 3, &tags(&["sea", "Alps"]))?;
            edits::change(c, 4, &tags(&["sea"]))?;
            Ok((outer, inner))
        });
        (directory, store, filled.unwrap())
    }

    #[test]
    fn all_are_found_whatever_the_page() {
        let (_directory, store, (outer, inner)) = of_sixty();
        let page = Query { offset: 58, limit: 9, sort_by: SortBy::FileSize, ..Query::default() };
        let down: Vec<i64> = (1..=60).rev().collect();
        assert_eq!(store.find(&page).unwrap().ids, [2, 1]);
        assert_eq!(store.find_all(&page).unwrap(), down);
        let items = store.find_items(&page).unwrap();
        assert_eq!(items.iter().map(|item| item.image_id).collect::<Vec<_>>(), down);
        let within = |folder, recursive| {
            let query = Query { folder: Some(folder), recursive, offset: 9, ..Query::default() };
            let found = store.find_all(&query).unwrap();
            assert_eq!(store.finds_any(&query).unwrap(), !found.is_empty());
            found.len()
        };
        assert_eq!((within(Some(outer), false), within(Some(outer), true)), (1, 2));
        assert_eq!((within(Some(inner), false), within(Some(inner), true)), (1, 1));
        assert_eq!((within(Some(99), false), within(Some(99), true)), (0, 0));
        assert_eq!((within(None, false), within(None, true)), (58, 60));
        assert_eq!(store.tags().unwrap(), ["Alps", "sea"]);
    }

    #[test]
    fn name_and_content_are_those_of_one_image() {
        let (_directory, store, _) = of_sixty();
        let [one, other] = [7, 8].map(|id| store.read(|c| images::get(c, id)).unwrap().unwrap());
        let sum = |image: &crate::wire::Image| {
            let mut sum = picture(&image.name, 1).checksum;
            sum[0] = u8::try_from(image.id - 1).unwrap();
            sum
        };
        let find = |name: Option<&str>, checksum| {
            let name = name.map(str::to_owned);
            store.find_all(&Query { name, checksum, ..Query::default() }).unwrap()
        };
        assert_eq!(find(Some(&one.name), None), [7]);
        assert_eq!(find(None, Some(sum(&other))), [8]);
        assert_eq!(find(Some(&one.name), Some(sum(&one))), [7]);
        assert_eq!(find(Some(&one.name), Some(sum(&other))), [0; 0]);
        assert_eq!(find(Some("nobody"), None), [0; 0]);
    }

    #[test]
    fn image_is_in_each_directory_in_which_it_has_a_file() {
        let (_directory, store, _) = of_sixty();
        let note = |path: &str, image_id| {
            let file = WatchedFile {
                path: path.into(),
                image_id,
                checksum: None,
                stamp: Stamp::default(),
            };
            store.write(|c| watched::note(c, &file)).unwrap();
        };
        let find = |directory: &str, recursive| {
            let directory = Some(directory.into());
            let query = Query { directory, recursive, descending: false, ..Query::default() };
            store.find_all(&query).unwrap()
        };
        note("/a/one.png", Some(1));
        note("/a/none.png", None);
        note("/a/sub/two.png", Some(2));
        let before = store.findings();
        note("/b/one.png", Some(1));
        assert!(store.findings() > before, "lists that are kept are made again");
        assert_eq!((find("/a", true), find("/a/", false)), (vec![1, 2], vec![1]));
        assert_eq!((find("/b", true), find("/a/sub", false)), (vec![1], vec![2]));
        let before = store.findings();
        store.write(|c| watched::forget(c, Path::new("/b/one.png"))).unwrap();
        assert!(store.findings() > before && find("/b", true).is_empty());
    }

    #[test]
    fn fault_that_is_of_no_row_fails_the_list() {
        let (directory, store, _) = of_sixty();
        store.warm().unwrap();
        let query = Query { name_prefix: "0".to_owned(), ..Query::default() };
        let mut out = Vec::new();
        let write = |row: ImageRow<'_>, out: &mut Vec<u8>| serde_json::to_writer(out, row.name);
        store.write_page(&query, &mut out, write).unwrap();
        assert!(!out.is_empty());
        // The readers see another database than the index is of.
        let other = Store::open(&directory.path().join("other/murald.sqlite3")).unwrap();
        other
            .write(|c| Ok::<_, Error>(c.execute_batch("ALTER TABLE image RENAME TO was")?))
            .unwrap();
        let mut readers = lock(&store.shared.readers);
        readers.clear();
        readers.push(other.reader().unwrap());
        drop(readers);
        let error = store.write_page(&query, &mut out, write).unwrap_err();
        assert!(!error.is_of_a_row(), "{error:?}");
    }
}
