//! The environment, looked up in one place.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

use super::Error;

/// A look-up of environment variables: the process's own, or a test's.
#[derive(Clone)]
pub struct Env(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Option<OsString> + Send + Sync;

impl Env {
    /// The process's own. A missing `HOME` is looked up in the user database.
    pub fn process() -> Self {
        Self::new(|name| match std::env::var_os(name) {
            None if name == "HOME" => std::env::home_dir().map(PathBuf::into_os_string),
            value => value,
        })
    }

    pub fn new(lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }

    pub fn var(&self, name: &str) -> Option<OsString> {
        (self.0)(name)
    }

    /// A variable that must hold an absolute path to count (XDG Base Directory Specification).
    pub(super) fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.var(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

impl<const N: usize> From<[(&'static str, &str); N]> for Env {
    fn from(pairs: [(&'static str, &str); N]) -> Self {
        let pairs = pairs.map(|(name, value)| (name, OsString::from(value)));
        Self::new(move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone()))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

pub(super) fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The directory that a login makes for a user, if it is there and nobody else's.
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

/// `$VAR` and `${VAR}` replaced by their values.
pub(super) fn replaced(
    written: &str,
    value: impl Fn(&str) -> Result<Option<OsString>, Error>,
) -> Result<OsString, Error> {
    let mut out = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find('$') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let (name, after) = match variable_name(&rest[at + 1..]) {
            Ok(Some(found)) => found,
            // A `$` that begins no name stands for itself.
            Ok(None) => {
                out.push(b'$');
                rest = &rest[at + 1..];
                continue;
            }
            Err(()) => return Err(Error::Brace { written: written.to_owned() }),
        };
        let value = value(name)?.ok_or_else(|| Error::Unset {
            variable: name.to_owned(),
            written: written.to_owned(),
        })?;
        out.extend_from_slice(value.as_bytes());
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(OsString::from_vec(out))
}

/// The name after a `$` and what follows it; `None` where no name begins.
fn variable_name(after: &str) -> Result<Option<(&str, &str)>, ()> {
    let (text, braced) = after.strip_prefix('{').map_or((after, false), |inner| (inner, true));
    let end = match text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => 0,
        end => end.unwrap_or(text.len()),
    };
    let (name, rest) = text.split_at(end);
    match (braced, name.is_empty()) {
        (true, false) => rest.strip_prefix('}').map(|rest| Some((name, rest))).ok_or(()),
        (true, true) => Err(()),
        (false, false) => Ok(Some((name, rest))),
        (false, true) => Ok(None),
    }
}
