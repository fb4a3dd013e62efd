//! The index in step with the database.
//!
//! The writer's connection notes which images each statement touches; when the transaction is
//! committed, and still under the writer's lock, the index learns what became of them. A query
//! locks the index for as long as it computes, never across a read of the database.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::Connection;
use rusqlite::hooks::Action;

use super::index::{Entry, Found, Index, Query};
use super::{Error, Store, images, lock};
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

/// None until somebody asks.
pub(super) type SharedIndex = RwLock<Option<Index>>;

/// Called under the writer's lock, after a commit.
pub(super) fn keep_in_step(
    index: &SharedIndex,
    touched: &Touched,
    writer: &Connection,
) -> Result<(), Error> {
    let ids = touched.take();
    if ids.is_empty() {
        return Ok(());
    }
    {
        let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
        match &*index {
            None => return Ok(()),
            Some(built) if ids.len() > MANY.max(built.len() / 16) => {
                *index = None;
                return Ok(());
            }
            Some(_) => {}
        }
    }
    let changed = ids
        .iter()
        .map(|&id| Ok((id, images::entry(writer, id)?)))
        .collect::<Result<Vec<_>, Error>>();
    let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
    let Some(built) = index.as_mut() else { return Ok(()) };
    match changed {
        Ok(changed) => {
            for (id, entry) in changed {
                match entry {
                    Some(entry) => built.put(entry),
                    None => built.remove(id),
                }
            }
            Ok(())
        }
        Err(error) => {
            // Better built anew at the next question than wrong.
            *index = None;
            Err(error)
        }
    }
}

impl Store {
    /// One page of the library: its rows, and the number of images on all pages.
    pub fn search(&self, query: &Query) -> Result<(Vec<Image>, u64), Error> {
        let found = self.find(query)?;
        let images = self.read(|connection| images::by_ids(connection, &found.ids))?;
        Ok((images, found.total))
    }

    /// The ids of one page.
    pub fn find(&self, query: &Query) -> Result<Found, Error> {
        self.with_index(|index| index.find(query))
    }

    /// All tags in use, sorted.
    pub fn tags(&self) -> Result<Vec<String>, Error> {
        self.with_index(Index::tags)
    }

    /// Builds the index if it is not there: 54 ms for 100,000 images, better before anybody asks.
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
        let shared = &self.shared;
        if let Some(index) = &*shared.index.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(ask(index));
        }
        // Nobody writes while it is built; whoever came first has built it for the others.
        let writer = lock(&shared.writer);
        let mut index = shared.index.write().unwrap_or_else(PoisonError::into_inner);
        let index = match &mut *index {
            Some(index) => index,
            empty => {
                let entries: Vec<Entry> = images::entries(&writer)?;
                empty.insert(Index::build(entries.into_iter()))
            }
        };
        Ok(ask(index))
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
