//! `murald themes`: the user's themes for graphical clients.

use serde_json::json;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::RequestPath;
use super::super::request::{Record, Request};
use super::super::stdout::Stdout;
use super::super::table::Table;
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::wire::Theme;

pub(super) const GROUP: Group = Group {
    title: "Themes",
    verbs: &[
        Verb::asking(&["themes"], "List your themes for graphical clients", LIST),
        Verb::new(&["themes", "show"], "Print a theme's style sheet", show)
            .arguments(&[Argument::one("NAME", Kind::Theme, "The theme's name")]),
    ],
};

const LIST: Request = Request::get("/api/themes").shows::<Vec<Theme>>();

impl Record for Vec<Theme> {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.is_empty() {
            return stdout.note(
                "no themes; yours go into the directory themes beside the configuration \
                 file, see `murald config path`",
            );
        }
        let mut table = Table::new(&["NAME", "TITLE"]);
        for theme in self {
            table.row([theme.name.into(), theme.display_name.into()]);
        }
        stdout.table(&table)
    }
}

fn show(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let name = call.word("NAME");
    let file = format!("{name}.css");
    let answer = call.connect()?.get(&RequestPath::new(&[&"api", &"themes", &file]))?;
    if stdout.wants_data() {
        let css = String::from_utf8_lossy(&answer.body);
        return stdout.data(&json!({"name": name, "css": css}));
    }
    stdout.raw(&answer.body)
}
