//! Directories that last: a power loss forgets one that was made and not flushed where it lies, and with
//! it all that was flushed inside. Runs on whoever makes one; knows nothing of what goes in.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a directory for the user alone, and those that lead to it, where they are missing.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|directory| !directory.exists()).count();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let homes = path.ancestors().skip(1).take(missing);
    homes.filter(|home| !home.as_os_str().is_empty()).try_for_each(flush_directory)
}

/// So that what was made, renamed or removed in it stays so after a power loss.
pub(crate) fn flush_directory(path: &Path) -> io::Result<()> {
    match File::open(path).and_then(|directory| directory.sync_all()) {
        // Network file systems that have no such thing for directories.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        flushed => flushed,
    }
}
