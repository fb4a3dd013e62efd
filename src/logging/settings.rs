//! What is logged where.

use std::path::PathBuf;

use log::LevelFilter;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub level: LevelFilter,
    pub file: PathBuf,
    /// Bytes at which the file is rotated.
    pub max_size: u64,
    /// Rotated files that are kept.
    pub backups: u32,
}

/// The lowest level that stderr gets, and whether people read it there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stderr {
    pub(super) level: LevelFilter,
    pub(super) is_terminal: bool,
}
