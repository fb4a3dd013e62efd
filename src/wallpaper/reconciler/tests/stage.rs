//! A simulated screen: which worker shows what on which output, and what lies above it. Its backends
//! carry out an order when a test says so, with the outcome that the test names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crossbeam_channel::Sender;

use super::PATIENCE;
use crate::backends::{self, Backend, Placement, registration};
use crate::config::BackendName::Mpvpaper;
use crate::sys::Cancel;
use crate::wallpaper::worker_key::WorkerKey;

/// How an order ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    Done,
    /// The output is off: the picture is not visible yet, if the backend notices.
    Dark,
    Refused,
    Away,
    Panics,
}

/// What a worker shows on an output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Surface {
    pub(super) image_id: i64,
    pub(super) content: String,
    pub(super) is_visible: bool,
    pub(super) is_unseen: bool,
    /// Newer surfaces lie above older ones.
    pub(super) age: u64,
}

#[derive(Default)]
pub(super) struct Screen {
    /// The connected outputs with their instances.
    pub(super) outputs: BTreeMap<String, u64>,
    pub(super) surfaces: BTreeMap<WorkerKey, BTreeMap<String, Surface>>,
    /// The workers whose backends have an order and wait for its outcome.
    waiting: BTreeSet<WorkerKey>,
    outcomes: BTreeMap<WorkerKey, Outcome>,
    age: u64,
    /// The number of orders so far.
    pub(super) orders: usize,
    pub(super) trace: Vec<String>,
}

impl Screen {
    pub(super) fn connect(&mut self, output: &str, instance: u64) {
        self.disconnect(output);
        self.outputs.insert(output.to_owned(), instance);
    }

    pub(super) fn disconnect(&mut self, output: &str) {
        self.outputs.remove(output);
        for shown in self.surfaces.values_mut() {
            shown.remove(output);
        }
        self.surfaces.retain(|_, shown| !shown.is_empty());
    }

    /// What is visible on an output, the uppermost last.
    pub(super) fn visible(&self, output: &str) -> Vec<(&WorkerKey, &Surface)> {
        let on = |(key, shown)| Some((key, BTreeMap::get(shown, output)?));
        let mut all: Vec<(&WorkerKey, &Surface)> = self.surfaces.iter().filter_map(on).collect();
        all.retain(|(_, surface)| surface.is_visible);
        all.sort_by_key(|(_, surface)| surface.age);
        all
    }

    /// The outputs on which something is visible.
    pub(super) fn covered(&self) -> BTreeSet<(String, u64)> {
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|(name, instance)| (name.clone(), *instance));
        outputs
            .filter(|(name, _)| !self.visible(name).is_empty())
            .collect()
    }

    /// The workers with a picture that is not visible yet.
    pub(super) fn unseen(&self) -> Vec<WorkerKey> {
        let waits = |shown: &BTreeMap<String, Surface>| shown.values().any(|one| one.is_unseen);
        let all = self.surfaces.iter().filter(|(_, shown)| waits(shown));
        all.map(|(key, _)| key.clone()).collect()
    }

    fn show(&mut self, key: &WorkerKey, placements: &[Placement], is_dark: bool, renew: bool) {
        self.age += 1;
        let before = self.surfaces.remove(key).unwrap_or_default();
        let same = |placement: &Placement| {
            let old = before.get(&placement.output.name);
            old.is_some_and(|old| {
                (old.image_id, &old.content) == (placement.image_id, &placement.content)
            })
        };
        let differs = placements.len() != before.len() || !placements.iter().all(same);
        let restarts = registration(key.backend).restarts_with_each_change && (differs || renew);
        let mut now = BTreeMap::new();
        for placement in placements {
            let name = &placement.output.name;
            let instance = placement.output.instance;
            if self.outputs.get(name) != Some(&instance) {
                continue;
            }
            let old = before.get(name);
            let stays = same(placement) && !renew;
            let waits = if stays {
                old.is_some_and(|old| old.is_unseen)
            } else {
                is_dark && key.backend == Mpvpaper
            };
            let surface = Surface {
                image_id: placement.image_id,
                content: placement.content.clone(),
                is_visible: !waits || old.is_some_and(|old| old.is_visible),
                is_unseen: waits,
                age: old.filter(|_| !restarts).map_or(self.age, |old| old.age),
            };
            now.insert(name.clone(), surface);
        }
        if !now.is_empty() {
            self.surfaces.insert(key.clone(), now);
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct Stage(Arc<(Mutex<Screen>, Condvar)>);

impl Stage {
    pub(super) fn screen(&self) -> MutexGuard<'_, Screen> {
        self.0.0.lock().unwrap()
    }

    /// Waits until a worker's backend has got its order.
    pub(super) fn wait_for(&self, key: &WorkerKey) {
        let (screen, changed) = &*self.0;
        let lacks = |screen: &mut Screen| !screen.waiting.contains(key);
        let waited = changed.wait_timeout_while(screen.lock().unwrap(), PATIENCE, lacks);
        assert!(!waited.unwrap().1.timed_out(), "{key} gets no order");
    }

    /// Lets a worker's order end.
    pub(super) fn end(&self, key: &WorkerKey, outcome: Outcome) {
        self.screen().outcomes.insert(key.clone(), outcome);
        self.0.1.notify_all();
    }

    pub(super) fn backend(&self, key: &WorkerKey, bell: Sender<()>) -> Box<dyn Backend> {
        Box::new(StageBackend {
            key: key.clone(),
            stage: self.clone(),
            renew: false,
            _bell: bell,
        })
    }

    fn outcome(
        &self,
        key: &WorkerKey,
        placements: &[Placement],
        cancel: &Cancel,
    ) -> Option<Outcome> {
        let (screen, changed) = &*self.0;
        let mut screen = screen.lock().unwrap();
        screen.orders += 1;
        let one = |one: &Placement| {
            format!(
                " {}#{}={}",
                one.output.name, one.output.instance, one.image_id
            )
        };
        let shown: String = placements.iter().map(one).collect();
        screen.trace.push(format!("  {key}:{shown}"));
        screen.waiting.insert(key.clone());
        changed.notify_all();
        while !screen.outcomes.contains_key(key) && !cancel.is_cancelled() {
            let waited = changed.wait_timeout(screen, Duration::from_millis(2));
            screen = waited.unwrap().0;
        }
        screen.waiting.remove(key);
        let outcome = screen.outcomes.remove(key);
        screen.trace.push(format!("  {key}: {outcome:?}"));
        outcome
    }
}

struct StageBackend {
    key: WorkerKey,
    stage: Stage,
    renew: bool,
    /// Keeps the channel of its worker open.
    _bell: Sender<()>,
}

impl Backend for StageBackend {
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), backends::Error> {
        let outcome = self.stage.outcome(&self.key, placements, cancel);
        let renew = std::mem::take(&mut self.renew);
        let gone = placements.iter().find(|one| !one.path.exists());
        match (outcome, gone) {
            (None, _) => Err(backends::Error::Cancelled),
            (Some(Outcome::Refused), _) => Err(backends::Error::Refused("on purpose".to_owned())),
            (Some(Outcome::Away), _) => Err(backends::Error::Unavailable("on purpose".to_owned())),
            (Some(Outcome::Panics), _) => panic!("on purpose"),
            (Some(_), Some(gone)) if registration(self.key.backend).restarts_with_each_change => {
                let path = gone.path.clone();
                let why = "no such file".to_owned();
                Err(backends::Error::File { path, why })
            }
            (Some(outcome), _) => {
                let is_dark = outcome == Outcome::Dark;
                self.stage
                    .screen()
                    .show(&self.key, placements, is_dark, renew);
                Ok(())
            }
        }
    }

    fn renew(&mut self) {
        self.renew = true;
    }

    fn unseen(&mut self) -> Vec<String> {
        let screen = self.stage.screen();
        let shown = screen.surfaces.get(&self.key).into_iter().flatten();
        let waiting = shown.filter(|(_, surface)| surface.is_unseen);
        waiting.map(|(name, _)| name.clone()).collect()
    }

    fn pause(&mut self, _: &BTreeSet<String>, _: &Cancel) -> Result<(), backends::Error> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), backends::Error> {
        let mut screen = self.stage.screen();
        screen.orders += 1;
        screen.surfaces.remove(&self.key);
        screen.trace.push(format!("  {}: cleared", self.key));
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}
