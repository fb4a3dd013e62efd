//! Decides on which outputs videos and HTML wallpapers are paused, and which of their processes use too
//! much memory. Pure.
//!
//! A pause holds for all outputs, except those that were set since it began. A video that a window
//! covers is always paused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::plan::WorkerKey;
use crate::backends::{Kind, Placement};
use crate::process::Identity;
use crate::wire::PauseReason;

pub(super) type PausedOutputs = BTreeMap<String, PauseReason>;

#[derive(Debug, Default)]
pub(super) struct Pause {
    /// The reason, if there is a pause. The outer `None` means that the playlists have not reported yet;
    /// until then, what an earlier daemon paused stays as it is.
    active: Option<Option<PauseReason>>,
    /// The outputs that were set since the pause began.
    asked: BTreeSet<String>,
    /// The outputs that a window covers; `None` until they are known.
    pub(super) covered: Option<BTreeSet<String>>,
}

impl Pause {
    /// Begins or ends the pause.
    pub(super) fn set(&mut self, reason: Option<PauseReason>) {
        let before = self.active.replace(reason).flatten();
        if before.is_some() != reason.is_some() {
            self.asked.clear();
        }
    }

    /// Whether it is known for every video if it should be paused.
    pub(super) fn is_known(&self) -> bool {
        self.active
            .is_some_and(|reason| reason.is_some() || self.covered.is_some())
    }

    /// Notes that a request has set these outputs.
    pub(super) fn note_asked(&mut self, outputs: &[String]) {
        if self.active.flatten().is_some() {
            self.asked.extend(outputs.iter().cloned());
        }
    }

    /// The outputs to pause, and why; `asking` are the outputs of the request in progress.
    pub(super) fn paused(&self, shown: &[Placement], asking: &[String]) -> PausedOutputs {
        let is_asked = |name: &String| self.asked.contains(name) || asking.contains(name);
        let is_covered =
            |name: &String| self.covered.as_ref().is_some_and(|all| all.contains(name));
        let reason = |one: &Placement| match (one.kind, self.active.flatten()) {
            (Kind::Video | Kind::Web, Some(reason)) if !is_asked(&one.output.name) => Some(reason),
            (Kind::Video, _) if is_covered(&one.output.name) => Some(PauseReason::Covered),
            _ => None,
        };
        let paused = shown
            .iter()
            .filter_map(|one| Some((one.output.name.clone(), reason(one)?)));
        paused.collect()
    }
}

const EVERY: Duration = Duration::from_secs(30);
/// The time between two replacements of a worker's process, which may grow again at once.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// A worker, one of its processes, and the memory of the process in KiB.
pub(super) type ProcessMemory = (WorkerKey, Identity, u64);

#[derive(Debug)]
pub(super) struct Children {
    every: Duration,
    next: Option<Instant>,
    /// Processes that were above the limit at the last check. Once is not enough, as it may be a short
    /// peak.
    above: Vec<Identity>,
    replaced: BTreeMap<WorkerKey, Instant>,
}

impl Children {
    /// `every` replaces the half minute between two checks.
    pub(super) fn new(every: Option<Duration>) -> Self {
        let (every, replaced) = (every.unwrap_or(EVERY), BTreeMap::new());
        Self {
            every,
            next: None,
            above: Vec::new(),
            replaced,
        }
    }

    /// The time of the next check; `None` if no check is wanted.
    pub(super) fn next_look(&mut self, is_wanted: bool, now: Instant) -> Option<Instant> {
        if is_wanted {
            return Some(*self.next.get_or_insert(now + self.every));
        }
        self.above.clear();
        self.next = None;
        None
    }

    /// Notes the memory of the processes; returns those that are to be replaced.
    pub(super) fn look(
        &mut self,
        seen: &[ProcessMemory],
        limit_kb: u64,
        now: Instant,
    ) -> Vec<ProcessMemory> {
        self.next = None;
        let above: Vec<&ProcessMemory> = seen.iter().filter(|(_, _, kb)| *kb > limit_kb).collect();
        let mut replaced = Vec::new();
        for &one in &above {
            let (key, who, _) = one;
            let before = self.replaced.get(key);
            if self.above.contains(who) && before.is_none_or(|at| now >= *at + AGAIN_AFTER) {
                self.replaced.insert(key.clone(), now);
                replaced.push(one.clone());
            }
        }
        self.above = above.iter().map(|(_, who, _)| *who).collect();
        replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName;
    use crate::wallpaper::plan::tests::placement;

    #[test]
    fn video_set_during_a_pause_plays_until_the_next_pause() {
        let video = |output| Placement {
            kind: Kind::Video,
            ..placement(output, 1)
        };
        let shown = ["A", "B", "C"].map(video);
        let mut pause = Pause::default();
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let check = |pause: &Pause, asking: &[&str], expected: &[&str]| {
            let paused = pause.paused(&shown, &names(asking));
            assert!(paused.keys().eq(expected), "{paused:?}");
        };
        pause.note_asked(&names(&["A"]));
        check(&pause, &[], &[]);
        pause.set(Some(PauseReason::Idle));
        check(&pause, &[], &["A", "B", "C"]);
        check(&pause, &["B"], &["A", "C"]);
        pause.note_asked(&names(&["B"]));
        // The pause continues for another reason.
        pause.set(Some(PauseReason::Locked));
        check(&pause, &[], &["A", "C"]);
        pause.set(None);
        check(&pause, &[], &[]);
        pause.set(Some(PauseReason::Locked));
        check(&pause, &[], &["A", "B", "C"]);
        // A covered video is paused even while it is set; other wallpapers are not.
        (pause.active, pause.covered) =
            (Some(None), Some(names(&["B", "D"]).into_iter().collect()));
        check(&pause, &["B"], &["B"]);
        let page = Placement {
            kind: Kind::Web,
            ..video("B")
        };
        assert_eq!(
            pause.paused(&[page.clone(), placement("D", 1)], &[]),
            PausedOutputs::new()
        );
        pause.set(Some(PauseReason::Battery));
        assert_eq!(pause.paused(&[page], &[])["B"], PauseReason::Battery);
    }

    #[test]
    fn process_above_the_limit_twice_is_replaced_once_in_five_minutes() {
        let key = WorkerKey::of(BackendName::Mpvpaper, "DP-1");
        let other = WorkerKey::of(BackendName::Mpvpaper, "DP-2");
        let (mut children, start) = (Children::new(None), Instant::now());
        assert_eq!(children.next_look(false, start), None);
        assert_eq!(children.next_look(true, start), Some(start + EVERY));
        assert_eq!(
            children.next_look(true, start + EVERY / 2),
            Some(start + EVERY)
        );
        let who = |pid| Identity { pid, start_time: 1 };
        let mut look = |at: u64, pids: &[(i32, u64)]| {
            let seen: Vec<ProcessMemory> = pids
                .iter()
                .map(|&(pid, kb)| (key.clone(), who(pid), kb))
                .collect();
            let still = (other.clone(), who(99), 100);
            let seen = [seen, vec![still]].concat();
            let replaced = children.look(&seen, 100, start + Duration::from_secs(at));
            replaced
                .iter()
                .map(|(_, who, _)| who.pid)
                .collect::<Vec<_>>()
        };
        const NONE: [i32; 0] = [];
        assert_eq!(look(30, &[(1, 101)]), NONE);
        assert_eq!(look(60, &[(1, 100)]), NONE, "it has come down");
        assert_eq!(look(90, &[(1, 101)]), NONE);
        assert_eq!(look(120, &[(1, 500)]), [1]);
        // Its successor grows as fast.
        assert_eq!(look(150, &[(2, 500)]), NONE);
        assert_eq!(look(180, &[(2, 500)]), NONE);
        assert_eq!(look(419, &[(2, 500)]), NONE);
        assert_eq!(look(420, &[(2, 500)]), [2]);
    }
}
