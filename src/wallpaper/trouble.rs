//! When a setter that failed is tried again: pure.
//!
//! A setter that does not start is tried again after 1, 2, 4, 8 and 16 seconds. One whose processes
//! die is shown again at once, three times a minute at most.

use std::time::{Duration, Instant};

const TRIES: u32 = 5;
const DEATHS: usize = 3;
const PER: Duration = Duration::from_secs(60);

/// The troubles of one backend.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    failures: u32,
    deaths: Vec<Instant>,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// It may be told to show.
    #[default]
    Free,
    RetryAt(Instant),
    /// Left alone until somebody asks for it.
    GivenUp,
}

impl Trouble {
    /// It did not start: when it is tried again, if ever.
    pub(super) fn failed(&mut self, now: Instant) -> Option<Instant> {
        let at = (self.failures < TRIES).then(|| now + Duration::from_secs(1 << self.failures));
        self.standing = at.map_or(Standing::GivenUp, Standing::RetryAt);
        self.failures += 1;
        at
    }

    /// It died: whether it may be shown again.
    pub(super) fn died(&mut self, now: Instant) -> bool {
        self.deaths.retain(|&death| now.duration_since(death) < PER);
        self.deaths.push(now);
        self.deaths.len() <= DEATHS
    }

    pub(super) fn may_try(&self) -> bool {
        self.standing == Standing::Free
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        match self.standing {
            Standing::RetryAt(at) => Some(at),
            Standing::Free | Standing::GivenUp => None,
        }
    }

    /// Frees it when its time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.retry_at().is_some_and(|at| at <= now) {
            self.standing = Standing::Free;
        }
    }

    /// It shows what it should. Deaths are remembered: dying after each success is the trouble.
    pub(super) fn over(&mut self) {
        self.failures = 0;
        self.standing = Standing::Free;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_retried_five_times_with_back_off() {
        let (mut trouble, now) = (Trouble::default(), Instant::now());
        let mut wait = || trouble.failed(now).map(|at| (at - now).as_secs());
        assert_eq!([(); 6].map(|()| wait()), [Some(1), Some(2), Some(4), Some(8), Some(16), None]);
        assert!(!trouble.may_try());
        trouble.over();
        assert!(trouble.may_try());
        let again = trouble.failed(now).unwrap();
        assert_eq!(again, now + Duration::from_secs(1));
        trouble.wake(now);
        assert!(!trouble.may_try());
        trouble.wake(again);
        assert!(trouble.may_try() && trouble.retry_at().is_none());
    }

    #[test]
    fn three_deaths_a_minute_are_borne() {
        let (mut trouble, now) = (Trouble::default(), Instant::now());
        assert_eq!([(); 4].map(|()| trouble.died(now)), [true, true, true, false]);
        assert!(trouble.died(now + PER));
    }
}
