//! Single calls of Azure Functions 2021.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = windfall_trace::azure_2021::read_invocations(bytes, "fuzz");
});
