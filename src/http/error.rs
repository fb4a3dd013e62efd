//! The error of a handler: status, message and body of every answer that is not a success.
//!
//! Handlers turn a module's error into an [`Error`] with `?`. Codes are stable, messages may
//! improve. The `cause` has everything that a client must not see (SQL, internal paths, panics). It
//! goes to the log under the request's ID.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use serde_json::Value;

use super::response::Response;
use crate::error_chain::chain;
use crate::wire::{ErrorBody, ErrorCode};

/// Bytes of a message: it may quote what a client sent.
const TEXT_MAX: usize = 2000;

#[derive(Debug)]
pub struct Error {
    status: u16,
    error: Cow<'static, str>,
    details: Option<String>,
    code: Option<ErrorCode>,
    meta: Option<Box<Value>>,
    headers: Vec<(&'static str, String)>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub fn new(status: u16, error: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            error: error.into(),
            details: None,
            code: None,
            meta: None,
            headers: Vec::new(),
            cause: None,
        }
    }

    /// 400
    pub fn bad_request(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, error)
    }

    /// 400 for a query parameter: its name, the value and what is allowed.
    pub fn parameter(name: &str, value: &str, allowed: impl fmt::Display) -> Self {
        let allowed = allowed.to_string();
        if allowed.starts_with(name) {
            Self::bad_request(format!("{allowed}, not {value:?}"))
        } else {
            Self::bad_request(format!("{name} cannot be {value:?}")).details(allowed)
        }
    }

    /// 404: "no image 7"
    pub fn not_found(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(404, what)
    }

    /// 503: a full inbox or another bound; the same request may succeed later.
    pub fn busy(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(503, error).header("Retry-After", "1".into())
    }

    /// 500. The client learns only that the fault is not its own; the log has the cause.
    pub fn internal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(500, "internal error").cause(cause)
    }

    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    #[must_use]
    pub fn code(mut self, code: ErrorCode, meta: Value) -> Self {
        self.code = Some(code);
        self.meta = Some(Box::new(meta));
        self
    }

    /// For the log only.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    #[must_use]
    pub(super) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    /// Makes the answer, and logs the cause.
    pub(super) fn into_response(mut self, request_id: &str) -> Response {
        if let Some(cause) = &self.cause {
            let mut why = chain(&**cause);
            // The cause often begins with the client's message.
            if !why.starts_with(&*self.error) {
                why = format!("{}: {why}", self.error);
            }
            log::error!(target: "http", request_id = request_id; "{why}");
            if self.status == 500 && self.details.is_none() {
                self.details = Some(format!("see request {request_id} in the log"));
            }
        }
        let body = ErrorBody {
            error: clipped(self.error.into_owned()),
            code: self.status,
            details: self.details.map(clipped),
            error_code: self.code,
            meta: self.meta.map(|meta| *meta),
        };
        match Response::json(self.status, &body) {
            Ok(mut response) => {
                response.headers.append(&mut self.headers);
                response
            }
            // Strings and a map of JSON values always serialise.
            Err(_) => unreachable!("an error body is plain JSON"),
        }
    }
}

fn clipped(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX)
            .rfind(|&at| text.is_char_boundary(at))
            .unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{BadParameter, Mode};

    fn check(failure: Error, status: u16, body: &str) {
        assert_eq!(failure.status(), status);
        let full = failure.into_response("id-1");
        assert_eq!(full.status, status);
        assert_eq!(full.text(), body);
    }

    #[test]
    fn body_has_only_the_fields_that_are_set() {
        check(
            Error::not_found("no image 7"),
            404,
            r#"{"error":"no image 7","code":404}"#,
        );
        check(
            Error::from(BadParameter::word(
                "mode",
                &"stretch".parse::<Mode>().unwrap_err(),
            )),
            400,
            r#"{"error":"mode must be one of individual, clone, extend, each, not \"stretch\"","code":400}"#,
        );
        let meta = serde_json::json!({ "checked": ["feh"] });
        check(
            Error::busy("no backend").code(ErrorCode::NoBackend, meta),
            503,
            r#"{"error":"no backend","code":503,"error_code":"no_backend","meta":{"checked":["feh"]}}"#,
        );
    }

    #[test]
    fn error_messages_quote_only_the_beginning() {
        let failure = Error::bad_request("é".repeat(1 << 20)).details("x".repeat(TEXT_MAX));
        let text = failure.into_response("id-1").text();
        assert!(
            text.len() < 3 * TEXT_MAX && text.contains("éé…"),
            "{}",
            text.len()
        );
        assert!(text.contains("xx\"}"), "{text}");
    }

    #[test]
    fn causes_stay_in_the_log() {
        check(
            Error::internal("near SELECT: syntax error"),
            500,
            r#"{"error":"internal error","code":500,"details":"see request id-1 in the log"}"#,
        );
    }
}
