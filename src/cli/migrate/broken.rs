//! The error for a configuration that cannot be read.

use std::fmt;

/// A place in a file, counted from 1, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Broken {
    line: usize,
    column: usize,
    what: String,
}

impl Broken {
    /// At so many bytes from the beginning of a text.
    pub(super) fn at(text: &str, offset: usize, what: impl Into<String>) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, what: what.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}
