//! What should hang where, by which backend: pure, from the rows of the scene, the images and the
//! connected outputs.

use std::collections::BTreeMap;

use crate::backends::{Hanging, Kind, Web};
use crate::compositor::Output;
use crate::config::BackendName;
use crate::store::scene::Hung;
use crate::wire::{Image, Mode};

use super::plan::Shown;
use super::seat::Seat;

/// The images of the scene by id.
pub(super) type Pictures = BTreeMap<i64, Image>;

/// What the scene asks for on the connected outputs. `choose` gives the backend for a kind of
/// content; what nothing can show is left out, and so are monitors that are away.
pub(super) fn wanted(
    scene: &[Hung],
    pictures: &Pictures,
    outputs: &[Output],
    choose: impl Fn(Kind) -> Option<BackendName>,
) -> Shown {
    let mut wanted = Shown::new();
    for output in outputs {
        let hung = scene.iter().find(|hung| hung.monitor == output.name);
        let Some((hung, image)) = hung.and_then(|h| Some((h, pictures.get(&h.image_id)?))) else {
            continue;
        };
        let hanging = hanging(output, image, hung);
        if let Some(backend) = choose(hanging.kind) {
            wanted.entry(Seat::of(backend, &output.name)).or_default().push(hanging);
        }
    }
    for scene in wanted.values_mut() {
        scene.sort_by(|one, other| one.output.name.cmp(&other.output.name));
    }
    wanted
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
    declared: &serde_json::Map<String, serde_json::Value>,
    overrides: Option<&serde_json::Map<String, serde_json::Value>>,
) -> serde_json::Map<String, serde_json::Value> {
    let defaults = declared.iter().map(|(key, property)| {
        // A property is declared with its default, or is that default itself.
        let value = property.get("default").or_else(|| property.get("value")).unwrap_or(property);
        (key.clone(), value.clone())
    });
    let set = overrides.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
    defaults.chain(set).collect()
}
