//! What ffmpeg makes of videos. Its threads answer when it is done: no worker waits.

use std::time::Duration;

use serde_json::json;

use super::Api;
use super::imports::known;
use crate::http::{Answer, Failure, Request};
use crate::library::LoopGoes;
use crate::transcode::Cut;
use crate::wire::{ExportLoop, ExtractPalette, LoopAction};

/// For a long film, and those that wait before it. Whoever asks again finds it made.
const PATIENCE: Duration = Duration::from_secs(3600);

/// `POST /images/{id}/ensure-browser-preview`; `?force=1` makes it anew.
pub(in crate::http) fn ensure_preview(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let force = match request.query().get("force") {
        None | Some("" | "0" | "false") => false,
        Some("1" | "true") => true,
        Some(other) => return Err(Failure::parameter("force", other, "force is 0 or 1")),
    };
    let id = request.record()?;
    let (promise, giver) = request.promise(PATIENCE)?;
    let thumbnails = api.library.thumbnails().clone();
    let reply = move |made: Result<_, _>| {
        giver.give(made.map_err(Failure::from).and_then(|mut image| {
            thumbnails.complete(&mut image);
            Ok(Answer::json(200, &image)?)
        }));
    };
    api.library.ensure_preview(id, force, Box::new(reply));
    Ok(Answer::Later(promise))
}

/// `POST /images/{id}/extract-video-palette`
pub(in crate::http) fn extract_palette(
    api: &Api,
    request: &Request<'_>,
) -> Result<Answer, Failure> {
    let ExtractPalette { time_seconds } = request.json()?;
    let id = request.record()?;
    let (promise, giver) = request.promise(PATIENCE)?;
    let thumbnails = api.library.thumbnails().clone();
    let reply = move |taken: Result<_, _>| {
        giver.give(taken.map_err(Failure::from).and_then(|mut image| {
            thumbnails.complete(&mut image);
            let body = json!({ "image_id": image.id, "colors": image.colors, "image": image });
            Ok(Answer::json(200, &body)?)
        }));
    };
    api.library.take_palette(id, time_seconds, Box::new(reply));
    Ok(Answer::Later(promise))
}

/// `POST /images/{id}/video-loop-export`
pub(in crate::http) fn export_loop(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let body: ExportLoop = request.json()?;
    let id = request.record()?;
    let goes = match (body.action, body.folder_id) {
        (LoopAction::Replace, Some(_)) => {
            return Err(Failure::bad_request("folder_id is for import_new only"));
        }
        (LoopAction::Replace, None) => LoopGoes::Replace,
        (LoopAction::ImportNew, folder) => LoopGoes::New { folder },
    };
    known(api, body.folder_id)?;
    let cut = Cut { from: body.in_seconds, to: body.out_seconds, blend_halves: body.blend_halves };
    let (promise, giver) = request.promise(PATIENCE)?;
    let (walls, action) = (api.walls.clone(), body.action);
    let reply = move |made: Result<_, _>| {
        if made.is_ok() && action == LoopAction::Replace {
            // Where the film hangs, the loop takes its place.
            walls.settings_changed(Vec::new());
        }
        giver.give(made.map_err(Failure::from).and_then(|image: crate::wire::Image| {
            let body = json!({ "action": action, "image_id": image.id, "path": image.path });
            Ok(Answer::json(200, &body)?)
        }));
    };
    api.library.export_loop(id, (cut, body.preset), goes, Box::new(reply));
    Ok(Answer::Later(promise))
}
