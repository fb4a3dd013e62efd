//! Monitors, backends, workspaces, the state of the session, light or dark, and themes.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    Argument, Call, Cell, CellStyle, Connection, Error, From, Group, Kind, RequestPath, Stdout,
    Verb, View, at, column, computed, items, more, place, text,
};
use crate::wire::AppearanceMode;

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Monitors and backends", verbs: &[
    Verb::get(&["monitors"], "List the connected monitors", "GET /monitors/{NAME}")
        .takes(&[Argument::optional("NAME", Kind::Monitor, "Only this monitor")]).shows(&[&MONITORS]),
    Verb::get(&["backends"], "List the backends", "GET /backends")
        .shows(&[&BACKENDS]),
    Verb::send(&["backends", "activate"], "Switch to a backend",
        "POST /backends/{NAME}/activate", &[])
        .takes(&[Argument::one("NAME", Kind::Backend, "Name of the backend")]).shows(&[&ACTIVATED])
        .help("Shows the wallpapers with it; if that fails, the previous backend stays active. Saved \
               in the configuration as backend.type."),
]};

#[rustfmt::skip]
pub(super) const THEMES: Group = Group { title: "Themes", verbs: &[
    Verb::get(&["themes"], "List your themes for graphical clients", "GET /api/themes")
        .shows(&[&THEME]),
    Verb::own(&["themes", "show"], "Print the style sheet of a theme", show_theme)
        .takes(&[Argument::one("NAME", Kind::Theme, "The theme's name")])
        .shows(&[&View::new("", &[more("name css")])]),
]};

#[rustfmt::skip]
pub(super) const POWER: Verb =
    Verb::send(&["power"], "Show or set the session state (locked, idle)", "PUT /power", &[
            ("locked", From::Of(|call| Ok(is_either(call, "locked", "unlocked")))),
            ("idle", From::Of(|call| Ok(is_either(call, "idle", "active")))),
        ])
        .takes(&[Argument::optional("STATE", Kind::Words(&["locked", "unlocked", "idle", "active"]),
            "The new state of the session")])
        .shows(&[&SESSION])
        .help("    murald power locked; swaylock; murald power unlocked\n\n\
               Playlists, videos and HTML wallpapers pause while the session is locked or idle if \
               power.pause_when_locked or power.pause_when_idle is set. Timers keep their remaining \
               time. The state survives a restart of the daemon, but not a new session.");

#[rustfmt::skip]
pub(super) const APPEARANCE: Verb =
    Verb::send(&["appearance"], "Show or set light and dark mode", "PUT /appearance",
        &[("mode", From::Given("MODE"))])
        .takes(&[Argument::optional("MODE", Kind::Words(AppearanceMode::WORDS),
            "light, dark, or auto (by sunrise and sunset)")])
        .shows(&[&LIGHT])
        .help("    murald playlist create desk day@light night@dark --type appearance\n    \
               murald appearance dark\n\n\
               Also changes playlists of type appearance. The default is auto: light from sunrise to \
               sunset if location.latitude and location.longitude are set, otherwise from 06:00 to \
               18:00. To follow the desktop, call this from darkman or a key binding.");

const MONITORS: View = View::table(
    "Monitor",
    &[
        computed("=NAME", "name primary", |monitor, _| {
            let primary = if monitor["primary"] == true { "*" } else { "" };
            let name = text(monitor, "name");
            Some(Cell::from(format!("{name}{primary}")).raw(name))
        }),
        column("=SIZE", "{width}x{height}"),
        column("=SCALE", "scale"),
        column("=AT", "{x},{y}"),
        column("DESCRIPTION", "description"),
        computed("=ROTATION", "transform", |monitor, _| {
            const ROTATIONS: [&str; 8] = [
                "no",
                "90°",
                "180°",
                "270°",
                "flipped",
                "flipped 90°",
                "flipped 180°",
                "flipped 270°",
            ];
            ROTATIONS
                .get(monitor["transform"].as_u64()? as usize)
                .map(|rotation| (*rotation).into())
        }),
        computed("=HZ", "refresh_rate", |monitor, _| {
            let rate = monitor["refresh_rate"].as_f64()?;
            Some(Cell::from(format!("{rate:.0}")).raw(rate))
        }),
        more("make model serial"),
    ],
    "no monitor is connected, or the compositor cannot be reached",
);
const BACKENDS: View = View::table(
    "Backend",
    &[
        column("=NAME", "name"),
        computed("STATE", "installed available active", |backend, _| {
            Some(state(backend))
        }),
        computed("SHOWS", "capabilities", |backend, _| {
            let kinds = items(backend, "capabilities.content_kinds").iter();
            let kinds = kinds.filter_map(Value::as_str).map(|kind| match kind {
                "static_image" => "images",
                "animated_image" => "animations",
                "video" => "videos",
                "web" => "HTML",
                other => other,
            });
            Some(kinds.collect::<Vec<_>>().join(", ").into())
        }),
        computed("=ON", "", |backend, _| {
            Some(text(backend, "capabilities.compositors").into())
        }),
        column("=VERSION", "version"),
        more("settings missing conflicts"),
    ],
    "",
);
const ACTIVATED: View = View::new(
    "POST /backends/{name}/activate",
    &[more("status backend warnings")],
)
.saying("switched to {backend}");
const SESSION: View = View::new(
    "Power",
    &[
        computed("battery", "battery", |power, _| {
            let battery = Some(&power["battery"]).filter(|on| !on.is_null());
            Some(battery.map_or_else(|| "not watched".into(), Cell::value))
        }),
        column("locked", "locked"),
        column("idle", "idle"),
        computed("paused", "resting", |power, _| {
            Some(power["resting"].as_str().unwrap_or("no").into())
        }),
    ],
);
const LIGHT: View = View::new(
    "Appearance",
    &[column("mode", "mode"), column("now", "now")],
);
const THEME: View = View::table(
    "Theme",
    &[
        column("NAME", "name"),
        column("TITLE", "display_name"),
        more("displayName source url"),
    ],
    "no themes; put them into the directory `themes` beside the configuration file (see `murald config path`)",
);

fn state(backend: &Value) -> Cell {
    let is = |field: &str| backend[field] == true;
    if is("active") {
        return Cell::from("active").look(CellStyle::Good);
    }
    if is("available") {
        return "available".into();
    }
    let missing = text(backend, "missing");
    let compositors = text(backend, "capabilities.compositors");
    let text = if !is("installed") && missing.is_empty() {
        "not installed"
    } else if !is("installed") {
        &format!("needs {missing}")
    } else if backend["name"] == "hyprpaper" {
        "Hyprland only"
    } else if at(backend, "settings.enabled") == false {
        "disabled"
    } else {
        match compositors.as_str() {
            "x11" => "X11 only",
            "wayland" => "Wayland only",
            _ => "not in this session",
        }
    };
    Cell::from(text).look(CellStyle::Dim)
}

/// True if STATE is `yes`, false if it is `no`, otherwise `None`.
fn is_either(call: &Call, yes: &str, no: &str) -> Option<Value> {
    let state = call.text("STATE")?;
    [yes, no].contains(&state).then(|| (state == yes).into())
}

fn show_theme(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let answer = call
        .connect()?
        .get(&place("/api/themes/{NAME}.css", call))?;
    if stdout.wants_data() {
        let css = String::from_utf8_lossy(&answer.body);
        return stdout.data(&json!({ "name": call.word("NAME"), "css": css }));
    }
    stdout.raw(&answer.body)
}

const WORKSPACE: Argument = Argument::one(
    "NAME",
    Kind::Workspace,
    "The full name of the workspace, such as 2 or 1:web",
);

pub(super) const WORKSPACE_LIST: Verb = Verb::get(
    &["workspace", "list"],
    "List the wallpapers of workspaces",
    "GET /workspaces",
)
.shows(&[&WORKSPACES]);
#[rustfmt::skip]
pub(super) const WORKSPACE_SET: Verb =
    Verb::own(&["workspace", "set"], "Set the wallpaper of a workspace", set_workspace)
        .takes(&[WORKSPACE, Argument::one("PICTURE", Kind::PictureOrPlaylist,
            "An image, a file, a colour, or playlist:NAME")])
        .shows(&[&WORKSPACE_SHOWS])
        .help("    murald workspace set 2 lake\n    murald workspace set 1:web playlist:sea\n\n\
               Works in sway, i3 and Hyprland. If the playlist is running, \
               the workspace shows its current image, otherwise its first one.");
pub(super) const WORKSPACE_CLEAR: Verb = Verb::own(
    &["workspace", "clear"],
    "Remove the wallpaper of a workspace",
    clear_workspace,
)
.takes(&[WORKSPACE])
.shows(&[&CLEARED]);

const WORKSPACES: View = View::table(
    "Workspace",
    &[
        column("=WORKSPACE", "name"),
        column(">ID", "image_id"),
        column(">PLAYLIST", "playlist_id"),
        column("=MONITOR", "monitor"),
        column("WARNING", "warning"),
        column("NAME", "image_name"),
        more("color"),
    ],
    "no workspace has a wallpaper; `murald workspace set NAME PICTURE` sets one",
);
const WORKSPACE_SHOWS: View = WORKSPACES.saying("set the wallpaper of workspace {name}");
const CLEARED: View = WORKSPACES.showing(|_, stdout, entry| {
    stdout.say(format!(
        "removed the wallpaper of workspace {}",
        text(entry, "name")
    ))
});

fn set_workspace(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let name = call.word("NAME");
    let reference = match call.value("PICTURE") {
        Some(Value::String(path)) if path.starts_with('/') => {
            named(&connection, &imported(&connection, path)?)?
        }
        Some(Value::String(playlist)) => playlist.clone(),
        id => named(&connection, &json!(id))?,
    };
    put(&connection, &json!({ &name: reference }))?;
    let entry = entry(&connection, &name)?;
    WORKSPACE_SHOWS.tell(call, stdout, &entry)
}

fn clear_workspace(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let name = call.word("NAME");
    let entry = entry(&connection, &name)?;
    if entry.is_null() {
        return Err(
            Error::refused(format!("workspace {name:?} has no wallpaper"))
                .hint("`murald workspace list` lists them"),
        );
    }
    put(&connection, &json!({ &name: null }))?;
    CLEARED.tell(call, stdout, &entry)
}

fn put(connection: &Connection, changes: &Value) -> Result<(), Error> {
    connection
        .patch(&RequestPath::new(&[&"config", &"workspaces"]), changes)
        .map(drop)
}

/// Null if the workspace has no entry.
fn entry(connection: &Connection, name: &str) -> Result<Value, Error> {
    let all: Vec<Value> = connection.read(&[&"workspaces"])?;
    Ok(all
        .into_iter()
        .find(|one| one["name"] == name)
        .unwrap_or_default())
}

/// The id of the image with a file's content; imports the file if there is none. The only directories
/// that are images are packages.
fn imported(connection: &Connection, path: &str) -> Result<Value, Error> {
    if Path::new(path).is_dir() {
        let to = RequestPath::new(&[&"images", &"import-web"]);
        let image: Value = connection.post(&to, &json!({ "path": path }))?.read()?;
        return Ok(image["id"].clone());
    }
    let body = json!({ "paths": [path], "wait": true });
    let batch: Value = connection
        .post(&RequestPath::new(&[&"images"]), &body)?
        .read()?;
    match batch["images"].get(0) {
        Some(id) => Ok(id.clone()),
        None => {
            let why = text(&batch["errors"][0], "error");
            Err(Error::refused(format!("cannot import {path}: {why}")))
        }
    }
}

/// The name of an image as the configuration has it; its id if the name could mean something else.
fn named(connection: &Connection, id: &Value) -> Result<String, Error> {
    let image: Value = connection.read(&[&"images", &id])?;
    let name = text(&image, "name");
    let is_special = ["playlist:", "id:", "name:", "/", "~", "#"]
        .iter()
        .any(|it| name.starts_with(it));
    Ok(if is_special { format!("id:{id}") } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_that_is_switched_off_is_not_for_another_session() {
        let check = |enabled: bool, expected: &str| {
            let backend =
                json!({"name": "builtin", "installed": true, "settings": {"enabled": enabled}});
            assert_eq!(state(&backend), Cell::from(expected).look(CellStyle::Dim));
        };
        check(false, "disabled");
        check(true, "not in this session");
    }
}
