//! The images of the library: lists, single images, their files and thumbnails, edits, and
//! deletion; and the filters in bodies.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::library::{add_kept, check_folder};
use super::{Api, respond, session};
use crate::http::{Error, Paging, Reply, Request, Response, file};
use crate::store::edits::ImageChange;
use crate::store::filter::{self, BadFilter};
use crate::store::playlists::NewSource;
use crate::store::query::Query;
use crate::store::{images, watched};
use crate::wire::{
    DESCRIPTION_MAX, DeleteImages, Difference, Ids, Image, ListChange, MediaType, PatchImage,
    PatchImages, Resolution, SelectAll, collate,
};
use crate::{color, library, media, transcode, wallpaper};

const WEBP: &str = "image/webp";
/// Most rows of JSON fit into this size.
const ROW_BYTES: usize = 1 << 10;
/// The time for a thumbnail that must be made, and for those before it in the queue.
const PATIENCE: Duration = Duration::from_secs(60);

/// `GET /images`
pub(in crate::http) fn list(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let paging = Paging::read(request.query())?;
    let filter = filter_in_query(api, request)?;
    let query = Query {
        offset: paging.offset(),
        limit: paging.per_page,
        ..filter
    };
    let thumbnails = api.library.thumbnails();
    page(paging, |json| {
        Ok(api
            .store
            .write_page(&query, json, |row, json| thumbnails.write(row, json))?)
    })
}

/// The answer with a page of images: `write` appends them and returns the total number.
pub(super) fn page(
    paging: Paging,
    write: impl FnOnce(&mut Vec<u8>) -> Result<u64, Error>,
) -> Result<Response, Error> {
    let mut json = Vec::with_capacity(paging.per_page as usize * ROW_BYTES);
    json.extend(br#"{"data":["#);
    let total = write(&mut json)?;
    json.extend(br#"],"pagination":"#);
    serde_json::to_writer(&mut json, &paging.of(total))?;
    json.push(b'}');
    Ok(Response::written_json(json))
}

/// `GET /images/ids`: the ids of the same list, without pages.
pub(in crate::http) fn ids(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let ids = api.store.find_all(&filter_in_query(api, request)?)?;
    respond(200, &Ids { ids })
}

/// `GET /images/{id}`
pub(in crate::http) fn one(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let mut json = Vec::with_capacity(ROW_BYTES);
    let thumbnails = api.library.thumbnails();
    if api
        .store
        .write_row(id, &mut json, |row, json| thumbnails.write(row, json))?
    {
        add_files(api, id, &mut json)?;
        Ok(Response::written_json(json))
    } else {
        Err(nowhere(id))
    }
}

/// Adds the files of an image to its record if there are several.
fn add_files(api: &Api, id: i64, json: &mut Vec<u8>) -> Result<(), Error> {
    let files = api.store.read(|c| watched::of_image(c, id))?;
    if files.len() > 1 {
        json.pop();
        json.extend(br#","files":"#);
        serde_json::to_writer(&mut *json, &files)?;
        json.push(b'}');
    }
    Ok(())
}

/// `GET /images/{id}/raw`
pub(in crate::http) fn raw(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let mut image = find_now(api, request.record()?)?;
    let mut tries = library::TRIES;
    // Between the reads of its row and its file, the image may be renamed, and another may get its
    // name. The row is read again afterwards: a name is free only once the row has changed.
    loop {
        if image.is_absent() {
            return Err(lost(&image));
        }
        api.library.answers(&image)?;
        api.library.wait_for_replaced(&image)?;
        let answer = file(request, &image.path, image.format.content_type());
        let now = match &answer {
            Ok(_) => Some(find(api, image.id)?).filter(|now| now.path != image.path),
            Err(_) => api.library.found_again(&image, &mut tries)?,
        };
        match now {
            Some(now) => image = now,
            None => {
                return answer.map_err(|error| match error.status() {
                    404 => lost(&image),
                    _ => error,
                });
            }
        }
    }
}

/// `GET /images/{id}/thumbnail`; a missing one is made first.
pub(in crate::http) fn thumbnail(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let resolution = request
        .query()
        .word("resolution")?
        .unwrap_or(Resolution::Default);
    let image = find_now(api, request.record()?)?;
    if let Some(path) = api.library.thumbnails().present(&image, resolution) {
        return file(request, &path, WEBP);
    }
    let is_slow = image.media_type != MediaType::Web && !media::is_decoded(image.format);
    let path = if is_slow {
        let (library, transcoder) = (api.library.clone(), api.library.transcoder());
        let make = move || {
            library
                .thumbnail(&image, resolution)
                .map_err(|error| thumbnail_failed(error, &image))
        };
        let ran = |reply: Reply<_, Error>| {
            transcoder.submit_frame(Box::new(move |ran| {
                reply(ran.map_err(Error::from).and_then(|_| make()));
            }));
        };
        request.wait(PATIENCE, ran)?
    } else {
        let _permit = request.permit()?;
        let made = api.library.thumbnail(&image, resolution);
        made.map_err(|error| thumbnail_failed(error, &image))?
    };
    file(request, &path, WEBP)
}

/// `DELETE /images`; unknown ids are not counted.
pub(in crate::http) fn delete(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let asked: DeleteImages = request.json()?;
    if asked.ids.is_empty() == asked.paths.is_empty() {
        let why = if asked.ids.is_empty() {
            "ids is empty"
        } else {
            "give ids or paths, not both"
        };
        return Err(Error::bad_request(why));
    }
    let _permit = request.permit()?;
    let removed = if asked.paths.is_empty() {
        api.library.delete(&asked)?
    } else {
        library::Removed {
            images: 0,
            files: api.library.remove_kept(&asked.paths, asked.trash)?,
        }
    };
    let mut answer = json!({ "deleted": removed.images, "files": removed.files.removed });
    add_kept(&mut answer, &removed.files);
    respond(200, &answer)
}

fn filter_in_query(api: &Api, request: &Request<'_>) -> Result<Query, Error> {
    let query = with_known_folder(api, "", filter::query(request.query())?)?;
    if let Some((id, _)) = query.similar_to {
        // Reports an unknown image; the list would only be empty.
        find(api, id)?;
    }
    Ok(query)
}

fn find(api: &Api, id: i64) -> Result<Image, Error> {
    let found = api.store.read(|connection| images::get(connection, id))?;
    found.ok_or_else(|| nowhere(id))
}

/// The image, whose file is looked at soon.
fn find_now(api: &Api, id: i64) -> Result<Image, Error> {
    api.library.image_now(id)?.ok_or_else(|| nowhere(id))
}

fn nowhere(id: i64) -> Error {
    Error::not_found(format!("no image with ID {id}"))
}

/// The error for an image without its file. A file in a watched directory may come back.
fn lost(image: &Image) -> Error {
    let id = image.id;
    let path = image.path.clone();
    let away = image.in_place;
    wallpaper::Error::FileGone { id, path, away }.into()
}

fn thumbnail_failed(error: library::Error, image: &Image) -> Error {
    if error.is_missing_file() || matches!(error, library::Error::FileGone { .. }) {
        return lost(image);
    }
    if let library::Error::NoAnswer { .. } | library::Error::Stopped = error {
        return Error::new(503, error.to_string());
    }
    use transcode::Error::{Missing, NotShown};
    if let library::Error::Transcode {
        source: Missing { .. } | NotShown(_),
        ..
    } = error
    {
        return Error::new(503, "cannot create the thumbnail").details(error.reason());
    }
    Error::new(500, "cannot create the thumbnail").details(error.reason())
}

/// The field `filter` of a body.
pub(super) fn filter_in_body(api: &Api, fields: &Map<String, Value>) -> Result<Query, Error> {
    let query = filter::from_fields(fields);
    let query = query.map_err(|bad| refused_filter("filter", filter::FILTERS, bad))?;
    with_known_folder(api, "filter.", query)
}

/// Fails (400) if the filter's folder does not exist; the list would only be empty.
fn with_known_folder(api: &Api, object: &str, query: Query) -> Result<Query, Error> {
    check_folder(api, object, query.folder.flatten(), 400)?;
    Ok(query)
}

/// The field `source` of a new or changed playlist. Fails if its folder does not exist.
pub(super) fn new_playlist_source(
    api: &Api,
    fields: Map<String, Value>,
) -> Result<NewSource, Error> {
    let new = playlist_source(fields)?;
    let query = Box::new(with_known_folder(api, "source.", *new.query)?);
    Ok(NewSource { query, ..new })
}

/// The field `source` of a playlist.
pub(super) fn playlist_source(fields: Map<String, Value>) -> Result<NewSource, Error> {
    let read = filter::from_source(&fields);
    let query = read.map_err(|bad| refused_filter("source", &filter::SOURCE, bad))?;
    Ok(NewSource {
        fields,
        query: Box::new(query),
    })
}

fn refused_filter(object: &str, known: &[&str], bad: BadFilter) -> Error {
    match bad {
        BadFilter::Field { name } => {
            let error = Error::bad_request(format!("{object} has no field {name:?}"));
            match collate::nearest(&name, known.iter().copied()) {
                Some(known) => error.details(format!("did you mean {known}?")),
                None => error,
            }
        }
        BadFilter::Type { name, value } => {
            Error::bad_request(format!("{object}.{name} cannot be {value}"))
                .details("it must be a string, a number, true, false or a list of these")
        }
        BadFilter::Value(bad) => bad.into(),
    }
}

/// The number of tags of an image.
const TAGS_MAX: usize = 500;
/// In bytes, like the next limit.
const TAG_MAX: usize = 255;
const OVERRIDES_MAX: usize = 64 << 10;

/// `PATCH /images/{id}`
pub(in crate::http) fn patch(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let body: PatchImage = request.json()?;
    let change = ImageChange {
        tags: body.tags.map(changed_tags).transpose()?,
        description: body.description.map(description).transpose()?,
        colors: body.colors.as_deref().map(colors).transpose()?,
        folder_id: body.folder_id,
        is_selected: body.is_selected,
        audio_enabled: body.audio_enabled,
        position: body.position,
        overrides: body.wallpaper_config_overrides.map(overrides).transpose()?,
        capabilities: body.web_capabilities,
    };
    // Backends use these fields, too.
    let told = change.audio_enabled.is_some()
        || change.position.is_some()
        || change.overrides.is_some()
        || change.capabilities.is_some();
    let edit = || api.library.edit(id, body.name.as_deref(), &change);
    let mut image = match &body.name {
        Some(_) => session::renamed(api, id, edit)?,
        None => edit()?,
    };
    if told {
        api.wallpaper.settings_changed(Vec::new());
    }
    api.library.thumbnails().complete(&mut image);
    respond(200, &image)
}

/// `PATCH /images`: changes all of the images, or none.
pub(in crate::http) fn patch_many(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let PatchImages { ids, tags } = request.json()?;
    if ids.is_empty() {
        return Err(Error::bad_request("ids is empty"));
    }
    let _permit = request.permit()?;
    let updated = api.library.retag(&ids, difference(tags)?)?;
    respond(200, &json!({ "updated": updated }))
}

/// `POST /images/select-all`
pub(in crate::http) fn select_all(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let SelectAll { selected } = request.json()?;
    let updated = api.library.select_all(selected)?;
    respond(200, &json!({ "updated": updated, "selected": selected }))
}

/// `GET /images/tags`
pub(in crate::http) fn all_tags(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    respond(200, &json!({ "tags": api.store.tags()? }))
}

fn changed_tags(change: ListChange<String>) -> Result<ListChange<String>, Error> {
    Ok(match change {
        ListChange::All(all) => ListChange::All(tags(all)?),
        ListChange::Some(some) => ListChange::Some(difference(some)?),
    })
}

fn difference(change: Difference<String>) -> Result<Difference<String>, Error> {
    let (add, remove) = (tags(change.add)?, tags(change.remove)?);
    Ok(Difference { add, remove })
}

/// The tags, split at commas and trimmed, each once, in the order given; empty ones are dropped.
fn tags(given: Vec<String>) -> Result<Vec<String>, Error> {
    let split = given.iter().flat_map(|tag| tag.split(',')).map(str::trim);
    let split: Vec<&str> = split.filter(|tag| !tag.is_empty()).collect();
    if split.len() > TAGS_MAX {
        return Err(Error::bad_request(format!(
            "tags has more than {TAGS_MAX} tags"
        )));
    }
    let mut tags: Vec<String> = Vec::with_capacity(split.len());
    for tag in split {
        if tag.len() > TAG_MAX {
            return Err(Error::bad_request(format!(
                "a tag has more than {TAG_MAX} bytes"
            )));
        }
        if tag.chars().any(char::is_control) {
            return Err(Error::bad_request(format!("tags cannot have {tag:?}"))
                .details("a tag must not contain control characters"));
        }
        if !tags.iter().any(|known| collate::is_same(known, tag)) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}

/// A description of one line, trimmed.
fn description(given: String) -> Result<String, Error> {
    if given.len() > DESCRIPTION_MAX {
        let text = format!("description has more than {DESCRIPTION_MAX} bytes");
        return Err(Error::bad_request(text));
    }
    if given.chars().any(char::is_control) {
        return Err(Error::bad_request("description has a control character"));
    }
    Ok(given.trim().to_owned())
}

/// Limits the size, because a page carries up to two hundred of these.
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
                .details("a colour must be #rrggbb, #rgb or a CSS colour name")
        })
    };
    given.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refused_filter_says_why() {
        let check = |json: Value, said: &str| {
            let bad = filter::from_fields(json.as_object().unwrap()).unwrap_err();
            let text = refused_filter("filter", filter::FILTERS, bad)
                .into_response("x")
                .text();
            assert!(text.contains(said), "{text}");
        };
        check(json!({ "tag": "a" }), "did you mean tags?");
        check(json!({ "page": 2 }), "no field");
        check(json!({ "tags": null }), "filter.tags cannot be null");
        check(json!({ "min_width": 0 }), "from 1");
    }

    #[test]
    fn number_and_size_of_tags_are_limited() {
        let check = |given: &[&str], expected: Option<&[&str]>| {
            let found = tags(given.iter().map(|&tag| tag.to_owned()).collect()).ok();
            let found = found
                .as_ref()
                .map(|tags| tags.iter().map(String::as_str).collect());
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
    fn size_of_overrides_is_limited() {
        let of = |length| Map::from_iter([("x".to_owned(), "x".repeat(length).into())]);
        assert!(overrides(of(OVERRIDES_MAX - 100)).is_ok());
        assert!(overrides(of(OVERRIDES_MAX)).is_err());
    }
}
