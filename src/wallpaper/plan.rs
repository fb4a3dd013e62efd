//! From what is shown to what should be: pure.
//!
//! The order of the steps keeps every screen covered: a backend that gains an output shows before
//! the one that loses it lets go.

use std::collections::BTreeMap;

use crate::backends::Hanging;
use crate::compositor::Output;
use crate::config::BackendName;

/// What each backend shows, or should; an entry for every backend that shows anything.
pub(super) type Shown = BTreeMap<BackendName, Vec<Hanging>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// The backend's whole scene.
    Show { backend: BackendName, scene: Vec<Hanging> },
    /// Nothing of this backend is wanted any more.
    Clear { backend: BackendName },
}

impl Step {
    pub(super) fn backend(&self) -> BackendName {
        match self {
            Self::Show { backend, .. } | Self::Clear { backend } => *backend,
        }
    }
}

/// The steps from `shown` to `wanted`.
pub(super) fn steps(shown: &Shown, wanted: &Shown) -> Vec<Step> {
    let changed = wanted.iter().filter(|(name, scene)| shown.get(*name) != Some(scene));
    let (gaining, losing): (Vec<_>, Vec<_>) = changed.partition(|(name, scene)| {
        let before = shown.get(*name).map_or(&[][..], Vec::as_slice);
        scene.iter().any(|hanging| !before.contains(hanging))
    });
    let show = |(&backend, scene): (&BackendName, &Vec<Hanging>)| Step::Show {
        backend,
        scene: scene.clone(),
    };
    let cleared = shown.keys().filter(|name| !wanted.contains_key(*name));
    let mut steps: Vec<Step> = gaining.into_iter().chain(losing).map(show).collect();
    steps.extend(cleared.map(|&backend| Step::Clear { backend }));
    steps
}

/// Makes sure that a backend is told to show its scene, also where nothing of it differs.
pub(super) fn insist(steps: &mut Vec<Step>, wanted: &Shown, backend: BackendName) {
    let told = steps.iter().any(|step| step.backend() == backend);
    if let (false, Some(scene)) = (told, wanted.get(&backend)) {
        steps.insert(0, Step::Show { backend, scene: scene.clone() });
    }
}

/// Adds to `wanted` what hangs now on connected outputs that nothing else is wanted on: a picture
/// stays until another takes its place, also when its image has left the library. It follows its
/// output as the others do.
pub(super) fn keep_hanging(shown: &Shown, wanted: &mut Shown, outputs: &[Output]) {
    for (&backend, scene) in shown {
        for hanging in scene {
            let name = hanging.output.name.as_str();
            let taken = wanted.values().flatten().any(|other| other.output.name == name);
            let output = outputs.iter().find(|output| output.name == name);
            if let (false, Some(output)) = (taken, output) {
                let hanging = Hanging { output: output.clone(), ..hanging.clone() };
                wanted.entry(backend).or_default().push(hanging);
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
    use crate::config::BackendName::{Awww, Feh, Mpvpaper, Swaybg};

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
        let scene = |hung: &[(&str, i64)]| hung.iter().map(|&(o, i)| hanging(o, i)).collect();
        entries.iter().map(|&(backend, hung)| (backend, scene(hung))).collect()
    }

    #[test]
    fn what_gains_comes_before_what_lets_go() {
        let check = |before: &Shown, after: &Shown, expected: &[(&str, BackendName)]| {
            let steps = steps(before, after);
            let seen: Vec<_> = steps
                .iter()
                .map(|step| match step {
                    Step::Show { backend, .. } => ("show", *backend),
                    Step::Clear { backend } => ("clear", *backend),
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
    }

    #[test]
    fn what_hangs_stays_until_something_takes_its_place() {
        let before = shown(&[(Feh, &[("A", 1), ("B", 2), ("GONE", 3)])]);
        let mut wanted = shown(&[(Swaybg, &[("A", 9)])]);
        let mut outputs = ["A", "B"].map(|name| hanging(name, 0).output);
        outputs[1].x = 1920;
        keep_hanging(&before, &mut wanted, &outputs);
        let mut expected = shown(&[(Feh, &[("B", 2)]), (Swaybg, &[("A", 9)])]);
        expected.get_mut(&Feh).unwrap()[0].output.x = 1920;
        assert_eq!(wanted, expected);
    }
}
