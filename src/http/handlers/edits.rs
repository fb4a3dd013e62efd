//! Changes to images: their metadata, their tags, what is selected.

use serde_json::json;

use super::Api;
use super::images::complete;
use crate::color;
use crate::http::{Answer, Failure, Request};
use crate::store::edits::ImageChange;
use crate::wire::{PatchImage, SelectAll};

/// `PATCH /images/{id}`
pub(in crate::http) fn patch(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let id = request.record()?;
    let body: PatchImage = request.json()?;
    let change = ImageChange {
        tags: body.tags.map(tags).transpose()?,
        colors: body.colors.as_deref().map(colors).transpose()?,
        folder_id: body.folder_id,
        is_selected: body.is_selected,
        audio_enabled: body.audio_enabled,
        overrides: body.wallpaper_config_overrides,
        capabilities: body.web_capabilities,
    };
    // What setters are told along with a picture.
    let told = change.audio_enabled.is_some()
        || change.overrides.is_some()
        || change.capabilities.is_some();
    let mut image = api.library.edit(id, body.name.as_deref(), &change)?;
    if told {
        api.walls.settings_changed(Vec::new());
    }
    complete(api.library.thumbnails(), &mut image);
    Ok(Answer::json(200, &image)?)
}

/// `POST /images/select-all`
pub(in crate::http) fn select_all(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let SelectAll { selected } = request.json()?;
    let updated = api.library.select_all(selected)?;
    Ok(Answer::json(200, &json!({ "updated": updated, "selected": selected }))?)
}

/// `GET /images/tags`
pub(in crate::http) fn all_tags(api: &Api, _: &Request<'_>) -> Result<Answer, Failure> {
    Ok(Answer::json(200, &json!({ "tags": api.store.tags()? }))?)
}

/// Trimmed, each once, in the order given.
fn tags(given: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut tags: Vec<String> = Vec::with_capacity(given.len());
    for tag in given {
        let trimmed = tag.trim();
        if trimmed.is_empty() || trimmed.contains(',') || trimmed.chars().any(char::is_control) {
            return Err(Failure::bad_request(format!("tags cannot have {tag:?}"))
                .details("a tag is not empty and has no comma and no control character"));
        }
        if !tags.iter().any(|known| known == trimmed) {
            tags.push(trimmed.to_owned());
        }
    }
    Ok(tags)
}

fn colors(given: &[String]) -> Result<Vec<color::Rgb>, Failure> {
    if given.len() > color::PALETTE_MAX {
        return Err(Failure::bad_request("colors has more than 8 colours"));
    }
    let one = |text: &String| {
        color::parse_hex(text).ok_or_else(|| {
            Failure::bad_request(format!("colors cannot have {text:?}"))
                .details("a colour is #rrggbb")
        })
    };
    given.iter().map(one).collect()
}
