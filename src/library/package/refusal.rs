//! Why a directory is no package, for people.

use std::io;
use std::path::Path;

use crate::library::Error;

/// Why a directory is not taken as a package: "it ...".
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) what: String,
    of_no_kind: bool,
}

impl Refusal {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), of_no_kind: false }
    }

    /// A scene or an application: nothing here can show it.
    pub(super) fn of_no_kind(what: String) -> Self {
        Self { what, of_no_kind: true }
    }

    /// Its directory cannot be opened.
    pub(super) fn closed(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotADirectory => Self::new("it is not a directory"),
            _ => Self::new(format!("cannot read it: {error}")),
        }
    }

    pub(super) fn at(path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("its {:?} cannot be read: {error}", path.display().to_string()))
    }

    pub(super) fn too_large() -> Self {
        Self::new("it has more than 512 MiB")
    }

    pub(super) fn of(self, path: &Path) -> Error {
        Error::Package { path: path.to_owned(), what: self.what, of_no_kind: self.of_no_kind }
    }
}
