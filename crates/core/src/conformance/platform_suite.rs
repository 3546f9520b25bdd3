//! What every platform that owns its time must do.

use crate::observation::Observation;
use crate::platform::{Episodic, PlatformError};
use crate::safeguard::Plan;
use crate::seed::Seed;
use crate::time::{Duration, Timestamp};

const TICKS: u64 = 6;

/// Can be observed after a reset; names functions in the order of their ids; never goes back in time;
/// does nothing for an empty plan; does the same for the same seed.
pub fn platform_suite(make: &dyn Fn() -> Box<dyn Episodic>) {
    let mut platform = make();
    let quiet = walk(platform.as_mut(), Seed::new(1), false);
    for (tick, seen) in quiet.iter().enumerate() {
        check_view(tick, seen);
    }
    for (earlier, later) in quiet.iter().zip(&quiet[1..]) {
        assert!(earlier.now < later.now, "time went from {} to {}", earlier.now, later.now);
    }
    let back = platform.advance_to(quiet[0].now);
    assert!(
        matches!(back, Err(PlatformError::BackInTime { .. })),
        "going back in time was answered with {back:?}"
    );

    let again = walk(platform.as_mut(), Seed::new(1), false);
    assert_same(&quiet, &again, "a reset to the same seed brought another run");
    let fresh = walk(make().as_mut(), Seed::new(1), false);
    assert_same(&quiet, &fresh, "a fresh platform with the same seed brought another run");
    let told = walk(make().as_mut(), Seed::new(1), true);
    assert_same(&quiet, &told, "an empty plan changed something");
}

/// Resets, then observes every ten seconds, after submitting an empty plan if asked to.
fn walk(platform: &mut dyn Episodic, seed: Seed, submits: bool) -> Vec<Observation> {
    platform.reset(seed);
    let mut seen = Vec::new();
    let mut at = Timestamp::ZERO;
    for tick in 0..TICKS {
        if tick > 0 {
            at += Duration::from_secs(10);
            platform.advance_to(at).expect("time can go forward");
        }
        seen.push(platform.observe().expect("a platform can be observed after a reset"));
        if submits {
            let receipt = platform.submit(&Plan::default()).expect("an empty plan is accepted");
            assert_eq!(receipt.accepted, 0, "an empty plan set something in motion");
            assert!(receipt.refused.is_empty(), "an empty plan was refused: {:?}", receipt.refused);
        }
    }
    seen
}

fn check_view(tick: usize, seen: &Observation) {
    assert!(seen.taken_at <= seen.now, "tick {tick}: measured at {} in the future", seen.taken_at);
    assert!(
        seen.functions.is_sorted_by(|a, b| a.function < b.function),
        "tick {tick}: functions are not in the order of their ids"
    );
    for view in &seen.functions {
        let numbers = [view.mean_concurrency, view.cpu_used_cores, view.memory_peak_mib];
        assert!(
            numbers.iter().all(|number| number.is_finite() && *number >= 0.0),
            "tick {tick}: {:?} was measured as {numbers:?}",
            view.function
        );
    }
}

fn assert_same(expected: &[Observation], found: &[Observation], broken: &str) {
    for (tick, (expected, found)) in expected.iter().zip(found).enumerate() {
        assert_eq!(expected, found, "tick {tick}: {broken}");
    }
}
