//! What lock screens and idle daemons tell of the session.

use serde_json::json;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::request::Record;
use super::super::stdout::Stdout;
use super::super::table::Table;
use super::super::verb::{Argument, Kind, Verb};
use crate::wire::Power;

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
    let (connection, place) = (call.connect()?, Place::new(&[&"power"]));
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
