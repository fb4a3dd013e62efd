//! What the command says of the database: what `main` is to look at or to restore, and what it tells
//! of that.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::call::{Call, Output};
use super::stdout::Stdout;
use super::table::Table;
use super::verb::Database;
use super::{Error, Next, end};
use crate::error_chain::chain;
use crate::wire::DatabaseReport;

/// A database that is to be looked at.
#[derive(Debug)]
pub(crate) struct DatabaseCheck {
    /// The file of settings that says where it is.
    pub config: PathBuf,
    output: Output,
}

/// A database that is to be restored.
#[derive(Debug)]
pub(crate) struct DatabaseRestore {
    /// The file of settings that says where it is.
    pub config: PathBuf,
    /// The backup; none: the newest that is sound.
    pub file: Option<PathBuf>,
    output: Output,
}

pub(super) fn next(what: Database, config: PathBuf, call: &Call) -> Next {
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
    /// Tells what was found, or under which exit code nothing could be.
    pub(crate) fn tell(&self, found: Result<DatabaseReport, (u8, impl StdError)>) -> ExitCode {
        let told = found.map_err(|(code, error)| Error::of_daemon(code, None, &error));
        end(told.and_then(|report| self.show(&report)), self.output.json)
    }

    fn show(&self, report: &DatabaseReport) -> Result<(), Error> {
        let mut stdout = Stdout::new(&self.output);
        if stdout.wants_data() {
            stdout.data(&json!(report))?;
        } else {
            stdout.table(&sheet(report))?;
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

fn sheet(report: &DatabaseReport) -> Table {
    let mut sheet = Table::sheet();
    sheet.field("database", report.database.display());
    sheet.field("images", report.images);
    sheet.field("missing", report.missing);
    report.problems.iter().for_each(|problem| sheet.field("problem", problem));
    report.backups.iter().for_each(|backup| sheet.field("backup", backup.display()));
    sheet
}

impl DatabaseRestore {
    /// Tells where the database came from and where the old one is, or why it is as it was.
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
