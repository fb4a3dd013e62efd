//! What can go wrong with the database.

use std::path::PathBuf;
use std::{fmt, io};

#[derive(Debug)]
pub enum Error {
    Directory {
        path: PathBuf,
        source: io::Error,
    },
    Open {
        path: PathBuf,
        source: rusqlite::Error,
    },
    /// Written by a newer murald.
    Newer {
        found: i64,
        known: i64,
    },
    Query(rusqlite::Error),
    /// A row holds what was never written there.
    Damaged {
        what: String,
    },
    /// A copy of the database cannot be written.
    Copy {
        path: PathBuf,
        source: io::Error,
    },
    /// What should be restored is no sound database of ours.
    Unsound {
        path: PathBuf,
        what: String,
    },
    /// Its path leads to another file, or to none.
    Replaced {
        path: PathBuf,
    },
    /// No backup is sound, or there is none.
    NoBackup {
        path: PathBuf,
    },
}

impl Error {
    /// The disk is full, the file cannot be written or is held by somebody: the user can mend it.
    pub fn is_storage(&self) -> bool {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DiskFull, FileLockingProtocolFailed, OutOfMemory,
            PermissionDenied, ReadOnly, SystemIoFailure,
        };
        match self {
            Self::Directory { .. } | Self::Copy { .. } | Self::Replaced { .. } => true,
            Self::Open { source, .. } | Self::Query(source) => matches!(
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
            ),
            _ => false,
        }
    }

    /// One row cannot be read; others can.
    pub(super) fn is_of_a_row(&self) -> bool {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };
        match self {
            Self::Damaged { .. } => true,
            Self::Query(source) => matches!(
                source,
                FromSqlConversionFailure(..)
                    | IntegralValueOutOfRange(..)
                    | InvalidColumnType(..)
                    | Utf8Error(..)
            ),
            _ => false,
        }
    }

    /// The file is not as it was written: only a backup helps.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            Self::Open { source, .. } | Self::Query(source) => {
                let code = source.sqlite_error_code();
                matches!(code, Some(DatabaseCorrupt | NotADatabase)) || self.is_of_a_row()
            }
            _ => self.is_of_a_row(),
        }
    }

    /// A uniqueness rule of the tables was hit.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Query(source)
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path, .. } => {
                write!(f, "cannot make the database's directory {}", path.display())
            }
            Self::Open { path, .. } => write!(f, "cannot open the database {}", path.display()),
            Self::Newer { found, known } => {
                write!(f, "the database is of version {found}, this murald knows up to {known}")
            }
            Self::Query(source) if self.is_storage() => {
                use rusqlite::ErrorCode::{
                    DatabaseBusy, DiskFull, FileLockingProtocolFailed, OutOfMemory,
                    PermissionDenied, ReadOnly,
                };
                // For clients, which do not see the source.
                let why = match source.sqlite_error_code() {
                    Some(DiskFull) => ": the disk is full",
                    Some(DatabaseBusy | FileLockingProtocolFailed) => ": another program holds it",
                    Some(OutOfMemory) => ": there is no memory left",
                    Some(ReadOnly | PermissionDenied) => ": it may not be written to",
                    _ => "",
                };
                write!(f, "the database cannot be written{why}")
            }
            Self::Query(_) if self.is_damage() => write!(f, "the database is damaged"),
            Self::Query(_) => write!(f, "the database refused a statement"),
            Self::Damaged { what } => write!(f, "the database is damaged: {what}"),
            Self::Copy { path, .. } => {
                write!(f, "the database cannot be copied to {}", path.display())
            }
            Self::Unsound { path, what } => {
                write!(f, "{} is no sound database of murald: {what}", path.display())
            }
            Self::Replaced { path } => {
                write!(f, "the database {} was deleted or replaced", path.display())
            }
            Self::NoBackup { path } => write!(f, "there is no sound backup in {}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Directory { source, .. } | Self::Copy { source, .. } => Some(source),
            Self::Open { source, .. } | Self::Query(source) => Some(source),
            Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::Unsound { .. }
            | Self::Replaced { .. }
            | Self::NoBackup { .. } => None,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::Query(source)
    }
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
            (error.is_of_a_row(), "row"),
            (error.is_damage(), "damage"),
            (error.is_taken(), "taken"),
        ];
        kinds.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect()
    }

    #[test]
    fn fault_of_a_statement_has_its_kind_and_words() {
        let unwritten = "the database cannot be written";
        let damaged = "the database is damaged";
        let refused = "the database refused a statement";
        let storage: &[&str] = &["storage"];
        let cases: [(rusqlite::Error, &[&str], &str, &str); 14] = [
            (failure(ffi::SQLITE_FULL), storage, unwritten, ": the disk is full"),
            (failure(ffi::SQLITE_READONLY), storage, unwritten, ": it may not be written to"),
            (failure(ffi::SQLITE_PERM), storage, unwritten, ": it may not be written to"),
            (failure(ffi::SQLITE_BUSY), storage, unwritten, ": another program holds it"),
            (failure(ffi::SQLITE_PROTOCOL), storage, unwritten, ": another program holds it"),
            (failure(ffi::SQLITE_NOMEM), storage, unwritten, ": there is no memory left"),
            (failure(ffi::SQLITE_IOERR), storage, unwritten, ""),
            (failure(ffi::SQLITE_CANTOPEN), storage, unwritten, ""),
            (failure(ffi::SQLITE_CORRUPT), &["damage"], damaged, ""),
            (failure(ffi::SQLITE_NOTADB), &["damage"], damaged, ""),
            (unfit(), &["row", "damage"], damaged, ""),
            (rusqlite::Error::IntegralValueOutOfRange(1, -1), &["row", "damage"], damaged, ""),
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
    fn fault_of_the_file_has_its_kind() {
        let path = || PathBuf::from("/x");
        let open = |code| Error::Open { path: path(), source: failure(code) };
        let io = || io::Error::other("on purpose");
        let what = || "on purpose".to_owned();
        let cases: [(Error, &[&str], bool); 9] = [
            (Error::Directory { path: path(), source: io() }, &["storage"], true),
            (Error::Copy { path: path(), source: io() }, &["storage"], true),
            (open(ffi::SQLITE_CANTOPEN), &["storage"], true),
            (open(ffi::SQLITE_NOTADB), &["damage"], true),
            (open(ffi::SQLITE_CONSTRAINT), &[], true),
            (Error::Newer { found: 9, known: 8 }, &[], false),
            (Error::Damaged { what: what() }, &["row", "damage"], false),
            (Error::Unsound { path: path(), what: what() }, &[], false),
            (Error::NoBackup { path: path() }, &[], false),
        ];
        for (error, expected, has_cause) in cases {
            assert_eq!(kinds(&error), expected, "{error:?}");
            assert_eq!(error.source().is_some(), has_cause, "{error:?}");
        }
    }
}
