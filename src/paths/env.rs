//! The environment, looked up in one place.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

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
