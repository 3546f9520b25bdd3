//! What a policy could do that knew the future: the true rate of the coming minute and the true service law.
//!
//! For every number of instances `n` and CPU size `c` it works out what a tick would pay and takes the best.
//!
//! ```text
//!   S    = run time on c            a = rate x S + backlog      wait: M/M/n, P(W > t) = C(n, a) e^-((n - a) t / S)
//!   SLO  = mean over waits of min(1, objective / (wait + S))    utilisation = rate x work / (n c)
//! ```
//!
//! It is no bound: it plans one tick at a time, for Poisson arrivals and without neighbours.

use windfall_core::{Duration, Timestamp};
use windfall_policy::erlang_c;

use crate::moves::{CPU_STEP, Deployment, Range};
use crate::profile::ServiceProfile;
use crate::reward::{Earned, RewardSettings};
use crate::traffic::FunctionSetup;

/// The best number and size of instances for what is to come.
pub fn best_deployment(
    setup: &FunctionSetup,
    (now, tick, queued): (Timestamp, Duration, u32),
    range: Range,
    reward: &RewardSettings,
) -> Deployment {
    let next = setup.rate_at(now + tick + tick);
    let rate = setup.rate_at(now).max(next) + f64::from(queued) / (2.0 * tick.as_secs_f64());
    let memory = memory_for(&setup.profile, range);
    let mut best = (f64::NEG_INFINITY, Deployment { instances: 1, cpu: range.cpu.1, memory });
    for step in 1..=range.cpu.1 / CPU_STEP {
        let cpu = step * CPU_STEP;
        // Beyond what a call can use, more CPU changes nothing.
        if cpu < range.cpu.0 || cpu >= setup.profile.parallelism + CPU_STEP {
            continue;
        }
        for instances in range.instances.0.max(1)..=range.instances.1 {
            let deployment = Deployment { instances, cpu, memory };
            let value = expected(&setup.profile, rate, deployment, reward);
            if value > best.0 {
                best = (value, deployment);
            }
        }
    }
    best.1
}

/// Memory for the usual call and three deviations more, in whole steps.
fn memory_for(profile: &ServiceProfile, range: Range) -> u32 {
    let wanted = (f64::from(profile.memory_mib) * 1.27) as u32;
    wanted.div_ceil(64).max(1).saturating_mul(64).clamp(range.memory.0, range.memory.1)
}

/// What a tick is expected to pay with `deployment` at `rate`.
pub fn expected(
    profile: &ServiceProfile,
    rate: f64,
    deployment: Deployment,
    reward: &RewardSettings,
) -> f64 {
    let cores = f64::from(deployment.cpu) * 1e-3;
    let (run, count) = (profile.mean_run(cores), f64::from(deployment.instances));
    let load = rate * run;
    let slo = profile.slo_ms * 1e-3;
    let preserved = if load >= count {
        // The queue grows and nobody is answered in time; but every instance helps.
        0.2 * count / load
    } else {
        let waits = erlang_c(deployment.instances, load);
        let drain = (count - load) / run;
        let after = |wait: f64| (slo / (wait + run)).min(1.0);
        // Five equally likely waits of those who wait.
        let late: f64 = [0.105, 0.357, 0.693, 1.204, 2.303]
            .iter()
            .map(|quantile| after(quantile / drain))
            .sum();
        (1.0 - waits) * after(0.0) + waits * late / 5.0
    };
    let used = (rate * profile.mean_work() / (count * cores)).min(1.0);
    let memory = (f64::from(profile.memory_mib) * 1.1 / f64::from(deployment.memory)).min(1.0);
    let earned = Earned {
        preserved,
        cpu_utilisation: used,
        memory_utilisation: memory,
        ..Earned::default()
    };
    reward.pay(&earned).total()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::profile::TWELVE;
    use std::sync::Arc;

    #[test]
    fn more_load_gets_more_cores() {
        let cores = |cores: f64| {
            let setup = FunctionSetup::busy(TWELVE[1], (Arc::new(Pattern::steady()), 0), cores);
            let now = (Timestamp::ZERO, Duration::from_secs(5), 0);
            let deployment =
                best_deployment(&setup, now, Range::default(), &RewardSettings::default());
            deployment.instances * deployment.cpu
        };
        assert!(cores(0.5) < cores(1.5) && cores(1.5) < cores(3.0));
        assert!(cores(1.5) > 1500);
    }
}
