//! Finds the record that a word names: by its exact name, else by a prefix that only one has. Pure.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::super::Error;
use super::super::columns::text;
use crate::wire::Format;
use crate::wire::collate::{folded, nearest};

/// Names that a message lists.
const LISTED: usize = 10;

/// A record that a word could mean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Named {
    pub(super) id: i64,
    pub(super) name: String,
    /// The file and the format of an image.
    #[serde(default)]
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) format: Option<Format>,
    /// The parent of a folder.
    #[serde(default)]
    pub(super) parent_id: Option<i64>,
}

/// The id of a folder, given by a name from anywhere in the tree, or by the names from the root down
/// with `/` between. A name may contain `/`, too.
pub(super) fn folder(word: &str, tree: &[Named]) -> Result<i64, Error> {
    if !word.contains('/') || tree.iter().any(|one| one.name == word) {
        return Ok(among("folder", word, tree)?.id);
    }
    if let Some(one) = exactly(word, tree) {
        return Ok(one.id);
    }
    let mut at = None;
    let mut rest = word.trim_matches('/');
    while !rest.is_empty() {
        let inside = tree.iter().filter(|folder| folder.parent_id == at);
        let inside: Vec<Named> = inside.cloned().collect();
        let (part, more) = rest.split_once('/').unwrap_or((rest, ""));
        let is_whole = exactly(part, &inside).is_none() && exactly(rest, &inside).is_some();
        let (part, more) = if is_whole { (rest, "") } else { (part, more) };
        at = Some(among("folder", part, &inside)?.id);
        rest = more.trim_start_matches('/');
    }
    at.ok_or_else(|| Error::usage("FOLDER must be a name, a path of names or an ID, not \"/\""))
}

/// The error for an image with a text that is not a time after its `@`.
pub(super) fn not_a_time(time: &str, error: &Error) -> Error {
    Error::not_found(format!("{time:?} is not a time, and {}", error.reason())).hint(
        "times are HH:MM (00:00 to 23:59), or sunrise, sunset, dawn or dusk, also with an offset \
         such as sunset-30m; modes are light and dark",
    )
}

/// The path of a folder: the names of its parents that are in `all`, and its own, with `/` between.
pub(crate) fn path(folder: &Value, all: &[Value]) -> String {
    let name = text(folder, "name");
    let around = all.iter().find(|other| other["id"] == folder["parent_id"]);
    around.map_or_else(
        || name.clone(),
        |around| format!("{}/{name}", path(around, all)),
    )
}

/// The playlist with this name, or with a name that is a path and ends with it.
pub(super) fn playlist<'a>(word: &str, all: &'a [Named]) -> Result<&'a Named, Error> {
    // `murald slideshow` names a playlist by its directory: the last part of the path is enough.
    let lower = folded(word);
    let is_last = |one: &&Named| {
        one.name.starts_with('/')
            && one
                .name
                .rsplit('/')
                .next()
                .is_some_and(|it| folded(it) == lower)
    };
    let mut ends = all.iter().filter(is_last);
    match (exactly(word, all), ends.next(), ends.next()) {
        (None, Some(one), None) => Ok(one),
        _ => among("playlist", word, all),
    }
}

/// The record with this name, in any letter case, or the only one whose name begins with it.
pub(super) fn among<'a>(what: &str, word: &str, all: &'a [Named]) -> Result<&'a Named, Error> {
    if all.iter().any(|one| one.name == word) {
        return whole(what, word, all);
    }
    match exactly(word, all) {
        Some(one) => Ok(one),
        None => only(word, all)?.ok_or_else(|| nothing(what, word, all)),
    }
}

/// The record with exactly this name; an error if several have it, or none.
pub(super) fn whole<'a>(what: &str, name: &str, all: &'a [Named]) -> Result<&'a Named, Error> {
    let same: Vec<&Named> = all.iter().filter(|one| one.name == name).collect();
    match same[..] {
        [one] => Ok(one),
        [] => Err(nothing(what, name, all)),
        _ => Err(several(name, &same, all)),
    }
}

/// The record with this name, else the only one with it in another letter case.
pub(super) fn exactly<'a>(word: &str, all: &'a [Named]) -> Option<&'a Named> {
    let lower = folded(word);
    let mut alike = all.iter().filter(|one| folded(&one.name) == lower);
    let same = all.iter().find(|one| one.name == word);
    same.or_else(|| alike.next().filter(|_| alike.next().is_none()))
}

/// The only record whose name begins with the word; an error if there are several.
pub(super) fn only<'a>(word: &str, all: &'a [Named]) -> Result<Option<&'a Named>, Error> {
    let lower = folded(word);
    let fits: Vec<&Named> = all
        .iter()
        .filter(|one| folded(&one.name).starts_with(&lower))
        .collect();
    if fits.len() <= 1 {
        return Ok(fits.first().copied());
    }
    Err(several(word, &fits, all))
}

/// The path of a folder, as far as its parents are in `all`; the name of any other record.
fn label(one: &Named, all: &[Named]) -> String {
    let around = all.iter().find(|other| one.parent_id == Some(other.id));
    around.map_or_else(
        || one.name.clone(),
        |around| format!("{}/{}", label(around, all), one.name),
    )
}

/// The error for a word that may mean several records of `all`.
pub(super) fn several(word: &str, fits: &[&Named], all: &[Named]) -> Error {
    let shown = fits
        .iter()
        .take(LISTED)
        .map(|one| format!("{} ({})", label(one, all), one.id));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = match fits.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Error::refused(format!("{word:?} is ambiguous: {shown}{more}"))
}

pub(super) fn nothing(what: &str, word: &str, all: &[Named]) -> Error {
    // A user who types a file name may have mistyped its stem.
    let stem = word.rsplit_once('.').map_or(word, |(stem, _)| stem);
    let names = || all.iter().map(|one| one.name.as_str());
    let meant = nearest(word, names()).or_else(|| nearest(stem, names()));
    let error = Error::not_found(format!("no {what} named {word:?}"));
    match all.iter().find(|one| Some(one.name.as_str()) == meant) {
        Some(one) => error.hint(format!("did you mean {} ({})?", one.name, one.id)),
        None if what == "playlist" => error.hint("`murald playlist list` lists the playlists"),
        None if what == "folder" => error.hint("`murald folders list` lists the folders"),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(names: &[&str]) -> Vec<Named> {
        let named = |(at, name): (usize, &&str)| Named {
            id: at as i64 + 1,
            name: (*name).into(),
            ..Named::default()
        };
        names.iter().enumerate().map(named).collect()
    }

    #[test]
    fn references_are_found_by_name_and_by_prefix() {
        let all = all(&["Sunset", "sunrise", "SUNSET over", "über", "a", "A"]);
        let check = |word: &str, expected: Result<i64, &str>| {
            let found = among("image", word, &all)
                .map(|one| one.id)
                .map_err(|error| error.to_string());
            assert_eq!(
                found,
                expected.map_err(|text| format!("murald: {text}")),
                "{word}"
            );
        };
        check("Sunset", Ok(1));
        check("sunset", Ok(1));
        check("SUNR", Ok(2));
        check("sunset ", Ok(3));
        check("ÜBER", Ok(4));
        check("a", Ok(5));
        check("A", Ok(6));
        check(
            "sun",
            Err("\"sun\" is ambiguous: Sunset (1), sunrise (2), SUNSET over (3)"),
        );
        check(
            "sunsit",
            Err("no image named \"sunsit\"\nhint: did you mean Sunset (1)?"),
        );
        check(
            "sunsit.jpg",
            Err("no image named \"sunsit.jpg\"\nhint: did you mean Sunset (1)?"),
        );
        check(
            "sunsret",
            Err("no image named \"sunsret\"\nhint: did you mean Sunset (1)?"),
        );
        check("frobnicate", Err("no image named \"frobnicate\""));
        check("nope.png", Err("no image named \"nope.png\""));
    }

    #[test]
    fn message_lists_at_most_ten_names() {
        let names: Vec<String> = (0..13).map(|number| format!("p{number}")).collect();
        let all = all(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let told = among("image", "p", &all).unwrap_err().to_string();
        assert!(told.ends_with("p9 (10) and 3 more"), "{told}");
    }

    #[test]
    fn folders_of_the_same_name_are_ambiguous() {
        let told = among("folder", "sea", &all(&["sea", "sea"]))
            .unwrap_err()
            .to_string();
        assert_eq!(told, "murald: \"sea\" is ambiguous: sea (1), sea (2)");
        let told = among("folder", "F1", &all(&["F1", "f1", "F1", "F12"]))
            .unwrap_err()
            .to_string();
        assert_eq!(told, "murald: \"F1\" is ambiguous: F1 (1), F1 (3)");
    }
}
