//! A start by hand: what a person on a terminal is told in place of the log. And a start by a
//! command, which has no terminal to stay with. Runs in `main`.

use std::fs::OpenOptions;
use std::io::{self, Write};

use super::wiring::Daemon;
use crate::wallpaper::Error;

/// What a person wants to know of a daemon that is ready.
pub(super) fn greet(daemon: &Daemon) {
    let mut lines = vec![
        format!("murald {} is ready on {}", env!("CARGO_PKG_VERSION"), daemon.address.display()),
        format!("backend: {}", backend(daemon)),
        format!("monitors: {}", monitors(daemon)),
    ];
    lines.extend(daemon.config.warnings().into_iter().map(|text| format!("warning: {text}")));
    // The terminal may have gone.
    writeln!(io::stderr(), "{}", lines.join("\n")).ok();
}

/// The one that is used, or that is about to be; else what would help.
fn backend(daemon: &Daemon) -> String {
    let available = daemon.backends.available();
    let wanted = daemon.config.current().backend.kind;
    let first = || available.iter().find(|one| one.name == wanted).or(available.first());
    if let Some(name) = daemon.wallpaper.status().active.or_else(|| Some(first()?.name)) {
        return name.to_string();
    }
    format!("none: {}", Error::no_backend(&daemon.backends))
}

fn monitors(daemon: &Daemon) -> String {
    let names: Vec<_> =
        daemon.outputs.outputs().list().iter().map(|output| output.name.clone()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Closes the outputs of a daemon that a command has started: whoever read them has gone.
pub(super) fn let_go() {
    let done = OpenOptions::new().write(true).open("/dev/null").and_then(|null| {
        rustix::stdio::dup2_stdout(&null)?;
        Ok(rustix::stdio::dup2_stderr(&null)?)
    });
    if let Err(error) = done {
        log::warn!("the outputs cannot be closed: {error}");
    }
}
