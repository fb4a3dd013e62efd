//! Settings laid over a file, which is what is before the first NUL: all comments stay, and what was
//! laid over is there.

use crate::input::{halves, start};
use murald::internals::parsers::config::{comments, patched, read};
use serde_json::Value;

pub(crate) fn run(data: &[u8]) {
    let (text, body) = halves(start(data));
    let Ok(Value::Object(body)) = serde_json::from_str(body) else { return };
    let Some(new) = patched(text, &body) else { return };
    assert!(read(&new).is_ok(), "{new}");
    /// A key that has no default takes the place of its own.
    const PLACEHOLDERS: [&str; 3] =
        ["# latitude =", "# longitude =", "# transition_duration_seconds ="];
    let mut kept = comments(&new);
    for comment in comments(text).into_iter().filter(|comment| !PLACEHOLDERS.contains(comment)) {
        let at = kept.iter().position(|kept| *kept == comment).expect("every comment stays");
        kept.swap_remove(at);
    }
    assert_eq!(patched(&new, &body).as_ref(), Some(&new));
}
