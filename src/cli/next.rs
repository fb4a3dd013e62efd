//! The work that the command hands back to `main`, and the output about its result.
//!
//! `main` runs the daemon, checks settings and databases or examines the system, since a client sees
//! none of these modules. The functions here only print.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::call::{Call, Globals, OutputOptions};
use super::columns::{View, column, each, more};
use super::stdout::Stdout;
use super::table::Table;
use super::template::written;
use super::terminal::{Terminal, harmless, variable, width, wrapped};
use super::{Error, Exit, start};
use crate::error_chain::chain;
use crate::wire::{DatabaseReport, Finding, FindingState};

/// The work left for `main`; the report prints its result.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing but to exit.
    End(ExitCode),
    /// Run the daemon.
    Daemon(Start),
    /// Examine everything that wallpapers need.
    Examine(Start, Report),
    /// Read a file of settings.
    CheckConfig(PathBuf, Report),
    /// Check the whole database that this file of settings names.
    CheckDatabase(PathBuf, Report),
    /// Restore a backup of that database; none: the newest intact one.
    RestoreDatabase(PathBuf, Option<PathBuf>, Report),
    /// Stop the processes that a daemon has left which no longer runs.
    TakeDown(Start, Report),
}

/// The daemon's command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    pub config: Option<PathBuf>,
    /// One of `debug`, `info`, `warn`, `error`.
    pub log_level: Option<String>,
    /// From `--socket`, else from `MURALD_SOCKET`.
    pub socket: Option<PathBuf>,
    /// A command has started the daemon and waits until it is ready; nobody reads its output after
    /// that.
    pub detached: bool,
}

impl Start {
    pub(super) fn of(call: &Call) -> Self {
        let from_env = || variable("MURALD_SOCKET").map(PathBuf::from);
        let Globals { config, log_level, socket, .. } = call.globals.clone();
        // The daemon may change its directory; the user meant the path as seen from here.
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self {
            config: config.map(absolute),
            log_level,
            socket: socket.or_else(from_env).map(absolute),
            detached: start::is_detached(),
        }
    }
}

/// Prints the result of what `main` has done, as the command line asks for it.
#[derive(Debug)]
pub(crate) struct Report(OutputOptions);

impl Report {
    pub(super) fn of(call: &Call) -> Self {
        Self(call.globals.output.clone())
    }

    /// Prints the findings. The exit code is 1 if something has to be fixed.
    pub(crate) fn findings(&self, findings: &[Finding]) -> ExitCode {
        let is_well = findings.iter().all(|finding| finding.state != FindingState::Fix);
        let done = self.print(|stdout| match stdout.terminal() {
            _ if stdout.wants_data() => stdout.data(&json!(findings)),
            Some(terminal) => stdout.raw(for_people(findings, terminal).as_bytes()),
            None => stdout.table(&rows(findings)),
        });
        if done.is_ok() && !is_well { ExitCode::FAILURE } else { self.end(done) }
    }

    /// Prints the warnings, one a line, or why the daemon would not start with this file.
    pub(crate) fn settings(
        &self,
        file: &Path,
        found: Result<Vec<String>, impl StdError>,
    ) -> ExitCode {
        let show = |warnings: Vec<String>| {
            self.print(|stdout| {
                LINES.tell(&Call::default(), stdout, &json!(warnings))?;
                match warnings.is_empty() {
                    true => stdout.note(format!("{} is in order", file.display())),
                    false => Ok(()),
                }
            })
        };
        let found = found.map_err(|error| Error::new(Exit::Config, chain(&error)));
        self.end(found.and_then(show))
    }

    /// Prints what a check of the database has found, or why it was not checked.
    pub(crate) fn database(&self, found: Result<DatabaseReport, (u8, impl StdError)>) -> ExitCode {
        let found = found.map_err(|(code, error)| Error::of_daemon(code, None, &error));
        self.end(found.and_then(|report| self.print(|stdout| show_database(stdout, report))))
    }

    /// Prints which backup was restored and where the old database is, or why nothing was changed.
    pub(crate) fn restored(
        &self,
        done: Result<(PathBuf, Option<PathBuf>), (u8, impl StdError)>,
    ) -> ExitCode {
        let done = done.map_err(|(code, error)| match code {
            75 => Error::of_daemon(code, Some("`murald stop` stops it"), &error),
            78 => Error::of_daemon(code, None, &error),
            _ => Error::refused(chain(&error)).hint("`murald library check` lists backups"),
        });
        self.end(done.and_then(|(from, aside)| {
            self.show(&RESTORED, &json!({ "from": from, "aside": aside }))
        }))
    }

    /// Prints how many processes were stopped, or why none was.
    pub(crate) fn taken_down(&self, done: Result<usize, (u8, impl StdError)>) -> ExitCode {
        let done = done.map_err(|(code, error)| Error::of_daemon(code, None, &error));
        self.end(done.and_then(|ended| {
            self.show(&TAKEN_DOWN, &json!({ "status": "cleared", "ended": ended }))
        }))
    }

    fn show(&self, view: &View, record: &Value) -> Result<(), Error> {
        self.print(|stdout| view.tell(&Call::default(), stdout, record))
    }

    fn print(&self, print: impl FnOnce(&mut Stdout) -> Result<(), Error>) -> Result<(), Error> {
        let mut stdout = Stdout::new(&self.0);
        print(&mut stdout)?;
        stdout.flush()
    }

    fn end(&self, done: Result<(), Error>) -> ExitCode {
        end(done, self.0.json)
    }
}

fn rows(findings: &[Finding]) -> Table {
    let mut table = Table::new(&["STATE", "SUBJECT", "TEXT"]);
    for Finding { subject, state, text, step } in findings {
        let text = step.as_ref().map_or_else(|| text.clone(), |step| format!("{text}; {step}"));
        table.row([state.as_str().into(), subject.into(), text.into()]);
    }
    table
}

/// Findings as folded lines, each step on a line of its own.
fn for_people(findings: &[Finding], terminal: Terminal) -> String {
    const STATE: usize = 4;
    let subjects = findings.iter().map(|one| width(&one.subject)).max().unwrap_or_default();
    let indent = STATE + 2 + subjects + 2;
    let columns = terminal.columns.saturating_sub(indent).max(30);
    let mut out = String::new();
    for Finding { subject, state, text, step } in findings {
        let color = match state {
            FindingState::Ok => "32",
            FindingState::Note => "0",
            FindingState::Fix => "31",
        };
        let state = format!("{:STATE$}", state.as_str());
        let state = if terminal.color { format!("\x1b[{color}m{state}\x1b[0m") } else { state };
        let mut start = format!("{state}  {subject:subjects$}  ");
        let texts = [Some(text), step.as_ref()].into_iter().flatten();
        for line in texts.flat_map(|text| wrapped(&harmless(text), columns)) {
            out.push_str(&start);
            out.push_str(&line);
            out.push('\n');
            start = " ".repeat(indent);
        }
    }
    out
}

fn show_database(stdout: &mut Stdout, mut report: DatabaseReport) -> Result<(), Error> {
    // Before the first start there is nothing that could be damaged.
    let is_new = !report.database.exists() && report.backups.is_empty();
    if is_new {
        report.problems.clear();
    }
    REPORT.tell(&Call::default(), stdout, &json!(report))?;
    if is_new {
        return stdout.note("no database yet (created when the daemon first starts)");
    }
    let Some(problem) = report.problems.first() else { return Ok(()) };
    let error = Error::refused(format!("the database is damaged: {problem}"));
    Err(error.hint(match report.backups.first() {
        Some(_) => "stop murald, then run `murald library restore`",
        None => "there is no backup",
    }))
}

pub(super) const REPORT: View = View::sheet(
    "",
    &[
        column("database", "database"),
        column("images", "images"),
        column("missing", "missing"),
        each("problem", "problems", written),
        each("backup", "backups", written),
    ],
);
pub(super) const RESTORED: View = View::own("", &[more("from aside")], |_, stdout, restored| {
    stdout.say(format!("restored the database from {}", written(&restored["from"])))?;
    match restored["aside"].as_str() {
        Some(aside) => stdout.say(format!("the old database is kept in {aside}")),
        None => Ok(()),
    }
});
const TAKEN_DOWN: View = View::own("", &[more("status ended")], |_, stdout, done| {
    stdout.say(match done["ended"].as_u64() {
        Some(0) | None => "no daemon runs, and no wallpaper of murald is left".to_owned(),
        Some(1) => "no daemon runs; stopped 1 process that drew wallpapers".to_owned(),
        Some(ended) => format!("no daemon runs; stopped {ended} processes that drew wallpapers"),
    })
});
const LINES: View = View::own("", &[], |_, stdout, lines| {
    lines.as_array().into_iter().flatten().try_for_each(|line| stdout.line(written(line)))
});

pub(super) fn end(done: Result<(), Error>, json: bool) -> ExitCode {
    done.map_or_else(|error| error.report(json), |()| ExitCode::SUCCESS)
}
