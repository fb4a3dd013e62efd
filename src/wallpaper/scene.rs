//! What should hang where, by which backend: pure, from the rows of the scene, the images and the
//! connected outputs.

use std::collections::BTreeMap;

use crate::backends::{Hanging, Kind, Web};
use crate::compositor::Output;
use crate::store::scene::Hung;
use crate::wire::{Image, JsonObject, Mode};

use super::plan::Shown;
use super::seat::Seat;
use super::selection::Choice;

/// The images of the scene by id.
pub(super) type Pictures = BTreeMap<i64, Image>;

/// What the scene asks for on the connected outputs. `choose` gives the backend for a kind of
/// content; what nothing can show is left out, and so are monitors that are away.
pub(super) fn wanted(
    scene: &[Hung],
    pictures: &Pictures,
    outputs: &[Output],
    choose: impl Fn(Kind) -> Option<Choice>,
) -> Shown {
    let mut wanted = Shown::new();
    for output in outputs {
        let hung = scene.iter().find(|hung| hung.monitor == output.name);
        let Some((hung, image)) = hung.and_then(|h| Some((h, pictures.get(&h.image_id)?))) else {
            continue;
        };
        let hanging = hanging(output, image, hung);
        if let Some(Choice { backend, kind }) = choose(hanging.kind) {
            let hanging = Hanging { kind, ..hanging };
            wanted.entry(Seat::of(backend, &output.name)).or_default().push(hanging);
        }
    }
    for scene in wanted.values_mut() {
        scene.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
    wanted
}

/// Gives connected outputs that were never seen before what was last set for all. A picture that is
/// stretched over those that were there then is stretched over these, too.
pub(super) fn adopt(rows: &mut Vec<Hung>, for_all: &Hung, outputs: &[Output]) {
    let is_new = |output: &&Output| rows.iter().all(|row| row.monitor != output.name);
    let new: Vec<String> = outputs.iter().filter(is_new).map(|one| one.name.clone()).collect();
    if new.is_empty() {
        return;
    }
    let shares = |row: &Hung| {
        (row.image_id, row.mode, row.set_at) == (for_all.image_id, for_all.mode, for_all.set_at)
    };
    rows.extend(new.into_iter().map(|monitor| Hung { monitor, ..for_all.clone() }));
    let mut group: Vec<&mut Hung> = rows.iter_mut().filter(|row| shares(row)).collect();
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

fn hanging(output: &Output, image: &Image, hung: &Hung) -> Hanging {
    let web = image.web_meta.as_ref().map(|meta| Web {
        capabilities: meta.capabilities,
        parallax_direction: meta.parallax_direction.clone(),
        values: overlaid(&meta.wallpaper_config, image.wallpaper_config_overrides.as_ref()),
    });
    let entry = image.web_meta.as_ref().map(|meta| meta.entry_path.clone());
    Hanging {
        output: output.clone(),
        image_id: image.id,
        path: entry.unwrap_or_else(|| image.path.clone()),
        content: image.checksum.clone(),
        kind: Kind::of(image.media_type, image.animated),
        audio_enabled: image.audio_enabled,
        web,
        extended_over: match hung.mode {
            Mode::Extend => hung.together.clone(),
            _ => Vec::new(),
        },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::plan::tests::hanging;
    use crate::wire::Timestamp;

    #[test]
    fn new_outputs_have_what_was_last_set_for_all() {
        let row = |monitor: &str, image_id, seconds| Hung {
            monitor: monitor.to_owned(),
            image_id,
            mode: Mode::Extend,
            together: vec![monitor.to_owned()],
            backend: "swaybg".to_owned(),
            set_at: Timestamp::from_micros(seconds),
        };
        let outputs = ["A", "B", "C"].map(|name| hanging(name, 0).output);
        let check = |rows: &[Hung], expected: &[(&str, i64, &[&str])]| {
            let mut rows = rows.to_vec();
            adopt(&mut rows, &row("*", 1, 10), &outputs);
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
}
