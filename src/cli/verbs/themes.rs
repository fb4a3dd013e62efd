//! User themes: palettes for graphical clients.

use super::super::Failure;
use super::super::arguments::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::wire::Theme;

pub(super) const GROUP: Group =
    Group {
        title: "Themes",
        verbs: &[
            Verb::new(&["themes"], "The user's themes", list),
            Verb::new(&["themes", "get"], "A theme's style sheet", get)
                .arguments(&[Argument::one("NAME", Kind::Theme, "The theme")]),
        ],
    };

fn list(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&Place::new(&[&"api", &"themes"]))?;
    screen.show(&answer, |screen, themes: Vec<Theme>| {
        if themes.is_empty() {
            return screen.line(
                "no themes; they are *.css in the directory themes beside the \
                                configuration, see `murald config path`",
            );
        }
        let mut table = Table::new(&["NAME", "TITLE"]);
        for theme in themes {
            table.row([theme.name.into(), theme.display_name.into()]);
        }
        screen.table(&table)
    })
}

fn get(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let file = format!("{}.css", call.word("NAME"));
    let answer = call.connect()?.get(&Place::new(&[&"api", &"themes", &file]))?;
    screen.raw(&answer.body)
}
