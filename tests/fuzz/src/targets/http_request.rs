//! Requests through the router and the parsing of their bodies: an error is explained in JSON.

use murald::internals::parsers::http::request;
use serde_json::Value;

pub(crate) fn run(data: &[u8]) {
    if let Some((status @ 400.., body)) = request(data) {
        let said: Value = serde_json::from_slice(&body).expect("it is JSON");
        assert_eq!(said["code"], status);
        assert!(
            said["error"]
                .as_str()
                .is_some_and(|error| !error.is_empty())
        );
    }
}
