//! What tells whether hyprpaper shows what it was told, in its log and its list: pure.
//!
//! Its own `ok` means that it has understood, and not even that in all versions.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use super::dialect::{Dialect, NAME, Wallpaper};
use crate::backends::Error;
use crate::backends::follow::{Followed, follow};
use crate::backends::socket::{self, NotUp};
use crate::process::BackendProcess;
use crate::sys::Cancel;

/// What it logs of a file that it cannot make sense of, in either dialect.
const COMPLAINTS: [&str; 5] = [
    "Config error",
    "Config has errors",
    "Failed parsing wallpaper",
    "Failed to resolve path",
    "does not contain a valid image",
];

/// A line of the log that says that one of these will not be shown.
pub(super) fn complaint<'a>(line: &'a str, wanted: &[Wallpaper]) -> Option<&'a str> {
    // Outputs that it was given nothing for have no target either.
    let is_targetless = |wallpaper: &Wallpaper| {
        let monitor = format!("Monitor {} ", wallpaper.output);
        line.split_once(&monitor).is_some_and(|(_, rest)| {
            rest.starts_with("does not have a target") || rest.starts_with("has no target")
        })
    };
    let means_us = COMPLAINTS.iter().any(|complaint| line.contains(complaint));
    (means_us || wanted.iter().any(is_targetless)).then(|| line.trim())
}

/// Whether a line of the log of one before 0.8 says that this was drawn.
pub(super) fn is_drawn(line: &str, wallpaper: &Wallpaper) -> bool {
    let said = format!("Image data for {}: {} at ", wallpaper.output, wallpaper.path);
    line.contains(&said)
}

/// Whether `listactive` has this: `DP-1 = /x` before 0.8, `DP-1: /x` since.
pub(super) fn is_listed(list: &str, wallpaper: &Wallpaper) -> bool {
    let path = |line: &str| {
        let rest = line.trim().strip_prefix(&wallpaper.output)?;
        let path = rest.strip_prefix(" = ").or(rest.strip_prefix(": "))?.trim().to_owned();
        Some(path)
    };
    list.lines().filter_map(path).any(|path| is_same(&path, &wallpaper.path))
}

/// It may have followed the links of a path.
fn is_same(listed: &str, told: &str) -> bool {
    listed == told || fs::canonicalize(told).is_ok_and(|file| file == Path::new(listed))
}

const UP_WITHIN: Duration = Duration::from_secs(10);
const DRAWN_WITHIN: Duration = Duration::from_secs(10);
/// Those since 0.8 do not tell when they have drawn: what a 4K picture takes, and some more.
const DRAWN_AFTER: Duration = Duration::from_millis(500);

/// Waits until one that was just started has its socket.
pub(super) fn come_up(
    new: &BackendProcess,
    path: &Path,
    before: Option<socket::Made>,
    cancel: &Cancel,
) -> Result<(), Error> {
    let until = Instant::now() + UP_WITHIN;
    let up = socket::connect_when_up(path, before, new.child(), until, cancel);
    up.map(drop).map_err(|not_up| match not_up {
        NotUp::Cancelled => Error::Cancelled,
        NotUp::Ended => Error::Unavailable(format!("{NAME} ended: {}", last_word(new))),
        NotUp::Late => {
            let (socket, said) = (path.display(), last_word(new));
            Error::Unavailable(format!("{NAME} does not come up at {socket}: {said}"))
        }
        NotUp::Io(error) => Error::Unavailable(format!("{NAME}: {error}")),
    })
}

/// Reads its log until it says that all is drawn, or for a while where it never does.
pub(super) fn has_drawn(
    process: &BackendProcess,
    from: u64,
    wanted: &[Wallpaper],
    dialect: Dialect,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut left: Vec<&Wallpaper> = wanted.iter().collect();
    let limit = if dialect == Dialect::Old { DRAWN_WITHIN } else { DRAWN_AFTER };
    let until = Instant::now() + limit;
    let followed =
        follow(&process.log_path(), from, &[""], process.child(), until, cancel, |line| {
            if let Some(complaint) = complaint(line, wanted) {
                return ControlFlow::Break(Err(Error::Refused(format!("{NAME}: {complaint}"))));
            }
            left.retain(|wallpaper| !is_drawn(line, wallpaper));
            if left.is_empty() { ControlFlow::Break(Ok(())) } else { ControlFlow::Continue(()) }
        });
    match followed.map_err(|e| Error::Unavailable(format!("cannot read {NAME}'s log: {e}")))? {
        Followed::Seen(result) => result,
        Followed::Ended => Err(Error::Unavailable(format!("{NAME} ended: {}", last_word(process)))),
        Followed::Late if dialect == Dialect::New => Ok(()),
        Followed::Late => {
            let limit = limit.as_secs();
            Err(not_shown(left[0], &format!("it has not drawn it within {limit} s")))
        }
        Followed::Cancelled => Err(Error::Cancelled),
    }
}

pub(super) fn not_shown(wallpaper: &Wallpaper, why: &str) -> Error {
    let Wallpaper { path, output, .. } = wallpaper;
    Error::Refused(format!("{NAME} does not show {path} on {output}: {why}"))
}

fn last_word(process: &BackendProcess) -> String {
    let said = process.log_tail();
    said.lines().last().unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HyprpaperFit;

    fn wallpaper(output: &str) -> Wallpaper {
        Wallpaper { output: output.into(), path: "/a b.png".into(), fit: HyprpaperFit::Cover }
    }

    #[test]
    fn complaints_about_what_is_wanted() {
        let wanted = [wallpaper("DP-1")];
        let check =
            |line, expected| assert_eq!(complaint(line, &wanted).is_some(), expected, "{line}");
        check(
            "Config error in file /x at line 4: config option <wallpaper:monitor> does not exist.",
            true,
        );
        check("[WARN] Monitor DP-1 does not have a target! A wallpaper will not be created.", true);
        check(
            "[WARN] Monitor DP-11 does not have a target! A wallpaper will not be created.",
            false,
        );
        check("DEBUG ]: Monitor DP-1 has no target: no wp will be created", true);
        check("ERR ]: Failed to resolve path /x: no", true);
        check("[LOG] No pointer capability from the compositor", false);
    }

    #[test]
    fn lists_of_both_dialects() {
        let check =
            |list, expected| assert_eq!(is_listed(list, &wallpaper("DP-1")), expected, "{list}");
        check("HDMI-A-1 = /x.png\nDP-1 = /a b.png", true);
        check("DP-1: /a b.png\n", true);
        check("DP-1: /other.png", false);
        check("eDP-1 = /a b.png\nDP-11: /a b.png", false);
        check("no wallpapers active", false);
    }

    #[test]
    fn log_of_the_old_ones_tells_of_pictures_that_were_drawn() {
        let line = "[LOG] Image data for DP-1: /a b.png at [-0.00, 0.00], scale: 10.00";
        assert!(is_drawn(line, &wallpaper("DP-1")));
        assert!(!is_drawn(line, &wallpaper("P-1")) && !is_drawn(line, &wallpaper("DP-11")));
    }
}
