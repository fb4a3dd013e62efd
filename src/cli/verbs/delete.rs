//! Images out of the library: into the desktop's trash, or for good. Asks first where somebody sits.

use std::io::{self, BufRead as _, IsTerminal, Write as _};

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Error;
use super::super::call::{Call, shown};
use super::super::connection::{Connection, Place};
use super::super::screen::Screen;
use super::super::text::{count, harmless};
use super::super::verb::{Flag, NULL, Verb};
use super::gallery;
use super::image_sheet::MANY;

/// Names that the question lists.
const LISTED: usize = 5;

pub(super) const DELETE: Verb = Verb::new(
    &["images", "delete"],
    "Delete images from the library, files and all",
    delete,
)
.arguments(&[MANY])
.flags(&gallery::together::<4, { gallery::FILTERS.len() }, { 4 + gallery::FILTERS.len() }>([
    Flag::switch("--yes", "Ask nothing; elsewhere than on a terminal nothing is asked"),
    Flag::switch("--forever", "Remove the files, instead of moving them to the trash"),
    Flag::switch("--files", "Also the files of images that are no copies of murald's"),
    NULL,
]))
.help(
    "With filters, all images that pass them. murald's copies go to the desktop's trash; files in \
             place, and those that copies were made of, stay.",
);

#[derive(Deserialize)]
struct Deleted {
    deleted: u64,
}

fn delete(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let connection = call.connect()?;
    let ids = gallery::chosen(call, &connection)?;
    if ids.is_empty() {
        return screen.say("no image matches");
    }
    let forever = call.has("--forever");
    if !call.has("--yes") && is_asked() {
        let names = names(&connection, &ids)?;
        if !agrees(&question(&names, ids.len(), forever))? {
            return Err(Error::refused("nothing was deleted"));
        }
    }
    // Said in any case: without it the trash would get files in place, too.
    let body = json!({ "ids": ids, "trash": !forever, "files": call.has("--files") });
    let answer = connection.delete(&Place::new(&[&"images"]), Some(&body));
    let answer = answer.map_err(|error| match error.status() {
        Some(500) if !forever => error.hint("--forever deletes without the trash"),
        _ => error,
    })?;
    if answer.read::<Deleted>().is_ok_and(|answer| answer.deleted == 0) {
        let ids: Vec<String> = ids.iter().take(LISTED).map(Value::to_string).collect();
        return Err(Error::refused(format!("no image {}", ids.join(", "))));
    }
    screen.show(&answer, |screen, Deleted { deleted }| {
        let rest = if deleted < ids.len() as u64 { "; there are no others of these" } else { "" };
        let done = if forever { "deleted" } else { "moved to the trash" };
        screen.say(format!("{} {done}{rest}", count(deleted, "image")))
    })
}

/// Whether somebody sits there who can answer, and sees what is asked.
fn is_asked() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Of the first ones, `NAME (ID)`.
fn names(connection: &Connection, ids: &[Value]) -> Result<Vec<String>, Error> {
    let one = |id: &Value| {
        let image: Value = connection.get(&Place::new(&[&"images", id]))?.read()?;
        Ok(format!("{} ({id})", shown(&image["name"])))
    };
    ids.iter().take(LISTED).map(one).collect()
}

fn question(names: &[String], all: usize, forever: bool) -> String {
    let listed = names.join(", ");
    let what = match all {
        1 => listed,
        _ if all > names.len() => {
            format!("{all} images, {listed} and {} more,", all - names.len())
        }
        _ => format!("{all} images, {listed},"),
    };
    match forever {
        true => format!("Delete {what} for good?"),
        false => format!("Move {what} to the trash?"),
    }
}

/// Only a clear yes is one; the end of input is none.
fn agrees(question: &str) -> Result<bool, Error> {
    let failed = |error| Error::refused("nothing was deleted").because(error);
    write!(io::stderr(), "{} [y/N] ", harmless(question)).map_err(failed)?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).map_err(failed)? == 0 {
        // What comes next is to begin a line.
        writeln!(io::stderr()).map_err(failed)?;
    }
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_says_what_would_happen() {
        let names = |ids: &[&str]| ids.iter().map(|id| format!("p ({id})")).collect::<Vec<_>>();
        let check = |ids: &[&str], all, forever, expected: &str| {
            assert_eq!(question(&names(ids), all, forever), expected);
        };
        check(&["1"], 1, false, "Move p (1) to the trash?");
        check(&["1", "2"], 2, true, "Delete 2 images, p (1), p (2), for good?");
        check(&["1"], 9, false, "Move 9 images, p (1) and 8 more, to the trash?");
    }
}
