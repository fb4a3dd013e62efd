//! Decides on which outputs videos and HTML wallpapers are paused. Pure.
//!
//! A pause holds for all outputs, except those that were set since it began. A video that a window
//! covers is always paused.

use std::collections::{BTreeMap, BTreeSet};

use crate::backends::{Kind, Placement};
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
    pub(super) fn paused<'a>(
        &self,
        shown: impl IntoIterator<Item = &'a Placement>,
        asking: &[String],
    ) -> PausedOutputs {
        let is_asked = |name: &String| self.asked.contains(name) || asking.contains(name);
        let is_covered =
            |name: &String| self.covered.as_ref().is_some_and(|all| all.contains(name));
        let reason = |one: &Placement| match (one.kind, self.active.flatten()) {
            (Kind::Video | Kind::Web, Some(reason)) if !is_asked(&one.output.name) => Some(reason),
            (Kind::Video, _) if is_covered(&one.output.name) => Some(PauseReason::Covered),
            _ => None,
        };
        let paused = shown
            .into_iter()
            .filter_map(|one| Some((one.output.name.clone(), reason(one)?)));
        paused.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::worker_key::tests::placement;

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
}
