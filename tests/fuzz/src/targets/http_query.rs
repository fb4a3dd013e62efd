//! Query strings and percent-encoding.

use crate::input::start;
use murald::internals::parsers::http::{decoded, query};

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    query(text);
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(decoded(&encoded, true).as_deref(), Some(text));
    if let Some(plain) = decoded(text, false) {
        assert!(plain.len() <= text.len());
    }
}
