//! Orders of users at single calls.

use std::sync::Arc;

use windfall_core::{
    Allocation, CallSafeguard, CallView, CpuCeiling, CpuDemand, MilliCpu, Proposal, RunningCall,
};

use super::{Governance, ORDER_RULES, Standing};

/// The last rule of the call chain: a call of a function that is not managed has its user's size, one of a pinned
/// function the pinned size. A running call gets it at its next look. The first calls of a function that is managed have
/// their user's size too, because its objective is learned from them.
#[derive(Clone, Debug)]
pub struct CallRule {
    governance: Arc<Governance>,
}

impl CallRule {
    /// Carries out the orders in `governance`.
    pub fn new(governance: Arc<Governance>) -> Self {
        Self { governance }
    }

    fn order(&self, proposal: &mut Proposal, own: Allocation, ceiling: Allocation) {
        let [mode, hold] = ORDER_RULES;
        let (rule, size, reason) = match self.governance.standing_of_call(proposal.function) {
            Standing::Managed => return,
            Standing::Own(reason) => (mode, own, reason),
            Standing::Pinned(size) => (hold, size, "the size is pinned"),
        };
        let size = size.min(ceiling);
        proposal.amend_cpu(rule, size.cpu, reason);
        proposal.amend_memory(rule, size.memory, reason);
        proposal.amend_ceiling(rule, CpuCeiling::AtGrant, reason);
        // Nobody's estimate of its use: where nodes are filled by expected use, the call counts with its size.
        proposal.demand = Some(CpuDemand::constant(size.cpu.cores()));
        proposal.look_after = None;
        proposal.held_back = MilliCpu::ZERO;
    }
}

impl CallSafeguard for CallRule {
    fn name(&self) -> &'static str {
        ORDER_RULES[0]
    }

    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
        self.order(proposal, call.reservation, call.ceiling);
    }

    fn while_running(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        self.order(proposal, running.reservation, running.ceiling);
    }
}
