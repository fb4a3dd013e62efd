//! The messages on the drawing process's socket: a line of JSON each way.
//!
//! Each message names the version of its sender. A message of another version is not understood: the
//! daemon then replaces the process with one of its own version.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::fit::{Fit, Point, Span};
use crate::process::text;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A line may have no more bytes than this: some thousand outputs.
pub(crate) const LINE_MAX: usize = 1 << 20;

/// The wanted pictures of all outputs. Outputs that it does not name are cleared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub version: String,
    pub outputs: Vec<Wanted>,
    pub transition: Transition,
}

/// The wanted picture of one output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub output: String,
    #[serde(with = "text")]
    pub path: OsString,
    /// Stands for what is in the file: the same picture may have come to lie elsewhere.
    pub content: String,
    pub style: Style,
}

/// All that decides how a picture looks once it is up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Style {
    pub fit: Fit,
    pub position: Point,
    /// Red, green and blue of what the picture leaves free.
    pub fill: [u8; 3],
    /// The part of the picture if it is stretched over several outputs, which it covers together.
    pub span: Option<Span>,
    /// A picture that moves does so.
    pub animate: bool,
}

/// How one picture gives way to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transition {
    pub effect: Effect,
    /// In seconds.
    pub duration: f64,
    /// The two inner points of a cubic Bézier curve, as CSS has them.
    pub easing: [f64; 4],
    pub fps_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    None,
    Fade,
    /// A straight edge; 0 degrees: from right to left, 90: from top to bottom.
    Wipe {
        angle: f64,
    },
    /// A circle.
    Grow {
        origin: Point,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Response {
    pub version: String,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// These outputs show what they should; others that were named are not connected.
    Shown(Vec<String>),
    File {
        #[serde(with = "text")]
        path: OsString,
        why: String,
    },
    /// It cannot be shown here: what another try would not change.
    Refused(String),
    /// There is no shared memory for the frames.
    NoMemory(String),
    /// Another request came before this one was up.
    Superseded,
    /// The request is of another version, or nothing that this one knows.
    NotUnderstood,
}

/// The part of a line that every version understands.
#[derive(Deserialize)]
struct Versioned {
    version: String,
}

impl Request {
    /// None for one of another version.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let version = serde_json::from_slice::<Versioned>(line).ok()?.version;
        (version == VERSION).then(|| serde_json::from_slice(line).ok())?
    }
}

impl Response {
    pub(crate) fn new(outcome: Outcome) -> Self {
        Self { version: VERSION.to_owned(), outcome }
    }

    /// None for one of another version.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let version = serde_json::from_slice::<Versioned>(line).ok()?.version;
        (version == VERSION).then(|| serde_json::from_slice(line).ok())?
    }
}

/// A message as it goes over the socket.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("texts, numbers and lists");
    line.push(b'\n');
    line
}

impl Wanted {
    /// Whether the screen would be the same.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let same_file = self.path == other.path;
        let same_content = !self.content.is_empty() && self.content == other.content;
        self.style == other.style && (same_content || same_file && self.content == other.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn request() -> Request {
        Request {
            version: VERSION.to_owned(),
            outputs: vec![Wanted {
                output: "DP-1".to_owned(),
                path: OsString::from_vec(b"/a b\n\xff.png".to_vec()),
                content: "sha256:1".to_owned(),
                style: Style {
                    fit: Fit::Cover,
                    position: Point { x: 0.5, y: 0.5 },
                    fill: [0, 1, 2],
                    span: None,
                    animate: false,
                },
            }],
            transition: Transition {
                effect: Effect::Fade,
                duration: 0.6,
                easing: [0.0, 0.0, 0.58, 1.0],
                fps_max: 60,
            },
        }
    }

    #[test]
    fn lines_come_back_as_they_went() {
        let sent = line(&request());
        assert_eq!(sent.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(Request::read(&sent), Some(request()));
        let response = Response::new(Outcome::Shown(vec!["DP-1".to_owned()]));
        assert_eq!(Response::read(&line(&response)), Some(response));
    }

    #[test]
    fn another_version_is_not_understood() {
        let other = Request { version: "0.0.1".to_owned(), ..request() };
        assert_eq!(Request::read(&line(&other)), None);
        assert_eq!(Response::read(br#"{"version":"9.0","outcome":{"strange":1}}"#), None);
        assert_eq!(Request::read(b"nonsense"), None);
    }

    #[test]
    fn the_same_picture_may_lie_elsewhere() {
        let one = request().outputs.remove(0);
        assert!(one.looks_like(&Wanted { path: "/held.png".into(), ..one.clone() }));
        assert!(!one.looks_like(&Wanted { content: "sha256:2".to_owned(), ..one.clone() }));
        let nameless = Wanted { content: String::new(), ..one.clone() };
        assert!(nameless.looks_like(&nameless));
        assert!(!nameless.looks_like(&Wanted { path: "/x".into(), ..nameless.clone() }));
        let style = Style { fill: [9, 9, 9], ..one.style.clone() };
        assert!(!one.looks_like(&Wanted { style, ..one.clone() }));
    }
}
