//! The sample of FaaSRM's authors: one text read as each of its three tables.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (calls, runs, sizes) = ((bytes, "calls"), (bytes, "runs"), (bytes, "sizes"));
    let _ = windfall_trace::freyr_sample::read_sample(calls, runs, sizes);
});
