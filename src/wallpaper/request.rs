//! Requests to the reconciler and its answers, and the monitors that a request means: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Error;
use super::plan::WorkerKey;
use crate::config::BackendName;
use crate::store::query::Query;
use crate::wire::{Fit, HistorySource, Image, Mode, Position, SetStatus};

/// Called once, by the thread of the reconciler or `desktop`: it must not block.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

/// Brings the row of an image in place up to date with its file; true if it was not.
pub(crate) type SeeAgain = Box<dyn Fn(&Image) -> bool + Send>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    Image(i64),
    /// One that can be shown, other than what is shown there now if there is another; in mode `each`
    /// one for each monitor, of those that suit it.
    Random,
    /// Each monitor has its own of these; they repeat where they are fewer.
    Each(Vec<i64>),
    /// The image picked for each monitor while the request had to wait.
    Picked(BTreeMap<String, i64>),
    /// The picture from so many changes before.
    Back(u32),
}

/// A picture for monitors.
#[derive(Clone, Debug)]
pub struct Request {
    pub ask: Ask,
    /// The filter that a random image has to pass.
    pub filter: Option<Box<Query>>,
    pub targets: Targets,
    pub mode: Mode,
    /// In place of what the backend's settings say; stored with what is shown.
    pub fit: Option<Fit>,
    /// The same of the part that is seen, instead of the image's own position.
    pub position: Option<Position>,
    /// The same, for this change alone.
    pub transition: Option<String>,
    pub source: HistorySource,
    /// A hook asks for it: no hook is run for it.
    pub by_hook: bool,
}

impl Request {
    /// Whether an older request that still waits has nothing left to do. A step back depends on
    /// what is shown by then: it waits for a picture that is to be shown first, and has its
    /// steps added to those of another only if they are for the same monitors.
    pub(super) fn supersedes(&self, old: &Self) -> bool {
        let covers = self.targets.covers(&old.targets);
        match (&self.ask, &old.ask) {
            (Ask::Back(_), Ask::Back(_)) => covers && old.targets.covers(&self.targets),
            (Ask::Back(_), _) => false,
            _ => covers,
        }
    }

    /// Keeps what a random request has picked.
    pub(super) fn settle(&mut self, applied: &Applied) {
        let ask = std::mem::replace(&mut self.ask, Ask::Random);
        self.ask = match ask {
            Ask::Random if self.mode != Mode::Each => Ask::Image(applied.image.id),
            Ask::Random | Ask::Each(_) => Ask::Picked(applied.images.clone()),
            ask => ask,
        };
    }
}

#[derive(Clone, Debug)]
pub struct Applied {
    pub outcome: SetStatus,
    /// If there are several: the first monitor's, by name.
    pub(crate) image: Arc<Image>,
    /// Connected ones.
    pub monitors: Vec<String>,
    /// Named in the request, but not connected.
    pub skipped: Vec<String>,
    /// As carried out: what cannot be cut into slices is cloned.
    pub mode: Mode,
    pub backend: BackendName,
    /// Which monitor shows which.
    pub images: BTreeMap<String, i64>,
    /// The monitors that show the wallpaper of a workspace, and that workspace.
    pub(crate) hidden_by: BTreeMap<String, String>,
    /// Which backend shows it where; no monitor that shows the wallpaper of a workspace.
    pub(crate) backends: BTreeMap<String, BackendName>,
    /// Other problems with what is shown: for people.
    pub warnings: Vec<String>,
    /// How the picture differs from what was asked for: for people.
    pub note: Option<String>,
}

impl Applied {
    /// The workers that show it, or are to.
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

/// The monitors that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// All that are connected when the request is carried out.
    All,
    /// These, without repeats, in the order given.
    Named(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoTarget {
    /// No named monitor is connected; lists the connected ones.
    Unknown { names: Vec<String>, connected: Vec<String> },
    /// No monitor is connected at all.
    None,
}

impl Targets {
    /// From names as clients write them: none or `*` means all.
    pub fn from_names(names: impl IntoIterator<Item = String>) -> Self {
        let mut named: Vec<String> = Vec::new();
        for name in names {
            if name == "*" {
                return Self::All;
            }
            if !named.contains(&name) {
                named.push(name);
            }
        }
        if named.is_empty() { Self::All } else { Self::Named(named) }
    }

    /// The names of connected outputs that are meant, and those that are named and not connected.
    /// At least one must be connected.
    pub(super) fn resolve<'a>(
        &self,
        connected: impl Iterator<Item = &'a str>,
    ) -> Result<(Vec<String>, Vec<String>), NoTarget> {
        let connected: Vec<String> = connected.map(str::to_owned).collect();
        match self {
            Self::All if connected.is_empty() => Err(NoTarget::None),
            Self::All => Ok((connected, Vec::new())),
            Self::Named(names) => {
                let (found, missing): (Vec<_>, Vec<_>) =
                    names.iter().cloned().partition(|name| connected.contains(name));
                match found.is_empty() {
                    true => Err(NoTarget::Unknown { names: missing, connected }),
                    false => Ok((found, missing)),
                }
            }
        }
    }

    /// Whether a later request for `self` leaves nothing of one for `other` to be seen.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Named(_), Self::All) => false,
            (Self::Named(mine), Self::Named(theirs)) => {
                theirs.iter().all(|name| mine.contains(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Targets {
        Targets::from_names(names.iter().map(|&name| name.to_owned()))
    }

    #[test]
    fn names_are_resolved_against_what_is_connected() {
        type Found<'a> = (&'a [&'a str], &'a [&'a str]);
        let check = |names: &[&str], connected: &[&str], expected: Result<Found<'_>, NoTarget>| {
            let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
            let expected = expected.map(|(found, skipped)| (owned(found), owned(skipped)));
            assert_eq!(named(names).resolve(connected.iter().copied()), expected);
        };
        check(&[], &["A", "B"], Ok((&["A", "B"], &[])));
        check(&["B", "*"], &["A", "B"], Ok((&["A", "B"], &[])));
        check(&["B", "B"], &["A", "B"], Ok((&["B"], &[])));
        check(&["C", "B", "D"], &["A", "B"], Ok((&["B"], &["C", "D"])));
        check(&[], &[], Err(NoTarget::None));
        let unknown = NoTarget::Unknown { names: vec!["C".into()], connected: vec!["A".into()] };
        check(&["C"], &["A"], Err(unknown));
    }

    #[test]
    fn a_request_covers_those_whose_monitors_it_takes() {
        assert!(named(&["*"]).covers(&named(&["A"])));
        assert!(named(&["A", "B"]).covers(&named(&["B"])));
        assert!(!named(&["A"]).covers(&named(&["A", "B"])));
        assert!(!named(&["A"]).covers(&Targets::All));
    }
}
