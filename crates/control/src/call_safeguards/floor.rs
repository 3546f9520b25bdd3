//! A share of the reservation that is never taken.

use std::collections::BTreeMap;

use windfall_core::{
    Allocation, CallSafeguard, CallView, FunctionId, Mebibytes, MilliCpu, Proposal, RunningCall,
};

pub(super) const NAME: &str = "floor";

/// Shares of the reservation, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloorShare {
    /// Of the CPU.
    pub cpu: f64,
    /// Of the memory.
    pub memory: f64,
}

impl Default for FloorShare {
    /// A twentieth of the CPU and a quarter of the memory.
    fn default() -> Self {
        Self { cpu: 0.05, memory: 0.25 }
    }
}

/// Never below a share of what the user reserves.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    /// For functions without a share of their own.
    pub share: FloorShare,
    /// For single functions; 1 means that nothing is ever taken from them.
    pub per_function: BTreeMap<FunctionId, FloorShare>,
}

impl Floor {
    fn hold(&self, function: FunctionId, reservation: Allocation, proposal: &mut Proposal) {
        let own =
            if self.per_function.is_empty() { None } else { self.per_function.get(&function) };
        let share = own.unwrap_or(&self.share);
        let cpu = part(reservation.cpu.get(), share.cpu);
        let memory = part(reservation.memory.get(), share.memory);
        let reason = "the floor is a share of the reservation";
        proposal.amend_cpu(NAME, proposal.grant.cpu.max(MilliCpu::new(cpu)), reason);
        proposal.amend_memory(NAME, proposal.grant.memory.max(Mebibytes::new(memory)), reason);
    }
}

/// Rounded up, and never more than the whole.
fn part(whole: u32, share: f64) -> u32 {
    ((f64::from(whole) * share).ceil() as u32).min(whole)
}

impl CallSafeguard for Floor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
        self.hold(call.function, call.reservation, proposal);
    }

    fn while_running(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        self.hold(running.function, running.reservation, proposal);
    }
}
