//! The question, request and report of `murald images delete`, to the desktop's trash or for good.

use std::io::{self, BufRead as _, IsTerminal, Write as _};

use serde_json::Value;

use super::{Call, Error, Flag, View, count, harmless, items, more, number, text};

pub(super) const YES: Flag = Flag::switch(
    "--yes",
    "Do not ask for confirmation (the default when not on a terminal)",
);
pub(super) const FOREVER: Flag = Flag::switch(
    "--forever",
    "Remove the files instead of moving them to the trash",
);

/// Names that the question lists.
const LISTED: usize = 5;

pub(super) const DELETED: View = View::new(
    "DELETE /images",
    &[more("deleted files files_kept warnings")],
)
.showing(|call, stdout, answer| {
    let forever = call.has("--forever");
    let (files, stuck) = (items(answer, "files"), items(answer, "files_kept"));
    let deleted = number(answer, "deleted");
    let gone = (files.len() + stuck.len()) as u64;
    let kept = if call.has("--files") {
        0
    } else {
        deleted.saturating_sub(gone)
    };
    let all = if gone > deleted {
        names(files)
    } else {
        String::new()
    };
    let said = said(deleted, (kept, stuck.len() as u64), forever);
    stdout.say(format!("{said}{all}"))?;
    stdout.warn_all(answer);
    Ok(())
});

/// The files of an image that has several.
fn names(files: &[Value]) -> String {
    let names: Vec<_> = files.iter().filter_map(Value::as_str).collect();
    format!(": {}", names.join(", "))
}

/// Always sent: without this field, files in place would go to the trash, too.
pub(super) fn files(call: &Call) -> Result<Option<Value>, Error> {
    Ok(Some(call.has("--files").into()))
}

/// `kept`: the images whose files are kept as they are in place; `stuck`: the files that could not be
/// removed.
fn said(deleted: u64, (kept, stuck): (u64, u64), forever: bool) -> String {
    let done = if forever {
        "deleted"
    } else {
        "moved to the trash"
    };
    let stays = kept + stuck;
    let gone = match (deleted.saturating_sub(stays), stays) {
        (gone, 0) => format!("{} {done}", count(gone, "image")),
        (0, _) => format!("{} removed from the library", count(deleted, "image")),
        (gone, stays) => {
            format!(
                "{} {done}, {stays} more removed from the library",
                count(gone, "image")
            )
        }
    };
    let files = match kept {
        0 => "",
        1 => "; its file is kept (--files deletes it as well)",
        _ => "; their files are kept (--files deletes them as well)",
    };
    format!("{gone}{files}")
}

/// The question, which names the first images and says what happens to their files.
pub(super) fn question(call: &Call) -> Result<Option<String>, Error> {
    ask(call, call.has("--files"))
}

/// The same if the files of images in place are moved, too.
pub(super) fn question_of_trash(call: &Call) -> Result<Option<String>, Error> {
    ask(call, true)
}

fn ask(call: &Call, files: bool) -> Result<Option<String>, Error> {
    let all = call.all("IMAGE");
    let mut names = Vec::new();
    let mut in_place = all.len() <= LISTED && !files;
    for one in all.iter().take(LISTED) {
        let image: Value = call.connect()?.read(&[&"images", one])?;
        let mut name = format!("{} ({one})", text(&image, "name"));
        let files = items(&image, "files");
        if call.has("--files") && !files.is_empty() {
            name.push_str(&format!(
                " with {} files{}",
                files.len(),
                self::names(files)
            ));
        }
        names.push(name);
        in_place &= image["in_place"] == true;
    }
    let what = listing(&names, all.len());
    Ok(Some(match (in_place, call.has("--forever")) {
        (true, _) => format!("Remove {what} from the library and keep the files?"),
        (false, true) => format!("Delete {what} for good?"),
        (false, false) => format!("Move {what} to the trash?"),
    }))
}

fn listing(names: &[String], all: usize) -> String {
    let listed = names.join(", ");
    match all {
        1 => listed,
        _ if all > names.len() => {
            format!("{all} images, {listed} and {} more,", all - names.len())
        }
        _ => format!("{all} images, {listed},"),
    }
}

/// Asks before anything is deleted, if input and stderr are a terminal.
pub(crate) fn confirm(
    call: &Call,
    question: impl FnOnce(&Call) -> Result<Option<String>, Error>,
) -> Result<(), Error> {
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    if call.has("--yes") || !is_asked {
        return Ok(());
    }
    match question(call)? {
        Some(question) if !agrees(&question)? => Err(Error::refused("nothing was deleted")),
        _ => Ok(()),
    }
}

/// Reads the answer: only `y` or `yes` agrees.
fn agrees(question: &str) -> Result<bool, Error> {
    let failed = |error| Error::refused("nothing was deleted").because(error);
    write!(io::stderr(), "{} [y/N] ", harmless(question)).map_err(failed)?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).map_err(failed)? == 0 {
        // The next output begins on a line of its own.
        writeln!(io::stderr()).map_err(failed)?;
    }
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_names_the_first_images() {
        let names = |ids: &[&str]| ids.iter().map(|id| format!("p ({id})")).collect::<Vec<_>>();
        let check = |ids: &[&str], all, expected: &str| {
            assert_eq!(listing(&names(ids), all), expected);
        };
        check(&["1"], 1, "p (1)");
        check(&["1", "2"], 2, "2 images, p (1), p (2),");
        check(&["1"], 9, "9 images, p (1) and 8 more,");
    }

    #[test]
    fn report_counts_deleted_and_kept_images() {
        let check = |deleted, kept, expected: &str| {
            assert_eq!(said(deleted, (kept, 0), false), expected);
        };
        check(2, 0, "2 images moved to the trash");
        let kept =
            "1 image removed from the library; its file is kept (--files deletes it as well)";
        check(1, 1, kept);
        let some = "1 image moved to the trash, 2 more removed from the library; their files are kept (--files deletes them as well)";
        check(3, 2, some);
    }
}
