//! Orders of users at ticks.

use std::sync::Arc;

use windfall_core::{
    Allocation, FunctionId, FunctionView, Observation, Plan, PlannedTarget, Receipt, Resource,
    Safeguard, Setting, Verdict,
};

use super::{Governance, Hold, ORDER_RULES, Standing};

/// The last rule of the tick chain. A function that is not managed is left alone; if its size was changed from here
/// before, it gets its own back, again and again until an observation shows it.
///
/// *Worked.* In mode `auto` a function that reserves 1000m was set to 400m. A user turns the kill switch: the next plan
/// asks for 1000m whatever the policy proposes. A function that somebody else had set to 300m stays at 300m.
#[derive(Clone, Debug)]
pub struct TickRule {
    governance: Arc<Governance>,
}

impl TickRule {
    /// Carries out the orders in `governance`.
    pub fn new(governance: Arc<Governance>) -> Self {
        Self { governance }
    }

    /// What is to be set for a function that the policy has no say about.
    fn ordered(&self, view: Option<&FunctionView>, size: Allocation) -> PlannedTarget {
        let Some(view) = view else { return PlannedTarget::keep(FunctionId::default()) };
        let target = PlannedTarget::keep(view.function);
        if view.allocation == size {
            return target;
        }
        PlannedTarget { cpu: Setting::Set(size.cpu), memory: Setting::Set(size.memory), ..target }
    }
}

impl Safeguard for TickRule {
    fn name(&self) -> &'static str {
        ORDER_RULES[0]
    }

    fn begin(&mut self, seen: &Observation) -> Vec<FunctionId> {
        let touched = self.governance.touched();
        let whole = |id: &FunctionId| {
            seen.function(*id).is_some_and(|view| view.allocation == view.reservation)
        };
        let fresh = seen.taken_at == seen.now;
        touched.iter().filter(|id| fresh && whole(id)).for_each(|id| self.governance.untouch(*id));
        let pinned = self.governance.holds().into_iter();
        let pinned = pinned.filter(|(_, hold)| matches!(hold, Hold::Pinned { .. }));
        touched.into_iter().chain(pinned.map(|(id, _)| id)).collect()
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let function = proposed.function;
        let view = seen.function(function);
        let (target, reason) = match self.governance.standing(function) {
            Standing::Managed => return Verdict::Accept,
            Standing::Pinned(size) => (self.ordered(view, size), "the size is pinned"),
            Standing::Own(reason) if self.governance.touched().contains(&function) => {
                let own = view.map_or(Allocation::ZERO, |view| view.reservation);
                (self.ordered(view, own), reason)
            }
            Standing::Own(reason) => (PlannedTarget::keep(function), reason),
        };
        let target = PlannedTarget { function, ..target };
        if target == *proposed {
            return Verdict::Accept;
        }
        Verdict::Amend { target, resource: Resource::All, reason: reason.into() }
    }

    fn submitted(&mut self, seen: &Observation, plan: &Plan, receipt: &Receipt) {
        for target in receipt.accepted(plan).filter(|target| target.is_resize()) {
            let own = seen.function(target.function).map(|view| view.reservation);
            let asked_own = own.is_some_and(|own| {
                target.cpu == Setting::Set(own.cpu) && target.memory == Setting::Set(own.memory)
            });
            if !asked_own {
                self.governance.touch(target.function);
            }
        }
    }
}
