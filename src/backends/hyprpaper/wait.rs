//! Waits for a hyprpaper: until it is up, and until its log says that it has drawn.
//!
//! Runs on the backend's own thread.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use super::dialect::Dialect;
use super::{NAME, Wallpaper, proof};
use crate::backends::Error;
use crate::backends::follow::{Followed, follow};
use crate::backends::socket::{self, NotUp};
use crate::process::BackendProcess;
use crate::sys::Cancel;

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
            if let Some(complaint) = proof::complaint(line, wanted) {
                return ControlFlow::Break(Err(Error::Refused(format!("{NAME}: {complaint}"))));
            }
            left.retain(|wallpaper| !proof::is_drawn(line, wallpaper));
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
