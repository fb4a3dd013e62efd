//! The library: watched directories, folders, imports, and what ffmpeg makes of videos.
//!
//! The answer to an import says what was found. Events report each file. The threads of ffmpeg convert
//! videos while the request waits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Api, respond};
use crate::http::{Error, Reply, Request, Response};
use crate::library::{self, Content, Deleted, LoopGoes, Outcome, WatchSettings};
use crate::store::folders::{self, FolderChange, FolderQuery, NAME_MAX, Refusal};
use crate::transcode::{self, Cut};
use crate::wire::{
    ChangeWatch, CreateFolder, Data, ExportLoop, ExtractPalette, Image, ImportImages, ImportWeb,
    ImportedBatch, LibraryWatch, ListChange, LoopAction, MoveImages, PatchFolder,
};
use crate::{decode, process};

/// `POST /library/purge-missing`
pub(in crate::http) fn purge_missing(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    respond(200, &json!({ "purged": api.library.purge_missing()? }))
}

/// `POST /library/scan`; does not wait for watched directories, as a disk may not respond.
pub(in crate::http) fn scan(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    api.library.scan()?;
    // Monitors that showed another picture while the file of theirs was missing show theirs again.
    api.wallpaper.settings_changed(Vec::new());
    let directories = settings(api).directories.len();
    respond(
        202,
        &json!({ "status": "scanning", "directories": directories }),
    )
}

/// `GET /library/watch`
pub(in crate::http) fn watched(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    shown(api)
}

/// `PUT /library/watch`: all of the directories.
pub(in crate::http) fn put_watch(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: ChangeWatch = request.json()?;
    match body.watch {
        Some(ListChange::All(_)) => change_watch(api, body),
        Some(ListChange::Some(_)) | None => Err(Error::bad_request("watch must be a list")),
    }
}

/// `PATCH /library/watch`
pub(in crate::http) fn patch_watch(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    change_watch(api, request.json()?)
}

/// Writes the settings, which the library follows.
fn change_watch(api: &Api, body: ChangeWatch) -> Result<Response, Error> {
    let before = settings(api);
    let keys = [
        ("watch_folders", body.watch_folders.map(Value::from)),
        ("exclude", body.exclude.map(Value::from)),
    ];
    let given = keys
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let keys = Map::from_iter(given);
    api.config.patch_watched(&keys, body.watch)?;
    if body.forget {
        let now = settings(api);
        for gone in before
            .directories
            .iter()
            .filter_map(|one| one.directory.as_ref().ok())
        {
            // A directory inside one that is still watched belongs to the latter.
            let stays = |one: &crate::library::Wanted| {
                one.directory
                    .as_ref()
                    .is_ok_and(|now| gone.starts_with(now))
            };
            if !now.directories.iter().any(stays) {
                api.library.watching.forget(gone, &now)?;
            }
        }
    }
    shown(api)
}

fn shown(api: &Api) -> Result<Response, Error> {
    let config = api.config.current();
    let settings = WatchSettings::from_config(&config, &api.dirs);
    let watch = api.library.watching.directories(&settings)?;
    respond(
        200,
        &LibraryWatch {
            watch,
            watch_folders: settings.folders,
            exclude: config.library.exclude.clone(),
        },
    )
}

fn settings(api: &Api) -> WatchSettings {
    WatchSettings::from_config(&api.config.current(), &api.dirs)
}

/// `GET /folders`: a level of the tree, or the matches of a search below it.
pub(in crate::http) fn folders(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let query = request.query();
    let search = query
        .get("search")
        .filter(|part| !part.is_empty())
        .map(str::to_owned);
    let (parent, whole) = match query.get("parent_id") {
        None | Some("root" | "null") => (None, false),
        Some("all") => (None, true),
        Some(_) => (
            query.id("parent_id", "parent_id must be an ID, root or all")?,
            false,
        ),
    };
    let query = FolderQuery {
        parent,
        deep: whole || search.is_some(),
        search,
    };
    let data = api
        .store
        .read(|connection| folders::list(connection, &query))?;
    respond(200, &Data { data })
}

/// `POST /folders`; answers with the folder of this name if there is one.
pub(in crate::http) fn create_folder(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: CreateFolder = request.json()?;
    let name = checked_name(&body.name)?;
    let parent = body.parent_id;
    match api.library.create_folder(&name, parent) {
        Err(Refusal::Taken { name }) => {
            let known = api.store.read(|c| folders::child(c, &name, parent))?;
            respond(200, &known.ok_or(Refusal::Taken { name })?)
        }
        created => respond(201, &created?),
    }
}

/// `GET /folders/{id}`
pub(in crate::http) fn folder(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let folder = api.store.read(|connection| folders::get(connection, id))?;
    respond(200, &folder.ok_or(Refusal::NoFolder { id })?)
}

/// `PATCH /folders/{id}`
pub(in crate::http) fn patch_folder(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let body: PatchFolder = request.json()?;
    let name = body.name.as_deref().map(checked_name).transpose()?;
    let change = FolderChange {
        name,
        parent: body.parent_id,
    };
    respond(200, &api.library.change_folder(id, &change)?)
}

/// `DELETE /folders/{id}`
pub(in crate::http) fn delete_folder(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let library = &api.library;
    let trash = request
        .query()
        .value("trash", "trash must be true or false")?
        .unwrap_or(false);
    match request.query().get("mode") {
        None | Some("keep_contents") => {
            folder_deleted("keep_contents", library.dissolve_folder(id)?)
        }
        Some("delete_all") => {
            let _permit = request.permit()?;
            folder_deleted("delete_all", library.delete_folder(id, trash)?)
        }
        Some(other) => {
            let allowed = "mode must be keep_contents or delete_all";
            Err(Error::parameter("mode", other, allowed))
        }
    }
}

/// Adds the files that could not be removed.
pub(super) fn add_kept(answer: &mut Value, files: &Outcome) {
    if files.kept.is_empty() {
        return;
    }
    let (paths, why): (Vec<_>, Vec<_>) = files
        .kept
        .iter()
        .map(|(path, error)| (path, error.reason()))
        .unzip();
    answer["files_kept"] = json!(paths);
    answer["warnings"] = json!(why);
}

fn folder_deleted(mode: &str, deleted: Deleted) -> Result<Response, Error> {
    let mut answer = json!({
        "deleted": true,
        "mode": mode,
        "images_deleted": deleted.removed.images,
        "folders_deleted": deleted.folders,
    });
    add_kept(&mut answer, &deleted.removed.files);
    respond(200, &answer)
}

/// `GET /folders/{id}/path`
pub(in crate::http) fn folder_path(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let data = api.store.read(|connection| folders::path(connection, id))?;
    if data.is_empty() {
        return Err(Refusal::NoFolder { id }.into());
    }
    respond(200, &Data { data })
}

/// `POST /folders/move-images`
pub(in crate::http) fn move_images(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: MoveImages = request.json()?;
    let moved = api.library.move_images(&body.image_ids, body.folder_id)?;
    respond(200, &json!({ "moved": moved }))
}

/// Trims a name, and refuses one that cannot be stored.
pub(super) fn checked_name(text: &str) -> Result<String, Error> {
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
    Err(Error::bad_request(format!(
        "cannot use the name {text:?}: {bad}"
    )))
}

/// The time for a whole batch. Each file has its own time limit.
const BATCH_PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// `POST /images`
pub(in crate::http) fn import(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let ImportImages {
        paths,
        folder_id,
        in_place,
        wait,
    } = request.json()?;
    if paths.is_empty() {
        return Err(Error::bad_request("paths is empty"));
    }
    let absolute = |path: &PathBuf| absolute(api, "paths", path);
    let paths = paths.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
    check_folder(api, "", folder_id, 404)?;
    if wait {
        let imported: ImportedBatch = request.wait(BATCH_PATIENCE, |reply| {
            api.library.import_all(&paths, folder_id, in_place, reply)
        })?;
        return respond(200, &imported);
    }
    let _permit = request.permit()?;
    let started = if in_place {
        api.library.import_in_place(paths, folder_id)?
    } else {
        api.library.import(paths, folder_id)?
    };
    let (total, batch_id) = (started.total, started.batch_id);
    let body = json!({"status": "processing", "total": total, "batch_id": batch_id});
    respond(202, &body)
}

/// `POST /images/import-web`
pub(in crate::http) fn import_web(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let ImportWeb { path, folder_id } = request.json()?;
    let path = absolute(api, "path", &path)?;
    check_folder(api, "", folder_id, 404)?;
    let _permit = request.permit()?;
    respond(200, &api.library.import_web(&path, folder_id)?)
}

/// Looks at the file at a path, without importing it.
pub(super) fn content_at(api: &Api, path: &Path) -> Result<(PathBuf, Content), Error> {
    let path = absolute(api, "path", path)?;
    let content = api
        .library
        .content(&path)
        .map_err(|error| import_failed(&path, error))?;
    Ok((path, content))
}

/// The image at a path. Imports it if the library does not have it.
pub(super) fn import_at(
    api: &Api,
    request: &Request<'_>,
    path: &Path,
) -> Result<(i64, Option<String>), Error> {
    let _permit = request.permit()?;
    let imported = api.library.import_one(path);
    let (image, note) = imported.map_err(|error| import_failed(path, error))?;
    let warning = note.map(|note| format!("imported {}: {}", path.display(), note.text()));
    Ok((image.id, warning))
}

/// Faults of the file itself are client errors, all others are errors of the daemon.
fn import_failed(path: &Path, error: library::Error) -> Error {
    use library::Error as Why;
    use process::Error::{Late, Silent};
    let text = format!("{}: {}", path.display(), error.reason());
    match error {
        Why::File { action: "read" | "list", .. } | Why::NotFile { .. } => Error::not_found(text),
        Why::Media { source: decode::Error::NoProcess(_) | decode::Error::Killed, .. }
        | Why::Transcode { source: transcode::Error::NotShown(_) | transcode::Error::Missing { .. }, .. } => {
            Error::new(503, text)
        }
        Why::Media { .. } | Why::TooLong { .. } | Why::Name { .. } => Error::bad_request(text),
        Why::Transcode { source: transcode::Error::Failed { .. } | transcode::Error::Answer { .. }, .. }
        | Why::Transcode { source: transcode::Error::NoPicture | transcode::Error::Truncated, .. }
        | Why::Transcode { source: transcode::Error::TooLarge { .. }, .. }
        // Programs that time out on a file: the file is at fault.
        | Why::Transcode { source: transcode::Error::Run { source: Late { .. } | Silent { .. }, .. }, .. } => {
            Error::bad_request(text)
        }
        error => error.into(),
    }
}

#[derive(Deserialize)]
struct Cancel {
    batch_id: String,
}

/// `POST /images/cancel-import`
pub(in crate::http) fn cancel_import(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let Cancel { batch_id } = request.json()?;
    let _permit = request.permit()?;
    api.library.cancel(&batch_id)?;
    respond(200, &json!({"status": "cancelled", "batch_id": batch_id}))
}

/// Paths are absolute or begin with `~`, as the daemon's working directory has no meaning for
/// clients.
fn absolute(api: &Api, field: &str, path: &Path) -> Result<PathBuf, Error> {
    let path = api.dirs.tilde(path);
    if path.is_absolute() {
        return Ok(path);
    }
    let error = format!("{field}: {:?} is not absolute", path.display().to_string());
    Err(Error::bad_request(error).details(format!("{field} must begin with / or ~")))
}

/// Fails with this status if the folder, in the field `folder_id` of an object, does not exist.
pub(super) fn check_folder(
    api: &Api,
    object: &str,
    folder: Option<i64>,
    status: u16,
) -> Result<(), Error> {
    let exists = |id| api.store.read(|connection| folders::exists(connection, id));
    match folder {
        Some(id) if !exists(id)? => {
            let text = format!("{object}folder_id: no folder with ID {id}");
            Err(Error::new(status, text))
        }
        _ => Ok(()),
    }
}

/// The time for a long video and those before it in the queue. A later request finds the result.
const VIDEO_PATIENCE: Duration = Duration::from_secs(3600);

/// `POST /images/{id}/ensure-browser-preview`; `?force=1` makes it again.
pub(in crate::http) fn ensure_preview(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let force = match request.query().get("force") {
        None | Some("" | "0" | "false") => false,
        Some("1" | "true") => true,
        Some(other) => return Err(Error::parameter("force", other, "force is 0 or 1")),
    };
    let id = request.record()?;
    let made = |reply| api.library.ensure_preview(id, force, reply);
    let mut image = request.wait(VIDEO_PATIENCE, made)?;
    api.library.thumbnails().complete(&mut image);
    respond(200, &image)
}

/// `POST /images/{id}/extract-video-palette`
pub(in crate::http) fn extract_palette(
    api: &Api,
    request: &Request<'_>,
) -> Result<Response, Error> {
    let ExtractPalette { time_seconds } = request.json()?;
    let id = request.record()?;
    let taken = |reply| api.library.take_palette(id, time_seconds, reply);
    let mut image = request.wait(VIDEO_PATIENCE, taken)?;
    api.library.thumbnails().complete(&mut image);
    let body = json!({ "image_id": image.id, "colors": image.color_texts(), "image": image });
    respond(200, &body)
}

/// `POST /images/{id}/video-loop-export`
pub(in crate::http) fn export_loop(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: ExportLoop = request.json()?;
    let id = request.record()?;
    let goes = match (body.action, body.folder_id) {
        (LoopAction::Replace, Some(_)) => {
            return Err(Error::bad_request(
                "folder_id can be used with import_new only",
            ));
        }
        (LoopAction::Replace, None) => LoopGoes::Replace,
        (LoopAction::ImportNew, folder) => LoopGoes::New { folder },
    };
    // Every fault of a cut is a 400, a missing folder too.
    check_folder(api, "", body.folder_id, 400)?;
    let cut = Cut {
        from: body.in_seconds,
        to: body.out_seconds,
        blend_halves: body.blend_halves,
    };
    let wallpaper = api.wallpaper.clone();
    let made = |reply: Reply<Image, library::Error>| {
        let told = move |made: Result<_, _>| {
            if made.is_ok() && body.action == LoopAction::Replace {
                // If the video is shown, the loop replaces it there, even if the client has gone.
                wallpaper.settings_changed(Vec::new());
            }
            reply(made);
        };
        api.library
            .export_loop(id, (cut, body.preset), goes, Box::new(told));
    };
    let image = request.wait(VIDEO_PATIENCE, made)?;
    let body = json!({ "action": body.action, "image_id": image.id, "path": image.path });
    respond(200, &body)
}
