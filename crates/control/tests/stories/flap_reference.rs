//! The flap budget where a test can read it, and what it should have been charged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windfall_control::safeguards::FlapBudget;
use windfall_core::{
    FunctionId, Observation, Plan, PlannedTarget, Receipt, Safeguard, TickRecord, Verdict,
};

/// A flap budget that a chain and a test hold together.
#[derive(Clone, Default)]
pub(crate) struct SharedFlap(Arc<Mutex<FlapBudget>>);

impl SharedFlap {
    pub(crate) fn used(&self, function: FunctionId) -> usize {
        self.budget().used(function)
    }

    fn budget(&self) -> MutexGuard<'_, FlapBudget> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Safeguard for SharedFlap {
    fn name(&self) -> &'static str {
        "flap-budget"
    }
    fn begin(&mut self, seen: &Observation) -> Vec<FunctionId> {
        self.budget().begin(seen)
    }
    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        self.budget().review(seen, proposed)
    }
    fn submitted(&mut self, seen: &Observation, plan: &Plan, receipt: &Receipt) {
        self.budget().submitted(seen, plan, receipt);
    }
}

/// Counts reversals of accepted changes from the records alone, knob by knob.
#[derive(Default)]
pub(crate) struct FlapReference {
    knobs: BTreeMap<(FunctionId, usize), (u32, Option<bool>)>,
    reversals: BTreeMap<FunctionId, usize>,
    /// Functions with an accepted change that failed: it is credited, so they may be charged less.
    credited: BTreeMap<FunctionId, usize>,
}

impl FlapReference {
    pub(crate) fn follow(&mut self, tick: &TickRecord) {
        for settled in tick.observation.settled.iter().filter(|one| one.has_failed()) {
            *self.credited.entry(settled.function).or_default() += 1;
        }
        for target in tick.accepted() {
            let Some(view) = tick.observation.function(target.function) else { continue };
            let standing = (view.ready + view.starting).get();
            let held = view.allocation;
            let set = [
                (target.instances.value().map(|count| count.get()), standing),
                (target.cpu.value().map(|cpu| cpu.get()), held.cpu.get()),
                (target.memory.value().map(|memory| memory.get()), held.memory.get()),
            ];
            for (knob, (to, current)) in set.into_iter().enumerate() {
                if let Some(to) = to {
                    self.turn(target.function, knob, to, current);
                }
            }
        }
    }

    fn turn(&mut self, function: FunctionId, knob: usize, to: u32, current: u32) {
        let (last, went_up) = self.knobs.entry((function, knob)).or_insert((current, None));
        if to != *last {
            let goes_up = to > *last;
            let is_reversal = went_up.replace(goes_up).is_some_and(|before| before != goes_up);
            *self.reversals.entry(function).or_default() += usize::from(is_reversal);
            *last = to;
        }
    }

    /// The budget is charged for accepted changes: exactly, where none of them failed.
    pub(crate) fn check(&self, flap: &SharedFlap, function: FunctionId, story: u64) {
        let used = flap.used(function);
        let accepted = self.reversals.get(&function).copied().unwrap_or(0);
        if self.credited.contains_key(&function) {
            // A credited change puts its knobs back, so the next one may reverse where it would not have: one more
            // for each of the three knobs.
            let most = accepted + 3 * self.credited[&function];
            assert!(used <= most, "story {story}: {used} charged, {accepted} accepted");
        } else {
            assert_eq!(used, accepted, "story {story}: charged for what was not accepted");
        }
    }
}
