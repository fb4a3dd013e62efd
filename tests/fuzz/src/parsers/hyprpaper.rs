//! Parsers of hyprpaper's output with plain types, for the targets of `tests/fuzz`. Part of its module
//! with `cfg(parsers)`.

use super::Wallpaper;
use super::dialect;
use super::dialect::Dialect;
use crate::config::HyprpaperFit;

/// Whether the text has a complaint about a picture, says that it is drawn, lists it, and is a
/// successful answer.
pub fn said(text: &str) -> [bool; 4] {
    let (output, path) = ("DP-1".to_owned(), "/a b.png".into());
    let wanted = [Wallpaper {
        output,
        path,
        fit: HyprpaperFit::Cover,
    }];
    [
        text.lines()
            .any(|line| dialect::complaint(line, &wanted).is_some()),
        text.lines().any(|line| dialect::is_drawn(line, &wanted[0])),
        dialect::is_listed(text, &wanted[0]),
        Dialect::from_version(text.lines().next())
            .check(text)
            .is_ok(),
    ]
}
