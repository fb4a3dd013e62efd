//! Templates of `--format`: what is escaped stands for itself.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use murald::internals::cli::fuzz::template;
use serde_json::{Value, json};

static RECORD: LazyLock<Value> = LazyLock::new(
    || json!({ "id": 7, "name": "a b", "tags": ["x", "y"], "web": { "size": [640, { "k": null }] } }),
);

fuzz_target!(|text: &str| {
    template(text, &RECORD).ok();
    let escaped = text.replace('\\', r"\\").replace('{', "{{").replace('}', "}}");
    assert_eq!(template(&escaped, &RECORD).as_deref(), Ok(text));
});
