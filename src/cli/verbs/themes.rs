//! User themes: palettes for graphical clients.

use serde_json::json;

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::wire::Theme;

pub(super) const GROUP: Group = Group {
    title: "Themes",
    verbs: &[
        Verb::new(&["themes"], "List your themes for graphical clients", list),
        Verb::new(&["themes", "show"], "Print a theme's style sheet", show)
            .arguments(&[Argument::one("NAME", Kind::Theme, "The theme's name")]),
    ],
};

fn list(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&Place::new(&[&"api", &"themes"]))?;
    screen.show(&answer, |screen, themes: Vec<Theme>| {
        if themes.is_empty() {
            return screen.line(
                "no themes; yours go into the directory themes beside the configuration \
                 file, see `murald config path`",
            );
        }
        let mut table = Table::new(&["NAME", "TITLE"]);
        for theme in themes {
            table.row([theme.name.into(), theme.display_name.into()]);
        }
        screen.table(&table)
    })
}

fn show(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let name = call.word("NAME");
    let file = format!("{name}.css");
    let answer = call.connect()?.get(&Place::new(&[&"api", &"themes", &file]))?;
    // A file, also where nobody reads along; JSON only where it is asked for.
    if call.globals.json {
        let css = String::from_utf8_lossy(&answer.body);
        return screen.body(json!({"name": name, "css": css}).to_string().as_bytes());
    }
    screen.raw(&answer.body)
}
