//! The store: one writer, readers that are kept open, and what all threads know of them.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::connection::{BUSY, configure, expect_file, open_reader};
use super::palettes::{HitCache, Palettes};
use super::replaced::OpenFile;
use super::{Error, backup, derived, migrations};
use crate::paths::make_directories;
use crate::sys::{FOR_CLIENT, has_descriptors, lock, read, unpoisoned, write};
use crate::wire::{DatabaseHealth, Timestamp};

/// How long a thread waits for another's reader where descriptors are few.
const SCARCE: Duration = Duration::from_millis(100);
/// Bytes of SQLite's smallest page: a file with less is taken for one that is to be begun.
const SMALLEST: u64 = 512;
const DAY: i64 = 24 * 60 * 60 * 1_000_000;
/// Readers kept open; a thread that finds none opens one more and drops it afterwards.
const READERS_KEPT: usize = 8;

/// The database; clones are the same one.
#[derive(Clone)]
pub struct Store {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) path: PathBuf,
    file: OpenFile,
    pub(super) writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    reader_kept: Condvar,
    /// Threads that wait for one, counted with the readers locked.
    readers_awaited: AtomicUsize,
    /// The writer's commits do not wait for the disk. Changed under its lock.
    is_lax: AtomicBool,
    generation: AtomicU64,
    /// Files that images had lost and have again.
    given_back: AtomicU64,
    /// Rows whose files are missing are kept.
    keeps_rows: AtomicBool,
    /// Images whose files are not there just now.
    missing: RwLock<HashSet<i64>>,
    pub(super) hits: Mutex<HitCache>,
    pub(super) palettes: Mutex<Arc<Palettes>>,
    /// Images that were found to be unreadable: no list has them.
    pub(super) unreadable: Mutex<BTreeSet<i64>>,
    /// The last run left a log behind: it did not end in order.
    pub(super) was_cut_off: bool,
    /// The day of the last commit.
    written_on: AtomicI64,
    /// Wakes the thread `database`.
    pub(super) upkeep: (Sender<()>, Receiver<()>),
    pub(super) trouble: Mutex<Trouble>,
}

/// Warnings about the database, for people.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    pub(super) damage: Option<String>,
    pub(super) backup: Option<String>,
}

impl Store {
    /// Opens the database file, makes it and its directory where they are missing, and brings its
    /// tables up to date; a copy of them as they were is kept.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, migrations::STEPS)
    }

    fn open_with(path: &Path, steps: &[&str]) -> Result<Self, Error> {
        let failed = |source| Error::Open { path: path.to_owned(), source };
        if let Some(directory) = path.parent() {
            make_directories(directory)
                .map_err(|source| Error::Directory { path: directory.to_owned(), source })?;
        }
        expect_file(path)?;
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        let is_lost = length < SMALLEST && !backup::list(path).is_empty();
        let was_cut_off = backup::log_of(path).metadata().is_ok_and(|log| log.len() > 0);
        let mut writer = Connection::open(path).map_err(failed)?;
        configure(&writer).map_err(failed)?;
        let is_old = (1..steps.len() as i64).contains(&migrations::version(&writer)?);
        let copy = is_old.then(|| backup::add(&writer, path)).transpose()?;
        let brought = migrations::run(&mut writer, steps);
        match &copy {
            // A start that fails is tried again and again: its copies would drive out the good ones.
            Some(copy) if brought.is_err() => drop(std::fs::remove_file(copy)),
            Some(copy) => backup::remove_old(path, copy),
            None => {}
        }
        brought?;
        derive(&mut writer)?;
        let store = Self {
            shared: Arc::new(Shared {
                path: path.to_owned(),
                file: OpenFile::of(path),
                writer: Mutex::new(writer),
                readers: Mutex::default(),
                reader_kept: Condvar::new(),
                readers_awaited: AtomicUsize::new(0),
                is_lax: AtomicBool::new(false),
                generation: AtomicU64::new(1),
                given_back: AtomicU64::new(0),
                keeps_rows: AtomicBool::new(false),
                missing: RwLock::default(),
                hits: Mutex::default(),
                palettes: Mutex::default(),
                unreadable: Mutex::default(),
                was_cut_off,
                written_on: AtomicI64::new(0),
                upkeep: bounded(1),
                trouble: Mutex::default(),
            }),
        };
        if is_lost {
            store.note_damage("its file was empty; creating a new one");
        }
        Ok(store)
    }

    /// Reads, beside any writer, what was committed when the first statement began.
    pub fn read<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let reader = match self.reader() {
            Ok(reader) => reader,
            // Descriptors are short, or the path leads elsewhere: the writer has its own.
            Err(error) => match self.shared.writer.try_lock() {
                Ok(writer) => return body(&writer),
                Err(_) => self.await_reader(BUSY).ok_or(error)?,
            },
        };
        let result = body(&reader);
        let mut kept = lock(&self.shared.readers);
        if kept.len() < READERS_KEPT {
            kept.push(reader);
            // The kernel is asked only where somebody waits.
            if self.shared.readers_awaited.load(Ordering::Relaxed) > 0 {
                self.shared.reader_kept.notify_one();
            }
        }
        result
    }

    /// Reads what is so once the transaction in hand has ended.
    pub(crate) fn read_after_writer<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        body(&lock(&self.shared.writer))
    }

    /// Closes the readers that nobody reads by; for whoever lacks descriptors.
    pub(crate) fn close_idle_readers(&self) {
        lock(&self.shared.readers).clear();
    }

    /// Writes in one transaction: all of it or, where `body` fails, nothing.
    pub fn write<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut writer = lock(&self.shared.writer);
        // A note could not set it back.
        if self.shared.is_lax.load(Ordering::Relaxed) {
            self.flush_commits(&writer, true)?;
        }
        let value = self.transact(&mut writer, body)?;
        // Counted inside the lock: whoever sees the new number reads the new rows.
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(value)
    }

    /// Writes in one transaction that survives a kill, but perhaps not a power loss: for notes that
    /// only a kill leaves behind. Spares the wait for the disk.
    pub fn note<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut writer = lock(&self.shared.writer);
        self.flush_commits(&writer, false)?;
        let noted = self.transact(&mut writer, body);
        // Whatever became of the note, the next transaction is a full one again. Where that fails, it
        // sees to it itself: what is noted is noted.
        self.flush_commits(&writer, true).ok();
        noted
    }

    /// Grows with every committed transaction: equal numbers mean equal rows.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Counts a file that comes back to where its row says that it is, in the transaction in which it
    /// does: the row does not tell.
    pub(crate) fn count_given_back(&self, _: &Transaction<'_>) {
        self.shared.given_back.fetch_add(1, Ordering::Release);
    }

    /// Equal numbers, of which the second is read in a transaction, mean that no file that was missing
    /// at the first is back.
    pub(crate) fn given_back(&self) -> u64 {
        self.shared.given_back.load(Ordering::Acquire)
    }

    /// Says whether rows whose files are missing are kept, whoever finds them missing.
    pub fn keep_rows(&self, keep: bool) {
        self.shared.keeps_rows.store(keep, Ordering::Release);
    }

    pub fn keeps_rows(&self) -> bool {
        self.shared.keeps_rows.load(Ordering::Acquire)
    }

    /// Says which images are passed over: the disk of their files is away, or they are looked for.
    pub(crate) fn set_missing(&self, images: HashSet<i64>) {
        *write(&self.shared.missing) = images;
    }

    /// Whether an image is passed over just now.
    pub(crate) fn is_missing(&self, image: i64) -> bool {
        read(&self.shared.missing).contains(&image)
    }

    /// Moves the write-ahead log into the database file; for the end of the daemon.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.save_replaced();
        lock(&self.shared.readers).clear();
        let writer = lock(&self.shared.writer);
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    /// The next reader that comes back.
    fn await_reader(&self, patience: Duration) -> Option<Connection> {
        let kept = lock(&self.shared.readers);
        let Shared { reader_kept, readers_awaited, .. } = &*self.shared;
        readers_awaited.fetch_add(1, Ordering::Relaxed);
        let kept = reader_kept.wait_timeout_while(kept, patience, |kept| kept.is_empty());
        readers_awaited.fetch_sub(1, Ordering::Relaxed);
        unpoisoned(kept).0.pop()
    }

    fn reader(&self) -> Result<Connection, Error> {
        if let Some(reader) = lock(&self.shared.readers).pop() {
            return Ok(reader);
        }
        // SQLite keeps the file of a reader that is closed open for the next: what is opened is gone
        // for good. Not waited for long: who reads within a read may hold the only one.
        if !has_descriptors(FOR_CLIENT)
            && let Some(reader) = self.await_reader(SCARCE)
        {
            return Ok(reader);
        }
        if !self.is_in_place() {
            return Err(Error::Replaced { path: self.shared.path.clone() });
        }
        open_reader(&self.shared.path)
    }
}

/// Writes the columns that a migration has left open, all of them or none.
fn derive(writer: &mut Connection) -> Result<(), Error> {
    if derived::is_any_missing(writer)? {
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let images = derived::renew_missing(&transaction)?;
        transaction.commit()?;
        log::info!("{images} images are prepared for lists");
    }
    Ok(())
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl Store {
    fn transact<T, E: From<Error>>(
        &self,
        writer: &mut Connection,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = writer
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(Error::from)?;
        let value = body(&transaction)?;
        if let Err(error) = transaction.commit() {
            self.void(writer);
            return Err(Error::from(error).into());
        }
        self.wake_on_new_day();
        self.shared.file.is_in_place(true, || self.wake_upkeep());
        self.reread_unreadable(writer);
        Ok(value)
    }

    /// Whether the database is where it was opened. If not, what is committed is copied.
    pub(super) fn is_in_place(&self) -> bool {
        self.shared.file.is_in_place(false, || self.wake_upkeep())
    }

    /// Copies a database that is no longer in its place, unless that is done.
    pub(super) fn save_replaced(&self) {
        self.shared.file.save(&self.shared.writer);
    }

    /// Whether the database is where it was opened, for clients.
    pub(crate) fn health(&self) -> DatabaseHealth {
        self.shared.file.health()
    }

    /// Wakes the thread `database` if this is the first commit of a day (UTC), or of this run.
    fn wake_on_new_day(&self) {
        let today = Timestamp::now().as_micros().div_euclid(DAY);
        if self.shared.written_on.swap(today, Ordering::Relaxed) != today {
            self.wake_upkeep();
        }
    }

    fn wake_upkeep(&self) {
        // If one wake-up waits already, the thread will look.
        self.shared.upkeep.0.try_send(()).ok();
    }

    /// Whether commits wait for the disk from here on.
    fn flush_commits(&self, writer: &Connection, flush: bool) -> Result<(), Error> {
        self.shared.is_lax.store(true, Ordering::Relaxed);
        writer.pragma_update(None, "synchronous", if flush { "FULL" } else { "NORMAL" })?;
        self.shared.is_lax.store(!flush, Ordering::Relaxed);
        Ok(())
    }

    /// After a commit that failed. What it wrote is in the log, whole perhaps, and only the disk said
    /// no: after a kill it would be taken for committed, though somebody was told that it is not. The
    /// next transaction goes where it lies; so there is one at once, which changes nothing.
    fn void(&self, writer: &Connection) {
        let version = writer.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let voided = version.and_then(|now| writer.pragma_update(None, "user_version", now));
        if let Err(error) = voided {
            log::error!("what could not be committed may be there after the next start: {error}");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
