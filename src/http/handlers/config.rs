//! The settings, as the snapshot has them: paths as written, every key present.

use serde_json::{Map, Value};

use super::Api;
use crate::backends::registration;
use crate::config::{Backend, BackendName, Changed, Section, SelectionMode};
use crate::http::{Error, Request, Response};

/// `GET /config`
pub(in crate::http) fn whole(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    Ok(Response::json(200, &all(api, false))?)
}

/// `PATCH /config`: an object of sections; answers with the whole.
pub(in crate::http) fn patch_whole(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: Map<String, Value> = request.json()?;
    let changed = api.config.patch(&body)?;
    let chosen = body.get("backend").and_then(|backend| backend.get("type")).is_some();
    let chosen = chosen && changed.sections.contains(&Section::Backend);
    changed_answer(all(api, chosen), &changed)
}

/// `POST /config/reset`
pub(in crate::http) fn reset_whole(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let changed = api.config.reset_all()?;
    changed_answer(all(api, false), &changed)
}

/// `GET /config/{section}`
pub(in crate::http) fn section(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    shown(api, section_of(request)?)
}

/// `PATCH /config/{section}`: an object of keys; answers with the section.
pub(in crate::http) fn patch_section(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    patch(api, section_of(request)?, request)
}

/// `GET /config/backends/{backend}`
pub(in crate::http) fn backend(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    shown(api, Section::BackendOptions(backend_of(request)?))
}

/// `PATCH /config/backends/{backend}`: an object of keys; answers with the backend's settings.
pub(in crate::http) fn patch_backend(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    patch(api, Section::BackendOptions(backend_of(request)?), request)
}

/// `POST /config/backends/{backend}/reset`
pub(in crate::http) fn reset_backend(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let name = backend_of(request)?;
    let changed = api.config.reset_backend(name)?;
    changed_answer(api.config.current().section(Section::BackendOptions(name)), &changed)
}

/// The settings, and all warnings of the daemon. The default backend is one that nobody chose, unless the
/// request did.
fn all(api: &Api, chosen: bool) -> Map<String, Value> {
    let config = api.config.current();
    let mut whole = config.to_json();
    let mut warnings = api.warnings();
    if chosen || config.backend.kind != Backend::default().kind {
        warnings.extend(unused_backend(api, &config.backend));
    }
    if !warnings.is_empty() {
        whole.insert("warnings".to_owned(), warnings.into());
    }
    whole
}

/// What to say where the settings name a backend that cannot be used.
fn unused_backend(api: &Api, settings: &Backend) -> Option<String> {
    if settings.selection_mode != SelectionMode::Fixed {
        return None;
    }
    api.wallpaper.wait_for_look();
    let why = api.backends.unusable(registration(settings.kind))?;
    let used = match api.backends.available().first() {
        Some(first) => format!("{} is used instead", first.name),
        None => "no other can be used instead".to_owned(),
    };
    Some(format!("backend.type: {why}; {used}"))
}

fn shown(api: &Api, section: Section) -> Result<Response, Error> {
    Ok(Response::json(200, &api.config.current().section(section))?)
}

fn patch(api: &Api, section: Section, request: &Request<'_>) -> Result<Response, Error> {
    let changed = api.config.patch_section(section, &request.json()?)?;
    changed_answer(api.config.current().section(section), &changed)
}

fn changed_answer(mut body: Map<String, Value>, changed: &Changed) -> Result<Response, Error> {
    if changed.restart_required {
        body.insert("restart_required".to_owned(), true.into());
    }
    // The whole has all warnings already, and a client may keep a key of this name.
    if !changed.warnings.is_empty() && !body.contains_key("warnings") {
        body.insert("warnings".to_owned(), changed.warnings.clone().into());
    }
    if let Some(backup) = &changed.backup {
        body.insert("backup".to_owned(), backup.to_string_lossy().into());
    }
    Ok(Response::json(200, &body)?)
}

/// `backend` has its own routes and is a 404 here.
fn section_of(request: &Request<'_>) -> Result<Section, Error> {
    let name = request.placeholder(0);
    let has_route = |section: &Section| *section != Section::Backend;
    Section::named(name).filter(has_route).ok_or_else(|| {
        let all = Section::TOP.into_iter().filter(has_route).map(Section::heading);
        let all = all.collect::<Vec<_>>().join(", ");
        Error::not_found(format!("there is no section {name:?}"))
            .details(format!("sections are {all}, and backends/NAME"))
    })
}

fn backend_of(request: &Request<'_>) -> Result<BackendName, Error> {
    request.placeholder(0).parse().map_err(|unknown: crate::wire::Unknown| {
        Error::not_found(format!("there is no backend {:?}", unknown.value))
            .details(format!("backends are {}", unknown.allowed.join(", ")))
    })
}
