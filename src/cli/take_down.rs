//! What the command says of wallpapers that were taken down without a daemon.

use std::error::Error as StdError;
use std::process::ExitCode;

use serde_json::json;

use super::call::Output;
use super::stdout::Stdout;
use super::{Error, Start, end};

/// Wallpapers that no daemon is there to take down.
#[derive(Debug)]
pub(crate) struct TakeDown {
    /// Of the daemon that there was.
    pub start: Start,
    pub(super) output: Output,
}

impl TakeDown {
    /// Tells how many processes were ended, or why none was.
    pub(crate) fn tell(&self, done: Result<usize, (u8, impl StdError)>) -> ExitCode {
        let told = done.map_err(|(code, error)| Error::of_daemon(code, None, &error));
        end(told.and_then(|ended| self.show(ended)), self.output.json)
    }

    fn show(&self, ended: usize) -> Result<(), Error> {
        let mut stdout = Stdout::new(&self.output);
        if stdout.wants_data() {
            stdout.data(&json!({ "status": "cleared", "ended": ended }))?;
        } else {
            stdout.say(match ended {
                0 => "no daemon runs, and no wallpaper of murald is left".to_owned(),
                1 => "no daemon runs; ended 1 process that drew wallpapers".to_owned(),
                _ => format!("no daemon runs; ended {ended} processes that drew wallpapers"),
            })?;
        }
        stdout.flush()
    }
}
