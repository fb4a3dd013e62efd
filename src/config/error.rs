//! The errors of the configuration. Messages name file, position, section and key.

use std::path::PathBuf;
use std::{fmt, io};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not TOML, or has values of wrong types; all of one kind, in the order of the file.
    #[error("{}, {}", path.display(), listed(problems))]
    Invalid {
        path: PathBuf,
        problems: Vec<(Position, String)>,
    },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}; nothing was changed", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The disk of the file does not answer.
    #[error("the disk of {} does not answer", path.display())]
    NoAnswer { path: PathBuf },
    /// A request would change a file that cannot be read, because a person is editing it.
    #[error("{message}; nothing was changed, fix the file first")]
    Broken { message: String },
    /// Another program is writing the file, and the requested change would undo its edit.
    #[error("another program is writing {}; nothing was changed", path.display())]
    BeingWritten { path: PathBuf },
    /// A request's value has the wrong type, or cannot be stored in TOML.
    #[error("{key} must be {expected}, not {value}")]
    Type {
        key: String,
        value: String,
        expected: &'static str,
    },
    /// A request's value has the right type, but is not allowed.
    /// The problem follows the key: `must be 1 or more, not 0`.
    #[error("{key} {problem}")]
    Refused { key: String, problem: String },
    /// A request names a key that the schema lacks.
    #[error("{problem}")]
    UnknownKey { problem: String },
    /// A request names a section that the schema lacks.
    #[error("unknown section {section:?}")]
    UnknownSection { section: String },
    /// A directory that murald cannot watch.
    #[error("{problem}")]
    Unwatchable { problem: String },
    /// The kernel refuses a watch.
    #[error("cannot watch the configuration")]
    Watch { source: io::Error },
}

fn listed(problems: &[(Position, String)]) -> String {
    let all = problems.iter();
    let all = all.map(|(position, problem)| format!("{position}: {problem}"));
    all.collect::<Vec<_>>().join("; ")
}

/// A position in a file, counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// The position of a byte in a text.
    pub(super) fn from_offset(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let text = "ä = 1\nöö = 2";
        assert_eq!(
            Position::from_offset(text, 0),
            Position { line: 1, column: 1 }
        );
        assert_eq!(
            Position::from_offset(text, 2),
            Position { line: 1, column: 2 }
        );
        assert_eq!(
            Position::from_offset(text, 7),
            Position { line: 2, column: 1 }
        );
        assert_eq!(
            Position::from_offset(text, 8),
            Position { line: 2, column: 1 }
        );
        assert_eq!(
            Position::from_offset(text, 999),
            Position { line: 2, column: 7 }
        );
    }
}
