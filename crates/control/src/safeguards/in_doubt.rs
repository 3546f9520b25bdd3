//! When it is not known what a function has, it gets its own allocation back.
//!
//! ```text
//!   refused as unreachable or by the system ─┐
//!   failed, or applied in part               ├─► in doubt ─► its reservation, again and again ─► applied: no doubt left
//!   no outcome when there should be one      │                        ▲            │
//!   no observation, or an old one            ┘                        └── refused ─┘
//! ```

use std::collections::BTreeMap;

use windfall_core::{
    Allocation, Answer, Capabilities, Duration, FunctionId, FunctionView, Observation, Outcome,
    Plan, PlanId, PlannedTarget, Receipt, Refusal, Resource, Safeguard, Setting, Settled,
    Timestamp, Verdict,
};

use super::Review;

pub(super) const NAME: &str = "in-doubt";

/// Restores the reservation of every function whose CPU or memory is in doubt, and holds the policy off until the
/// platform has confirmed it.
///
/// A size is in doubt when a change of it was refused in a way that leaves its effect unknown, ended in anything but
/// full effect below the reservation, or has not settled within the time that the platform names; and while it is below
/// the reservation and there is no observation, or only an old one. A platform without room for another *number* of
/// instances is no reason for doubt, and neither is a definite "cannot": both say exactly what is in force.
///
/// *Worked.* A function reserves 1000m. At tick 7 the policy lowers it to 400m and the platform does not answer; perhaps
/// it was lowered, perhaps not. At tick 8 the plan asks for 1000m whatever the policy proposes, at tick 9 that is
/// reported as applied, and the policy may lower it again. Two ticks after the last fault no function in doubt holds
/// less than its own, as long as a change settles between two ticks.
#[derive(Clone, Debug, Default)]
pub struct InDoubt {
    /// The age from which an observation says nothing about sizes any more.
    max_age: Duration,
    capabilities: Capabilities,
    /// The last accepted change of each function's size, until it settles.
    open: BTreeMap<FunctionId, OpenChange>,
    doubts: BTreeMap<FunctionId, Doubt>,
}

#[derive(Clone, Copy, Debug)]
struct OpenChange {
    plan: PlanId,
    at: Timestamp,
}

/// Why a function is in doubt, and what is done about it.
#[derive(Clone, Debug)]
struct Doubt {
    reason: String,
    /// The accepted plan that restores it and has not settled.
    restored_by: Option<PlanId>,
}

impl InDoubt {
    /// Nothing is in doubt yet; observations older than `max_age` will be reason for it.
    pub fn new(max_age: Duration) -> Self {
        Self { max_age, ..Self::default() }
    }

    /// Takes in what the platform can do and how long it takes.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
    }

    /// Functions in doubt now.
    pub fn functions(&self) -> impl Iterator<Item = FunctionId> {
        self.doubts.keys().copied()
    }

    /// There is no observation, for the reason given; `last` is the last one there was.
    pub fn lose_sight(&mut self, last: &Observation, reason: &str) {
        if self.can_resize() {
            for view in &last.functions {
                self.doubt_unless_whole(view, reason);
            }
        }
    }

    fn can_resize(&self) -> bool {
        self.capabilities.can_set(Resource::Cpu) || self.capabilities.can_set(Resource::Memory)
    }

    /// Doubts a function that may hold less than it reserves.
    fn doubt_unless_whole(&mut self, view: &FunctionView, reason: &str) {
        let is_whole = view.reservation.fits(view.allocation);
        let is_restoring =
            self.doubts.get(&view.function).is_some_and(|doubt| doubt.restored_by.is_some());
        if !is_restoring && (!is_whole || self.open.contains_key(&view.function)) {
            self.doubt(view.function, reason);
        }
    }

    fn doubt(&mut self, function: FunctionId, reason: &str) {
        let doubt = Doubt { reason: reason.to_owned(), restored_by: None };
        self.doubts.insert(function, doubt);
    }

    fn settle(&mut self, settled: &Settled, seen: &Observation) {
        let function = settled.function;
        // Only the newest change of a size says what is in force.
        if self.open.get(&function).is_none_or(|open| open.plan != settled.plan) {
            return;
        }
        self.open.remove(&function);
        let is_whole = |held: Allocation| {
            seen.function(function).is_some_and(|view| view.reservation.fits(held))
        };
        match &settled.outcome {
            Outcome::Applied | Outcome::Failed(Refusal::Unsupported(_)) => {
                self.confirm(settled);
            }
            Outcome::Partly { in_force, .. } if is_whole(*in_force) => self.confirm(settled),
            Outcome::Partly { in_force, reason } => {
                let reason = format!("plan {} left {in_force}: {reason}", settled.plan.0);
                self.doubt(function, &reason);
            }
            Outcome::Failed(reason) => {
                self.doubt(function, &format!("plan {} failed: {reason}", settled.plan.0));
            }
        }
    }

    /// No doubt is left if this is what the doubt waited for.
    fn confirm(&mut self, settled: &Settled) {
        let waited_for = |doubt: &Doubt| doubt.restored_by == Some(settled.plan);
        if self.doubts.get(&settled.function).is_some_and(waited_for) {
            self.doubts.remove(&settled.function);
        }
    }

    /// Doubts every change that should have settled by now.
    fn miss_outcomes(&mut self, now: Timestamp) {
        let within = self.capabilities.settles_within;
        let is_late = |open: &OpenChange| now.since(open.at) > within;
        let late: Vec<(FunctionId, PlanId)> = self
            .open
            .iter()
            .filter(|(_, open)| is_late(open))
            .map(|(function, open)| (*function, open.plan))
            .collect();
        for (function, plan) in late {
            self.doubt(function, &format!("plan {} has not settled within {within}", plan.0));
        }
    }
}

impl Safeguard for InDoubt {
    fn name(&self) -> &'static str {
        NAME
    }

    fn begin(&mut self, seen: &Observation) -> Vec<FunctionId> {
        for settled in &seen.settled {
            self.settle(settled, seen);
        }
        self.miss_outcomes(seen.now);
        if seen.age() > self.max_age {
            self.lose_sight(seen, &format!("the numbers are {} old", seen.age()));
        }
        // A function that is gone has nothing to be restored.
        self.doubts.retain(|function, _| seen.function(*function).is_some());
        let waits = |doubt: &Doubt| doubt.restored_by.is_none();
        self.doubts
            .iter()
            .filter(|(_, doubt)| waits(doubt))
            .map(|(function, _)| *function)
            .collect()
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let Some(doubt) = self.doubts.get(&proposed.function) else { return Verdict::Accept };
        let Some(view) = seen.function(proposed.function) else { return Verdict::Accept };
        let mut review = Review::of(proposed);
        if let Some(plan) = doubt.restored_by {
            let said = || format!("plan {} restores it: {}", plan.0, doubt.reason);
            review.cpu(Setting::Keep, said);
            review.memory(Setting::Keep, said);
            return review.verdict();
        }
        // Nothing is taken away in doubt: what is known or proposed above the reservation stays.
        let Allocation { cpu, memory } = view.reservation;
        let cpu = cpu.max(proposed.cpu.value().unwrap_or(view.allocation.cpu));
        let memory = memory.max(proposed.memory.value().unwrap_or(view.allocation.memory));
        let said = || format!("its own allocation is restored: {}", doubt.reason);
        review.cpu(Setting::Set(cpu), said);
        review.memory(Setting::Set(memory), said);
        review.verdict()
    }

    fn submitted(&mut self, seen: &Observation, plan: &Plan, receipt: &Receipt) {
        for (target, answer) in receipt.answered(plan) {
            let function = target.function;
            if !target.is_resize() {
                continue;
            }
            match answer {
                Answer::Queued => {
                    self.open.insert(function, OpenChange { plan: plan.id(), at: seen.now });
                    if let Some(doubt) = self.doubts.get_mut(&function) {
                        doubt.restored_by = Some(plan.id());
                    }
                }
                Answer::Refused(refusal @ (Refusal::Unreachable | Refusal::System(_))) => {
                    self.doubt(function, &format!("plan {} was refused: {refusal}", plan.id().0));
                }
                Answer::Refused(Refusal::Unsupported(_)) => {
                    self.doubts.remove(&function);
                }
                Answer::Refused(Refusal::NoRoom | Refusal::Superseded) => {}
            }
        }
    }
}
