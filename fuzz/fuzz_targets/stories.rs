//! Recorded decisions of autoscalers, in all four formats.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_autoscalers::stories::{replay_hpa, replay_kpa, replay_vpa, replay_vpa_updater};

fuzz_target!(|bytes: &[u8]| {
    let _ = replay_kpa(bytes);
    let _ = replay_hpa(bytes);
    let _ = replay_vpa(bytes);
    let _ = replay_vpa_updater(bytes);
});
