//! `murald power` and `murald appearance`: the state of the session, and light or dark.

use serde_json::json;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::RequestPath;
use super::super::request::Record;
use super::super::stdout::Stdout;
use super::super::table::Table;
use super::super::verb::{Argument, Kind, Verb};
use crate::wire::{Appearance, AppearanceMode, Power};

pub(super) const POWER: Verb =
    Verb::new(&["power"], "Show whether all rests, or tell of the session", power)
        .arguments(&[Argument::optional(
            "STATE",
            Kind::Words(&["locked", "unlocked", "idle", "active"]),
            "What the session is from now on",
        )])
        .help(
            "    murald power locked; swaylock; murald power unlocked\n\n\
             Playlists, films and pages rest meanwhile where power.pause_when_locked or\n\
             power.pause_when_idle is set: nothing changes by itself, timers keep what was left, and\n\
             what moves stands still. A restart of the daemon keeps the state. A new session starts\n\
             unlocked and active.",
        );

fn power(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let (connection, place) = (call.connect()?, RequestPath::new(&[&"power"]));
    let answer = match call.text("STATE") {
        Some(state @ ("locked" | "unlocked")) => {
            connection.put(&place, &json!({ "locked": state == "locked" }))?
        }
        Some(state) => connection.put(&place, &json!({ "idle": state == "idle" }))?,
        None => connection.get(&place)?,
    };
    stdout.show(&answer, |stdout, now: Power| now.show(call, stdout))
}

impl Record for Power {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let mut sheet = Table::sheet();
        match self.battery {
            Some(battery) => sheet.field("battery", battery),
            None => sheet.field("battery", "not looked at"),
        }
        sheet.field("locked", self.locked);
        sheet.field("idle", self.idle);
        sheet.field("resting", self.resting.map_or("no", |rest| rest.as_str()));
        stdout.table(&sheet)
    }
}

pub(super) const APPEARANCE: Verb =
    Verb::new(&["appearance"], "Show whether it is light or dark, or say what decides", appearance)
        .arguments(&[Argument::optional(
            "MODE",
            Kind::Words(AppearanceMode::WORDS),
            "light, dark, or auto: by the sun",
        )])
        .help(
            "    murald playlist create desk day@light night@dark --type appearance\n    \
             murald appearance dark\n\n\
             Playlists of the type appearance change with it. By itself it is auto: light from\n\
             sunrise to sunset where location.latitude and location.longitude are set, else from\n\
             6 to 18 o'clock. To follow the desktop instead, let darkman or a key call this.",
        );

fn appearance(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let (connection, place) = (call.connect()?, RequestPath::new(&[&"appearance"]));
    let answer = match call.value("MODE") {
        Some(mode) => connection.put(&place, &serde_json::json!({ "mode": mode }))?,
        None => connection.get(&place)?,
    };
    stdout.show(&answer, |stdout, now: Appearance| now.show(call, stdout))
}

impl Record for Appearance {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let mut sheet = Table::sheet();
        sheet.field("mode", self.mode);
        sheet.field("now", self.now);
        stdout.table(&sheet)
    }
}
