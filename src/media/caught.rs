//! Panics of decoders: hostile bytes must not end a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::thread::panic_text;

/// What a decoder gives, or the words of its panic.
pub(crate) fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| panic_text(&*panic).to_owned())
}
