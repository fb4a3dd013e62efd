//! Which images of the library: the filters of `images list` and `images search`.

use super::super::arguments::Call;
use super::super::connection::Place;
use super::super::verb::{Flag, Kind};
use super::MEDIA_TYPES;

pub(super) const FLAGS: &[Flag] = &[
    Flag::value("--page", "N", Kind::Count, "Which page, from 1"),
    Flag::value("--per-page", "N", Kind::Count, "Images on a page, at most 200; 50 without"),
    Flag::value(
        "--sort-by",
        "WHAT",
        Kind::Words(&["name", "imported_at", "file_size", "hue"]),
        "What decides the order",
    ),
    Flag::value(
        "--sort-order",
        "ORDER",
        Kind::Words(&["asc", "desc"]),
        "Rising or falling; desc without",
    ),
    Flag::value("--media-type", "TYPE", Kind::Words(MEDIA_TYPES), "Only these"),
    Flag::value("--tags", "A,B", Kind::List(&[]), "Only with all of these tags"),
    Flag::value("--colors", "HEX,HEX", Kind::List(&[]), "Only with all of these in the palette"),
    Flag::value(
        "--colors-near",
        "HEX~D,...",
        Kind::List(&[]),
        "Only with a color that near (ΔE) to each",
    ),
    Flag::value("--hue-group", "N", Kind::Count, "0 (red) to 11, or 99 for neutral"),
    Flag::value("--similar-to", "ID", Kind::Image, "Only with a palette like this image's"),
    Flag::value("--max-delta-e", "D", Kind::Number, "How like, as a ΔE; 18 without"),
    Flag::value("--folder", "ID", Kind::FolderOrRoot, "Only in this folder, or root"),
];

/// The page that a call asks for, with `search` besides.
pub(super) fn place(call: &Call, search: Option<&str>) -> Place {
    const PARAMETERS: [(&str, &str); 12] = [
        ("page", "--page"),
        ("per_page", "--per-page"),
        ("sort_by", "--sort-by"),
        ("sort_order", "--sort-order"),
        ("media_type", "--media-type"),
        ("tags", "--tags"),
        ("colors", "--colors"),
        ("colors_near", "--colors-near"),
        ("hue_group", "--hue-group"),
        ("palette_similar_to", "--similar-to"),
        ("palette_max_delta_e", "--max-delta-e"),
        ("folder_id", "--folder"),
    ];
    let place = Place::new(&[&"images"]).query("search", search);
    PARAMETERS
        .iter()
        .fold(place, |place, (parameter, flag)| place.query(parameter, call.query(flag)))
}
