//! A file of settings and, after the first NUL, changes to it: the result is valid and contains the
//! changes.

use crate::input::{halves, start};
use murald::internals::parsers::config::{patched, read};
use serde_json::Value;

pub(crate) fn run(data: &[u8]) {
    let (text, body) = halves(start(data));
    let Ok(Value::Object(body)) = serde_json::from_str(body) else {
        return;
    };
    let Some(new) = patched(text, &body) else {
        return;
    };
    assert!(read(&new).is_ok(), "{new}");
    assert_eq!(patched(&new, &body).as_ref(), Some(&new));
}
