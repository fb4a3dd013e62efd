//! Decides what each output should show, and which worker shows it: from the assignments, the wishes of
//! requests, the images and the connected outputs. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backend_choice::Choice;
use super::backoff::Backoffs;
use super::fallbacks::newest;
use super::picture::Wishes;
use super::slots::Slots;
use super::worker_key::WorkerKey;
use super::world_state::{Pictures, WorldState};
use crate::backends::{Kind, Placement, Web, registration};
use crate::color;
use crate::compositor::Output;
use crate::store::assignments::Assignment;
use crate::store::workspaces;
use crate::wire::{Fit, Image, JsonObject, Mode};

/// What an output should show, and the worker and the request that show it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) key: WorkerKey,
    pub(super) placement: Placement,
    pub(super) ticket: Option<u64>,
    /// The assignment that says so.
    pub(super) row: Assignment,
}

/// What should be shown, by output.
pub(super) type Desired = BTreeMap<String, Wanted>;

/// All that should be shown now. Outputs without a picture that can be shown are left out.
pub(super) fn desired(world: &WorldState, wishes: &Wishes, slots: &Slots) -> Desired {
    let mut pictures = world.pictures.clone();
    let mut rows = world.scene.clone();
    rows.retain(|row| !wishes.contains_key(&row.monitor));
    rows.extend(wishes.values().map(|wish| wish.row.clone()));
    let images = wishes.values().map(|wish| &wish.image);
    pictures.extend(images.map(|image| (image.id, Arc::clone(image))));
    add_last_resort(&mut rows, world, slots);
    let hidden = world.over_assignments.iter().map(|one| one.row.clone());
    let shown = workspaces::over(rows.clone(), hidden);
    let mut desired = assigned(&shown, &pictures, &world.outputs, |kind| world.choice(kind));
    for (output, wanted) in &mut desired {
        let wish = wishes.get(output).map(|wish| wish.ticket);
        wanted.ticket = wish.filter(|_| world.hidden_by(output).is_none());
    }
    gather(&mut desired, &slots.backoffs);
    lay_out(&mut desired, &rows, &world.outputs);
    desired
}

/// Assigns the newest picture of the other outputs to outputs that have lost theirs: a backend that
/// loads its files again cannot keep a picture whose file is gone.
fn add_last_resort(rows: &mut Vec<Assignment>, world: &WorldState, slots: &Slots) {
    let connected = rows.iter().filter(|row| world.is_connected(&row.monitor));
    let Some(newest) = newest(connected) else {
        return;
    };
    for output in world.outputs.iter() {
        let name = &output.name;
        let has_row = rows.iter().any(|row| row.monitor == *name);
        if !has_row && world.has_lost_picture(name, slots) {
            rows.push(Assignment {
                monitor: name.clone(),
                ..newest.clone()
            });
        }
    }
}

/// What the assignments require on the connected outputs. `choose` returns the backend for a kind of
/// content. Pictures that no backend can show are omitted, and so are disconnected monitors.
pub(super) fn assigned(
    rows: &[Assignment],
    pictures: &Pictures,
    outputs: &[Output],
    choose: impl Fn(Kind) -> Option<Choice>,
) -> Desired {
    let mut desired = Desired::new();
    for output in outputs {
        let row = rows.iter().find(|row| row.monitor == output.name);
        let Some((row, image)) = row.and_then(|row| Some((row, pictures.get(&row.image_id)?)))
        else {
            continue;
        };
        let placement = placement(output, image, row);
        if let Some(Choice { backend, kind }) = choose(placement.kind) {
            let wanted = Wanted {
                key: WorkerKey::new(backend, &output.name),
                placement: Placement { kind, ..placement },
                ticket: None,
                row: row.clone(),
            };
            desired.insert(output.name.clone(), wanted);
        }
    }
    share_fit(&mut desired, rows);
    desired
}

/// If a backend has one fit for all outputs, the newest assignment determines it. Plain colours do not
/// count, since they look the same with any fit.
fn share_fit(desired: &mut Desired, rows: &[Assignment]) {
    let is_it = |wanted: &Wanted| registration(wanted.key.backend).one_fit;
    let on = |row: &&Assignment| {
        color::from_image_id(row.image_id).is_none() && desired.get(&row.monitor).is_some_and(is_it)
    };
    let newest = rows.iter().filter(on).max_by_key(|row| row.set_at);
    let fit = newest.and_then(|row| row.fit);
    for wanted in desired.values_mut().filter(|wanted| is_it(wanted)) {
        wanted.placement.fit = fit;
    }
}

/// Moves everything to a backend that covers every output, if one is desired: other backends would
/// be hidden beneath its windows. A backend that waits for a retry counts only with a request.
fn gather(desired: &mut Desired, backoffs: &Backoffs) {
    let covers = |wanted: &&Wanted| {
        registration(wanted.key.backend).covers_all && backoffs.may_try(&wanted.key, wanted.ticket)
    };
    let Some(over) = desired.values().find(covers).map(|one| one.key.clone()) else {
        return;
    };
    for wanted in desired.values_mut() {
        wanted.key.clone_from(&over);
    }
}

/// Sets the outputs that each stretched picture spans. An output on which a workspace hides the
/// picture counts, so that the others keep their part.
fn lay_out(desired: &mut Desired, rows: &[Assignment], outputs: &[Output]) {
    for placement in desired.values_mut().map(|wanted| &mut wanted.placement) {
        let id = placement.image_id;
        let over = &placement.extended_over;
        let has_it = |row: &Assignment| row.image_id == id && row.together == *over;
        let is_spanned = |output: &&Output| {
            let mut on_it = rows.iter().filter(|row| row.monitor == output.name);
            on_it.any(has_it)
        };
        if !over.is_empty() {
            placement.span = outputs.iter().filter(is_spanned).cloned().collect();
        }
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
        kind: Kind::from_image(image),
        audio_enabled: image.audio_enabled,
        web,
        extended_over: match row.mode {
            Mode::Extend if color.is_none() => row.together.clone(),
            Mode::Individual | Mode::Clone | Mode::Extend | Mode::Each => Vec::new(),
        },
        span: Vec::new(),
        // A plain colour fills its monitor, whatever the settings say.
        fit: color.map_or(row.fit, |_| Some(Fit::Cover)),
        position: match row.mode {
            Mode::Extend => None,
            Mode::Individual | Mode::Clone | Mode::Each => row.position.or(image.position),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName::{Swaybg, WalQt};
    use crate::store::workspaces::WorkspacePicture;
    use crate::wallpaper::worker_key::tests::placement;
    use crate::wire::Timestamp;

    #[test]
    fn backend_that_covers_every_output_gets_everything() {
        let row = WorkspacePicture::new(
            (String::new(), String::new()),
            1,
            String::new(),
            Timestamp::from_micros(1),
        )
        .row;
        let workers = |backoffs: &Backoffs, ticket: Option<u64>| {
            let pictures = [("A", Swaybg), ("B", WalQt), ("C", Swaybg)];
            let of = |(output, backend): (&str, _)| Wanted {
                key: WorkerKey::new(backend, output),
                placement: placement(output, 1),
                ticket: ticket.filter(|_| backend == WalQt),
                row: row.clone(),
            };
            let mut desired = pictures.map(|one| (one.0.to_owned(), of(one))).into();
            gather(&mut desired, backoffs);
            let workers = desired.into_values().map(|one| one.key.backend);
            workers.collect::<Vec<_>>()
        };
        let mut backoffs = Backoffs::default();
        assert_eq!(workers(&backoffs, None), [WalQt; 3]);
        let waiting = backoffs.of(&WorkerKey::new(WalQt, "B"));
        waiting.failed(std::time::Instant::now());
        assert_eq!(workers(&backoffs, Some(7)), [WalQt; 3]);
        assert_eq!(workers(&backoffs, None), [Swaybg, WalQt, Swaybg]);
    }
}
