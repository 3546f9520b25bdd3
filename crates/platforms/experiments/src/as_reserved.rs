//! Calls at the user's own size, for experiments in which something else is decided: a limit, or what a tick does.

use windfall_core::{CallDecision, CallPolicy, CallView, PolicyError};

/// Nobody sizes calls.
pub(crate) struct AsReserved;

impl CallPolicy for AsReserved {
    fn name(&self) -> &str {
        "fixed"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        Ok(CallDecision::exactly(call.reservation, "the user's size"))
    }

    fn leaves_calls_alone(&self) -> bool {
        true
    }

    fn learns(&self) -> bool {
        false
    }
}
