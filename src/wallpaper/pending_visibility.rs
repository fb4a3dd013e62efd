//! Keeps the old picture while a worker's new one is not visible yet, as its output is off or
//! covered: pure.

use std::collections::BTreeMap;

use super::plan::{Placements, Step, WorkerKey, names};
use crate::backends::{Placement, registration};

/// The outputs on which nothing of what a worker shows was seen yet.
pub(super) type PendingVisibility = BTreeMap<WorkerKey, Vec<String>>;

/// The same for workers that are not tried now, as they have failed: wherever they should show
/// something.
pub(super) fn untried(
    desired: &Placements,
    may_try: impl Fn(&WorkerKey) -> bool,
) -> PendingVisibility {
    let resting = desired.iter().filter(|(key, _)| !may_try(key));
    resting.map(|(key, placements)| (key.clone(), names(placements))).collect()
}

/// Adds to `desired` what others show now where a worker is not seen yet: without it the screen might
/// be found empty. Backends that restart with a change go on as they are elsewhere, too: they would
/// come to lie over what waits.
pub(super) fn keep_until_seen(
    current: &Placements,
    desired: &mut Placements,
    unseen: &PendingVisibility,
) {
    for (key, name) in unseen.iter().flat_map(|(key, names)| names.iter().map(move |n| (key, n))) {
        if desired.get(key).is_none_or(|placements| on(placements, name).is_none()) {
            continue;
        }
        for (other, placements) in current.iter().filter(|(other, _)| *other != key) {
            if on(placements, name).is_none() {
                continue;
            }
            let whole = registration(other.backend).begins_anew;
            for old in placements.iter().filter(|old| whole || old.output.name == *name) {
                keep(old, other, desired);
            }
        }
    }
}

/// Keeps a worker's placement, but for what is desired of it on that output, and only while something
/// is desired there at all: else it is not connected.
fn keep(old: &Placement, key: &WorkerKey, desired: &mut Placements) {
    let name = old.output.name.as_str();
    let Some(output) = desired.values().find_map(|all| Some(on(all, name)?.output.clone())) else {
        return;
    };
    let kept = desired.entry(key.clone()).or_default();
    if on(kept, name).is_none() {
        kept.push(Placement { output, ..old.clone() });
        kept.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
}

fn on<'a>(placements: &'a [Placement], name: &str) -> Option<&'a Placement> {
    placements.iter().find(|placement| placement.output.name == name)
}

/// The workers that are not seen yet where a step, which is done, may have brought up new surfaces:
/// they lie beneath them.
pub(super) fn buried(step: &Step, unseen: &PendingVisibility) -> Vec<WorkerKey> {
    let covers = if registration(step.key().backend).begins_anew { step.covers() } else { vec![] };
    let others = unseen.iter().filter(|(key, _)| *key != step.key());
    let buried = others.filter(|(_, names)| names.iter().any(|name| covers.contains(name)));
    buried.map(|(key, _)| key.clone()).collect()
}

/// Whether a step takes something away where another worker is not seen yet.
pub(super) fn uncovers(step: &Step, current: &Placements, unseen: &PendingVisibility) -> bool {
    let stays = match step {
        Step::Show { placements, .. } => placements.as_slice(),
        Step::Clear { .. } => &[],
    };
    let goes = |name: &String| {
        let shown = current.get(step.key()).into_iter().flatten();
        shown.into_iter().any(|placement| placement.output.name == *name)
            && stays.iter().all(|placement| placement.output.name != *name)
    };
    unseen.iter().any(|(key, names)| key != step.key() && names.iter().any(goes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName::{Awww, Mpvpaper, Swaybg};
    use crate::wallpaper::plan::steps;
    use crate::wallpaper::plan::tests::{current, show};

    #[test]
    fn what_is_not_seen_yet_takes_the_place_of_nothing() {
        let before = current(&[(Swaybg, &[("A", 1), ("B", 1)]), (Mpvpaper, &[("A", 2)])]);
        let after = current(&[(Swaybg, &[("B", 1)]), (Mpvpaper, &[("A", 2)])]);
        let unseen =
            PendingVisibility::from([(WorkerKey::of(Mpvpaper, "A"), vec!["A".to_owned()])]);
        let mut desired = after.clone();
        keep_until_seen(&before, &mut desired, &unseen);
        assert_eq!(desired, before);
        let [step] = &steps(&before, &after)[..] else { panic!("one step") };
        assert!(uncovers(step, &before, &unseen));
        assert!(!uncovers(step, &before, &PendingVisibility::new()));
        // Nothing goes where it stays, where it never was, and for the sake of the worker itself.
        for (backend, output) in [(Mpvpaper, "B"), (Mpvpaper, "C"), (Swaybg, "A")] {
            let unseen = PendingVisibility::from([(
                WorkerKey::of(backend, output),
                vec![output.to_owned()],
            )]);
            assert!(!uncovers(step, &before, &unseen), "{backend:?} on {output}");
        }
        // A placement that is not desired any more covers nothing.
        let mut desired = current(&[(Awww, &[("A", 3)])]);
        keep_until_seen(&before, &mut desired, &unseen);
        assert_eq!(desired, current(&[(Awww, &[("A", 3)])]));
    }

    #[test]
    fn what_begins_anew_stays_whole_over_a_film_that_waits() {
        let films: (_, &[_]) = (Mpvpaper, &[("A", 2), ("B", 2)]);
        let unseen =
            PendingVisibility::from([(WorkerKey::of(Mpvpaper, "B"), vec!["B".to_owned()])]);
        let kept = |backend, outputs: &[_], desired: &[_]| {
            let mut desired = current(desired);
            keep_until_seen(&current(&[(backend, outputs)]), &mut desired, &unseen);
            desired
        };
        // One that is gone is not kept.
        let all = kept(Swaybg, &[("A", 1), ("B", 1), ("GONE", 1)], &[films]);
        assert_eq!(all, current(&[(Swaybg, &[("A", 1), ("B", 1)]), films]));
        // A picture for another output comes, and the video has to be shown again above it.
        let (asked, film) = ((Swaybg, &[("A", 3)][..]), (Mpvpaper, &[("B", 2)][..]));
        let all = kept(Swaybg, &[("A", 1), ("B", 1)], &[asked, film]);
        assert_eq!(all, current(&[(Swaybg, &[("A", 3), ("B", 1)]), film]));
        assert_eq!(buried(&show(Swaybg, &["A", "B"]), &unseen), [WorkerKey::of(Mpvpaper, "B")]);
        for step in [show(Swaybg, &["A"]), show(Awww, &["A", "B"]), show(Mpvpaper, &["B"])] {
            assert_eq!(buried(&step, &unseen), [], "{step:?}");
        }
        // Others change what is there.
        let all = kept(Awww, &[("A", 1), ("B", 1)], &[films]);
        assert_eq!(all, current(&[(Awww, &[("B", 1)]), films]));
    }

    #[test]
    fn worker_that_is_not_tried_shows_nothing_anywhere() {
        let desired = current(&[(Swaybg, &[("A", 1), ("B", 1)]), (Mpvpaper, &[("C", 1)])]);
        let resting = untried(&desired, |key| key.backend == Mpvpaper);
        let both = vec!["A".to_owned(), "B".to_owned()];
        assert_eq!(resting, PendingVisibility::from([(WorkerKey::of(Swaybg, "A"), both)]));
        assert_eq!(untried(&desired, |_| true), PendingVisibility::new());
    }
}
