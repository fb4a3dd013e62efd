//! Plans the steps from what is shown to what should be shown. Pure.
//!
//! The order of the steps keeps every output covered: a worker that gains an output shows its picture
//! before the worker that loses the output removes its own.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::backends::{Placement, registration};
use crate::compositor::Output;
use crate::config::BackendName;

/// The placements that each worker shows, or should; an entry for every worker that shows anything.
pub(super) type Placements = BTreeMap<WorkerKey, Vec<Placement>>;

/// Everything that a worker should show; without placements, it should show nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) key: WorkerKey,
    pub(super) placements: Vec<Placement>,
}

/// The steps from `current` to `desired`.
pub(super) fn steps(current: &Placements, desired: &Placements) -> Vec<Step> {
    let changed = desired
        .iter()
        .filter(|(key, placements)| current.get(*key) != Some(placements));
    let (mut gaining, losing): (Vec<_>, Vec<_>) = changed.partition(|(key, placements)| {
        let before = current.get(*key).map_or(&[][..], Vec::as_slice);
        placements
            .iter()
            .any(|placement| !before.contains(placement))
    });
    // A worker that also leaves outputs comes after the workers that cover these outputs.
    gaining.sort_by_key(|(key, placements)| {
        let kept = names(placements);
        let mut before = current.get(*key).into_iter().flatten();
        before.any(|placement| !kept.contains(&placement.output.name))
    });
    let show = |(key, placements): (&WorkerKey, &Vec<Placement>)| Step {
        key: key.clone(),
        placements: placements.clone(),
    };
    let cleared = current.keys().filter(|key| !desired.contains_key(*key));
    let clear = |key: &WorkerKey| Step {
        key: key.clone(),
        placements: Vec::new(),
    };
    gaining
        .into_iter()
        .chain(losing)
        .map(show)
        .chain(cleared.map(clear))
        .collect()
}

/// Makes sure that a worker gets an order, even if what it shows does not change.
pub(super) fn force(steps: &mut Vec<Step>, desired: &Placements, key: &WorkerKey) {
    let has_step = steps.iter().any(|step| step.key == *key);
    if let (false, Some(placements)) = (has_step, desired.get(key)) {
        steps.insert(
            0,
            Step {
                key: key.clone(),
                placements: placements.clone(),
            },
        );
    }
}

/// Adds to `desired` what is shown on connected outputs on which nothing else is desired. A picture
/// stays until another replaces it, even if its image has left the library, and follows changes of its
/// output.
pub(super) fn keep_current(current: &Placements, desired: &mut Placements, outputs: &[Output]) {
    for (key, placements) in current {
        for placement in placements {
            let name = placement.output.name.as_str();
            let taken = desired
                .values()
                .flatten()
                .any(|other| other.output.name == name);
            let output = outputs.iter().find(|output| output.name == name);
            if let (false, Some(output)) = (taken, output) {
                let placement = Placement {
                    output: output.clone(),
                    ..placement.clone()
                };
                desired.entry(key.clone()).or_default().push(placement);
            }
        }
    }
    for placements in desired.values_mut() {
        placements.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
}

/// Moves all placements to a backend that covers every output, if one is desired: other backends would
/// be hidden beneath its windows. A backend that waits for a retry does not count.
pub(super) fn gather(desired: &mut Placements, may_try: impl Fn(&WorkerKey) -> bool) {
    let covers = |key: &&WorkerKey| registration(key.backend).covers_all && may_try(key);
    let Some(over) = desired.keys().find(covers).cloned() else {
        return;
    };
    let all = std::mem::take(desired).into_values().flatten();
    let mut all: Vec<Placement> = all.collect();
    all.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    desired.insert(over, all);
}

pub(super) fn names(placements: &[Placement]) -> Vec<String> {
    placements
        .iter()
        .map(|placement| placement.output.name.clone())
        .collect()
}

/// Finds the placement of the same picture on the same output, perhaps with another content.
pub(super) fn same_picture<'a>(shown: &'a [Placement], new: &Placement) -> Option<&'a Placement> {
    let is_it = |old: &&Placement| {
        (old.image_id, &old.output.name) == (new.image_id, &new.output.name)
            && old.extended_over == new.extended_over
    };
    shown.iter().find(is_it)
}

/// The contents of files that the worker shows with another content.
pub(super) fn rewritten(
    current: &Placements,
    key: &WorkerKey,
    placements: &[Placement],
) -> Vec<String> {
    let shown = || current.get(key).into_iter().flatten();
    let is_other =
        |new: &&Placement| shown().any(|old| old.path == new.path && old.content != new.content);
    placements
        .iter()
        .filter(is_other)
        .map(|placement| placement.content.clone())
        .collect()
}

/// The outputs on which a step may change something.
pub(super) fn outputs_of<'a>(step: &'a Step, current: &'a Placements) -> Vec<&'a str> {
    let shown = current.get(&step.key).into_iter().flatten();
    step.placements
        .iter()
        .chain(shown)
        .map(|placement| placement.output.name.as_str())
        .collect()
}

/// Moves from `steps` to `later` the steps that share an output with a step in `later`, except those of
/// the workers in `asked`. Otherwise a worker could leave an output that another has not covered yet.
pub(super) fn with_dependants(
    mut later: Vec<Step>,
    steps: &mut Vec<Step>,
    asked: &[WorkerKey],
    current: &Placements,
) -> Vec<Step> {
    loop {
        let outputs: Vec<&str> = later
            .iter()
            .flat_map(|step| outputs_of(step, current))
            .collect();
        let depends = |step: &mut Step| {
            let shares = |name: &&str| outputs.contains(name);
            !asked.contains(&step.key) && outputs_of(step, current).iter().any(shares)
        };
        let more: Vec<Step> = steps.extract_if(.., depends).collect();
        if more.is_empty() {
            return later;
        }
        later.extend(more);
    }
}

/// Splits steps into groups that need not wait for each other. Steps of one backend, and steps that
/// share an output, stay together in their order.
pub(super) fn groups(steps: Vec<Step>, current: &Placements) -> Vec<Vec<Step>> {
    let mut groups: Vec<Vec<(usize, Step)>> = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        let outputs = outputs_of(&step, current);
        let belongs = |(_, other): &(usize, Step)| {
            other.key.backend == step.key.backend
                || outputs_of(other, current)
                    .iter()
                    .any(|name| outputs.contains(name))
        };
        let joined = groups
            .extract_if(.., |group| group.iter().any(belongs))
            .flatten();
        let mut group: Vec<_> = joined.collect();
        group.push((number, step));
        groups.push(group);
    }
    let in_order = |mut group: Vec<(usize, Step)>| {
        group.sort_by_key(|(number, _)| *number);
        group.into_iter().map(|(_, step)| step).collect()
    };
    groups.into_iter().map(in_order).collect()
}

pub(super) fn are_apart(some: &[String], others: &[&str]) -> bool {
    some.iter().all(|name| !others.contains(&name.as_str()))
}

/// A backend, or its process on one output if each output has a process of its own. Workers do
/// not wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct WorkerKey {
    pub(super) backend: BackendName,
    pub(super) output: Option<String>,
}

impl WorkerKey {
    /// The worker that shows something on this output.
    pub(super) fn of(backend: BackendName, output: &str) -> Self {
        let apart = registration(backend).apart;
        Self {
            backend,
            output: apart.then(|| output.to_owned()),
        }
    }

    /// Whether this is its backend's worker for this output.
    pub(super) fn serves(&self, output: &str) -> bool {
        self.output.as_deref().is_none_or(|own| own == output)
    }
}

impl fmt::Display for WorkerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.output {
            Some(output) => write!(f, "{} on {output}", self.backend),
            None => write!(f, "{}", self.backend),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::backends::Kind;
    use crate::config::BackendName::{self, Awww, Feh, Mpvpaper, Swaybg, WalQt};

    pub(in crate::wallpaper) fn placement(output: &str, image_id: i64) -> Placement {
        Placement {
            output: Output::plain(output),
            image_id,
            path: "/x.png".into(),
            content: String::new(),
            kind: Kind::StaticImage,
            audio_enabled: false,
            web: None,
            extended_over: Vec::new(),
            span: Vec::new(),
            fit: None,
            position: None,
            sound: None,
        }
    }

    pub(in crate::wallpaper) fn current(entries: &[(BackendName, &[(&str, i64)])]) -> Placements {
        let mut current = Placements::new();
        for &(backend, placements) in entries {
            for &(output, image_id) in placements {
                let key = WorkerKey::of(backend, output);
                current
                    .entry(key)
                    .or_default()
                    .push(placement(output, image_id));
            }
        }
        current
    }

    #[test]
    fn backend_that_covers_every_output_gets_all_placements() {
        let apart = || current(&[(Swaybg, &[("A", 1), ("C", 3)]), (WalQt, &[("B", 2)])]);
        let check = |may_try, expected| {
            let mut desired = apart();
            gather(&mut desired, |_| may_try);
            assert_eq!(desired, expected);
        };
        check(true, current(&[(WalQt, &[("A", 1), ("B", 2), ("C", 3)])]));
        check(false, apart());
        let mut others = current(&[(Swaybg, &[("A", 1)]), (Mpvpaper, &[("B", 2)])]);
        gather(&mut others, |_| true);
        assert_eq!(others.len(), 2);
    }

    #[test]
    fn gaining_backend_comes_before_the_losing_one() {
        let check = |before: &Placements, after: &Placements, expected: &[(&str, BackendName)]| {
            let steps = steps(before, after);
            let seen: Vec<_> = steps
                .iter()
                .map(|step| match step.placements.is_empty() {
                    false => ("show", step.key.backend),
                    true => ("clear", step.key.backend),
                })
                .collect();
            assert_eq!(seen, expected);
        };
        let one = current(&[(Swaybg, &[("A", 1), ("B", 1)])]);
        check(&one, &one, &[]);
        check(&current(&[]), &one, &[("show", Swaybg)]);
        let split = current(&[(Mpvpaper, &[("A", 2)]), (Swaybg, &[("B", 1)])]);
        check(&one, &split, &[("show", Mpvpaper), ("show", Swaybg)]);
        check(&split, &one, &[("show", Swaybg), ("clear", Mpvpaper)]);
        // A worker that gains one output and leaves another comes after the one that covers the other.
        let (awww, moved) = (
            current(&[(Awww, &[("A", 1), ("B", 1)])]),
            current(&[(Awww, &[("A", 2)]), (Mpvpaper, &[("B", 2)])]),
        );
        check(&awww, &moved, &[("show", Mpvpaper), ("show", Awww)]);
        let other = current(&[(Awww, &[("B", 1)]), (Swaybg, &[("A", 1)])]);
        check(&one, &other, &[("show", Awww), ("show", Swaybg)]);
        // If each output has its own worker, only workers that differ get an order.
        let videos = current(&[(Mpvpaper, &[("A", 1), ("B", 2), ("C", 3)])]);
        let others = current(&[(Mpvpaper, &[("A", 1), ("B", 4)])]);
        check(&videos, &others, &[("show", Mpvpaper), ("clear", Mpvpaper)]);
    }

    #[test]
    fn shown_picture_stays_until_it_is_replaced() {
        let before = current(&[(Feh, &[("A", 1), ("B", 2), ("GONE", 3)])]);
        let mut desired = current(&[(Swaybg, &[("A", 9)])]);
        let mut outputs = ["A", "B"].map(|name| placement(name, 0).output);
        outputs[1].x = 1920;
        keep_current(&before, &mut desired, &outputs);
        let mut expected = current(&[(Feh, &[("B", 2)]), (Swaybg, &[("A", 9)])]);
        expected.get_mut(&WorkerKey::of(Feh, "B")).unwrap()[0]
            .output
            .x = 1920;
        assert_eq!(desired, expected);
    }

    pub(in crate::wallpaper) fn show(backend: BackendName, outputs: &[&str]) -> Step {
        let placements = outputs.iter().map(|name| placement(name, 1)).collect();
        Step {
            key: WorkerKey::of(backend, outputs[0]),
            placements,
        }
    }

    fn clear(backend: BackendName, output: &str) -> Step {
        Step {
            key: WorkerKey::of(backend, output),
            placements: Vec::new(),
        }
    }

    #[test]
    fn worker_gets_one_order_even_if_nothing_differs() {
        let desired = current(&[(Swaybg, &[("A", 1)]), (Mpvpaper, &[("B", 1)])]);
        let forced = |key: WorkerKey, mut steps: Vec<Step>| {
            force(&mut steps, &desired, &key);
            steps
        };
        let (swaybg, mpv) = (show(Swaybg, &["A"]), show(Mpvpaper, &["B"]));
        assert_eq!(
            forced(WorkerKey::of(Swaybg, "A"), vec![]),
            std::slice::from_ref(&swaybg)
        );
        let first = forced(WorkerKey::of(Swaybg, "A"), vec![mpv.clone()]);
        assert_eq!(first, [swaybg.clone(), mpv.clone()]);
        assert_eq!(
            forced(WorkerKey::of(Mpvpaper, "B"), vec![mpv.clone()]),
            [mpv]
        );
        assert_eq!(forced(WorkerKey::of(Feh, "A"), vec![]), []);
    }

    #[test]
    fn file_is_rewritten_if_its_path_has_another_content() {
        let with = |path: &str, content: &str| Placement {
            path: path.into(),
            content: content.to_owned(),
            ..placement("A", 1)
        };
        let key = WorkerKey::of(Swaybg, "A");
        let before = Placements::from([(key.clone(), vec![with("/a", "1"), with("/b", "1")])]);
        let now = |new: &[Placement]| rewritten(&before, &key, new);
        assert_eq!(
            now(&[with("/a", "2"), with("/b", "1"), with("/c", "3")]),
            ["2"]
        );
        assert_eq!(now(&[with("/a", "1")]), [""; 0]);
        assert_eq!(
            rewritten(&before, &WorkerKey::of(Feh, "A"), &[with("/a", "2")]),
            [""; 0]
        );
    }

    #[test]
    fn steps_wait_with_the_step_they_depend_on() {
        let before = current(&[(Swaybg, &[("A", 1), ("B", 1)]), (Mpvpaper, &[("C", 1)])]);
        assert_eq!(outputs_of(&show(Feh, &["D"]), &before), ["D"]);
        assert_eq!(outputs_of(&clear(Swaybg, "A"), &before), ["A", "B"]);
        let waits = || vec![show(Mpvpaper, &["A"])];
        let all = || vec![clear(Swaybg, "A"), show(Feh, &["B"]), clear(Mpvpaper, "C")];
        let mut steps = all();
        // A worker that leaves A waits for the worker that covers A, and so does the one after it.
        let later = with_dependants(waits(), &mut steps, &[], &before);
        assert_eq!(later, [waits(), all()[..2].to_vec()].concat());
        assert_eq!(steps, all()[2..]);
        let mut steps = all();
        let asked = [WorkerKey::of(Swaybg, "A")];
        assert_eq!(
            with_dependants(waits(), &mut steps, &asked, &before),
            waits()
        );
        assert_eq!(steps, all());
    }

    #[test]
    fn steps_that_have_nothing_in_common_do_not_wait_for_each_other() {
        let before = current(&[(Swaybg, &[("A", 1)])]);
        let parts = |steps: &[Step]| groups(steps.to_vec(), &before);
        let (a, b) = (show(Mpvpaper, &["A"]), show(Mpvpaper, &["B"]));
        let (c, d) = (show(Awww, &["C"]), show(Feh, &["D"]));
        let apart = [a.clone(), c.clone(), d.clone()];
        assert_eq!(parts(&apart), apart.clone().map(|step| vec![step]));
        // Steps of one backend stay together, even if others are between them.
        let joined = [vec![c.clone()], vec![a.clone(), b.clone()]];
        assert_eq!(parts(&[a.clone(), c.clone(), b.clone()]), joined);
        // The step that leaves A stays with the step that covers A.
        let goes = clear(Swaybg, "A");
        assert_eq!(
            parts(&[a.clone(), goes.clone()]),
            [vec![a.clone(), goes.clone()]]
        );
        // A step that shares something with two groups joins them, in the order of the steps.
        let both = show(Awww, &["D", "A"]);
        let all = vec![a, d, c, both];
        assert_eq!(parts(&all), [all]);
    }

    #[test]
    fn monitors_are_apart_if_none_is_in_both() {
        let some = ["A".to_owned(), "B".to_owned()];
        assert!(are_apart(&some, &["C"]) && are_apart(&[], &["C"]) && are_apart(&some, &[]));
        assert!(!are_apart(&some, &["C", "B"]));
    }

    #[test]
    fn worker_serves_one_output_if_its_backend_has_one_for_each() {
        let [video, still] =
            [BackendName::Mpvpaper, BackendName::Swaybg].map(|name| WorkerKey::of(name, "A"));
        let serves = |key: &WorkerKey| ["A", "B"].map(|output| key.serves(output));
        assert_eq!(
            (serves(&video), video.to_string().as_str()),
            ([true, false], "mpvpaper on A")
        );
        assert_eq!(
            (serves(&still), still.to_string().as_str()),
            ([true, true], "swaybg")
        );
    }
}
