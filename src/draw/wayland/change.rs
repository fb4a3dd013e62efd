//! A change that is under way: who asked for it, and which stage it has reached.

use std::time::Instant;

use super::super::message::{Transition, Wanted};
use super::super::painter::Painting;
use super::super::server::ClientId;

pub(super) struct Change {
    /// None if outputs were connected or changed.
    pub(super) client: Option<ClientId>,
    pub(super) outputs: Vec<Wanted>,
    pub(super) transition: Transition,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// An output that was named is not known yet. Two sync requests are sent, one for the outputs and one
    /// for their names; the number is that of the last request.
    Syncing { sync: u64, again: bool },
    /// Surfaces have no size yet.
    Sizing { until: Instant },
    /// Pictures are painted, one task for each of these outputs.
    Painting { painting: Painting, outputs: Vec<u32> },
    /// The first frames on these outputs have not been seen yet.
    Showing { outputs: Vec<u32> },
}

impl Change {
    /// The painting that the loop waits for.
    pub(super) fn painting(&self) -> Option<&Painting> {
        match &self.stage {
            Stage::Painting { painting, .. } => Some(painting),
            _ => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Sizing { until } => Some(until),
            _ => None,
        }
    }
}
