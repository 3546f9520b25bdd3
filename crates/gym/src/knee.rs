//! Objectives: the knee of the curve of tail latency over load, as the measurements on OpenWhisk set them.
//!
//! ```text
//!   p99 │                      ╱        four instances of one core, alone on a node, Poisson calls
//!       │                    ╱
//!       │ ────────────knee─╯            the point farthest below the line from first to last
//!       └─────────────────────── load
//! ```

use std::sync::Arc;

use windfall_core::{Decision, Seed};

use crate::meter::quantile;
use crate::pattern::Pattern;
use crate::profile::ServiceProfile;
use crate::traffic::FunctionSetup;
use crate::world::{World, WorldSettings};

/// Loads at which the curve is measured, as shares of what four instances can serve.
pub const LOADS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// 99th percentiles at [`LOADS`], milliseconds, each from `calls` calls.
pub fn tail_curve(profile: &ServiceProfile, calls: f64, seed: Seed) -> Vec<f64> {
    let mut curve = Vec::with_capacity(LOADS.len());
    for load in LOADS {
        let rate = 4.0 * load / profile.mean_run(1.024);
        let pattern = Arc::new(Pattern::steady());
        let setup = FunctionSetup {
            profile: *profile,
            pattern,
            from_minute: 0,
            rate,
            is_active: true,
            upstream: None,
        };
        let settings = WorldSettings { first_instances: 4, ..WorldSettings::default() };
        let mut world = World::new(settings, vec![setup], seed);
        world.keep_latencies();
        for _ in 0..(calls / rate / 5.0).ceil() as u64 {
            world.act(&Decision::default());
        }
        curve.push(quantile(&mut world.tally(0).latencies_ms, 0.99));
    }
    curve
}

/// The latency at the knee of a curve over [`LOADS`].
pub fn knee(curve: &[f64]) -> f64 {
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    let (from, to) = (LOADS[0], LOADS[LOADS.len() - 1]);
    let below = |place: usize| {
        let along = (LOADS[place] - from) / (to - from);
        let up = (curve[place] - first) / (last - first).max(1e-9);
        along - up
    };
    let farthest = (0..curve.len()).max_by(|&a, &b| below(a).total_cmp(&below(b)));
    curve[farthest.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TWELVE;

    #[test]
    fn a_knee_by_hand() {
        let curve = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 2.0, 11.0];
        assert_eq!(knee(&curve), 2.0);
    }

    #[test]
    fn the_objectives_of_the_profiles_are_their_knees() {
        for profile in &TWELVE {
            let knee = knee(&tail_curve(profile, 12_000.0, Seed::new(7)));
            let off = profile.slo_ms / knee;
            assert!(
                (0.7..1.43).contains(&off),
                "{}: {} stated, {knee:.0} found",
                profile.name,
                profile.slo_ms
            );
        }
    }
}
