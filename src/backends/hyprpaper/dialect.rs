//! What hyprpaper of which version is told, and how: pure.

use std::fmt::Write as _;
use std::path::Path;

use super::file::HEAD;
use crate::backends::version::numbers;
use crate::config::HyprpaperFit;

pub(super) const NAME: &str = "hyprpaper";

/// A picture on an output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wallpaper {
    pub(super) output: String,
    /// As hyprpaper is given it: two spellings of one path are two files to it.
    pub(super) path: String,
    pub(super) fit: HyprpaperFit,
}

/// 0.8 changed its file and its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Up to 0.7.
    Old,
    New,
}

impl Dialect {
    /// Only those before 0.8 do not tell their version.
    pub(super) fn of(version: Option<&str>) -> Self {
        match version.map(numbers) {
            None => Self::Old,
            Some((0, minor, _)) if minor < 8 => Self::Old,
            Some(_) => Self::New,
        }
    }

    /// Whether one of this version can be asked what it shows: 0.8 had forgotten how.
    pub(super) fn can_be_asked(self, version: Option<&str>) -> bool {
        self == Self::Old || version.is_some_and(|version| numbers(version) >= (0, 8, 4))
    }

    /// The fit as this version has it.
    pub(super) fn fit(self, fit: HyprpaperFit) -> HyprpaperFit {
        match (self, fit) {
            // It had no such fit.
            (Self::Old, HyprpaperFit::Fill) => HyprpaperFit::Cover,
            _ => fit,
        }
    }

    /// What a file is called for it. One before 0.8 draws what it has a name for once in each size,
    /// whatever it is told later: a name is of one fit.
    pub(super) fn path(self, file: &Path, fit: HyprpaperFit) -> String {
        let spelling = match (self, fit) {
            (Self::Old, HyprpaperFit::Contain) => "./",
            (Self::Old, HyprpaperFit::Tile) => "././",
            _ => "",
        };
        let path = file.display().to_string();
        match path.rsplit_once('/') {
            Some((directory, name)) => format!("{directory}/{spelling}{name}"),
            None => path,
        }
    }

    /// Whether a running one understands it; else only its file does.
    pub(super) fn can_be_told(self, fit: HyprpaperFit) -> bool {
        // Through its socket `fill` becomes `cover`.
        self == Self::Old || fit != HyprpaperFit::Fill
    }

    /// The whole of its file.
    pub(super) fn file(self, placements: &[Wallpaper]) -> String {
        let mut text = format!("{HEAD}\nsplash = false\n");
        text.push_str(if self == Self::New { "ipc = true\n" } else { "ipc = on\n" });
        for wallpaper in placements {
            let Wallpaper { output, path, .. } = wallpaper;
            // Writing to a String cannot fail.
            match self {
                Self::New => write!(
                    text,
                    "\nwallpaper {{\n    monitor = {output}\n    path = {path}\n    fit_mode = {}\n}}\n",
                    wallpaper.fit
                ),
                Self::Old => write!(text, "\npreload = {path}\nwallpaper = {}\n", old_value(wallpaper)),
            }
            .ok();
        }
        text
    }

    /// What has a picture shown, call by call: arguments after `hyprctl hyprpaper`, or the words of a
    /// request to the socket.
    pub(super) fn set(self, wallpaper: &Wallpaper) -> Vec<Vec<String>> {
        let path = &wallpaper.path;
        match self {
            Self::New => {
                let value = format!("{},{path},{}", wallpaper.output, wallpaper.fit);
                vec![vec!["wallpaper".to_owned(), value]]
            }
            Self::Old => vec![
                vec!["preload".to_owned(), path.clone()],
                vec!["wallpaper".to_owned(), old_value(wallpaper)],
            ],
        }
    }

    /// What has a picture let go that is no longer shown.
    pub(super) fn forget(self, path: &str) -> Option<Vec<String>> {
        let words = || vec!["unload".to_owned(), path.to_owned()];
        (self == Self::Old).then(words)
    }

    /// What is wrong with an answer to [`Self::set`].
    pub(super) fn check(self, answer: &str) -> Result<(), String> {
        match self {
            // It has said so by its exit code.
            Self::New => Ok(()),
            Self::Old if answer.trim() == "ok" => Ok(()),
            Self::Old => Err(answer.trim().to_owned()),
        }
    }
}

fn old_value(wallpaper: &Wallpaper) -> String {
    let fit = match wallpaper.fit {
        HyprpaperFit::Contain => "contain:",
        HyprpaperFit::Tile => "tile:",
        HyprpaperFit::Cover | HyprpaperFit::Fill => "",
    };
    format!("{},{fit}{}", wallpaper.output, wallpaper.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wallpaper(fit: HyprpaperFit) -> Wallpaper {
        Wallpaper { output: "DP-1".to_owned(), path: "/a b.png".into(), fit }
    }

    #[test]
    fn versions() {
        let check = |version, expected| assert_eq!(Dialect::of(version), expected);
        check(Some("0.7.6"), Dialect::Old);
        check(Some("0.8.0"), Dialect::New);
        check(Some("1.0"), Dialect::New);
        check(Some("0.8.4"), Dialect::New);
        check(None, Dialect::Old);
        assert!(!Dialect::New.can_be_asked(Some("0.8.1")));
        assert!(Dialect::New.can_be_asked(Some("0.8.4")) && Dialect::Old.can_be_asked(None));
    }

    #[test]
    fn each_fit_of_the_old_ones_has_a_name() {
        let file = Path::new("/a/b.png");
        let check = |dialect: Dialect, fit, path| assert_eq!(dialect.path(file, fit), path);
        check(Dialect::Old, HyprpaperFit::Cover, "/a/b.png");
        check(Dialect::Old, HyprpaperFit::Contain, "/a/./b.png");
        check(Dialect::Old, HyprpaperFit::Tile, "/a/././b.png");
        check(Dialect::New, HyprpaperFit::Tile, "/a/b.png");
    }

    #[test]
    fn files() {
        let new = format!(
            "{HEAD}\nsplash = false\nipc = true\n\nwallpaper {{\n    monitor = DP-1\n    \
             path = /a b.png\n    fit_mode = fill\n}}\n"
        );
        assert_eq!(Dialect::New.file(&[wallpaper(HyprpaperFit::Fill)]), new);
        let old = format!(
            "{HEAD}\nsplash = false\nipc = on\n\npreload = /a b.png\nwallpaper = DP-1,tile:/a b.png\n"
        );
        assert_eq!(Dialect::Old.file(&[wallpaper(HyprpaperFit::Tile)]), old);
    }

    #[test]
    fn calls() {
        let check = |dialect: Dialect, fit, expected: &[&[&str]]| {
            assert_eq!(dialect.set(&wallpaper(fit)), expected);
        };
        check(Dialect::New, HyprpaperFit::Contain, &[&["wallpaper", "DP-1,/a b.png,contain"]]);
        let preload: &[&str] = &["preload", "/a b.png"];
        check(Dialect::Old, HyprpaperFit::Cover, &[preload, &["wallpaper", "DP-1,/a b.png"]]);
        check(
            Dialect::Old,
            HyprpaperFit::Contain,
            &[preload, &["wallpaper", "DP-1,contain:/a b.png"]],
        );
        assert_eq!(Dialect::New.forget("/x"), None);
        assert!(!Dialect::New.can_be_told(HyprpaperFit::Fill));
        assert!(Dialect::New.can_be_told(HyprpaperFit::Cover));
        assert_eq!(Dialect::Old.fit(HyprpaperFit::Fill), HyprpaperFit::Cover);
    }

    #[test]
    fn answers() {
        assert_eq!(Dialect::New.check(""), Ok(()));
        assert_eq!(Dialect::Old.check("ok"), Ok(()));
        let failed = "wallpaper failed (no target)";
        assert_eq!(Dialect::Old.check(failed), Err(failed.to_owned()));
    }
}
