//! A checkpoint that stands for a policy, to the sizes that the policy asks for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_core::{Seed, conformance};
use windfall_rl::Checkpoint;
use windfall_registry::checkpoint_policy::of_known_kind;

fuzz_target!(|bytes: &[u8]| {
    let Ok(checkpoint) = Checkpoint::from_bytes(bytes) else { return };
    let Ok(opened) = of_known_kind(checkpoint) else { return };
    let Ok(mut policy) = opened.assemble(Seed::new(1)) else { return };
    for call in conformance::calls() {
        let _ = policy.call.size(&call);
    }
});
