//! Templates of `--format`: an escaped text is printed as it was.

use std::sync::LazyLock;

use crate::input::start;
use murald::internals::parsers::cli::template;
use serde_json::{Value, json};

static RECORD: LazyLock<Value> = LazyLock::new(
    || json!({ "id": 7, "name": "a b", "tags": ["x", "y"], "web": { "size": [640, { "k": null }] } }),
);

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    template(text, &RECORD).ok();
    let escaped = text
        .replace('\\', r"\\")
        .replace('{', "{{")
        .replace('}', "}}");
    assert_eq!(template(&escaped, &RECORD).as_deref(), Ok(text));
}
