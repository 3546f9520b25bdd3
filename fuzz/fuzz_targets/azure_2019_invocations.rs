//! Calls per minute of Azure Functions 2019, plain or packed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = windfall_trace::azure_2019::read_invocations(bytes, "fuzz");
});
