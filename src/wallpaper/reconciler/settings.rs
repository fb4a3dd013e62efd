//! What changes of the settings, of images and of rest mean for what is shown.

use super::Reconciler;
use crate::config::{BackendName, SelectionMode};
use crate::wallpaper::worker_key::WorkerKey;

impl Reconciler {
    /// Looks again where settings have changed since it last looked.
    pub(super) fn on_settings(&mut self) {
        let Some(changes) = self.status.take_changes() else { return };
        if let Some(rests) = changes.rests {
            self.rest.set(rests);
            self.align_rest();
        }
        let shows = |image: &i64| self.current.values().flatten().any(|one| one.image_id == *image);
        // What a job is about to show may be one of them.
        let may_show = |image: &i64| !self.jobs.is_empty() || shows(image);
        if !changes.anything && !changes.rewritten.iter().any(may_show) {
            return;
        }
        if changes.deactivated {
            self.activated = None;
        }
        if changes.anything {
            self.found.readmit_all();
        }
        let is_changed = |key: &&WorkerKey| changes.backends.contains(&key.backend);
        // What is being shown just now may be so by the old ones.
        let shown = self.jobs.expected(&self.current);
        self.stale.extend(shown.keys().filter(is_changed).cloned());
        let now = self.selection();
        self.activated = self.activated.filter(|activated| activated.settings == now);
        self.reconcile();
    }

    /// Has films and pages stand still where they are to, and go on elsewhere. Nobody waits for it.
    pub(super) fn align_rest(&self) {
        for (key, shown) in &self.current {
            self.workers.pause(key, self.rest.paused(shown, &[]));
        }
    }

    /// What the settings say of the backend to be used.
    pub(super) fn selection(&self) -> (BackendName, SelectionMode) {
        let settings = (self.backends.settings)();
        (settings.backend.kind, settings.backend.selection_mode)
    }
}
