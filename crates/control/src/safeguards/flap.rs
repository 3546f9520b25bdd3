//! A budget for changes of mind.

use std::collections::{BTreeMap, VecDeque};

use windfall_core::{
    Duration, FunctionId, FunctionView, Observation, Plan, PlanId, PlannedTarget, Receipt,
    Safeguard, Setting, Settled, Timestamp, Verdict,
};

use super::{Review, standing};

pub(super) const NAME: &str = "flap-budget";

/// The window over which reversals are counted.
const HOUR: Duration = Duration::from_secs(3600);

/// Limits how often a function's knobs change direction.
///
/// Every reversal costs cold starts or restarts. Once a function has used up its reversals of the last
/// hour, only the safe direction passes: up. What is counted is what the platform accepted; a change that later settles
/// as failed is credited back, since nothing was started or stopped for it. One that a later plan replaced is not: that
/// was the policy's own change of mind. Where reversals may also come with calls, a function of ten calls per second and one reversal per
/// twenty calls has a budget of 1,800 and may follow its load at every tick of two seconds; one with a call per
/// minute has its fixed number.
#[derive(Clone, Debug)]
pub struct FlapBudget {
    /// Reversals that a function has per hour, all its knobs together.
    pub reversals_per_hour: usize,
    /// Reversals for each call of the last hour, if that is more.
    pub reversals_per_call: f64,
    histories: BTreeMap<FunctionId, History>,
}

impl FlapBudget {
    /// A budget of this many reversals.
    pub fn new(reversals_per_hour: usize) -> Self {
        Self { reversals_per_hour, reversals_per_call: 0.0, histories: BTreeMap::new() }
    }

    /// The same with so many reversals for each call of the last hour, if that is more.
    pub fn or_per_call(self, reversals_per_call: f64) -> Self {
        Self { reversals_per_call, ..self }
    }
}

impl FlapBudget {
    /// Reversals of `function` that count now.
    pub fn used(&self, function: FunctionId) -> usize {
        self.histories.get(&function).map_or(0, |history| history.reversals.len())
    }
}

impl Default for FlapBudget {
    /// Twelve: one change of mind every five minutes.
    fn default() -> Self {
        Self::new(12)
    }
}

#[derive(Clone, Debug, Default)]
struct History {
    reversals: VecDeque<Timestamp>,
    /// Calls of the last hour, older ones fading.
    calls: f64,
    knobs: Knobs,
    /// Accepted changes that have not settled.
    open: VecDeque<Charge>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Knobs {
    instances: Knob,
    cpu: Knob,
    memory: Knob,
}

/// Where a knob was last set to, by which plan, and which way that was.
#[derive(Clone, Copy, Debug, Default)]
struct Knob {
    last: Option<u32>,
    went_up: Option<bool>,
    set_by: Option<PlanId>,
}

/// What an accepted change was charged with, and how things stood before it.
#[derive(Clone, Copy, Debug)]
struct Charge {
    plan: PlanId,
    at: Timestamp,
    reversals: usize,
    before: Knobs,
}

impl Knob {
    /// Moves to `to` (from `current` if it was never set); true if that is a change of direction.
    fn turn(&mut self, to: u32, current: u32, plan: PlanId) -> bool {
        self.set_by = Some(plan);
        let from = self.last.replace(to).unwrap_or(current);
        if to == from {
            return false;
        }
        let goes_up = to > from;
        self.went_up.replace(goes_up).is_some_and(|went_up| went_up != goes_up)
    }

    fn is_down(self, to: u32, current: u32) -> bool {
        to < self.last.unwrap_or(current)
    }

    /// Goes back to how it stood before `plan`, unless a later one has set it since.
    fn undo(&mut self, plan: PlanId, before: Self) {
        if self.set_by == Some(plan) {
            *self = before;
        }
    }
}

impl History {
    fn charge(&mut self, now: Timestamp, plan: PlanId, view: &FunctionView, to: &PlannedTarget) {
        let before = self.knobs;
        let Knobs { instances, cpu, memory } = &mut self.knobs;
        let held = view.allocation;
        let turned = [
            to.instances.value().map(|to| instances.turn(to.get(), standing(view).get(), plan)),
            to.cpu.value().map(|to| cpu.turn(to.get(), held.cpu.get(), plan)),
            to.memory.value().map(|to| memory.turn(to.get(), held.memory.get(), plan)),
        ];
        let reversals = turned.into_iter().flatten().filter(|reversed| *reversed).count();
        self.reversals.extend(std::iter::repeat_n(now, reversals));
        self.open.push_back(Charge { plan, at: now, reversals, before });
    }

    /// Takes in how a change ended; one that failed gives its reversals back.
    fn settle(&mut self, settled: &Settled) {
        let Some(place) = self.open.iter().position(|charge| charge.plan == settled.plan) else {
            return;
        };
        let Some(charge) = self.open.remove(place) else { return };
        if !settled.has_failed() {
            return;
        }
        for _ in 0..charge.reversals {
            if let Some(place) = self.reversals.iter().rposition(|at| *at == charge.at) {
                self.reversals.remove(place);
            }
        }
        self.knobs.instances.undo(charge.plan, charge.before.instances);
        self.knobs.cpu.undo(charge.plan, charge.before.cpu);
        self.knobs.memory.undo(charge.plan, charge.before.memory);
    }

    /// Forgets what is over an hour old, with it changes whose outcome was never reported.
    fn forget(&mut self, now: Timestamp) {
        while self.reversals.front().is_some_and(|at| now.since(*at) > HOUR) {
            self.reversals.pop_front();
        }
        while self.open.front().is_some_and(|charge| now.since(charge.at) > HOUR) {
            self.open.pop_front();
        }
    }
}

impl Safeguard for FlapBudget {
    fn name(&self) -> &'static str {
        NAME
    }

    fn begin(&mut self, seen: &Observation) -> Vec<FunctionId> {
        for settled in &seen.settled {
            if let Some(history) = self.histories.get_mut(&settled.function) {
                history.settle(settled);
            }
        }
        Vec::new()
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let Some(history) = self.histories.get_mut(&proposed.function) else {
            return Verdict::Accept;
        };
        history.forget(seen.now);
        let used = history.reversals.len();
        let Some(view) = seen.function(proposed.function) else { return Verdict::Accept };
        let with_calls = (history.calls * self.reversals_per_call) as usize;
        if used < self.reversals_per_hour.max(with_calls) {
            return Verdict::Accept;
        }
        let mut review = Review::of(proposed);
        let said = || format!("{used} reversals within an hour; only up passes");
        let standing = standing(view).get();
        if matches!(proposed.instances, Setting::Set(to) if history.knobs.instances.is_down(to.get(), standing))
        {
            review.instances(Setting::Keep, said);
        }
        let held = view.allocation;
        if matches!(proposed.cpu, Setting::Set(to) if history.knobs.cpu.is_down(to.get(), held.cpu.get()))
        {
            review.cpu(Setting::Keep, said);
        }
        if matches!(proposed.memory, Setting::Set(to) if history.knobs.memory.is_down(to.get(), held.memory.get()))
        {
            review.memory(Setting::Keep, said);
        }
        review.verdict()
    }

    fn submitted(&mut self, seen: &Observation, plan: &Plan, receipt: &Receipt) {
        let keeps = 1.0 - (seen.window.as_secs_f64() / HOUR.as_secs_f64()).min(1.0);
        for (function, history) in &mut self.histories {
            let arrivals = seen.function(*function).map_or(0, |view| view.arrivals);
            history.calls = keeps * history.calls + f64::from(arrivals);
        }
        for target in receipt.accepted(plan) {
            if let Some(view) = seen.function(target.function) {
                let history = self.histories.entry(target.function).or_default();
                history.charge(seen.now, plan.id(), view, target);
            }
        }
    }
}
