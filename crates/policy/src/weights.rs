//! Weights: requests without limits. Every call is guaranteed what its user reserves, by weight, and may use whatever
//! others leave idle; how far nodes promise more than they have is the platform's over-commit.
//!
//! This is what a cluster does whose users set requests and no limits, and the baseline for everything that decides
//! more: the kernel itself lends what lies idle and takes it back, with no sensor and no change. Two calls that reserve
//! 2 cores each on a node of 2 (over-commit 2) get 1 core each while both want 2, and all of it while the other waits.

use windfall_core::{CallDecision, CallPolicy, CallView, CpuCeiling, PolicyError};

/// The user's reservation as a weight, without a ceiling.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weights;

impl CallPolicy for Weights {
    fn name(&self) -> &str {
        "weights"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        Ok(CallDecision {
            cpu_ceiling: CpuCeiling::Unlimited,
            ..CallDecision::exactly(call.reservation, "the user's size as a weight")
        })
    }

    fn learns(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::view;
    use windfall_core::Allocation;

    #[test]
    fn every_call_is_guaranteed_its_reservation_without_a_ceiling() {
        let user = Allocation::new(2000, 512);
        let decision = Weights.size(&view(user, Allocation::new(8000, 1024))).unwrap();
        assert_eq!(decision.grant(), Ok(user));
        assert_eq!(decision.cpu_ceiling, CpuCeiling::Unlimited);
    }
}
