//! The tree of folders.

use serde_json::json;

use super::Api;
use crate::http::{Error, Request, Response};
use crate::library::Deleted;
use crate::store::folders::{self, FolderChange, FolderQuery, NAME_MAX, Refusal};
use crate::wire::{CreateFolder, Data, MoveImages, PatchFolder};

/// `GET /folders`: a level of the tree, or what a search finds below it.
pub(in crate::http) fn list(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let query = request.query();
    let search = query.get("search").filter(|part| !part.is_empty()).map(str::to_owned);
    let (parent, whole) = match query.get("parent_id") {
        None | Some("root" | "null") => (None, false),
        Some("all") => (None, true),
        Some(_) => (query.id("parent_id", "parent_id is an id, root or all")?, false),
    };
    let query = FolderQuery { parent, deep: whole || search.is_some(), search };
    let data = api.store.read(|connection| folders::list(connection, &query))?;
    Ok(Response::json(200, &Data { data })?)
}

/// `POST /folders`
pub(in crate::http) fn create(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: CreateFolder = request.json()?;
    let folder = api.library.create_folder(&name(&body.name)?, body.parent_id)?;
    Ok(Response::json(201, &folder)?)
}

/// `GET /folders/{id}`
pub(in crate::http) fn get(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let folder = api.store.read(|connection| folders::get(connection, id))?;
    Ok(Response::json(200, &folder.ok_or(Refusal::NoFolder { id })?)?)
}

/// `PATCH /folders/{id}`
pub(in crate::http) fn patch(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let body: PatchFolder = request.json()?;
    let name = body.name.as_deref().map(name).transpose()?;
    let change = FolderChange { name, parent: body.parent_id };
    Ok(Response::json(200, &api.library.change_folder(id, &change)?)?)
}

/// `DELETE /folders/{id}`
pub(in crate::http) fn delete(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let library = &api.library;
    let trash = request.query().value("trash", "trash is true or false")?.unwrap_or(false);
    match request.query().get("mode") {
        None | Some("keep_contents") => gone("keep_contents", library.dissolve_folder(id)?),
        Some("delete_all") => {
            let _permit = request.permit()?;
            gone("delete_all", library.delete_folder(id, trash)?)
        }
        Some(other) => {
            let allowed = "mode is one of keep_contents, delete_all";
            Err(Error::parameter("mode", other, allowed))
        }
    }
}

fn gone(mode: &str, deleted: Deleted) -> Result<Response, Error> {
    let answer = json!({
        "deleted": true,
        "mode": mode,
        "images_deleted": deleted.images,
        "folders_deleted": deleted.folders,
    });
    Ok(Response::json(200, &answer)?)
}

/// `GET /folders/{id}/path`
pub(in crate::http) fn path(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let data = api.store.read(|connection| folders::path(connection, id))?;
    if data.is_empty() {
        return Err(Refusal::NoFolder { id }.into());
    }
    Ok(Response::json(200, &Data { data })?)
}

/// `POST /folders/move-images`
pub(in crate::http) fn move_images(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: MoveImages = request.json()?;
    let moved = api.library.move_images(&body.image_ids, body.folder_id)?;
    Ok(Response::json(200, &json!({ "moved": moved }))?)
}

/// A name as it is kept.
pub(super) fn name(text: &str) -> Result<String, Error> {
    let name = text.trim();
    let bad = if name.is_empty() {
        "it is empty"
    } else if name.len() > NAME_MAX {
        "it has more than 255 bytes"
    } else if name.chars().any(char::is_control) {
        "it has control characters"
    } else {
        return Ok(name.to_owned());
    };
    Err(Error::bad_request(format!("the name {text:?} cannot be used: {bad}")))
}
