//! The control and the calls it decides about: where the pool asks for sizes.

use std::collections::HashMap;

use windfall_core::{
    AdmitBy, Allocation, CallClose, CallControl, CallId, CallPlan, CallSafeguardChain, CpuCeiling,
    DecidedBy, Duration, GrantChange, NodeId, NodeOffer, Room, Start, Timestamp,
};

use super::AgentSettings;
use super::call_state::AgentCall;
use crate::clock::Clock;
use crate::pool::Sizer;

/// The one node of this platform.
pub(super) const NODE: NodeId = NodeId(0);

pub(super) struct Desk {
    pub(super) control: Box<dyn CallControl>,
    pub(super) calls: HashMap<CallId, AgentCall>,
    /// Whether the control has nothing to say about any call: each gets the user's size and nobody learns.
    pub(super) skips_control: bool,
    /// How often all calls are looked at while some of them wait for CPU.
    pub(super) looks_while_short: Option<Duration>,
    admit_by: AdmitBy,
    offer: NodeOffer,
    clock: Clock,
    /// A decision that takes longer is not used.
    budget: Duration,
    pub(super) late_decisions: u64,
    now: Timestamp,
    free: Room,
    waiting: u64,
}

impl Desk {
    pub(super) fn new(
        control: Box<dyn CallControl>,
        clock: Clock,
        settings: &AgentSettings,
    ) -> Self {
        let hints = control.hints();
        let AgentSettings { cores, over_commit, decision_budget: budget, .. } = *settings;
        Self {
            skips_control: hints.leaves_calls_alone && !hints.needs_outcomes,
            looks_while_short: hints.looks_while_short,
            admit_by: hints.admit_by,
            offer: NodeOffer { node: NODE, cores, over_commit },
            control,
            calls: HashMap::new(),
            clock,
            budget,
            late_decisions: 0,
            now: Timestamp::ZERO,
            free: Room::default(),
            waiting: 0,
        }
    }

    /// What the next questions are asked about.
    pub(super) fn set_scene(&mut self, now: Timestamp, room: Allocation, waiting: u64) {
        self.now = now;
        self.free = Room { cores: room.cpu.cores(), mib: room.memory.mib() };
        self.waiting = waiting;
    }

    /// Whether a policy wants to know how calls end, or rules do.
    pub(super) fn needs_outcomes(&self) -> bool {
        !self.skips_control && self.control.hints().needs_outcomes
    }

    /// The plan for a call: the policy's if it comes in time.
    fn plan(&mut self, id: CallId) -> CallPlan {
        let Self { control, calls, clock, budget, now, .. } = self;
        let call = calls.get_mut(&id).expect("the pool asks about calls that have come");
        call.view.now = *now;
        (call.view.free_in_cluster, call.view.waiting) = (self.free, self.waiting);
        if call.attempt > 0 {
            // The user's size, which no policy is asked about.
            return CallSafeguardChain::default().as_reserved(&call.view);
        }
        let late = call.late;
        let problem = if late > *budget {
            format!("the agent was {late} late, allowed are {budget}")
        } else {
            let begun = clock.now();
            let plan = control.size(&call.view);
            let took = clock.now().since(begun);
            if took <= *budget {
                return plan;
            }
            format!("the decision took {took}, allowed are {budget}")
        };
        self.late_decisions += 1;
        CallSafeguardChain::default().as_reserved(&call.view).decided_by_fallback(problem)
    }

    /// The call has left its node. What others must give back goes to `changes`.
    pub(super) fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        let Some(call) = self.calls.get_mut(&end.call()).filter(|call| call.is_open) else {
            return;
        };
        call.is_open = false;
        call.change = None;
        self.control.close(end, changes);
    }
}

impl Sizer for Desk {
    fn least(&mut self, id: CallId) -> Allocation {
        let call = &self.calls[&id];
        if self.skips_control || call.has_own_size {
            return call.view.reservation.min(call.view.ceiling);
        }
        let plan = self.plan(id);
        let least = plan.least();
        let call = self.calls.get_mut(&id).expect("it was just sized");
        if call.attempt == 0 {
            call.record.wanted = plan.wanted();
            call.record.decided_by = plan.decided_by().clone();
            call.record.shadow = plan.shadow();
            call.record.amendments = plan.amendments().to_vec();
        }
        call.plan = Some(plan);
        least
    }

    fn start(&mut self, id: CallId, room: Allocation) -> Allocation {
        let now = self.now;
        let call = self.calls.get_mut(&id).expect("the pool starts calls that have come");
        let start = match call.plan.take() {
            Some(plan) => {
                call.view.now = now;
                call.is_open = true;
                self.control.start(&call.view, &plan, NODE, room)
            }
            None => Start {
                grant: call.view.reservation.min(call.view.ceiling),
                cpu_ceiling: CpuCeiling::AtGrant,
                look_after: None,
            },
        };
        call.begin(now, start);
        start.grant
    }

    fn admits(&mut self, id: CallId) -> bool {
        let call = &self.calls[&id];
        match (self.admit_by, &call.plan) {
            (AdmitBy::Control, Some(plan)) => {
                self.control.admit(&call.view, plan, &self.offer).is_some()
            }
            // Nobody here knows the future, so what is granted decides.
            (AdmitBy::Grants | AdmitBy::FuturePeak, _) | (AdmitBy::Control, None) => true,
        }
    }
}

/// Why the user's own size was used, if it was.
pub(super) fn fallback_of(decided_by: &DecidedBy) -> Option<String> {
    match decided_by {
        DecidedBy::Policy => None,
        DecidedBy::Fallback(problem) => Some(problem.clone()),
    }
}
