//! What one worker deals with: pure.

use std::fmt;

use crate::backends::registration;
use crate::config::BackendName;

/// A backend, or what it has on one output where each output has a process of its own. Seats do
/// not wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkerKey {
    pub(super) backend: BackendName,
    pub(super) output: Option<String>,
}

impl WorkerKey {
    /// The one that shows something on this output.
    pub(super) fn of(backend: BackendName, output: &str) -> Self {
        let apart = registration(backend).apart;
        Self { backend, output: apart.then(|| output.to_owned()) }
    }

    /// Whether it would show something of its backend's on this output.
    pub(super) fn serves(&self, output: &str) -> bool {
        self.output.as_deref().is_none_or(|own| own == output)
    }
}

impl fmt::Display for WorkerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.output {
            Some(output) => write!(f, "{} on {output}", self.backend),
            None => write!(f, "{}", self.backend),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_is_of_an_output_where_each_has_its_own() {
        let [film, still] =
            [BackendName::Mpvpaper, BackendName::Swaybg].map(|name| WorkerKey::of(name, "A"));
        let serves = |key: &WorkerKey| ["A", "B"].map(|output| key.serves(output));
        assert_eq!((serves(&film), film.to_string().as_str()), ([true, false], "mpvpaper on A"));
        assert_eq!((serves(&still), still.to_string().as_str()), ([true, true], "swaybg"));
    }
}
