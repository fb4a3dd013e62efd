//! Verbs that are one request: how it is built from the verb's values, and how its answer is printed.
//!
//! A path is written as in the API's manual, with `{NAME}` for the value of an argument or flag, and
//! `{NAME:word}` for one with a default.

use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Error;
use super::call::{Call, shown};
use super::connection::{Answer, Method, RequestPath};
use super::stdout::Stdout;

/// A request as the table declares it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    method: Method,
    /// Path and query; a parameter whose value is not given is left out.
    place: &'static str,
    body: Option<BodyFields>,
    told: SuccessText,
}

/// The fields of a body: their names and sources.
type BodyFields = &'static [(&'static str, From)];

#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    /// The value as it was read; the field is left out where none was given.
    Given(&'static str),
    /// Everything that was given under this name, as a list.
    All(&'static str),
    /// The same, left out where nothing was given.
    Any(&'static str),
    /// The id of an image; a path instead goes into `path`.
    Picture(&'static str),
    /// The filters of the call as an object; omitted if there are none.
    Filter(fn(&Call) -> Map<String, Value>),
    /// A folder's id; null for the root, and where none was given.
    Folder(&'static str),
    /// True; omitted if it was not given.
    Switch(&'static str),
}

/// A body of the API, as people are shown it.
pub(super) trait Record: DeserializeOwned {
    fn show(self, call: &Call, stdout: &mut Stdout) -> Result<(), Error>;
}

/// How a success is printed.
#[derive(Clone, Copy, Debug)]
enum SuccessText {
    Record(fn(&Call, &mut Stdout, &Answer) -> Result<(), Error>),
    /// Written like a place; it may name fields of the answer, too.
    Sentence(&'static str),
}

impl Request {
    pub(super) const fn get(place: &'static str) -> Self {
        Self::new(Method::Get, place, None)
    }

    pub(super) const fn post(place: &'static str, body: BodyFields) -> Self {
        Self::new(Method::Post, place, Some(body))
    }

    pub(super) const fn patch(place: &'static str, body: BodyFields) -> Self {
        Self::new(Method::Patch, place, Some(body))
    }

    pub(super) const fn delete(place: &'static str) -> Self {
        Self::new(Method::Delete, place, None)
    }

    const fn new(method: Method, place: &'static str, body: Option<BodyFields>) -> Self {
        Self { method, place, body, told: SuccessText::Sentence("done") }
    }

    /// The answer is a record that is shown.
    pub(super) const fn shows<T: Record>(mut self) -> Self {
        self.told = SuccessText::Record(show::<T>);
        self
    }

    /// A sentence is all that a person would want to know.
    pub(super) const fn says(mut self, sentence: &'static str) -> Self {
        self.told = SuccessText::Sentence(sentence);
        self
    }

    /// Asks, and tells of the answer.
    pub(super) fn run(&self, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let body = self.body.map(|fields| body(fields, call));
        let answer = call.connect()?.ask(self.method, &place(self.place, call), body.as_ref())?;
        match self.told {
            SuccessText::Record(show) => show(call, stdout, &answer),
            SuccessText::Sentence(text) => {
                stdout.show(&answer, |stdout, told: Map<String, Value>| {
                    let named = |name: &str| call.query(name).or_else(|| told.get(name).map(shown));
                    stdout.say(filled(text, named).unwrap_or_else(|| "done".to_owned()))
                })
            }
        }
    }
}

fn show<T: Record>(call: &Call, stdout: &mut Stdout, answer: &Answer) -> Result<(), Error> {
    stdout.show(answer, |stdout, record: T| record.show(call, stdout))
}

/// A template filled in from a call.
pub(super) fn place(template: &str, call: &Call) -> RequestPath {
    let (path, query) = template.split_once('?').unwrap_or((template, ""));
    let given = |name: &str| call.query(name);
    let segment = |text| filled(text, given).expect("the table requires what a path names");
    let segments: Vec<String> = path.split('/').skip(1).map(segment).collect();
    let shown: Vec<&dyn Display> = segments.iter().map(|segment| segment as &dyn Display).collect();
    let parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    parameters.fold(RequestPath::new(&shown), |place, (name, value)| {
        place.query(name, filled(value, given))
    })
}

/// None if a value without a default is not given.
fn filled(template: &str, given: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (slot, after) = after.split_once('}').expect("it is closed");
        let (name, word) = match slot.split_once(':') {
            Some((name, word)) => (name, Some(word.to_owned())),
            None => (slot, None),
        };
        text.push_str(before);
        text.push_str(&given(name).or(word)?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

fn body(fields: BodyFields, call: &Call) -> Value {
    let all = |name| call.all(name).into_iter().cloned().collect::<Vec<Value>>();
    let field = |from: From| match from {
        From::Given(name) => call.value(name).cloned(),
        From::All(name) => Some(all(name).into()),
        From::Any(name) => Some(all(name)).filter(|list| !list.is_empty()).map(Value::from),
        From::Folder(name) => Some(call.value(name).filter(|id| id.is_number()).cloned().into()),
        From::Filter(of) => Some(of(call)).filter(|filter| !filter.is_empty()).map(Value::from),
        From::Picture(name) => call.value(name).cloned(),
        From::Switch(name) => call.has(name).then_some(true.into()),
    };
    let fields = fields.iter().filter_map(|&(name, from)| {
        let value = field(from)?;
        let name =
            if matches!(from, From::Picture(_)) && value.is_string() { "path" } else { name };
        Some((name.to_owned(), value))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::call::Globals;
    use super::*;

    fn call() -> Call {
        let values = vec![("ID", json!("a/b")), ("--tags", json!(["x", "y"])), ("W", json!("one"))];
        Call {
            globals: Globals::default(),
            values: [values, vec![("W", json!("two"))]].concat(),
            settings: Vec::new,
            elsewhere: |_| None,
            connection: Default::default(),
        }
    }

    #[test]
    fn places_are_filled() {
        let check = |template: &str, expected: RequestPath| {
            assert_eq!(place(template, &call()), expected, "{template}");
        };
        check("/images", RequestPath::new(&[&"images"]));
        check("/images/{ID}/raw", RequestPath::new(&[&"images", &"a/b", &"raw"]));
        check(
            "/playlists/{NONE:active}/next",
            RequestPath::new(&[&"playlists", &"active", &"next"]),
        );
        let listed =
            RequestPath::new(&[&"images"]).query("tags", Some("x,y")).query("in", Some("all"));
        check("/images?tags={--tags}&page={--page}&in={--parent:all}", listed);
        check(
            "/images?search={W}",
            RequestPath::new(&[&"images"]).query("search", Some("one two")),
        );
    }

    #[test]
    fn sentences_name_what_was_given_and_what_was_answered() {
        let said = |text| filled(text, |name| call().query(name).or(Some(format!("<{name}>"))));
        assert_eq!(said("{name} is in {ID}").unwrap(), "<name> is in a/b");
        assert_eq!(filled("{name}", |_| None), None);
    }

    #[test]
    fn bodies_hold_what_was_given() {
        let fields = &[
            ("id", From::Given("ID")),
            ("name", From::Given("NONE")),
            ("words", From::All("W")),
            ("none", From::All("NONE")),
            ("monitors", From::Any("NONE")),
            ("folder_id", From::Folder("ID")),
            ("extend", From::Switch("--tags")),
        ];
        let expected = json!({
            "id": "a/b", "words": ["one", "two"], "none": [], "folder_id": null, "extend": true
        });
        assert_eq!(body(fields, &call()), expected);
    }
}
