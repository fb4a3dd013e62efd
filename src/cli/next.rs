//! The work that the command hands back to `main`, and the output about its result.
//!
//! `main` runs the daemon, checks settings and databases or examines the system, since a client sees
//! none of these modules. The functions here only print.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::call::{Call, Globals, OutputOptions};
use super::columns::{View, column, each, more};
use super::stdout::Stdout;
use super::table::Table;
use super::template::written;
use super::terminal::{Terminal, harmless, width, wrapped};
use super::verb::Task;
use super::{Error, start};
use crate::error_chain::chain;
use crate::paths::Env;
use crate::wire::{DatabaseReport, Finding, FindingState};

/// The work left for `main`.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing but to exit.
    End(ExitCode),
    /// Run the daemon.
    Daemon(Start),
    /// Read a file of settings.
    Check(Check),
    /// Check the whole database.
    CheckDatabase(DatabaseCheck),
    /// Restore a backup of the database.
    RestoreDatabase(DatabaseRestore),
    /// Examine everything that wallpapers need.
    Examine(Doctor),
    /// Stop the processes that a daemon has left which no longer runs.
    TakeDown(TakeDown),
}

/// A file of settings to check.
#[derive(Debug)]
pub(crate) struct Check {
    pub file: PathBuf,
    pub(super) output: OutputOptions,
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

/// A request to examine everything that wallpapers need.
#[derive(Debug)]
pub(crate) struct Doctor {
    /// The command line of the daemon.
    pub start: Start,
    output: OutputOptions,
}

impl Doctor {
    pub(super) fn new(start: Start, output: OutputOptions) -> Self {
        Self { start, output }
    }

    /// Prints the findings. The exit code is 1 if something has to be fixed.
    pub(crate) fn tell(&self, findings: &[Finding]) -> ExitCode {
        let is_well = findings.iter().all(|finding| finding.state != FindingState::Fix);
        match self.show(findings) {
            Ok(()) if !is_well => ExitCode::FAILURE,
            done => end(done, self.output.json),
        }
    }

    fn show(&self, findings: &[Finding]) -> Result<(), Error> {
        let mut stdout = Stdout::new(&self.output);
        match stdout.terminal() {
            _ if stdout.wants_data() => stdout.data(&json!(findings))?,
            Some(terminal) => stdout.raw(for_people(findings, terminal).as_bytes())?,
            None => stdout.table(&rows(findings))?,
        }
        stdout.flush()
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

/// Folded, with each step on a line of its own.
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

/// A database to check.
#[derive(Debug)]
pub(crate) struct DatabaseCheck {
    /// The file of settings that names the database.
    pub config: PathBuf,
    output: OutputOptions,
}

/// A database to restore.
#[derive(Debug)]
pub(crate) struct DatabaseRestore {
    /// The file of settings that names the database.
    pub config: PathBuf,
    /// The backup; none: the newest intact one.
    pub file: Option<PathBuf>,
    output: OutputOptions,
}

pub(super) fn database_task(task: Task, config: PathBuf, call: &Call) -> Next {
    let output = call.globals.output.clone();
    match task {
        Task::RestoreDatabase => {
            let file = call.text("FILE").map(PathBuf::from);
            Next::RestoreDatabase(DatabaseRestore { config, file, output })
        }
        _ => Next::CheckDatabase(DatabaseCheck { config, output }),
    }
}

impl DatabaseCheck {
    /// Prints the result, or the error under the daemon's exit code.
    pub(crate) fn tell(&self, found: Result<DatabaseReport, (u8, impl StdError)>) -> ExitCode {
        let found = found.map_err(|(code, error)| Error::of_daemon(code, None, &error));
        end(found.and_then(|report| self.show(report)), self.output.json)
    }

    fn show(&self, mut report: DatabaseReport) -> Result<(), Error> {
        // Before the first start there is nothing that could be damaged.
        let is_new = !report.database.exists() && report.backups.is_empty();
        if is_new {
            report.problems.clear();
        }
        print(&self.output, &REPORT, &json!(report))?;
        if is_new {
            return note(&self.output, "no database yet (created when the daemon first starts)");
        }
        let Some(problem) = report.problems.first() else { return Ok(()) };
        let error = Error::refused(format!("the database is damaged: {problem}"));
        Err(error.hint(match report.backups.first() {
            Some(_) => "stop murald, then run `murald library restore`",
            None => "there is no backup",
        }))
    }
}

impl DatabaseRestore {
    /// Prints which backup was restored and where the old database is, or why nothing was changed.
    pub(crate) fn tell(
        &self,
        done: Result<(PathBuf, Option<PathBuf>), (u8, impl StdError)>,
    ) -> ExitCode {
        let done = done.map_err(|(code, error)| match code {
            75 => Error::of_daemon(code, Some("`murald stop` ends it"), &error),
            78 => Error::of_daemon(code, None, &error),
            _ => Error::refused(chain(&error)).hint("`murald library check` lists backups"),
        });
        let show = |(from, aside)| {
            print(&self.output, &RESTORED, &json!({ "from": from, "aside": aside }))
        };
        end(done.and_then(show), self.output.json)
    }
}

/// Wallpapers to take down while no daemon runs.
#[derive(Debug)]
pub(crate) struct TakeDown {
    /// The command line of the daemon.
    pub start: Start,
    pub(super) output: OutputOptions,
}

impl TakeDown {
    /// Prints how many processes were stopped, or why none was.
    pub(crate) fn tell(&self, done: Result<usize, (u8, impl StdError)>) -> ExitCode {
        let done = done.map_err(|(code, error)| Error::of_daemon(code, None, &error));
        let show = |ended| {
            print(&self.output, &TAKEN_DOWN, &json!({ "status": "cleared", "ended": ended }))
        };
        end(done.and_then(show), self.output.json)
    }
}

impl Check {
    /// Prints the warnings, one a line, or why the daemon would not start with this file.
    pub(crate) fn tell(&self, found: Result<Vec<String>, impl StdError>) -> ExitCode {
        let show = |warnings: Vec<String>| {
            let is_well = warnings.is_empty();
            print(&self.output, &LINES, &json!(warnings))?;
            match is_well {
                true => note(&self.output, &format!("{} is in order", self.file.display())),
                false => Ok(()),
            }
        };
        end(found.map_err(|error| Error::of_check(&error)).and_then(show), self.output.json)
    }
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
        Some(1) => "no daemon runs; ended 1 process that drew wallpapers".to_owned(),
        Some(ended) => format!("no daemon runs; ended {ended} processes that drew wallpapers"),
    })
});
const LINES: View = View::own("", &[], |_, stdout, lines| {
    lines.as_array().into_iter().flatten().try_for_each(|line| stdout.line(written(line)))
});

fn print(output: &OutputOptions, view: &View, record: &Value) -> Result<(), Error> {
    let mut stdout = Stdout::new(output);
    match stdout.wants_data() {
        true => stdout.data(record)?,
        false => view.people(&Call::default(), &mut stdout, record)?,
    }
    stdout.flush()
}

fn note(output: &OutputOptions, text: &str) -> Result<(), Error> {
    let mut stdout = Stdout::new(output);
    stdout.note(text)?;
    stdout.flush()
}

pub(super) fn end(done: Result<(), Error>, json: bool) -> ExitCode {
    done.map_or_else(|error| error.report(json), |()| ExitCode::SUCCESS)
}

pub(super) fn daemon_start(globals: Globals, env: &Env) -> Start {
    let from_env = || env.var("MURALD_SOCKET").filter(|path| !path.is_empty());
    let Globals { config, log_level, socket, .. } = globals;
    // The daemon may change its directory; the user meant the path as seen from here.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    Start {
        config: config.map(absolute),
        log_level,
        socket: socket.or_else(|| from_env().map(PathBuf::from)).map(absolute),
        detached: start::is_detached(env),
    }
}
