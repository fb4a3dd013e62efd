//! What ffmpeg makes of videos. Its threads do it, the request waits.

use std::time::Duration;

use serde_json::json;

use super::Api;
use super::imports::known;
use crate::http::{Error, Reply, Request, Response};
use crate::library::{self, LoopGoes};
use crate::transcode::Cut;
use crate::wire::{ExportLoop, ExtractPalette, Image, LoopAction};

/// For a long film, and those that wait before it. Whoever asks again finds it made.
const PATIENCE: Duration = Duration::from_secs(3600);

/// `POST /images/{id}/ensure-browser-preview`; `?force=1` makes it anew.
pub(in crate::http) fn ensure_preview(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let force = match request.query().get("force") {
        None | Some("" | "0" | "false") => false,
        Some("1" | "true") => true,
        Some(other) => return Err(Error::parameter("force", other, "force is 0 or 1")),
    };
    let id = request.record()?;
    let made = |reply| api.library.ensure_preview(id, force, reply);
    let mut image = request.wait(PATIENCE, made)?;
    api.library.thumbnails().complete(&mut image);
    Ok(Response::json(200, &image)?)
}

/// `POST /images/{id}/extract-video-palette`
pub(in crate::http) fn extract_palette(
    api: &Api,
    request: &Request<'_>,
) -> Result<Response, Error> {
    let ExtractPalette { time_seconds } = request.json()?;
    let id = request.record()?;
    let taken = |reply| api.library.take_palette(id, time_seconds, reply);
    let mut image = request.wait(PATIENCE, taken)?;
    api.library.thumbnails().complete(&mut image);
    let body = json!({ "image_id": image.id, "colors": image.colors, "image": image });
    Ok(Response::json(200, &body)?)
}

/// `POST /images/{id}/video-loop-export`
pub(in crate::http) fn export_loop(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: ExportLoop = request.json()?;
    let id = request.record()?;
    let goes = match (body.action, body.folder_id) {
        (LoopAction::Replace, Some(_)) => {
            return Err(Error::bad_request("folder_id is for import_new only"));
        }
        (LoopAction::Replace, None) => LoopGoes::Replace,
        (LoopAction::ImportNew, folder) => LoopGoes::New { folder },
    };
    // Whatever is wrong with a cut is 400.
    known(api, body.folder_id, 400)?;
    let cut = Cut { from: body.in_seconds, to: body.out_seconds, blend_halves: body.blend_halves };
    let wallpaper = api.wallpaper.clone();
    let made = |reply: Reply<Image, library::Error>| {
        let told = move |made: Result<_, _>| {
            if made.is_ok() && body.action == LoopAction::Replace {
                // Where the film is shown, the loop takes its place, also where nobody waits any more.
                wallpaper.settings_changed(Vec::new());
            }
            reply(made);
        };
        api.library.export_loop(id, (cut, body.preset), goes, Box::new(told));
    };
    let image = request.wait(PATIENCE, made)?;
    let body = json!({ "action": body.action, "image_id": image.id, "path": image.path });
    Ok(Response::json(200, &body)?)
}
