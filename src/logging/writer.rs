//! Formats log lines as JSON and as text, and writes them to the file and to stderr.
//!
//! Runs on the thread that logs. Lines of successful GET requests go to the file only.

use std::io::{self, Write};
use std::sync::Arc;

use flexi_logger::DeferredNow;
use flexi_logger::writers::LogWriter;
use log::kv::{Error, Key, Value, VisitSource};
use log::{LevelFilter, Record};
use serde_json::{Map, Value as Json};

use super::file::RotatedFile;
use crate::wire::Timestamp;

pub(super) struct Writer {
    pub(super) file: Arc<RotatedFile>,
    /// The minimum level for stderr.
    pub(super) level: LevelFilter,
    /// Whether stderr is a terminal, which gets text.
    pub(super) is_terminal: bool,
}

impl LogWriter for Writer {
    fn write(&self, now: &mut DeferredNow, record: &Record<'_>) -> io::Result<()> {
        let mut line = Vec::with_capacity(320);
        json_line(&mut line, now, record)?;
        line.push(b'\n');
        // If the disk is full, lines are lost.
        self.file.write(&line).ok();
        let is_for_file = is_successful_get(record) && self.file.is_open();
        if record.level() > self.level || is_for_file {
            return Ok(());
        }
        if self.is_terminal {
            line.clear();
            plain_line(&mut line, now, record)?;
            line.push(b'\n');
        }
        // A closed stderr must not stop the daemon.
        io::stderr().write_all(&line).ok();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a record is the line of such a request: these are many.
fn is_successful_get(record: &Record<'_>) -> bool {
    let field = |name: &str| record.key_values().get(Key::from_str(name));
    let is_get = field("method").is_some_and(|method| method.to_string() == "GET");
    is_get && field("status").and_then(|status| status.to_u64()) < Some(400)
}

/// Formats a JSON line: `ts`, `level`, `target`, `msg`, then the record's own fields.
pub(super) fn json_line(
    out: &mut dyn Write,
    _now: &mut DeferredNow,
    record: &Record<'_>,
) -> io::Result<()> {
    let mut line = Map::new();
    line.insert("ts".to_owned(), Timestamp::now().to_string().into());
    line.insert(
        "level".to_owned(),
        record.level().as_str().to_ascii_lowercase().into(),
    );
    line.insert("target".to_owned(), record.target().into());
    line.insert("msg".to_owned(), record.args().to_string().into());
    record
        .key_values()
        .visit(&mut Fields(&mut line))
        .map_err(io::Error::other)?;
    serde_json::to_writer(out, &line).map_err(io::Error::from)
}

/// Formats a text line: level and message, then the record's own fields.
pub(super) fn plain_line(
    out: &mut dyn Write,
    _now: &mut DeferredNow,
    record: &Record<'_>,
) -> io::Result<()> {
    let mut fields = Map::new();
    record
        .key_values()
        .visit(&mut Fields(&mut fields))
        .map_err(io::Error::other)?;
    // File names may contain control characters, which must not reach the terminal.
    let said = record.args().to_string();
    let said = said.replace(
        |c: char| c.is_control() && !matches!(c, '\n' | '\t'),
        "\u{fffd}",
    );
    write!(out, "{:5} {said}", record.level())?;
    for (name, value) in fields {
        write!(out, " {name}={value}")?;
    }
    Ok(())
}

struct Fields<'a>(&'a mut Map<String, Json>);

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        let number = value
            .to_u64()
            .map(Json::from)
            .or_else(|| value.to_f64().map(Json::from));
        let json = number.unwrap_or_else(|| value.to_string().into());
        self.0.insert(key.as_str().to_owned(), json);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successful_gets_are_recognised() {
        let check = |method: &str, status: u16, expected: bool| {
            let fields = [
                ("method", Value::from(method)),
                ("status", Value::from(status)),
            ];
            let mut record = Record::builder();
            let record = record.key_values(&fields).build();
            assert_eq!(is_successful_get(&record), expected, "{method} {status}");
        };
        check("GET", 200, true);
        check("GET", 304, true);
        check("GET", 404, false);
        check("POST", 200, false);
        check("HEAD", 200, false);
        assert!(!is_successful_get(&Record::builder().build()));
    }

    #[test]
    fn log_lines_as_text_and_json() {
        let fields = [
            ("request_id", Value::from("r-1")),
            ("status", Value::from(404_u16)),
        ];
        let check = |format: flexi_logger::FormatFunction, expected: &dyn Fn(&str) -> bool| {
            let mut out = Vec::new();
            let record = Record::builder()
                .level(log::Level::Warn)
                .target("http")
                .args(format_args!("say \"no\"\n"))
                .key_values(&fields)
                .build();
            format(&mut out, &mut DeferredNow::new(), &record).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(expected(&text), "{text}");
        };
        check(json_line, &|text| {
            text.contains(
                r#","level":"warn","target":"http","msg":"say \"no\"\n","request_id":"r-1","status":404}"#,
            ) && text.starts_with(r#"{"ts":""#)
        });
        let mut out = Vec::new();
        let record = Record::builder()
            .args(format_args!("a\x1b]0;b\x07.png"))
            .build();
        plain_line(&mut out, &mut DeferredNow::new(), &record).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "INFO  a\u{fffd}]0;b\u{fffd}.png"
        );
        check(plain_line, &|text| {
            text == "WARN  say \"no\"\n request_id=\"r-1\" status=404"
        });
    }
}
