//! The backends: which there are, which can be used, and which is.

use serde_json::json;

use super::Api;
use super::wallpaper::PATIENCE;
use crate::backends::{Kind, REGISTRY, Registration};
use crate::compositor::Compositor;
use crate::config::{Section, SelectionMode};
use crate::http::{Error, Request, Response};
use crate::wire::{BackendInfo, Capabilities, Conflict};

/// `GET /backends`
pub(in crate::http) fn list(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    // Read once: what is in use may change meanwhile, and is one.
    let active = api.wallpaper.status().active;
    let conflicts = api.backends.conflicts();
    let info = |entry| info(api, entry, active == Some(entry.name), conflicts(entry));
    let list: Vec<BackendInfo> = REGISTRY.iter().map(info).collect();
    Ok(Response::json(200, &list)?)
}

/// `POST /backends/{name}/activate`; answers once the new backend shows everything and the settings
/// say so: it stays in use after a restart, in `auto` mode too, which this ends. Where the settings
/// cannot be written, the wall goes back to what they say.
pub(in crate::http) fn activate(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let name = request.placeholder(0).to_owned();
    // No screen goes over and back for settings that cannot be written.
    api.config.can_change()?;
    let back = || api.wallpaper.deactivate();
    let activated = request.wait(PATIENCE, |reply| api.wallpaper.activate(name, reply));
    // After the patience it may still come about, and the client was told that it did not.
    let activated = activated.inspect_err(|_| back())?;
    let name = activated.backend.as_str();
    let fixed = [("type", name), ("selection_mode", SelectionMode::Fixed.as_str())];
    let settings = fixed.map(|(key, value)| (key.to_owned(), value.into()));
    api.config
        .patch_section(Section::Backend, &settings.into_iter().collect())
        .inspect_err(|_| back())?;
    Ok(Response::json(200, &json!({"status": "activated", "backend": name}))?)
}

fn info(api: &Api, entry: &Registration, active: bool, conflicts: Vec<Conflict>) -> BackendInfo {
    let missing = api.backends.missing(entry);
    let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    let compositors: Vec<&str> =
        entry.compositors.iter().map(|one| Compositor::as_str(*one)).collect();
    BackendInfo {
        name: entry.name.to_string(),
        installed: missing.is_empty(),
        available: api.backends.is_available(entry),
        active,
        version: if missing.is_empty() { api.backends.version(entry) } else { None },
        capabilities: Capabilities {
            content_kinds: names(api.backends.kinds(entry)),
            compositors: compositors.into_iter().map(str::to_owned).collect(),
            transitions: entry.transitions,
        },
        settings: api.config.current().section(Section::BackendOptions(entry.name)),
        missing: missing.into_iter().map(str::to_owned).collect(),
        conflicts,
    }
}
