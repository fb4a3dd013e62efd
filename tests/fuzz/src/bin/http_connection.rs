//! A connection, with as many requests as there are: what comes back are answers, whole and one
//! behind the other.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::http::fuzz::connection;
use murald_fuzz::answers;

fuzz_target!(|data: &[u8]| {
    // More answers than fit into a socket would have to be read meanwhile.
    let answered = connection(&data[..data.len().min(8 << 10)]);
    answers(&answered);
});
