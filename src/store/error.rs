//! The errors of the database and their classification.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot create the database directory {}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot open the database {}", path.display())]
    Open {
        path: PathBuf,
        source: rusqlite::Error,
    },
    /// A newer murald has written the database.
    #[error("the database has version {found}; this murald supports up to {known}")]
    Newer { found: i64, known: i64 },
    #[error("{}", query_text(_0))]
    Query(#[from] rusqlite::Error),
    /// A row contains an invalid value.
    #[error("the database is damaged: {what}")]
    Damaged { what: String },
    /// A backup cannot be written.
    #[error("cannot copy the database to {}", path.display())]
    Copy { path: PathBuf, source: io::Error },
    /// The file to open or restore is not an intact database of murald.
    #[error("{} is not an intact murald database: {what}", path.display())]
    NotIntact { path: PathBuf, what: String },
    /// There is no intact backup.
    #[error("no intact backup in {}", path.display())]
    NoBackup { path: PathBuf },
}

impl Error {
    /// The disk is full, or the file is locked or not writable: the user can fix it.
    pub fn is_storage(&self) -> bool {
        match self {
            Self::Directory { .. } | Self::Copy { .. } => true,
            Self::Open { source, .. } | Self::Query(source) => is_storage(source),
            _ => false,
        }
    }

    /// The file or a row is damaged: only a backup helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Open { source, .. } | Self::Query(source) => is_damage(source),
            _ => false,
        }
    }

    /// A uniqueness constraint was violated.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Query(source)
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation))
    }
}

/// Converts the result of a write whose only uniqueness constraint is that of a name.
pub(super) fn unless_taken<T, E: From<Error>>(
    written: rusqlite::Result<T>,
    taken: impl FnOnce() -> E,
) -> Result<T, E> {
    match written.map_err(Error::from) {
        Ok(written) => Ok(written),
        Err(error) if error.is_taken() => Err(taken()),
        Err(error) => Err(error.into()),
    }
}

fn is_storage(source: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DiskFull, FileLockingProtocolFailed, OutOfMemory,
        PermissionDenied, ReadOnly, SystemIoFailure,
    };
    matches!(
        source.sqlite_error_code(),
        Some(
            DiskFull
                | ReadOnly
                | SystemIoFailure
                | CannotOpen
                | PermissionDenied
                | DatabaseBusy
                | FileLockingProtocolFailed
                | OutOfMemory
        )
    )
}

fn is_damage(source: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
    };
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match source {
        FromSqlConversionFailure(..)
        | IntegralValueOutOfRange(..)
        | InvalidColumnType(..)
        | Utf8Error(..) => true,
        source => matches!(
            source.sqlite_error_code(),
            Some(DatabaseCorrupt | NotADatabase)
        ),
    }
}

/// The message for a failed statement. Clients do not see the source, so the message names the
/// reason.
fn query_text(source: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode::{
        DatabaseBusy, DiskFull, FileLockingProtocolFailed, OutOfMemory, PermissionDenied, ReadOnly,
    };
    if is_storage(source) {
        let why = match source.sqlite_error_code() {
            Some(DiskFull) => ": its disk is full",
            Some(DatabaseBusy | FileLockingProtocolFailed) => ": another program has locked it",
            Some(OutOfMemory) => ": out of memory",
            Some(ReadOnly | PermissionDenied) => ": it is not writable",
            _ => "",
        };
        return format!("the database cannot be written{why}");
    }
    if is_damage(source) {
        "the database is damaged"
    } else {
        "database query failed"
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use rusqlite::ffi;
    use rusqlite::types::{FromSqlError, Type};

    use super::*;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    fn unfit() -> rusqlite::Error {
        rusqlite::Error::FromSqlConversionFailure(1, Type::Text, FromSqlError::InvalidType.into())
    }

    fn kinds(error: &Error) -> Vec<&'static str> {
        let kinds = [
            (error.is_storage(), "storage"),
            (error.is_damage(), "damage"),
            (error.is_taken(), "taken"),
        ];
        kinds
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, kind)| kind)
            .collect()
    }

    #[test]
    fn error_of_a_statement_has_kind_and_message() {
        let unwritten = "the database cannot be written";
        let damaged = "the database is damaged";
        let refused = "database query failed";
        let storage: &[&str] = &["storage"];
        let cases: [(rusqlite::Error, &[&str], &str, &str); 14] = [
            (
                failure(ffi::SQLITE_FULL),
                storage,
                unwritten,
                ": its disk is full",
            ),
            (
                failure(ffi::SQLITE_READONLY),
                storage,
                unwritten,
                ": it is not writable",
            ),
            (
                failure(ffi::SQLITE_PERM),
                storage,
                unwritten,
                ": it is not writable",
            ),
            (
                failure(ffi::SQLITE_BUSY),
                storage,
                unwritten,
                ": another program has locked it",
            ),
            (
                failure(ffi::SQLITE_PROTOCOL),
                storage,
                unwritten,
                ": another program has locked it",
            ),
            (
                failure(ffi::SQLITE_NOMEM),
                storage,
                unwritten,
                ": out of memory",
            ),
            (failure(ffi::SQLITE_IOERR), storage, unwritten, ""),
            (failure(ffi::SQLITE_CANTOPEN), storage, unwritten, ""),
            (failure(ffi::SQLITE_CORRUPT), &["damage"], damaged, ""),
            (failure(ffi::SQLITE_NOTADB), &["damage"], damaged, ""),
            (unfit(), &["damage"], damaged, ""),
            (
                rusqlite::Error::IntegralValueOutOfRange(1, -1),
                &["damage"],
                damaged,
                "",
            ),
            (failure(ffi::SQLITE_CONSTRAINT), &["taken"], refused, ""),
            (failure(ffi::SQLITE_INTERRUPT), &[], refused, ""),
        ];
        for (fault, expected, words, why) in cases {
            let error = Error::from(fault);
            assert_eq!(kinds(&error), expected, "{error:?}");
            assert_eq!(error.to_string(), format!("{words}{why}"));
            assert!(error.source().is_some(), "{error:?}");
        }
    }

    #[test]
    fn error_of_the_file_has_kind_and_cause() {
        let path = || PathBuf::from("/x");
        let open = |code| Error::Open {
            path: path(),
            source: failure(code),
        };
        let io = || io::Error::other("on purpose");
        let what = || "on purpose".to_owned();
        let cases: [(Error, &[&str], bool); 9] = [
            (
                Error::Directory {
                    path: path(),
                    source: io(),
                },
                &["storage"],
                true,
            ),
            (
                Error::Copy {
                    path: path(),
                    source: io(),
                },
                &["storage"],
                true,
            ),
            (open(ffi::SQLITE_CANTOPEN), &["storage"], true),
            (open(ffi::SQLITE_NOTADB), &["damage"], true),
            (open(ffi::SQLITE_CONSTRAINT), &[], true),
            (Error::Newer { found: 9, known: 8 }, &[], false),
            (Error::Damaged { what: what() }, &["damage"], false),
            (
                Error::NotIntact {
                    path: path(),
                    what: what(),
                },
                &[],
                false,
            ),
            (Error::NoBackup { path: path() }, &[], false),
        ];
        for (error, expected, has_cause) in cases {
            assert_eq!(kinds(&error), expected, "{error:?}");
            assert_eq!(error.source().is_some(), has_cause, "{error:?}");
        }
    }
}
