//! An error with its causes, as one line.

use std::error::Error;

/// The error's text and those of its causes, each after a colon.
pub(crate) fn chain(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The causes, the nearest first.
pub(crate) fn causes<'a>(error: &'a dyn Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
