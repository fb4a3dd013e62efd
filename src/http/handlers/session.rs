//! The desktop session: light or dark, locked or idle, the wallpapers of workspaces, and the connected
//! monitors.
//!
//! A request waits for the player of the playlists. A change of the appearance also waits until its
//! pictures are shown.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::{Api, PLAYED_PATIENCE, PLAYER_PATIENCE, SHOW_PATIENCE, respond};
use crate::compositor::Output;
use crate::error_chain::chain;
use crate::http::{Error, Request, Response};
use crate::library;
use crate::sys::lock;
use crate::wallpaper::{entries_by_name, reference};
use crate::wire::{Appearance, Image, Power, PutAppearance, PutPower};

/// `GET /appearance`
pub(in crate::http) fn appearance(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let now: Appearance = request.wait(PLAYER_PATIENCE, |reply| api.playlists.appearance(reply))?;
    respond(200, &now)
}

/// `PUT /appearance`
pub(in crate::http) fn put_appearance(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let PutAppearance { mode } = request.json()?;
    let set = |reply| api.playlists.set_appearance(mode, reply);
    let now: Appearance = request.wait(PLAYED_PATIENCE, set)?;
    respond(200, &now)
}

/// `GET /power`
pub(in crate::http) fn power(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    respond(200, &api.playlists.power())
}

/// `PUT /power`
pub(in crate::http) fn put_power(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let told: PutPower = request.json()?;
    if told.locked.is_none() && told.idle.is_none() {
        return Err(Error::bad_request(
            "nothing to set: give locked, idle or both",
        ));
    }
    // The state belongs to a compositor.
    api.wallpaper.wait_for_look();
    let tell = |reply| api.playlists.report_power(told, reply);
    let power: Power = request.wait(PLAYER_PATIENCE, tell)?;
    respond(200, &power)
}

/// `GET /workspaces`
pub(in crate::http) fn workspaces(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    api.wallpaper.wait_for_look();
    let entries = request.wait(SHOW_PATIENCE, |reply| api.wallpaper.workspaces(reply))?;
    respond(200, &entries)
}

/// Renames an image by `edit`, and rewrites the workspace entries that name it. In between they
/// contain its ID, so that they always refer to the image. Entries that others change in between
/// are kept.
pub(super) fn renamed(
    api: &Api,
    image_id: i64,
    edit: impl FnOnce() -> Result<Image, library::Error>,
) -> Result<Image, Error> {
    // A second rename would not find the entries of the first by their names.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = lock(&ONE_AT_A_TIME);
    let named = entries_by_name(&api.store, &api.config.current().workspaces, image_id)?;
    if named.is_empty() {
        return Ok(edit()?);
    }
    let by_id = format!("id:{image_id}");
    api.config.rewrite_workspaces(|workspace, written| {
        (named.get(workspace)? == written).then(|| by_id.clone())
    })?;
    let image = edit();
    let by_name = |workspace: &str, written: &str| {
        let before = named.get(workspace).filter(|_| written == by_id)?;
        Some(image.as_ref().map_or_else(|_| before.clone(), reference))
    };
    if let Err(error) = api.config.rewrite_workspaces(by_name) {
        log::error!("cannot rewrite the section workspaces: {}", chain(&error));
    }
    Ok(image?)
}

/// The number of monitors in one request.
const MONITORS_MAX: usize = 256;
/// Bytes of a monitor's name.
const MONITOR_NAME_MAX: usize = 255;

/// `GET /monitors`
pub(in crate::http) fn monitors(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let outputs = api.outputs();
    respond(200, &outputs.iter().map(monitor_record).collect::<Vec<_>>())
}

/// `GET /monitors/{name}`
pub(in crate::http) fn monitor(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let name = request.placeholder();
    let outputs = api.outputs();
    let Some(output) = outputs.iter().find(|output| output.name == name) else {
        return Err(api.no_monitor(name));
    };
    respond(200, &monitor_record(output))
}

/// The names of monitors in a body, without duplicates, in the order given. A monitor need not be
/// connected: the monitors of a docking station are declared while it is unplugged.
pub(super) fn distinct_names(names: Vec<String>) -> Result<Vec<String>, Error> {
    if names.len() > MONITORS_MAX {
        return Err(Error::bad_request(format!(
            "more than {MONITORS_MAX} monitors are named"
        )));
    }
    let mut named = Vec::with_capacity(names.len());
    for name in names {
        if name.is_empty() {
            return Err(Error::bad_request("the name of a monitor is empty"));
        }
        if name.len() > MONITOR_NAME_MAX {
            let text = format!("the name of a monitor has more than {MONITOR_NAME_MAX} bytes");
            return Err(Error::bad_request(text));
        }
        if !named.contains(&name) {
            named.push(name);
        }
    }
    Ok(named)
}

fn monitor_record(output: &Output) -> Value {
    json!({
        "name": output.name,
        "width": output.width,
        "height": output.height,
        "x": output.x,
        "y": output.y,
        "scale": output.scale,
        "refresh_rate": output.refresh_rate,
        "transform": output.transform,
        "description": output.description,
        "make": output.identity.make,
        "model": output.identity.model,
        "serial": output.identity.serial,
        "primary": output.primary,
    })
}
