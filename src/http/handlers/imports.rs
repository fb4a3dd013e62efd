//! Taking pictures in. The answer says what was found; how each file fares is told by events.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::Api;
use crate::http::{Answer, Failure, Request};
use crate::store::folders;
use crate::wire::ImportImages;

/// For walking through large directories.
const PATIENCE: Duration = Duration::from_secs(300);

/// `POST /images`
pub(in crate::http) fn import(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let ImportImages { paths, folder_id } = request.json()?;
    if paths.is_empty() {
        return Err(Failure::bad_request("paths is empty"));
    }
    let paths = paths.iter().map(|path| absolute(api, path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(id) = folder_id
        && !api.store.read(|connection| folders::exists(connection, id))?
    {
        return Err(Failure::bad_request(format!("folder_id: there is no folder {id}")));
    }
    let library = api.library.clone();
    request.errand(PATIENCE, move || {
        let started = library.import(paths, folder_id)?;
        let (total, batch_id) = (started.total, started.batch_id);
        let body = json!({"status": "processing", "total": total, "batch_id": batch_id});
        Ok(Answer::json(202, &body)?)
    })
}

#[derive(Deserialize)]
struct Cancel {
    batch_id: String,
}

/// `POST /images/cancel-import`
pub(in crate::http) fn cancel(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let Cancel { batch_id } = request.json()?;
    let library = api.library.clone();
    request.errand(PATIENCE, move || {
        library.cancel(&batch_id)?;
        Ok(Answer::json(200, &json!({"status": "cancelled", "batch_id": batch_id}))?)
    })
}

/// The daemon's working directory is nobody's business: paths are absolute or begin with `~`.
fn absolute(api: &Api, path: &Path) -> Result<PathBuf, Failure> {
    let path = api.dirs.tilde(path);
    if path.is_absolute() {
        return Ok(path);
    }
    let error = format!("paths: {:?} is not absolute", path.display().to_string());
    Err(Failure::bad_request(error).details("paths begin with / or ~"))
}
