//! Opens and configures connections to the database, for the writer and for readers.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::Error;

/// Page cache of the writer and of a reader, in KiB (SQLite reads a negative number as KiB). Both are
/// small: SQLite frees no page before the connection is closed, and as the kernel caches the file, a
/// larger one makes only a change of thousands of images faster.
const WRITER_CACHE: i32 = -1024;
const READER_CACHE: i32 = -64;
/// How long a connection waits for another process's lock, for example during a backup.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// SQLite instructions between two calls of a progress handler.
const INSTRUCTIONS: i32 = 10_000;
/// Number of statements that the writer and a reader keep prepared. A list needs six.
const WRITER_STATEMENTS: usize = 64;
const READER_STATEMENTS: usize = 16;

/// Fails if the path exists but is not a regular file: SQLite would wait forever on a pipe.
pub(super) fn expect_file(path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let what = "it is not a regular file".to_owned();
        Err(Error::NotIntact {
            path: path.to_owned(),
            what,
        })
    } else {
        Ok(())
    }
}

pub(super) fn open_reader(path: &Path) -> Result<Connection, Error> {
    expect_file(path)?;
    let failed = |source| Error::Open {
        path: path.to_owned(),
        source,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(path, flags).map_err(failed)?;
    configure_any(&reader, READER_CACHE, READER_STATEMENTS).map_err(failed)?;
    Ok(reader)
}

pub(super) fn configure(writer: &Connection) -> rusqlite::Result<()> {
    writer.pragma_update(None, "journal_mode", "WAL")?;
    writer.pragma_update(None, "synchronous", "FULL")?;
    writer.pragma_update(None, "foreign_keys", true)?;
    configure_any(writer, WRITER_CACHE, WRITER_STATEMENTS)
}

fn configure_any(connection: &Connection, cache: i32, statements: usize) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", cache)?;
    // Only ids and short keys are sorted, so memory is enough, and a full disk does not fail a
    // sort.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Without this guarantee, SQLite compiles some statements again for each value that is bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(statements);
    Ok(())
}

/// Makes SQLite abort the running statement once `is_over` returns true.
pub(super) fn give_up_when(
    reader: &mut Connection,
    is_over: impl FnMut() -> bool + Send + 'static,
) -> Result<(), Error> {
    Ok(reader.progress_handler(INSTRUCTIONS, Some(is_over))?)
}

/// Whether a statement was aborted by [`give_up_when`].
pub(super) fn is_given_up(error: &Error) -> bool {
    matches!(error, Error::Query(source)
        if source.sqlite_error_code() == Some(ErrorCode::OperationInterrupted))
}

/// Returns up to ten problems that SQLite finds, one line each.
pub(super) fn problems(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare("PRAGMA quick_check(10)")?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    let found: Vec<String> = found.collect::<Result<_, _>>()?;
    // One row may contain several problems below a heading.
    let lines = found.iter().flat_map(|row| row.lines());
    let problems = lines.filter(|line| *line != "ok" && !line.starts_with("***"));
    Ok(problems.map(str::to_owned).collect())
}
