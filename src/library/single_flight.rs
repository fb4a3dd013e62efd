//! What is made once, however many ask for it at the same time: the others wait for the first.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex};

use super::Error;
use crate::sys::{lock, unpoisoned};

type Outcome = Result<(), Arc<Error>>;

/// What is being made, by what it is called.
#[derive(Debug)]
pub(super) struct SingleFlight<K: Eq + Hash> {
    running: Mutex<HashMap<K, Arc<Running>>>,
}

/// The outcome is there when it has ended.
#[derive(Debug, Default)]
struct Running {
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

impl<K: Clone + Eq + Hash> SingleFlight<K> {
    /// Makes it, or waits for who does.
    pub(super) fn run(&self, key: &K, make: impl FnOnce() -> Result<(), Error>) -> Outcome {
        let (running, first) = {
            let mut all = lock(&self.running);
            match all.get(key) {
                Some(running) => (Arc::clone(running), false),
                None => {
                    let running = Arc::<Running>::default();
                    all.insert(key.clone(), Arc::clone(&running));
                    (running, true)
                }
            }
        };
        if !first {
            return running.wait();
        }
        // Ended on every way out, a panic too: the others must not wait for ever.
        let ending = Ending { flight: self, key, running: &running };
        let outcome = make().map_err(Arc::new);
        ending.with(outcome.clone());
        outcome
    }
}

impl<K: Eq + Hash> Default for SingleFlight<K> {
    fn default() -> Self {
        Self { running: Mutex::default() }
    }
}

impl Running {
    fn wait(&self) -> Outcome {
        let outcome = lock(&self.outcome);
        let outcome = unpoisoned(self.ended.wait_while(outcome, |outcome| outcome.is_none()));
        outcome.clone().expect("waited until there is one")
    }
}

/// Tells those that wait.
struct Ending<'a, K: Eq + Hash> {
    flight: &'a SingleFlight<K>,
    key: &'a K,
    running: &'a Running,
}

impl<K: Eq + Hash> Ending<'_, K> {
    fn with(self, outcome: Outcome) {
        *lock(&self.running.outcome) = Some(outcome);
    }
}

impl<K: Eq + Hash> Drop for Ending<'_, K> {
    fn drop(&mut self) {
        // First off the list: who asks from now on looks for itself again.
        lock(&self.flight.running).remove(self.key);
        lock(&self.running.outcome).get_or_insert_with(|| Err(Arc::new(Error::Ended)));
        self.running.ended.notify_all();
    }
}
