//! From decision to permission, per call. A [`CallPlan`] can be made by the chain alone.

use std::borrow::Cow;

use crate::call::{Beyond, CallDecision, CallId, CallOutcome, CallView, CpuDemand, RunningCall};
use crate::call_control::{CallCapabilities, Resized};
use crate::record::{Amendment, DecidedBy, Resource};
use crate::time::Duration;
use crate::units::{Allocation, CpuCeiling, Mebibytes, MilliCpu, Nonsense, PlainSize};
use crate::workload::FunctionId;

/// A decision in real quantities, on its way through the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The function called.
    pub function: FunctionId,
    /// What the call would hold; its CPU is the guarantee.
    pub grant: Allocation,
    /// The most CPU it could use.
    pub cpu_ceiling: CpuCeiling,
    /// Where the part above the reservation may come from.
    pub beyond: Beyond,
    /// What it is expected to use.
    pub demand: Option<CpuDemand>,
    /// How long the call is expected to run.
    pub expected_run: Option<Duration>,
    /// When to look at it next.
    pub look_after: Option<Duration>,
    /// CPU that its node should keep free for it beside the grant.
    pub held_back: MilliCpu,
    /// Where safeguards stepped in so far.
    pub amendments: Vec<Amendment>,
    /// One short phrase for the journal.
    pub why: &'static str,
}

impl Proposal {
    fn from_decision(function: FunctionId, decision: &CallDecision) -> Result<Self, Nonsense> {
        Ok(Self {
            function,
            grant: decision.grant()?,
            cpu_ceiling: decision.cpu_ceiling.try_map(MilliCpu::from_cores)?,
            beyond: decision.beyond,
            demand: decision.demand.filter(CpuDemand::is_valid),
            expected_run: decision.expected_run,
            look_after: decision.look_after,
            held_back: MilliCpu::ZERO,
            amendments: Vec::new(),
            why: decision.why,
        })
    }

    /// Changes the CPU to `allowed` and notes which rule did it and why.
    pub fn amend_cpu(&mut self, rule: &'static str, allowed: MilliCpu, reason: &'static str) {
        if allowed != self.grant.cpu {
            let (was, now) = (self.grant.cpu.cores(), allowed.cores());
            self.note(rule, Resource::Cpu, Some(was), Some(now), reason);
            self.grant.cpu = allowed;
        }
    }

    /// Changes the memory to `allowed` and notes which rule did it and why.
    pub fn amend_memory(&mut self, rule: &'static str, allowed: Mebibytes, reason: &'static str) {
        if allowed != self.grant.memory {
            let (was, now) = (self.grant.memory.mib(), allowed.mib());
            self.note(rule, Resource::Memory, Some(was), Some(now), reason);
            self.grant.memory = allowed;
        }
    }

    /// Changes the CPU ceiling to `allowed` and notes which rule did it and why. No ceiling is noted as no number.
    pub fn amend_ceiling(&mut self, rule: &'static str, allowed: CpuCeiling, reason: &'static str) {
        if allowed != self.cpu_ceiling {
            let cores = |ceiling: CpuCeiling| ceiling.limit(self.grant.cpu).map(MilliCpu::cores);
            let (was, now) = (cores(self.cpu_ceiling), cores(allowed));
            self.note(rule, Resource::CpuCeiling, was, now, reason);
            self.cpu_ceiling = allowed;
        }
    }

    fn note(
        &mut self,
        rule: &'static str,
        resource: Resource,
        proposed: Option<f64>,
        allowed: Option<f64>,
        reason: &'static str,
    ) {
        self.amendments.push(Amendment {
            rule: Cow::Borrowed(rule),
            function: self.function,
            resource,
            proposed,
            allowed,
            reason: Cow::Borrowed(reason),
        });
    }
}

/// A rule about single calls that no policy can get around.
pub trait CallSafeguard: Send {
    /// The name under which amendments are recorded, from a closed set.
    fn name(&self) -> &'static str;

    /// Judges what a call is to start with.
    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal);

    /// Judges what a running call is to hold from now on.
    fn while_running(&mut self, _running: &RunningCall, _proposal: &mut Proposal) {}

    /// Learns what is in force after a change.
    fn resized(&mut self, _change: &Resized) {}

    /// Learns from an attempt that has ended.
    fn at_end(&mut self, _outcome: &CallOutcome) {}

    /// A call is gone without an outcome: whatever is kept for it can be dropped.
    fn lost(&mut self, _call: CallId) {}
}

/// Permission to grant: the only thing a platform accepts for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPlan {
    grant: Allocation,
    least: Allocation,
    cpu_ceiling: CpuCeiling,
    beyond: Beyond,
    demand: Option<CpuDemand>,
    expected_run: Option<Duration>,
    look_after: Option<Duration>,
    held_back: MilliCpu,
    wanted: PlainSize,
    why: &'static str,
    /// Elsewhere, because most plans have none and every call's plan is moved about.
    notes: Option<Box<PlanNotes>>,
}

/// What is to be said of a plan that is not simply the policy's own decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanNotes {
    /// Who decided it.
    pub decided_by: DecidedBy,
    /// What a second policy would have decided.
    pub shadow: Option<PlainSize>,
    /// Where the safeguards stepped in.
    pub amendments: Vec<Amendment>,
}

impl CallPlan {
    #[inline(always)]
    fn new(
        decision: &CallDecision,
        grant: Allocation,
        cpu_ceiling: CpuCeiling,
        reservation: Allocation,
        notes: Option<Box<PlanNotes>>,
    ) -> Self {
        Self {
            grant,
            least: grant.min(reservation),
            cpu_ceiling,
            beyond: decision.beyond,
            demand: decision.demand.filter(CpuDemand::is_valid),
            expected_run: decision.expected_run,
            look_after: decision.look_after,
            held_back: MilliCpu::ZERO,
            wanted: decision.size(),
            why: decision.why,
            notes,
        }
    }

    /// What the call is to hold; its CPU is the guarantee.
    pub fn grant(&self) -> Allocation {
        self.grant
    }

    /// What it can start with if a node has no more: never below the smaller of plan and reservation.
    pub fn least(&self) -> Allocation {
        self.least
    }

    /// The most CPU it may use.
    pub fn cpu_ceiling(&self) -> CpuCeiling {
        self.cpu_ceiling
    }

    /// Where the part above the reservation may come from.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// What it is expected to use; nothing if the policy did not say, or said something that is no demand.
    pub fn demand(&self) -> Option<CpuDemand> {
        self.demand
    }

    /// How long the call is expected to run.
    pub fn expected_run(&self) -> Option<Duration> {
        self.expected_run
    }

    /// When to look at it next.
    pub fn look_after(&self) -> Option<Duration> {
        self.look_after
    }

    /// CPU that its node should keep free for it beside the grant.
    pub fn held_back(&self) -> MilliCpu {
        self.held_back
    }

    /// What the policy decided, unchecked.
    pub fn wanted(&self) -> PlainSize {
        self.wanted
    }

    /// Who decided it.
    pub fn decided_by(&self) -> &DecidedBy {
        const POLICY: &DecidedBy = &DecidedBy::Policy;
        self.notes.as_ref().map_or(POLICY, |notes| &notes.decided_by)
    }

    /// What a second policy would have decided.
    pub fn shadow(&self) -> Option<PlainSize> {
        self.notes.as_ref().and_then(|notes| notes.shadow)
    }

    /// Where the safeguards stepped in.
    pub fn amendments(&self) -> &[Amendment] {
        self.notes.as_ref().map_or(&[], |notes| &notes.amendments)
    }

    /// One short phrase for the journal.
    pub fn why(&self) -> &'static str {
        self.why
    }

    /// The same plan, marked as the fallback's because the policy failed in this way.
    pub fn decided_by_fallback(mut self, problem: String) -> Self {
        self.notes.get_or_insert_default().decided_by = DecidedBy::Fallback(problem);
        self
    }

    /// The same plan with the decision of a second policy beside it, for the record only.
    pub fn with_shadow(mut self, decision: &CallDecision) -> Self {
        self.notes.get_or_insert_default().shadow = Some(decision.size());
        self
    }

    /// Hands over what a record is to say besides the plan's numbers; mostly nothing.
    pub fn take_notes(&mut self) -> Option<Box<PlanNotes>> {
        self.notes.take()
    }

    /// Hands over the amendments to a record.
    pub fn into_amendments(self) -> Vec<Amendment> {
        self.notes.map_or_else(Vec::new, |notes| notes.amendments)
    }
}

/// All call safeguards of a loop, in order, closed by one that cannot be left out: no call is granted
/// more than its ceiling, none is granted nothing, and nothing is asked of a platform that it cannot do.
#[derive(Default)]
pub struct CallSafeguardChain {
    rules: Vec<Box<dyn CallSafeguard>>,
}

impl CallSafeguardChain {
    /// The chain that asks `rules` in this order.
    pub fn new(rules: Vec<Box<dyn CallSafeguard>>) -> Self {
        Self { rules }
    }

    /// Turns a decision for a call's start into a plan, or refuses it if a number in it is nonsense.
    #[inline(always)]
    pub fn at_dispatch(
        &mut self,
        call: &CallView,
        decision: &CallDecision,
    ) -> Result<CallPlan, Nonsense> {
        if !self.rules.is_empty() {
            return self.review(call, decision);
        }
        let grant = decision.grant()?;
        let is_usual = decision.cpu_ceiling.is_at_grant() & call.capabilities.cpu_ceiling;
        if grant != within(grant, call.ceiling) || !is_usual {
            return self.review(call, decision);
        }
        Ok(CallPlan::new(decision, grant, CpuCeiling::AtGrant, call.reservation, None))
    }

    /// The plan of a call that is to get what its user reserves: [`Self::at_dispatch`] of that decision,
    /// without the way through real numbers and back.
    #[inline(always)]
    pub fn as_reserved(&mut self, call: &CallView) -> CallPlan {
        let decision = CallDecision::exactly(call.reservation, "the user's size");
        let is_usual = self.rules.is_empty() & call.capabilities.cpu_ceiling;
        if is_usual && call.reservation == within(call.reservation, call.ceiling) {
            let (grant, ceiling) = (call.reservation, CpuCeiling::AtGrant);
            return CallPlan::new(&decision, grant, ceiling, call.reservation, None);
        }
        self.review(call, &decision).expect("a reservation is an amount")
    }

    /// Apart: most decisions are reviewed by nobody and need no proposal.
    #[inline(never)]
    fn review(&mut self, call: &CallView, decision: &CallDecision) -> Result<CallPlan, Nonsense> {
        let mut proposal = Proposal::from_decision(call.function, decision)?;
        for rule in &mut self.rules {
            rule.at_dispatch(call, &mut proposal);
        }
        let limits = Limits {
            reservation: call.reservation,
            ceiling: call.ceiling,
            capabilities: call.capabilities,
            in_force: None,
        };
        Ok(permit(proposal, decision, limits))
    }

    /// Turns a decision for a running call into a plan, or refuses it if a number in it is nonsense.
    pub fn while_running(
        &mut self,
        running: &RunningCall,
        decision: &CallDecision,
    ) -> Result<CallPlan, Nonsense> {
        let mut proposal = Proposal::from_decision(running.function, decision)?;
        for rule in &mut self.rules {
            rule.while_running(running, &mut proposal);
        }
        let limits = Limits {
            reservation: running.reservation,
            ceiling: running.ceiling,
            capabilities: running.capabilities,
            in_force: Some(running.grant),
        };
        Ok(permit(proposal, decision, limits))
    }

    /// Whether there is no rule but the last, which looks at nothing but the decision.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Reports to all rules what is in force after a change.
    pub fn resized(&mut self, change: &Resized) {
        for rule in &mut self.rules {
            rule.resized(change);
        }
    }

    /// Reports to all rules how an attempt ended.
    pub fn at_end(&mut self, outcome: &CallOutcome) {
        for rule in &mut self.rules {
            rule.at_end(outcome);
        }
    }

    /// Reports to all rules that a call is gone without an outcome.
    pub fn lost(&mut self, call: CallId) {
        for rule in &mut self.rules {
            rule.lost(call);
        }
    }
}

/// What the last rule of every chain goes by.
struct Limits {
    reservation: Allocation,
    ceiling: Allocation,
    capabilities: CallCapabilities,
    /// What a running call holds.
    in_force: Option<Allocation>,
}

/// What is left of `grant` under `ceiling`: no call is granted nothing.
fn within(grant: Allocation, ceiling: Allocation) -> Allocation {
    grant.min(ceiling).max(Allocation::new(1, 1))
}

/// Cuts what the platform cannot do.
fn cut_to_platform(proposal: &mut Proposal, limits: &Limits) {
    const RULE: &str = "platform";
    let can = limits.capabilities;
    if let Some(Allocation { cpu, memory }) = limits.in_force {
        if !can.cpu_live {
            proposal.amend_cpu(RULE, cpu, "the CPU of a running call cannot be changed here");
        }
        if !can.memory_live {
            let reason = "the memory of a running call cannot be changed here";
            proposal.amend_memory(RULE, memory, reason);
        }
    }
    let reason = match (can.cpu_weight, can.cpu_ceiling) {
        (false, true) => "CPU is granted by quota alone here",
        (_, false) => "CPU use cannot be limited here",
        (true, true) => return,
    };
    proposal.amend_ceiling(RULE, can.nearest_ceiling(proposal.cpu_ceiling), reason);
}

/// The last word of every chain.
fn permit(mut proposal: Proposal, decision: &CallDecision, limits: Limits) -> CallPlan {
    const RULE: &str = "ceiling";
    let Allocation { cpu, memory } = within(proposal.grant, limits.ceiling);
    proposal.amend_cpu(RULE, cpu, "one call gets at least 1m and at most the ceiling");
    proposal.amend_memory(RULE, memory, "one call gets at least 1 MiB and at most the ceiling");
    cut_to_platform(&mut proposal, &limits);
    let Proposal {
        function: _,
        grant,
        cpu_ceiling,
        beyond,
        demand,
        expected_run,
        look_after,
        held_back,
        amendments,
        why,
    } = proposal;
    let notes = if amendments.is_empty() {
        None
    } else {
        Some(Box::new(PlanNotes { amendments, ..PlanNotes::default() }))
    };
    let plan = CallPlan::new(decision, grant, cpu_ceiling, limits.reservation, notes);
    CallPlan { beyond, demand, expected_run, look_after, held_back, why, ..plan }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Room;
    use crate::time::Timestamp;

    fn call() -> CallView {
        CallView {
            id: CallId(0),
            function: FunctionId(0),
            now: Timestamp::ZERO,
            arrived_at: Timestamp::ZERO,
            input: None,
            reservation: Allocation::new(1000, 256),
            ceiling: Allocation::new(8000, 1024),
            free_in_cluster: Room { cores: 16.0, mib: 4096.0 },
            waiting: 0,
            capabilities: CallCapabilities::QUOTA,
            foresight: None,
        }
    }

    #[test]
    fn a_decision_above_the_ceiling_is_cut_and_noted() {
        let mut chain = CallSafeguardChain::default();
        let decision = CallDecision::exactly(Allocation::new(12_000, 0), "too much");
        let plan = chain.at_dispatch(&call(), &decision).unwrap();
        assert_eq!(plan.grant(), Allocation::new(8000, 1));
        assert_eq!(plan.least(), Allocation::new(1000, 1));
        assert_eq!(plan.amendments().len(), 2);
        assert_eq!(plan.wanted(), PlainSize { cores: 12.0, mib: 0.0 });
    }

    #[test]
    fn a_reservation_becomes_the_same_plan_on_the_short_way() {
        for reservation in [Allocation::new(1000, 256), Allocation::new(9000, 0)] {
            let call = CallView { reservation, ..call() };
            let decision = CallDecision::exactly(reservation, "the user's size");
            let mut chain = CallSafeguardChain::default();
            assert_eq!(chain.as_reserved(&call), chain.at_dispatch(&call, &decision).unwrap());
        }
    }

    #[test]
    fn nonsense_never_becomes_a_plan() {
        let mut chain = CallSafeguardChain::default();
        for cpu_cores in [f64::NAN, -1.0, f64::INFINITY] {
            let usual = CallDecision::exactly(Allocation::new(1, 1), "nonsense");
            let decision = CallDecision { cpu_cores, ..usual.clone() };
            assert!(chain.at_dispatch(&call(), &decision).is_err());
            let decision = CallDecision { cpu_ceiling: CpuCeiling::At(cpu_cores), ..usual };
            assert!(chain.at_dispatch(&call(), &decision).is_err());
        }
    }

    #[test]
    fn a_ceiling_becomes_what_the_platform_can_do_and_is_noted() {
        use CpuCeiling::{At, AtGrant, Unlimited};
        let quota = CallCapabilities::QUOTA;
        let shares = CallCapabilities { cpu_ceiling: false, ..CallCapabilities::ALL };
        let two = At(MilliCpu::new(2000));
        let table = [
            (CallCapabilities::ALL, Unlimited, Unlimited, 0),
            (CallCapabilities::ALL, At(2.0), two, 0),
            (CallCapabilities::ALL, AtGrant, AtGrant, 0),
            (quota, Unlimited, AtGrant, 1),
            (quota, At(2.0), AtGrant, 1),
            (quota, AtGrant, AtGrant, 0),
            (shares, AtGrant, Unlimited, 1),
            (shares, Unlimited, Unlimited, 0),
        ];
        for (capabilities, asked, granted, notes) in table {
            let call = CallView { capabilities, ..call() };
            let usual = CallDecision::exactly(call.reservation, "ceiling");
            let decision = CallDecision { cpu_ceiling: asked, ..usual };
            let plan = CallSafeguardChain::default().at_dispatch(&call, &decision).unwrap();
            assert_eq!(plan.cpu_ceiling(), granted, "{asked:?} where {capabilities:?}");
            assert_eq!(plan.amendments().len(), notes);
            if let [amendment] = plan.amendments() {
                assert_eq!(
                    (&*amendment.rule, amendment.resource),
                    ("platform", Resource::CpuCeiling)
                );
            }
        }
    }
}
