//! Which images of the library: the filters of `images list` and `images search`.

use super::super::call::Call;
use super::super::verb::{Flag, Kind};
use super::MEDIA_FILTERS;

pub(super) const FLAGS: &[Flag] = &[
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
    Flag::value("--similar-to", "ID", Kind::Image, "Only images with a palette like this image's"),
    Flag::value(
        "--max-delta-e",
        "D",
        Kind::Number,
        "How different that palette may be, in ΔE; 18 by default",
    ),
    Flag::value("--folder", "ID", Kind::FolderOrRoot, "Only images in this folder; root: in none"),
];

/// Whether a call asks for some of the images only.
pub(super) fn filters(call: &Call) -> bool {
    let order = ["--page", "--per-page", "--sort-by", "--sort-order"];
    let named = |flag: &&Flag| !order.contains(&flag.name) && call.has(flag.name);
    call.has("WORD") || FLAGS.iter().any(|flag| named(&flag))
}

/// The page that a call asks for.
pub(super) const PLACE: &str = "/images?search={WORD}&page={--page}&per_page={--per-page}\
    &sort_by={--sort-by}&sort_order={--sort-order}&media_type={--media-type}&tags={--tags}\
    &colors={--colors}&colors_near={--colors-near}&hue_group={--hue-group}\
    &palette_similar_to={--similar-to}&palette_max_delta_e={--max-delta-e}&folder_id={--folder}";
