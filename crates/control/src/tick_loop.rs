//! One tick: observe, decide, review, submit, record, feed back. Who calls it (the simulator in virtual time, a daemon in
//! wall time, an environment once per step) is of no concern here.
//!
//! A tick always yields a record. Without an observation the policy is not asked; functions that may hold less than they
//! reserve get their own allocation back.

use windfall_core::{
    Answer, DecidedBy, Decision, Duration, FunctionId, Observation, Plan, PlanId, Platform,
    PlatformError, Policy, Receipt, Refusal, SafeguardChain, TelemetrySink, TickRecord, Timestamp,
};

use crate::quarantine::{Quarantine, catch};
use crate::restore::RestoreReservations;
use crate::safeguards::{CapabilityCheck, InDoubt};

/// An observation older than this says nothing about sizes any more; as in
/// [`StaleObservation`](crate::safeguards::StaleObservation).
const OLDEST: Duration = Duration::from_secs(60);

/// What a loop has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickCounters {
    /// Ticks carried out.
    pub ticks: u64,
    /// Ticks that the policy did not decide.
    pub fallbacks: u64,
    /// Ticks without an observation.
    pub blind: u64,
    /// Times the policy was quarantined.
    pub quarantines: u64,
    /// Places where a safeguard stepped in.
    pub amendments: u64,
    /// Targets that the platform refused.
    pub refused: u64,
}

/// The tick loop with all its parts.
pub struct ControlLoop {
    policy: Box<dyn Policy>,
    fallback: Box<dyn Policy>,
    safeguards: SafeguardChain,
    quarantine: Quarantine,
    /// The two rules behind every chain.
    in_doubt: InDoubt,
    can_set: CapabilityCheck,
    shadow: Option<Box<dyn Policy>>,
    sinks: Vec<Box<dyn TelemetrySink>>,
    counters: TickCounters,
    last_plan: PlanId,
    last_seen: Option<Observation>,
    /// Functions that the sinks have been introduced to.
    introduced: usize,
}

impl ControlLoop {
    /// A loop that obeys `policy` within `safeguards` and falls back to the users' reservations.
    pub fn new(policy: Box<dyn Policy>, safeguards: SafeguardChain) -> Self {
        Self {
            policy,
            fallback: Box::new(RestoreReservations),
            safeguards,
            quarantine: Quarantine::default(),
            in_doubt: InDoubt::new(OLDEST),
            can_set: CapabilityCheck::default(),
            shadow: None,
            sinks: Vec::new(),
            counters: TickCounters::default(),
            last_plan: PlanId::default(),
            last_seen: None,
            introduced: 0,
        }
    }

    /// Another policy to decide when the first one fails. Its decisions are reviewed like any other.
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

    /// Another policy takes over behind its own safeguards. What is in doubt stays in doubt and plans go on being
    /// numbered, so changes under way are still accounted for.
    pub fn hand_over(&mut self, policy: Box<dyn Policy>, safeguards: SafeguardChain) {
        self.policy = policy;
        self.safeguards = safeguards;
        self.quarantine = Quarantine::default();
    }

    /// Another shadow, or none.
    pub fn set_shadow(&mut self, shadow: Option<Box<dyn Policy>>) {
        self.shadow = shadow;
    }

    /// The name of the policy in charge.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// What happened so far.
    pub fn counters(&self) -> TickCounters {
        TickCounters { quarantines: self.quarantine.times(), ..self.counters }
    }

    /// Whether the policy is quarantined and the fallback decides.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.is_resting()
    }

    /// Functions whose size is in doubt and being restored.
    pub fn in_doubt(&self) -> &InDoubt {
        &self.in_doubt
    }

    /// One round of the loop.
    pub fn tick(&mut self, now: Timestamp, platform: &mut dyn Platform) -> TickRecord {
        self.read_capabilities(platform);
        match platform.observe(now) {
            Ok(observation) => {
                self.last_seen.get_or_insert_default().clone_from(&observation);
                let Self { policy, safeguards, quarantine, in_doubt, can_set, .. } = self;
                let judged = quarantine.guard(|| {
                    let decision =
                        policy.decide(&observation).map_err(|error| error.to_string())?;
                    judge(safeguards, (in_doubt, can_set), &observation, decision)
                });
                self.act(platform, observation, judged)
            }
            Err(error) => self.tick_blind(now, platform, &error),
        }
    }

    /// The second half of a tick for a decision that was made elsewhere: the action of an environment's step is reviewed
    /// and submitted like a policy's decision.
    pub fn carry_out(
        &mut self,
        platform: &mut dyn Platform,
        observation: Observation,
        decision: Decision,
    ) -> TickRecord {
        self.read_capabilities(platform);
        let Self { safeguards, in_doubt, can_set, .. } = self;
        let judged = judge(safeguards, (in_doubt, can_set), &observation, decision);
        self.act(platform, observation, judged)
    }

    fn read_capabilities(&mut self, platform: &dyn Platform) {
        let capabilities = platform.capabilities();
        self.in_doubt.set_capabilities(capabilities);
        self.can_set.capabilities = capabilities;
    }

    fn act(
        &mut self,
        platform: &mut dyn Platform,
        observation: Observation,
        judged: Result<(Decision, Plan), String>,
    ) -> TickRecord {
        let ((decision, plan), decided_by) = match judged {
            Ok(judged) => (judged, DecidedBy::Policy),
            Err(problem) => (self.fall_back(&observation), DecidedBy::Fallback(problem)),
        };
        let shadow = self.shadow.as_mut().and_then(|shadow| {
            catch(|| shadow.decide(&observation)).ok().and_then(|decision| decision.ok())
        });
        let tick = TickRecord {
            observation,
            decision,
            decided_by,
            plan,
            receipt: Receipt::default(),
            shadow,
            error: None,
        };
        self.conclude(platform, tick)
    }

    /// A tick without an observation: the policy is not asked, and what may be too small is restored.
    fn tick_blind(
        &mut self,
        now: Timestamp,
        platform: &mut dyn Platform,
        error: &PlatformError,
    ) -> TickRecord {
        let error = error.to_string();
        let observation = match &self.last_seen {
            Some(last) => last.aged_to(now),
            None => Observation { now, ..Observation::default() },
        };
        self.counters.blind += 1;
        self.counters.fallbacks += 1;
        self.in_doubt.lose_sight(&observation, &format!("there is no observation: {error}"));
        let (decision, plan) = self.leave_alone(&observation);
        let tick = TickRecord {
            observation,
            decision,
            decided_by: DecidedBy::Fallback(error.clone()),
            plan,
            error: Some(error),
            ..TickRecord::default()
        };
        self.conclude(platform, tick)
    }

    /// Submits the plan of `tick` and reports the answers to everyone.
    fn conclude(&mut self, platform: &mut dyn Platform, mut tick: TickRecord) -> TickRecord {
        self.last_plan = PlanId(self.last_plan.0 + 1);
        tick.plan = tick.plan.numbered(self.last_plan);
        tick.receipt = complete(platform.submit(tick.observation.now, &tick.plan), &tick.plan);
        let Self { safeguards, in_doubt, can_set, .. } = self;
        let last: &mut [&mut dyn windfall_core::Safeguard] = &mut [in_doubt, can_set];
        safeguards.submitted(last, &tick.observation, &tick.plan, &tick.receipt);

        self.counters.ticks += 1;
        self.counters.amendments += tick.plan.amendments().len() as u64;
        self.counters.refused += tick.receipt.refusals().count() as u64;
        if catch(|| self.policy.feedback(&tick)).is_err() {
            self.quarantine.note(false);
        }
        if let Some(shadow) = &mut self.shadow {
            // A shadow is never obeyed, so a panic of it changes nothing.
            let _ = catch(|| shadow.feedback(&tick));
        }
        self.introduce(platform);
        for sink in &mut self.sinks {
            sink.tick(&tick);
        }
        tick
    }

    /// Names functions to the sinks that they have not heard of.
    fn introduce(&mut self, platform: &dyn Platform) {
        let functions = platform.functions();
        let first = FunctionId(self.introduced as u32);
        if let Some(new) = functions.get(self.introduced..).filter(|new| !new.is_empty()) {
            self.sinks.iter_mut().for_each(|sink| sink.functions(first, new));
            self.introduced = functions.len();
        }
    }

    /// The fallback's decision, or to leave everything alone if even that fails.
    fn fall_back(&mut self, observation: &Observation) -> (Decision, Plan) {
        self.counters.fallbacks += 1;
        let Self { fallback, safeguards, in_doubt, can_set, .. } = self;
        let decision = catch(|| fallback.decide(observation))
            .and_then(|decision| decision.map_err(|error| error.to_string()));
        decision
            .and_then(|decision| judge(safeguards, (in_doubt, can_set), observation, decision))
            .unwrap_or_else(|_| self.leave_alone(observation))
    }

    /// No decision at all; only what is in doubt is restored.
    fn leave_alone(&mut self, observation: &Observation) -> (Decision, Plan) {
        let Self { safeguards, in_doubt, can_set, .. } = self;
        let decision = Decision { targets: Vec::new(), reason: "nothing was decided".to_owned() };
        judge(safeguards, (in_doubt, can_set), observation, decision).unwrap_or_default()
    }
}

fn judge(
    safeguards: &mut SafeguardChain,
    (in_doubt, can_set): (&mut InDoubt, &mut CapabilityCheck),
    observation: &Observation,
    decision: Decision,
) -> Result<(Decision, Plan), String> {
    match safeguards.review_then(&mut [in_doubt, can_set], observation, &decision) {
        Ok(plan) => Ok((decision, plan)),
        Err(nonsense) => Err(nonsense.to_string()),
    }
}

/// A receipt with one answer per target. A platform that leaves one out has not said what it does, which is a refusal.
fn complete(receipt: Receipt, plan: &Plan) -> Receipt {
    let answered = receipt.answers.iter().map(|one| one.function);
    if answered.eq(plan.targets().iter().map(|target| target.function)) {
        return Receipt { plan: plan.id(), ..receipt };
    }
    let given: Vec<(_, Answer)> =
        receipt.answered(plan).map(|(target, answer)| (target.function, answer.clone())).collect();
    Receipt::of(plan, |target| {
        let found = given.iter().find(|(function, _)| *function == target.function);
        let silence = || Answer::Refused(Refusal::System("it gave no answer".to_owned()));
        found.map_or_else(silence, |(_, answer)| answer.clone())
    })
}

#[cfg(test)]
mod tests;
