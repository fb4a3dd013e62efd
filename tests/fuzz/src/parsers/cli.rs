//! Parsers with plain types, for the targets of `tests/fuzz`. Part of its module with `cfg(parsers)`.

use std::ffi::OsString;
use std::io::{self, Read};

use serde_json::Value;

use super::arguments::{self, Parsed};
use super::lookup::Verbs;
use super::sse::Events;
use super::template::Template;
use super::verbs::GROUPS;

/// The items of an event stream that is read in pieces of at most `piece` bytes.
pub fn events(stream: &[u8], piece: usize) -> Vec<String> {
    let mut events = Events::new(Pieces {
        rest: stream,
        piece: piece.max(1),
    });
    let mut items = Vec::new();
    while let Ok(Some(item)) = events.next() {
        items.push(format!("{item:?}"));
    }
    items
}

struct Pieces<'a> {
    rest: &'a [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.piece);
        self.rest.read(&mut buffer[..most])
    }
}

/// The verb of a command line and the values given to it.
pub fn arguments(words: Vec<OsString>) -> Result<(String, Vec<Value>), String> {
    match arguments::parse(Verbs(GROUPS), words).map_err(|error| error.to_string())? {
        Parsed::Help(text) => Ok((text, Vec::new())),
        Parsed::Version => Ok(("--version".to_owned(), Vec::new())),
        Parsed::Call(verb, call) => Ok((
            verb.name(),
            call.values.into_iter().map(|(_, value)| value).collect(),
        )),
    }
}

/// The line that `--format` prints for a record.
pub fn template(text: &str, record: &Value) -> Result<String, String> {
    let line = Template::parse(text).and_then(|template| template.line(record));
    line.map_err(|error| error.to_string())
}
