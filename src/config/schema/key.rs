//! One key of a section: its type, default, rule and what an invalid value acts as.

use serde_json::Value as Json;

use crate::paths::Dirs;

/// A setting as the schema knows it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: ValueType,
    pub default: Value,
    pub rule: Rule,
    pub on_invalid: OnInvalid,
    /// Never shown in messages.
    pub secret: bool,
    /// For people: in the generated file and the manual.
    pub meaning: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Bool,
    Integer,
    Number,
    Text,
    /// Text in which `~`, `$VAR` and `${VAR}` are expanded on use.
    Path,
    /// A list of strings.
    List,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(&'static str),
    List(&'static [&'static str]),
    /// A file of the runtime directory. Graphical clients read it from the configuration file and expand
    /// only `~`, so the default is the expanded path.
    Runtime(&'static str),
    /// The key is absent.
    Unset,
}

/// The rule for values of the right type; for each item of a list.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    Any,
    /// Both ends are allowed.
    Range(f64, f64),
    /// A number above 0.
    Positive,
    Words(&'static [&'static str]),
    Form {
        what: &'static str,
        fits: fn(&str) -> bool,
    },
}

/// How an invalid value of the file is treated.
#[derive(Clone, Copy, Debug)]
pub enum OnInvalid {
    /// The default is used; a request with the value is refused.
    Reject,
    /// The value is stored and shown, and acts as this one.
    ActsAs(Value),
}

impl Key {
    const fn new(kind: ValueType, default: Value) -> Self {
        Self {
            name: "",
            kind,
            default,
            rule: Rule::Any,
            on_invalid: OnInvalid::Reject,
            secret: false,
            meaning: "",
        }
    }

    pub(super) const fn flag(default: bool) -> Self {
        Self::new(ValueType::Bool, Value::Bool(default))
    }

    pub(super) const fn integer(default: i64) -> Self {
        Self::new(ValueType::Integer, Value::Integer(default))
    }

    pub(super) const fn number(default: f64) -> Self {
        Self::new(ValueType::Number, Value::Number(default))
    }

    pub(super) const fn optional_number() -> Self {
        Self::new(ValueType::Number, Value::Unset)
    }

    pub(super) const fn text(default: &'static str) -> Self {
        Self::new(ValueType::Text, Value::Text(default))
    }

    pub(super) const fn path(default: &'static str) -> Self {
        Self::new(ValueType::Path, Value::Text(default))
    }

    pub(super) const fn runtime_path(name: &'static str) -> Self {
        Self::new(ValueType::Path, Value::Runtime(name))
    }

    pub(in crate::config) fn is_path(&self) -> bool {
        matches!(self.kind, ValueType::Path)
    }

    pub(super) const fn word(default: &'static str, words: &'static [&'static str]) -> Self {
        Self::text(default).ruled(Rule::Words(words))
    }

    pub(super) const fn list(default: &'static [&'static str]) -> Self {
        Self::new(ValueType::List, Value::List(default))
    }

    pub(super) const fn within(self, min: i64, max: i64) -> Self {
        self.ruled(Rule::Range(min as f64, max as f64))
    }

    /// From `min` up to the maximum of 32 bits.
    pub(super) const fn from(self, min: u32) -> Self {
        self.within(min as i64, u32::MAX as i64)
    }

    pub(super) const fn ruled(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    pub(super) const fn form(self, what: &'static str, fits: fn(&str) -> bool) -> Self {
        self.ruled(Rule::Form { what, fits })
    }

    pub(super) const fn otherwise(self, value: Value) -> Self {
        Self {
            on_invalid: OnInvalid::ActsAs(value),
            ..self
        }
    }

    pub(super) const fn secret(self) -> Self {
        Self {
            secret: true,
            ..self
        }
    }

    /// The allowed type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            ValueType::Bool => "true or false",
            ValueType::Integer => "an integer",
            ValueType::Number => "a number",
            ValueType::Text | ValueType::Path => "a string",
            ValueType::List => "a list of strings",
        }
    }

    /// The values that the rule allows, for messages; for each item of a list.
    pub fn allowed(&self) -> Option<String> {
        match self.rule {
            Rule::Any => None,
            // The limits of 32 bits are not worth a message.
            Rule::Range(min, max) if max >= u32::MAX.into() => Some(format!("{min} or more")),
            Rule::Range(min, max) => Some(format!("{min} to {max}")),
            Rule::Positive => Some("above 0".to_owned()),
            Rule::Words(words) => Some(words.iter().map(shown).collect::<Vec<_>>().join(", ")),
            Rule::Form { what, .. } => Some(what.to_owned()),
        }
    }

    /// The allowed words, if the rule is a list of words.
    pub fn words(&self) -> Vec<&'static str> {
        match (self.rule, self.kind) {
            (Rule::Words(words), _) => words.to_vec(),
            (_, ValueType::Bool) => vec!["true", "false"],
            _ => Vec::new(),
        }
    }

    /// Whether a value has the key's type. JSON does not tell 3 from 3.0.
    pub fn has_type_of(&self, value: &Json) -> bool {
        match self.kind {
            ValueType::Bool => value.is_boolean(),
            ValueType::Integer => as_integer(value).is_some(),
            ValueType::Number => value.is_number(),
            ValueType::Text | ValueType::Path => value.is_string(),
            ValueType::List => value
                .as_array()
                .is_some_and(|items| items.iter().all(Json::is_string)),
        }
    }

    /// Fails if a value of the right type is not allowed, with what follows the key: `must be 1 or
    /// more, not 0`.
    pub fn validate(&self, value: &Json) -> Result<(), String> {
        let result = match value {
            Json::Number(number) => self.validate_number(number),
            Json::String(text) => self.validate_text(text),
            Json::Array(items) => items
                .iter()
                .filter_map(Json::as_str)
                .try_for_each(|text| self.validate_text(text)),
            _ => Ok(()),
        };
        result.map_err(|why| {
            if self.secret {
                "has a value that is not allowed".to_owned()
            } else {
                why
            }
        })
    }

    /// The value in the form that is stored: 3.0 as 3.
    pub fn normal(&self, value: Json) -> Json {
        match self.kind {
            ValueType::Integer | ValueType::Number => as_integer(&value).map_or(value, Json::from),
            ValueType::Bool | ValueType::Text | ValueType::Path | ValueType::List => value,
        }
    }

    fn validate_number(&self, number: &serde_json::Number) -> Result<(), String> {
        let Some(value) = number.as_f64() else {
            return Ok(());
        };
        let fits = match self.rule {
            Rule::Range(min, max) => (min..=max).contains(&value),
            Rule::Positive => value > 0.0,
            Rule::Any | Rule::Words(_) | Rule::Form { .. } => true,
        };
        let allowed = || match self.rule {
            // Name the limit that the value exceeds, even if messages usually omit it.
            Rule::Range(min, max) if value > max || max < u32::MAX.into() => {
                format!("between {min} and {max}")
            }
            _ => self.allowed().unwrap_or_default(),
        };
        if fits {
            Ok(())
        } else {
            Err(format!("must be {}, not {number}", allowed()))
        }
    }

    fn validate_text(&self, text: &str) -> Result<(), String> {
        let quoted = || beginning(&format!("{text:?}"));
        if text.contains('\0') {
            return Err("must not contain a NUL character".to_owned());
        }
        let optional = self.default == Value::Text("");
        match self.rule {
            Rule::Any if self.kind == ValueType::Path && text.is_empty() && !optional => {
                Err("must not be empty".to_owned())
            }
            Rule::Words(words) if !words.contains(&text) => {
                let words = self.allowed().unwrap_or_default();
                Err(format!("must be one of {words}, not {}", quoted()))
            }
            Rule::Form { what, fits } if !fits(text) => {
                Err(format!("must be {what}, not {}", quoted()))
            }
            _ => Ok(()),
        }
    }
}

impl Value {
    pub fn to_json(self) -> Option<Json> {
        match self {
            Self::Bool(value) => Some(value.into()),
            Self::Integer(value) => Some(value.into()),
            Self::Number(value) => {
                let value = Json::from(value);
                Some(as_integer(&value).map_or(value, Json::from))
            }
            Self::Text(value) => Some(value.into()),
            Self::List(items) => Some(items.to_vec().into()),
            Self::Runtime(name) => Some(runtime_path(name).into()),
            Self::Unset => None,
        }
    }
}

/// The path of a file in the session's runtime directory. Without a session, the variable stays in the
/// path, because the directory may differ at the next start.
fn runtime_path(name: &str) -> String {
    let session = Dirs::from_process().ok().and_then(|dirs| dirs.session());
    let path = session.and_then(|session| session.join(name).into_os_string().into_string().ok());
    path.filter(|path| !path.contains('$'))
        .unwrap_or_else(|| format!("$XDG_RUNTIME_DIR/{name}"))
}

/// A text for a message; long texts are truncated.
pub(in crate::config) fn beginning(text: &str) -> String {
    const LONG: usize = 80;
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A value as messages show it; the empty one is in quotes.
fn shown(word: &&'static str) -> &'static str {
    if word.is_empty() { "\"\"" } else { word }
}

/// An integer that TOML can hold, however JSON wrote it.
fn as_integer(value: &Json) -> Option<i64> {
    /// Not every integer above this is a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_i64().or_else(|| {
        value
            .as_f64()
            .filter(|v| v.fract() == 0.0 && v.abs() <= EXACT)
            .map(|v| v as i64)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::forms::{COLOR, is_color};
    use super::*;

    #[test]
    fn types_and_rules_are_told_apart() {
        #[track_caller]
        fn check(key: Key, value: Json, typed: bool, problem: Option<&str>) {
            assert_eq!(key.has_type_of(&value), typed);
            assert_eq!(key.validate(&value).err().as_deref(), problem);
        }
        let step = Key::integer(90).within(1, 255);
        check(step, json!(255), true, None);
        check(step, json!(3.0), true, None);
        check(step, json!(3.5), false, None);
        assert_eq!(step.normal(json!(3.0)), json!(3));
        check(
            step,
            json!(0),
            true,
            Some("must be between 1 and 255, not 0"),
        );
        let great = Key::integer(1).from(1);
        check(great, json!(0), true, Some("must be 1 or more, not 0"));
        let beyond = "must be between 1 and 4294967295, not 4294967296";
        check(great, json!(1_u64 << 32), true, Some(beyond));
        check(
            step,
            json!(u64::MAX),
            false,
            Some("must be between 1 and 255, not 18446744073709551615"),
        );
        check(
            Key::number(5.0).ruled(Rule::Positive),
            json!(0),
            true,
            Some("must be above 0, not 0"),
        );
        // The limit of 32 bits is not shown to people.
        let open = Key::integer(2).from(1);
        check(open, json!(0), true, Some("must be 1 or more, not 0"));
        let word = Key::word("", &["", "rgb"]);
        check(word, json!(""), true, None);
        check(
            word,
            json!("x"),
            true,
            Some("must be one of \"\", rgb, not \"x\""),
        );
        let long = format!("must be one of \"\", rgb, not \"{}…", "x".repeat(79));
        check(word, json!("x".repeat(9999)), true, Some(&long));
        check(Key::path("/x"), json!(""), true, Some("must not be empty"));
        check(Key::path(""), json!(""), true, None);
        check(
            Key::text(""),
            json!("a\0b"),
            true,
            Some("must not contain a NUL character"),
        );
        check(
            Key::text("").secret(),
            json!("a\0b"),
            true,
            Some("has a value that is not allowed"),
        );
        check(Key::list(&[]), json!(["a", 1]), false, None);
        let color = Key::text("000000").form(COLOR, is_color);
        check(
            color,
            json!("12345G"),
            true,
            Some(&format!("must be {COLOR}, not \"12345G\"")),
        );
    }
}
