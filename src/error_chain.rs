//! An error with its causes, as one line.

use std::error::Error;

/// The error's text and, each after a colon, those of its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// What caused it, the nearest first.
pub(crate) fn causes<'a>(error: &'a dyn Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
