//! When the thread of a watched directory looks at what: after changes, when the time of a missing image
//! is over, and again after a failure. Pure.

use std::time::{Duration, Instant};

use super::walk::Scope;

/// The delay before a failed look or import is repeated.
const LATER: Duration = Duration::from_secs(60);
/// The longest pause after a look at everything, which is four times as long as the look.
const REST_MAX: Duration = Duration::from_secs(30);

pub(super) struct Schedule {
    /// The paths to look at, and when.
    wish: Option<(Scope, Instant)>,
    /// The earliest time of the next look at everything.
    rested: Instant,
    /// When the time of the next missing image is over.
    due: Option<Instant>,
    /// Whether rows could not be written since the last look at everything.
    is_unsaved: bool,
}

impl Schedule {
    /// A look at everything, at once.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            wish: Some((Scope::All, now)),
            rested: now,
            due: None,
            is_unsaved: false,
        }
    }

    /// The time of the next look.
    pub(super) fn next(&self) -> Option<Instant> {
        let wish = self.wish.as_ref().map(|(scope, at)| match scope {
            Scope::All => self.rested.max(*at),
            Scope::Paths(_) => *at,
        });
        wish.into_iter().chain(self.due).min()
    }

    /// Whether there is something to look at, now or later.
    pub(super) fn has_wish(&self) -> bool {
        self.wish.is_some()
    }

    pub(super) fn wish(&mut self, scope: Scope, at: Instant) {
        self.wish = Some(match (self.wish.take(), scope) {
            (Some((Scope::Paths(mut known), before)), Scope::Paths(more)) => {
                known.extend(more);
                (Scope::Paths(known), before.min(at))
            }
            (Some((Scope::All, before)), _) => (Scope::All, before.min(at)),
            (_, scope) => (scope, at),
        });
    }

    /// Looks at everything at once.
    pub(super) fn scan(&mut self) {
        self.rested = Instant::now();
        self.wish(Scope::All, self.rested);
    }

    /// Looks at everything later, as rows could not be written. Until then no image expires: its file
    /// may be one of those that were found.
    pub(super) fn fail(&mut self) {
        self.is_unsaved = true;
        self.wish = Some((Scope::All, Instant::now() + LATER));
        self.due = None;
    }

    pub(super) fn is_unsaved(&self) -> bool {
        self.is_unsaved
    }

    /// Takes the look whose time has come.
    pub(super) fn take(&mut self, now: Instant) -> Option<Scope> {
        let rested = self.rested;
        let is_due = |(scope, at): &mut (Scope, Instant)| {
            *at <= now && (*scope != Scope::All || rested <= now)
        };
        self.wish.take_if(is_due).map(|(scope, _)| scope)
    }

    /// Notes that everything was listed since `begun`.
    pub(super) fn listed_all(&mut self, begun: Instant) {
        self.rested = Instant::now() + (begun.elapsed() * 4).min(REST_MAX);
        self.is_unsaved = false;
    }

    /// Sets when the time of the next missing image is over.
    pub(super) fn wait_for_missing(&mut self, until: Option<Instant>) {
        self.due = until;
    }

    /// Whether the time of a missing image is over. True once.
    pub(super) fn take_missing(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }
}
