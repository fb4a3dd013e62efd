//! `murald doctor`: examines everything that wallpapers need, and prints the findings.

use serde_json::json;

use super::{Call, Cell, CellStyle, Error, Exit, Start, Stdout, Table, Verb, View, more};
use crate::wire::{Finding, FindingState};

pub(super) const DOCTOR: Verb = Verb::own(
    &["doctor"],
    "Find out why no wallpaper appears (works without a daemon)",
    doctor,
)
.shows(&[&View::new("", &[more("subject state text step")])])
.help(
    "Checks the configuration, directories, the socket, the database, the session, the backends and \
     other programs that draw wallpapers.\n\
     Each row is STATE, SUBJECT and TEXT; the row \"checked\" lists what is in order. STATE is \"ok\", \"note\" for possible problems, or \"fix\" \
     with the step to fix a problem. Exits with 1 if there is a \"fix\".",
);

fn doctor(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let findings = (call.host().examine)(Start::from_call(call));
    if stdout.wants_data() {
        stdout.data(&json!(findings))?
    } else {
        stdout.table(&table(&findings, stdout.terminal().is_some()))?
    }
    // A closed pipe is not a failure.
    stdout.flush()?;
    let is_well = findings
        .iter()
        .all(|finding| finding.state != FindingState::Fix);
    // The findings are printed already.
    if is_well {
        Ok(())
    } else {
        Err(Error::new(Exit::Refused, String::new()))
    }
}

/// A row for each finding; on a terminal, its step has a row of its own.
fn table(findings: &[Finding], is_terminal: bool) -> Table {
    let mut table = Table::new(&["=", "=", "="]);
    for Finding {
        subject,
        state,
        text,
        step,
    } in findings
    {
        let style = match state {
            FindingState::Ok => CellStyle::Good,
            FindingState::Note => CellStyle::Plain,
            FindingState::Fix => CellStyle::Bad,
        };
        let state = Cell::from(state.as_str()).look(style);
        match step {
            Some(step) if is_terminal => {
                table.row([state, subject.into(), text.into()]);
                table.row([Cell::default(), Cell::default(), step.into()]);
            }
            Some(step) => {
                // A text may end with a question.
                let both = format!("{text}; {step}").replace("?; ", "? ");
                table.row([state, subject.into(), both.into()]);
            }
            None => table.row([state, subject.into(), text.into()]),
        }
    }
    table
}
