//! Builds the request of a verb from the verb's values, for verbs that are one request.
//!
//! A place is written as in the API's manual, `GET /images/{IMAGE}`. `{NAME}` is the value of an
//! argument or flag, `{NAME:word}` has the default `word`, and `{NAME=word}` is `word` if `NAME` was
//! given. A segment or a parameter whose value was not given is omitted.

use std::fmt::Display;
use std::path::Path;

use serde_json::{Map, Value};

use super::Error;
use super::call::Call;
use super::columns::filled;
use super::connection::{Answer, RequestPath, travelling};

/// A request as the table declares it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Method, path and query.
    place: &'static str,
    body: Body,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    None,
    /// Fields of an object. A `PUT` without any given field only reads the record.
    Fields(BodyFields),
    /// The value of a required argument.
    Given(&'static str),
    Changed(Change),
}

/// The fields of a body: their names and sources.
pub(super) type BodyFields = &'static [(&'static str, From)];
/// Makes a body from the present record.
pub(super) type Change = fn(&Call, Value) -> Result<Value, Error>;

#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    /// The value that was given; otherwise the field is omitted.
    Given(&'static str),
    /// The value that was given, otherwise this JSON.
    Or(&'static str, &'static str),
    /// All values given under this name, as a list; omitted if there are none.
    Any(&'static str),
    /// A list of paths, or one path, made absolute as the daemon has another working directory.
    Paths(&'static str),
    Path(&'static str),
    /// The id of an image; a path instead goes into `path`, `#rrggbb` into `color`.
    Picture(&'static str),
    /// A folder's id; null for the root, and if none was given.
    Folder(&'static str),
    /// A folder's id; null for the root; omitted if none was given.
    IntoFolder(&'static str),
    /// True; omitted if it was not given.
    Switch(&'static str),
    /// `on` is true, `off` is false; omitted if it was not given.
    On(&'static str),
    /// Whether it was not given.
    Not(&'static str),
    Fixed(bool),
    /// An object of these fields, omitted if it has none.
    Object(BodyFields),
    /// A value computed from the call.
    Of(fn(&Call) -> Result<Option<Value>, Error>),
}

impl Request {
    pub(super) const fn new(place: &'static str, body: Body) -> Self {
        Self { place, body }
    }

    pub(super) fn send(&self, call: &Call, verb: &str) -> Result<Answer, Error> {
        let (method, template) = self.place.split_once(' ').expect("the table has both");
        let place = place(template, call);
        let connection = call.connect()?;
        let fields = match self.body {
            Body::None => return connection.ask(method, &place, None),
            Body::Fields(fields) => body(fields, call)?,
            Body::Given(name) => return connection.ask(method, &place, call.value(name)),
            Body::Changed(change) => {
                let body = change(call, connection.get(&place)?.read()?)?;
                return connection.ask(method, &place, Some(&body));
            }
        };
        match (method, fields.is_empty()) {
            ("PATCH", true) => Err(Error::usage("no changes given").hint(format!(
                "see `murald {verb} --help` for what can be changed"
            ))),
            ("PUT", true) => connection.get(&place),
            _ => connection.ask(method, &place, Some(&fields.into())),
        }
    }
}

/// A path of the API, filled in with the values of a call.
pub(super) fn place(template: &str, call: &Call) -> RequestPath {
    let (path, query) = template.split_once('?').unwrap_or((template, ""));
    let given = |name: &str| call.query(name);
    let segments = path
        .split('/')
        .skip(1)
        .filter_map(|text| filled(text, given));
    let segments: Vec<String> = segments.collect();
    let shown: Vec<&dyn Display> = segments
        .iter()
        .map(|segment| segment as &dyn Display)
        .collect();
    let parameters = query.split('&').filter_map(|pair| pair.split_once('='));
    parameters.fold(RequestPath::new(&shown), |place, (name, value)| {
        place.query(name, filled(value, given))
    })
}

fn body(fields: BodyFields, call: &Call) -> Result<Map<String, Value>, Error> {
    let mut body = Map::new();
    for &(name, from) in fields {
        let Some(value) = field(from, call)? else {
            continue;
        };
        let name = match (from, value.as_str()) {
            (From::Picture(_), Some(color)) if color.starts_with('#') => "color",
            // Paths are absolute.
            (From::Picture(_), Some(_)) => "path",
            _ => name,
        };
        body.insert(name.to_owned(), value);
    }
    Ok(body)
}

fn field(from: From, call: &Call) -> Result<Option<Value>, Error> {
    let all = |name| call.all(name).into_iter().cloned().collect::<Vec<Value>>();
    let folder = |name| Value::from(call.value(name).filter(|id| id.is_number()).cloned());
    Ok(match from {
        From::Given(name) | From::Picture(name) => call.value(name).cloned(),
        From::Or(name, json) => Some(match call.value(name) {
            Some(value) => value.clone(),
            None => serde_json::from_str(json).expect("the table has JSON"),
        }),
        From::Any(name) => Some(all(name))
            .filter(|list| !list.is_empty())
            .map(Value::from),
        From::Paths(name) => Some(paths(call, name)?.into()),
        From::Path(name) => paths(call, name)?.pop().map(Value::from),
        From::Folder(name) => Some(folder(name)),
        From::IntoFolder(name) => call.has(name).then(|| folder(name)),
        From::Switch(name) => call.has(name).then_some(true.into()),
        From::On(name) => call.text(name).map(|word| (word == "on").into()),
        From::Not(name) => Some((!call.has(name)).into()),
        From::Fixed(value) => Some(value.into()),
        From::Object(fields) => Some(body(fields, call)?)
            .filter(|fields| !fields.is_empty())
            .map(Value::from),
        From::Of(make) => make(call)?,
    })
}

pub(super) fn paths(call: &Call, name: &str) -> Result<Vec<String>, Error> {
    let paths = call.all(name).into_iter().filter_map(Value::as_str);
    paths.map(|path| travelling(Path::new(path))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call() -> Call {
        let values = vec![
            ("ID", json!("a/b")),
            ("--tags", json!(["x", "y"])),
            ("W", json!("one")),
        ];
        Call {
            values: [values, vec![("W", json!("two"))]].concat(),
            ..Call::default()
        }
    }

    #[test]
    fn places_are_filled_in() {
        let check = |template: &str, expected: RequestPath| {
            assert_eq!(place(template, &call()), expected, "{template}");
        };
        check("/images", RequestPath::new(&[&"images"]));
        check(
            "/images/{ID}/raw",
            RequestPath::new(&[&"images", &"a/b", &"raw"]),
        );
        check("/monitors/{NONE}", RequestPath::new(&[&"monitors"]));
        check(
            "/playlists/{NONE:active}/next",
            RequestPath::new(&[&"playlists", &"active", &"next"]),
        );
        let listed = RequestPath::new(&[&"images"])
            .query("tags", Some("x,y"))
            .query("in", Some("all"));
        check(
            "/images?tags={--tags}&page={--page}&in={--parent:all}",
            listed,
        );
        check(
            "/images?x={W=1}&y={V=1}",
            RequestPath::new(&[&"images"]).query("x", Some(1)),
        );
        check(
            "/images?search={W}",
            RequestPath::new(&[&"images"]).query("search", Some("one two")),
        );
    }

    #[test]
    fn body_has_the_fields_that_were_given() {
        let fields = &[
            ("id", From::Given("ID")),
            ("name", From::Given("NONE")),
            ("in", From::Or("NONE", "0")),
            ("words", From::Any("W")),
            ("monitors", From::Any("NONE")),
            ("folder_id", From::Folder("ID")),
            ("other", From::IntoFolder("NONE")),
            ("extend", From::Switch("--tags")),
            ("trash", From::Not("--tags")),
        ];
        let expected = json!({
            "id": "a/b", "in": 0, "words": ["one", "two"], "folder_id": null,
            "extend": true, "trash": false
        });
        assert_eq!(Value::from(body(fields, &call()).unwrap()), expected);
    }
}
