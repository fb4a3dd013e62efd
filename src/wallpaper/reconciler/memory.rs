//! The memory of the processes that show films and pages: those that keep growing are replaced.
//!
//! Nobody looks but while one plays and the settings have a limit.

use std::time::{Duration, Instant};

use super::Reconciler;
use crate::backends::{Kind, Placement};
use crate::paths::Env;
use crate::wallpaper::children::Seen;
use crate::wallpaper::worker_key::WorkerKey;

/// Another time between two looks than half a minute: milliseconds, for tests alone.
pub(super) fn every(env: &Env) -> Option<Duration> {
    let every = env.var("MURALD_MEMORY_LOOKS")?.to_str()?.parse().ok()?;
    Some(Duration::from_millis(every))
}

impl Reconciler {
    /// When they are to be looked at next.
    pub(super) fn next_look(&mut self) -> Option<Instant> {
        let is_wanted = self.limit_kb() > 0 && self.playing().next().is_some();
        self.children.next_look(is_wanted, Instant::now())
    }

    pub(super) fn look_at_children(&mut self) {
        let running = self.backends.records.who_runs();
        let seen: Vec<Seen> = self
            .playing()
            .flat_map(|key| {
                let its = running.iter().filter(move |(backend, output, _)| {
                    *backend == key.backend.as_str() && *output == key.output
                });
                its.filter_map(move |(_, _, who)| Some((key.clone(), *who, who.memory_kb()?)))
            })
            .collect();
        for (key, who, kb) in &seen {
            log::debug!("{key} (process {}) has {} MiB", who.pid, kb >> 10);
        }
        let limit = self.limit_kb();
        let replaced = self.children.look(&seen, limit, Instant::now());
        for (key, who, kb) in &replaced {
            let (pid, has, limit) = (who.pid, kb >> 10, limit >> 10);
            log::warn!(
                "{key} (process {pid}) has {has} MiB, and power.max_child_memory_mb is {limit}: it is \
                 replaced"
            );
        }
        let keys = || replaced.iter().map(|(key, ..)| key.clone());
        self.renew.extend(keys());
        self.stale.extend(keys());
        if !replaced.is_empty() {
            self.reconcile();
        }
    }

    fn limit_kb(&self) -> u64 {
        u64::from((self.backends.settings)().power.max_child_memory_mb) << 10
    }

    /// Whose films and pages do not stand still.
    fn playing(&self) -> impl Iterator<Item = &WorkerKey> {
        let plays = |shown: &[Placement]| {
            let paused = self.rest.paused(shown, &[]);
            shown.iter().any(|one| {
                matches!(one.kind, Kind::Video | Kind::Web) && !paused.contains(&one.output.name)
            })
        };
        self.current.iter().filter(move |(_, shown)| plays(shown)).map(|(key, _)| key)
    }
}
