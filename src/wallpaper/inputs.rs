//! What the reconciler has been told and has not stored in the database.

use super::backend_choice::FoundBackends;
use super::paused_outputs::Pause;
use super::workspaces::Refusals;
use crate::config::{BackendName, SelectionMode};
use crate::events::Subscription;
use crate::store::workspaces::WorkspacePicture;

pub(super) struct Inputs {
    /// The activated backend, until the settings name it.
    pub(super) activated: Option<Activation>,
    pub(super) found: FoundBackends,
    pub(super) pause: Pause,
    pub(super) refusals: Refusals,
    /// The pictures of workspaces, as they are in the database.
    pub(super) workspaces: Vec<WorkspacePicture>,
    /// Changes of images and playlists.
    pub(super) library: Subscription,
    /// The wallpapers were removed because the daemon ends, so nothing is shown any more.
    pub(super) is_cleared: bool,
}

/// A backend that was activated, but is not yet the one in the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    pub(super) backend: BackendName,
    /// The settings at that time. Once they change, they take precedence.
    pub(super) settings: (BackendName, SelectionMode),
}

impl Inputs {
    pub(super) fn new(library: Subscription, workspaces: Vec<WorkspacePicture>) -> Self {
        Self {
            activated: None,
            found: FoundBackends::default(),
            pause: Pause::default(),
            refusals: Refusals::new(),
            workspaces,
            library,
            is_cleared: false,
        }
    }
}
