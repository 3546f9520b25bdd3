//! Memory is left as the user reserves it: for policies whose CPU sizing is wanted without the risk of kills.

use windfall_core::{CallSafeguard, CallView, Mebibytes, Proposal, RunningCall};

pub(super) const NAME: &str = "reserved-memory";

/// Never less memory than the user reserves.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReservedMemory;

impl ReservedMemory {
    fn hold(reserved: Mebibytes, proposal: &mut Proposal) {
        let memory = proposal.grant.memory.max(reserved);
        proposal.amend_memory(NAME, memory, "memory stays as it is reserved");
    }
}

impl CallSafeguard for ReservedMemory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
        Self::hold(call.reservation.memory, proposal);
    }

    fn while_running(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        Self::hold(running.reservation.memory, proposal);
    }
}
