//! How a line of the log looks.

use std::io::{self, Write};

use flexi_logger::DeferredNow;
use log::Record;
use log::kv::{Error, Key, Value, VisitSource};
use serde_json::{Map, Value as Json};

use crate::wire::Timestamp;

/// For programs: `ts`, `level`, `target`, `msg`, then the record's own fields.
pub(super) fn json(
    out: &mut dyn Write,
    _now: &mut DeferredNow,
    record: &Record<'_>,
) -> io::Result<()> {
    let mut line = Map::new();
    line.insert("ts".to_owned(), Timestamp::now().to_string().into());
    line.insert("level".to_owned(), record.level().as_str().to_ascii_lowercase().into());
    line.insert("target".to_owned(), record.target().into());
    line.insert("msg".to_owned(), record.args().to_string().into());
    record.key_values().visit(&mut Fields(&mut line)).map_err(io::Error::other)?;
    serde_json::to_writer(out, &line).map_err(io::Error::from)
}

/// For people: level and message, the fields after it.
pub(super) fn plain(
    out: &mut dyn Write,
    _now: &mut DeferredNow,
    record: &Record<'_>,
) -> io::Result<()> {
    let mut fields = Map::new();
    record.key_values().visit(&mut Fields(&mut fields)).map_err(io::Error::other)?;
    // Names of files may hold anything: a terminal obeys none of it.
    let said = record.args().to_string();
    let said = said.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}");
    write!(out, "{:5} {said}", record.level())?;
    for (name, value) in fields {
        write!(out, " {name}={value}")?;
    }
    Ok(())
}

struct Fields<'a>(&'a mut Map<String, Json>);

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        let number = value.to_u64().map(Json::from).or_else(|| value.to_f64().map(Json::from));
        let json = number.unwrap_or_else(|| value.to_string().into());
        self.0.insert(key.as_str().to_owned(), json);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_as_text_and_json() {
        let fields = [("request_id", Value::from("r-1")), ("status", Value::from(404_u16))];
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
        check(json, &|text| {
            text.contains(
                r#","level":"warn","target":"http","msg":"say \"no\"\n","request_id":"r-1","status":404}"#,
            ) && text.starts_with(r#"{"ts":""#)
        });
        let mut out = Vec::new();
        let record = Record::builder().args(format_args!("a\x1b]0;b\x07.png")).build();
        plain(&mut out, &mut DeferredNow::new(), &record).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "INFO  a\u{fffd}]0;b\u{fffd}.png");
        check(plain, &|text| text == "WARN  say \"no\"\n request_id=\"r-1\" status=404");
    }
}
