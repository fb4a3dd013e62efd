//! Standard output: people on a terminal get tables and sentences, everybody else the same rows with
//! tabs between; JSON, and lines of one's own form, where they are asked for.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Error;
use super::call::Output;
use super::connection::Answer;
use super::table::Table;
use super::template::Template;
use super::terminal::Terminal;
use super::text::{harmless, harmless_json};

/// Where a command's result goes.
pub(super) struct Stdout {
    out: Box<dyn Write>,
    form: Form,
    /// Rows, ids and values alone.
    quiet: bool,
}

enum Form {
    Terminal(Terminal),
    /// A line for each row, its cells with tabs between.
    Rows,
    Json,
    /// On a terminal it does no harm.
    Template(Template, bool),
}

impl Stdout {
    pub(super) fn new(output: &Output) -> Self {
        let stdout = io::stdout();
        let form = match &output.format {
            _ if output.json => Form::Json,
            Some(template) => Form::Template(template.clone(), stdout.is_terminal()),
            None if stdout.is_terminal() => Form::Terminal(Terminal::of(&stdout)),
            None => Form::Rows,
        };
        Self { out: Box::new(BufWriter::new(stdout)), form, quiet: output.quiet }
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
            _ => None,
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The daemon's body as it is or by the template, or what `people` makes of it.
    pub(super) fn show<T: DeserializeOwned>(
        &mut self,
        answer: &Answer,
        people: impl FnOnce(&mut Self, T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match &self.form {
            Form::Json => self.body(&answer.body),
            Form::Template(..) => self.data(&answer.read()?),
            Form::Terminal(_) | Form::Rows => people(self, answer.read()?),
        }
    }

    /// Records as JSON or by the template: the items of a list, else the one that this is.
    pub(super) fn data(&mut self, value: &Value) -> Result<(), Error> {
        let Form::Template(template, is_terminal) = &self.form else {
            return self.body(value.to_string().as_bytes());
        };
        let list = value.as_array().or_else(|| value.get("data")?.as_array());
        for record in list.map_or(std::slice::from_ref(value), Vec::as_slice) {
            let line = template.line(record)?;
            let line = if *is_terminal { harmless(&line) } else { line };
            writeln!(self.out, "{line}").map_err(Error::of_output)?;
        }
        Ok(())
    }

    /// What happened, as a sentence.
    pub(super) fn say(&mut self, text: impl Display) -> Result<(), Error> {
        if self.quiet { Ok(()) } else { self.line(text) }
    }

    /// What only somebody who reads along needs to be told.
    pub(super) fn note(&mut self, text: impl Display) -> Result<(), Error> {
        if self.terminal().is_some() { self.say(text) } else { Ok(()) }
    }

    /// A bare value; on a terminal it does no harm.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), Error> {
        let text = text.to_string();
        let text = if self.terminal().is_some() { harmless(&text) } else { text };
        writeln!(self.out, "{text}").map_err(Error::of_output)
    }

    /// What is not as was asked for, though it was done: to stderr.
    pub(super) fn warn(&self, text: impl Display) {
        if !self.quiet {
            // There may be nobody to tell.
            writeln!(io::stderr(), "murald: {}", harmless(&text.to_string())).ok();
        }
    }

    /// One line of JSON, at once: a reader may wait for it.
    pub(super) fn body(&mut self, json: &[u8]) -> Result<(), Error> {
        let written =
            self.out.write_all(&harmless_json(json)).and_then(|()| self.out.write_all(b"\n"));
        written.and_then(|()| self.out.flush()).map_err(Error::of_output)
    }

    pub(super) fn table(&mut self, table: &Table) -> Result<(), Error> {
        let text = match self.form {
            Form::Terminal(terminal) => table.render(terminal),
            _ => table.rows(),
        };
        self.out.write_all(text.as_bytes()).map_err(Error::of_output)
    }

    /// Bytes as they are: files, style sheets.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(Error::of_output)
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(Error::of_output)
    }
}
