//! One tick: see, wish, judge, act, record, learn. Who calls it (the simulator in virtual time, the
//! daemon in wall time, an environment once per step) is of no concern here.

use windfall_core::{
    DecidedBy, Decision, Observation, Plan, Platform, PlatformError, Policy, SafeguardChain,
    TelemetrySink, TickRecord,
};

use crate::quarantine::Quarantine;
use crate::restore::RestoreReservations;

/// What a loop has lived through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickCounters {
    /// Ticks carried out.
    pub ticks: u64,
    /// Ticks the fallback decided.
    pub fallbacks: u64,
    /// Times the policy was sent to rest.
    pub quarantines: u64,
    /// Places where a safeguard stepped in.
    pub amendments: u64,
}

/// The tick loop with all its parts.
pub struct ControlLoop {
    policy: Box<dyn Policy>,
    fallback: Box<dyn Policy>,
    safeguards: SafeguardChain,
    quarantine: Quarantine,
    shadow: Option<Box<dyn Policy>>,
    sinks: Vec<Box<dyn TelemetrySink>>,
    counters: TickCounters,
}

impl ControlLoop {
    /// A loop that obeys `policy` within `safeguards` and falls back to the users' reservations.
    pub fn new(policy: Box<dyn Policy>, safeguards: SafeguardChain) -> Self {
        Self {
            policy,
            fallback: Box::new(RestoreReservations),
            safeguards,
            quarantine: Quarantine::default(),
            shadow: None,
            sinks: Vec::new(),
            counters: TickCounters::default(),
        }
    }

    /// Another policy to decide when the first one fails. Its wishes are judged like any other.
    pub fn with_fallback(mut self, fallback: Box<dyn Policy>) -> Self {
        self.fallback = fallback;
        self
    }

    /// Another patience with failing policies.
    pub fn with_quarantine(mut self, quarantine: Quarantine) -> Self {
        self.quarantine = quarantine;
        self
    }

    /// A policy that is asked at every tick, recorded, and never obeyed. Its errors do not matter.
    pub fn with_shadow(mut self, shadow: Box<dyn Policy>) -> Self {
        self.shadow = Some(shadow);
        self
    }

    /// A reader of every tick.
    pub fn with_sink(mut self, sink: Box<dyn TelemetrySink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// The name of the policy in charge.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// What happened so far.
    pub fn counters(&self) -> TickCounters {
        TickCounters { quarantines: self.quarantine.times(), ..self.counters }
    }

    /// Whether the policy rests and the fallback decides.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.is_resting()
    }

    /// One round of the loop.
    pub fn tick(&mut self, platform: &mut dyn Platform) -> Result<TickRecord, PlatformError> {
        let observation = platform.observe()?;
        let Self { policy, safeguards, quarantine, .. } = self;
        let judged = quarantine.guard(|| {
            let decision = policy.decide(&observation).map_err(|error| error.to_string())?;
            judge(safeguards, &observation, decision)
        });
        self.act(platform, observation, judged)
    }

    /// The second half of a tick for a decision that was made elsewhere: the action of an environment's
    /// step takes the same road as a policy's wish.
    pub fn carry_out(
        &mut self,
        platform: &mut dyn Platform,
        observation: Observation,
        decision: Decision,
    ) -> Result<TickRecord, PlatformError> {
        let judged = judge(&mut self.safeguards, &observation, decision);
        self.act(platform, observation, judged)
    }

    fn act(
        &mut self,
        platform: &mut dyn Platform,
        observation: Observation,
        judged: Result<(Decision, Plan), String>,
    ) -> Result<TickRecord, PlatformError> {
        let ((decision, plan), decided_by) = match judged {
            Ok(wish) => (wish, DecidedBy::Policy),
            Err(problem) => (self.fall_back(&observation), DecidedBy::Fallback(problem)),
        };
        let shadow = self.shadow.as_mut().and_then(|shadow| shadow.decide(&observation).ok());
        let receipt = platform.submit(&plan)?;

        let tick = TickRecord { observation, decision, decided_by, plan, receipt, shadow };
        self.counters.ticks += 1;
        self.counters.amendments += tick.plan.amendments().len() as u64;
        self.policy.feedback(&tick);
        if let Some(shadow) = &mut self.shadow {
            shadow.feedback(&tick);
        }
        for sink in &mut self.sinks {
            sink.tick(&tick);
        }
        Ok(tick)
    }

    /// The fallback's wish, or to leave everything alone if even that fails.
    fn fall_back(&mut self, observation: &Observation) -> (Decision, Plan) {
        self.counters.fallbacks += 1;
        self.fallback
            .decide(observation)
            .map_err(|error| error.to_string())
            .and_then(|decision| judge(&mut self.safeguards, observation, decision))
            .unwrap_or_default()
    }
}

fn judge(
    safeguards: &mut SafeguardChain,
    observation: &Observation,
    decision: Decision,
) -> Result<(Decision, Plan), String> {
    match safeguards.review(observation, &decision) {
        Ok(plan) => Ok((decision, plan)),
        Err(nonsense) => Err(nonsense.to_string()),
    }
}

#[cfg(test)]
mod tests;
