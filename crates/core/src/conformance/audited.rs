//! A platform whose word is checked: every target is answered once, every accepted change ends once.

use std::collections::BTreeSet;

use crate::observation::Observation;
use crate::platform::{Answer, Capabilities, PlanId, Platform, PlatformError, Receipt};
use crate::safeguard::Plan;
use crate::time::Timestamp;
use crate::workload::{FunctionId, FunctionProfile};

/// Passes everything on to a platform and panics where it breaks the contract of [`Platform`]. For tests of drivers and
/// of the loop.
pub struct Audited<'a, P: ?Sized> {
    platform: &'a mut P,
    open: BTreeSet<(PlanId, FunctionId)>,
    accepted: u64,
    settled: u64,
}

impl<'a, P: Platform + ?Sized> Audited<'a, P> {
    /// A platform that has been asked for nothing yet.
    pub fn new(platform: &'a mut P) -> Self {
        Self { platform, open: BTreeSet::new(), accepted: 0, settled: 0 }
    }

    /// The platform inside.
    pub fn inner(&mut self) -> &mut P {
        self.platform
    }

    /// Changes that were accepted so far.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Accepted changes whose end has been reported so far.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Accepted changes that have not settled yet.
    pub fn open(&self) -> &BTreeSet<(PlanId, FunctionId)> {
        &self.open
    }
}

impl<P: Platform + ?Sized> Platform for Audited<'_, P> {
    fn functions(&self) -> &[FunctionProfile] {
        self.platform.functions()
    }

    fn capabilities(&self) -> Capabilities {
        self.platform.capabilities()
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        let seen = self.platform.observe(now)?;
        assert_eq!(seen.now, now, "the observation is of another time than was asked for");
        assert!(seen.taken_at <= seen.now, "measured at {}, after {now}", seen.taken_at);
        for one in &seen.settled {
            assert!(one.at <= now, "{one:?} settled after {now}");
            let was_open = self.open.remove(&(one.plan, one.function));
            assert!(was_open, "{one:?} was never accepted, or has settled before");
            self.settled += 1;
        }
        Ok(seen)
    }

    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        let receipt = self.platform.submit(now, plan);
        assert_eq!(receipt.plan, plan.id(), "the receipt is for another plan");
        let asked: Vec<FunctionId> = plan.targets().iter().map(|one| one.function).collect();
        let answered: Vec<FunctionId> = receipt.answers.iter().map(|one| one.function).collect();
        assert_eq!(answered, asked, "not one answer for each target in its order");
        for one in &receipt.answers {
            if one.answer == Answer::Queued {
                assert!(
                    self.open.insert((plan.id(), one.function)),
                    "plan {:?} was submitted twice for {:?}",
                    plan.id(),
                    one.function
                );
                self.accepted += 1;
            }
        }
        receipt
    }
}
