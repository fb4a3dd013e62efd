//! How pictures fill a monitor, in the words of each backend's settings.

use super::step::Step;
use crate::wire::Fit;

/// Section and key, and the words for cover, contain, fill, tile and center; none where it has none.
type Words = (&'static str, &'static str, [Option<&'static str>; 5]);

const WORDS: &[Words] = &[
    (
        "backend.builtin",
        "fit_mode",
        [Some("cover"), Some("contain"), Some("fill"), Some("tile"), Some("center")],
    ),
    ("backend.awww", "resize", [Some("crop"), Some("fit"), Some("stretch"), None, Some("no")]),
    (
        "backend.swaybg",
        "fit_mode",
        [Some("fill"), Some("fit"), Some("stretch"), Some("tile"), Some("center")],
    ),
    (
        "backend.feh",
        "mode",
        [Some("fill"), Some("max"), Some("scale"), Some("tile"), Some("center")],
    ),
    (
        "backend.hyprpaper",
        "fit_mode",
        [Some("cover"), Some("contain"), Some("fill"), Some("tile"), None],
    ),
];

/// For every backend that shows pictures and has a word: whichever draws, it looks as before.
pub(super) fn steps(fit: Fit) -> impl Iterator<Item = Step> {
    let word = move |words: [Option<&'static str>; 5]| match fit {
        Fit::Cover => words[0],
        Fit::Contain => words[1],
        Fit::Fill => words[2],
        Fit::Tile => words[3],
        Fit::Center => words[4],
    };
    let step =
        move |&(section, key, words): &Words| Some(Step::setting(section, key, word(words)?));
    WORDS.iter().filter_map(step)
}
