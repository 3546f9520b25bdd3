//! Peak claims: weights without ceilings, and nodes that take calls until a high quantile of what each one uses adds up
//! to their cores. Two published rules differ in the quantile alone:
//!
//! ```text
//!   histogram   1.05 x Q99 of the function's peaks, at most the reservation                        (Autopilot-like)
//!   rc-like     Q95 of what its calls use, sampled in windows of about 100 ms, at most the reservation
//!                                                              (Bashir et al., EuroSys 2021: sum of the tasks' p95)
//! ```
//!
//! A function that reserves 4 cores, peaks at 2 and waits for half of its time claims 2.1 cores by the first rule and 2
//! by the second, as long as more than 5 % of its windows are busy. Until three calls have ended, a call claims its
//! reservation. What a call claims decides where it may start, never how much it gets.

use serde::{Deserialize, Serialize};
use windfall_core::{
    CallDecision, CallOutcome, CallPolicy, CallView, CpuCeiling, CpuDemand, Duration, FunctionId,
    PolicyError, QuantileWindow, RunningCall,
};

use crate::per_function::PerFunction;

/// Which quantile a call claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimRule {
    /// A high quantile of the peaks, with a margin.
    #[default]
    Peaks,
    /// A quantile of use in short windows.
    Use,
    /// Its reservation: the node's own use decides the rest.
    Reservation,
}

/// Settings of [`PeakClaims`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeakClaimsSettings {
    /// Which quantile a call claims.
    pub rule: ClaimRule,
    /// The quantile.
    pub quantile: f64,
    /// Added to it, as a share.
    pub margin: f64,
    /// Finished calls before a call claims anything but its reservation.
    pub warm_calls: usize,
    /// Number of recent values that count.
    pub window: usize,
    /// Time between two looks, where use is sampled.
    pub look_millis: u64,
}

impl Default for PeakClaimsSettings {
    fn default() -> Self {
        Self {
            rule: ClaimRule::Peaks,
            quantile: 0.99,
            margin: 0.05,
            warm_calls: 3,
            window: 512,
            look_millis: 100,
        }
    }
}

impl PeakClaimsSettings {
    /// The sum of the tasks' 95th percentiles.
    pub fn rc_like() -> Self {
        Self { rule: ClaimRule::Use, quantile: 0.95, margin: 0.0, ..Self::default() }
    }

    /// Reservations, for predictors that go by the node's use.
    pub fn reservation() -> Self {
        Self { rule: ClaimRule::Reservation, ..Self::default() }
    }
}

/// What is known of one function.
#[derive(Clone, Debug)]
struct Known {
    values: QuantileWindow,
    finished: usize,
}

/// Weights without ceilings; admission by a quantile of use.
#[derive(Clone, Debug, Default)]
pub struct PeakClaims {
    name: &'static str,
    settings: PeakClaimsSettings,
    functions: PerFunction<Option<Known>>,
}

impl PeakClaims {
    /// Creates a policy without history, called `name` in the registry.
    pub fn new(name: &'static str, settings: PeakClaimsSettings) -> Self {
        Self { name, settings, functions: PerFunction::default() }
    }

    fn known(&mut self, function: FunctionId) -> &mut Known {
        let window = self.settings.window;
        self.functions
            .state(function)
            .get_or_insert_with(|| Known { values: QuantileWindow::new(window), finished: 0 })
    }

    fn claim(&mut self, call: &CallView) -> Option<CpuDemand> {
        let PeakClaimsSettings { rule, quantile, margin, warm_calls, .. } = self.settings;
        if rule == ClaimRule::Reservation {
            return None;
        }
        let known = self.known(call.function);
        let value = known.values.quantile(quantile).filter(|_| known.finished >= warm_calls)?;
        Some(CpuDemand::constant((value * (1.0 + margin)).min(call.reservation.cpu.cores())))
    }
}

impl CallPolicy for PeakClaims {
    fn name(&self) -> &str {
        self.name
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let samples = self.settings.rule != ClaimRule::Peaks;
        Ok(CallDecision {
            cpu_ceiling: CpuCeiling::Unlimited,
            demand: self.claim(call),
            look_after: samples.then_some(Duration::from_millis(self.settings.look_millis)),
            ..CallDecision::exactly(call.reservation, "the user's size as a weight")
        })
    }

    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        let used = running.sensed.cpu_used_cores;
        if self.settings.rule == ClaimRule::Use {
            self.known(running.function).values.push(used);
        }
        Ok(CallDecision {
            cpu_ceiling: CpuCeiling::Unlimited,
            look_after: Some(Duration::from_millis(self.settings.look_millis)),
            ..CallDecision::exactly(running.grant, "as it is")
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let PeakClaimsSettings { rule, look_millis, .. } = self.settings;
        let known = self.known(outcome.function);
        known.finished += usize::from(!outcome.was_killed);
        match rule {
            ClaimRule::Peaks => known.values.push(outcome.cpu_peak_cores),
            // A call that ended before its first look is one window.
            ClaimRule::Use if outcome.run() < Duration::from_millis(look_millis) => {
                known.values.push(outcome.cpu_mean_cores);
            }
            ClaimRule::Use | ClaimRule::Reservation => {}
        }
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
    fn after_three_calls_a_call_claims_the_quantile_and_is_guaranteed_its_reservation() {
        let mut policy = PeakClaims::new("weights-histogram", PeakClaimsSettings::default());
        for _ in 0..3 {
            let decision = policy.size(&view(USER, CEILING)).unwrap();
            assert_eq!((decision.demand, decision.cpu_cores), (None, 4.0));
            policy.learn(&outcome(USER, USER, 2.0, 100.0));
        }
        let decision = policy.size(&view(USER, CEILING)).unwrap();
        assert_eq!((decision.demand, decision.cpu_cores), (Some(CpuDemand::constant(2.1)), 4.0));
        policy.learn(&outcome(USER, USER, 6.0, 100.0));
        let decision = policy.size(&view(USER, CEILING)).unwrap();
        assert_eq!(decision.demand, Some(CpuDemand::constant(4.0)), "no more than is reserved");
    }
}
