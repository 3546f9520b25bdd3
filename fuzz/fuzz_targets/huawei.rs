//! Requests per bin of Huawei.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = windfall_trace::huawei::read_requests(bytes, "fuzz");
});
