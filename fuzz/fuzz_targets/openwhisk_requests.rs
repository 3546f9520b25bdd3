//! Queries, and requests to web actions with any media type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_openwhisk::{read_query, read_web_request};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
    let mut text = || std::str::from_utf8(parts.next().unwrap_or_default()).unwrap_or_default();
    let (media, query) = (text(), text());
    read_query(query);
    read_web_request(media, query, parts.next().unwrap_or_default());
});
