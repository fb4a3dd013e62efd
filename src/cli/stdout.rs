//! The output of a command: results on standard output, progress and warnings on stderr.
//!
//! Terminals get tables and sentences; pipes get the same rows with tabs between. `--json` prints JSON
//! and `--format` lines of the user's own form.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::call::OutputOptions;
use super::connection::Answer;
use super::table::Table;
use super::template::Template;
use super::terminal::{Terminal, columns, cut, folded, harmless, harmless_json, variable, width};
use super::{Error, terminal};

/// The output of a command.
pub(super) struct Stdout {
    out: Box<dyn Write>,
    form: Form,
    /// Whether only rows, ids and values are printed.
    quiet: bool,
}

enum Form {
    Terminal(Terminal),
    /// A line for each row, its cells with tabs between.
    Rows,
    Json,
    /// A template, and whether control characters are replaced for a terminal.
    Template(Template, bool),
}

impl Stdout {
    pub(super) fn new(output: &OutputOptions) -> Self {
        let stdout = io::stdout();
        let form = match &output.format {
            _ if output.json => Form::Json,
            Some(template) => Form::Template(template.clone(), stdout.is_terminal()),
            None if stdout.is_terminal() => Form::Terminal(Terminal::new(&stdout)),
            None => Form::Rows,
        };
        Self {
            out: Box::new(BufWriter::new(stdout)),
            form,
            quiet: output.quiet,
        }
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self.form, Form::Json)
    }

    /// Whether records are printed as they are, not as rows or sentences.
    pub(super) fn wants_data(&self) -> bool {
        matches!(self.form, Form::Json | Form::Template(..))
    }

    pub(super) fn has_template(&self) -> bool {
        matches!(self.form, Form::Template(..))
    }

    pub(super) fn terminal(&self) -> Option<Terminal> {
        match self.form {
            Form::Terminal(terminal) => Some(terminal),
            Form::Rows | Form::Json | Form::Template(..) => None,
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints the answer: its body unchanged as JSON, by the template, or with `people`.
    pub(super) fn show(
        &mut self,
        answer: &Answer,
        people: impl FnOnce(&mut Self, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match &self.form {
            Form::Json => self.body(&answer.body),
            Form::Template(..) => self.data(&answer.read()?),
            Form::Terminal(_) | Form::Rows => people(self, answer.read()?),
        }
    }

    /// Prints records as JSON or by the template: the items of a list, or the value itself.
    pub(super) fn data(&mut self, value: &Value) -> Result<(), Error> {
        let Form::Template(template, is_terminal) = &self.form else {
            return self.body(value.to_string().as_bytes());
        };
        let list = value.as_array().or_else(|| value.get("data")?.as_array());
        for record in list.map_or(std::slice::from_ref(value), Vec::as_slice) {
            let line = template.line(record)?;
            let line = if *is_terminal { harmless(&line) } else { line };
            writeln!(self.out, "{line}").map_err(Error::output)?;
        }
        Ok(())
    }

    /// Prints a sentence about what happened; on a terminal it is folded.
    pub(super) fn say(&mut self, text: impl Display) -> Result<(), Error> {
        match self.terminal() {
            _ if self.quiet => Ok(()),
            Some(terminal) => self.line(folded(&text.to_string(), terminal.columns)),
            None => self.line(text),
        }
    }

    /// Prints a sentence only on a terminal.
    pub(super) fn note(&mut self, text: impl Display) -> Result<(), Error> {
        if self.terminal().is_some() {
            self.say(text)
        } else {
            Ok(())
        }
    }

    /// Prints a bare value; control characters are replaced on a terminal.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), Error> {
        let text = text.to_string();
        let text = if self.terminal().is_some() {
            harmless(&text)
        } else {
            text
        };
        writeln!(self.out, "{text}").map_err(Error::output)
    }

    /// Prints a warning to stderr: the command succeeded, but not as asked.
    pub(super) fn warn(&self, text: impl Display) {
        if !self.quiet {
            terminal::warn(text);
        }
    }

    /// Prints the daemon's warnings in an answer. A client's own `warnings` may be anything.
    pub(super) fn warn_all(&self, answer: &Value) {
        let texts = answer["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        texts.for_each(|text| self.warn(text));
    }

    /// Prints one line of JSON and flushes it, since a reader may wait for it.
    pub(super) fn body(&mut self, json: &[u8]) -> Result<(), Error> {
        let written = self
            .out
            .write_all(&harmless_json(json))
            .and_then(|()| self.out.write_all(b"\n"));
        written
            .and_then(|()| self.out.flush())
            .map_err(Error::output)
    }

    pub(super) fn table(&mut self, table: &Table) -> Result<(), Error> {
        let text = match self.form {
            Form::Terminal(terminal) => table.render(terminal),
            Form::Rows | Form::Json | Form::Template(..) => table.rows(),
        };
        self.out.write_all(text.as_bytes()).map_err(Error::output)
    }

    /// Prints bytes as they are: files, style sheets.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(Error::output)
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(Error::output)
    }
}

/// The time between two drawings.
const PACE: Duration = Duration::from_millis(40);
/// The time between two lines, if no bar is drawn.
const LINE_PACE: Duration = Duration::from_secs(10);
/// The width of the bar itself, in columns.
const BAR: usize = 24;

/// A progress bar on one line of stderr, redrawn in place and removed at the end. With `NO_COLOR` or on
/// a dumb terminal, prints a line every ten seconds instead, as a screen reader would repeat the bar.
/// Draws nothing if stderr is not a terminal.
pub(super) struct Progress {
    columns: Option<usize>,
    lines: Option<SyncSender<String>>,
    drawn: Option<Instant>,
}

impl Progress {
    /// `wanted` is false if the output is for a script.
    pub(super) fn stderr(wanted: bool) -> Self {
        let stderr = io::stderr();
        let columns = (wanted && stderr.is_terminal()).then(|| columns(&stderr).unwrap_or(80));
        Self {
            columns,
            lines: columns
                .filter(|_| is_plain())
                .map(|_| print_lines(stderr, LINE_PACE)),
            drawn: None,
        }
    }

    pub(super) fn draw(&mut self, done: u64, total: u64, what: &str) {
        let Some(columns) = self.columns else { return };
        if let Some(lines) = &self.lines {
            lines.send(format!("{done} of {total}")).ok();
            return;
        }
        if done < total && self.drawn.is_some_and(|drawn| drawn.elapsed() < PACE) {
            return;
        }
        self.drawn = Some(Instant::now());
        // A bar that cannot be drawn is no reason to stop.
        write!(
            io::stderr().lock(),
            "\r{}\x1b[K",
            line(columns, done, total, what)
        )
        .ok();
    }

    /// Shows the reason for a wait whose progress is unknown.
    pub(super) fn wait(&mut self, what: &str) {
        let Some(columns) = self.columns else { return };
        if let Some(lines) = &self.lines {
            lines.send(harmless(what)).ok();
            return;
        }
        self.drawn = Some(Instant::now());
        // As for the bar: a failure to draw is no reason to stop.
        write!(
            io::stderr().lock(),
            "\r{}\x1b[K",
            cut(what, columns.saturating_sub(1))
        )
        .ok();
    }

    /// Removes the bar, or stops the lines.
    pub(super) fn clear(&mut self) {
        self.lines = None;
        if self.drawn.take().is_some() {
            write!(io::stderr().lock(), "\r\x1b[K").ok();
        }
    }
}

/// Prints the last text that was sent once per `pace`, until the sender is dropped. A thread does so, as
/// the command itself waits for the daemon. A wait shorter than `pace` needs no line.
fn print_lines(mut out: impl Write + Send + 'static, pace: Duration) -> SyncSender<String> {
    let (sender, texts) = sync_channel(1);
    let print = move || {
        let Ok(mut text) = texts.recv() else { return };
        let mut due = Instant::now() + pace;
        loop {
            match texts.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(next) => text = next,
                Err(RecvTimeoutError::Timeout) => {
                    writeln!(out, "{text}").ok();
                    due = Instant::now() + pace;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    // Without the thread, only the lines are missing.
    let thread = std::thread::Builder::new().name("progress".to_owned());
    thread.spawn(print).ok();
    sender
}

/// Whether to draw no bar: the user wants none, or the terminal prints escape sequences as text.
fn is_plain() -> bool {
    variable("NO_COLOR").is_some() || variable("TERM").is_some_and(|term| term == "dumb")
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(columns: usize, done: u64, total: u64, what: &str) -> String {
    let whole = total.max(1);
    let filled = usize::try_from(done.min(whole) * BAR as u64 / whole).unwrap_or(BAR);
    let counts = format!("{done}/{total}");
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
    let start = format!("{bar} {counts} ");
    // The last column stays free: some terminals would begin a new line.
    let room = columns.saturating_sub(width(&start) + 1);
    if room == 0 {
        cut(&counts, columns)
    } else {
        start + &cut(&harmless(what), room)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn bar_fits_the_columns() {
        #[track_caller]
        fn check(columns: usize, done: u64, total: u64, expected: &str) {
            assert_eq!(line(columns, done, total, "a long name.jpg"), expected);
        }
        check(80, 0, 0, "░░░░░░░░░░░░░░░░░░░░░░░░ 0/0 a long name.jpg");
        check(80, 3, 6, "████████████░░░░░░░░░░░░ 3/6 a long name.jpg");
        check(36, 6, 6, "████████████████████████ 6/6 a lon…");
        check(20, 6, 6, "6/6");
    }

    #[test]
    fn lines_are_repeated_during_a_wait_without_progress() {
        let (reader, writer) = io::pipe().unwrap();
        let lines = print_lines(writer, Duration::from_millis(10));
        lines.send("1 of 3".to_owned()).unwrap();
        let printed = BufReader::new(reader).lines().map(Result::unwrap);
        assert_eq!(printed.take(2).collect::<Vec<_>>(), ["1 of 3", "1 of 3"]);
    }
}
