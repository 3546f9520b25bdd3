//! Incumbents at their best over-commit: a node that grants more than it has serves more calls at a time, as
//! a live policy does that takes back what lies idle.
//!
//! Best is the factor with the lowest bounded p99 among those at which at most 0.1 % of the calls run more
//! than 5 % longer than at the user's size; over-commit beyond that slows calls that run instead of letting
//! calls wait. Where no factor keeps that, 1 is taken. `windfall` is swept by the same rule.

use serde::Serialize;
use windfall_scenario::sweep::{Sweep, SweepError, Watcher};
use windfall_telemetry::Comparison;

use super::variants::Service;
use super::{HEURISTICS, HonestSizing};

/// CPU that may be granted for each core there is.
pub const FACTORS: [f64; 5] = [1.0, 1.25, 1.5, 1.75, 2.0];
/// Share of calls that may run more than 5 % longer.
const MOST_VIOLATIONS: f64 = 0.001;
/// Of all test hours the first so many minutes: five factors are five benchmarks.
const MINUTES: u32 = 60;

/// One policy at one load and one factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverCommitted {
    /// The policy.
    pub policy: &'static str,
    /// The load.
    pub load: f64,
    /// CPU that may be granted for each core there is.
    pub factor: f64,
    /// Whether this is the policy's best factor at this load.
    pub is_best: bool,
    /// Means over seeds.
    #[serde(flatten)]
    pub service: Service,
}

impl HonestSizing {
    /// Every incumbent and `windfall` at every factor, on part of the test hours.
    pub(super) fn play_over_commit(
        &self,
        watcher: &dyn Watcher,
    ) -> Result<Vec<OverCommitted>, SweepError> {
        let mut part = self.clone();
        part.minutes = Some(self.minutes.map_or(MINUTES, |minutes| minutes.min(MINUTES)));
        let policies = || std::iter::once("windfall").chain(HEURISTICS);
        let mut all = Vec::new();
        for factor in FACTORS {
            let mut scenario = part.scenario(policies().map(str::to_owned).collect());
            scenario.over_commit_cpu = factor;
            let played = Sweep { scenario: &scenario, threads: self.threads }.play(watcher)?;
            let comparison = Comparison::new(played.rows, "windfall");
            for (load, policy) in comparison
                .loads()
                .into_iter()
                .flat_map(|load| policies().map(move |one| (load, one)))
            {
                let Some(service) = Service::of(&comparison, load, policy) else { continue };
                all.push(OverCommitted { policy, load, factor, is_best: false, service });
            }
        }
        mark_best(&mut all);
        Ok(all)
    }
}

/// Marks the best factor of every policy at every load.
fn mark_best(all: &mut [OverCommitted]) {
    for place in 0..all.len() {
        let OverCommitted { policy, load, factor, .. } = all[place];
        let rivals = all.iter().filter(|other| (other.policy, other.load) == (policy, load));
        let allowed = rivals.filter(|other| other.service.violation_share <= MOST_VIOLATIONS);
        let best = allowed.min_by(|a, b| {
            a.service.bounded_slowdown_p99.total_cmp(&b.service.bounded_slowdown_p99)
        });
        let is_best = best.map_or(FACTORS[0], |best| best.factor) == factor;
        all[place].is_best = is_best;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(factor: f64, bounded_slowdown_p99: f64, violation_share: f64) -> OverCommitted {
        let service = Service { bounded_slowdown_p99, violation_share, ..Service::default() };
        OverCommitted { policy: "histogram", load: 1.0, factor, is_best: false, service }
    }

    fn best(mut all: Vec<OverCommitted>) -> Vec<f64> {
        mark_best(&mut all);
        all.iter().filter(|one| one.is_best).map(|one| one.factor).collect()
    }

    #[test]
    fn the_best_factor_waits_least_without_slowing_calls_that_run() {
        assert_eq!(
            best(vec![at(1.0, 9.0, 0.0), at(1.25, 4.0, 0.0005), at(1.5, 2.0, 0.02)]),
            [1.25]
        );
        assert_eq!(
            best(vec![at(1.0, 9.0, 0.3), at(1.25, 4.0, 0.4)]),
            [1.0],
            "none keeps its promise"
        );
        assert_eq!(
            best(vec![at(1.0, 1.0, 0.0), at(1.25, 1.0, 0.0)]),
            [1.0],
            "no more than it takes"
        );
    }
}
