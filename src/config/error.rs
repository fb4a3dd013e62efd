//! What can go wrong with the settings. Messages name file, position, section and key.

use std::path::PathBuf;
use std::{fmt, io};

#[derive(Debug)]
pub enum Error {
    /// The file is not TOML.
    Syntax {
        path: PathBuf,
        position: Position,
        message: String,
    },
    /// A value of the file has the wrong type.
    FileType {
        path: PathBuf,
        position: Position,
        key: String,
        expected: &'static str,
        found: String,
    },
    Read {
        path: PathBuf,
        source: io::Error,
    },
    Write {
        path: PathBuf,
        source: io::Error,
    },
    /// The disk that the file is on does not answer.
    NoAnswer {
        path: PathBuf,
    },
    /// A request would change a file that cannot be read as it stands: a person is at work on it.
    Broken {
        path: PathBuf,
        message: String,
    },
    /// Somebody writes the file, and what a request wants would undo that.
    BeingWritten {
        path: PathBuf,
    },
    /// A request's value has the wrong type, or is one that TOML cannot hold.
    Type {
        key: String,
        value: String,
        expected: &'static str,
    },
    /// A request's value has the right type and is not allowed.
    Refused {
        key: String,
        problem: String,
    },
    /// A request names a key that is none of ours.
    UnknownKey {
        key: String,
    },
    /// A request names a section that is none of ours.
    UnknownSection {
        section: String,
    },
    /// The kernel gives no watch.
    Watch {
        source: io::Error,
    },
}

/// A position in a file, counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// Of a byte in a text.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line..].chars().count() + 1 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { path, position, message } => {
                write!(f, "{}, {position}: {message}", path.display())
            }
            Self::FileType { path, position, key, expected, found } => {
                write!(f, "{}, {position}: {key} must be {expected}, not {found}", path.display())
            }
            Self::Read { path, .. } => write!(f, "cannot read {}", path.display()),
            Self::Write { path, .. } => {
                write!(f, "cannot write {}; nothing was changed", path.display())
            }
            Self::NoAnswer { path } => {
                write!(f, "the disk of {} does not answer", path.display())
            }
            Self::Broken { path, message } => {
                write!(f, "{} cannot be changed until it is mended: {message}", path.display())
            }
            Self::BeingWritten { path } => {
                write!(f, "{} is being written; nothing was changed", path.display())
            }
            Self::Type { key, value, expected } => {
                write!(f, "{key} must be {expected}, not {value}")
            }
            Self::Refused { key, problem } => write!(f, "{key}: {problem}"),
            Self::UnknownKey { key } => write!(f, "{key} is not a setting"),
            Self::UnknownSection { section } => write!(f, "{section:?} is not a section"),
            Self::Watch { .. } => write!(f, "cannot watch the configuration"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => Some(source),
            Self::Watch { source } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let text = "ä = 1\nöö = 2";
        assert_eq!(Position::of(text, 0), Position { line: 1, column: 1 });
        assert_eq!(Position::of(text, 2), Position { line: 1, column: 2 });
        assert_eq!(Position::of(text, 7), Position { line: 2, column: 1 });
        assert_eq!(Position::of(text, 8), Position { line: 2, column: 1 });
        assert_eq!(Position::of(text, 999), Position { line: 2, column: 7 });
    }
}
