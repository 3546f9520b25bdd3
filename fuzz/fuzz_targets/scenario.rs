//! Scenario files.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = windfall_scenario::Scenario::parse(text, "fuzz");
    }
});
