//! Standard output: people on a terminal get tables and sentences, everybody else JSON.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use serde::de::DeserializeOwned;

use super::Failure;
use super::connection::Answer;
use super::table::Table;
use super::text::harmless;

/// Where a command's result goes.
pub(super) struct Screen {
    out: Box<dyn Write>,
    /// `None`: JSON.
    terminal: Option<Terminal>,
}

/// What is known of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    pub(super) columns: usize,
    pub(super) color: bool,
    /// 24-bit colours, not 256 alone.
    pub(super) true_color: bool,
}

impl Screen {
    /// `json` asks for it on a terminal, too.
    pub(super) fn stdout(json: bool) -> Self {
        let stdout = io::stdout();
        let terminal = (!json && stdout.is_terminal()).then(|| Terminal::of(&stdout));
        Self { out: Box::new(BufWriter::new(stdout)), terminal }
    }

    pub(super) fn is_json(&self) -> bool {
        self.terminal.is_none()
    }

    pub(super) fn terminal(&self) -> Option<Terminal> {
        self.terminal
    }

    /// The daemon's body as it is, or what `people` makes of it.
    pub(super) fn show<T: DeserializeOwned>(
        &mut self,
        answer: &Answer,
        people: impl FnOnce(&mut Self, T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.is_json() { self.body(&answer.body) } else { people(self, answer.read()?) }
    }

    /// One line, for people.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        writeln!(self.out, "{}", harmless(&text.to_string())).map_err(Failure::of_output)
    }

    /// One line of JSON, at once: a reader may wait for it.
    pub(super) fn body(&mut self, json: &[u8]) -> Result<(), Failure> {
        let written = self.out.write_all(json).and_then(|()| self.out.write_all(b"\n"));
        written.and_then(|()| self.out.flush()).map_err(Failure::of_output)
    }

    pub(super) fn table(&mut self, table: &Table) -> Result<(), Failure> {
        let Some(terminal) = self.terminal else { return Ok(()) };
        self.out.write_all(table.render(terminal).as_bytes()).map_err(Failure::of_output)
    }

    /// Bytes as they are: files, style sheets.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::of_output)
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::of_output)
    }
}

impl Terminal {
    fn of(stdout: &io::Stdout) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let size = rustix::termios::tcgetwinsize(stdout).ok().map(|size| size.ws_col.into());
        let told = || set("COLUMNS")?.to_str()?.parse().ok();
        let color = set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb");
        let depth = set("COLORTERM");
        Self {
            columns: size.filter(|&columns| columns > 0).or_else(told).unwrap_or(80),
            color,
            true_color: color
                && depth.is_some_and(|depth| depth == "truecolor" || depth == "24bit"),
        }
    }
}
