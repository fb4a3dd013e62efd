//! Random numbers for choices, not for secrets, from the random keys of the standard library's hash
//! maps.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a different number each time.
pub(crate) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns a number below `end`, or 0 if `end` is 0.
pub(crate) fn below(end: usize) -> usize {
    (seed() % (end.max(1) as u64)) as usize
}
