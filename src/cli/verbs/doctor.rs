//! `murald doctor`: examines everything that wallpapers need, and prints the findings.

use serde_json::json;

use super::{
    Call, Error, Exit, Start, Stdout, Table, Terminal, Verb, View, harmless, more, width, wrapped,
};
use crate::wire::{Finding, FindingState};

pub(super) const DOCTOR: Verb = Verb::own(
    &["doctor"],
    "Find out why no wallpaper appears (works without a daemon)",
    doctor,
)
.shows(&[&View::of("", &[more("subject state text step")])])
.help(
    "Checks the configuration, directories, the socket, the database, the session, its backends and \
     other programs that draw there.\n\
     Each row is STATE, SUBJECT and TEXT. STATE is \"ok\", \"note\" for possible problems, or \"fix\" \
     with the step to fix a problem. Exits with 1 if there is a \"fix\".",
);

fn doctor(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let findings = (call.host().examine)(Start::of(call));
    match stdout.terminal() {
        _ if stdout.wants_data() => stdout.data(&json!(findings))?,
        Some(terminal) => stdout.raw(for_people(&findings, terminal).as_bytes())?,
        None => stdout.table(&rows(&findings))?,
    }
    // If nobody reads them, that is no failure.
    stdout.flush()?;
    let is_well = findings.iter().all(|finding| finding.state != FindingState::Fix);
    // The findings are printed already.
    if is_well { Ok(()) } else { Err(Error::new(Exit::Refused, String::new())) }
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
