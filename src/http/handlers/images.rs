//! The library's images: lists of them, one, its files, and their end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Api;
use crate::http::{Error, Paging, Reply, Request, Response, file};
use crate::library;
use crate::store::images;
use crate::store::index::{Query, filter};
use crate::transcode;
use crate::wallpaper;
use crate::wire::{DeleteImages, Ids, Image, Resolution};

const WEBP: &str = "image/webp";
/// What most rows fit into.
const ROW_BYTES: usize = 1 << 10;
/// For a thumbnail that must be made, and those that wait before it.
const PATIENCE: Duration = Duration::from_secs(60);

/// `GET /images`
pub(in crate::http) fn list(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let paging = Paging::read(request.query())?;
    let filter = filter(api, request)?;
    let query = Query { offset: paging.offset(), limit: paging.per_page, ..filter };
    let asked = (query, paging);
    let (query, paging) = &asked;
    let look = api.library.thumbnails().look();
    let body = api.lists.get(&asked, (&api.store, look.generation()), || {
        let mut json = Vec::with_capacity(paging.per_page as usize * ROW_BYTES);
        json.extend(br#"{"data":["#);
        let total = api.store.write_page(query, &mut json, |row, json| look.write(row, json))?;
        json.extend(br#"],"pagination":"#);
        serde_json::to_writer(&mut json, &paging.of(total))?;
        json.push(b'}');
        Ok(json)
    })?;
    Ok(Response::shared_json(body))
}

/// `GET /images/ids`: of the same list without its pages.
pub(in crate::http) fn ids(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let ids = api.store.find_all(&filter(api, request)?)?;
    Ok(Response::json(200, &Ids { ids })?)
}

/// `GET /images/{id}`
pub(in crate::http) fn one(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let mut json = Vec::with_capacity(ROW_BYTES);
    let look = api.library.thumbnails().look();
    match api.store.write_row(id, &mut json, |row, json| look.write(row, json))? {
        true => Ok(Response::written_json(json)),
        false => Err(nowhere(id)),
    }
}

/// `GET /images/{id}/raw`
pub(in crate::http) fn raw(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let mut image = find_now(api, request.record()?)?;
    let mut tries = library::TRIES;
    // Between the look at its row and at its file it may get another name, and another image its
    // own: a name is free again only once the row says so.
    loop {
        api.library.answers(&image.path)?;
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

/// `GET /images/{id}/thumbnail`; one that is missing is made first.
pub(in crate::http) fn thumbnail(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let resolution = request.query().word("resolution")?.unwrap_or(Resolution::Default);
    let image = find_now(api, request.record()?)?;
    api.library.thumbnails().answers()?;
    if let Some(path) = api.library.thumbnails().present(&image).get(resolution.as_str()) {
        return file(request, path, WEBP);
    }
    let path = if transcode::is_needed_for(image.format) {
        let (library, transcoder) = (api.library.clone(), api.library.transcoder());
        let make = move || {
            library.thumbnail(&image, resolution).map_err(|error| thumbnail_failed(error, &image))
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

/// `DELETE /images`; ids that are not there are not counted.
pub(in crate::http) fn delete(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let asked: DeleteImages = request.json()?;
    if asked.ids.is_empty() == asked.paths.is_empty() {
        let why = if asked.ids.is_empty() { "ids is empty" } else { "give ids or paths, not both" };
        return Err(Error::bad_request(why));
    }
    let _permit = request.permit()?;
    if !asked.paths.is_empty() {
        let removed = api.library.remove_kept(&asked.paths, asked.trash)?;
        return Ok(Response::json(200, &json!({ "deleted": 0, "files_removed": removed }))?);
    }
    let (deleted, kept) = api.library.delete(&asked)?;
    let mut answer = json!({ "deleted": deleted });
    if kept > 0 {
        answer["files_kept"] = kept.into();
    }
    Ok(Response::json(200, &answer)?)
}

fn filter(api: &Api, request: &Request<'_>) -> Result<Query, Error> {
    let query = filter::query(request.query())?;
    if let Some((id, _)) = query.similar_to {
        // Only to say so: a list would be empty.
        find(api, id)?;
    }
    Ok(query)
}

fn find(api: &Api, id: i64) -> Result<Image, Error> {
    let found = api.store.read(|connection| images::get(connection, id))?;
    found.ok_or_else(|| nowhere(id))
}

/// Whose file is to be shown: its owner may have written it a moment ago.
fn find_now(api: &Api, id: i64) -> Result<Image, Error> {
    api.library.image_now(id)?.ok_or_else(|| nowhere(id))
}

fn nowhere(id: i64) -> Error {
    Error::not_found(format!("there is no image {id}"))
}

/// Of one whose file is not there: its owner's own may come back.
fn lost(image: &Image) -> Error {
    let (id, path, away) = (image.id, image.path.clone(), image.in_place);
    wallpaper::Error::FileGone { id, path, away }.into()
}

/// Several may have waited for the same thumbnail: the error is theirs together.
fn thumbnail_failed(error: Arc<library::Error>, image: &Image) -> Error {
    if error.is_missing_file() {
        return lost(image);
    }
    if let library::Error::NoAnswer { .. } = *error {
        return Error::new(503, error.to_string());
    }
    if let library::Error::Transcode { source: transcode::Error::Missing { .. }, .. } = *error {
        return Error::new(503, "the thumbnail cannot be made").details(error.reason());
    }
    Error::new(500, "the thumbnail cannot be made").details(error.reason())
}
