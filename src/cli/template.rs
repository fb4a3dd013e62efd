//! Parses `--format`, and prints the line of each record from the record's fields.
//!
//! `{name}`, `{a.b}` and `{a[0]}` stand for fields, `{{` and `}}` for braces, and `\t`, `\n` and `\\`
//! for the same as in C. Missing and null fields are empty; lists are joined with commas.

use serde_json::Value;

use super::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
    /// Set by [`Self::check`]: all fields are known, so a field that a record lacks is empty.
    is_checked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A field of the record, and the JSON pointer to the value in it.
    Field {
        name: String,
        pointer: String,
    },
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '{' if rest.next_if_eq(&'{').is_some() => plain.push('{'),
                '}' => {
                    rest.next_if_eq(&'}');
                    plain.push('}');
                }
                '{' => {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::read(&mut rest)?);
                }
                '\\' => match rest.next() {
                    Some('t') => plain.push('\t'),
                    Some('n') => plain.push('\n'),
                    Some('\\') | None => plain.push('\\'),
                    Some(other) => plain.extend(['\\', other]),
                },
                c => plain.push(c),
            }
        }
        parts.push(Part::Text(plain));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(Self {
            parts,
            is_checked: false,
        })
    }

    /// Refuses fields that are not among the `names` that records may have.
    pub(super) fn check(&mut self, names: &[String]) -> Result<(), Error> {
        for part in &self.parts {
            match part {
                Part::Field { name, .. } if !names.contains(name) => {
                    return Err(unknown(name, names.iter().map(String::as_str)));
                }
                Part::Field { .. } | Part::Text(_) => {}
            }
        }
        self.is_checked = true;
        Ok(())
    }

    /// The line for a record. If the fields were not checked before, the record must have them.
    pub(super) fn line(&self, record: &Value) -> Result<String, Error> {
        let mut line = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => line.push_str(text),
                Part::Field { name, pointer } => {
                    if !self.is_checked && record.get(name).is_none() {
                        let fields = record.as_object().into_iter().flat_map(|map| map.keys());
                        return Err(unknown(name, fields.map(String::as_str)));
                    }
                    line.push_str(&record.pointer(pointer).map(written).unwrap_or_default());
                }
            }
        }
        Ok(line)
    }
}

impl Part {
    /// Reads a field up to its closing brace.
    fn read(rest: &mut impl Iterator<Item = char>) -> Result<Self, Error> {
        let mut is_whole = false;
        let is_field = |&c: &char| {
            is_whole = c == '}';
            !is_whole
        };
        let field: String = rest.take_while(is_field).collect();
        let problem = match Self::field(&field) {
            _ if !is_whole => format!("--format: {{{field} has no closing brace"),
            Some(part) => return Ok(part),
            None => format!("--format: {{{field}}} is not a field"),
        };
        Err(Error::usage(problem).hint("fields are written {name}, {a.b} or {a[0]}, a brace {{"))
    }

    fn field(text: &str) -> Option<Self> {
        let mut pointer = String::new();
        for piece in text.split('.') {
            let (name, places) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
            let name = Some(name).filter(|name| !name.is_empty())?;
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            for place in places.split_inclusive(']') {
                let place: usize = place.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
                pointer.push_str(&format!("/{place}"));
            }
        }
        let name = text.split(['.', '[']).next()?.to_owned();
        Some(Self::Field { name, pointer })
    }
}

fn unknown<'a>(name: &str, fields: impl Iterator<Item = &'a str>) -> Error {
    let all: Vec<&str> = fields.collect();
    Error::usage(format!("--format: unknown field {name:?}"))
        .hint(format!("fields are {}", all.join(", ")))
}

/// A value as text: lists with commas, null as nothing.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(written).collect::<Vec<_>>().join(","),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_become_lines() {
        let record = json!({
            "id": 7, "name": "a b", "tags": ["x", "y"], "none": null,
            "web": {"size": [640, {"k": "deep"}]}
        });
        let check = |template: &str, expected: Result<&str, &str>| {
            let line = Template::parse(template).and_then(|template| template.line(&record));
            let found = line.map_err(|error| error.to_string().lines().next().unwrap().to_owned());
            let expected = expected
                .map(str::to_owned)
                .map_err(|text| format!("murald: {text}"));
            assert_eq!(found, expected, "{template}");
        };
        check("", Ok(""));
        check(r"{id}\t{name}", Ok("7\ta b"));
        check(r"{{{id}}} \\ \x", Ok(r"{7} \ \x"));
        check("{tags} {tags[1]}{tags[9]}", Ok("x,y y"));
        check("{none}|{web.missing.deeper}", Ok("|"));
        check("{web.size[1].k}", Ok("deep"));
        check("{frob}", Err("--format: unknown field \"frob\""));
        for bad in ["{}", "{a..b}", "{a[x]}", "{[0]}", "{a[0}", "{id", "{"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn known_field_that_a_record_lacks_is_empty() {
        let names = ["id", "fit"].map(str::to_owned);
        let mut template = Template::parse("{id}:{fit.x}").unwrap();
        template.check(&names).unwrap();
        assert_eq!(template.line(&json!({"id": 7})).unwrap(), "7:");
        let told = Template::parse("{id}{frob}")
            .unwrap()
            .check(&names)
            .unwrap_err()
            .to_string();
        assert_eq!(
            told,
            "murald: --format: unknown field \"frob\"\nhint: fields are id, fit"
        );
    }
}
