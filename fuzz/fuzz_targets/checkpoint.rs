//! A checkpoint, to the policy inside it and a decision of that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_rl::Checkpoint;

fuzz_target!(|bytes: &[u8]| {
    let Ok(checkpoint) = Checkpoint::from_bytes(bytes) else { return };
    let _ = checkpoint.contents();
    let Ok(mut policy) = checkpoint.decider() else { return };
    let spec = &checkpoint.header.environment;
    let action = policy.decide(&vec![0.5; spec.features.len()], &vec![true; spec.actions.len()]);
    assert!(action < spec.actions.len());
});
