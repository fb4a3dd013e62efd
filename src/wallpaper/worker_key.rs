//! Names the workers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::backends::{Placement, registration};
use crate::config::BackendName;

/// A backend, or its process on one output if each output has a process of its own. Workers do
/// not wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct WorkerKey {
    pub(super) backend: BackendName,
    pub(super) output: Option<String>,
}

/// The placements that each worker shows; an entry for every worker that shows anything.
pub(super) type Placements = BTreeMap<WorkerKey, Vec<Placement>>;

impl WorkerKey {
    /// The worker that shows something on this output.
    pub(super) fn new(backend: BackendName, output: &str) -> Self {
        let apart = registration(backend).apart;
        Self {
            backend,
            output: apart.then(|| output.to_owned()),
        }
    }

    /// Whether this is its backend's worker for this output.
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
pub(super) mod tests {
    use super::*;
    use crate::backends::Kind;
    use crate::compositor::Output;
    use crate::config::BackendName::{Mpvpaper, Swaybg};

    pub(in crate::wallpaper) fn placement(output: &str, image_id: i64) -> Placement {
        Placement {
            output: Output::plain(output),
            image_id,
            path: "/x.png".into(),
            content: String::new(),
            kind: Kind::StaticImage,
            audio_enabled: false,
            web: None,
            extended_over: Vec::new(),
            span: Vec::new(),
            fit: None,
            position: None,
            sound: None,
        }
    }

    #[test]
    fn worker_serves_one_output_if_its_backend_has_one_for_each() {
        let [video, still] = [Mpvpaper, Swaybg].map(|name| WorkerKey::new(name, "A"));
        let serves = |key: &WorkerKey| ["A", "B"].map(|output| key.serves(output));
        assert_eq!(
            (serves(&video), video.to_string().as_str()),
            ([true, false], "mpvpaper on A")
        );
        assert_eq!(
            (serves(&still), still.to_string().as_str()),
            ([true, true], "swaybg")
        );
    }
}
