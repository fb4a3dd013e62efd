//! From what is shown to what should be: pure.
//!
//! The order of the steps keeps every screen covered: a seat that gains an output shows before the
//! one that loses it lets go.

use std::collections::BTreeMap;

use crate::backends::Hanging;
use crate::compositor::Output;

use super::seat::Seat;

/// What each seat shows, or should; an entry for every seat that shows anything.
pub(super) type Shown = BTreeMap<Seat, Vec<Hanging>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// The seat's whole scene.
    Show { seat: Seat, scene: Vec<Hanging> },
    /// Nothing of this seat is wanted any more.
    Clear { seat: Seat },
}

impl Step {
    pub(super) fn seat(&self) -> &Seat {
        match self {
            Self::Show { seat, .. } | Self::Clear { seat } => seat,
        }
    }
}

/// The steps from `shown` to `wanted`.
pub(super) fn steps(shown: &Shown, wanted: &Shown) -> Vec<Step> {
    let changed = wanted.iter().filter(|(seat, scene)| shown.get(*seat) != Some(scene));
    let (gaining, losing): (Vec<_>, Vec<_>) = changed.partition(|(seat, scene)| {
        let before = shown.get(*seat).map_or(&[][..], Vec::as_slice);
        scene.iter().any(|hanging| !before.contains(hanging))
    });
    let show = |(seat, scene): (&Seat, &Vec<Hanging>)| Step::Show {
        seat: seat.clone(),
        scene: scene.clone(),
    };
    let cleared = shown.keys().filter(|seat| !wanted.contains_key(*seat));
    let mut steps: Vec<Step> = gaining.into_iter().chain(losing).map(show).collect();
    steps.extend(cleared.map(|seat| Step::Clear { seat: seat.clone() }));
    steps
}

/// Makes sure that a seat is told to show its scene, also where nothing of it differs.
pub(super) fn insist(steps: &mut Vec<Step>, wanted: &Shown, seat: &Seat) {
    let told = steps.iter().any(|step| step.seat() == seat);
    if let (false, Some(scene)) = (told, wanted.get(seat)) {
        steps.insert(0, Step::Show { seat: seat.clone(), scene: scene.clone() });
    }
}

/// Adds to `wanted` what hangs now on connected outputs that nothing else is wanted on: a picture
/// stays until another takes its place, also when its image has left the library. It follows its
/// output as the others do.
pub(super) fn keep_hanging(shown: &Shown, wanted: &mut Shown, outputs: &[Output]) {
    for (seat, scene) in shown {
        for hanging in scene {
            let name = hanging.output.name.as_str();
            let taken = wanted.values().flatten().any(|other| other.output.name == name);
            let output = outputs.iter().find(|output| output.name == name);
            if let (false, Some(output)) = (taken, output) {
                let hanging = Hanging { output: output.clone(), ..hanging.clone() };
                wanted.entry(seat.clone()).or_default().push(hanging);
            }
        }
    }
    for scene in wanted.values_mut() {
        scene.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::backends::Kind;
    use crate::config::BackendName::{self, Awww, Feh, Mpvpaper, Swaybg};

    pub(in crate::wallpaper) fn hanging(output: &str, image_id: i64) -> Hanging {
        Hanging {
            output: Output {
                name: output.to_owned(),
                description: String::new(),
                width: 1920,
                height: 1080,
                x: 0,
                y: 0,
                logical_width: 1920,
                logical_height: 1080,
                scale: 1.0,
                refresh_rate: 60.0,
                transform: 0,
                primary: false,
                instance: 0,
            },
            image_id,
            path: "/x.png".into(),
            content: String::new(),
            kind: Kind::StaticImage,
            audio_enabled: false,
            web: None,
            extended_over: Vec::new(),
        }
    }

    fn shown(entries: &[(BackendName, &[(&str, i64)])]) -> Shown {
        let mut shown = Shown::new();
        for &(backend, scene) in entries {
            for &(output, image_id) in scene {
                let seat = Seat::of(backend, output);
                shown.entry(seat).or_default().push(hanging(output, image_id));
            }
        }
        shown
    }

    #[test]
    fn what_gains_comes_before_what_lets_go() {
        let check = |before: &Shown, after: &Shown, expected: &[(&str, BackendName)]| {
            let steps = steps(before, after);
            let seen: Vec<_> = steps
                .iter()
                .map(|step| match step {
                    Step::Show { seat, .. } => ("show", seat.backend),
                    Step::Clear { seat } => ("clear", seat.backend),
                })
                .collect();
            assert_eq!(seen, expected);
        };
        let one = shown(&[(Swaybg, &[("A", 1), ("B", 1)])]);
        check(&one, &one, &[]);
        check(&shown(&[]), &one, &[("show", Swaybg)]);
        let split = shown(&[(Mpvpaper, &[("A", 2)]), (Swaybg, &[("B", 1)])]);
        check(&one, &split, &[("show", Mpvpaper), ("show", Swaybg)]);
        check(&split, &one, &[("show", Swaybg), ("clear", Mpvpaper)]);
        let other = shown(&[(Awww, &[("B", 1)]), (Swaybg, &[("A", 1)])]);
        check(&one, &other, &[("show", Awww), ("show", Swaybg)]);
        // Where each output has its own, only those that differ are told.
        let films = shown(&[(Mpvpaper, &[("A", 1), ("B", 2), ("C", 3)])]);
        let others = shown(&[(Mpvpaper, &[("A", 1), ("B", 4)])]);
        check(&films, &others, &[("show", Mpvpaper), ("clear", Mpvpaper)]);
    }

    #[test]
    fn what_hangs_stays_until_something_takes_its_place() {
        let before = shown(&[(Feh, &[("A", 1), ("B", 2), ("GONE", 3)])]);
        let mut wanted = shown(&[(Swaybg, &[("A", 9)])]);
        let mut outputs = ["A", "B"].map(|name| hanging(name, 0).output);
        outputs[1].x = 1920;
        keep_hanging(&before, &mut wanted, &outputs);
        let mut expected = shown(&[(Feh, &[("B", 2)]), (Swaybg, &[("A", 9)])]);
        expected.get_mut(&Seat::of(Feh, "B")).unwrap()[0].output.x = 1920;
        assert_eq!(wanted, expected);
    }
}
