//! Heads of HTTP requests: a head is complete at its stated size, and not before.

use murald::internals::parsers::http::head;

pub(crate) fn run(data: &[u8]) {
    if let Ok(Some((size, path, query))) = head(data) {
        assert_eq!(head(&data[..size]), Ok(Some((size, path, query))));
        assert!(!matches!(head(&data[..size - 1]), Ok(Some(_))));
    }
}
