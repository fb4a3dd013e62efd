//! Wallpapers: setting them, what is shown, and the history. A request waits until its picture is shown.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::json;

use super::images::filter_in_body;
use super::library::{content_at, import_at};
use super::session::distinct_names;
use super::{Api, SHOW_PATIENCE, respond};
use crate::color::{self, hex};
use crate::config::BackendName;
use crate::http::{Error, Request, Response};
use crate::store::assignments::{self, Assignment};
use crate::store::{self, history, images, workspaces};
use crate::wallpaper::{self, Applied, Ask, Targets};
use crate::wire::{
    BackWallpaper, CurrentMonitor, Event, Fit, GalleryDomain, Image, Mode, Position,
    RandomWallpaper, SetAnswer, SetSound, SetStatus, SetWallpaper, Sound, SoundChange, Source,
};

/// `GET /wallpaper/current`
pub(in crate::http) fn current(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let status = api.wallpaper.status();
    // Without a compositor, no backend has been looked for.
    let had_none = status.is_missing || api.backends.compositor().is_none();
    if status.active.is_none() && had_none && api.backends.available().is_empty() {
        return Err(wallpaper::Error::no_backend(&api.backends).into());
    }
    let outputs = api.outputs();
    let connected = |shown: &Assignment| outputs.iter().any(|output| output.name == shown.monitor);
    let (monitors, default) = api.store.read::<_, store::Error>(|connection| {
        let mut monitors = Vec::new();
        let pictures = workspaces::all(connection)?;
        let workspace = |monitor: &str| {
            let picture = pictures
                .iter()
                .find(|picture| picture.row.monitor == monitor);
            picture.map(|picture| picture.workspace.clone())
        };
        for shown in workspaces::shown(connection)?.into_iter().filter(connected) {
            // A row without its image is about to be purged.
            let Some(image) = images::assigned(connection, shown.image_id)? else {
                continue;
            };
            let workspace = workspace(&shown.monitor);
            let sound = shown.sound;
            let silent = !image.audio_enabled;
            let is_heard = shown.backend == BackendName::Mpvpaper.as_str();
            monitors.push(CurrentMonitor {
                image_id: image.library_id(),
                image_path: image.library_path(),
                color: image.color(),
                paused_by: api.wallpaper.status.paused_by(&shown.monitor),
                monitor_name: shown.monitor,
                image_name: image.name,
                description: image.description,
                mode: shown.mode,
                backend: shown.backend,
                set_at: shown.set_at,
                fit: shown.fit,
                position: shown.position,
                muted: is_heard.then(|| sound.map_or(silent, |sound| sound.muted)),
                volume: sound.filter(|_| is_heard).map(|sound| sound.volume),
                workspace,
            });
        }
        monitors.sort_by(|one, other| one.monitor_name.cmp(&other.monitor_name));
        Ok((monitors, assignments::default(connection)?))
    })?;
    let mut current = json!({});
    if let Some(newest) = monitors.iter().max_by_key(|monitor| monitor.set_at) {
        let newest = serde_json::to_value(newest)?;
        for field in OF_NEWEST {
            if let Some(value) = newest.get(field) {
                current[field] = value.clone();
            }
        }
    } else if let Some(backend) = status.active {
        current["backend"] = backend.as_str().into();
    }
    // The wallpaper of monitors that were never seen before.
    match default.map(|one| (one.image_id, color::from_image_id(one.image_id))) {
        Some((_, Some(color))) => current["default_color"] = hex(color).into(),
        Some((id, None)) => current["default_image_id"] = id.into(),
        None => {}
    }
    current["monitors"] = serde_json::to_value(monitors)?;
    respond(200, &current)
}

/// Fields of the newest monitor's record that the answer repeats at its top.
const OF_NEWEST: [&str; 7] = [
    "backend",
    "image_id",
    "image_name",
    "image_path",
    "color",
    "mode",
    "set_at",
];

/// `POST /wallpaper/set`
pub(in crate::http) fn set(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: SetWallpaper = request.json()?;
    let names = wished(body.monitor, body.monitors)?;
    let mode = body.mode.unwrap_or(Mode::Individual);
    if mode == Mode::Each {
        let text = "mode each is only for random and playlists";
        return Err(Error::bad_request(text));
    }
    let default = body.default == Some(true);
    if default {
        check_default(&names, body.transition.as_deref())?;
    }
    let (fit, position, transition) = (body.fit, body.position, body.transition);
    let asked = asked(api, request, names, (Ask::Random, Source::Manual))?;
    let asked = wallpaper::Request {
        mode,
        fit,
        position,
        transition,
        ..asked
    };
    let mut warning = None;
    let image = match (body.image_id, body.path, body.color) {
        (Some(id), None, None) => {
            if color::from_image_id(id).is_some() {
                return Err(wallpaper::Error::NoImage { id }.into());
            }
            api.library.image_now(id)?;
            id
        }
        (None, None, Some(text)) => color_id(&text)?,
        (None, Some(path), None) => {
            // Checked first, so that a file that cannot be shown is not imported.
            let (path, content) = content_at(api, &path)?;
            if !default {
                let asked = asked.clone();
                request.wait(SHOW_PATIENCE, |reply| {
                    api.wallpaper.check(asked, content, reply)
                })?;
            }
            let (image, note) = import_at(api, request, &path)?;
            warning = note;
            image
        }
        (None, None, None) => {
            return Err(Error::bad_request("image_id, path or color is missing"));
        }
        _ => return Err(Error::bad_request("give one of image_id, path and color")),
    };
    let mut answer = if default {
        set_default(api, image, (mode, fit, position))?
    } else {
        apply(
            api,
            request,
            wallpaper::Request {
                ask: Ask::Image(image),
                ..asked
            },
        )?
    };
    answer.warnings.extend(warning);
    respond(200, &answer)
}

/// The id of a plain colour.
fn color_id(text: &str) -> Result<i64, Error> {
    let marked = color::marked(text).map(color::image_id);
    marked.ok_or_else(|| {
        let error = Error::bad_request(format!("color must be #rrggbb or #rgb, not {text:?}"));
        match color::parse_hex(text) {
            Some(_) => error.details(format!("did you mean \"#{text}\"?")),
            None => error,
        }
    })
}

fn check_default(names: &[String], transition: Option<&str>) -> Result<(), Error> {
    if transition.is_some() {
        return Err(Error::bad_request(
            "default cannot be combined with transition: no monitor changes now",
        ));
    }
    if names.iter().all(|name| name == "*") {
        Ok(())
    } else {
        Err(Error::bad_request(
            "default cannot be combined with monitors: it is for monitors not seen before",
        ))
    }
}

/// Sets the wallpaper of monitors that are plugged in later. Connected monitors keep theirs.
fn set_default(
    api: &Api,
    image: i64,
    how: (Mode, Option<Fit>, Option<Position>),
) -> Result<SetAnswer, Error> {
    let image = api
        .wallpaper
        .set_default(&api.store, api.library.on_lost(), image, how)?;
    Ok(answer(&image, how.0, api.wallpaper.status().active))
}

/// The answer for all monitors while none is connected.
fn answer(image: &Image, mode: Mode, backend: Option<BackendName>) -> SetAnswer {
    SetAnswer {
        status: SetStatus::Set,
        image_id: image.id,
        image_name: Some(image.name.clone()),
        image_path: image.library_path(),
        color: image.color(),
        monitor: "*".to_owned(),
        monitors: Vec::new(),
        skipped: Vec::new(),
        mode,
        backend: backend.map(|backend| backend.to_string()),
        images: BTreeMap::new(),
        warnings: Vec::new(),
        note: None,
        hidden_by: BTreeMap::new(),
    }
}

/// `POST /wallpaper/random`; the body is optional.
pub(in crate::http) fn random(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: RandomWallpaper = request.json_or_default()?;
    let names = wished(body.monitor, body.monitors)?;
    let filter = body
        .filter
        .as_ref()
        .map(|fields| filter_in_body(api, fields))
        .transpose()?
        .map(Box::new);
    let mode = body.mode.unwrap_or(Mode::Individual);
    let (fit, position, transition) = (body.fit, body.position, body.transition);
    let asked = asked(api, request, names, (Ask::Random, Source::Random))?;
    let asked = wallpaper::Request {
        filter,
        mode,
        fit,
        position,
        transition,
        ..asked
    };
    respond(200, &apply(api, request, asked)?)
}

/// `POST /wallpaper/back`; the body is optional.
pub(in crate::http) fn back(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: BackWallpaper = request.json_or_default()?;
    let names = wished(body.monitor, body.monitors)?;
    let asked = asked(api, request, names, (Ask::Back(1), Source::Manual))?;
    respond(200, &apply(api, request, asked)?)
}

/// `POST /wallpaper/sound`
pub(in crate::http) fn sound(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let SetSound {
        monitor,
        monitors,
        muted,
        volume,
    } = request.json()?;
    let volume = volume.map(|volume| match u8::try_from(volume) {
        Ok(percent @ 0..=100) => Ok(percent),
        _ => Err(Error::bad_request(format!(
            "volume must be an integer from 0 to 100, not {volume}"
        ))),
    });
    let change = SoundChange {
        muted,
        volume: volume.transpose()?,
    };
    if change == SoundChange::default() {
        return Err(Error::bad_request(
            "nothing to set: give muted, volume or both",
        ));
    }
    let targets = Targets::from_names(distinct_names(wished(monitor, monitors)?)?);
    let ask = |change| {
        let targets = targets.clone();
        request.wait(SHOW_PATIENCE, |reply| {
            api.wallpaper.sound(targets, change, reply)
        })
    };
    let _permit = request.permit()?;
    let until = Instant::now() + SHOW_PATIENCE;
    if targets != Targets::All {
        // Changes all of the named monitors, or none.
        ask(SoundChange::default())?.check(until)?;
    }
    let (monitors, sound) = ask(change)?.settle(&api.store, until)?;
    let Sound { muted, volume } = sound;
    let body = json!({"status": "set", "monitors": monitors, "muted": muted, "volume": volume});
    respond(200, &body)
}

/// The monitors that a body names; none means all. Clients send `*` along with a list.
fn wished(monitor: Option<String>, monitors: Option<Vec<String>>) -> Result<Vec<String>, Error> {
    let list = monitors.unwrap_or_default();
    match monitor {
        None => Ok(list),
        Some(name) if name == "*" => Ok(list),
        Some(name) if list.iter().all(|other| *other == name) => Ok(vec![name]),
        Some(name) => Err(
            Error::bad_request("monitor and monitors contradict each other")
                .details(format!("monitor is {name:?}, monitors is {list:?}")),
        ),
    }
}

/// The request to the reconciler for these monitors.
fn asked(
    api: &Api,
    request: &Request<'_>,
    names: Vec<String>,
    (ask, source): (Ask, Source),
) -> Result<wallpaper::Request, Error> {
    let targets = Targets::from_names(distinct_names(names)?);
    let by_hook = request.by_hook(&api.desktop);
    Ok(wallpaper::Request {
        by_hook,
        ..wallpaper::Request::new(ask, targets, source)
    })
}

fn apply(api: &Api, request: &Request<'_>, asked: wallpaper::Request) -> Result<SetAnswer, Error> {
    // Each monitor may have a different image: the answer lists them.
    let several = asked.mode == Mode::Each || matches!(asked.ask, Ask::Back(_));
    let all = asked.targets == Targets::All;
    let applied = request.wait(SHOW_PATIENCE, |reply| api.wallpaper.set(asked, reply))?;
    let Applied {
        image,
        monitors,
        mode,
        backend,
        ..
    } = applied;
    Ok(SetAnswer {
        status: applied.outcome,
        monitor: if all {
            "*".to_owned()
        } else {
            monitors.join(",")
        },
        monitors,
        skipped: applied.skipped,
        images: if several {
            applied.images
        } else {
            BTreeMap::new()
        },
        warnings: applied.warnings,
        note: applied.note,
        hidden_by: applied.hidden_by,
        ..answer(&image, mode, Some(backend))
    })
}

const HISTORY_LIMIT: u64 = 50;
const HISTORY_MOST: u64 = 1000;

/// `GET /images/history`
pub(in crate::http) fn history(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let query = request.query();
    let limit = query
        .integer("limit", 1, u64::MAX)?
        .unwrap_or(HISTORY_LIMIT)
        .min(HISTORY_MOST);
    let query = history::HistoryQuery {
        monitor: query.get("monitor").map(str::to_owned),
        since_id: query.value("since_id", "since_id must be an integer")?,
        before_id: query.value("before_id", "before_id must be an integer")?,
        limit: u32::try_from(limit).expect("at most a thousand"),
    };
    let entries = api
        .store
        .read(|connection| history::list(connection, &query))?;
    respond(200, &entries)
}

/// `DELETE /images/history`
pub(in crate::http) fn clear_history(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let deleted = api
        .store
        .write::<_, store::Error>(|transaction| history::clear(transaction))?;
    if deleted > 0 {
        api.events.publish(&Event::GalleryChanged {
            domain: GalleryDomain::History,
        });
    }
    respond(200, &json!({"status": "cleared", "deleted": deleted}))
}
