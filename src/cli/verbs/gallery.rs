//! Which images of the library: the filters of `images list` and `images search`.

use serde_json::Value;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::Answer;
use super::super::error::Exit;
use super::super::request::place;
use super::super::verb::{Flag, Kind};
use super::MEDIA_FILTERS;
use crate::wire::{Page, Pagination};

pub(super) const FLAGS: &[Flag] = &[
    Flag::switch("--all", "Every page"),
    Flag::value("--page", "N", Kind::Count, "Which page, counted from 1"),
    Flag::value("--per-page", "N", Kind::Count, "Images on a page, at most 200; 50 by default"),
    Flag::value(
        "--sort-by",
        "WHAT",
        Kind::Words(&["name", "imported_at", "file_size", "hue"]),
        "The order; imported_at by default",
    ),
    Flag::value(
        "--sort-order",
        "ORDER",
        Kind::Words(&["asc", "desc"]),
        "Rising or falling; desc by default",
    ),
    Flag::value(
        "--media-type",
        "TYPE",
        Kind::Words(MEDIA_FILTERS),
        "Only images of this type; gif: pictures that move, whatever their format",
    ),
    Flag::value("--tags", "A,B", Kind::List(&[]), "Only images with all of these tags"),
    Flag::value(
        "--colors",
        "HEX,HEX",
        Kind::List(&[]),
        "Only images whose palette has all of these colours",
    ),
    Flag::value(
        "--colors-near",
        "HEX~D,...",
        Kind::List(&[]),
        "Only images with a colour that close to each, in ΔE",
    ),
    Flag::value(
        "--hue-group",
        "N",
        Kind::Count,
        "Only images of this hue: 0 (red) to 11, 99 for grey",
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
    Flag::value(
        "--folder",
        "FOLDER",
        Kind::FolderOrRoot,
        "Only images in this folder; root: in none",
    ),
];

/// Whether a call asks for some of the images only.
pub(super) fn filters(call: &Call) -> bool {
    let order = ["--all", "--page", "--per-page", "--sort-by", "--sort-order"];
    let named = |flag: &&Flag| !order.contains(&flag.name) && call.has(flag.name);
    call.has("WORD") || FLAGS.iter().any(|flag| named(&flag))
}

/// The page that a call asks for, or all of them in one.
pub(super) fn answer(call: &Call) -> Result<Answer, Error> {
    let place = place(PLACE, call);
    if !call.has("--all") {
        return call.connect()?.get(&place);
    }
    if call.has("--page") || call.has("--per-page") {
        return Err(Error::usage("--all is every page: leave out --page and --per-page"));
    }
    let connection = call.connect()?;
    let place = place.query("per_page", Some(PER_PAGE));
    let mut all: Page<Value> = connection.get(&place)?.read()?;
    for number in 2..=all.pagination.total_pages {
        let page = connection.get(&place.clone().query("page", Some(number)))?;
        all.data.extend(page.read::<Page<Value>>()?.data);
    }
    // What came or went meanwhile is counted as it was seen.
    let items = all.data.len() as u64;
    all.pagination = Pagination { page: 1, per_page: items, total_items: items, total_pages: 1 };
    let body = serde_json::to_vec(&all);
    let internal = |error| Error::new(Exit::Internal, "a list cannot be written").because(error);
    Ok(Answer { body: body.map_err(internal)? })
}

/// As many as the daemon gives at once.
const PER_PAGE: u64 = 200;

const PLACE: &str = "/images?search={WORD}&page={--page}&per_page={--per-page}\
    &sort_by={--sort-by}&sort_order={--sort-order}&media_type={--media-type}&tags={--tags}\
    &colors={--colors}&colors_near={--colors-near}&hue_group={--hue-group}\
    &palette_similar_to={--similar-to}&palette_max_delta_e={--max-delta-e}&folder_id={--folder}";
