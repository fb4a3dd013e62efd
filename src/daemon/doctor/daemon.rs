//! Examines the daemon: whether one answers at the socket, or what is there instead, and the database
//! and processes that a stopped daemon has left.
//!
//! Opens the database read-only and only if it was closed cleanly, since other reads would create
//! files next to it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use serde::Deserialize;

use super::super::error::get;
use super::super::options::{DaemonPaths, Options};
use super::Report;
use crate::error_chain::chain;
use crate::lock::Holder;
use crate::process::ProcessRecords;
use crate::store::{self, QuickCheck, backup};
use crate::sys::{connect, is_queue_full};
use crate::wire::Why;

const SUBJECT: &str = "daemon";
const DATABASE: &str = "database";

#[derive(Deserialize)]
struct RunningDaemon {
    version: String,
    pid: u32,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Returns whether one may run.
pub(super) fn look(report: &mut Report, paths: &DaemonPaths, options: &Options) -> bool {
    let socket = &paths.socket;
    let found = match fs::symlink_metadata(socket) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return absent(report, paths, options);
        }
        Err(error) => {
            let text = format!("{} cannot be looked at: {error}", socket.display());
            let step = "make the directory of the socket readable, or name another socket";
            report.fix(SUBJECT, text, step);
            return true;
        }
        Ok(found) => found,
    };
    match is_ours(report, socket, &found, options) {
        true => answers(report, paths, options),
        false => true,
    }
}

/// Whether the file is a socket of this user; reports it otherwise.
fn is_ours(report: &mut Report, socket: &Path, found: &Metadata, options: &Options) -> bool {
    let shown = socket.display();
    if !found.file_type().is_socket() {
        let step = format!("`rm {shown}`, or name another socket by MURALD_SOCKET");
        report.fix(SUBJECT, format!("{shown} is no socket"), step);
        return false;
    }
    let owner = found.uid();
    if owner != geteuid().as_raw() {
        let text = format!("{shown} belongs to user {owner}: each user has a daemon of their own");
        let step = match options.socket {
            Some(_) => "name a socket of your own by MURALD_SOCKET or --socket",
            None => "`rm` it, or name a socket of your own by MURALD_SOCKET",
        };
        report.fix(SUBJECT, text, step);
        return false;
    }
    true
}

/// Whether a daemon may run behind the socket.
fn answers(report: &mut Report, paths: &DaemonPaths, options: &Options) -> bool {
    let socket = &paths.socket;
    let shown = socket.display();
    // The connection is closed before a request is sent.
    match connect(socket).map(drop) {
        Ok(()) => asked(report, socket),
        Err(error) if is_queue_full(&error) => silent(report, socket),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let text = format!("nobody listens on {shown}, which an earlier daemon has left");
            report.note("leftovers", text, Some("none is needed: the next start replaces it"));
            return absent(report, paths, options);
        }
        Err(error) => {
            let step = format!("`rm {shown}` and start murald again");
            report.fix(SUBJECT, format!("{shown} takes no connection: {error}"), step);
        }
    }
    true
}

/// Without a listener: whether the locks name a daemon that runs all the same.
fn absent(report: &mut Report, paths: &DaemonPaths, options: &Options) -> bool {
    let shown = paths.socket.display();
    let Some(holder) = [&paths.socket, &paths.database].into_iter().find_map(|at| Holder::of(at))
    else {
        let text = format!("no daemon listens on {shown}");
        let step = "`murald start` starts one, and so does `murald set PICTURE`";
        report.note(SUBJECT, text, Some(step));
        return false;
    };
    let pid = holder.pid;
    let (text, step) = match holder.socket.as_ref().filter(|_| holder.answers()) {
        // Commands use this socket, too.
        Some(other) if options.socket.is_none() => {
            asked(report, other);
            return true;
        }
        Some(other) => (
            format!("process {pid} has this library, and listens on {}", other.display()),
            format!(
                "`murald --socket {} stop` ends it, or name that socket by MURALD_SOCKET",
                other.display()
            ),
        ),
        None => (
            format!("process {pid} runs, but nobody listens on {shown}: its socket was removed"),
            format!("`kill -HUP {pid}` makes it listen there again"),
        ),
    };
    report.fix(SUBJECT, text, step);
    true
}

/// Reports the status of a running daemon.
fn asked(report: &mut Report, socket: &Path) {
    let Some(info) = get::<RunningDaemon>(socket, "info") else { return silent(report, socket) };
    let RunningDaemon { version, pid, warnings } = info;
    let text = format!("murald {version} runs as process {pid} on {}", socket.display());
    match version == env!("CARGO_PKG_VERSION") {
        true => report.ok(SUBJECT, text),
        false => {
            let text = format!("{text}, and this is {}", env!("CARGO_PKG_VERSION"));
            report.note(SUBJECT, text, Some("`murald stop`, then `murald start`"));
        }
    }
    warnings.iter().for_each(|warning| report.note(SUBJECT, warning, None));
    let whys = get::<Vec<Why>>(socket, "why").unwrap_or_default();
    if let Some(failure) = whys.iter().find_map(|why| why.hook_failure.as_ref()) {
        let text = format!("hooks.wallpaper_changed failed: {}", failure.error);
        report.note("hook", text, Some("the log has what it printed"));
    }
    for why in whys {
        if let Some(failure) = why.last_failure {
            let text = format!(
                "{} could not be shown on {} by {}: {}",
                failure.image_name, why.monitor, failure.backend, failure.error
            );
            let step = "mend what it names, or `murald backends activate` another";
            report.fix("picture", text, step);
        }
    }
}

/// Reports a daemon that hangs or was stopped by a signal: only SIGKILL ends it.
fn silent(report: &mut Report, socket: &Path) {
    let text = format!("the daemon on {} does not answer", socket.display());
    let step = match Holder::of(socket) {
        Some(Holder { pid, .. }) => format!("`kill -9 {pid}`, then `murald start`"),
        None => "end its process, and `murald start` another".to_owned(),
    };
    report.fix(SUBJECT, text, step);
}

/// A library of 100,000 images takes a second on a fast disk.
const WITHIN: Duration = Duration::from_secs(5);

pub(super) fn look_at_leftovers(report: &mut Report, paths: &DaemonPaths) {
    database(report, &paths.database);
    let gone = ProcessRecords::at(&paths.backends).gone();
    if gone > 0 {
        let text = format!(
            "{gone} of the processes on record in {} have ended since",
            paths.backends.display()
        );
        report.note("leftovers", text, Some("none is needed: the next start forgets them"));
    }
}

/// A running daemon checks its database itself and warns about it.
pub(super) fn database_in_use(report: &mut Report, database: &Path) {
    if let Ok(found) = fs::metadata(database) {
        let (shown, size) = (database.display(), found.len() >> 10);
        report.ok(DATABASE, format!("{shown} is in use, {size} KiB"));
    }
}

fn database(report: &mut Report, database: &Path) {
    const SUBJECT: &str = DATABASE;
    let shown = database.display();
    let damaged = |report: &mut Report, problem: String| {
        let step = match backup::list(database).first() {
            Some(_) => "`murald library restore` brings back the newest backup",
            None => "there is no backup of it: `murald library check` tells all that is wrong",
        };
        report.fix(SUBJECT, format!("{shown} is damaged: {problem}"), step);
    };
    match store::quick_check(database, Instant::now() + WITHIN) {
        Ok(QuickCheck::None) => {
            report.ok(SUBJECT, format!("there is no {shown} yet: the first start creates it"));
        }
        Ok(QuickCheck::Sound) => report.ok(SUBJECT, format!("{shown} is sound")),
        Ok(QuickCheck::Damaged(problem)) => damaged(report, problem),
        Ok(QuickCheck::Open) => {
            let text = format!("{shown} is open, or was when its daemon was cut off");
            report.note(SUBJECT, text, Some("none is needed: the next start looks at it"));
        }
        Ok(QuickCheck::TooLarge) => {
            let text = format!("{shown} is too large for a quick look");
            report.note(SUBJECT, text, Some("`murald library check` looks at all of it"));
        }
        Err(error) if error.is_damage() => damaged(report, chain(&error)),
        Err(error @ store::Error::Newer { .. }) => {
            let step = "start the murald that wrote it; `murald library restore` brings back the newest \
                        backup that this one can read";
            report.fix(SUBJECT, chain(&error), step);
        }
        Err(error) => {
            let step = "make it readable: `murald library check` looks again";
            report.fix(SUBJECT, format!("{shown} cannot be read: {}", chain(&error)), step);
        }
    }
}
