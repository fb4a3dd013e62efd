//! Changes to images: their metadata, their tags, what is selected.

use serde_json::{Map, Value, json};

use super::Api;
use crate::color;
use crate::http::{Error, Request, Response};
use crate::store::edits::ImageChange;
use crate::wire::{PatchImage, SelectAll};

/// Of an image.
const TAGS_MAX: usize = 500;
/// Bytes, as of the next.
const TAG_MAX: usize = 255;
const OVERRIDES_MAX: usize = 64 << 10;

/// `PATCH /images/{id}`
pub(in crate::http) fn patch(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let body: PatchImage = request.json()?;
    let change = ImageChange {
        tags: body.tags.map(tags).transpose()?,
        colors: body.colors.as_deref().map(colors).transpose()?,
        folder_id: body.folder_id,
        is_selected: body.is_selected,
        audio_enabled: body.audio_enabled,
        overrides: body.wallpaper_config_overrides.map(overrides).transpose()?,
        capabilities: body.web_capabilities,
    };
    // What backends are told along with a picture.
    let told = change.audio_enabled.is_some()
        || change.overrides.is_some()
        || change.capabilities.is_some();
    let mut image = api.library.edit(id, body.name.as_deref(), &change)?;
    if told {
        api.wallpaper.settings_changed(Vec::new());
    }
    api.library.thumbnails().complete(&mut image);
    Ok(Response::json(200, &image)?)
}

/// `POST /images/select-all`
pub(in crate::http) fn select_all(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let SelectAll { selected } = request.json()?;
    let updated = api.library.select_all(selected)?;
    Ok(Response::json(200, &json!({ "updated": updated, "selected": selected }))?)
}

/// `GET /images/tags`
pub(in crate::http) fn all_tags(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    Ok(Response::json(200, &json!({ "tags": api.store.tags()? }))?)
}

/// Split at commas and trimmed, each once, in the order given; empty ones are dropped.
fn tags(given: Vec<String>) -> Result<Vec<String>, Error> {
    let split = given.iter().flat_map(|tag| tag.split(',')).map(str::trim);
    let split: Vec<&str> = split.filter(|tag| !tag.is_empty()).collect();
    if split.len() > TAGS_MAX {
        return Err(Error::bad_request(format!("tags has more than {TAGS_MAX} tags")));
    }
    let mut tags: Vec<String> = Vec::with_capacity(split.len());
    for tag in split {
        if tag.len() > TAG_MAX {
            return Err(Error::bad_request(format!("a tag has more than {TAG_MAX} bytes")));
        }
        if tag.chars().any(char::is_control) {
            return Err(Error::bad_request(format!("tags cannot have {tag:?}"))
                .details("a tag has no control character"));
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}

/// A page of the gallery carries two hundred of these.
fn overrides(given: Map<String, Value>) -> Result<Map<String, Value>, Error> {
    let size = serde_json::to_vec(&given)?.len();
    if size > OVERRIDES_MAX {
        let text = format!("wallpaper_config_overrides has more than {OVERRIDES_MAX} bytes");
        return Err(Error::bad_request(text));
    }
    Ok(given)
}

fn colors(given: &[String]) -> Result<Vec<color::Rgb>, Error> {
    if given.len() > color::PALETTE_MAX {
        return Err(Error::bad_request(format!(
            "colors has more than {} colours",
            color::PALETTE_MAX
        )));
    }
    let one = |text: &String| {
        color::parse(text).ok_or_else(|| {
            Error::bad_request(format!("colors cannot have {text:?}"))
                .details("a colour is #rrggbb, #rgb or a name of CSS")
        })
    };
    given.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_few_and_short() {
        let check = |given: &[&str], expected: Option<&[&str]>| {
            let found = tags(given.iter().map(|&tag| tag.to_owned()).collect()).ok();
            let found = found.as_ref().map(|tags| tags.iter().map(String::as_str).collect());
            assert_eq!(found, expected.map(<[&str]>::to_vec));
        };
        check(&[" a ", "b", "a"], Some(&["a", "b"]));
        check(&[], Some(&[]));
        check(&["", " ", "b, a,,b,", ","], Some(&["b", "a"]));
        for bad in ["a\nb", "x,a\nb", &"é".repeat(128)] {
            check(&["a", bad], None);
        }
        check(&["a"; TAGS_MAX], Some(&["a"]));
        check(&["a"; TAGS_MAX + 1], None);
    }

    #[test]
    fn overrides_are_no_library() {
        let of = |length| Map::from_iter([("x".to_owned(), "x".repeat(length).into())]);
        assert!(overrides(of(OVERRIDES_MAX - 100)).is_ok());
        assert!(overrides(of(OVERRIDES_MAX)).is_err());
    }
}
