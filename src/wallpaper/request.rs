//! What the reconciler is asked for and what it answers.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::BackendName;
use crate::store::index::Query;
use crate::wire::{Fit, HistorySource, Mode, SetStatus};

use super::worker_key::WorkerKey;
use super::{Error, Targets};

/// Called once, by the thread of the reconciler or `desktop`: it must not block.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    Image(i64),
    /// One that can be shown, other than what is shown there now if there is another; in mode `each`
    /// one for each monitor, of those that suit it.
    Random,
    /// Each monitor has its own of these; they repeat where they are fewer.
    Each(Vec<i64>),
    /// What was picked for each monitor while the request had to wait.
    Picked(BTreeMap<String, i64>),
    /// What was there before, so many times.
    Back(u32),
}

/// A picture for monitors.
#[derive(Clone, Debug)]
pub struct Request {
    pub ask: Ask,
    /// Of a random one: among which it is to be.
    pub filter: Option<Box<Query>>,
    pub targets: Targets,
    pub mode: Mode,
    /// In place of what the backend's settings say; stored with what is shown.
    pub fit: Option<Fit>,
    /// The same, for this change alone.
    pub transition: Option<String>,
    pub source: HistorySource,
    /// A hook asks for it: no hook is run for it.
    pub by_hook: bool,
}

impl Request {
    /// Whether an older one that waits still has nothing left to do. What was there before depends on
    /// what is there by then: who goes back waits for a picture that is to be shown first, and has its
    /// steps added to those of another only where they are for the same monitors.
    pub(super) fn supersedes(&self, old: &Self) -> bool {
        let covers = self.targets.covers(&old.targets);
        match (&self.ask, &old.ask) {
            (Ask::Back(_), Ask::Back(_)) => covers && old.targets.covers(&self.targets),
            (Ask::Back(_), _) => false,
            _ => covers,
        }
    }

    /// What a random one has picked stays picked.
    pub(super) fn settle(&mut self, applied: &Applied) {
        let ask = std::mem::replace(&mut self.ask, Ask::Random);
        self.ask = match ask {
            Ask::Random if self.mode != Mode::Each => Ask::Image(applied.image_id),
            Ask::Random | Ask::Each(_) => Ask::Picked(applied.images.clone()),
            ask => ask,
        };
    }
}

#[derive(Clone, Debug)]
pub struct Applied {
    pub outcome: SetStatus,
    /// Of several, that of the first monitor by name.
    pub image_id: i64,
    /// Connected ones.
    pub monitors: Vec<String>,
    /// Named in the request, but not connected.
    pub skipped: Vec<String>,
    /// As carried out: what cannot be cut into slices is cloned.
    pub mode: Mode,
    pub backend: BackendName,
    /// Which monitor shows which.
    pub images: BTreeMap<String, i64>,
    /// Which backend shows it where.
    pub(crate) backends: BTreeMap<String, BackendName>,
    /// What else is wrong with what is to be seen, or may be: for people.
    pub warnings: Vec<String>,
    /// How the picture differs from what was asked for: for people.
    pub note: Option<String>,
}

impl Applied {
    /// Where it is shown, or is to be.
    pub(super) fn keys(&self) -> Vec<WorkerKey> {
        let of = |(monitor, backend): (&String, &BackendName)| WorkerKey::of(*backend, monitor);
        let keys: BTreeSet<WorkerKey> = self.backends.iter().map(of).collect();
        keys.into_iter().collect()
    }
}

#[derive(Clone, Debug)]
pub struct Activated {
    pub backend: BackendName,
}
