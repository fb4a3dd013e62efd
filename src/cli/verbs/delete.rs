//! `murald images delete`: moves images into the desktop's trash or deletes them. Asks first on a
//! terminal.

use std::io::{self, BufRead as _, IsTerminal, Write as _};

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Error;
use super::super::call::{Call, shown};
use super::super::connection::{Connection, RequestPath};
use super::super::stdout::Stdout;
use super::super::terminal::{count, harmless};
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
             place, and those that copies were made of, stay. If an image was deleted while it is shown,\n\
     `murald images delete current --files` deletes the file that was kept.",
);

#[derive(Deserialize)]
struct Deleted {
    deleted: u64,
    /// In place, where their owner has them.
    #[serde(default)]
    files_kept: u64,
    /// That were kept before.
    #[serde(default)]
    files_removed: u64,
}

impl Deleted {
    fn told(&self, wanted: usize, forever: bool) -> String {
        let rest = if self.deleted < wanted as u64 { "; there are no others of these" } else { "" };
        let done = if forever { "deleted" } else { "moved to the trash" };
        let taken = match (self.deleted - self.files_kept.min(self.deleted), self.files_kept) {
            (taken, 0) => format!("{} {done}", count(taken, "image")),
            (0, kept) => format!("{} out of the library", count(kept, "image")),
            (taken, kept) => {
                format!("{} {done}, {kept} more out of the library", count(taken, "image"))
            }
        };
        let stays = match self.files_kept {
            0 => "",
            1 => "; its file stays where it is, --files takes it, too",
            _ => "; their files stay where they are, --files takes them, too",
        };
        format!("{taken}{stays}{rest}")
    }
}

fn delete(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    // The path of one that was deleted before, without its file.
    let (paths, ids): (Vec<_>, Vec<_>) =
        gallery::chosen(call, &connection)?.into_iter().partition(Value::is_string);
    if !paths.is_empty() {
        return delete_kept(call, stdout, &connection, (&paths, &ids));
    }
    if ids.is_empty() {
        return stdout.say("no image matches");
    }
    let forever = call.has("--forever");
    if !call.has("--yes") && is_asked() {
        let (names, in_place) = names(&connection, &ids)?;
        let how = match (in_place && !call.has("--files"), forever) {
            (true, _) => How::KeepingFiles,
            (false, true) => How::ForGood,
            (false, false) => How::IntoTrash,
        };
        if !agrees(&question(&names, ids.len(), how))? {
            return Err(Error::refused("nothing was deleted"));
        }
    }
    // Said in any case: without it the trash would get files in place, too.
    let body = json!({ "ids": ids, "trash": !forever, "files": call.has("--files") });
    let answer = connection.delete(&RequestPath::new(&[&"images"]), Some(&body));
    let answer = answer.map_err(|error| match error.status() {
        Some(500) if !forever => error.hint("--forever deletes without the trash"),
        _ => error,
    })?;
    if answer.read::<Deleted>().is_ok_and(|answer| answer.deleted == 0) {
        let ids: Vec<String> = ids.iter().take(LISTED).map(Value::to_string).collect();
        return Err(Error::not_found(format!("no image {}", ids.join(", "))));
    }
    stdout.show(&answer, |stdout, gone: Deleted| stdout.say(gone.told(ids.len(), forever)))
}

/// Files that stayed on the disk when their images were deleted.
fn delete_kept(
    call: &Call,
    stdout: &mut Stdout,
    connection: &Connection,
    (paths, ids): (&[Value], &[Value]),
) -> Result<(), Error> {
    let forever = call.has("--forever");
    if !call.has("--yes") && is_asked() {
        let names: Vec<String> = paths.iter().map(shown).collect();
        let how = if forever { How::ForGood } else { How::IntoTrash };
        if !agrees(&question(&names, names.len(), how))? {
            return Err(Error::refused("nothing was deleted"));
        }
    }
    let mut body = json!({ "paths": paths, "trash": !forever, "files": true });
    if !ids.is_empty() {
        body["ids"] = ids.into();
    }
    let answer = connection.delete(&RequestPath::new(&[&"images"]), Some(&body))?;
    stdout.show(&answer, |stdout, gone: Deleted| {
        let done = if forever { "deleted" } else { "moved to the trash" };
        stdout.say(format!("{} {done}", count(gone.files_removed, "file")))
    })
}

/// Whether somebody sits there who can answer, and sees what is asked.
pub(super) fn is_asked() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// What becomes of the files.
#[derive(Clone, Copy)]
enum How {
    IntoTrash,
    ForGood,
    KeepingFiles,
}

/// Of the first ones, `NAME (ID)`; and whether those are all, and all in place.
fn names(connection: &Connection, ids: &[Value]) -> Result<(Vec<String>, bool), Error> {
    let (mut names, mut in_place) = (Vec::new(), ids.len() <= LISTED);
    for id in ids.iter().take(LISTED) {
        let image: Value = connection.get(&RequestPath::new(&[&"images", id]))?.read()?;
        names.push(format!("{} ({id})", shown(&image["name"])));
        in_place &= image["in_place"] == true;
    }
    Ok((names, in_place))
}

fn question(names: &[String], all: usize, how: How) -> String {
    let listed = names.join(", ");
    let what = match all {
        1 => listed,
        _ if all > names.len() => {
            format!("{all} images, {listed} and {} more,", all - names.len())
        }
        _ => format!("{all} images, {listed},"),
    };
    match how {
        How::ForGood => format!("Delete {what} for good?"),
        How::IntoTrash => format!("Move {what} to the trash?"),
        How::KeepingFiles => format!("Take {what} out of the library, and leave the files?"),
    }
}

/// Only a clear yes is one; the end of input is none.
pub(super) fn agrees(question: &str) -> Result<bool, Error> {
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
        let check = |ids: &[&str], all, how, expected: &str| {
            assert_eq!(question(&names(ids), all, how), expected);
        };
        check(&["1"], 1, How::IntoTrash, "Move p (1) to the trash?");
        check(&["1", "2"], 2, How::ForGood, "Delete 2 images, p (1), p (2), for good?");
        check(&["1"], 9, How::IntoTrash, "Move 9 images, p (1) and 8 more, to the trash?");
        let kept = "Take p (1) out of the library, and leave the files?";
        check(&["1"], 1, How::KeepingFiles, kept);
    }

    #[test]
    fn the_answer_says_what_has_happened() {
        let check = |deleted, files_kept, wanted, expected: &str| {
            let files_removed = 0;
            let gone = Deleted { deleted, files_kept, files_removed };
            assert_eq!(gone.told(wanted, false), expected);
        };
        check(2, 0, 2, "2 images moved to the trash");
        check(1, 0, 3, "1 image moved to the trash; there are no others of these");
        let kept = "1 image out of the library; its file stays where it is, --files takes it, too";
        check(1, 1, 1, kept);
        let some = "1 image moved to the trash, 2 more out of the library; \
                    their files stay where they are, --files takes them, too";
        check(3, 2, 3, some);
    }
}
