//! Greedy: one step down after a call that left resources unused, one step up after any other.
//!
//! The FaaSRM authors' Greedy RM. Per resource, based on the function's most recently finished call:
//!
//! ```text
//!   peak / grant <= 0.9 :  next = grant - step   (at least the floor)
//!   otherwise           :  next = grant + step   (at most the ceiling)
//! ```
//!
//! Reserved 4 cores, demand 2.5 cores: 4, 3, 2, 3, 2, .. Three cores leave a sixth unused, two are fully
//! used, so it oscillates around the demand and every second call is slow. It runs without a safeguard, to
//! show what harvesting without one does.

use serde::{Deserialize, Serialize};
use windfall_core::{CallDecision, CallOutcome, CallPolicy, CallView, PolicyError};

use crate::per_function::PerFunction;

/// Settings of [`Greedy`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GreedySettings {
    /// A call that used at most this share of its grant counts as having left resources unused.
    pub threshold: f64,
    /// Levels per step: 1 in the paper's text, 2 in its simulator.
    pub step: f64,
    /// One level of CPU, cores.
    pub level_cpu_cores: f64,
    /// One level of memory, MiB.
    pub level_memory_mib: f64,
    /// Minimum grant, in levels. The paper's 1 would exceed many reservations here.
    pub floor: f64,
}

impl Default for GreedySettings {
    fn default() -> Self {
        Self { threshold: 0.9, step: 1.0, level_cpu_cores: 1.0, level_memory_mib: 64.0, floor: 0.1 }
    }
}

/// One step down or up after every call, without a safeguard.
#[derive(Clone, Debug, Default)]
pub struct Greedy {
    settings: GreedySettings,
    /// `None` until the first call has finished.
    next: PerFunction<Option<NextGrant>>,
}

/// What the next call gets, up to its ceiling.
#[derive(Clone, Copy, Debug)]
struct NextGrant {
    cpu_cores: f64,
    memory_mib: f64,
}

impl Greedy {
    /// Creates a policy without history.
    pub fn new(settings: GreedySettings) -> Self {
        Self { settings, next: PerFunction::default() }
    }

    /// Next grant after a call with this `peak` and `grant`. The ceiling is applied at dispatch.
    fn step(&self, peak: f64, grant: f64, level: f64) -> f64 {
        let step = self.settings.step * level;
        if peak <= self.settings.threshold * grant {
            (grant - step).max(self.settings.floor * level)
        } else {
            grant + step
        }
    }
}

impl CallPolicy for Greedy {
    fn name(&self) -> &str {
        "greedy"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let Some(NextGrant { cpu_cores, memory_mib }) = *self.next.state(call.function) else {
            return Ok(CallDecision::exactly(call.reservation, "the first call"));
        };
        Ok(CallDecision {
            cpu_cores: cpu_cores.min(call.ceiling.cpu.cores()),
            memory_mib: memory_mib.min(call.ceiling.memory.mib()),
            ..CallDecision::exactly(call.reservation, "one step from the last call")
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let GreedySettings { level_cpu_cores, level_memory_mib, .. } = self.settings;
        let grant = outcome.last_grant;
        *self.next.state(outcome.function) = Some(NextGrant {
            cpu_cores: self.step(outcome.cpu_peak_cores, grant.cpu.cores(), level_cpu_cores),
            memory_mib: self.step(outcome.memory_peak_mib, grant.memory.mib(), level_memory_mib),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{FakePlatform, one_core_second, outcome, view};
    use windfall_core::{Allocation, CallDemand, Mebibytes, MilliCpu};

    const CEILING: Allocation = Allocation::new(8000, 1024);

    #[test]
    fn it_oscillates_around_the_demand() {
        let mut platform = FakePlatform::new(Allocation::new(4000, 512), CEILING);
        let demand = CallDemand { parallelism: MilliCpu::new(2500), ..one_core_second() };
        let mut greedy = Greedy::default();
        let grants: Vec<u32> =
            (0..6).map(|_| platform.call(&mut greedy, demand).first_grant.cpu.get()).collect();
        assert_eq!(grants, [4000, 3000, 2000, 3000, 2000, 3000]);
    }

    #[test]
    fn it_slows_down_and_kills_calls() {
        let mut platform = FakePlatform::new(Allocation::new(2000, 512), CEILING);
        // 512, 448, 384 MiB leave a tenth or more unused; a grant of 320 MiB kills the call.
        let demand = CallDemand { memory_peak: Mebibytes::new(340), ..one_core_second() };
        let mut greedy = Greedy::default();
        let (mut slow, mut killed) = (0, 0);
        for _ in 0..10 {
            let call = platform.call(&mut greedy, demand);
            slow +=
                u32::from(call.run > one_core_second().run_time(MilliCpu::new(2000)).scaled(1.05));
            killed += u32::from(call.was_killed);
        }
        assert!(slow >= 3, "{slow} of 10 were slowed down");
        assert!(killed >= 1, "{killed} of 10 were killed");
    }

    #[test]
    fn a_step_of_two_levels_as_in_the_papers_simulator() {
        let settings = GreedySettings { step: 2.0, ..GreedySettings::default() };
        let mut greedy = Greedy::new(settings);
        let user = Allocation::new(4000, 512);
        greedy.learn(&outcome(user, user, 1.0, 500.0));
        let decision = greedy.size(&view(user, CEILING)).unwrap();
        assert_eq!((decision.cpu_cores, decision.memory_mib), (2.0, 640.0));
    }

    #[test]
    fn floor_and_ceiling_hold() {
        let mut greedy = Greedy::default();
        let user = Allocation::new(250, 1024);
        greedy.learn(&outcome(user, user, 0.1, 1020.0));
        let decision = greedy.size(&view(user, CEILING)).unwrap();
        assert_eq!((decision.cpu_cores, decision.memory_mib), (0.1, 1024.0));
    }
}
