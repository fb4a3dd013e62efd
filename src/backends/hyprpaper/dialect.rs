//! Speaks the two dialects of hyprpaper (before and since 0.8): its configuration file, its calls, and
//! the log and list that show whether it has drawn.
//!
//! Hyprpaper's own `ok` means at most that it has understood a call. Waits run on the worker's thread.

use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use super::instance::HEAD;
use crate::backends::Error;
use crate::backends::follow::follow;
use crate::backends::socket::{self, NotUp};
use crate::config::HyprpaperFit;
use crate::process::BackendProcess;
use crate::process::version::numbers;
use crate::sys::Cancel;

pub(super) const NAME: &str = "hyprpaper";

/// A picture on an output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wallpaper {
    pub(super) output: String,
    /// The path as hyprpaper gets it. Two spellings of a path are two files to hyprpaper.
    pub(super) path: String,
    pub(super) fit: HyprpaperFit,
}

/// The language of the configuration file and the calls, which changed in 0.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Up to 0.7.
    Old,
    New,
}

impl Dialect {
    /// Only versions before 0.8 do not report their version.
    pub(super) fn from_version(version: Option<&str>) -> Self {
        match version.map(numbers) {
            None => Self::Old,
            Some((0, minor, _)) if minor < 8 => Self::Old,
            Some(_) => Self::New,
        }
    }

    /// Whether this version can list what it shows. Versions 0.8.0 to 0.8.3 cannot.
    pub(super) fn can_be_asked(self, version: Option<&str>) -> bool {
        self == Self::Old || version.is_some_and(|version| numbers(version) >= (0, 8, 4))
    }

    /// The fit that this version shows instead of one that it lacks.
    pub(super) fn fit(self, fit: HyprpaperFit) -> HyprpaperFit {
        match (self, fit) {
            // Versions before 0.8 have no such fit.
            (Self::Old, HyprpaperFit::Fill) => HyprpaperFit::Cover,
            (Self::Old, HyprpaperFit::Cover | HyprpaperFit::Contain | HyprpaperFit::Tile)
            | (Self::New, _) => fit,
        }
    }

    /// The path of a file as hyprpaper gets it. Versions before 0.8 draw a path once in each size
    /// and ignore later calls, so each fit has its own spelling.
    pub(super) fn path(self, file: &Path, fit: HyprpaperFit) -> String {
        let spelling = match (self, fit) {
            (Self::Old, HyprpaperFit::Contain) => "./",
            (Self::Old, HyprpaperFit::Tile) => "././",
            (Self::Old, HyprpaperFit::Cover | HyprpaperFit::Fill) | (Self::New, _) => "",
        };
        let path = file.display().to_string();
        match path.rsplit_once('/') {
            Some((directory, name)) => format!("{directory}/{spelling}{name}"),
            None => path,
        }
    }

    /// Whether a running hyprpaper accepts this fit; otherwise only its configuration file does.
    pub(super) fn accepts(self, fit: HyprpaperFit) -> bool {
        // Through its socket `fill` becomes `cover`.
        self == Self::Old || fit != HyprpaperFit::Fill
    }

    /// The complete configuration file.
    pub(super) fn file(self, placements: &[Wallpaper]) -> String {
        let mut text = format!("{HEAD}\nsplash = false\n");
        text.push_str(if self == Self::New {
            "ipc = true\n"
        } else {
            "ipc = on\n"
        });
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

    /// The calls that show a picture: arguments after `hyprctl hyprpaper`, or the words of a
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

    /// The call that unloads a picture that is no longer shown.
    pub(super) fn forget(self, path: &str) -> Option<Vec<String>> {
        let words = || vec!["unload".to_owned(), path.to_owned()];
        (self == Self::Old).then(words)
    }

    /// The error in an answer to [`Self::set`].
    pub(super) fn check(self, answer: &str) -> Result<(), String> {
        match self {
            // The exit code of hyprctl has already reported an error.
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

/// Messages in the log about a file that hyprpaper cannot use, in either dialect.
const COMPLAINTS: [&str; 5] = [
    "Config error",
    "Config has errors",
    "Failed parsing wallpaper",
    "Failed to resolve path",
    "does not contain a valid image",
];

/// The line of the log, if it says that one of these wallpapers will not be shown.
pub(super) fn complaint<'a>(line: &'a str, wanted: &[Wallpaper]) -> Option<&'a str> {
    // Outputs for which nothing was set have no target either.
    let is_targetless = |wallpaper: &Wallpaper| {
        let monitor = format!("Monitor {} ", wallpaper.output);
        line.split_once(&monitor).is_some_and(|(_, rest)| {
            rest.starts_with("does not have a target") || rest.starts_with("has no target")
        })
    };
    let means_us = COMPLAINTS.iter().any(|complaint| line.contains(complaint));
    (means_us || wanted.iter().any(is_targetless)).then(|| line.trim())
}

/// Whether a line of the log of a version before 0.8 says that this wallpaper was drawn.
pub(super) fn is_drawn(line: &str, wallpaper: &Wallpaper) -> bool {
    let said = format!(
        "Image data for {}: {} at ",
        wallpaper.output, wallpaper.path
    );
    line.contains(&said)
}

/// Whether the output of `listactive` has this wallpaper: `DP-1 = /x` before 0.8, `DP-1: /x` since.
pub(super) fn is_listed(list: &str, wallpaper: &Wallpaper) -> bool {
    let path = |line: &str| {
        let rest = line.trim().strip_prefix(&wallpaper.output)?;
        let path = rest
            .strip_prefix(" = ")
            .or(rest.strip_prefix(": "))?
            .trim()
            .to_owned();
        Some(path)
    };
    list.lines()
        .filter_map(path)
        .any(|path| is_same(&path, &wallpaper.path))
}

/// Whether both are the same path. Hyprpaper may have followed symbolic links.
fn is_same(listed: &str, told: &str) -> bool {
    listed == told || fs::canonicalize(told).is_ok_and(|file| file == Path::new(listed))
}

const UP_WITHIN: Duration = Duration::from_secs(10);
const DRAWN_WITHIN: Duration = Duration::from_secs(10);
/// Versions since 0.8 do not report when they have drawn: the time for a 4K picture, with a margin.
const DRAWN_AFTER: Duration = Duration::from_millis(500);

/// Waits until a new process has its socket.
pub(super) fn come_up(
    new: &BackendProcess,
    path: &Path,
    before: Option<socket::SocketFile>,
    cancel: &Cancel,
) -> Result<(), Error> {
    let until = Instant::now() + UP_WITHIN;
    let up = socket::connect_when_up(path, before, new.child(), until, cancel);
    let of = format!("{NAME} at {}", path.display());
    up.map(drop).map_err(|not_up| not_up.error(of, Some(new)))
}

/// Reads the log until it says that everything is drawn. Versions since 0.8 never say so, and get a
/// fixed time.
pub(super) fn has_drawn(
    process: &BackendProcess,
    from: u64,
    wanted: &[Wallpaper],
    dialect: Dialect,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut left: Vec<&Wallpaper> = wanted.iter().collect();
    let limit = if dialect == Dialect::Old {
        DRAWN_WITHIN
    } else {
        DRAWN_AFTER
    };
    let until = Instant::now() + limit;
    let followed = follow(process, from, &[""], until, cancel, |line| {
        if let Some(complaint) = complaint(line, wanted) {
            return ControlFlow::Break(Err(Error::Refused(format!("{NAME}: {complaint}"))));
        }
        left.retain(|wallpaper| !is_drawn(line, wallpaper));
        if left.is_empty() {
            ControlFlow::Break(Ok(()))
        } else {
            ControlFlow::Continue(())
        }
    });
    followed.unwrap_or_else(|not_up| match not_up {
        NotUp::Late if dialect == Dialect::New => Ok(()),
        NotUp::Late => {
            let limit = limit.as_secs();
            Err(not_shown(left[0], &format!("not drawn within {limit} s")))
        }
        other => Err(other.error(NAME, Some(process))),
    })
}

pub(super) fn not_shown(wallpaper: &Wallpaper, why: &str) -> Error {
    let Wallpaper { path, output, .. } = wallpaper;
    Error::Refused(format!("{NAME} does not show {path} on {output}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HyprpaperFit;

    fn wallpaper(fit: HyprpaperFit) -> Wallpaper {
        Wallpaper {
            output: "DP-1".to_owned(),
            path: "/a b.png".into(),
            fit,
        }
    }

    #[test]
    fn version_decides_the_dialect() {
        let check = |version, expected| assert_eq!(Dialect::from_version(version), expected);
        check(Some("0.7.6"), Dialect::Old);
        check(Some("0.8.0"), Dialect::New);
        check(Some("1.0"), Dialect::New);
        check(Some("0.8.4"), Dialect::New);
        check(None, Dialect::Old);
        assert!(!Dialect::New.can_be_asked(Some("0.8.1")));
        assert!(Dialect::New.can_be_asked(Some("0.8.4")) && Dialect::Old.can_be_asked(None));
    }

    #[test]
    fn each_fit_has_its_own_path_before_0_8() {
        let file = Path::new("/a/b.png");
        let check = |dialect: Dialect, fit, path| assert_eq!(dialect.path(file, fit), path);
        check(Dialect::Old, HyprpaperFit::Cover, "/a/b.png");
        check(Dialect::Old, HyprpaperFit::Contain, "/a/./b.png");
        check(Dialect::Old, HyprpaperFit::Tile, "/a/././b.png");
        check(Dialect::New, HyprpaperFit::Tile, "/a/b.png");
    }

    #[test]
    fn configuration_file_is_written_in_both_dialects() {
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
    fn calls_are_made_in_both_dialects() {
        let check = |dialect: Dialect, fit, expected: &[&[&str]]| {
            assert_eq!(dialect.set(&wallpaper(fit)), expected);
        };
        check(
            Dialect::New,
            HyprpaperFit::Contain,
            &[&["wallpaper", "DP-1,/a b.png,contain"]],
        );
        let preload: &[&str] = &["preload", "/a b.png"];
        check(
            Dialect::Old,
            HyprpaperFit::Cover,
            &[preload, &["wallpaper", "DP-1,/a b.png"]],
        );
        check(
            Dialect::Old,
            HyprpaperFit::Contain,
            &[preload, &["wallpaper", "DP-1,contain:/a b.png"]],
        );
        assert_eq!(Dialect::New.forget("/x"), None);
        assert!(!Dialect::New.accepts(HyprpaperFit::Fill));
        assert!(Dialect::New.accepts(HyprpaperFit::Cover));
        assert_eq!(Dialect::Old.fit(HyprpaperFit::Fill), HyprpaperFit::Cover);
    }

    #[test]
    fn answer_of_the_old_dialect_has_the_error() {
        assert_eq!(Dialect::New.check(""), Ok(()));
        assert_eq!(Dialect::Old.check("ok"), Ok(()));
        let failed = "wallpaper failed (no target)";
        assert_eq!(Dialect::Old.check(failed), Err(failed.to_owned()));
    }

    fn wallpaper_on(output: &str) -> Wallpaper {
        Wallpaper {
            output: output.into(),
            path: "/a b.png".into(),
            fit: HyprpaperFit::Cover,
        }
    }

    #[test]
    fn complaint_about_a_wanted_wallpaper_is_found() {
        let wanted = [wallpaper_on("DP-1")];
        let check =
            |line, expected| assert_eq!(complaint(line, &wanted).is_some(), expected, "{line}");
        check(
            "Config error in file /x at line 4: config option <wallpaper:monitor> does not exist.",
            true,
        );
        check(
            "[WARN] Monitor DP-1 does not have a target! A wallpaper will not be created.",
            true,
        );
        check(
            "[WARN] Monitor DP-11 does not have a target! A wallpaper will not be created.",
            false,
        );
        check(
            "DEBUG ]: Monitor DP-1 has no target: no wp will be created",
            true,
        );
        check("ERR ]: Failed to resolve path /x: no", true);
        check("[LOG] No pointer capability from the compositor", false);
    }

    #[test]
    fn list_is_read_in_both_dialects() {
        let check =
            |list, expected| assert_eq!(is_listed(list, &wallpaper_on("DP-1")), expected, "{list}");
        check("HDMI-A-1 = /x.png\nDP-1 = /a b.png", true);
        check("DP-1: /a b.png\n", true);
        check("DP-1: /other.png", false);
        check("eDP-1 = /a b.png\nDP-11: /a b.png", false);
        check("no wallpapers active", false);
    }

    #[test]
    fn log_of_the_old_dialect_reports_drawn_pictures() {
        let line = "[LOG] Image data for DP-1: /a b.png at [-0.00, 0.00], scale: 10.00";
        assert!(is_drawn(line, &wallpaper_on("DP-1")));
        assert!(!is_drawn(line, &wallpaper_on("P-1")) && !is_drawn(line, &wallpaper_on("DP-11")));
    }
}
