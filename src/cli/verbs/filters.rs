//! The filters of `images list` and `images search`, which other verbs share, and what they find.

use std::collections::HashMap;
use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::{Call, Connection, Error, Exit, Flag, Kind, NULL, RequestPath, Verb, written};
use crate::wire::{Ids, MediaFilter, Orientation, Page, Pagination, SortBy, SortOrder};

/// The daemon's largest page.
const PER_PAGE: usize = 200;
const IMAGES: &[&dyn Display] = &[&"images"];

pub(super) const SORTS: Kind = Kind::Words(SortBy::WORDS);
pub(super) const DIRECTIONS: Kind = Kind::Words(SortOrder::WORDS);

#[rustfmt::skip]
pub(super) const FILTERS: &[Flag] = &[
    Flag::value("--media-type", "TYPE", Kind::Words(MediaFilter::WORDS),
        "Only images of this type; gif: animated images of any format"),
    Flag::value("--tags", "A,B", Kind::Tags, "Only images with all of these tags"),
    Flag::value("--folder", "FOLDER", Kind::FolderOrRoot, "Only images in this folder; root: in no \
               folder"),
    Flag::switch("--recursive", "With --folder: also images in the folders inside it"),
    Flag::value("--orientation", "ORIENTATION", Kind::Words(Orientation::WORDS),
        "Only images with this orientation"),
    Flag::value("--min-width", "PIXELS", Kind::Count(1, u64::MAX), "Minimum width"),
    Flag::value("--min-height", "PIXELS", Kind::Count(1, u64::MAX), "Minimum height"),
    Flag::value("--name", "TEXT", Kind::Text, "Only images with exactly this name"),
    Flag::value("--name-prefix", "TEXT", Kind::Text, "Only images whose names have this prefix"),
    Flag::value("--checksum", "SHA256", Kind::Text, "Only the image with this content"),
    Flag::value("--colors", "COLOR,...", Kind::Colors,
        "Only images whose palette has all of these colours"),
    Flag::value("--colors-near", "COLOR~D,...", Kind::ColorsNear,
        "Only images that have, for each COLOR, a colour within distance D (ΔE)"),
    Flag::value("--hue-group", "HUE,...", Kind::Hues,
        "Only images of these hues: red, orange, yellow, green, cyan, blue, purple, pink, grey"),
    Flag::value("--similar-to", "IMAGE", Kind::Image, "Only images with a palette similar to that of \
               this image"),
    Flag::value("--max-delta-e", "D", Kind::Number,
        "Maximum distance to that palette (ΔE); 18 by default"),
];
/// The flag for words to search, for verbs without such an argument.
#[rustfmt::skip]
pub(super) const SEARCH: Flag = Flag::value("--search", "WORDS", Kind::Text,
    "Only images with all of these words in name, title, description, tags or the path of the folder");
/// The flags of a list: its page, its order and its filters.
#[rustfmt::skip]
pub(super) const LISTED: &[Flag] = joined!(FILTERS;
    Flag::switch("--all", "All pages"),
    Flag::value("--page", "N", Kind::Count(1, u64::MAX), "Page number, from 1"),
    Flag::value("--per-page", "N", Kind::Count(1, PER_PAGE as u64), "Images per page, at most 200; 50 by default"),
    Flag::value("--sort-by", "FIELD", SORTS,
        "Sort order; imported_at by default, or similarity with --similar-to"),
    Flag::value("--sort-order", "ORDER", DIRECTIONS, "Ascending or descending; desc by default"),
);

/// Concatenates flags for [`joined`].
pub(super) const fn join<const SUM: usize>(own: &[Flag], more: &[Flag]) -> [Flag; SUM] {
    let mut all = [NULL; SUM];
    let mut at = 0;
    while at < SUM {
        all[at] = if at < own.len() {
            own[at]
        } else {
            more[at - own.len()]
        };
        at += 1;
    }
    all
}

/// The name of a filter in the API.
pub(crate) fn in_api(flag: &str) -> String {
    match flag {
        "--folder" => "folder_id".to_owned(),
        "--similar-to" => "palette_similar_to".to_owned(),
        "--max-delta-e" => "palette_max_delta_e".to_owned(),
        flag => flag.trim_start_matches('-').replace('-', "_"),
    }
}

/// The filters of a call, by the names of the API.
pub(super) fn filter(call: &Call) -> Map<String, Value> {
    let given = FILTERS.iter().chain(&[SEARCH]).map(|flag| flag.name);
    let given = given.filter_map(|flag| Some((in_api(flag), call.value(flag)?.clone())));
    given.collect()
}

/// Whether a call has any filter.
pub(super) fn has_any(call: &Call) -> bool {
    call.has("TEXT") || !filter(call).is_empty()
}

/// The filters of a call as the source of a playlist.
pub(super) fn source(call: &Call) -> Map<String, Value> {
    let mut source = filter(call);
    // By default a source includes the folders inside a folder; a list does not.
    if source.contains_key("folder_id") {
        source.insert("recursive".to_owned(), call.has("--recursive").into());
    }
    for flag in ["--sort-by", "--sort-order"] {
        source.extend(call.value(flag).map(|value| (in_api(flag), value.clone())));
    }
    source
}

/// Whether a verb that changes images has filters. Refuses an empty filter, as of a script with an empty
/// variable, since it would match the whole library.
pub(super) fn narrows(call: &Call) -> Result<bool, Error> {
    for (flag, other) in [
        ("--recursive", "--folder"),
        ("--max-delta-e", "--similar-to"),
    ] {
        if call.has(flag) && !call.has(other) {
            return Err(Error::usage(format!("{flag} needs {other}")));
        }
    }
    for flag in FILTERS.iter().chain(&[SEARCH]).map(|flag| flag.name) {
        let is_empty = match call.value(flag) {
            // Spaces are ignored in a search, but not in a name.
            Some(Value::String(text)) if flag == SEARCH.name => text.trim().is_empty(),
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            _ => false,
        };
        if is_empty {
            return Err(
                Error::usage(format!("{flag} is empty and would match every image"))
                    .hint("run `murald images list` with the same filters to see what they match"),
            );
        }
    }
    Ok(!filter(call).is_empty())
}

/// Replaces the IMAGE of a call by the ids of all images that are named, or that match.
pub(crate) fn choose(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    let chosen = chosen(call, verb.kind("IMAGE"))?;
    call.values.retain(|(name, _)| *name != "IMAGE");
    call.values
        .extend(chosen.into_iter().map(|image| ("IMAGE", image)));
    Ok(())
}

/// Whether a call names its images; an error unless it has either images or filters.
pub(crate) fn are_named(call: &Call) -> Result<bool, Error> {
    match (call.has("IMAGE"), narrows(call)?) {
        (false, false) => Err(Error::usage("no images given")
            .hint("name images, or select them with a filter such as --folder FOLDER")),
        (true, true) => Err(Error::usage("give images or filters, not both")),
        (named, _) => Ok(named),
    }
}

/// The images that a call names, or all that match its filters.
pub(super) fn chosen(call: &Call, kind: Option<Kind>) -> Result<Vec<Value>, Error> {
    if are_named(call)? {
        return Ok(call.all("IMAGE").into_iter().cloned().collect());
    }
    let connection = call.connect()?;
    let ids = ids(&connection, IMAGES, |place| listed(place, call))?;
    if ids.is_empty() {
        let error = Error::refused("no image matches");
        return Err(match advice(call) {
            Some(advice) => error.hint(advice),
            None => error,
        });
    }
    Ok(match kind {
        Some(Kind::Item) => ids.iter().map(|id| json!({ "image_id": id })).collect(),
        _ => ids.into_iter().map(Value::from).collect(),
    })
}

/// The advice if the filters of a call match no image.
pub(crate) fn advice(call: &Call) -> Option<&'static str> {
    let all = [
        (
            "--colors",
            "--colors matches exact colours; `--hue-group blue` or `--colors-near blue~40` also \
             matches similar ones",
        ),
        ("--tags", "`murald images tags` lists the tags in use"),
    ];
    let given = all.into_iter().find(|(flag, _)| call.has(flag));
    given.map(|(_, advice)| advice)
}

/// The records of all images that match a call's filters, sorted by name.
pub(super) fn by_name(call: &Call, connection: &Connection) -> Result<Vec<Value>, Error> {
    every(connection, IMAGES, |place| {
        listed(place, call)
            .query("sort_by", Some("name"))
            .query("sort_order", Some("asc"))
    })
}

/// Adds the filters and the order of a call to a request.
fn listed(place: RequestPath, call: &Call) -> RequestPath {
    let own = [
        ("search", "TEXT"),
        ("sort_by", "--sort-by"),
        ("sort_order", "--sort-order"),
    ];
    let own = own.map(|(name, slot)| (name, call.query(slot)));
    let place = own
        .into_iter()
        .fold(place, |place, (name, value)| place.query(name, value));
    filter(call).iter().fold(place, |place, (name, value)| {
        place.query(name, Some(written(value)))
    })
}

/// The page of images that a call asks for, or all pages as one. `per_page` is used if the call has
/// none.
pub(super) fn page(call: &Call, per_page: Option<u32>) -> Result<Value, Error> {
    let connection = call.connect()?;
    if !call.has("--all") {
        let place = listed(RequestPath::new(IMAGES), call);
        let place = place.query("page", call.query("--page"));
        let per_page = call
            .query("--per-page")
            .or_else(|| Some(per_page?.min(200).to_string()));
        return connection.get(&place.query("per_page", per_page))?.read();
    }
    if call.has("--page") || call.has("--per-page") {
        return Err(Error::usage(
            "--all cannot be combined with --page or --per-page",
        ));
    }
    let data = every(&connection, IMAGES, |place| listed(place, call))?;
    let items = data.len() as u64;
    let pagination = Pagination {
        page: 1,
        per_page: items,
        total_items: items,
        total_pages: 1,
    };
    let page = [("data", data.into()), ("pagination", json!(pagination))];
    Ok(page
        .map(|(name, value): (&str, Value)| (name.to_owned(), value))
        .into_iter()
        .collect())
}

/// The images that a list has at one moment, in its order, without those that were deleted since.
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
        // New and deleted images move others to pages that were read before.
        match read.get(&Some(id)) {
            // A playlist may have an image more than once.
            Some(image) => images.push(image.clone()),
            None => match connection.read(&[&"images", &id]) {
                Err(error) if error.exit == Exit::Refused => {}
                image => images.push(image?),
            },
        }
    }
    Ok(images)
}

fn ids(
    connection: &Connection,
    path: &[&dyn Display],
    list: impl Fn(RequestPath) -> RequestPath,
) -> Result<Vec<i64>, Error> {
    let answer = connection.get(&list(RequestPath::new(&[path, &[&"ids"]].concat())))?;
    Ok(answer.read::<Ids>()?.ids)
}
