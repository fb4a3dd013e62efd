//! Decides what each backend should show on each output: pure, from the rows of the assignments, the
//! images and the connected outputs. Keeps an old picture while the new one is not visible yet, as its
//! output is off or covered.

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

/// The placements that the assignments ask for on the connected outputs. `choose` gives the backend
/// for a kind of content; what nothing can show is omitted, and so are monitors that are away.
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
            desired.entry(WorkerKey::of(backend, &output.name)).or_default().push(placement);
        }
    }
    for (key, placements) in &mut desired {
        // The newest wish counts, but a plain colour looks the same with any.
        if registration(key.backend).one_fit {
            let on = |row: &&Assignment| {
                color::of_image(row.image_id).is_none()
                    && placements.iter().any(|placement| placement.output.name == row.monitor)
            };
            let newest = rows.iter().filter(on).max_by_key(|row| row.set_at);
            let fit = newest.and_then(|row| row.fit);
            placements.iter_mut().for_each(|placement| placement.fit = fit);
        }
        placements.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
    desired
}

/// The pictures for monitors without an assignment, as far as there are any.
#[derive(Clone, Debug, Default)]
pub(super) struct Fallbacks {
    /// Whether the playlist that runs on all monitors shows something; none without such a playlist.
    pub(super) playlist_shows: Option<bool>,
    pub(super) default: Option<Assignment>,
    pub(super) for_all: Option<Assignment>,
    /// Monitors that were there when something was set: one of them that shows nothing is meant to.
    pub(super) seen: Vec<String>,
}

impl Fallbacks {
    /// Gives outputs that have no row the picture that is meant for such.
    pub(super) fn adopt(self, rows: &mut Vec<Assignment>, outputs: &[Output]) {
        let Self { playlist_shows, default, for_all, seen } = self;
        let is_seen = |output: &&Output| seen.contains(&output.name);
        // The playlist hangs its own on those that come.
        let is_ours = |output: &&Output| playlist_shows != Some(true) || is_seen(output);
        let meant = match playlist_shows {
            Some(_) => for_all.or(default),
            None => default.or(for_all),
        };
        if let Some(meant) = meant {
            return adopt(rows, &meant, outputs.iter().filter(is_ours));
        }
        // The last resort. It is not spread over those: nobody meant it for several.
        let Some(newest) = rows.iter().max_by_key(|row| row.set_at) else { return };
        let mode = if newest.mode == Mode::Extend { Mode::Individual } else { newest.mode };
        let newest = Assignment { mode, ..newest.clone() };
        adopt(rows, &newest, outputs.iter().filter(is_ours).filter(|output| !is_seen(output)));
    }
}

/// Gives outputs that have no row this picture. One that is stretched over those that were there then
/// is stretched over these, too.
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
    rows.extend(new.into_iter().map(|monitor| Assignment { monitor, ..meant.clone() }));
    let mut group: Vec<&mut Assignment> = rows.iter_mut().filter(|row| shares(row)).collect();
    let together: Vec<String> = group.iter().map(|row| row.monitor.clone()).collect();
    group.iter_mut().for_each(|row| row.together.clone_from(&together));
}

/// How a picture is really laid over monitors: only stills are cut into slices.
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
        values: overlaid(&meta.wallpaper_config, image.wallpaper_config_overrides.as_ref()),
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

/// The declared defaults of a package with its owner's values over them.
fn overlaid(
    declared: &JsonObject,
    overrides: Option<&JsonObject>,
) -> serde_json::Map<String, serde_json::Value> {
    let defaults = declared.fields().into_iter().map(|(key, property)| {
        // A property is declared with its default, or is that default itself.
        let value = property.get("default").or_else(|| property.get("value")).cloned();
        (key, value.unwrap_or(property))
    });
    let set = overrides.into_iter().flat_map(JsonObject::fields);
    defaults.chain(set).collect()
}

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
    let is_new = |name: &String| on(&step.placements, name).is_some();
    let begins_anew = registration(step.key.backend).begins_anew;
    let others = unseen.iter().filter(|(key, _)| begins_anew && **key != step.key);
    let buried = others.filter(|(_, names)| names.iter().any(is_new));
    buried.map(|(key, _)| key.clone()).collect()
}

/// Whether a step takes something away where another worker is not seen yet.
pub(super) fn uncovers(step: &Step, current: &Placements, unseen: &PendingVisibility) -> bool {
    let goes = |name: &String| {
        current.get(&step.key).is_some_and(|shown| on(shown, name).is_some())
            && on(&step.placements, name).is_none()
    };
    unseen.iter().any(|(key, names)| *key != step.key && names.iter().any(goes))
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
            let seen = if seen { vec!["B".to_owned()] } else { Vec::new() };
            let (default, for_all) = (of(default), of(for_all));
            let mut rows = vec![row("AWAY", 3, 30), row("A", 4, 40)];
            Fallbacks { playlist_shows, default, for_all, seen }.adopt(&mut rows, &outputs);
            let new: Vec<_> = rows[2..].iter().map(|row| (row.image_id, row.mode)).collect();
            assert_eq!(new, expected);
        };
        let two = |id, mode| vec![(id, mode), (id, mode)];
        check(None, Some(1), Some(2), true, two(1, Mode::Extend));
        check(Some(false), Some(1), Some(2), true, two(2, Mode::Extend));
        check(Some(false), Some(1), None, true, two(1, Mode::Extend));
        check(None, None, Some(2), true, two(2, Mode::Extend));
        check(None, None, None, false, two(4, Mode::Individual));
        check(None, None, None, true, vec![(4, Mode::Individual)]);
        // New monitors have their picture from a playlist that shows something.
        check(Some(true), Some(1), Some(2), true, vec![(2, Mode::Extend)]);
        check(Some(true), Some(1), Some(2), false, Vec::new());
        check(Some(true), None, None, false, Vec::new());
        let mut rows = Vec::new();
        Fallbacks::default().adopt(&mut rows, &outputs);
        assert!(rows.is_empty());
    }

    #[test]
    fn new_outputs_have_what_was_last_set_for_all() {
        let outputs = ["A", "B", "C"].map(|name| placement(name, 0).output);
        let check = |rows: &[Assignment], expected: &[(&str, i64, &[&str])]| {
            let mut rows = rows.to_vec();
            adopt(&mut rows, &row("*", 1, 10), outputs.iter());
            let seen: Vec<_> = rows
                .iter()
                .map(|row| (row.monitor.as_str(), row.image_id, row.together.join(" ")))
                .collect();
            let expected: Vec<_> =
                expected.iter().map(|(name, id, all)| (*name, *id, all.join(" "))).collect();
            assert_eq!(seen, expected);
        };
        let all: &[&str] = &["A", "B", "C"];
        check(&[], &[("A", 1, all), ("B", 1, all), ("C", 1, all)]);
        // One that was set by itself keeps its own, and what is away is left alone.
        let (own, away) = (row("A", 2, 20), row("AWAY", 3, 5));
        let both: &[&str] = &["B", "C"];
        let expected =
            [("A", 2, &["A"][..]), ("AWAY", 3, &["AWAY"]), ("B", 1, both), ("C", 1, both)];
        check(&[own.clone(), away], &expected);
        let known = [own, row("B", 1, 10), row("C", 4, 10)];
        check(&known, &[("A", 2, &["A"]), ("B", 1, &["B"]), ("C", 4, &["C"])]);
        check(&known[..2], &[("A", 2, &["A"]), ("B", 1, both), ("C", 1, both)]);
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
    fn restarted_picture_stays_whole_over_a_waiting_video() {
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
