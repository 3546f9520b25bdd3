//! Fixed: every call gets exactly what its user reserves and is not supervised.
//!
//! This is what platforms do today and the baseline for all other policies: if the user reserves 2 cores
//! and 512 MiB, every call gets 2 cores and 512 MiB, the first one and the thousandth.

use windfall_core::{CallDecision, CallPolicy, CallView, PolicyError};

/// The user's reservation, unsupervised.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl CallPolicy for Fixed {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{FakePlatform, one_core_second};
    use windfall_core::Allocation;

    #[test]
    fn every_call_gets_the_reservation_and_no_look() {
        let reservation = Allocation::new(2000, 512);
        let mut platform = FakePlatform::new(reservation, Allocation::new(8000, 1024));
        for _ in 0..10 {
            let call = platform.call(&mut Fixed, one_core_second());
            assert_eq!((call.first_grant, call.looks), (reservation, 0));
        }
    }
}
