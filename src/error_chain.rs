//! Formats an error with its causes on one line.

use std::error::Error;

/// Returns the error's message and those of its causes, separated by colons.
pub(crate) fn chain(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Returns the causes, the nearest first.
pub(crate) fn causes<'a>(error: &'a dyn Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
