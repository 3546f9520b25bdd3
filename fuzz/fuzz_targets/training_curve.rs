//! The curve of a training that goes on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_rl::training::{Best, read_curve};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(curve) = read_curve(text) {
        let _ = Best::of(&curve);
    }
});
