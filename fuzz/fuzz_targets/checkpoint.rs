//! Checkpoints: any bytes may be given as `--policy FILE`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(checkpoint) = windfall_rl::Checkpoint::from_bytes(bytes) {
        let _ = checkpoint.policy();
    }
});
