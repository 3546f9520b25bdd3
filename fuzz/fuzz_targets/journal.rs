//! Journals of runs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = windfall_telemetry::journal::reader::read_bytes(bytes);
});
