//! The index in step with the database.
//!
//! The writer's connection notes which images each statement touches; when the transaction is
//! committed, and still under the writer's lock, the index learns what became of them. A query
//! locks the index for as long as it computes, never across a read of the database. The index is
//! built from a reader's snapshot with no lock held that others need: what is committed meanwhile is
//! noted, and learnt at the end.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};

use rusqlite::Connection;
use rusqlite::hooks::Action;

use super::index::{Entry, Index};
use super::{Error, Shared, Store, images, lock};
use crate::memory;
use crate::sys::{read, write};

/// What the transaction in hand has touched of that which queries look at.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched(Arc<Mutex<Rows>>);

#[derive(Debug, Default)]
struct Rows {
    images: Vec<i64>,
    /// A folder within another is found with it.
    folders: bool,
}

impl Touched {
    /// Notes every change of the table from now on.
    pub(super) fn watch(&self, writer: &mut Connection) -> rusqlite::Result<()> {
        let touched = self.clone();
        writer.update_hook(Some(move |_: Action, _: &str, table: &str, id: i64| match table {
            "image" => lock(&touched.0).images.push(id),
            "folder" => lock(&touched.0).folders = true,
            _ => {}
        }))
    }

    pub(super) fn clear(&self) {
        *lock(&self.0) = Rows::default();
    }

    fn take(&self) -> Rows {
        let mut rows = std::mem::take(&mut *lock(&self.0));
        rows.images.sort_unstable();
        rows.images.dedup();
        rows
    }
}

/// From so many changes at once the index is better built anew, beside everybody.
const MANY: usize = 20_000;

/// None until it was built.
pub(super) type SharedIndex = RwLock<Option<Index>>;

/// The images that were touched while the index is being built; none while it is not.
pub(super) type Missed = Mutex<Option<Vec<i64>>>;

/// The images that were found to be unreadable: no list has them, until they are written anew.
pub(super) type Unreadable = BTreeSet<i64>;

/// Called under the writer's lock, after a commit. Does not fail: what is committed is done, and whoever
/// was told that it is not would undo the rest, a file that has its row.
pub(super) fn keep_in_step(shared: &Shared, writer: &Connection) {
    let Rows { images, folders } = shared.touched.take();
    if images.is_empty() && !folders {
        return;
    }
    if let Err(error) = learn(shared, writer, images) {
        log::warn!("the index is built anew: {error}");
    }
    // Only now: whoever sees the new number is to find what is new.
    shared.findings.fetch_add(1, Ordering::Release);
}

fn learn(shared: &Shared, writer: &Connection, ids: Vec<i64>) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    if read(&shared.index).is_none() {
        if let Some(missed) = &mut *lock(&shared.missed) {
            missed.extend(ids);
        }
        return Ok(());
    }
    let changes = match ids.len() {
        ..MANY => Changes::read(writer, &ids, &mut lock(&shared.unreadable)).map(Some),
        _ => Ok(None),
    };
    let mut index = write(&shared.index);
    if let (Some(built), Ok(Some(changes))) = (index.as_mut(), &changes) {
        changes.apply(built);
        if !built.is_worn() {
            return Ok(());
        }
    }
    // Better built anew than wrong.
    *index = None;
    shared.wake_upkeep();
    changes.map(drop)
}

/// What became of images.
struct Changes {
    entries: Vec<Entry>,
    /// Without a row, or with one that cannot be read.
    gone: Vec<i64>,
}

impl Changes {
    fn read(writer: &Connection, ids: &[i64], unreadable: &mut Unreadable) -> Result<Self, Error> {
        let mut changes = Self { entries: Vec::with_capacity(ids.len()), gone: Vec::new() };
        for &id in ids {
            match images::entry(writer, id) {
                Ok(Some(entry)) => changes.entries.push(entry),
                Ok(None) => changes.gone.push(id),
                Err(error) if error.is_of_a_row() => {
                    note_unreadable(unreadable, id, &error);
                    changes.gone.push(id);
                    continue;
                }
                Err(error) => return Err(error),
            }
            unreadable.remove(&id);
        }
        Ok(changes)
    }

    fn apply(&self, index: &mut Index) {
        self.gone.iter().for_each(|&id| index.remove(id));
        index.put(&self.entries);
    }
}

pub(super) fn note_unreadable(unreadable: &mut Unreadable, id: i64, error: &Error) {
    if unreadable.insert(id) {
        log::error!("image {id} cannot be read and is left out of lists: {error}");
    }
}

impl Store {
    /// Builds the index if it is not there: for the thread that does so before anybody asks.
    pub(super) fn warm(&self) -> Result<(), Error> {
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

    /// Grows whenever a query may find something else: read before one, an equal number afterwards
    /// means that it would find the same.
    pub(crate) fn findings(&self) -> u64 {
        self.shared.findings.load(Ordering::Acquire)
    }

    pub(super) fn with_index<T>(&self, ask: impl FnOnce(&Index) -> T) -> Result<T, Error> {
        loop {
            let index = read(&self.shared.index);
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
        if read(&shared.index).is_some() {
            return Ok(());
        }
        let built = self.build_beside().inspect_err(|_| *lock(&shared.missed) = None)?;
        let (mut built, unreadable) = built;
        let writer = lock(&shared.writer);
        let mut missed = lock(&shared.missed).take().unwrap_or_default();
        missed.sort_unstable();
        missed.dedup();
        *lock(&shared.unreadable) = unreadable;
        Changes::read(&writer, &missed, &mut lock(&shared.unreadable))?.apply(&mut built);
        *write(&shared.index) = Some(built);
        // What sorting took.
        memory::trim();
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
        let (mut index, mut unreadable) = (Index::default(), Unreadable::new());
        images::entries(&snapshot, |id, entry| match entry {
            Ok(entry) => index.append(&entry),
            Err(error) => note_unreadable(&mut unreadable, id, &error),
        })?;
        index.finish();
        Ok((index, unreadable))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::store::images::tests::picture;
    use crate::store::index::Query;
    use crate::store::purge;
    use crate::store::tests::scratch;
    use crate::store::{edits, folders};
    use crate::wire::ImageRow;

    /// What a list shows.
    pub(in crate::store) fn names(store: &Store) -> Vec<String> {
        let mut json = b"[".to_vec();
        let write = |row: ImageRow<'_>, json: &mut Vec<u8>| serde_json::to_writer(json, row.name);
        let total = store.write_page(&Query::default(), &mut json, write).unwrap();
        json.push(b']');
        let names: Vec<String> = serde_json::from_slice(&json).unwrap();
        assert_eq!(names.len() as u64, total);
        names
    }

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
        let stands = || store.shared.index.read().unwrap().is_some();
        store.write(|c| purge::delete(c, &ids[..300], false)).unwrap();
        assert!(stands(), "it has learnt what has changed");
        store.write(|c| purge::delete(c, &ids[300..1200], false)).unwrap();
        assert!(!stands(), "so much is dead that it is built anew");
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
        store.write(|c| purge::delete(c, &[gone], false)).unwrap();
        // Plain lists do not wait for it.
        assert_eq!(names(&store), ["c", "a"]);
        assert!(store.shared.index.read().unwrap().is_none());
        assert_eq!(lock(&store.shared.missed).as_deref(), Some(&[new, gone][..]));
        built.remove(kept);
        drop(built);
        let mut ids = store.find(&Query::default()).unwrap().ids;
        ids.sort_unstable();
        assert_eq!(ids, [kept, new]);
        assert!(lock(&store.shared.missed).is_none());
    }

    #[test]
    fn commits_are_seen_and_roll_backs_are_not() {
        let (_directory, store) = scratch();
        let names = || names(&store);
        assert!(names().is_empty());
        let id = store.write(|c| images::insert(c, &picture("a", 1))).unwrap();
        store.write(|c| images::insert(c, &picture("b", 2))).unwrap();
        let failed: Result<(), Error> = store.write(|c| {
            images::insert(c, &picture("c", 3))?;
            Err(Error::Damaged { what: "on purpose".into() })
        });
        assert!(failed.is_err());
        assert_eq!(names(), ["b", "a"]);
        store.write(|c| purge::delete(c, &[id], false)).unwrap();
        assert_eq!(names(), ["b"]);
    }

    #[test]
    fn what_queries_find_is_counted_and_nothing_else() {
        let (_directory, store) = scratch();
        let mut before = store.findings();
        let mut grows = |what: &str, does: bool| {
            let after = store.findings();
            assert_eq!(after > before, does, "{what}");
            before = after;
        };
        let image = store.write(|c| images::insert(c, &picture("a", 1))).unwrap();
        grows("an image", true);
        let folder = store.write(|c| folders::insert(c, "above", None)).unwrap();
        let inner = store.write(|c| folders::insert(c, "within", None)).unwrap();
        grows("folders", true);
        let into = folders::FolderChange { parent: Some(Some(folder)), ..Default::default() };
        store.write(|c| folders::update(c, inner, &into)).unwrap();
        grows("a folder that moves into another", true);
        store.write_beside_index(|c| edits::select_all(c, true)).unwrap();
        store.write(|c| crate::store::history_cursor::put(c, "A", image)).unwrap();
        grows("what no query looks at", false);
        let failed: Result<(), Error> = store.write(|c| {
            images::insert(c, &picture("b", 2))?;
            Err(Error::Damaged { what: "on purpose".into() })
        });
        assert!(failed.is_err());
        grows("what was rolled back", false);
        store.write(|c| purge::delete(c, &[image], false)).unwrap();
        grows("an image that goes", true);
    }
}
