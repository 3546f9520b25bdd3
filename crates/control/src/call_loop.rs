//! One call: size, start, look, resized, close. Policy, safeguards, harvest pool and fallback behind one door
//! that never fails.
//!
//! A call that gets what its user reserved and is not looked at costs no allocation and touches no
//! ledger; a run has millions of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use windfall_core::call::Beyond;
use windfall_core::{
    AdmitBy, Allocation, Amendment, CallClose, CallControl, CallDecision, CallHints, CallId,
    CallPlan, CallPolicy, CallSafeguardChain, CallView, Duration, GrantChange, Look, NodeId,
    NodeOffer, Refusal, Resized, RunningCall, Start, Timestamp,
};

use crate::admission::{AdmissionBook, AdmissionSettings, StartedCall};
use crate::harvest_pool::{Coverage, HarvestPool};
use crate::node_ledger::{Claim, NodeLedger};
use crate::quarantine::{Quarantine, catch};

/// No call is looked at again sooner than this, whatever a policy asks: a look after no time at all
/// would stop time.
pub const SHORTEST_LOOK: Duration = Duration::from_millis(1);

/// How much CPU counts in coverage; the rest is memory's. As in Libra.
const CPU_WEIGHT: f64 = 0.9;

/// What a loop has lived through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounters {
    /// Calls sized; a platform need not ask for calls that are left alone.
    pub sized: u64,
    /// Looks at running calls.
    pub looks: u64,
    /// Answers of the policy, at dispatch or at a look, that the fallback replaced.
    pub fallbacks: u64,
    /// Times the policy was quarantined.
    pub quarantines: u64,
    /// Loans called back.
    pub recalls: u64,
    /// Changes that did not come into force as asked.
    pub refused_changes: u64,
    /// Calls that were lost.
    pub lost: u64,
    /// Places where a safeguard stepped in, by its name.
    pub amendments: BTreeMap<Cow<'static, str>, u64>,
}

impl CallCounters {
    #[inline]
    fn count(&mut self, amendments: &[Amendment]) {
        for amendment in amendments {
            match self.amendments.get_mut(&amendment.rule) {
                Some(count) => *count += 1,
                None => {
                    self.amendments.insert(amendment.rule.clone(), 1);
                }
            }
        }
    }
}

/// The call loop with all its parts.
pub struct CallLoop {
    policy: Box<dyn CallPolicy>,
    safeguards: CallSafeguardChain,
    shadow: Option<Box<dyn CallPolicy>>,
    quarantine: Quarantine,
    /// Whether the policy need not be asked; see [`CallPolicy::leaves_calls_alone`].
    leaves_calls_alone: bool,
    /// Whether policy, shadow or any rule wants to know how calls end.
    is_curious: bool,
    nodes: Vec<NodeLedger>,
    /// Who decides whether a node can take a call.
    admit_by: AdmitBy,
    /// What running calls are expected to use, if that decides.
    admission: Option<AdmissionBook>,
    /// How often calls are looked at on nodes that are short of CPU.
    looks_while_short: Option<Duration>,
    counters: CallCounters,
}

impl CallLoop {
    /// A loop that obeys `policy` within `safeguards`.
    pub fn new(policy: Box<dyn CallPolicy>, safeguards: CallSafeguardChain) -> Self {
        Self {
            leaves_calls_alone: policy.leaves_calls_alone(),
            is_curious: policy.learns() || !safeguards.is_empty(),
            policy,
            safeguards,
            shadow: None,
            quarantine: Quarantine::new(3, 100),
            nodes: Vec::new(),
            admit_by: AdmitBy::Grants,
            admission: None,
            looks_while_short: None,
            counters: CallCounters::default(),
        }
    }

    /// A policy that is asked at every dispatch, recorded, and never obeyed. Its errors do not matter.
    pub fn with_shadow(mut self, shadow: Box<dyn CallPolicy>) -> Self {
        self.is_curious |= shadow.learns();
        self.shadow = Some(shadow);
        self
    }

    /// Nodes take calls by what running ones are expected to use, not by what is granted.
    pub fn with_admission(mut self, settings: AdmissionSettings) -> Self {
        self.is_curious = true;
        self.admit_by = AdmitBy::Control;
        self.admission = Some(AdmissionBook::new(settings));
        self
    }

    /// Looks at all calls of a node this often while calls there wait for CPU.
    pub fn looking_while_short(mut self, every: Duration) -> Self {
        self.looks_while_short = Some(every.max(SHORTEST_LOOK));
        self
    }

    /// Nodes take calls by what all of them will use, which only a simulator knows: for reports.
    pub fn admitted_by_future_peak(mut self) -> Self {
        self.admit_by = AdmitBy::FuturePeak;
        self
    }

    /// What running calls are expected to use, if that decides which node takes a call.
    pub fn admission(&self) -> Option<&AdmissionBook> {
        self.admission.as_ref()
    }

    /// Counts what `before` has running in this loop's own book of expected use: the calls that another loop started are
    /// on the same nodes.
    pub fn inherit_admission(&mut self, before: &mut Self) {
        if let (Some(mine), Some(theirs)) = (&mut self.admission, &mut before.admission) {
            mine.inherit(theirs);
        }
    }

    /// A look at a call of another loop that this one's book counts.
    pub fn looked_elsewhere(&mut self, running: &RunningCall) {
        if let Some(admission) = &mut self.admission {
            admission.look(running, None);
        }
    }

    /// A call of another loop that this one's book counts is gone.
    pub fn closed_elsewhere(&mut self, end: &CallClose<'_>) {
        if let Some(admission) = &mut self.admission {
            admission.end(end);
        }
    }

    /// Other limits for failing policies; a quarantine is counted in questions to the policy.
    pub fn with_quarantine(mut self, quarantine: Quarantine) -> Self {
        self.quarantine = quarantine;
        self
    }

    /// The name of the policy in charge.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// What happened so far.
    pub fn counters(&self) -> CallCounters {
        CallCounters { quarantines: self.quarantine.times(), ..self.counters.clone() }
    }

    /// Whether the policy is quarantined and every call gets its reservation.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.is_resting()
    }

    /// The harvest pool of a node, once anything was harvested there.
    pub fn pool(&self, node: NodeId) -> Option<&HarvestPool> {
        self.nodes.get(node.index()).map(NodeLedger::pool)
    }

    /// The ledger of a node; ledgers grow with the cluster.
    fn node(&mut self, node: NodeId) -> &mut NodeLedger {
        if node.index() >= self.nodes.len() {
            self.nodes.resize_with(node.index() + 1, NodeLedger::default);
        }
        &mut self.nodes[node.index()]
    }

    /// The ledger of a node on which anything is lent or left to lend.
    fn ledger_in_use(&mut self, node: NodeId) -> Option<&mut NodeLedger> {
        self.nodes.get_mut(node.index()).filter(|ledger| !ledger.is_empty())
    }

    /// Drops what is kept for a call that is gone without an outcome.
    #[cold]
    fn forget(&mut self, call: CallId) {
        self.counters.lost += 1;
        self.safeguards.lost(call);
        self.report(|policy| policy.lost(call));
    }

    /// Reports something to the policy and to the shadow. A panic counts as a failure of the policy; the shadow is
    /// never obeyed, so a panic of it changes nothing.
    #[inline]
    fn report(&mut self, mut event: impl FnMut(&mut dyn CallPolicy)) {
        if catch(|| event(self.policy.as_mut())).is_err() {
            self.quarantine.note(false);
        }
        if let Some(shadow) = &mut self.shadow {
            let _ = catch(|| event(shadow.as_mut()));
        }
    }

    /// The policy's decision within the safeguards, or what the user reserved. One straight line to the
    /// plan, because every call takes it: decision and plan are large, and nothing moves them about.
    #[inline(always)]
    fn plan_for(&mut self, call: &CallView) -> CallPlan {
        if self.leaves_calls_alone {
            return self.plan_as_reserved(call);
        }
        let policy = &mut self.policy;
        let problem = match self.quarantine.admit() {
            Ok(()) => match &catch(|| policy.size(call)) {
                Ok(Ok(decision)) => match self.safeguards.at_dispatch(call, decision) {
                    Ok(plan) => {
                        self.quarantine.note(true);
                        if !plan.amendments().is_empty() {
                            self.counters.count(plan.amendments());
                        }
                        return plan;
                    }
                    Err(nonsense) => self.failed(&nonsense),
                },
                Ok(Err(error)) => self.failed(error),
                Err(panic) => self.failed(panic),
            },
            Err(problem) => problem,
        };
        self.size_by_fallback(call, problem)
    }

    #[inline(always)]
    fn plan_as_reserved(&mut self, call: &CallView) -> CallPlan {
        let plan = self.safeguards.as_reserved(call);
        if !plan.amendments().is_empty() {
            self.counters.count(plan.amendments());
        }
        plan
    }

    #[cold]
    fn failed(&mut self, problem: &dyn std::fmt::Display) -> String {
        self.quarantine.note(false);
        problem.to_string()
    }

    /// What the user reserved, because the policy failed in this way.
    #[cold]
    fn size_by_fallback(&mut self, call: &CallView, problem: String) -> CallPlan {
        self.counters.fallbacks += 1;
        let decision = CallDecision::exactly(call.reservation, "fallback: the user's size");
        let plan =
            self.safeguards.at_dispatch(call, &decision).expect("a reservation is an amount");
        self.counters.count(plan.amendments());
        plan.decided_by_fallback(problem)
    }

    /// At least what the user reserved, and nothing taken away: memory in use must not be cut in doubt.
    fn look_by_fallback(&mut self, running: &RunningCall) -> CallPlan {
        self.counters.fallbacks += 1;
        let grant = running.grant.max(running.reservation);
        let decision = CallDecision::exactly(grant, "fallback: at least the user's size");
        self.safeguards.while_running(running, &decision).expect("a grant is an amount")
    }

    /// What a call starts with that is to hold more or less than its user reserved; loans are settled.
    #[inline(never)]
    fn settle_start(
        &mut self,
        call: &CallView,
        plan: &CallPlan,
        node: NodeId,
        room: Allocation,
    ) -> Allocation {
        let (wanted, reservation) = (plan.grant(), call.reservation);
        let own = plan.least();
        let more = wanted.saturating_sub(reservation).min(room.saturating_sub(own));
        let more = match plan.beyond() {
            Beyond::FreeCapacity => more,
            Beyond::HarvestPool if more == Allocation::ZERO => more,
            Beyond::HarvestPool => self.node(node).borrow(call.id, own, more),
        };
        let harvested = reservation.saturating_sub(own);
        if harvested != Allocation::ZERO {
            // A run of unknown length may end at any moment: it is lent last.
            let until = call.now + plan.expected_run().unwrap_or(Duration::ZERO);
            self.node(node).put(call.id, harvested, until);
        }
        own + more
    }

    fn ask_shadow(&mut self, call: &CallView, plan: CallPlan) -> CallPlan {
        let Some(shadow) = &mut self.shadow else { return plan };
        // A shadow is never obeyed, so neither an error nor a panic of it changes anything.
        match catch(|| shadow.size(call)) {
            Ok(Ok(decision)) if decision.size().is_finite() => plan.with_shadow(&decision),
            _ => plan,
        }
    }
}

impl CallControl for CallLoop {
    fn size(&mut self, call: &CallView) -> CallPlan {
        self.counters.sized += 1;
        if self.shadow.is_none() {
            self.plan_for(call)
        } else {
            let plan = self.plan_for(call);
            self.ask_shadow(call, plan)
        }
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        if let Some(admission) = &mut self.admission {
            admission.start(StartedCall {
                node,
                call: call.id,
                function: call.function,
                reservation: call.reservation,
                demand: plan.demand(),
                now: call.now,
            });
        }
        let look_after = plan.look_after().map(|after| after.max(SHORTEST_LOOK));
        let cpu_ceiling = plan.cpu_ceiling();
        let (wanted, reservation) = (plan.grant(), call.reservation);
        if wanted == reservation {
            return Start { grant: wanted, cpu_ceiling, look_after };
        }
        Start { grant: self.settle_start(call, plan, node, room), cpu_ceiling, look_after }
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        self.counters.looks += 1;
        let Self { policy, safeguards, quarantine, .. } = self;
        let judged = if running.sensed.is_lost() {
            Err("the measurement was lost".to_owned())
        } else {
            quarantine.guard(|| {
                let decision = policy.supervise(running).map_err(|error| error.to_string())?;
                safeguards
                    .while_running(running, &decision)
                    .map_err(|nonsense| nonsense.to_string())
            })
        };
        let plan = judged.unwrap_or_else(|_| self.look_by_fallback(running));
        self.counters.count(plan.amendments());
        if let Some(admission) = &mut self.admission {
            admission.look(running, plan.demand());
        }

        let claim = Claim {
            grant: plan.grant(),
            beyond: plan.beyond(),
            until: plan.expected_run().map(|run| running.started_at + run),
        };
        let known = changes.len();
        let grant = self.node(running.node).settle(running, &claim, changes);
        self.counters.recalls += (changes.len() - known) as u64;
        let look_after = plan.look_after().map(|after| after.max(SHORTEST_LOOK));
        let (held_back, cpu_ceiling, why) = (plan.held_back(), plan.cpu_ceiling(), plan.why());
        let amendments = plan.into_amendments();
        Look { grant, cpu_ceiling, look_after, held_back, why, amendments }
    }

    fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        self.safeguards.resized(change);
        // The answer to a change that a later one replaced: the ledger is at the later one already.
        if change.in_force == change.asked || change.refused == Some(Refusal::Superseded) {
            return;
        }
        self.counters.refused_changes += 1;
        let known = changes.len();
        if let Some(ledger) = self.ledger_in_use(change.node) {
            ledger.resized(change, changes);
        }
        let others = changes[known..].iter().filter(|other| other.call != change.call).count();
        self.counters.recalls += others as u64;
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        match end {
            CallClose::Measured(outcome) => {
                self.safeguards.at_end(outcome);
                self.report(|policy| policy.learn(outcome));
            }
            CallClose::Lost { call, .. } => self.forget(call),
        }
        if let Some(admission) = &mut self.admission {
            admission.end(&end);
        }
        let known = changes.len();
        if let Some(ledger) = self.ledger_in_use(end.node()) {
            ledger.end(end.call(), changes);
        }
        self.counters.recalls += (changes.len() - known) as u64;
    }

    fn admit(&self, call: &CallView, plan: &CallPlan, offer: &NodeOffer) -> Option<f64> {
        let Some(admission) = &self.admission else { return Some(0.0) };
        admission.admit(offer, call.function, call.reservation, plan.demand())
    }

    fn hints(&self) -> CallHints {
        CallHints {
            needs_outcomes: self.is_curious || !self.nodes.is_empty(),
            leaves_calls_alone: self.leaves_calls_alone
                && self.safeguards.is_empty()
                && self.shadow.is_none()
                && self.admit_by == AdmitBy::Grants,
            admit_by: self.admit_by,
            looks_while_short: self.looks_while_short,
        }
    }

    fn coverage(&self, node: NodeId, plan: &CallPlan, now: Timestamp) -> f64 {
        let wanted = plan.grant().saturating_sub(plan.least());
        if wanted == Allocation::ZERO || plan.beyond() != Beyond::HarvestPool {
            return 0.0;
        }
        let Some(pool) = self.pool(node) else { return 0.0 };
        let until = now + plan.expected_run().unwrap_or(Duration::ZERO);
        let Coverage { cpu, memory } = pool.coverage(wanted, now, until);
        // A resource that is not wanted has no say.
        let cpu_weight = if wanted.cpu.get() > 0 { CPU_WEIGHT } else { 0.0 };
        let memory_weight = if wanted.memory.get() > 0 { 1.0 - CPU_WEIGHT } else { 0.0 };
        (cpu_weight * cpu + memory_weight * memory) / (cpu_weight + memory_weight)
    }
}

#[cfg(test)]
mod scripted_platform;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod tests;
