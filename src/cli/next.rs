//! The work that the command hands back to `main`, and the output about its result.
//!
//! `main` runs the daemon, checks settings and databases or examines the system, since a client sees
//! none of these modules. The functions here only print.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::call::{Call, Globals, OutputOptions};
use super::stdout::Stdout;
use super::table::{Cell, CellStyle, Table};
use super::verb::Database;
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
        if stdout.wants_data() {
            stdout.data(&json!(findings))?;
        } else {
            stdout.table(&findings_table(findings))?;
        }
        stdout.flush()
    }
}

fn findings_table(findings: &[Finding]) -> Table {
    // Texts are not cut: the step is at their end.
    let mut table = Table::new(&["=STATE", "=SUBJECT", "=TEXT"]);
    for Finding { subject, state, text, step } in findings {
        let look = match state {
            FindingState::Ok => CellStyle::Good,
            FindingState::Note => CellStyle::Plain,
            FindingState::Fix => CellStyle::Bad,
        };
        let text = match step {
            Some(step) => format!("{text}; {step}"),
            None => text.clone(),
        };
        table.row([Cell::from(state.as_str()).look(look), subject.into(), text.into()]);
    }
    table
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

pub(super) fn database_task(what: Database, config: PathBuf, call: &Call) -> Next {
    let output = call.globals.output.clone();
    match what {
        Database::Check => Next::CheckDatabase(DatabaseCheck { config, output }),
        Database::Restore => {
            let file = call.text("FILE").map(PathBuf::from);
            Next::RestoreDatabase(DatabaseRestore { config, file, output })
        }
    }
}

impl DatabaseCheck {
    /// Prints the result, or the error under the daemon's exit code.
    pub(crate) fn tell(&self, found: Result<DatabaseReport, (u8, impl StdError)>) -> ExitCode {
        let told = found.map_err(|(code, error)| Error::of_daemon(code, None, &error));
        end(told.and_then(|report| self.show(&report)), self.output.json)
    }

    fn show(&self, report: &DatabaseReport) -> Result<(), Error> {
        let mut stdout = Stdout::new(&self.output);
        if stdout.wants_data() {
            stdout.data(&json!(report))?;
        } else {
            stdout.table(&report_sheet(report))?;
        }
        stdout.flush()?;
        let Some(problem) = report.problems.first() else { return Ok(()) };
        let error = Error::refused(format!("the database is not sound: {problem}"));
        Err(error.hint(match report.backups.first() {
            Some(_) => "with the daemon stopped, `murald library restore` brings back a backup",
            None => "there is no backup of it",
        }))
    }
}

fn report_sheet(report: &DatabaseReport) -> Table {
    let mut sheet = Table::sheet();
    sheet.field("database", report.database.display());
    sheet.field("images", report.images);
    sheet.field("missing", report.missing);
    report.problems.iter().for_each(|problem| sheet.field("problem", problem));
    report.backups.iter().for_each(|backup| sheet.field("backup", backup.display()));
    sheet
}

impl DatabaseRestore {
    /// Prints which backup was restored and where the old database is, or why nothing was changed.
    pub(crate) fn tell(
        &self,
        done: Result<(PathBuf, Option<PathBuf>), (u8, impl StdError)>,
    ) -> ExitCode {
        let told = done.map_err(|(code, error)| match code {
            75 => Error::of_daemon(code, Some("`murald stop` ends it"), &error),
            78 => Error::of_daemon(code, None, &error),
            _ => Error::refused(chain(&error)).hint("`murald library check` lists backups"),
        });
        end(told.and_then(|(from, aside)| self.show(&from, aside.as_deref())), self.output.json)
    }

    fn show(&self, from: &Path, aside: Option<&Path>) -> Result<(), Error> {
        let mut stdout = Stdout::new(&self.output);
        if stdout.wants_data() {
            stdout.data(&json!({ "from": from, "aside": aside }))?;
        } else {
            stdout.say(format!("the database is restored from {}", from.display()))?;
            if let Some(aside) = aside {
                stdout.say(format!("as it was it is kept in {}", aside.display()))?;
            }
        }
        stdout.flush()
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

impl Check {
    /// Prints the warnings, one a line, or why the daemon would not start with this file.
    pub(crate) fn tell(&self, found: Result<Vec<String>, impl std::error::Error>) -> ExitCode {
        let told = found.map_err(|error| Error::of_check(&error)).and_then(|warnings| {
            let mut stdout = Stdout::new(&self.output);
            if stdout.wants_data() {
                stdout.data(&serde_json::Value::from(warnings))?;
                return stdout.flush();
            }
            warnings.iter().try_for_each(|warning| stdout.line(warning))?;
            if warnings.is_empty() {
                stdout.note(format!("{} is in order", self.file.display()))?;
            }
            stdout.flush()
        });
        end(told, self.output.json)
    }
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
