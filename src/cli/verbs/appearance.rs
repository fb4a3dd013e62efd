//! Light and dark.

use super::super::Error;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::request::Record;
use super::super::stdout::Stdout;
use super::super::table::Table;
use super::super::verb::{Argument, Kind, Verb};
use crate::wire::{Appearance, AppearanceMode};

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
    let (connection, place) = (call.connect()?, Place::new(&[&"appearance"]));
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
