//! Directories for sockets: the session's, or one of our own.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::Error;

pub(super) fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// What a login makes for a user, if it is there and nobody else's.
pub(super) fn session_directory(sessions: &Path, uid: u32) -> Option<PathBuf> {
    let path = sessions.join(uid.to_string());
    let found = fs::symlink_metadata(&path).ok()?;
    (found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0).then_some(path)
}

/// A directory of mode 0700 that belongs to `uid`, made if it is missing.
pub(super) fn own_directory(path: PathBuf, uid: u32) -> Result<PathBuf, Error> {
    let failed = |source| Error::Runtime { path: path.clone(), source };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // Not through a link: it would be somebody else's choice where our socket goes.
    let found = fs::symlink_metadata(&path).map_err(failed)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        return Err(Error::NotOurs { path });
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(path)
}
