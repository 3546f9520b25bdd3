//! One call: size, start, look, close. Policy, safeguards, harvest pool and fallback behind one door
//! that never fails.
//!
//! A call that gets what its user reserved and is not looked at costs no allocation and touches no
//! ledger; a run has millions of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use windfall_core::call::Beyond;
use windfall_core::{
    Allocation, Amendment, CallControl, CallDecision, CallOutcome, CallPlan, CallPolicy,
    CallSafeguardChain, CallView, Duration, GrantChange, Look, NodeId, RunningCall, Start,
    Timestamp,
};

use crate::harvest_pool::HarvestPool;
use crate::node_ledger::{Claim, NodeLedger};
use crate::quarantine::Quarantine;

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
    /// Times the policy was sent to rest.
    pub quarantines: u64,
    /// Loans called back.
    pub recalls: u64,
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
            counters: CallCounters::default(),
        }
    }

    /// A policy that is asked at every dispatch, recorded, and never obeyed. Its errors do not matter.
    pub fn with_shadow(mut self, shadow: Box<dyn CallPolicy>) -> Self {
        self.is_curious |= shadow.learns();
        self.shadow = Some(shadow);
        self
    }

    /// Another patience with failing policies; rests are counted in questions to the policy.
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

    /// Whether the policy rests and every call gets its reservation.
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

    /// The policy's wish within the safeguards, or what the user reserved. One straight line to the
    /// plan, because every call takes it: wish and plan are large, and nothing moves them about.
    #[inline(always)]
    fn plan_for(&mut self, call: &CallView) -> CallPlan {
        if self.leaves_calls_alone {
            return self.plan_as_reserved(call);
        }
        let problem = match self.quarantine.admit() {
            Ok(()) => match &self.policy.size(call) {
                Ok(wish) => match self.safeguards.at_dispatch(call, wish) {
                    Ok(plan) => {
                        self.quarantine.note(true);
                        if !plan.amendments().is_empty() {
                            self.counters.count(plan.amendments());
                        }
                        return plan;
                    }
                    Err(nonsense) => self.failed(&nonsense),
                },
                Err(error) => self.failed(error),
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
        let wish = CallDecision::exactly(call.reservation, "fallback: the user's size");
        let plan = self.safeguards.at_dispatch(call, &wish).expect("a reservation is an amount");
        self.counters.count(plan.amendments());
        plan.decided_by_fallback(problem)
    }

    /// At least what the user reserved, and nothing taken away: memory in use must not be cut in doubt.
    fn look_by_fallback(&mut self, running: &RunningCall) -> CallPlan {
        self.counters.fallbacks += 1;
        let grant = running.grant.max(running.reservation);
        let wish = CallDecision::exactly(grant, "fallback: at least the user's size");
        self.safeguards.while_running(running, &wish).expect("a grant is an amount")
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
        let wish = self.shadow.as_mut().and_then(|shadow| shadow.size(call).ok());
        match wish {
            Some(wish) if wish.cpu_cores.is_finite() && wish.memory_mib.is_finite() => {
                plan.with_shadow(&wish)
            }
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
        let look_after = plan.look_after().map(|after| after.max(SHORTEST_LOOK));
        let (wanted, reservation) = (plan.grant(), call.reservation);
        if wanted == reservation {
            return Start { grant: wanted, look_after };
        }
        Start { grant: self.settle_start(call, plan, node, room), look_after }
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        self.counters.looks += 1;
        let Self { policy, safeguards, quarantine, .. } = self;
        let judged = if running.sensed.is_lost() {
            Err("the measurement was lost".to_owned())
        } else {
            quarantine.guard(|| {
                let wish = policy.supervise(running).map_err(|error| error.to_string())?;
                safeguards.while_running(running, &wish).map_err(|nonsense| nonsense.to_string())
            })
        };
        let plan = judged.unwrap_or_else(|_| self.look_by_fallback(running));
        self.counters.count(plan.amendments());

        let claim = Claim {
            grant: plan.grant(),
            beyond: plan.beyond(),
            until: plan.expected_run().map(|run| running.started_at + run),
        };
        let known = changes.len();
        let grant = self.node(running.node).settle(running, &claim, changes);
        self.counters.recalls += (changes.len() - known) as u64;
        let look_after = plan.look_after().map(|after| after.max(SHORTEST_LOOK));
        let held_back = plan.held_back();
        Look { grant, look_after, held_back, why: plan.why(), amendments: plan.into_amendments() }
    }

    fn close(&mut self, outcome: &CallOutcome, changes: &mut Vec<GrantChange>) {
        self.safeguards.at_end(outcome);
        self.policy.learn(outcome);
        if let Some(shadow) = &mut self.shadow {
            shadow.learn(outcome);
        }
        let known = changes.len();
        if let Some(ledger) = self.nodes.get_mut(outcome.node.index())
            && !ledger.is_empty()
        {
            ledger.end(outcome.id, changes);
        }
        self.counters.recalls += (changes.len() - known) as u64;
    }

    fn needs_outcomes(&self) -> bool {
        self.is_curious || !self.nodes.is_empty()
    }

    fn leaves_calls_alone(&self) -> bool {
        self.leaves_calls_alone && self.safeguards.is_empty() && self.shadow.is_none()
    }

    fn coverage(&self, node: NodeId, plan: &CallPlan, now: Timestamp) -> f64 {
        let wanted = plan.grant().saturating_sub(plan.least());
        if wanted == Allocation::ZERO || plan.beyond() != Beyond::HarvestPool {
            return 0.0;
        }
        let Some(pool) = self.pool(node) else { return 0.0 };
        let until = now + plan.expected_run().unwrap_or(Duration::ZERO);
        let (cpu, memory) = pool.coverage(wanted, now, until);
        // A resource that is not wanted has no say.
        let cpu_weight = if wanted.cpu.get() > 0 { CPU_WEIGHT } else { 0.0 };
        let memory_weight = if wanted.memory.get() > 0 { 1.0 - CPU_WEIGHT } else { 0.0 };
        (cpu_weight * cpu + memory_weight * memory) / (cpu_weight + memory_weight)
    }
}

#[cfg(test)]
mod tests;
