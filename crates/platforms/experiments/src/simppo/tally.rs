//! What the functions of an episode came to, in the terms of the simulated tables.

use windfall_core::statistics::nearest_rank;
use windfall_gym::profile::ServiceProfile;
use windfall_gym::reward::Earned;
use windfall_papers::simppo::online::OnlineRow;

/// What a call without an answer counts as, milliseconds.
const TIME_OUT_MS: f64 = windfall_gym::meter::TIME_OUT_MS;

#[derive(Clone, Debug, Default)]
struct Own {
    latencies_ms: Vec<f64>,
    late: u32,
    preserved: f64,
    utilisation: f64,
    core_seconds: f64,
    ticks: f64,
}

/// Counts of every function since the warm-up.
#[derive(Clone, Debug)]
pub(super) struct Tally(Vec<Own>);

impl Tally {
    pub(super) fn new(functions: usize) -> Self {
        Self(vec![Own::default(); functions])
    }

    /// A call ended after so many milliseconds of the environment, or without an answer.
    pub(super) fn call(&mut self, function: usize, latency_ms: Option<f64>, slo_ms: f64) {
        let latency = latency_ms.unwrap_or(TIME_OUT_MS);
        let own = &mut self.0[function];
        own.late += u32::from(latency > slo_ms);
        own.latencies_ms.push(latency);
    }

    /// A tick ended in which a function held so many core-seconds.
    pub(super) fn tick(&mut self, function: usize, core_seconds: f64, earned: &Earned) {
        let own = &mut self.0[function];
        own.preserved += earned.preserved;
        own.utilisation += earned.cpu_utilisation;
        own.core_seconds += core_seconds;
        own.ticks += 1.0;
    }

    /// The row of one function.
    pub(super) fn row(
        &self,
        (policy, seed): (&str, u64),
        function: usize,
        profile: &ServiceProfile,
        reward: f64,
    ) -> OnlineRow {
        let own = &self.0[function];
        let mut latencies = own.latencies_ms.clone();
        latencies.sort_by(f64::total_cmp);
        let ticks = own.ticks.max(1.0);
        OnlineRow {
            policy: policy.to_owned(),
            function: profile.name.to_owned(),
            seed,
            reward,
            p99_ms: nearest_rank(&latencies, 0.99).unwrap_or(0.0),
            slo_ms: profile.slo_ms,
            slo_preserved: own.preserved / ticks,
            utilisation: own.utilisation / ticks,
            core_seconds_granted: own.core_seconds,
            gib_seconds_granted: 0.0,
            judged_calls: latencies.len() as f64,
            violations: f64::from(own.late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_by_hand() {
        let mut tally = Tally::new(1);
        tally.call(0, Some(100.0), 540.0);
        tally.call(0, None, 540.0);
        let earned = Earned { preserved: 0.5, cpu_utilisation: 0.25, ..Earned::default() };
        tally.tick(0, 10.0, &earned);
        let row = tally.row(("fixed", 1), 0, &windfall_gym::profile::TWELVE[4], 0.4);
        assert_eq!((row.judged_calls, row.violations, row.p99_ms), (2.0, 1.0, TIME_OUT_MS));
        assert_eq!((row.slo_preserved, row.utilisation, row.reward), (0.5, 0.25, 0.4));
    }
}
