//! What the command says of what may be in the way: what `main` is to look at, and how it is told.

use std::process::ExitCode;

use serde_json::json;

use super::call::Output;
use super::stdout::Stdout;
use super::table::{Cell, Look, Table};
use super::{Error, Start, end};
use crate::wire::{Finding, FindingState};

/// A look at everything that wallpapers need.
#[derive(Debug)]
pub(crate) struct Doctor {
    /// Of the daemon that there is, or would be.
    pub start: Start,
    output: Output,
}

impl Doctor {
    pub(super) fn new(start: Start, output: Output) -> Self {
        Self { start, output }
    }

    /// Tells what was found. The exit code is 1 where something is to be mended.
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
            stdout.table(&table(findings))?;
        }
        stdout.flush()
    }
}

fn table(findings: &[Finding]) -> Table {
    // Texts are whole: the step is at their end.
    let mut table = Table::new(&["=STATE", "=SUBJECT", "=TEXT"]);
    for Finding { subject, state, text, step } in findings {
        let look = match state {
            FindingState::Ok => Look::Good,
            FindingState::Note => Look::Plain,
            FindingState::Fix => Look::Bad,
        };
        let text = match step {
            Some(step) => format!("{text}; {step}"),
            None => text.clone(),
        };
        table.row([Cell::from(state.as_str()).look(look), subject.into(), text.into()]);
    }
    table
}
