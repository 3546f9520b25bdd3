//! From wish to permission, per call. A [`CallPlan`] can be made by the chain alone.

use std::borrow::Cow;

use crate::call::{Beyond, CallDecision, CallOutcome, CallView, RunningCall};
use crate::record::{Amendment, DecidedBy, Resource};
use crate::time::Duration;
use crate::units::{Allocation, Mebibytes, MilliCpu, Nonsense};
use crate::workload::FunctionId;

/// A wish in real quantities, on its way through the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The function called.
    pub function: FunctionId,
    /// What the call would hold.
    pub grant: Allocation,
    /// Where the part above the reservation may come from.
    pub beyond: Beyond,
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
    fn from_wish(function: FunctionId, wish: &CallDecision) -> Result<Self, Nonsense> {
        Ok(Self {
            function,
            grant: wish.grant()?,
            beyond: wish.beyond,
            expected_run: wish.expected_run,
            look_after: wish.look_after,
            held_back: MilliCpu::ZERO,
            amendments: Vec::new(),
            why: wish.why,
        })
    }

    /// Changes the CPU to `allowed` and notes which rule did it and why.
    pub fn amend_cpu(&mut self, rule: &'static str, allowed: MilliCpu, reason: &'static str) {
        if allowed != self.grant.cpu {
            let (was, now) = (self.grant.cpu.cores(), allowed.cores());
            self.note(rule, Resource::Cpu, was, now, reason);
            self.grant.cpu = allowed;
        }
    }

    /// Changes the memory to `allowed` and notes which rule did it and why.
    pub fn amend_memory(&mut self, rule: &'static str, allowed: Mebibytes, reason: &'static str) {
        if allowed != self.grant.memory {
            let (was, now) = (self.grant.memory.mib(), allowed.mib());
            self.note(rule, Resource::Memory, was, now, reason);
            self.grant.memory = allowed;
        }
    }

    fn note(
        &mut self,
        rule: &'static str,
        resource: Resource,
        proposed: f64,
        allowed: f64,
        reason: &'static str,
    ) {
        self.amendments.push(Amendment {
            rule: Cow::Borrowed(rule),
            function: self.function,
            resource,
            proposed: Some(proposed),
            allowed: Some(allowed),
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

    /// Learns from an attempt that has ended.
    fn at_end(&mut self, _outcome: &CallOutcome) {}
}

/// Permission to grant: the only thing a platform accepts for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPlan {
    grant: Allocation,
    least: Allocation,
    beyond: Beyond,
    expected_run: Option<Duration>,
    look_after: Option<Duration>,
    held_back: MilliCpu,
    wanted: (f64, f64),
    why: &'static str,
    /// Elsewhere, because most plans have none and every call's plan is moved about.
    notes: Option<Box<PlanNotes>>,
}

/// What is to be said of a plan that is not simply the policy's own wish.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanNotes {
    /// Who wished it.
    pub decided_by: DecidedBy,
    /// What a second policy would have wished for: cores and MiB.
    pub shadow: Option<(f64, f64)>,
    /// Where the safeguards stepped in.
    pub amendments: Vec<Amendment>,
}

impl CallPlan {
    #[inline(always)]
    fn new(
        wish: &CallDecision,
        grant: Allocation,
        reservation: Allocation,
        notes: Option<Box<PlanNotes>>,
    ) -> Self {
        Self {
            grant,
            least: grant.min(reservation),
            beyond: wish.beyond,
            expected_run: wish.expected_run,
            look_after: wish.look_after,
            held_back: MilliCpu::ZERO,
            wanted: (wish.cpu_cores, wish.memory_mib),
            why: wish.why,
            notes,
        }
    }

    /// What the call is to hold.
    pub fn grant(&self) -> Allocation {
        self.grant
    }

    /// What it can start with if a node has no more: never below the smaller of plan and reservation.
    pub fn least(&self) -> Allocation {
        self.least
    }

    /// Where the part above the reservation may come from.
    pub fn beyond(&self) -> Beyond {
        self.beyond
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

    /// What the policy wished for: cores and MiB.
    pub fn wanted(&self) -> (f64, f64) {
        self.wanted
    }

    /// Who wished it.
    pub fn decided_by(&self) -> &DecidedBy {
        const POLICY: &DecidedBy = &DecidedBy::Policy;
        self.notes.as_ref().map_or(POLICY, |notes| &notes.decided_by)
    }

    /// What a second policy would have wished for.
    pub fn shadow(&self) -> Option<(f64, f64)> {
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

    /// The same plan with the wish of a second policy beside it, for the record only.
    pub fn with_shadow(mut self, wish: &CallDecision) -> Self {
        let wish = (wish.cpu_cores, wish.memory_mib);
        self.notes.get_or_insert_default().shadow = Some(wish);
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
/// more than its ceiling, and none is granted nothing.
#[derive(Default)]
pub struct CallSafeguardChain {
    rules: Vec<Box<dyn CallSafeguard>>,
}

impl CallSafeguardChain {
    /// The chain that asks `rules` in this order.
    pub fn new(rules: Vec<Box<dyn CallSafeguard>>) -> Self {
        Self { rules }
    }

    /// Turns a wish for a call's start into a plan, or refuses it if a number in it is nonsense.
    #[inline(always)]
    pub fn at_dispatch(
        &mut self,
        call: &CallView,
        wish: &CallDecision,
    ) -> Result<CallPlan, Nonsense> {
        if !self.rules.is_empty() {
            return self.review(call, wish);
        }
        let grant = wish.grant()?;
        if grant != within(grant, call.ceiling) {
            return self.review(call, wish);
        }
        Ok(CallPlan::new(wish, grant, call.reservation, None))
    }

    /// The plan of a call that is to get what its user reserves: [`Self::at_dispatch`] of that wish,
    /// without the way through real numbers and back.
    #[inline(always)]
    pub fn as_reserved(&mut self, call: &CallView) -> CallPlan {
        let wish = CallDecision::exactly(call.reservation, "the user's size");
        if self.rules.is_empty() && call.reservation == within(call.reservation, call.ceiling) {
            return CallPlan::new(&wish, call.reservation, call.reservation, None);
        }
        self.review(call, &wish).expect("a reservation is an amount")
    }

    /// Apart: most wishes are reviewed by nobody and need no proposal.
    #[inline(never)]
    fn review(&mut self, call: &CallView, wish: &CallDecision) -> Result<CallPlan, Nonsense> {
        let mut proposal = Proposal::from_wish(call.function, wish)?;
        for rule in &mut self.rules {
            rule.at_dispatch(call, &mut proposal);
        }
        Ok(permit(proposal, wish, call.reservation, call.ceiling))
    }

    /// Turns a wish for a running call into a plan, or refuses it if a number in it is nonsense.
    pub fn while_running(
        &mut self,
        running: &RunningCall,
        wish: &CallDecision,
    ) -> Result<CallPlan, Nonsense> {
        let mut proposal = Proposal::from_wish(running.function, wish)?;
        for rule in &mut self.rules {
            rule.while_running(running, &mut proposal);
        }
        Ok(permit(proposal, wish, running.reservation, running.ceiling))
    }

    /// Whether there is no rule but the last, which looks at nothing but the wish.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Tells all rules how an attempt ended.
    pub fn at_end(&mut self, outcome: &CallOutcome) {
        for rule in &mut self.rules {
            rule.at_end(outcome);
        }
    }
}

/// What is left of `grant` under `ceiling`: no call is granted nothing.
fn within(grant: Allocation, ceiling: Allocation) -> Allocation {
    grant.min(ceiling).max(Allocation::new(1, 1))
}

/// The last word of every chain.
fn permit(
    mut proposal: Proposal,
    wish: &CallDecision,
    reservation: Allocation,
    ceiling: Allocation,
) -> CallPlan {
    const RULE: &str = "ceiling";
    let Allocation { cpu, memory } = within(proposal.grant, ceiling);
    proposal.amend_cpu(RULE, cpu, "one call gets at least 1m and at most the ceiling");
    proposal.amend_memory(RULE, memory, "one call gets at least 1 MiB and at most the ceiling");
    let Proposal {
        function: _,
        grant,
        beyond,
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
    let plan = CallPlan::new(wish, grant, reservation, notes);
    CallPlan { beyond, expected_run, look_after, held_back, why, ..plan }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallId;
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
            free_in_cluster: (16.0, 4096.0),
            waiting: 0,
            foresight: None,
        }
    }

    #[test]
    fn a_wish_above_the_ceiling_is_cut_and_noted() {
        let mut chain = CallSafeguardChain::default();
        let wish = CallDecision::exactly(Allocation::new(12_000, 0), "too much");
        let plan = chain.at_dispatch(&call(), &wish).unwrap();
        assert_eq!(plan.grant(), Allocation::new(8000, 1));
        assert_eq!(plan.least(), Allocation::new(1000, 1));
        assert_eq!(plan.amendments().len(), 2);
        assert_eq!(plan.wanted(), (12.0, 0.0));
    }

    #[test]
    fn a_reservation_becomes_the_same_plan_on_the_short_way() {
        for reservation in [Allocation::new(1000, 256), Allocation::new(9000, 0)] {
            let call = CallView { reservation, ..call() };
            let wish = CallDecision::exactly(reservation, "the user's size");
            let mut chain = CallSafeguardChain::default();
            assert_eq!(chain.as_reserved(&call), chain.at_dispatch(&call, &wish).unwrap());
        }
    }

    #[test]
    fn nonsense_never_becomes_a_plan() {
        let mut chain = CallSafeguardChain::default();
        for cpu_cores in [f64::NAN, -1.0, f64::INFINITY] {
            let wish = CallDecision {
                cpu_cores,
                ..CallDecision::exactly(Allocation::new(1, 1), "nonsense")
            };
            assert!(chain.at_dispatch(&call(), &wish).is_err());
        }
    }
}
