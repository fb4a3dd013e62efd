//! The filters of `images list` and `images search`, which other verbs share.

use std::collections::HashMap;
use std::fmt::Display;

use serde_json::{Map, Value};

use super::super::Error;
use super::super::call::{Call, shown};
use super::super::connection::{Answer, Connection, RequestPath};
use super::super::verb::{Flag, Kind, NULL};
use super::MEDIA_FILTERS;
use crate::wire::{Ids, Orientation, Page, Pagination};

/// What filters: flags, and the parameters of the API that they are.
pub(super) const FILTERS: &[Flag] = &[
    Flag::value(
        "--media-type",
        "TYPE",
        Kind::Words(MEDIA_FILTERS),
        "Only images of this type; gif: pictures that move, whatever their format",
    ),
    Flag::value("--tags", "A,B", Kind::Tags, "Only images with all of these tags"),
    Flag::value(
        "--folder",
        "FOLDER",
        Kind::FolderOrRoot,
        "Only images in this folder; root: in none",
    ),
    Flag::switch("--recursive", "With --folder, images in the folders inside it, too"),
    Flag::value(
        "--orientation",
        "HOW",
        Kind::Words(Orientation::WORDS),
        "Only images that stand so; square: exactly",
    ),
    Flag::value("--min-width", "PIXELS", Kind::Count, "Only images at least this wide"),
    Flag::value("--min-height", "PIXELS", Kind::Count, "Only images at least this high"),
    Flag::value(
        "--animated",
        "WHICH",
        Kind::Words(&["true", "false"]),
        "Only images that move, or not",
    ),
    Flag::value("--name", "TEXT", Kind::Text, "Only images of exactly this name"),
    Flag::value("--name-prefix", "TEXT", Kind::Text, "Only images whose names begin so"),
    Flag::value("--checksum", "SHA256", Kind::Text, "Only the image with this content"),
    Flag::value(
        "--colors",
        "COLOR,...",
        Kind::List(&[]),
        "Only images whose palette has all of these colours",
    ),
    Flag::value(
        "--colors-near",
        "COLOR~D,...",
        Kind::List(&[]),
        "Only images with a colour that close to each, in ΔE",
    ),
    Flag::value(
        "--hue-group",
        "HUE,...",
        Kind::Hues,
        "Only images of these hues: red, orange, yellow, green, cyan, blue, purple, pink, grey, or 0 to 11, 99",
    ),
    Flag::value(
        "--similar-to",
        "IMAGE",
        Kind::Image,
        "Only images with a palette like this image's",
    ),
    Flag::value(
        "--max-delta-e",
        "D",
        Kind::Number,
        "How different that palette may be, in ΔE; 18 by default",
    ),
];
const NAMES: [(&str, &str); 16] = [
    ("--media-type", "media_type"),
    ("--tags", "tags"),
    ("--folder", "folder_id"),
    ("--recursive", "recursive"),
    ("--orientation", "orientation"),
    ("--min-width", "min_width"),
    ("--min-height", "min_height"),
    ("--animated", "animated"),
    ("--name", "name"),
    ("--name-prefix", "name_prefix"),
    ("--checksum", "checksum"),
    ("--colors", "colors"),
    ("--colors-near", "colors_near"),
    ("--hue-group", "hue_group"),
    ("--similar-to", "palette_similar_to"),
    ("--max-delta-e", "palette_max_delta_e"),
];
/// Words, where there is no argument for them.
pub(super) const SEARCH: Flag = Flag::value(
    "--search",
    "WORDS",
    Kind::Text,
    "Only images with all of these words in name, title or tags",
);
/// Which page of a list, and its order.
const PAGES: [Flag; 5] = [
    Flag::switch("--all", "Every page"),
    Flag::value("--page", "N", Kind::Count, "Which page, counted from 1"),
    Flag::value("--per-page", "N", Kind::Count, "Images on a page, at most 200; 50 by default"),
    Flag::value(
        "--sort-by",
        "WHAT",
        SORTS,
        "The order; imported_at by default, with --similar-to the likeness",
    ),
    Flag::value("--sort-order", "ORDER", DIRECTIONS, "Rising or falling; desc by default"),
];
/// Of a list.
pub(super) const FLAGS: &[Flag] = &together::<5, { FILTERS.len() }, { 5 + FILTERS.len() }>(PAGES);
pub(super) const SORTS: Kind = Kind::Words(&["name", "imported_at", "file_size", "hue"]);
pub(super) const DIRECTIONS: Kind = Kind::Words(&["asc", "desc"]);
/// Of what takes images by name, too.
pub(super) const MANY: &[Flag] = &together::<1, { FILTERS.len() }, { 1 + FILTERS.len() }>([NULL]);

/// These flags and those that filter. `SUM` is how many they are.
pub(super) const fn together<const N: usize, const F: usize, const SUM: usize>(
    own: [Flag; N],
) -> [Flag; SUM] {
    with::<N, SUM>(own, FILTERS)
}

/// These flags and those.
pub(super) const fn with<const N: usize, const SUM: usize>(
    own: [Flag; N],
    more: &[Flag],
) -> [Flag; SUM] {
    let mut all = [NULL; SUM];
    let mut at = 0;
    while at < SUM {
        all[at] = if at < N { own[at] } else { more[at - N] };
        at += 1;
    }
    all
}

/// The filters of a call, by the names of the API.
pub(super) fn filter(call: &Call) -> Map<String, Value> {
    let given = named().filter_map(|&(flag, name)| Some((name, call.value(flag)?)));
    given.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// All flags that filter, and their names in the API.
fn named() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    NAMES.iter().chain(&[(SEARCH.name, "search")])
}

/// The filters of a call as the source of a playlist: truth values are JSON's own.
pub(super) fn source(call: &Call) -> Map<String, Value> {
    let mut source = filter(call);
    if let Some(value) = source.get_mut("animated") {
        *value = (value == "true").into();
    }
    // A source takes in what is in the folders inside, or for `root` in any, unless it says otherwise;
    // a list does not.
    if source.contains_key("folder_id") {
        source.insert("recursive".to_owned(), call.has("--recursive").into());
    }
    for (flag, name) in [("--sort-by", "sort_by"), ("--sort-order", "sort_order")] {
        source.extend(call.value(flag).map(|value| (name.to_owned(), value.clone())));
    }
    source
}

/// Whether a call that does something to what its filters let through has any. A flag that leaves
/// nothing out, as a script with an empty variable gives it, would mean all of the library.
pub(super) fn narrows(call: &Call) -> Result<bool, Error> {
    for (flag, other) in [("--recursive", "--folder"), ("--max-delta-e", "--similar-to")] {
        if call.has(flag) && !call.has(other) {
            return Err(Error::usage(format!("{flag} is no filter without {other}")));
        }
    }
    for (flag, _) in named() {
        let is_empty = match call.value(flag) {
            // Of words only those between blanks count; a name may begin with one.
            Some(Value::String(text)) if *flag == SEARCH.name => text.trim().is_empty(),
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            _ => false,
        };
        if is_empty {
            return Err(Error::usage(format!("{flag} is empty: that would leave no image out"))
                .hint("`murald images list` takes the same filters, and shows what they find"));
        }
    }
    Ok(!filter(call).is_empty())
}

/// The images that a call means: those that it names, or all that its filters let through.
pub(super) fn chosen(call: &Call, connection: &Connection) -> Result<Vec<Value>, Error> {
    let named: Vec<Value> = call.all("IMAGE").into_iter().cloned().collect();
    match (named.is_empty(), !narrows(call)?) {
        (false, true) => Ok(named),
        (true, true) => Err(Error::usage("IMAGE is missing, or - for standard input, or a filter")),
        (false, false) => {
            Err(Error::usage("give images or filters: both would leave open which are meant"))
        }
        (true, false) => matching(call, connection),
    }
}

/// All that the filters of a call let through. An older daemon would pass over those that it does
/// not know, and change more images than were meant.
pub(super) fn matching(call: &Call, connection: &Connection) -> Result<Vec<Value>, Error> {
    knows(connection, "these filters")?;
    let ids = ids(connection, IMAGES, |place| listed(place, call))?;
    Ok(ids.into_iter().map(Value::from).collect())
}

/// Refuses a daemon that is older than this command: it would pass over what it does not know.
pub(super) fn knows(connection: &Connection, what: &str) -> Result<(), Error> {
    let info: Value = connection.get(&RequestPath::new(&[&"info"]))?.read()?;
    let (ours, theirs) = (env!("CARGO_PKG_VERSION"), info["version"].as_str().unwrap_or_default());
    if is_older(theirs, ours) {
        return Err(Error::refused(format!("the daemon is of version {theirs}, this is {ours}"))
            .hint(format!("start the daemon again: an older one may not know {what}")));
    }
    Ok(())
}

/// The records of all images that a call means, by name.
pub(super) fn by_name(call: &Call, connection: &Connection) -> Result<Vec<Value>, Error> {
    every(connection, IMAGES, |place| {
        listed(place, call).query("sort_by", Some("name")).query("sort_order", Some("asc"))
    })
}

fn is_older(one: &str, other: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(['.', '-', '+']).map(|part| part.parse().unwrap_or_default()).collect()
    };
    numbers(one) < numbers(other)
}

/// Whether a call asks for some of the images only.
pub(super) fn filters(call: &Call) -> bool {
    call.has("WORD") || !filter(call).is_empty()
}

/// The list that a call asks for, without its page.
fn listed(place: RequestPath, call: &Call) -> RequestPath {
    let own = [("search", "WORD"), ("sort_by", "--sort-by"), ("sort_order", "--sort-order")];
    let own = own.map(|(name, slot)| (name, call.query(slot)));
    let place = own.into_iter().fold(place, |place, (name, value)| place.query(name, value));
    let with = |place: RequestPath, (name, value): (String, Value)| {
        place.query(&name, Some(shown(&value)))
    };
    filter(call).into_iter().fold(place, with)
}

/// The page that a call asks for, or all of them in one; `per_page` images unless it says how many.
pub(super) fn answer(call: &Call, per_page: Option<u32>) -> Result<Answer, Error> {
    let connection = call.connect()?;
    if !call.has("--all") {
        let per_page = call.query("--per-page").or_else(|| Some(per_page?.min(200).to_string()));
        let place = listed(RequestPath::new(IMAGES), call).query("page", call.query("--page"));
        return connection.get(&place.query("per_page", per_page));
    }
    if call.has("--page") || call.has("--per-page") {
        return Err(Error::usage("--all is every page: leave out --page and --per-page"));
    }
    let data = every(&connection, IMAGES, |place| listed(place, call))?;
    let items = data.len() as u64;
    let pagination = Pagination { page: 1, per_page: items, total_items: items, total_pages: 1 };
    Answer::of(&Page { data, pagination })
}

/// The images that a list has at one instant, in its order; those that are gone by now are left out.
pub(super) fn every(
    connection: &Connection,
    path: &[&dyn Display],
    list: impl Fn(RequestPath) -> RequestPath,
) -> Result<Vec<Value>, Error> {
    let ids = ids(connection, path, &list)?;
    let place = list(RequestPath::new(path)).query("per_page", Some(PER_PAGE));
    let mut read = HashMap::with_capacity(ids.len());
    for number in 1..=ids.len().div_ceil(PER_PAGE) {
        let page = connection.get(&place.clone().query("page", Some(number)))?;
        let images = page.read::<Page<Value>>()?.data.into_iter();
        read.extend(images.map(|image| (image["id"].as_i64(), image)));
    }
    let mut images = Vec::with_capacity(ids.len());
    for id in ids {
        // What came or went meanwhile has moved some to a page that was read before.
        match read.remove(&Some(id)) {
            Some(image) => images.push(image),
            None => images.extend(one(connection, id)?),
        }
    }
    Ok(images)
}

/// One image, unless it is gone.
fn one(connection: &Connection, id: i64) -> Result<Option<Value>, Error> {
    match connection.get(&RequestPath::new(&[&"images", &id])) {
        Err(error) if error.status() == Some(404) => Ok(None),
        answer => answer?.read().map(Some),
    }
}

fn ids(
    connection: &Connection,
    path: &[&dyn Display],
    list: impl Fn(RequestPath) -> RequestPath,
) -> Result<Vec<i64>, Error> {
    let answer = connection.get(&list(RequestPath::new(&[path, &[&"ids"]].concat())))?;
    Ok(answer.read::<Ids>()?.ids)
}

/// As many as the daemon gives at once.
const PER_PAGE: usize = 200;
const IMAGES: &[&dyn Display] = &[&"images"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_has_its_name_in_the_api() {
        let flags: Vec<&str> = FILTERS.iter().map(|flag| flag.name).collect();
        assert_eq!(flags, NAMES.map(|(flag, _)| flag));
    }

    #[test]
    fn older_daemons_are_known() {
        assert!(is_older("0.1.0", "0.2.0") && is_older("0.9.0", "0.10.0") && is_older("", "0.1.0"));
        assert!(!is_older("0.1.0", "0.1.0") && !is_older("1.0.0", "0.9.9"));
    }
}
