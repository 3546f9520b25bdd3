//! FaaSRM's safeguard: the next call stays between the recent peak and the user's allocation.

use windfall_core::{CallOutcome, CallSafeguard, CallView, PeakRange, PeakSettings, Proposal};

pub(super) const NAME: &str = "faasrm";

/// Clamps what a call starts with into the range that the function's last calls allow.
///
/// It acts on the next call only; a running one keeps what it has. A function that came close to its
/// reservation is allowed nothing below its recent peak, which can lie above the reservation: then, and
/// only then, this rule raises a decision for exactly the reservation.
#[derive(Clone, Debug, Default)]
pub struct Faasrm {
    ranges: PeakRange,
}

impl Faasrm {
    /// The rule with these thresholds and steps.
    pub fn new(settings: PeakSettings) -> Self {
        Self { ranges: PeakRange::new(settings) }
    }
}

impl CallSafeguard for Faasrm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
        let (least, most) = self.ranges.range(call.function, call.reservation, call.ceiling);
        let reason = if least == most && most == call.reservation {
            "the user's size, to calibrate"
        } else {
            "between the recent peak and what the function may have"
        };
        proposal.amend_cpu(NAME, proposal.grant.cpu.clamp(least.cpu, most.cpu), reason);
        let memory = proposal.grant.memory.clamp(least.memory, most.memory);
        proposal.amend_memory(NAME, memory, reason);
    }

    fn at_end(&mut self, outcome: &CallOutcome) {
        self.ranges.observe(outcome);
    }
}
