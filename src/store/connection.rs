//! Connections to the database: one that writes, and those that only read.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::Error;

/// Page cache of the writer and of a reader, in KiB (negative: SQLite counts pages otherwise). The
/// kernel has what a reader has not: there are as many caches as readers.
const WRITER_CACHE: i32 = -8192;
const READER_CACHE: i32 = -256;
/// How long a connection waits for another process's lock, a backup's for example.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// Statements that a connection keeps prepared.
const STATEMENTS: usize = 64;

/// SQLite would wait for ever for somebody to write into a pipe.
pub(super) fn expect_file(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        true => {
            let what = "it is no regular file".to_owned();
            Err(Error::Unsound { path: path.to_owned(), what })
        }
        false => Ok(()),
    }
}

pub(super) fn open_reader(path: &Path) -> Result<Connection, Error> {
    expect_file(path)?;
    let failed = |source| Error::Open { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(path, flags).map_err(failed)?;
    configure_any(&reader, READER_CACHE).map_err(failed)?;
    Ok(reader)
}

pub(super) fn configure(writer: &Connection) -> rusqlite::Result<()> {
    writer.pragma_update(None, "journal_mode", "WAL")?;
    writer.pragma_update(None, "synchronous", "FULL")?;
    writer.pragma_update(None, "foreign_keys", true)?;
    configure_any(writer, WRITER_CACHE)
}

fn configure_any(connection: &Connection, cache: i32) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", cache)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}
