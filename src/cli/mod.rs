//! The command: a client of the API.
//!
//! `murald` alone and `murald start` run the daemon; everything else speaks to one that runs.

use std::process::ExitCode;

use crate::daemon::{self, Options};

/// The whole command.
pub fn main() -> ExitCode {
    match daemon::run(&Options::default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(error.exit_code()),
    }
}
