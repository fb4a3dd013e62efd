//! Decides when a failed backend is retried. Pure.
//!
//! A backend that does not start is retried after 1, 2, 4, 8 and 16 seconds. A backend whose process
//! exits, or whose worker panics, is restarted at once, then after 1 and 2 seconds, at most three
//! times a minute.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::worker_key::WorkerKey;
use crate::config::BackendName;

const TRIES: u32 = 5;
const DEATHS: usize = 3;
const PER: Duration = Duration::from_secs(60);

/// The failures of all workers that ever failed, or showed something.
#[derive(Debug, Default)]
pub(super) struct Backoffs {
    all: BTreeMap<WorkerKey, Backoff>,
    /// The number of the session in which these failures happened.
    session: u64,
}

impl Backoffs {
    pub(super) fn of(&mut self, key: &WorkerKey) -> &mut Backoff {
        self.all.entry(key.clone()).or_default()
    }

    /// Whether a worker may be told to show something: for a request always.
    pub(super) fn may_try(&self, key: &WorkerKey, ticket: Option<u64>) -> bool {
        ticket.is_some() || self.all.get(key).is_none_or(Backoff::may_try)
    }

    /// The time of the earliest retry.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.all.values().filter_map(Backoff::retry_at).min()
    }

    /// Resets the failures in a new session: the backends may have failed because the previous session
    /// ended.
    pub(super) fn in_session(&mut self, number: u64) {
        if self.session != number {
            self.session = number;
            self.all.values_mut().for_each(Backoff::reset);
        }
    }

    /// Lets workers that keep exiting try again, as something has changed.
    pub(super) fn forget_refusals(&mut self) {
        for backoff in self.all.values_mut() {
            if backoff.standing == Standing::Refused {
                backoff.standing = Standing::Free;
            }
        }
    }

    /// Allows the retries that are due; returns their workers.
    pub(super) fn wake(&mut self, now: Instant) -> Vec<WorkerKey> {
        let due = self.all.iter_mut().filter(|(_, one)| one.is_due(now));
        due.map(|(key, backoff)| {
            backoff.standing = Standing::Free;
            key.clone()
        })
        .collect()
    }

    /// Lets the workers of a backend try at once, because a user asks for it.
    pub(super) fn free(&mut self, backend: BackendName) {
        let of_it = self
            .all
            .iter_mut()
            .filter(|(key, _)| key.backend == backend);
        of_it.for_each(|(_, backoff)| backoff.standing = Standing::Free);
    }

    /// Whether a failure is the first of an outage of this backend. Only the first is reported.
    pub(super) fn is_news(&mut self, key: &WorkerKey) -> bool {
        let mut all = self.all.iter();
        let is_known = all.any(|(other, one)| other.backend == key.backend && one.reported);
        self.of(key).reported = true;
        !is_known
    }
}

/// The failures of one worker's backend.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    /// Failed starts in a row.
    failures: u32,
    /// Whether a failure since the last success has been reported.
    reported: bool,
    deaths: Vec<Instant>,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// The worker may be told to show something.
    #[default]
    Free,
    RetryAt(Instant),
    /// Not retried unless a request needs it.
    GivenUp,
    /// Not retried before something else changes.
    Refused,
}

/// When a backend whose process has exited, or whose worker has panicked, is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    AtOnce,
    At(Instant),
    Never,
}

impl Backoff {
    /// Notes a failed start; returns the time of the retry, if there is one.
    pub(super) fn failed(&mut self, now: Instant) -> Option<Instant> {
        let at = (self.failures < TRIES).then(|| now + Duration::from_secs(1 << self.failures));
        self.standing = at.map_or(Standing::GivenUp, Standing::RetryAt);
        self.failures += 1;
        at
    }

    /// Notes that a process has exited, or that the worker has panicked.
    pub(super) fn died(&mut self, now: Instant) -> Restart {
        self.deaths.retain(|&death| now.duration_since(death) < PER);
        self.deaths.push(now);
        match self.deaths.len() {
            1 => Restart::AtOnce,
            again if again <= DEATHS => {
                let at = now + Duration::from_secs(1 << (again - 2));
                self.standing = Standing::RetryAt(at);
                Restart::At(at)
            }
            _ => {
                self.standing = Standing::Refused;
                Restart::Never
            }
        }
    }

    fn may_try(&self) -> bool {
        self.standing == Standing::Free
    }

    fn retry_at(&self) -> Option<Instant> {
        match self.standing {
            Standing::RetryAt(at) => Some(at),
            Standing::Free | Standing::GivenUp | Standing::Refused => None,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.retry_at().is_some_and(|at| at <= now)
    }

    /// Resets all but `reported`: a reported failure stays reported until the backend shows something.
    fn reset(&mut self) {
        self.failures = 0;
        self.deaths.clear();
        self.standing = Standing::Free;
    }

    /// Notes a success. Exits stay counted, so that a backend that exits after each success is given up.
    pub(super) fn over(&mut self) {
        self.failures = 0;
        self.reported = false;
        self.standing = Standing::Free;
    }
}

#[cfg(test)]
impl Backoffs {
    /// Lets the time of all retries come.
    pub(super) fn hurry(&mut self) {
        for backoff in self.all.values_mut() {
            if let Standing::RetryAt(at) = &mut backoff.standing {
                *at = Instant::now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_retried_five_times_with_back_off() {
        let mut backoff = Backoff::default();
        let now = Instant::now();
        let mut wait = || backoff.failed(now).map(|at| (at - now).as_secs());
        assert_eq!(
            [(); 6].map(|()| wait()),
            [Some(1), Some(2), Some(4), Some(8), Some(16), None]
        );
        assert!(!backoff.may_try());
        backoff.over();
        assert!(backoff.may_try());
        let again = backoff.failed(now).unwrap();
        assert_eq!(again, now + Duration::from_secs(1));
        assert!(!backoff.is_due(now) && backoff.is_due(again));
    }

    #[test]
    fn backend_is_restarted_three_times_a_minute_at_most() {
        let mut backoffs = Backoffs::default();
        let now = Instant::now();
        let key = WorkerKey {
            backend: BackendName::Feh,
            output: None,
        };
        let backoff = backoffs.of(&key);
        let at = |seconds| Restart::At(now + Duration::from_secs(seconds));
        let all = [Restart::AtOnce, at(1), at(2), Restart::Never];
        assert_eq!([(); 4].map(|()| backoff.died(now)), all);
        assert_eq!(backoff.died(now + PER), Restart::AtOnce);
    }

    #[test]
    fn failed_backend_is_retried_at_once_in_a_new_session() {
        let mut backoffs = Backoffs::default();
        let now = Instant::now();
        let key = WorkerKey {
            backend: BackendName::Builtin,
            output: None,
        };
        for _ in 0..9 {
            backoffs.of(&key).failed(now);
            backoffs.of(&key).died(now);
        }
        assert!(!backoffs.may_try(&key, None) && backoffs.may_try(&key, Some(1)));
        backoffs.in_session(0);
        assert!(!backoffs.may_try(&key, None));
        backoffs.in_session(1);
        assert!(backoffs.may_try(&key, None) && backoffs.next_retry().is_none());
        assert_eq!(backoffs.of(&key).died(now), Restart::AtOnce);
    }

    #[test]
    fn earliest_retry_comes_first() {
        let mut backoffs = Backoffs::default();
        let now = Instant::now();
        let [feh, builtin] = [BackendName::Feh, BackendName::Builtin].map(|backend| WorkerKey {
            backend,
            output: None,
        });
        assert_eq!(backoffs.next_retry(), None);
        backoffs.of(&feh).failed(now);
        let later = backoffs.of(&feh).failed(now);
        let first = backoffs.of(&builtin).failed(now);
        assert!(first < later);
        assert_eq!(backoffs.next_retry(), first);
        backoffs.wake(first.unwrap());
        assert!(backoffs.may_try(&builtin, None) && !backoffs.may_try(&feh, None));
        assert_eq!(backoffs.next_retry(), later);
    }

    #[test]
    fn outage_is_news_once() {
        let mut backoffs = Backoffs::default();
        let [one, other] = ["A", "B"].map(|name| WorkerKey::new(BackendName::Mpvpaper, name));
        assert!(backoffs.is_news(&one) && !backoffs.is_news(&one) && !backoffs.is_news(&other));
        backoffs.of(&one).over();
        backoffs.of(&other).over();
        assert!(backoffs.is_news(&one));
    }
}
