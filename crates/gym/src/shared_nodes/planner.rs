//! What a coordinator would do that knew the load to come: the oracle of the shared nodes.
//!
//! ```text
//!   instances   fewest n whose M/M/n queue at full speed pays best for the rate of the next 10 s, backlog added
//!   shares      what an instance will use: weights in proportion to need, so that a full node slows all alike
//!   memory      the usual call and three deviations more
//! ```
//!
//! It is no bound: it plans a tick at a time and for Poisson arrivals.

use crate::moves::{CPU_STEP, Deployment, MEMORY_STEP};
use crate::oracle::expected;
use crate::profile::ServiceProfile;
use crate::reward::RewardSettings;
use crate::shared_nodes::world::SharedWorld;

/// What every function is to have.
pub fn plan(world: &SharedWorld, reward: &RewardSettings) -> Vec<Deployment> {
    (0..world.count()).map(|function| plan_one(world, function, reward)).collect()
}

fn plan_one(world: &SharedWorld, function: usize, reward: &RewardSettings) -> Deployment {
    let (profile, range) = (world.profile(function), world.range());
    let queued = f64::from(world.seen().functions[function].queued);
    let coming = world.rate_to_come(function, 0.0).max(world.rate_to_come(function, 10.0));
    let rate = coming + queued / 10.0;
    let memory = (1.27 * f64::from(profile.memory_mib)) as u32;
    let memory = (memory.div_ceil(MEMORY_STEP) * MEMORY_STEP).clamp(range.memory.0, range.memory.1);
    let value = |instances: u32| {
        let cpu = shares(&profile, rate, instances, range.cpu);
        let whole = Deployment { instances, cpu: profile.parallelism, memory };
        // At full speed for the objective, at its shares for what is used.
        let served = expected(&profile, rate, whole, &RewardSettings { alpha: 1.0, ..*reward });
        let used = rate * profile.mean_work() * 1024.0 / f64::from(instances * cpu);
        (reward.alpha * served + 0.5 * (1.0 - reward.alpha) * used.min(1.0), cpu)
    };
    let mut best = (f64::NEG_INFINITY, range.instances.0.max(1), range.cpu.1);
    for instances in range.instances.0.max(1)..=range.instances.1 {
        let (worth, cpu) = value(instances);
        if worth > best.0 + 1e-4 {
            best = (worth, instances, cpu);
        }
    }
    Deployment { instances: steady(world, function, best.1), cpu: best.2, memory }
}

/// What one of `instances` uses, in whole steps.
fn shares(profile: &ServiceProfile, rate: f64, instances: u32, (least, most): (u32, u32)) -> u32 {
    let used = 1024.0 * rate * profile.mean_work() / f64::from(instances);
    ((used / f64::from(CPU_STEP)).ceil() as u32 * CPU_STEP).clamp(least, most)
}

/// `instances`, unless that turned back at once, which pays -1: then what there is.
pub fn steady(world: &SharedWorld, function: usize, instances: u32) -> u32 {
    let now = world.deployment(function).instances;
    let goes = instances.cmp(&now) as i32;
    if goes * world.turned(function) < 0 { now } else { instances }
}
