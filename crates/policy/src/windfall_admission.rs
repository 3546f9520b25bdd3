//! Windfall's admission: weights carry the guarantee, and what is learned is how much each call will use, so that a
//! node can be filled until the running calls are likely to want all of it.
//!
//! ```text
//!   of a function   n calls, T = sum of run times, I1, I2 = sums of the integrals of u/r and (u/r)^2,  t = T / n
//!   mean            mu = r (I1 + 5 t) / (T + 5 t)                       as if five calls had used their reservation
//!   variance        s2 = r^2 (I2 + 5 * 1.04 t) / (T + 5 t) - mu^2
//!   of a running call of age e (seconds), with A, Q = integrals of u, u^2 so far
//!   mean            m = (mu / 2 + A) / (1/2 + e),   second moment (s2 + mu^2) / 2 + Q over the same
//! ```
//!
//! `u` is use clipped at the reservation `r`, because that is all that weights guarantee. A node takes the call if the
//! means and `z` standard deviations fit it (`windfall_control::admission`). A function of 4 reserved cores that uses 2
//! for half of its time counts with 1 core and a variance of 1 once it is known, where its reservation is 4; a running
//! call that has waited for 4.5 s counts with 0.1 cores and can still not surprise by more than its variance.
//!
//! A call's weight is its reservation, and it has no ceiling. Where a node is short of CPU all the same, its calls are
//! looked at every 5 ms, nobody gets more than is reserved, and calls that have slack give way to those that have none;
//! how far is the `slack-weights` safeguard's to say.

use serde::{Deserialize, Serialize};
use windfall_core::{
    CallDecision, CallId, CallOutcome, CallPolicy, CallView, CpuCeiling, CpuDemand, Duration,
    PolicyError, RunningCall, queue_order::Patience,
};

mod function_use;

use function_use::FunctionUse;

use crate::per_function::PerFunction;
use std::collections::BTreeMap;

/// Settings of [`WindfallAdmission`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WindfallAdmissionSettings {
    /// Standard deviations of the expected use that a node keeps free.
    pub z: f64,
    /// Calls that an unknown function counts with at its reservation.
    pub prior_calls: f64,
    /// Seconds of its function's use that a running call counts with beside its own.
    pub prior_seconds: f64,
    /// Whether a running call is re-estimated from its own use.
    pub per_call: bool,
    /// Whether mean use is predicted from the visible input.
    pub by_input: bool,
    /// First look at a call, and the shortest time between two.
    pub look_millis: f64,
    /// The next look comes after this share of the time the call has run.
    pub look_growth: f64,
    /// Whether memory is sized by past peaks and raised live; else it is what the user reserves.
    pub sizes_memory: bool,
    /// Whether calls that can afford it give way on nodes that are short of CPU.
    pub gives_way: bool,
    /// Share of its run alone that a call may lose by that.
    pub beta: f64,
    /// Weight of a call that gives way, as a share of its reservation.
    pub give_way_share: f64,
    /// Whether a call that had more than its reservation may give that back.
    pub credits: bool,
    /// Time between two looks on a node that is short of CPU.
    pub short_look_millis: f64,
    /// A call was harmed if others made it longer by more than this share of its run alone.
    pub harm_above: f64,
    /// Share of harmed calls above which a function counts with its reservation until it has recovered; 1 never does.
    pub harm_share: f64,
    /// Share of harmed calls that `z` is made to come to; `z` stays as it is if this is 0.
    pub harm_allowed: f64,
    /// What one harmed call adds to `z`.
    pub harm_step: f64,
    /// The least that is added to `z`,
    pub harm_least: f64,
    /// and the most.
    pub harm_most: f64,
    /// Whether a call that can afford it holds the lower weight before its node is short.
    pub ahead: bool,
    /// What a call counts with as a share of its expected use, by how long it runs and how long it has waited.
    pub shares: [f64; STATES],
}

/// States that [`WindfallAdmissionSettings::shares`] distinguishes: four of run time (below 100 ms, 1 s, 10 s, and above)
/// times three of waiting (not at all, less than its patience, more).
pub const STATES: usize = 12;

impl Default for WindfallAdmissionSettings {
    fn default() -> Self {
        Self {
            z: 0.0,
            prior_calls: 5.0,
            prior_seconds: 0.5,
            per_call: true,
            by_input: false,
            look_millis: 20.0,
            look_growth: 0.25,
            sizes_memory: false,
            gives_way: true,
            beta: 0.04,
            give_way_share: 0.05,
            credits: true,
            short_look_millis: 5.0,
            harm_above: 0.05,
            harm_share: 0.05,
            harm_allowed: 0.0005,
            harm_step: 0.02,
            harm_least: -0.25,
            harm_most: 2.0,
            ahead: true,
            shares: [1.0; STATES],
        }
    }
}

/// Share of its limit from which a call's memory is raised.
const NEAR_LIMIT: f64 = 0.85;

/// Where one class of run times ends and the next begins.
const CLASS_ENDS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(10)];

/// What was seen of a running call.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// What was expected when it started.
    expected: CpuDemand,
    /// Core-seconds used, clipped at the reservation, and the same squared.
    used: f64,
    squared: f64,
    seconds: f64,
}

/// Expected use per call; the reservation as a weight.
#[derive(Clone, Debug)]
pub struct WindfallAdmission {
    name: &'static str,
    settings: WindfallAdmissionSettings,
    functions: PerFunction<FunctionUse>,
    running: BTreeMap<CallId, Watched>,
}

impl WindfallAdmission {
    /// Creates a policy without history.
    pub fn new(settings: WindfallAdmissionSettings) -> Self {
        Self::named("windfall-admission", settings)
    }

    /// The same under another name, for a bound that fills nodes by other means.
    pub fn named(name: &'static str, settings: WindfallAdmissionSettings) -> Self {
        Self { name, settings, functions: PerFunction::default(), running: BTreeMap::new() }
    }

    /// Its settings.
    pub fn settings(&self) -> WindfallAdmissionSettings {
        self.settings
    }

    fn next_look(&self, seconds: f64) -> Duration {
        let soonest = self.settings.look_millis.max(1.0) * 1e-3;
        Duration::from_secs_f64((seconds * self.settings.look_growth).max(soonest))
    }

    /// What a call that is about to start is expected to use.
    fn expected(&mut self, call: &CallView) -> CpuDemand {
        let WindfallAdmissionSettings { prior_calls, by_input, shares, .. } = self.settings;
        let function = self.functions.state(call.function);
        let input = call.input.filter(|_| by_input);
        let mut expected = function.expected(call.reservation.cpu.cores(), input, prior_calls);
        let run = function.mean_run();
        let waited = call.now.since(call.arrived_at);
        expected.mean_cores *= shares[state(run, waited)];
        expected
    }
}

/// The state of a call that has `waited`, as [`WindfallAdmissionSettings::shares`] counts them.
fn state(mean_run: Option<Duration>, waited: Duration) -> usize {
    let Patience { run, late_after } = Patience::new(mean_run);
    let class = CLASS_ENDS.iter().take_while(|&&end| run >= end).count();
    let waiting = match waited {
        Duration::ZERO => 0,
        _ if waited <= late_after => 1,
        _ => 2,
    };
    3 * class + waiting
}

impl Default for WindfallAdmission {
    fn default() -> Self {
        Self::new(WindfallAdmissionSettings::default())
    }
}

impl Watched {
    fn see(&mut self, used: f64, burst: f64, seconds: f64) {
        self.used += used * seconds;
        self.squared += used * burst.max(used) * seconds;
        self.seconds += seconds;
    }

    /// What is expected of the call from now on.
    fn estimate(&self, prior_seconds: f64) -> CpuDemand {
        let CpuDemand { mean_cores, variance } = self.expected;
        let weight = prior_seconds + self.seconds;
        let mean = (prior_seconds * mean_cores + self.used) / weight.max(1e-9);
        let second = prior_seconds * (variance + mean_cores * mean_cores) + self.squared;
        let variance = (second / weight.max(1e-9) - mean * mean).max(0.0);
        CpuDemand { mean_cores: mean, variance }
    }
}

impl CallPolicy for WindfallAdmission {
    fn name(&self) -> &str {
        self.name
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let expected = self.expected(call);
        let sizes_memory = self.settings.sizes_memory;
        let function = self.functions.state(call.function);
        let expected_run = function.mean_run();
        let reserved = call.reservation.memory.mib();
        let sized = function.memory_mib().filter(|_| sizes_memory);
        Ok(CallDecision {
            memory_mib: sized.map_or(reserved, |mib| mib.min(reserved)),
            cpu_ceiling: CpuCeiling::Unlimited,
            demand: Some(expected),
            expected_run,
            look_after: self.settings.per_call.then(|| self.next_look(0.0)),
            ..CallDecision::exactly(call.reservation, "the user's size as a weight")
        })
    }

    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        let reserved = running.reservation.cpu.cores();
        let prior_calls = self.settings.prior_calls;
        let function = self.functions.state(running.function);
        let burst = function.burst().unwrap_or(0.0) * reserved;
        let expected = || function.expected(reserved, running.input, prior_calls);
        let watched = self.running.entry(running.id).or_insert_with(|| Watched {
            expected: expected(),
            used: 0.0,
            squared: 0.0,
            seconds: 0.0,
        });
        let used = running.sensed.cpu_used_cores.min(reserved);
        watched.see(used, burst, running.sensed.window.as_secs_f64());
        let mut demand = watched.estimate(self.settings.prior_seconds);
        let state = state(function.mean_run(), Duration::ZERO);
        demand.mean_cores *= self.settings.shares[state];
        // Where cores are short nobody gets more than is reserved, and whoever has slack steps back.
        let WindfallAdmissionSettings { gives_way, give_way_share, ahead, .. } = self.settings;
        let is_short = running.node_is_short && gives_way;
        let cpu_ceiling = if is_short { CpuCeiling::At(reserved) } else { CpuCeiling::Unlimited };
        let cpu_cores = if is_short || ahead { reserved * give_way_share } else { reserved };
        // A call that nears its limit gets its reservation back before it is killed.
        let held = running.grant.memory.mib();
        let is_near = running.sensed.memory_mib > NEAR_LIMIT * held;
        let held = if is_near { held.max(running.reservation.memory.mib()) } else { held };
        Ok(CallDecision {
            cpu_cores,
            cpu_ceiling,
            memory_mib: held,
            demand: Some(demand),
            look_after: Some(self.next_look(running.elapsed().as_secs_f64())),
            ..CallDecision::exactly(running.grant, "the user's size as a weight")
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        self.running.remove(&outcome.id);
        let function = self.functions.state(outcome.function);
        function.learn(outcome);
        if self.settings.sizes_memory {
            function.learn_memory(outcome);
        }
    }

    fn lost(&mut self, call: CallId) {
        self.running.remove(&call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{outcome, view};
    use windfall_core::Allocation;

    const USER: Allocation = Allocation::new(4000, 512);
    const CEILING: Allocation = Allocation::new(8000, 1024);

    #[test]
    fn an_unknown_function_counts_with_its_reservation_and_a_known_one_with_its_use() {
        let mut policy = WindfallAdmission::default();
        let first = policy.size(&view(USER, CEILING)).unwrap();
        assert_eq!((first.cpu_cores, first.cpu_ceiling), (4.0, CpuCeiling::Unlimited));
        let demand = first.demand.expect("an estimate");
        assert!((demand.mean_cores - 4.0).abs() < 1e-9 && demand.variance < 1.0, "{demand:?}");
        let mut used = outcome(USER, USER, 2.0, 100.0);
        used.cpu_mean_cores = 1.0;
        (0..2000).for_each(|_| policy.learn(&used));
        let demand = policy.size(&view(USER, CEILING)).unwrap().demand.expect("an estimate");
        assert!((demand.mean_cores - 1.0).abs() < 0.02, "{demand:?}");
        assert!((demand.variance - 1.0).abs() < 0.05, "{demand:?}");
    }

    #[test]
    fn a_running_call_that_waits_counts_less_and_less() {
        let expected = CpuDemand { mean_cores: 1.0, variance: 1.0 };
        let mut watched = Watched { expected, used: 0.0, squared: 0.0, seconds: 0.0 };
        assert_eq!(watched.estimate(0.5), expected);
        watched.see(0.0, 2.0, 4.5);
        let CpuDemand { mean_cores, variance } = watched.estimate(0.5);
        assert!((mean_cores - 0.1).abs() < 1e-9 && (variance - 0.19).abs() < 1e-9, "{variance}");
    }
}
