//! Decides, from the assignments, the images and the connected outputs, what each backend should show on
//! each output. Pure. Keeps an old picture while the new one is not visible yet because its output is
//! off or covered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backend_choice::Choice;
use super::plan::{Placements, Step, WorkerKey, names};
use crate::backends::{Kind, Placement, Web, registration};
use crate::color;
use crate::compositor::Output;
use crate::store::assignments::Assignment;
use crate::wire::{Fit, Image, JsonObject, Mode};

/// The images of the assignments by id.
pub(super) type Pictures = BTreeMap<i64, Arc<Image>>;

/// Returns the placements that the assignments require on the connected outputs. `choose` returns the
/// backend for a kind of content. Pictures that no backend can show are omitted, and so are disconnected
/// monitors.
pub(super) fn desired(
    rows: &[Assignment],
    pictures: &Pictures,
    outputs: &[Output],
    choose: impl Fn(Kind) -> Option<Choice>,
) -> Placements {
    let mut desired = Placements::new();
    for output in outputs {
        let row = rows.iter().find(|row| row.monitor == output.name);
        let Some((row, image)) = row.and_then(|row| Some((row, pictures.get(&row.image_id)?)))
        else {
            continue;
        };
        let placement = placement(output, image, row);
        if let Some(Choice { backend, kind }) = choose(placement.kind) {
            let placement = Placement { kind, ..placement };
            desired
                .entry(WorkerKey::of(backend, &output.name))
                .or_default()
                .push(placement);
        }
    }
    for (key, placements) in &mut desired {
        // The backend has one fit for all outputs, and the newest assignment determines it. Plain
        // colours do not count, since they look the same with any fit.
        if registration(key.backend).one_fit {
            let on = |row: &&Assignment| {
                color::of_image(row.image_id).is_none()
                    && placements
                        .iter()
                        .any(|placement| placement.output.name == row.monitor)
            };
            let newest = rows.iter().filter(on).max_by_key(|row| row.set_at);
            let fit = newest.and_then(|row| row.fit);
            placements
                .iter_mut()
                .for_each(|placement| placement.fit = fit);
        }
        placements.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
    desired
}

/// The pictures for monitors that have no assignment.
#[derive(Clone, Debug, Default)]
pub(super) struct Fallbacks {
    /// Whether the playlist that runs on all monitors shows an image; `None` if there is no such
    /// playlist.
    pub(super) playlist_shows: Option<bool>,
    pub(super) default: Option<Assignment>,
    pub(super) for_all: Option<Assignment>,
    /// Monitors that were connected when a wallpaper was set. If one of these has no assignment, it is
    /// empty on purpose.
    pub(super) seen: Vec<String>,
}

impl Fallbacks {
    /// Assigns the fallback picture to outputs that have no row.
    pub(super) fn adopt(self, rows: &mut Vec<Assignment>, outputs: &[Output]) {
        let Self {
            playlist_shows,
            default,
            for_all,
            seen,
        } = self;
        let is_seen = |output: &&Output| seen.contains(&output.name);
        // A playlist that shows an image also sets the images of new monitors.
        let is_ours = |output: &&Output| playlist_shows != Some(true) || is_seen(output);
        let meant = match playlist_shows {
            Some(_) => for_all.or(default),
            None => default.or(for_all),
        };
        if let Some(meant) = meant {
            return adopt(rows, &meant, outputs.iter().filter(is_ours));
        }
        // The last resort is the newest picture. It is not stretched over the new outputs, as it was not
        // set for them.
        let Some(newest) = rows.iter().max_by_key(|row| row.set_at) else {
            return;
        };
        let mode = if newest.mode == Mode::Extend {
            Mode::Individual
        } else {
            newest.mode
        };
        let newest = Assignment {
            mode,
            ..newest.clone()
        };
        adopt(
            rows,
            &newest,
            outputs
                .iter()
                .filter(is_ours)
                .filter(|output| !is_seen(output)),
        );
    }
}

/// Assigns this picture to outputs that have no row. If it was set for several monitors together, the
/// new outputs join that group, so that a stretched picture spans them too.
fn adopt<'a>(
    rows: &mut Vec<Assignment>,
    meant: &Assignment,
    outputs: impl Iterator<Item = &'a Output>,
) {
    let is_new = |output: &&Output| rows.iter().all(|row| row.monitor != output.name);
    let new: Vec<String> = outputs.filter(is_new).map(|one| one.name.clone()).collect();
    if new.is_empty() {
        return;
    }
    let shares = |row: &Assignment| {
        (row.image_id, row.mode, row.set_at) == (meant.image_id, meant.mode, meant.set_at)
    };
    rows.extend(new.into_iter().map(|monitor| Assignment {
        monitor,
        ..meant.clone()
    }));
    let mut group: Vec<&mut Assignment> = rows.iter_mut().filter(|row| shares(row)).collect();
    let together: Vec<String> = group.iter().map(|row| row.monitor.clone()).collect();
    group
        .iter_mut()
        .for_each(|row| row.together.clone_from(&together));
}

/// The mode that is really used: only still pictures can be stretched over several monitors.
pub(super) fn effective_mode(mode: Mode, kind: Kind) -> Mode {
    match mode {
        Mode::Extend if kind != Kind::StaticImage => Mode::Clone,
        mode => mode,
    }
}

fn placement(output: &Output, image: &Image, row: &Assignment) -> Placement {
    let color = image.color();
    let web = image.web_meta.as_ref().map(|meta| Web {
        capabilities: meta.capabilities,
        parallax_direction: meta.parallax_direction.clone(),
        values: overlaid(
            &meta.wallpaper_config,
            image.wallpaper_config_overrides.as_ref(),
        ),
    });
    let entry = image.web_meta.as_ref().map(|meta| meta.entry_path.clone());
    Placement {
        output: output.clone(),
        image_id: image.id,
        path: entry.unwrap_or_else(|| image.path.clone()),
        content: image.checksum_text(),
        kind: Kind::of(image.media_type, image.animated),
        audio_enabled: image.audio_enabled,
        web,
        extended_over: match row.mode {
            Mode::Extend if color.is_none() => row.together.clone(),
            _ => Vec::new(),
        },
        span: Vec::new(),
        // A plain colour fills its monitor, whatever the settings say.
        fit: color.map_or(row.fit, |_| Some(Fit::Cover)),
        position: match row.mode {
            Mode::Extend => None,
            _ => row.position.or(image.position),
        },
        sound: row.sound,
    }
}

/// The declared defaults of an HTML wallpaper, overridden by the user's values.
fn overlaid(
    declared: &JsonObject,
    overrides: Option<&JsonObject>,
) -> serde_json::Map<String, serde_json::Value> {
    let defaults = declared.fields().into_iter().map(|(key, property)| {
        // A property is either an object that contains its default, or the default itself.
        let value = property
            .get("default")
            .or_else(|| property.get("value"))
            .cloned();
        (key, value.unwrap_or(property))
    });
    let set = overrides.into_iter().flat_map(JsonObject::fields);
    defaults.chain(set).collect()
}

/// For each worker, the outputs on which its picture has not been visible yet.
pub(super) type PendingVisibility = BTreeMap<WorkerKey, Vec<String>>;

/// For each worker that has failed and may not be tried now, the outputs on which it should show
/// something.
pub(super) fn untried(
    desired: &Placements,
    may_try: impl Fn(&WorkerKey) -> bool,
) -> PendingVisibility {
    let resting = desired.iter().filter(|(key, _)| !may_try(key));
    resting
        .map(|(key, placements)| (key.clone(), names(placements)))
        .collect()
}

/// Adds to `desired` what other workers show now on outputs on which a worker's picture is not visible
/// yet; otherwise the screen might be empty. A backend that restarts with each change keeps all its
/// placements, because its new surfaces would cover the waiting picture.
pub(super) fn keep_until_seen(
    current: &Placements,
    desired: &mut Placements,
    unseen: &PendingVisibility,
) {
    for (key, name) in unseen
        .iter()
        .flat_map(|(key, names)| names.iter().map(move |n| (key, n)))
    {
        if desired
            .get(key)
            .is_none_or(|placements| on(placements, name).is_none())
        {
            continue;
        }
        for (other, placements) in current.iter().filter(|(other, _)| *other != key) {
            if on(placements, name).is_none() {
                continue;
            }
            let whole = registration(other.backend).restarts_with_each_change;
            for old in placements
                .iter()
                .filter(|old| whole || old.output.name == *name)
            {
                keep(old, other, desired);
            }
        }
    }
}

/// Keeps a worker's placement, unless the worker should show something else on that output. An output on
/// which nothing is desired is not connected, so nothing is kept there.
fn keep(old: &Placement, key: &WorkerKey, desired: &mut Placements) {
    let name = old.output.name.as_str();
    let Some(output) = desired
        .values()
        .find_map(|all| Some(on(all, name)?.output.clone()))
    else {
        return;
    };
    let kept = desired.entry(key.clone()).or_default();
    if on(kept, name).is_none() {
        kept.push(Placement {
            output,
            ..old.clone()
        });
        kept.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
}

fn on<'a>(placements: &'a [Placement], name: &str) -> Option<&'a Placement> {
    placements
        .iter()
        .find(|placement| placement.output.name == name)
}

/// The workers whose pictures are not visible yet and may lie beneath new surfaces, because a completed
/// step has restarted its backend on the same outputs.
pub(super) fn buried(step: &Step, unseen: &PendingVisibility) -> Vec<WorkerKey> {
    let is_new = |name: &String| on(&step.placements, name).is_some();
    let restarts_with_each_change = registration(step.key.backend).restarts_with_each_change;
    let others = unseen
        .iter()
        .filter(|(key, _)| restarts_with_each_change && **key != step.key);
    let buried = others.filter(|(_, names)| names.iter().any(is_new));
    buried.map(|(key, _)| key.clone()).collect()
}

/// Whether a step removes a picture from an output on which another worker's picture is not visible yet.
pub(super) fn uncovers(step: &Step, current: &Placements, unseen: &PendingVisibility) -> bool {
    let goes = |name: &String| {
        current
            .get(&step.key)
            .is_some_and(|shown| on(shown, name).is_some())
            && on(&step.placements, name).is_none()
    };
    unseen
        .iter()
        .any(|(key, names)| *key != step.key && names.iter().any(goes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName::{Awww, Mpvpaper, Swaybg};
    use crate::wallpaper::plan::steps;
    use crate::wallpaper::plan::tests::{current, placement, show};
    use crate::wire::Timestamp;

    fn row(monitor: &str, image_id: i64, seconds: i64) -> Assignment {
        Assignment {
            monitor: monitor.to_owned(),
            image_id,
            mode: Mode::Extend,
            together: vec![monitor.to_owned()],
            backend: "swaybg".to_owned(),
            set_at: Timestamp::from_micros(seconds),
            fit: None,
            position: None,
            sound: None,
        }
    }

    #[test]
    fn default_comes_before_what_was_set_for_all_but_not_before_a_playlist() {
        let outputs = ["A", "B", "C"].map(|name| placement(name, 0).output);
        let check = |playlist_shows, default: Option<i64>, for_all: Option<i64>, seen, expected| {
            let of = |id: Option<i64>| id.map(|id| row("*", id, 1));
            let seen = if seen {
                vec!["B".to_owned()]
            } else {
                Vec::new()
            };
            let (default, for_all) = (of(default), of(for_all));
            let mut rows = vec![row("AWAY", 3, 30), row("A", 4, 40)];
            Fallbacks {
                playlist_shows,
                default,
                for_all,
                seen,
            }
            .adopt(&mut rows, &outputs);
            let new: Vec<_> = rows[2..]
                .iter()
                .map(|row| (row.image_id, row.mode))
                .collect();
            assert_eq!(new, expected);
        };
        let two = |id, mode| vec![(id, mode), (id, mode)];
        check(None, Some(1), Some(2), true, two(1, Mode::Extend));
        check(Some(false), Some(1), Some(2), true, two(2, Mode::Extend));
        check(Some(false), Some(1), None, true, two(1, Mode::Extend));
        check(None, None, Some(2), true, two(2, Mode::Extend));
        check(None, None, None, false, two(4, Mode::Individual));
        check(None, None, None, true, vec![(4, Mode::Individual)]);
        // A playlist that shows an image sets the images of new monitors itself.
        check(Some(true), Some(1), Some(2), true, vec![(2, Mode::Extend)]);
        check(Some(true), Some(1), Some(2), false, Vec::new());
        check(Some(true), None, None, false, Vec::new());
        let mut rows = Vec::new();
        Fallbacks::default().adopt(&mut rows, &outputs);
        assert!(rows.is_empty());
    }

    #[test]
    fn new_outputs_get_the_picture_that_was_last_set_for_all() {
        let outputs = ["A", "B", "C"].map(|name| placement(name, 0).output);
        let check = |rows: &[Assignment], expected: &[(&str, i64, &[&str])]| {
            let mut rows = rows.to_vec();
            adopt(&mut rows, &row("*", 1, 10), outputs.iter());
            let seen: Vec<_> = rows
                .iter()
                .map(|row| (row.monitor.as_str(), row.image_id, row.together.join(" ")))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, id, all)| (*name, *id, all.join(" ")))
                .collect();
            assert_eq!(seen, expected);
        };
        let all: &[&str] = &["A", "B", "C"];
        check(&[], &[("A", 1, all), ("B", 1, all), ("C", 1, all)]);
        // A monitor with its own picture keeps it, and a disconnected monitor stays as it is.
        let (own, away) = (row("A", 2, 20), row("AWAY", 3, 5));
        let both: &[&str] = &["B", "C"];
        let expected = [
            ("A", 2, &["A"][..]),
            ("AWAY", 3, &["AWAY"]),
            ("B", 1, both),
            ("C", 1, both),
        ];
        check(&[own.clone(), away], &expected);
        let known = [own, row("B", 1, 10), row("C", 4, 10)];
        check(
            &known,
            &[("A", 2, &["A"]), ("B", 1, &["B"]), ("C", 4, &["C"])],
        );
        check(
            &known[..2],
            &[("A", 2, &["A"]), ("B", 1, both), ("C", 1, both)],
        );
    }

    #[test]
    fn pending_picture_replaces_nothing() {
        let before = current(&[(Swaybg, &[("A", 1), ("B", 1)]), (Mpvpaper, &[("A", 2)])]);
        let after = current(&[(Swaybg, &[("B", 1)]), (Mpvpaper, &[("A", 2)])]);
        let unseen =
            PendingVisibility::from([(WorkerKey::of(Mpvpaper, "A"), vec!["A".to_owned()])]);
        let mut desired = after.clone();
        keep_until_seen(&before, &mut desired, &unseen);
        assert_eq!(desired, before);
        let [step] = &steps(&before, &after)[..] else {
            panic!("one step")
        };
        assert!(uncovers(step, &before, &unseen));
        assert!(!uncovers(step, &before, &PendingVisibility::new()));
        // The step uncovers nothing on an output that its worker keeps or never had, and nothing for its
        // own worker.
        for (backend, output) in [(Mpvpaper, "B"), (Mpvpaper, "C"), (Swaybg, "A")] {
            let unseen = PendingVisibility::from([(
                WorkerKey::of(backend, output),
                vec![output.to_owned()],
            )]);
            assert!(!uncovers(step, &before, &unseen), "{backend:?} on {output}");
        }
        // Nothing is kept for a worker that is no longer desired.
        let mut desired = current(&[(Awww, &[("A", 3)])]);
        keep_until_seen(&before, &mut desired, &unseen);
        assert_eq!(desired, current(&[(Awww, &[("A", 3)])]));
    }

    #[test]
    fn restarted_picture_stays_whole_over_a_waiting_video() {
        let videos: (_, &[_]) = (Mpvpaper, &[("A", 2), ("B", 2)]);
        let unseen =
            PendingVisibility::from([(WorkerKey::of(Mpvpaper, "B"), vec!["B".to_owned()])]);
        let kept = |backend, outputs: &[_], desired: &[_]| {
            let mut desired = current(desired);
            keep_until_seen(&current(&[(backend, outputs)]), &mut desired, &unseen);
            desired
        };
        // A picture on a disconnected output is not kept.
        let all = kept(Swaybg, &[("A", 1), ("B", 1), ("GONE", 1)], &[videos]);
        assert_eq!(all, current(&[(Swaybg, &[("A", 1), ("B", 1)]), videos]));
        // Swaybg restarts with a picture for another output, so the video must be shown again above it.
        let (asked, video) = ((Swaybg, &[("A", 3)][..]), (Mpvpaper, &[("B", 2)][..]));
        let all = kept(Swaybg, &[("A", 1), ("B", 1)], &[asked, video]);
        assert_eq!(all, current(&[(Swaybg, &[("A", 3), ("B", 1)]), video]));
        assert_eq!(
            buried(&show(Swaybg, &["A", "B"]), &unseen),
            [WorkerKey::of(Mpvpaper, "B")]
        );
        for step in [
            show(Swaybg, &["A"]),
            show(Awww, &["A", "B"]),
            show(Mpvpaper, &["B"]),
        ] {
            assert_eq!(buried(&step, &unseen), [], "{step:?}");
        }
        // Other backends do not restart, so only the output of the waiting video keeps its picture.
        let all = kept(Awww, &[("A", 1), ("B", 1)], &[videos]);
        assert_eq!(all, current(&[(Awww, &[("B", 1)]), videos]));
    }

    #[test]
    fn worker_that_is_not_tried_shows_nothing_anywhere() {
        let desired = current(&[(Swaybg, &[("A", 1), ("B", 1)]), (Mpvpaper, &[("C", 1)])]);
        let resting = untried(&desired, |key| key.backend == Mpvpaper);
        let both = vec!["A".to_owned(), "B".to_owned()];
        assert_eq!(
            resting,
            PendingVisibility::from([(WorkerKey::of(Swaybg, "A"), both)])
        );
        assert_eq!(untried(&desired, |_| true), PendingVisibility::new());
    }
}
