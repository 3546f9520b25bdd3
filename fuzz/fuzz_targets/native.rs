//! Windfall's own format, to the last arrival.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = windfall_trace::native::Reader::new(bytes, "fuzz") else { return };
    while let Ok(Some(_)) = reader.read_arrival() {}
});
