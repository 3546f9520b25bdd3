//! Oracle: knows each call's demand in advance and grants exactly that for the whole run.
//!
//! A call that can use 1.5 cores and will need 300 MiB gets 1.5 cores and 300 MiB, whether its user
//! reserves 4 cores or 1: it harvests the first and accelerates the second. It is for reports only, and it
//! is not a lower bound: it keeps the same size while the call is idle, where a policy that supervises the
//! call can hold less. The lower bound is what calls *use*.

use windfall_core::{Allocation, CallDecision, CallPolicy, CallView, PolicyError};

/// The demand of every call, known in advance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oracle;

impl CallPolicy for Oracle {
    fn name(&self) -> &str {
        "oracle"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let Some(foresight) = call.foresight else {
            return Err(PolicyError {
                policy: self.name().to_owned(),
                problem: format!(
                    "call {} has no foresight; run this policy in the simulator, which provides it",
                    call.id.0
                ),
            });
        };
        let demand = foresight.demand;
        let grant = Allocation { cpu: demand.parallelism, memory: demand.memory_peak };
        Ok(CallDecision::exactly(grant.min(call.ceiling), "what it will need"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{FakePlatform, one_core_second, view};

    #[test]
    fn it_harvests_large_reservations_and_accelerates_small_ones() {
        for reserved in [4000, 1000] {
            let mut platform =
                FakePlatform::new(Allocation::new(reserved, 512), Allocation::new(8000, 1024));
            platform.knows_the_future = true;
            for _ in 0..10 {
                let call = platform.call(&mut Oracle, one_core_second());
                assert_eq!(call.first_grant, Allocation::new(1500, 300));
                assert_eq!((call.run, call.looks), (one_core_second().fastest(), 0));
                assert!(!call.was_killed);
            }
        }
    }

    #[test]
    fn the_ceiling_applies_to_the_oracle_too() {
        let mut platform = FakePlatform::new(Allocation::new(500, 64), Allocation::new(1000, 512));
        platform.knows_the_future = true;
        let call = platform.call(&mut Oracle, one_core_second());
        assert_eq!(call.first_grant, Allocation::new(1000, 300));
    }

    #[test]
    fn a_call_without_foresight_is_an_error() {
        let blind = view(Allocation::new(1000, 256), Allocation::new(8000, 1024));
        let problem = Oracle.size(&blind).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "policy oracle: call 0 has no foresight; run this policy in the simulator, which provides it"
        );
    }
}
