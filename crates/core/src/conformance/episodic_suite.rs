//! What every platform that owns its time must do.

use super::platform_suite;
use crate::observation::Observation;
use crate::platform::{Episodic, PlatformError};
use crate::safeguard::Plan;
use crate::seed::Seed;
use crate::time::{Duration, Timestamp};

const TICKS: u64 = 6;
const EVERY: Duration = Duration::from_secs(10);

/// Everything in [`platform_suite`]; and never goes back in time, reports on no other moment than its own, does the
/// same for the same seed, and nothing for an empty plan.
pub fn episodic_suite(make: &dyn Fn() -> Box<dyn Episodic>) {
    platform_suite(make, &|platform| {
        let to = platform.now() + EVERY;
        platform.advance_to(to).expect("time can go forward");
        to
    });
    let mut platform = make();
    let quiet = walk(platform.as_mut(), Seed::new(1), false);
    knows_its_time(platform.as_mut(), quiet[0].now);
    let again = walk(platform.as_mut(), Seed::new(1), false);
    assert_same(&quiet, &again, "a reset to the same seed brought another run");
    let fresh = walk(make().as_mut(), Seed::new(1), false);
    assert_same(&quiet, &fresh, "a fresh platform with the same seed brought another run");
    let asked = walk(make().as_mut(), Seed::new(1), true);
    assert_same(&quiet, &asked, "an empty plan changed something");
}

fn knows_its_time(platform: &mut dyn Episodic, earlier: Timestamp) {
    let back = platform.advance_to(earlier);
    assert!(
        matches!(back, Err(PlatformError::BackInTime { .. })),
        "going back in time was answered with {back:?}"
    );
    for other in [earlier, platform.now() + EVERY] {
        let seen = platform.observe(other).map(|seen| seen.now);
        assert!(
            matches!(seen, Err(PlatformError::AnotherTime { .. })),
            "at {} an observation of {other} was answered with {seen:?}",
            platform.now()
        );
    }
}

/// Resets, then observes every ten seconds, after submitting an empty plan if asked to.
fn walk(platform: &mut dyn Episodic, seed: Seed, submits: bool) -> Vec<Observation> {
    platform.reset(seed);
    let mut seen = Vec::new();
    for tick in 0..TICKS {
        let at = Timestamp::ZERO + EVERY * tick;
        platform.advance_to(at).expect("time can go forward");
        seen.push(platform.observe(at).expect("a platform can be observed after a reset"));
        if submits {
            let receipt = platform.submit(at, &Plan::default());
            assert!(receipt.answers.is_empty(), "an empty plan was answered with {receipt:?}");
        }
    }
    seen
}

fn assert_same(expected: &[Observation], found: &[Observation], broken: &str) {
    for (tick, (expected, found)) in expected.iter().zip(found).enumerate() {
        assert_eq!(expected, found, "tick {tick}: {broken}");
    }
}
