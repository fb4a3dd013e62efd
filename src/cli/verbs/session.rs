//! Monitors, backends, the state of the session, light or dark, and themes.

use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::columns::{View, at, column, more, of, text};
use super::super::connection::{Answer, RequestPath};
use super::super::request::place;
use super::super::stdout::Stdout;
use super::super::table::{Cell, CellStyle};
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::wire::AppearanceMode;

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Monitors and backends", verbs: &[
    Verb::own(&["monitors"], "List the connected monitors", monitors)
        .takes(&[Argument::optional("NAME", Kind::Monitor, "Only this one")]).shows(&[&MONITORS]),
    Verb::get(&["backends"], "List the programs that can show wallpapers", "GET /backends")
        .shows(&[&BACKENDS]),
    Verb::send(&["backends", "activate"], "Use another of these programs",
        "POST /backends/{NAME}/activate", &[])
        .takes(&[Argument::one("NAME", Kind::Backend, "Its name")]).shows(&[&ACTIVATED])
        .help("The wallpapers are shown anew by it; where that fails, the old one stays in use.\n\
               It is kept in the configuration, as backend.type."),
]};

#[rustfmt::skip]
pub(super) const THEMES: Group = Group { title: "Themes", verbs: &[
    Verb::get(&["themes"], "List your themes for graphical clients", "GET /api/themes")
        .shows(&[&THEME]),
    Verb::own(&["themes", "show"], "Print a theme's style sheet", show_theme)
        .takes(&[Argument::one("NAME", Kind::Theme, "The theme's name")])
        .shows(&[&View::sheet("", &[more("name css")])]),
]};

#[rustfmt::skip]
pub(super) const POWER: Verb =
    Verb::own(&["power"], "Show whether all rests, or tell of the session", power)
        .takes(&[Argument::optional("STATE", Kind::Words(&["locked", "unlocked", "idle", "active"]),
            "What the session is from now on")])
        .shows(&[&SESSION])
        .help("    murald power locked; swaylock; murald power unlocked\n\n\
               Playlists, films and pages rest meanwhile where power.pause_when_locked or\n\
               power.pause_when_idle is set: nothing changes by itself, timers keep what was left, and\n\
               what moves stands still. A restart of the daemon keeps the state. A new session starts\n\
               unlocked and active.");

#[rustfmt::skip]
pub(super) const APPEARANCE: Verb =
    Verb::own(&["appearance"], "Show whether it is light or dark, or say what decides", appearance)
        .takes(&[Argument::optional("MODE", Kind::Words(AppearanceMode::WORDS),
            "light, dark, or auto: by the sun")])
        .shows(&[&LIGHT])
        .help("    murald playlist create desk day@light night@dark --type appearance\n    \
               murald appearance dark\n\n\
               Playlists of the type appearance change with it. By itself it is auto: light from\n\
               sunrise to sunset where location.latitude and location.longitude are set, else from\n\
               6 to 18 o'clock. To follow the desktop instead, let darkman or a key call this.");

const MONITORS: View = View::table(
    "Monitor",
    &[
        of("=NAME", "name primary", |monitor, _| {
            let primary = if monitor["primary"] == true { "*" } else { "" };
            let name = text(monitor, "name");
            Some(Cell::from(format!("{name}{primary}")).raw(name))
        }),
        column("=SIZE", "{width}x{height}"),
        column("=SCALE", "scale"),
        column("=AT", "{x},{y}"),
        column("DESCRIPTION", "description"),
        of("=TURNED", "transform", |monitor, _| {
            const TURNED: [&str; 8] = [
                "no",
                "90°",
                "180°",
                "270°",
                "flipped",
                "flipped 90°",
                "flipped 180°",
                "flipped 270°",
            ];
            TURNED.get(monitor["transform"].as_u64()? as usize).map(|turned| (*turned).into())
        }),
        of("=HZ", "refresh_rate", |monitor, _| {
            let rate = monitor["refresh_rate"].as_f64()?;
            Some(Cell::from(format!("{rate:.0}")).raw(rate))
        }),
        more("make model serial"),
    ],
    "no monitor is connected, or no compositor can be reached",
);
const BACKENDS: View = View::table(
    "Backend",
    &[
        column("=NAME", "name"),
        of("STATE", "installed available active", |backend, _| Some(state(backend))),
        of("SHOWS", "capabilities", |backend, _| {
            let kinds = at(backend, "capabilities.content_kinds").as_array().into_iter().flatten();
            let kinds = kinds.filter_map(Value::as_str).map(|kind| match kind {
                "static_image" => "images",
                "animated_image" => "animations",
                "video" => "videos",
                "web" => "HTML",
                other => other,
            });
            Some(kinds.collect::<Vec<_>>().join(", ").into())
        }),
        of("=ON", "", |backend, _| Some(text(backend, "capabilities.compositors").into())),
        column("=VERSION", "version"),
        more("settings missing conflicts"),
    ],
    "",
);
const ACTIVATED: View = View::says(
    "POST /backends/{name}/activate",
    &[more("status backend")],
    "{backend} is the active backend",
);
const SESSION: View = View::sheet(
    "Power",
    &[
        of("battery", "battery", |power, _| {
            let battery = Some(&power["battery"]).filter(|on| !on.is_null());
            Some(battery.map_or_else(|| "not looked at".into(), Cell::value))
        }),
        column("locked", "locked"),
        column("idle", "idle"),
        of("resting", "resting", |power, _| Some(power["resting"].as_str().unwrap_or("no").into())),
    ],
);
const LIGHT: View = View::sheet("Appearance", &[column("mode", "mode"), column("now", "now")]);
const THEME: View = View::table(
    "Theme",
    &[column("NAME", "name"), column("TITLE", "display_name"), more("displayName source url")],
    "no themes; yours go into the directory themes beside the configuration file, see \
     `murald config path`",
);

fn monitors(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let template = if call.has("NAME") { "/monitors/{NAME}" } else { "/monitors" };
    let answer = call.connect()?.get(&place(template, call))?;
    MONITORS.show(call, stdout, &answer)
}

fn state(backend: &Value) -> Cell {
    let is = |field: &str| backend[field] == true;
    if is("active") {
        return Cell::from("active").look(CellStyle::Good);
    }
    if is("available") {
        return "available".into();
    }
    let missing = text(backend, "missing");
    let text = match is("installed") {
        true if backend["name"] == "hyprpaper" => "needs Hyprland".to_owned(),
        true if at(backend, "settings.enabled") == false => "switched off".to_owned(),
        true => "for another session".to_owned(),
        false if missing.is_empty() => "not installed".to_owned(),
        false => format!("needs {missing}"),
    };
    Cell::from(text).look(CellStyle::Dim)
}

/// Shows a state of the daemon, or sets it first.
fn state_at(call: &Call, name: &str, change: Option<Value>) -> Result<Answer, Error> {
    let (connection, place) = (call.connect()?, RequestPath::new(&[&name]));
    match change {
        Some(change) => connection.put(&place, &change),
        None => connection.get(&place),
    }
}

fn power(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let change = call.text("STATE").map(|state| match state {
        "locked" | "unlocked" => json!({ "locked": state == "locked" }),
        _ => json!({ "idle": state == "idle" }),
    });
    SESSION.show(call, stdout, &state_at(call, "power", change)?)
}

fn appearance(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let change = call.value("MODE").map(|mode| json!({ "mode": mode }));
    LIGHT.show(call, stdout, &state_at(call, "appearance", change)?)
}

fn show_theme(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let answer = call.connect()?.get(&place("/api/themes/{NAME}.css", call))?;
    if stdout.wants_data() {
        let css = String::from_utf8_lossy(&answer.body);
        return stdout.data(&json!({ "name": call.word("NAME"), "css": css }));
    }
    stdout.raw(&answer.body)
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
        check(false, "switched off");
        check(true, "for another session");
    }
}
