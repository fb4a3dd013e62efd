//! Reads environment variables, and expands them in paths.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use super::Error;

/// Looks up environment variables of the process, or of a test.
#[derive(Clone)]
pub struct Env(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Option<OsString> + Send + Sync;

impl Env {
    /// The variables of the process. A missing `HOME` is looked up in the user database.
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

    /// Returns a duration that a test has set, so that it does not wait for the usual one.
    pub fn milliseconds(&self, name: &str) -> Option<Duration> {
        Some(Duration::from_millis(
            self.var(name)?.to_str()?.parse().ok()?,
        ))
    }

    /// Returns a variable that is only valid if it is an absolute path (XDG Base Directory
    /// Specification).
    pub(super) fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }
}

impl<const N: usize> From<[(&'static str, &str); N]> for Env {
    fn from(pairs: [(&'static str, &str); N]) -> Self {
        let pairs = pairs.map(|(name, value)| (name, OsString::from(value)));
        Self::new(move |name| {
            pairs
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.clone())
        })
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

/// Returns the runtime directory of a user's login session, if it exists and only that user can
/// write to it.
pub(super) fn session_directory(sessions: &Path, uid: u32) -> Option<PathBuf> {
    let path = sessions.join(uid.to_string());
    let found = fs::symlink_metadata(&path).ok()?;
    (found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0).then_some(path)
}

/// Creates a directory with mode 0700 if it is missing; fails if others own it or could write to
/// it.
pub(super) fn own_directory(path: PathBuf, uid: u32) -> Result<PathBuf, Error> {
    let failed = |source| Error::Runtime {
        path: path.clone(),
        source,
    };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // Links are not followed: another user could decide where the socket goes.
    let found = fs::symlink_metadata(&path).map_err(failed)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        return Err(Error::NotOurs { path });
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(path)
}

/// Replaces `$VAR` and `${VAR}` by their values.
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
            // A `$` before no name is kept.
            Ok(None) => {
                out.push(b'$');
                rest = &rest[at + 1..];
                continue;
            }
            Err(()) => {
                return Err(Error::Brace {
                    written: written.to_owned(),
                });
            }
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

/// Splits the text after a `$` into the name and the rest; `None` if no name follows.
fn variable_name(after: &str) -> Result<Option<(&str, &str)>, ()> {
    let (text, braced) = after
        .strip_prefix('{')
        .map_or((after, false), |inner| (inner, true));
    let end = match text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => 0,
        end => end.unwrap_or(text.len()),
    };
    let (name, rest) = text.split_at(end);
    match (braced, name.is_empty()) {
        (true, false) => rest
            .strip_prefix('}')
            .map(|rest| Some((name, rest)))
            .ok_or(()),
        (true, true) => Err(()),
        (false, false) => Ok(Some((name, rest))),
        (false, true) => Ok(None),
    }
}
