//! The beginning of any file, plain or packed: which trace is it?
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = windfall_trace::detect_table(bytes, "fuzz");
});
