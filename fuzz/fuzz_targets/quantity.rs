//! Kubernetes quantities, and the numbers they stand for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_autoscalers::Quantity;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(quantity) = text.parse::<Quantity>() else { return };
    let _ = (quantity.milli(), quantity.whole());
    assert!(!quantity.approximate().is_nan());
});
