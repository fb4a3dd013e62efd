//! The settings, the backends and the themes.
//!
//! Settings are answered as the snapshot has them: paths as written, every key present. Themes are
//! CSS files for graphical clients, in the directory `themes` beside the configuration file.

use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::{Api, SHOW_PATIENCE, respond};
use crate::backends::{REGISTRY, Registration, registration, transition_words};
use crate::compositor::Compositor;
use crate::config::{Backend, BackendName, Changed, Section, SelectionMode};
use crate::http::{Error, Request, Response, file};
use crate::wire::Conflict;

/// `GET /config`
pub(in crate::http) fn whole(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    respond(200, &all(api, false))
}

/// `PATCH /config`: an object of sections; answers with the whole.
pub(in crate::http) fn patch_whole(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: Map<String, Value> = request.json()?;
    let changed = api.config.patch(&body)?;
    settle(api, request, &changed);
    let chosen = body
        .get("backend")
        .and_then(|backend| backend.get("type"))
        .is_some();
    let chosen = chosen && changed.sections.contains(&Section::Backend);
    changed_answer(all(api, chosen), &changed)
}

/// `POST /config/reset`
pub(in crate::http) fn reset_whole(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let changed = api.config.reset_all()?;
    settle(api, request, &changed);
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
    changed_answer(
        api.config.current().section(Section::BackendOptions(name)),
        &changed,
    )
}

/// The settings, and all warnings of the daemon. The default backend counts as chosen by a person
/// only if the request chose it.
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

/// A warning if the settings name a backend that cannot be used.
fn unused_backend(api: &Api, settings: &Backend) -> Option<String> {
    if settings.selection_mode != SelectionMode::Fixed {
        return None;
    }
    api.wallpaper.wait_for_look();
    let why = api.backends.unusable(registration(settings.kind))?;
    let used = match api.backends.available().first() {
        Some(first) => format!("using {}", first.name),
        None => "no other backend can be used".to_owned(),
    };
    Some(format!("backend.type: {why}; {used}"))
}

/// A warning about settings of a backend while another one draws. In the mode auto none is needed: the
/// backend may be chosen for the next wallpaper.
fn not_in_use(api: &Api, name: BackendName) -> Option<String> {
    let active = api
        .wallpaper
        .status()
        .active
        .filter(|active| *active != name)?;
    let is_fixed = api.config.current().backend.selection_mode == SelectionMode::Fixed;
    if !is_fixed || !api.wallpaper.shown_by(name).is_empty() {
        return None;
    }
    let text =
        format!("{name} is not in use ({active} is): the change applies when {name} is used");
    Some(match api.backends.unusable(registration(name)) {
        Some(_) => text,
        None => format!("{text}; `murald backends activate {name}` switches to it"),
    })
}

fn shown(api: &Api, section: Section) -> Result<Response, Error> {
    respond(200, &api.config.current().section(section))
}

fn patch(api: &Api, section: Section, request: &Request<'_>) -> Result<Response, Error> {
    let body: Map<String, Value> = request.json()?;
    let mut changed = api.config.patch_section(section, &body)?;
    // These apply at once: `enabled` to the choice of the backend, the other to imports.
    let applies =
        |key: &String| matches!(&*key.replace('-', "_"), "enabled" | "video_audio_default");
    if let Section::BackendOptions(name) = section
        && !body.keys().all(applies)
    {
        changed.warnings.extend(not_in_use(api, name));
    }
    settle(api, request, &changed);
    changed_answer(api.config.current().section(section), &changed)
}

/// Waits until changed wallpapers of workspaces are shown.
fn settle(api: &Api, request: &Request<'_>, changed: &Changed) {
    if changed.sections.contains(&Section::Workspaces) {
        // A failure to show one does not undo the change.
        request
            .wait(SHOW_PATIENCE, |reply| api.wallpaper.settle(reply))
            .ok();
    }
}

fn changed_answer(mut body: Map<String, Value>, changed: &Changed) -> Result<Response, Error> {
    if changed.restart_required {
        body.insert("restart_required".to_owned(), true.into());
    }
    // `all` contains all warnings already, and a client may keep a key of this name.
    if !changed.warnings.is_empty() && !body.contains_key("warnings") {
        body.insert("warnings".to_owned(), changed.warnings.clone().into());
    }
    if let Some(backup) = &changed.backup {
        body.insert("backup".to_owned(), backup.to_string_lossy().into());
    }
    respond(200, &body)
}

/// `backend` has its own routes and is a 404 here.
fn section_of(request: &Request<'_>) -> Result<Section, Error> {
    let name = request.placeholder();
    let has_route = |section: &Section| *section != Section::Backend;
    Section::requested(name).filter(has_route).ok_or_else(|| {
        let all = Section::top()
            .into_iter()
            .filter(has_route)
            .map(Section::heading);
        let all = all.collect::<Vec<_>>().join(", ");
        Error::not_found(format!("no section named {name:?}"))
            .details(format!("sections are {all}"))
    })
}

fn backend_of(request: &Request<'_>) -> Result<BackendName, Error> {
    request
        .placeholder()
        .parse()
        .map_err(|unknown: crate::wire::Unknown| {
            Error::not_found(format!("no backend named {:?}", unknown.value))
                .details(format!("backends are {}", unknown.allowed.join(", ")))
        })
}

/// `GET /backends`
pub(in crate::http) fn backends(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    // Read once, as another backend may be activated between two reads.
    let active = api.wallpaper.status().active;
    let conflicts = api.backends.conflicts();
    let info = |entry| backend_info(api, entry, active == Some(entry.name), &conflicts(entry));
    let list: Vec<Value> = REGISTRY.iter().map(info).collect();
    respond(200, &list)
}

/// `POST /backends/{name}/activate`; answers once the new backend shows everything and the settings
/// name it, so that it stays in use after a restart. The mode `auto` becomes `fixed`. If the settings
/// cannot be written, the backend that they name is used again.
pub(in crate::http) fn activate(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let name = request.placeholder().to_owned();
    // No backend is exchanged if the settings cannot be written.
    api.config.can_change()?;
    let back = || api.wallpaper.deactivate();
    let activated = request.wait(SHOW_PATIENCE, |reply| api.wallpaper.activate(name, reply));
    // The backend may still be activated after the time limit, when the client has got an error.
    let activated = activated.inspect_err(|_| back())?;
    let name = activated.backend.as_str();
    let fixed = [
        ("type", name),
        ("selection_mode", SelectionMode::Fixed.as_str()),
    ];
    let settings = fixed.map(|(key, value)| (key.to_owned(), value.into()));
    api.config
        .patch_section(Section::Backend, &settings.into_iter().collect())
        .inspect_err(|_| back())?;
    let mut body = json!({"status": "activated", "backend": name});
    if !activated.warnings.is_empty() {
        body["warnings"] = json!(activated.warnings);
    }
    respond(200, &body)
}

fn backend_info(api: &Api, entry: &Registration, active: bool, conflicts: &[Conflict]) -> Value {
    let missing = api.backends.missing(entry);
    let kinds = api.backends.kinds(entry).iter().map(|kind| kind.as_str());
    let compositors = entry.compositors.iter().map(|one| Compositor::as_str(*one));
    json!({
        "name": entry.name,
        "installed": missing.is_empty(),
        "available": api.backends.is_available(entry),
        "active": active,
        "version": if missing.is_empty() { api.backends.version(entry) } else { None },
        "capabilities": {
            "content_kinds": kinds.collect::<Vec<_>>(),
            "compositors": compositors.collect::<Vec<_>>(),
            "transitions": transition_words(entry.name, None).len() > 1,
        },
        "settings": api.config.current().section(Section::BackendOptions(entry.name)),
        "missing": missing,
        "conflicts": conflicts,
    })
}

/// `GET /api/themes`
pub(in crate::http) fn themes(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let mut names = theme_names(&api.dirs.themes());
    names.sort_unstable();
    let themes: Vec<Value> = names.iter().map(|name| theme_record(name)).collect();
    respond(200, &themes)
}

/// `GET /api/themes/{name}.css`
pub(in crate::http) fn theme_css(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let asked = request.placeholder();
    let name = asked.strip_suffix(".css");
    let path = name.and_then(|name| theme_file(&api.dirs.themes(), name));
    let path = path
        .ok_or_else(|| Error::not_found(format!("no theme named {:?}", name.unwrap_or(asked))))?;
    file(request, &path, "text/css; charset=utf-8")
}

/// All themes that `theme_file` finds.
fn theme_names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let stem = |name: &str| name.strip_suffix(".css").map(str::to_owned);
    let names = entries.filter_map(|entry| entry.file_name().to_str().and_then(stem));
    names
        .filter(|name| theme_file(directory, name).is_some())
        .collect()
}

/// The file of a theme, if it is a file in the directory after symbolic links were followed.
fn theme_file(directory: &Path, name: &str) -> Option<PathBuf> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        return None;
    }
    let path = directory.join(format!("{name}.css")).canonicalize().ok()?;
    let home = directory.canonicalize().ok()?;
    (path.starts_with(home) && path.is_file()).then_some(path)
}

fn theme_record(name: &str) -> Value {
    let words = name.split(['-', '_', ' ']).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    };
    let display_name = words.map(capital).collect::<Vec<_>>().join(" ");
    json!({
        "name": name,
        "display_name": display_name,
        // The same again, under the name that graphical clients read.
        "displayName": display_name,
        "source": "user",
        "url": format!("/api/themes/{}.css", utf8_percent_encode(name, ESCAPED)),
    })
}

/// In a segment of a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_of_the_directory_are_themes() {
        let outside = tempfile::tempdir().unwrap();
        let themes = outside.path().join("themes");
        fs::create_dir_all(themes.join("folder.css")).unwrap();
        for name in [
            "night-sky.css",
            "a b.css",
            ".hidden.css",
            "readme.txt",
            "../secret.css",
        ] {
            fs::write(themes.join(name), ":root {}").unwrap();
        }
        symlink("../secret.css", themes.join("leak.css")).unwrap();
        symlink("a b.css", themes.join("alias.css")).unwrap();
        let mut names = theme_names(&themes);
        names.sort_unstable();
        assert_eq!(names, ["a b", "alias", "night-sky"]);
        for bad in [
            "",
            "..",
            "../secret",
            "leak",
            ".hidden",
            "folder",
            "a\\b",
            "none",
        ] {
            assert_eq!(theme_file(&themes, bad), None, "{bad}");
        }
    }

    #[test]
    fn theme_names_are_shown_as_words() {
        let theme = theme_record("night-sky ö");
        assert_eq!(theme["display_name"], "Night Sky Ö");
        assert_eq!(theme["url"], "/api/themes/night-sky%20%C3%B6.css");
    }
}
