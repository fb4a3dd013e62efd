//! What a daemon that does not run has left: its database, and records of its backends' processes.
//!
//! Neither is written: a look at a database that is open elsewhere, or was cut off, would make files
//! beside it. The next start looks at such a one itself.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::paths::DaemonPaths;
use super::report::Report;
use crate::error_chain::chain;
use crate::process::ProcessRecords;
use crate::store::{self, Glance, backup};

/// A library of 100,000 images takes a second where its disk is fast.
const WITHIN: Duration = Duration::from_secs(5);

pub(super) fn look(report: &mut Report, paths: &DaemonPaths) {
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

fn database(report: &mut Report, database: &Path) {
    const SUBJECT: &str = "database";
    let shown = database.display();
    let damaged = |report: &mut Report, problem: String| {
        let step = match backup::list(database).first() {
            Some(_) => "`murald library restore` brings back the newest backup",
            None => "there is no backup of it: `murald library check` tells all that is wrong",
        };
        report.fix(SUBJECT, format!("{shown} is damaged: {problem}"), step);
    };
    match store::glance(database, Instant::now() + WITHIN) {
        Ok(Glance::None) => {}
        Ok(Glance::Sound) => report.ok(SUBJECT, format!("{shown} is sound")),
        Ok(Glance::Damaged(problem)) => damaged(report, problem),
        Ok(Glance::Open) => {
            let text = format!("{shown} is open, or was when its daemon was cut off");
            report.note(SUBJECT, text, Some("none is needed: the next start looks at it"));
        }
        Ok(Glance::TooLarge) => {
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
