//! A whole request, as handlers get it: decoded once, without its socket.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseIntError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tiny_http::Method;

use super::connections::{Client, Connections};
use super::error::Error;
use super::parse::{Fields, Head};
use super::query::{decode, parse as parse_query};
use super::waiting::{PendingRequests, Permit, Reply};
use crate::desktop;
use crate::wire::collate::nearest;
use crate::wire::{Parameters, Session};

#[derive(Debug)]
pub struct Request<'a> {
    method: Method,
    /// The parts of the path between its slashes, each decoded by itself: `%2F` stays inside a name.
    pub(super) segments: Vec<Cow<'a, str>>,
    /// The index of the segment that the placeholder of the route matches.
    pub(super) placeholder: Option<usize>,
    query: Parameters<'a>,
    body: &'a [u8],
    id: &'a str,
    pub(super) fields: Fields<'a>,
    waiting: &'a PendingRequests,
    /// The request's connection, and all connections.
    client: Option<(&'a Client, &'a Connections)>,
}

impl<'a> Request<'a> {
    /// Fails (400) if a percent sequence is invalid.
    pub(super) fn new(
        head: Head<'a>,
        body: &'a [u8],
        id: &'a str,
        waiting: &'a PendingRequests,
    ) -> Result<Self, Error> {
        let segments = segments(head.path)?;
        let query = parse_query(head.query)?;
        let Head { method, fields, .. } = head;
        Ok(Self {
            method,
            segments,
            placeholder: None,
            query,
            body,
            id,
            fields,
            waiting,
            client: None,
        })
    }

    /// Adds the connection of the request, and the list of all connections.
    pub(super) fn among(self, connections: &'a Connections, client: &'a Client) -> Self {
        Self {
            client: Some((client, connections)),
            ..self
        }
    }

    /// The number of connected clients, without event streams.
    pub(super) fn clients(&self) -> usize {
        self.client
            .map_or(0, |(_, connections)| connections.number())
    }

    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The ID of this request in the log.
    pub fn id(&self) -> &'a str {
        self.id
    }

    pub fn query(&self) -> &Parameters<'a> {
        &self.query
    }

    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Whether one of murald's hooks sent the request: it says so (`X-Murald-Hook: 1`) or is known
    /// by its process group. Changes by a hook run no hook.
    pub(super) fn by_hook(&self, desktop: &desktop::Handle) -> bool {
        let group = self.client.and_then(|(client, _)| client.group);
        self.fields.hook == Some("1") || group.is_some_and(|group| desktop.is_hook(group))
    }

    /// The session of the command that sent the request.
    pub(crate) fn session(&self) -> Option<Session> {
        self.fields.session.and_then(Session::from_header)
    }

    /// The segment of the path for the route's placeholder; empty if the route has none.
    pub fn placeholder(&self) -> &str {
        self.placeholder.map_or("", |at| &self.segments[at])
    }

    /// The last segment of the path, for handlers of several routes.
    pub(super) fn last_segment(&self) -> &str {
        self.segments.last().map_or("", |segment| segment)
    }

    /// The route's placeholder as a record's id; 400 if it is not an integer.
    pub fn record(&self) -> Result<i64, Error> {
        let text = self.placeholder();
        text.parse()
            .or_else(|error: ParseIntError| match error.kind() {
                // An integer that no record has.
                IntErrorKind::PosOverflow => Ok(i64::MAX),
                IntErrorKind::NegOverflow => Ok(i64::MIN),
                _ => Err(Error::bad_request(format!("{text:?} is not an ID"))),
            })
    }

    /// The body as an object of type `T`; 400 with line, column and field if it is malformed.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.body.trim_ascii().is_empty() {
            return Err(Error::bad_request(
                "the body is empty: it must be a JSON object",
            ));
        }
        // serde would read a struct's fields from an array, too.
        if !self.body.trim_ascii_start().starts_with(b"{") {
            let details = "at line 1 column 1";
            return Err(Error::bad_request("the body must be a JSON object").details(details));
        }
        let mut json = serde_json::Deserializer::from_slice(self.body);
        let value = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| malformed(&error.path().to_string(), error.inner()))?;
        json.end().map_err(|error| malformed(".", &error))?;
        Ok(value)
    }

    /// The same, with `T`'s default if the body is empty.
    pub fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Error> {
        if self.body.trim_ascii().is_empty() {
            Ok(T::default())
        } else {
            self.json()
        }
    }

    /// Lets another thread do something slow, and waits for its result. Fails (503) after
    /// `patience`.
    pub fn wait<T: Send + 'static, E: Into<Error> + Send + 'static>(
        &self,
        patience: Duration,
        command: impl FnOnce(Reply<T, E>),
    ) -> Result<T, Error> {
        self.waiting.wait(patience, command)
    }

    /// Permits slow work in this thread for as long as the permit is held. Fails (503) if too many
    /// requests have one.
    pub fn permit(&self) -> Result<Permit, Error> {
        self.waiting.permit()
    }
}

/// The error (400) for a body that serde cannot read; `path` leads to the field.
fn malformed(path: &str, error: &serde_json::Error) -> Error {
    let place = format!("at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let text = text.trim_end_matches(&place).trim_end();
    // serde lists all known fields after the unknown one.
    let mut names = text.split('`').skip(1).step_by(2);
    let unknown = names
        .next()
        .filter(|_| text.starts_with("unknown field"))
        .and_then(|name| Some((name, nearest(name, names)?)));
    let text = &unknown.map_or(text.to_owned(), |(name, meant)| {
        format!("unknown field `{name}`: did you mean {meant}?")
    });
    let error = Error::bad_request(match path {
        "." | "?" => format!("the body cannot be read: {text}"),
        path => format!("{path}: {text}"),
    });
    error.details(place)
}

fn segments(path: &str) -> Result<Vec<Cow<'_, str>>, Error> {
    let bad = || Error::bad_request("the path has a bad percent sequence");
    let parts = path.strip_prefix('/').unwrap_or(path).split('/');
    parts
        .map(|raw| decode(raw, false).ok_or_else(bad))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::super::parse;
    use super::*;
    use crate::wire::{CreatePlaylist, ImportImages, NoFields, PatchPlaylist, SetWallpaper};

    fn with<T>(bytes: &[u8], body: impl FnOnce(Result<Request<'_>, Error>) -> T) -> T {
        let head = parse::head(bytes, &Limits::default()).unwrap().unwrap();
        let rest = &bytes[head.size..];
        body(Request::new(head, rest, "x", &PendingRequests::new(1)))
    }

    #[test]
    fn paths_are_decoded_once_per_segment() {
        let check = |path: &str, expected: Option<&[&str]>| {
            with(
                format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes(),
                |request| {
                    let found = request.ok();
                    let parts = found.as_ref().map(|request| &request.segments);
                    let parts = parts.map(|parts| parts.iter().map(|part| &**part).collect());
                    assert_eq!(parts, expected.map(<[&str]>::to_vec), "{path}");
                },
            );
        };
        check("/", Some(&[""]));
        check("/a/b", Some(&["a", "b"]));
        check("/a/", Some(&["a", ""]));
        check("/monitors/a%2Fb", Some(&["monitors", "a/b"]));
        check("/%2525", Some(&["%25"]));
        check("/a+b", Some(&["a+b"]));
        check("/caf%C3%A9", Some(&["café"]));
        check("/%C3", None);
        check("/%", None);
        check("/%4", None);
        check("/%zz", None);
        check("/%+1", None);
        check(
            "/1/2/3/4/5/6/7/8/9",
            Some(&["1", "2", "3", "4", "5", "6", "7", "8", "9"]),
        );
    }

    #[test]
    fn bodies_say_where_they_are_wrong() {
        fn check<T: DeserializeOwned>(body: &str, expected: Result<(), [&str; 2]>) {
            with(
                format!("POST / HTTP/1.1\r\n\r\n{body}").as_bytes(),
                |request| {
                    let failure = match (request.unwrap().json::<T>(), expected) {
                        (Ok(_), Ok(())) => return,
                        (found, Err(_)) => found.err().expect(body),
                        (Err(failure), Ok(())) => panic!("{body}: {failure:?}"),
                    };
                    let text = failure.into_response("x").text();
                    for part in expected.unwrap_err() {
                        assert!(text.contains(part), "{body} gave {text} without {part}");
                    }
                },
            );
        }
        check::<ImportImages>(r#" {"paths": ["/a"], "new": 1} "#, Ok(()));
        check::<ImportImages>("", Err(["empty", "400"]));
        check::<ImportImages>(
            "[[\"/a\"]]",
            Err(["must be a JSON object", "line 1 column 1"]),
        );
        check::<ImportImages>("null", Err(["must be a JSON object", ""]));
        let place = "\"details\":\"at line 1 column 2\"";
        check::<ImportImages>("{}", Err(["missing field `paths`", place]));
        check::<ImportImages>(
            "{\"paths\":\n[\"a\", 7]}",
            Err(["paths[1]: invalid type: integer `7`", "line 2 column 7"]),
        );
        check::<ImportImages>(
            "{\"paths\": [}",
            Err(["paths[0]: expected value", "line 1 column 12"]),
        );
        check::<ImportImages>("{\"paths\": []} x", Err(["trailing", "column 15"]));
        check::<SetWallpaper>(
            r#"{"image_id": 1, "mode": "up"}"#,
            Err(["mode: ", "one of `individual`, `clone`, `extend`"]),
        );
        check::<SetWallpaper>(r#"{"image_id": 1.5}"#, Err(["image_id: ", "1.5"]));
        for configuration in ["5", "[5]", r#"["timer", 5]"#, "null"] {
            let body = format!(r#"{{"name": "x", "configuration": {configuration}}}"#);
            check::<CreatePlaylist>(&body, Err(["configuration: ", "an object"]));
            check::<PatchPlaylist>(&body, Err(["configuration: ", "an object"]));
        }
        check::<PatchPlaylist>(
            r#"{"images": [{"image_id": 1}, {"image_id": "x"}]}"#,
            Err(["images[1].image_id: ", "x"]),
        );
        check::<SetWallpaper>(
            r#"{"image_id": 1, "moniter": "A"}"#,
            Err(["unknown field `moniter`: did you mean monitor?", ""]),
        );
        // No known field resembles this one, so all are listed.
        check::<SetWallpaper>(
            r#"{"image_id": 1, "elephants": 2}"#,
            Err(["unknown field `elephants`, expected one of", "`monitor`"]),
        );
        check::<NoFields>("{}", Ok(()));
        let none = "unknown field `monitor`, there are no fields";
        check::<NoFields>(r#"{"monitor": "A"}"#, Err([none, ""]));
        check::<SetWallpaper>(
            r#"{"image_id": 99999999999999999999}"#,
            Err(["", "image_id"]),
        );
    }
}
