//! A tag that has a verb of its own.

use serde_json::json;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::edit_lock;
use super::super::reference;
use super::super::stdout::Stdout;
use super::super::verb::{Argument, Kind, Verb};
use super::edit::same_tag;
use crate::wire::Image;

const TAG: &str = "favourite";

pub(super) const FAVOURITE: Verb =
    Verb::new(&["favourite"], "Make an image a favourite, or no longer", toggle)
        .arguments(&[Argument::optional(
            "IMAGE",
            Kind::Image,
            "The image; without it, what the monitors show",
        )])
        .help(
            "A favourite has the tag `favourite`:\n\n    murald favourite\n    \
             murald random --tags favourite",
        );

fn toggle(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let id = match call.value("IMAGE") {
        Some(id) => id.clone(),
        None => reference::not_deleted(&reference::current(&connection, None)?)?.into(),
    };
    let place = Place::new(&[&"images", &id]);
    let (answer, was) = edit_lock::hold(&connection, || {
        let Image { mut tags, .. } = connection.get(&place)?.read()?;
        let before = tags.len();
        tags.retain(|tag| !same_tag(tag, TAG));
        let was = tags.len() < before;
        if !was {
            tags.push(TAG.to_owned());
        }
        Ok((connection.patch(&place, &json!({ "tags": tags }))?, was))
    })?;
    stdout.show(&answer, |stdout, image: Image| {
        let now = if was { "no longer a favourite" } else { "a favourite" };
        stdout.say(format!("{} ({}) is {now}", image.name, image.id))
    })
}
