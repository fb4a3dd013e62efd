//! Whether the process has descriptors to spare.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// What one client needs: its connection, a reader of the database with its two files, a picture.
pub(crate) const FOR_CLIENT: u64 = 4;
/// A process that may open more than this has enough for everything.
const MANY: u64 = 128;

/// Whether `count` more can be opened just now: for whoever can do with less, and leave them to
/// those who cannot. It opens none itself: another thread might lack just that.
pub(crate) fn has_descriptors(count: u64) -> bool {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    limit > MANY || (0..limit).filter(|number| !is_open(*number)).count() as u64 >= count
}

fn is_open(number: u64) -> bool {
    fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok()
}
