//! Taking pictures in. The answer says what was found; how each file fares is told by events.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::Api;
use crate::http::{Error, Request, Response};
use crate::library::{self, Content};
use crate::store::folders;
use crate::transcode;
use crate::wire::{ImportImages, ImportWeb, ImportedBatch};

/// For a batch: each of its files has its own time limit.
const DONE: Duration = Duration::from_secs(24 * 3600);

/// `POST /images`
pub(in crate::http) fn import(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let ImportImages { paths, folder_id, in_place, wait } = request.json()?;
    if paths.is_empty() {
        return Err(Error::bad_request("paths is empty"));
    }
    let absolute = |path: &PathBuf| absolute(api, "paths", path);
    let paths = paths.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
    known(api, folder_id, 404)?;
    if wait {
        let imported: ImportedBatch = request
            .wait(DONE, |reply| api.library.import_all(&paths, folder_id, in_place, reply))?;
        return Ok(Response::json(200, &imported)?);
    }
    let _permit = request.permit()?;
    let started = match in_place {
        true => api.library.import_in_place(paths, folder_id)?,
        false => api.library.import(paths, folder_id)?,
    };
    let (total, batch_id) = (started.total, started.batch_id);
    let body = json!({"status": "processing", "total": total, "batch_id": batch_id});
    Ok(Response::json(202, &body)?)
}

/// `POST /images/import-web`
pub(in crate::http) fn import_web(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let ImportWeb { path, folder_id } = request.json()?;
    let path = absolute(api, "path", &path)?;
    known(api, folder_id, 404)?;
    let _permit = request.permit()?;
    Ok(Response::json(200, &api.library.import_web(&path, folder_id)?)?)
}

/// What a path holds; nothing is imported by it.
pub(super) fn content_at(api: &Api, path: &Path) -> Result<(PathBuf, Content), Error> {
    let path = absolute(api, "path", path)?;
    let content = api.library.content(&path).map_err(|error| refused(&path, error))?;
    Ok((path, content))
}

/// The image that a path means, imported now where the library does not have it.
pub(super) fn import_at(api: &Api, request: &Request<'_>, path: &Path) -> Result<i64, Error> {
    let _permit = request.permit()?;
    api.library.import_one(path).map(|image| image.id).map_err(|error| refused(path, error))
}

/// What is wrong with one file is the file's fault, not the daemon's.
fn refused(path: &Path, error: library::Error) -> Error {
    use library::Error as Why;
    use transcode::Error as Film;
    let text = format!("{}: {}", path.display(), error.reason());
    match error {
        Why::File { action: "read" | "list", .. } | Why::NotFile { .. } => Error::not_found(text),
        Why::Package { .. } => Error::bad_request(text)
            .details("`murald import` brings in the pictures of a directory"),
        Why::Media { .. } | Why::Decoder { .. } | Why::TooLong { .. } | Why::Name { .. } => {
            Error::bad_request(text)
        }
        Why::Transcode { source: Film::Failed { .. } | Film::Answer { .. }, .. }
        | Why::Transcode { source: Film::NoPicture | Film::Truncated, .. }
        | Why::Transcode { source: Film::TooLarge { .. }, .. } => Error::bad_request(text),
        error => error.into(),
    }
}

#[derive(Deserialize)]
struct Cancel {
    batch_id: String,
}

/// `POST /images/cancel-import`
pub(in crate::http) fn cancel(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let Cancel { batch_id } = request.json()?;
    let _permit = request.permit()?;
    api.library.cancel(&batch_id)?;
    Ok(Response::json(200, &json!({"status": "cancelled", "batch_id": batch_id}))?)
}

/// The daemon's working directory is nobody's business: paths are absolute or begin with `~`.
fn absolute(api: &Api, field: &str, path: &Path) -> Result<PathBuf, Error> {
    let path = api.dirs.tilde(path);
    if path.is_absolute() {
        return Ok(path);
    }
    let error = format!("{field}: {:?} is not absolute", path.display().to_string());
    Err(Error::bad_request(error).details(format!("{field} begins with / or ~")))
}

/// Fails with this status for a folder that is not there.
pub(super) fn known(api: &Api, folder: Option<i64>, status: u16) -> Result<(), Error> {
    match folder {
        Some(id) if !api.store.read(|connection| folders::exists(connection, id))? => {
            Err(Error::new(status, format!("folder_id: there is no folder {id}")))
        }
        _ => Ok(()),
    }
}
