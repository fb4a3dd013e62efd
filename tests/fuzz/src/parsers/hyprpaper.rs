//! For the targets of `tests/fuzz`: what hyprpaper says, by plain types. A part of its module in debug builds only.

use super::Wallpaper;
use super::dialect;
use super::dialect::Dialect;
use crate::config::HyprpaperFit;

/// Whether a picture is complained about, drawn or listed in what it says, and the answer is a good
/// one.
pub fn said(text: &str) -> [bool; 4] {
    let (output, path) = ("DP-1".to_owned(), "/a b.png".into());
    let wanted = [Wallpaper { output, path, fit: HyprpaperFit::Cover }];
    [
        text.lines().any(|line| dialect::complaint(line, &wanted).is_some()),
        text.lines().any(|line| dialect::is_drawn(line, &wanted[0])),
        dialect::is_listed(text, &wanted[0]),
        Dialect::of(text.lines().next()).check(text).is_ok(),
    ]
}
