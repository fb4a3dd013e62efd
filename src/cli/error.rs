//! The error of a command: its kind, which alone picks the exit code, its causes and a hint.
//!
//! Printed to stderr as one `murald: ...` line with the causes and the hint after it.

use std::error::Error as StdError;
use std::io::Write as _;
use std::process::ExitCode;
use std::{fmt, io};

use serde_json::json;

use crate::error_chain::{causes, chain, plain};
use crate::wire::{ErrorBody, ErrorCode};

use super::terminal::{for_stderr, harmless, harmless_json};

/// The exit codes, as in murald(1). From 69 to 78 they are numbered as in `sysexits.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The reader of our output has closed it: nothing is printed.
    Done = 0,
    /// The daemon answered with an error.
    Refused = 1,
    Usage = 2,
    /// No daemon can be reached.
    Unavailable = 69,
    Internal = 70,
    /// Another daemon runs.
    Running = 75,
    Config = 78,
    /// Interrupted by a signal; shells use this number for SIGINT.
    Interrupted = 130,
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) exit: Exit,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// The body of the daemon's answer, which `--json` prints.
    body: Option<Vec<u8>>,
    /// The HTTP status of the same meaning.
    status: Option<u16>,
}

impl Error {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            source: None,
            body: None,
            status: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// The failure of a daemon in the foreground: `error` with its causes and exit code, and its hint
    /// if it has one.
    pub(crate) fn from_daemon(exit_code: u8, hint: Option<&str>, error: &dyn StdError) -> Self {
        let (exit, usual) = match exit_code {
            75 => (
                Exit::Running,
                "`murald status` shows it, `murald stop` stops it",
            ),
            78 => (Exit::Config, "fix the file and try again"),
            _ => (Exit::Internal, "run `murald doctor` for help"),
        };
        Self::new(exit, chain(error)).hint(hint.unwrap_or(usual))
    }

    /// A record that does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self {
            status: Some(404),
            ..Self::refused(message)
        }
    }

    /// The daemon's answer to a request that failed.
    pub(crate) fn from_answer(status: u16, body: Vec<u8>) -> Self {
        let Ok(told) = serde_json::from_slice::<ErrorBody>(&body) else {
            return Self::refused(format!("the daemon answered with status {status}"))
                .hint("the daemon may have another version: run `murald status`");
        };
        let hint = match &told.error_code {
            Some(ErrorCode::NoBackend) => Some("run `murald doctor` for help"),
            // The cause is not known to the daemon itself.
            None if told.error == "internal error" => Some("the log may say more"),
            Some(ErrorCode::IncompatibleBackend) | None => None,
        };
        let hint = hint.map(str::to_owned);
        let is_incompatible = told.error_code == Some(ErrorCode::IncompatibleBackend);
        let (message, hint) = match told.details {
            // Details that begin with a command, or say which backend can show it, are the next step.
            Some(step) if step.starts_with('`') || is_incompatible => (told.error, Some(step)),
            Some(details) => (format!("{}: {details}", told.error), hint),
            None => (told.error, hint),
        };
        let mut error = Self::refused(message);
        error.hint = hint;
        error.body = Some(body);
        error.status = Some(status);
        error
    }

    /// An answer or a stream that ended too early.
    pub(crate) fn lost_daemon(error: io::Error) -> Self {
        Self::new(Exit::Unavailable, "lost the connection to the daemon")
            .because(error)
            .hint("`murald status` shows whether it still runs; the log may say why it stopped")
    }

    /// A failure to write the output; a broken pipe is a quiet success.
    pub(crate) fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Exit::Done, String::new()),
            _ => Self::refused("cannot write the output").because(error),
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Replaces the API's name of a parameter at the start of the message and of its details.
    pub(crate) fn renamed(mut self, name: &str, ours: &str) -> Self {
        if let Some(rest) = self
            .message
            .strip_prefix(name)
            .filter(|rest| rest.starts_with([' ', ':']))
        {
            let details = (format!(": {name} "), format!(": {ours} "));
            self.message = format!("{ours}{}", rest.replace(&details.0, &details.1));
        }
        self
    }

    pub(crate) fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// The failure and its causes, without the hint.
    pub(crate) fn reason(&self) -> String {
        causes(self).fold(self.message.clone(), |told, cause| {
            format!("{told}: {}", plain(cause))
        })
    }

    /// The HTTP status of this error, if known.
    pub(crate) fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether the connection was interrupted before there was an answer.
    pub(crate) fn is_interrupt(&self) -> bool {
        let source = self
            .source
            .as_ref()
            .and_then(|source| source.downcast_ref::<io::Error>());
        source.is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
    }

    /// Prints the error, with `json` as JSON, and returns the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        // The message is empty if a program that the command started has already printed one.
        if self.exit != Exit::Done && !self.message.is_empty() {
            let mut stderr = io::stderr();
            // Stderr may be closed.
            if json {
                let body = self.body.clone();
                let body = body.unwrap_or_else(|| self.as_json().to_string().into_bytes());
                stderr
                    .write_all(&harmless_json(&body))
                    .and_then(|()| writeln!(stderr))
            } else {
                writeln!(stderr, "{}", for_stderr(&self.to_string()))
            }
            .ok();
        }
        ExitCode::from(self.exit as u8)
    }

    /// The error as JSON, in the form of the daemon's errors.
    fn as_json(&self) -> serde_json::Value {
        let (error, code) = (self.reason(), self.code());
        match &self.hint {
            Some(hint) => json!({"error": error, "code": code, "details": hint}),
            None => json!({"error": error, "code": code}),
        }
    }

    /// The status that the daemon would answer with.
    fn code(&self) -> u16 {
        let usual = match self.exit {
            Exit::Usage | Exit::Config => 400,
            Exit::Done | Exit::Refused | Exit::Running => 409,
            Exit::Unavailable => 503,
            Exit::Internal | Exit::Interrupted => 500,
        };
        self.status.unwrap_or(usual)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "murald: {}", harmless(&self.message))?;
        for cause in causes(self) {
            write!(f, ": {}", harmless(&plain(cause)))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", harmless(hint)),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|error| error as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_messages_with_hints() {
        #[track_caller]
        fn check(status: u16, body: &str, expected: &str) {
            let error = Error::from_answer(status, body.as_bytes().to_vec());
            assert_eq!(error.exit, Exit::Refused);
            assert_eq!(error.to_string(), expected);
        }
        check(
            404,
            r#"{"error":"no image 7","code":404}"#,
            "murald: no image 7",
        );
        check(
            400,
            r#"{"error":"bad body","code":400,"details":"line 1"}"#,
            "murald: bad body: line 1",
        );
        check(
            400,
            r#"{"error":"/a: no package","code":400,"details":"`murald import` imports it"}"#,
            "murald: /a: no package\nhint: `murald import` imports it",
        );
        check(
            503,
            r#"{"error":"no backend","code":503,"error_code":"no_backend"}"#,
            "murald: no backend\nhint: run `murald doctor` for help",
        );
        check(
            503,
            r#"{"error":"busy: try again","code":503}"#,
            "murald: busy: try again",
        );
        check(
            500,
            r#"{"error":"internal error","code":500}"#,
            "murald: internal error\nhint: the log may say more",
        );
        check(
            502,
            "<html>",
            "murald: the daemon answered with status 502\nhint: \
             the daemon may have another version: run `murald status`",
        );
        check(
            400,
            "{\"error\":\"\\u001b[2J\",\"code\":400}",
            "murald: \u{fffd}[2J",
        );
    }

    #[test]
    fn causes_are_printed_on_one_line() {
        let lost = io::Error::other("the cause");
        let error = Error::new(Exit::Internal, "it failed")
            .because(lost)
            .hint("do this");
        assert_eq!(
            error.to_string(),
            "murald: it failed: the cause\nhint: do this"
        );
        assert_eq!(
            error.as_json(),
            json!({"error": "it failed: the cause", "code": 500, "details": "do this"})
        );
        let code = |error: Error| error.as_json()["code"].clone();
        assert_eq!(code(Error::usage("x")), 400);
        assert_eq!(code(Error::not_found("x")), 404);
        assert_eq!(code(Error::refused("x")), 409);
        assert_eq!(code(Error::new(Exit::Unavailable, "x")), 503);
        assert_eq!(
            Error::output(io::ErrorKind::BrokenPipe.into()).exit,
            Exit::Done
        );
    }
}
