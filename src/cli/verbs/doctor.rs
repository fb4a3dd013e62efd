//! `murald doctor`: examines everything that wallpapers need, and prints the findings.

use serde_json::json;

use super::{
    Call, Cell, CellStyle, Error, Exit, Start, Stdout, Table, Terminal, Verb, View, harmless, more,
    width, wrapped,
};
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

/// The columns of the state and of the two gaps.
const BESIDE: usize = 8;
/// Text is not folded into fewer columns than this.
const LEAST: usize = 30;

fn doctor(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let findings = (call.host().examine)(Start::from_call(call));
    if stdout.wants_data() {
        stdout.data(&json!(findings))?
    } else {
        stdout.table(&table(&findings, stdout.terminal()))?
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

/// A row for each finding; on a terminal its text is folded, and its step has lines of its own.
fn table(findings: &[Finding], terminal: Option<Terminal>) -> Table {
    let mut table = Table::new(&["=", "=", "="]);
    let subjects = findings
        .iter()
        .map(|one| width(&one.subject))
        .max()
        .unwrap_or_default();
    for Finding {
        subject,
        state,
        text,
        step,
    } in findings
    {
        let texts = [Some(text), step.as_ref()].into_iter().flatten();
        let lines: Vec<String> = match terminal {
            Some(terminal) => {
                let columns = terminal
                    .columns
                    .saturating_sub(BESIDE + subjects)
                    .max(LEAST);
                texts
                    .flat_map(|text| wrapped(&harmless(text), columns))
                    .collect()
            }
            // A text may end with a question.
            None => {
                let text = texts.map(String::as_str).collect::<Vec<_>>().join("; ");
                vec![text.replace("?; ", "? ")]
            }
        };
        let style = match state {
            FindingState::Ok => CellStyle::Good,
            FindingState::Note => CellStyle::Plain,
            FindingState::Fix => CellStyle::Bad,
        };
        let mut head = [Cell::from(state.as_str()).look(style), subject.into()];
        for line in lines {
            let [state, subject] = std::mem::take(&mut head);
            table.row([state, subject, line.into()]);
        }
    }
    table
}
