//! The store: one writer, a pool of readers, and state that all threads share.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::connection::{configure, expect_file, open_reader};
use super::query::LastList;
use super::{Error, backup, derived, images, migrations};
use crate::paths::make_directories;
use crate::sys::lock;
use crate::wire::Timestamp;

/// Size of SQLite's smallest page in bytes; a shorter file is treated as a lost database.
const SMALLEST: u64 = 512;
const DAY: i64 = 24 * 60 * 60 * 1_000_000;
/// Size of the pool of readers; if all are in use, a thread opens one more and closes it
/// afterwards.
const READERS_KEPT: usize = 8;

/// A handle on the database; clones share the same connections.
#[derive(Clone)]
pub struct Store {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// Commits do not wait for the disk (`synchronous=NORMAL`). Changed while `writer` is locked.
    is_lax: AtomicBool,
    generation: AtomicU64,
    pub(super) last_list: Mutex<Option<LastList>>,
    /// The last run left a log behind: it did not shut down cleanly.
    pub(super) had_unclean_shutdown: bool,
    /// The day of the last commit.
    written_on: AtomicI64,
    /// Wakes the thread `database`.
    pub(super) upkeep: (Sender<()>, Receiver<()>),
    pub(super) trouble: Mutex<Trouble>,
}

/// Warnings about the database, to be shown to the user.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    pub(super) damage: Option<String>,
    pub(super) backup: Option<String>,
}

impl Store {
    /// Opens the database file and migrates its tables. Creates the file and its directory if they
    /// are missing; backs up the database before a migration.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, migrations::STEPS)
    }

    fn open_with(path: &Path, steps: &[&str]) -> Result<Self, Error> {
        let failed = |source| Error::Open {
            path: path.to_owned(),
            source,
        };
        if let Some(directory) = path.parent() {
            make_directories(directory).map_err(|source| Error::Directory {
                path: directory.to_owned(),
                source,
            })?;
        }
        expect_file(path)?;
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        let is_lost = length < SMALLEST && !backup::list(path).is_empty();
        let had_unclean_shutdown = backup::log_of(path)
            .metadata()
            .is_ok_and(|log| log.len() > 0);
        let mut writer = Connection::open(path).map_err(failed)?;
        configure(&writer).map_err(failed)?;
        let is_old = (1..steps.len() as i64).contains(&migrations::version(&writer)?);
        let copy = is_old.then(|| backup::add(&writer, path)).transpose()?;
        let brought = migrations::run(&mut writer, steps);
        match &copy {
            // A daemon that fails to start is restarted again and again: its backups would displace
            // the good ones.
            Some(copy) if brought.is_err() => drop(std::fs::remove_file(copy)),
            Some(copy) => backup::remove_old(path, copy),
            None => {}
        }
        brought?;
        derive(&mut writer)?;
        let store = Self {
            shared: Arc::new(Shared {
                path: path.to_owned(),
                writer: Mutex::new(writer),
                readers: Mutex::default(),
                is_lax: AtomicBool::new(false),
                generation: AtomicU64::new(1),
                last_list: Mutex::default(),
                had_unclean_shutdown,
                written_on: AtomicI64::new(0),
                upkeep: bounded(1),
                trouble: Mutex::default(),
            }),
        };
        if is_lost {
            store.note_damage("its file was empty, so a new one was created");
        }
        Ok(store)
    }

    /// Runs `body` with a read-only connection; does not wait for the writer.
    pub fn read<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let reader = match self.reader() {
            Ok(reader) => reader,
            // If no reader can be opened, read with the writer.
            Err(error) => match self.shared.writer.try_lock() {
                Ok(writer) => return body(&writer),
                Err(_) => return Err(error.into()),
            },
        };
        let result = body(&reader);
        let mut kept = lock(&self.shared.readers);
        if kept.len() < READERS_KEPT {
            kept.push(reader);
        }
        result
    }

    /// Reads after the current write transaction has ended.
    pub(crate) fn read_after_writer<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        body(&lock(&self.shared.writer))
    }

    /// Closes all readers not in use.
    pub(crate) fn close_idle_readers(&self) {
        lock(&self.shared.readers).clear();
    }

    /// Runs `body` in one transaction, which is rolled back if `body` fails.
    pub fn write<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut writer = lock(&self.shared.writer);
        // The last `note` may have failed to restore `synchronous=FULL`.
        if self.shared.is_lax.load(Ordering::Relaxed) {
            self.flush_commits(&writer, true)?;
        }
        let value = self.transact(&mut writer, body)?;
        // Counted while the writer is locked: a thread that sees the new number also sees the new
        // rows.
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(value)
    }

    /// Like `write`, but the transaction may be lost in a power loss (not in a kill), as the commit
    /// does not wait for the disk. For notes that matter only after a kill.
    pub fn note<T, E: From<Error>>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut writer = lock(&self.shared.writer);
        self.flush_commits(&writer, false)?;
        let noted = self.transact(&mut writer, body);
        // The next transaction waits for the disk again. If this fails, `write` retries it; the
        // note itself is committed.
        self.flush_commits(&writer, true).ok();
        noted
    }

    /// A number that grows with every [`Store::write`]: equal numbers mean equal rows.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// The images whose files are missing, which are skipped.
    pub(crate) fn missing(&self) -> HashSet<i64> {
        self.read(images::missing)
            .inspect_err(|error| log::error!("cannot find the missing images: {error}"))
            .unwrap_or_default()
    }

    /// Moves the write-ahead log into the database file; called when the daemon shuts down.
    pub fn checkpoint(&self) -> Result<(), Error> {
        lock(&self.shared.readers).clear();
        let writer = lock(&self.shared.writer);
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn reader(&self) -> Result<Connection, Error> {
        if let Some(reader) = lock(&self.shared.readers).pop() {
            return Ok(reader);
        }
        open_reader(&self.shared.path)
    }
}

/// Fills the columns that a migration has left empty, in one transaction.
fn derive(writer: &mut Connection) -> Result<(), Error> {
    if derived::is_any_missing(writer)? {
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let images = derived::renew_missing(&transaction)?;
        transaction.commit()?;
        log::info!("prepared the list data of {images} images");
    }
    Ok(())
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
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
            Self::void(writer);
            return Err(Error::from(error).into());
        }
        self.wake_on_new_day();
        Ok(value)
    }

    /// Wakes the thread `database` if this is the first commit of the day (UTC) or of this run.
    fn wake_on_new_day(&self) {
        let today = Timestamp::now().as_micros().div_euclid(DAY);
        if self.shared.written_on.swap(today, Ordering::Relaxed) != today {
            // A full channel means that the thread will wake anyway.
            self.shared.upkeep.0.try_send(()).ok();
        }
    }

    /// Sets whether the writer's commits wait for the disk.
    fn flush_commits(&self, writer: &Connection, flush: bool) -> Result<(), Error> {
        self.shared.is_lax.store(true, Ordering::Relaxed);
        writer.pragma_update(None, "synchronous", if flush { "FULL" } else { "NORMAL" })?;
        self.shared.is_lax.store(!flush, Ordering::Relaxed);
        Ok(())
    }

    /// Makes sure that a failed commit stays undone. Its data may be complete in the log, and after
    /// a kill SQLite would apply it although the caller got an error; so another transaction, which
    /// changes nothing, overwrites it.
    fn void(writer: &Connection) {
        let version = writer.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let voided = version.and_then(|now| writer.pragma_update(None, "user_version", now));
        if let Err(error) = voided {
            log::error!("the failed change may reappear after the next start: {error}");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
