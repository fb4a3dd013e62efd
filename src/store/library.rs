//! The index in step with the database.
//!
//! The writer's connection notes which images each statement touches; when the transaction is
//! committed, and still under the writer's lock, the index learns what became of them. A query
//! locks the index for as long as it computes, never across a read of the database. The index is
//! built from a reader's snapshot with no lock held that others need: what is committed meanwhile is
//! noted, and learnt at the end.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::Connection;
use rusqlite::hooks::Action;

use super::images::ListQuery;
use super::index::{self, Entry, Found, Index, Query};
use super::{Error, Shared, Store, images, lock};
use crate::wire::Image;

/// The images that the transaction in hand has touched.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched(Arc<Mutex<Vec<i64>>>);

impl Touched {
    /// Notes every change of the table from now on.
    pub(super) fn watch(&self, writer: &mut Connection) -> rusqlite::Result<()> {
        let touched = self.clone();
        writer.update_hook(Some(move |_: Action, _: &str, table: &str, id: i64| {
            if table == "image" {
                lock(&touched.0).push(id);
            }
        }))
    }

    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }

    fn take(&self) -> Vec<i64> {
        let mut ids = std::mem::take(&mut *lock(&self.0));
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// From so many changes on, if they are of every sixteenth image too, the index is better built anew
/// than changed one by one: after the end of a large folder.
const MANY: usize = 1000;

/// None until it was built.
pub(super) type SharedIndex = RwLock<Option<Index>>;

/// The images that were touched while the index is being built; none while it is not.
pub(super) type Missed = Mutex<Option<Vec<i64>>>;

/// The images that were found to be unreadable: no list has them, until they are written anew.
pub(super) type Unreadable = BTreeSet<i64>;

/// Called under the writer's lock, after a commit.
pub(super) fn keep_in_step(shared: &Shared, writer: &Connection) -> Result<(), Error> {
    let Shared { index, missed, touched, unreadable, .. } = shared;
    let ids = touched.take();
    if ids.is_empty() {
        return Ok(());
    }
    {
        let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
        match &*index {
            None => {
                if let Some(missed) = &mut *lock(missed) {
                    missed.extend(ids);
                }
                return Ok(());
            }
            Some(built) if ids.len() > MANY.max(built.len() / 16) => {
                *index = None;
                return Ok(());
            }
            Some(_) => {}
        }
    }
    let changed: Vec<_> = ids.into_iter().map(|id| (id, images::entry(writer, id))).collect();
    let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
    let Some(built) = index.as_mut() else { return Ok(()) };
    let learnt = changed
        .into_iter()
        .try_for_each(|(id, entry)| learn(built, &mut lock(unreadable), id, entry));
    // Better built anew at the next question than wrong.
    learnt.inspect_err(|_| *index = None)
}

/// Has the index know what became of an image.
fn learn(
    index: &mut Index,
    unreadable: &mut Unreadable,
    id: i64,
    entry: Result<Option<Entry>, Error>,
) -> Result<(), Error> {
    let entry = match entry {
        Err(error) if error.is_of_a_row() => {
            index.remove(id);
            note_unreadable(unreadable, id, &error);
            return Ok(());
        }
        entry => entry?,
    };
    unreadable.remove(&id);
    match entry {
        Some(entry) => index.put(entry),
        None => index.remove(id),
    }
    Ok(())
}

fn note_unreadable(unreadable: &mut Unreadable, id: i64, error: &Error) {
    if unreadable.insert(id) {
        log::error!("image {id} cannot be read and is left out of lists: {error}");
    }
}

impl Store {
    /// One page of the library: its rows, and the number of images on all pages.
    pub fn search(&self, query: &Query) -> Result<(Vec<Image>, u64), Error> {
        if let Some(page) = self.list_without_index(query)? {
            return Ok(page);
        }
        loop {
            let found = self.find(query)?;
            let images = self.read(|connection| images::by_ids(connection, &found.ids))?;
            if images.len() == found.ids.len() || !self.leave_out(&found.ids, &images)? {
                return Ok((images, found.total));
            }
        }
    }

    /// Has the index forget those of a page that cannot be read; whether there are any. The others
    /// that are not among the images are gone by now.
    fn leave_out(&self, page: &[i64], images: &[Image]) -> Result<bool, Error> {
        let read: HashSet<i64> = images.iter().map(|image| image.id).collect();
        // Nobody mends them meanwhile.
        let writer = lock(&self.shared.writer);
        let mut any = false;
        for &id in page.iter().filter(|id| !read.contains(id)) {
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
            any = true;
        }
        Ok(any)
    }

    /// The ids of one page.
    pub fn find(&self, query: &Query) -> Result<Found, Error> {
        self.with_index(|index| index.find(query))
    }

    /// All tags in use, sorted.
    pub fn tags(&self) -> Result<Vec<String>, Error> {
        self.with_index(Index::tags)
    }

    /// Builds the index if it is not there: 54 ms for 100,000 images, better before anybody asks. For
    /// a thread of its own at the start.
    pub fn warm(&self) -> Result<(), Error> {
        self.with_index(|_| ())
    }

    /// Writes what the index holds nothing of, such as what is selected: it stays as it is, however
    /// many images are touched.
    pub fn write_beside_index<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.write(|transaction| {
            let value = body(transaction)?;
            self.shared.touched.clear();
            Ok(value)
        })
    }

    fn with_index<T>(&self, ask: impl FnOnce(&Index) -> T) -> Result<T, Error> {
        loop {
            let index = self.shared.index.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(index) = &*index {
                return Ok(ask(index));
            }
            drop(index);
            self.build()?;
        }
    }

    /// Builds the index, unless somebody else has by the time that it is our turn.
    fn build(&self) -> Result<(), Error> {
        let shared = &self.shared;
        let _turn = lock(&shared.building);
        if shared.index.read().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        let built = self.build_beside().inspect_err(|_| *lock(&shared.missed) = None)?;
        let (mut built, unreadable) = built;
        let writer = lock(&shared.writer);
        let mut missed = lock(&shared.missed).take().unwrap_or_default();
        missed.sort_unstable();
        missed.dedup();
        *lock(&shared.unreadable) = unreadable;
        for id in missed {
            learn(&mut built, &mut lock(&shared.unreadable), id, images::entry(&writer, id))?;
        }
        *shared.index.write().unwrap_or_else(PoisonError::into_inner) = Some(built);
        Ok(())
    }

    /// From one snapshot, beside whoever writes; what they touch from its beginning on is missed.
    fn build_beside(&self) -> Result<(Index, Unreadable), Error> {
        let mut reader = self.reader()?;
        let snapshot = {
            let _nobody_writes = lock(&self.shared.writer);
            let snapshot = reader.transaction()?;
            // The first look is where the snapshot begins.
            snapshot.query_row("SELECT count(*) FROM folder", [], |_| Ok(()))?;
            *lock(&self.shared.missed) = Some(Vec::new());
            snapshot
        };
        let mut unreadable = Unreadable::new();
        let entries = images::entries(&snapshot, |id, error| {
            note_unreadable(&mut unreadable, id, &error);
        })?;
        Ok((Index::build(entries.into_iter()), unreadable))
    }

    /// One page in SQL, while the index is not there, of what SQL sorts as the index does; none of
    /// anything else.
    fn list_without_index(&self, query: &Query) -> Result<Option<(Vec<Image>, u64)>, Error> {
        let sort_by = match query.sort_by {
            index::SortBy::ImportedAt => images::SortBy::ImportedAt,
            index::SortBy::FileSize => images::SortBy::FileSize,
            _ => return Ok(None),
        };
        let (offset, limit) = (query.offset, query.limit);
        let (sorted, descending) = (query.sort_by, query.descending);
        let plain = Query { sort_by: sorted, descending, offset, limit, ..Query::default() };
        let standing = self.shared.index.read().unwrap_or_else(PoisonError::into_inner).is_some();
        if standing || plain != *query {
            return Ok(None);
        }
        let list = ListQuery { media_type: None, sort_by, descending, limit, offset };
        let (images, total) = self.read(|c| images::list(c, &list))?;
        // What cannot be read the index leaves out, and the number of all pages, too.
        let whole = images.len() as u64 == limit.min(total.saturating_sub(offset));
        Ok(whole.then_some((images, total)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::edits;
    use crate::store::images::tests::picture;
    use crate::store::tests::scratch;

    #[test]
    fn many_changes_at_once_are_seen_too() {
        let (_directory, store) = scratch();
        let total = || store.find(&Query::default()).unwrap().total;
        assert_eq!(total(), 0);
        let ids: Vec<i64> = store
            .write(|c| {
                let all = 0..1500;
                all.map(|n| images::insert(c, &picture(&format!("{n:032}"), n))).collect()
            })
            .map_err(|error: Error| error)
            .unwrap();
        assert_eq!(total(), 1500);
        let generation = store.generation();
        let selected = store.write_beside_index(|c| edits::select_all(c, true)).unwrap();
        assert_eq!(selected, 1500);
        assert!(store.shared.index.read().unwrap().is_some(), "the index is still there");
        assert!(store.generation() > generation, "lists are written anew");
        store.write(|c| images::delete(c, &ids[..1200])).unwrap();
        assert_eq!(total(), 300);
    }

    #[test]
    fn index_has_what_was_written_while_it_was_built() {
        let (_directory, store) = scratch();
        let insert = |name: &str, number| {
            store.write(|c| images::insert(c, &picture(name, number))).unwrap()
        };
        let (kept, gone) = (insert("a", 1), insert("b", 2));
        let (mut built, _) = store.build_beside().unwrap();
        assert_eq!(built.len(), 2);
        let new = insert("c", 3);
        store.write(|c| images::delete(c, &[gone])).unwrap();
        // Plain lists do not wait for it.
        let (images, total) = store.search(&Query::default()).unwrap();
        assert_eq!((images.len(), total), (2, 2));
        assert_eq!(lock(&store.shared.missed).as_deref(), Some(&[new, gone][..]));
        built.remove(kept);
        drop(built);
        let mut ids = store.find(&Query::default()).unwrap().ids;
        ids.sort_unstable();
        assert_eq!(ids, [kept, new]);
        assert!(lock(&store.shared.missed).is_none());
    }

    #[test]
    fn lists_without_the_index_are_the_same() {
        let (_directory, store) = scratch();
        for number in 0..40 {
            let name = format!("{number:032}");
            store.write(|c| images::insert(c, &picture(&name, number))).unwrap();
        }
        for sort_by in [index::SortBy::ImportedAt, index::SortBy::FileSize] {
            for descending in [true, false] {
                let query = Query { sort_by, descending, offset: 7, limit: 9, ..Query::default() };
                let (without, total) = store.list_without_index(&query).unwrap().unwrap();
                let mut ids: Vec<i64> = without.into_iter().map(|image| image.id).collect();
                store.warm().unwrap();
                let found = store.find(&query).unwrap();
                assert_eq!((std::mem::take(&mut ids), total), (found.ids, found.total));
                *store.shared.index.write().unwrap() = None;
            }
        }
    }

    #[test]
    fn commits_are_seen_and_roll_backs_are_not() {
        let (_directory, store) = scratch();
        let names = || {
            let (images, total) = store.search(&Query::default()).unwrap();
            assert_eq!(images.len() as u64, total);
            images.into_iter().map(|image| image.name).collect::<Vec<_>>()
        };
        assert!(names().is_empty());
        let id = store.write(|c| images::insert(c, &picture("a", 1))).unwrap();
        store.write(|c| images::insert(c, &picture("b", 2))).unwrap();
        let failed: Result<(), Error> = store.write(|c| {
            images::insert(c, &picture("c", 3))?;
            Err(Error::Damaged { what: "on purpose".into() })
        });
        assert!(failed.is_err());
        assert_eq!(names(), ["b", "a"]);
        store.write(|c| images::delete(c, &[id])).unwrap();
        assert_eq!(names(), ["b"]);
    }
}
