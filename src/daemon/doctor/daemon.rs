//! Examines the daemon: whether it answers at the socket, and if not, why; and the database and
//! processes that a stopped daemon has left.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::process::geteuid;
use serde::Deserialize;

use super::super::error::{NEWER, get};
use super::super::options::{DaemonPaths, Options};
use super::Report;
use crate::error_chain::chain;
use crate::lock::Holder;
use crate::process::ProcessRecords;
use crate::store::{self, backup};
use crate::sys::{connect, is_queue_full};
use crate::wire::{Session, Why};

const SUBJECT: &str = "daemon";
const DATABASE: &str = "database";

#[derive(Deserialize)]
struct RunningDaemon {
    version: String,
    pid: u32,
    session: Option<Session>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Returns whether a daemon may be running.
pub(super) fn look(report: &mut Report, paths: &DaemonPaths, options: &Options) -> bool {
    let socket = &paths.socket;
    let found = match fs::symlink_metadata(socket) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return absent(report, paths, options);
        }
        Err(error) => {
            let text = format!("cannot examine {}: {}", socket.display(), chain(&error));
            let step = "make its directory readable, or set MURALD_SOCKET to another path";
            report.fix(SUBJECT, text, step);
            return true;
        }
        Ok(found) => found,
    };
    if is_ours(report, socket, &found, options) {
        answers(report, paths, options)
    } else {
        true
    }
}

/// Whether the file is a socket of this user; reports it otherwise.
fn is_ours(report: &mut Report, socket: &Path, found: &Metadata, options: &Options) -> bool {
    let shown = socket.display();
    if !found.file_type().is_socket() {
        let step = format!("`rm {shown}`, or set MURALD_SOCKET to another path");
        report.fix(SUBJECT, format!("{shown} is not a socket"), step);
        return false;
    }
    let owner = found.uid();
    if owner != geteuid().as_raw() {
        let text = format!("{shown} belongs to user {owner}; each user runs their own daemon");
        let step = match options.socket {
            Some(_) => "set MURALD_SOCKET or --socket to a path of your own",
            None => "remove it, or set MURALD_SOCKET to a path of your own",
        };
        report.fix(SUBJECT, text, step);
        return false;
    }
    true
}

/// Connects to the socket; returns whether a daemon may be running.
fn answers(report: &mut Report, paths: &DaemonPaths, options: &Options) -> bool {
    let socket = &paths.socket;
    let shown = socket.display();
    // The connection is closed before a request is sent.
    match connect(socket).map(drop) {
        Ok(()) => asked(report, socket),
        Err(error) if is_queue_full(&error) => silent(report, socket),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let text = format!("{shown} is a stale socket, left by an earlier daemon");
            report.note(
                "leftovers",
                text,
                Some("nothing to do: the next start replaces it"),
            );
            return absent(report, paths, options);
        }
        Err(error) => {
            let step = format!("`rm {shown}` and start murald again");
            let text = format!("cannot connect to {shown}: {}", chain(&error));
            report.fix(SUBJECT, text, step);
        }
    }
    true
}

/// Called without a listener; returns whether the locks name a daemon that is running nevertheless.
fn absent(report: &mut Report, paths: &DaemonPaths, options: &Options) -> bool {
    let shown = paths.socket.display();
    let Some(holder) = [&paths.socket, &paths.database]
        .into_iter()
        .find_map(|at| Holder::find(at))
    else {
        let text = format!("the daemon is not running (no socket at {shown})");
        let step = "start it with `murald start` or `murald set PICTURE`";
        report.note(SUBJECT, text, Some(step));
        return false;
    };
    let pid = holder.pid;
    let (text, step) = match holder.socket.as_ref().filter(|_| holder.answers()) {
        // Commands find this socket by themselves.
        Some(other) if options.socket.is_none() => {
            asked(report, other);
            return true;
        }
        Some(other) => (
            format!(
                "another daemon (process {pid}, socket {}) uses this library",
                other.display()
            ),
            format!(
                "`murald --socket {} stop` stops it; or set MURALD_SOCKET to that path",
                other.display()
            ),
        ),
        None => (
            format!("the daemon (process {pid}) runs, but its socket {shown} was removed"),
            format!("`kill -HUP {pid}` restores the socket"),
        ),
    };
    report.fix(SUBJECT, text, step);
    true
}

/// Reports the status of a running daemon.
fn asked(report: &mut Report, socket: &Path) {
    let Some(info) = get::<RunningDaemon>(socket, "info") else {
        return silent(report, socket);
    };
    let RunningDaemon {
        version,
        pid,
        session,
        warnings,
    } = info;
    let inside = match &session {
        Some(session) => format!("in {session}"),
        None => "without a session".to_owned(),
    };
    let text = format!(
        "murald {version} is running (process {pid}, socket {}) {inside}",
        socket.display()
    );
    let ours = env!("CARGO_PKG_VERSION");
    if version == ours {
        report.ok(SUBJECT, text);
    } else {
        let text = format!("{text}; this command has version {ours}");
        report.note(SUBJECT, text, Some("`murald stop`, then `murald start`"));
    }
    for warning in warnings {
        // The daemon repeats the warnings about the configuration.
        let is_known = report
            .findings
            .iter()
            .any(|one| warning.contains(&one.text));
        if !is_known {
            report.note(SUBJECT, warning, None);
        }
    }
    let var = |name: &str| std::env::var_os(name);
    match session {
        Some(session) if session.is_another(var) => {
            let text = format!("the daemon draws in {session}, not in this session");
            report.fix(SUBJECT, text, "`murald stop`, then start it here");
        }
        None if Session::from_env(var).is_some() => {
            let step = "`murald status` in this session makes the daemon use it";
            report.fix(SUBJECT, "the daemon has found no session", step);
        }
        _ => {}
    }
    let whys = get::<Vec<Why>>(socket, "why").unwrap_or_default();
    if let Some(failure) = whys.iter().find_map(|why| why.hook_failure.as_ref()) {
        let text = format!("hooks.wallpaper_changed failed: {}", failure.error);
        report.note("hook", text, Some("its output is in the log"));
    }
    for why in whys {
        if let Some(failure) = why.last_failure {
            let text = format!(
                "{} could not be shown on {} by {}: {}",
                failure.image_name, why.monitor, failure.backend, failure.error
            );
            let step = "fix the cause, or switch with `murald backends activate`";
            report.fix("picture", text, step);
        }
    }
}

/// Reports a daemon that hangs or was stopped by SIGSTOP: only SIGKILL ends it.
fn silent(report: &mut Report, socket: &Path) {
    let text = format!("the daemon at {} does not answer", socket.display());
    let step = match Holder::find(socket) {
        Some(Holder { pid, .. }) => format!("`kill -9 {pid}`, then `murald start`"),
        None => "kill its process, then run `murald start`".to_owned(),
    };
    report.fix(SUBJECT, text, step);
}

pub(super) fn look_at_leftovers(report: &mut Report, paths: &DaemonPaths) {
    database(report, &paths.database);
    let gone = ProcessRecords::read_only(&paths.backends).gone();
    if gone > 0 {
        let text = format!(
            "{gone} of the processes recorded in {} have exited",
            paths.backends.display()
        );
        report.note(
            "leftovers",
            text,
            Some("nothing to do: the next start removes the records"),
        );
    }
}

/// A running daemon checks its database itself and warns about it.
pub(super) fn database_in_use(report: &mut Report, database: &Path) {
    if database.exists() {
        report.well(DATABASE);
    }
}

fn database(report: &mut Report, database: &Path) {
    const SUBJECT: &str = DATABASE;
    let shown = database.display();
    let damaged = |report: &mut Report, problem: String| {
        let step = match backup::list(database).first() {
            Some(_) => "`murald library restore` restores the newest backup",
            None => "there is no backup; `murald library check` lists the damage",
        };
        report.fix(SUBJECT, format!("{shown} is damaged: {problem}"), step);
    };
    if !database.exists() {
        return report.well("no database yet");
    }
    match store::problem(database) {
        Ok(None) => report.well(DATABASE),
        Ok(Some(problem)) => damaged(report, problem),
        Err(error) if error.is_damage() => damaged(report, chain(&error)),
        Err(error @ store::Error::Newer { .. }) => {
            report.fix(SUBJECT, chain(&error), NEWER);
        }
        Err(error) => {
            let step = "make it readable, then run `murald library check`";
            report.fix(
                SUBJECT,
                format!("cannot read {shown}: {}", chain(&error)),
                step,
            );
        }
    }
}
