//! What becomes of a picture that a backend has no memory for: the next backend shows it.
//!
//! That one is then left out, until somebody asks for it or settings change.

use super::Reconciler;
use crate::backends;
use crate::config::BackendName;
use crate::wallpaper::Error;
use crate::wallpaper::job::{Failed, Feasible, PendingApply};
use crate::wallpaper::request::Request;
use crate::wallpaper::world_state::WorldState;

impl Reconciler {
    /// Has another backend show what was asked for, where that is what is wrong and there is one; else
    /// it has failed.
    pub(super) fn fall_back(
        &mut self,
        apply: PendingApply,
        backend: BackendName,
        error: &backends::Error,
    ) {
        if !matches!(error, backends::Error::NoMemory(_)) {
            return self.apply_failed(apply, error.clone());
        }
        let mut request = apply.request.clone();
        request.settle(&apply.feasible.applied);
        self.found.leave_out(backend);
        match self.planned(&request) {
            Ok((mut feasible, world)) => {
                let other = feasible.applied.backend;
                feasible.applied.warnings.push(format!("{other} shows it: {error}"));
                self.note_left_out(backend, &world);
                self.apply(PendingApply { request, feasible, reply: apply.reply }, world);
            }
            Err(_) => {
                self.found.readmit(backend);
                self.apply_failed(apply, error.clone());
            }
        }
    }

    fn planned(&self, request: &Request) -> Result<(Feasible, WorldState), Error> {
        let world = self.world_state()?;
        Ok((world.feasible(&self.store, request)?, world))
    }

    /// The same for what nobody has asked for: whether another backend is to show it.
    pub(super) fn others_may(&mut self, failures: &[Failed]) -> bool {
        let is_it = |failed: &&Failed| matches!(failed.error, backends::Error::NoMemory(_));
        let Some(backend) = failures.iter().find(is_it).map(|failed| failed.key.backend) else {
            return false;
        };
        self.found.leave_out(backend);
        let Ok(world) = self.world_state() else { return false };
        if world.active().is_none() {
            self.found.readmit(backend);
            return false;
        }
        self.note_left_out(backend, &world);
        self.reconcile_again = true;
        true
    }

    fn note_left_out(&self, backend: BackendName, world: &WorldState) {
        let remedy = format!("`murald backends activate {backend}` tries it again");
        log::warn!("{backend} is left out from now on: {remedy}");
        self.note_active(world);
    }
}
