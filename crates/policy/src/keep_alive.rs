//! Keep-alive: an idle instance stays for a fixed time. This is the policy's only decision.
//!
//! It is what platforms do by default: OpenWhisk and Azure keep an idle instance for 10 minutes. A function
//! called every 9 minutes has no cold starts and holds its memory all the time; one called every 11 minutes
//! always starts cold and holds its memory ten elevenths of the time.

use serde::{Deserialize, Serialize};
use windfall_core::{
    Decision, Duration, Observation, Policy, PolicyError, Setting, Target, TickRecord,
};

use crate::per_function::PerFunction;

/// Settings of [`KeepAlive`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepAliveSettings {
    /// Keep-alive of an idle instance, seconds.
    pub keep_alive_seconds: f64,
}

impl Default for KeepAliveSettings {
    fn default() -> Self {
        Self { keep_alive_seconds: 600.0 }
    }
}

/// The same keep-alive for all functions; starts are left to the platform.
#[derive(Clone, Debug, Default)]
pub struct KeepAlive {
    settings: KeepAliveSettings,
    /// Whether the platform has accepted the keep-alive of the function.
    is_set: PerFunction<bool>,
}

impl KeepAlive {
    /// Creates a policy that has not set any keep-alive yet.
    pub fn new(settings: KeepAliveSettings) -> Self {
        Self { settings, is_set: PerFunction::default() }
    }
}

impl Policy for KeepAlive {
    fn name(&self) -> &str {
        "keep-alive"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let keep_alive = Duration::from_secs_f64(self.settings.keep_alive_seconds);
        let targets = seen
            .functions
            .iter()
            .filter(|view| !*self.is_set.state(view.function))
            .map(|view| Target {
                keep_alive: Setting::Set(keep_alive),
                ..Target::keep(view.function)
            })
            .collect();
        Ok(Decision { targets, reason: format!("idle instances stay for {keep_alive}") })
    }

    /// A setting counts once the platform has accepted it; until then, or if it fails later, `decide` repeats it.
    fn feedback(&mut self, tick: &TickRecord) {
        for settled in tick.observation.settled.iter().filter(|one| one.has_failed()) {
            *self.is_set.state(settled.function) = false;
        }
        for target in tick.accepted() {
            if target.keep_alive != Setting::Keep {
                *self.is_set.state(target.function) = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_tick::{function, observation};
    use windfall_core::{Answer, Receipt, Refusal, SafeguardChain};

    #[test]
    fn every_function_gets_its_keep_alive_once() {
        let mut policy = KeepAlive::default();
        let seen = observation(vec![function(0), function(1)]);
        let decision = policy.decide(&seen).unwrap();
        assert_eq!(decision, policy.decide(&seen).unwrap());
        let expected = |id| Target {
            keep_alive: Setting::Set(Duration::from_secs(600)),
            ..Target::keep(windfall_core::FunctionId(id))
        };
        assert_eq!(decision.targets, [expected(0), expected(1)]);
        let plan = SafeguardChain::default().review(&seen, &decision).unwrap();
        let refused = Receipt::of(&plan, |_| Answer::Refused(Refusal::Unreachable));
        let record = |plan, receipt| TickRecord { plan, receipt, ..TickRecord::default() };
        policy.feedback(&record(plan.clone(), refused));
        assert_eq!(policy.decide(&seen).unwrap(), decision, "what was refused is asked for again");
        let queued = Receipt::of(&plan, |_| Answer::Queued);
        policy.feedback(&record(plan, queued));
        assert_eq!(policy.decide(&seen).unwrap().targets, []);
        let newcomer = observation(vec![function(0), function(1), function(2)]);
        assert_eq!(policy.decide(&newcomer).unwrap().targets, [expected(2)]);
    }
}
