//! ENSURE's scaling: square-root staffing, packed on as few nodes as possible.
//!
//! A function that keeps `N` slots busy gets `N + beta sqrt(N)`: the headroom covers the standard deviation
//! of the load, which grows with its square root.
//!
//! ```text
//!   N = the mean number of calls in the system; a rise counts immediately, a fall decays by half-life
//!   instances = ceil((N + beta sqrt(N)) / concurrency)
//!
//!   N = 4   6 instances, 50 % headroom           N = 100   110 instances, 10 % headroom
//! ```
//!
//! Packing: instances above the target are released after a short keep-alive, so that load concentrates on
//! the remaining instances and nodes while the others become idle. If memory does not suffice for all
//! functions, all headrooms shrink by the same share; instances for the load itself are not cut here.

use serde::{Deserialize, Serialize};
use windfall_core::{Decision, Duration, Observation, Policy, PolicyError, Setting, Target};

use crate::holt::weight;
use crate::per_function::PerFunction;

/// Settings of [`EnsureScaling`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnsureScalingSettings {
    /// Headroom in square roots of the load.
    pub beta: f64,
    /// Half-life of a falling load, seconds.
    pub half_life_seconds: f64,
    /// Load in calls below which a function counts as idle and gets no instance.
    pub idle_load: f64,
    /// Keep-alive of instances above the target number, seconds.
    pub keep_alive_seconds: f64,
}

impl Default for EnsureScalingSettings {
    fn default() -> Self {
        Self { beta: 1.0, half_life_seconds: 30.0, idle_load: 0.001, keep_alive_seconds: 60.0 }
    }
}

/// Square-root staffing, packed.
#[derive(Clone, Debug, Default)]
pub struct EnsureScaling {
    settings: EnsureScalingSettings,
    load: PerFunction<f64>,
}

/// Instances for one function before they are fitted into the cluster's memory.
struct Staffing {
    target: Target,
    for_load: f64,
    for_headroom: f64,
    instance_mib: f64,
}

impl EnsureScaling {
    /// Creates a policy without history.
    pub fn new(settings: EnsureScalingSettings) -> Self {
        Self { settings, load: PerFunction::default() }
    }

    fn staffing(&mut self, seen: &Observation) -> Vec<Staffing> {
        let settings = self.settings;
        let fading = weight(seen.window, Duration::from_secs_f64(settings.half_life_seconds));
        let keep_alive = Duration::from_secs_f64(settings.keep_alive_seconds);
        let mut staffings = Vec::with_capacity(seen.functions.len());
        for view in &seen.functions {
            let load = self.load.state(view.function);
            // `max` discards NaN, and an infinite load would become NaN one tick later.
            let most = f64::from(u32::MAX);
            let now = view.mean_concurrency.max(f64::from(view.queued)).min(most);
            *load = now.max(*load + fading * (now - *load));
            let busy = if *load < settings.idle_load { 0.0 } else { *load };
            let slots = f64::from(view.concurrency.max(1));
            let for_load = (busy / slots).ceil();
            let total = ((busy + settings.beta * busy.sqrt()) / slots).ceil();
            staffings.push(Staffing {
                target: Target {
                    keep_alive: Setting::Set(keep_alive),
                    ..Target::keep(view.function)
                },
                for_load,
                for_headroom: (total - for_load).max(0.0),
                instance_mib: view.allocation.memory.mib(),
            });
        }
        staffings
    }
}

/// Share of all headrooms that fits into `capacity_mib`.
fn affordable(staffings: &[Staffing], capacity_mib: f64) -> f64 {
    let load: f64 =
        staffings.iter().map(|staffing| staffing.for_load * staffing.instance_mib).sum();
    let headroom: f64 =
        staffings.iter().map(|staffing| staffing.for_headroom * staffing.instance_mib).sum();
    if load + headroom > capacity_mib {
        ((capacity_mib - load) / headroom.max(1.0)).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

impl Policy for EnsureScaling {
    fn name(&self) -> &str {
        "ensure-scaling"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let staffings = self.staffing(seen);
        let share = affordable(&staffings, seen.cluster.capacity_mib);
        let mut held_mib = 0.0;
        let mut targets = Vec::with_capacity(staffings.len());
        for staffing in staffings {
            let instances = staffing.for_load + (share * staffing.for_headroom).floor();
            held_mib += instances * staffing.instance_mib;
            targets.push(Target { instances: Setting::Set(instances), ..staffing.target });
        }
        let nodes = f64::from(seen.cluster.nodes);
        let fewest = (held_mib * nodes / seen.cluster.capacity_mib.max(1.0)).ceil();
        let reason = format!("square-root staffing, fits on {fewest} of {nodes} nodes");
        Ok(Decision { targets, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tick::{function, observation};
    use windfall_core::FunctionView;

    fn loaded(id: u32, mean_concurrency: f64) -> FunctionView {
        FunctionView { mean_concurrency, ..function(id) }
    }

    fn instances(policy: &mut EnsureScaling, functions: Vec<FunctionView>) -> Vec<f64> {
        let decision = policy.decide(&observation(functions)).unwrap();
        decision.targets.iter().filter_map(|target| target.instances.value()).collect()
    }

    #[test]
    fn headroom_is_the_square_root_of_the_load() {
        let mut policy = EnsureScaling::default();
        let shared = FunctionView { concurrency: 10, ..loaded(3, 100.0) };
        let functions = vec![loaded(0, 4.0), loaded(1, 100.0), loaded(2, 0.0), shared];
        assert_eq!(instances(&mut policy, functions), [6.0, 110.0, 0.0, 11.0]);
    }

    #[test]
    fn a_rise_counts_immediately_and_a_fall_by_half_life() {
        let mut policy = EnsureScaling::default();
        assert_eq!(instances(&mut policy, vec![loaded(0, 1.0)]), [2.0]);
        assert_eq!(instances(&mut policy, vec![loaded(0, 64.0)]), [72.0]);
        // 15 windows of 2 s are one half-life: 32 + 5.66.
        let falling: Vec<_> =
            (0..15).map(|_| instances(&mut policy, vec![loaded(0, 0.0)])[0]).collect();
        assert_eq!(falling[14], 38.0);
        for _ in 0..300 {
            instances(&mut policy, vec![loaded(0, 0.0)]);
        }
        assert_eq!(instances(&mut policy, vec![loaded(0, 0.0)]), [0.0]);
    }

    #[test]
    fn headroom_is_cut_before_the_load_when_memory_is_short() {
        // 64 GiB hold 256 instances of 256 MiB: 200 for the load, 56 for headrooms of 10 each.
        let functions: Vec<_> = (0..2).map(|id| loaded(id, 100.0)).collect();
        assert_eq!(instances(&mut EnsureScaling::default(), functions), [110.0, 110.0]);
        let mut seen = observation((0..2).map(|id| loaded(id, 100.0)).collect());
        seen.cluster.capacity_mib = 210.0 * 256.0;
        let decision = EnsureScaling::default().decide(&seen).unwrap();
        assert_eq!(decision.targets[0].instances, Setting::Set(105.0));
        assert_eq!(decision.reason, "square-root staffing, fits on 4 of 4 nodes");
        seen.cluster.capacity_mib = 100.0 * 256.0;
        let decision = EnsureScaling::default().decide(&seen).unwrap();
        assert_eq!(decision.targets[0].instances, Setting::Set(100.0));
    }

    #[test]
    fn a_load_of_nan_counts_as_zero() {
        let odd = FunctionView { concurrency: 0, ..loaded(0, f64::NAN) };
        assert_eq!(instances(&mut EnsureScaling::default(), vec![odd]), [0.0]);
    }
}
