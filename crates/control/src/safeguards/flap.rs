//! A budget for changes of mind.

use std::collections::{BTreeMap, VecDeque};

use windfall_core::{
    Duration, FunctionId, FunctionView, Observation, Plan, PlannedTarget, Safeguard, Setting,
    Timestamp, Verdict,
};

use super::{Review, standing};

pub(super) const NAME: &str = "flap-budget";

/// The window over which reversals are counted.
const HOUR: Duration = Duration::from_secs(3600);

/// Limits how often a function's knobs change direction.
///
/// Every reversal costs cold starts or restarts. Once a function has used up its reversals of the last
/// hour, only the safe direction passes: up. What is counted is what was carried out, not what was
/// wished. Where reversals may also come with calls, a function of ten calls per second and one reversal per
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
    instances: Knob,
    cpu: Knob,
    memory: Knob,
}

/// Where a knob was last set to, and which way that was.
#[derive(Clone, Copy, Debug, Default)]
struct Knob {
    last: Option<u32>,
    went_up: Option<bool>,
}

impl Knob {
    /// Moves to `to` (from `current` if it was never set); true if that is a change of direction.
    fn turn(&mut self, to: u32, current: u32) -> bool {
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
}

impl History {
    fn record(&mut self, now: Timestamp, view: &FunctionView, target: &PlannedTarget) {
        let turned = [
            target.instances.value().map(|to| self.instances.turn(to.get(), standing(view).get())),
            target.cpu.value().map(|to| self.cpu.turn(to.get(), view.allocation.cpu.get())),
            target
                .memory
                .value()
                .map(|to| self.memory.turn(to.get(), view.allocation.memory.get())),
        ];
        let reversals = turned.into_iter().flatten().filter(|reversed| *reversed);
        self.reversals.extend(reversals.map(|_| now));
    }
}

impl Safeguard for FlapBudget {
    fn name(&self) -> &'static str {
        NAME
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let Some(history) = self.histories.get_mut(&proposed.function) else {
            return Verdict::Accept;
        };
        while history.reversals.front().is_some_and(|at| seen.now.since(*at) > HOUR) {
            history.reversals.pop_front();
        }
        let used = history.reversals.len();
        let Some(view) = seen.function(proposed.function) else { return Verdict::Accept };
        let with_calls = (history.calls * self.reversals_per_call) as usize;
        if used < self.reversals_per_hour.max(with_calls) {
            return Verdict::Accept;
        }
        let mut review = Review::of(proposed);
        let said = || format!("{used} reversals within an hour; only up passes");
        let standing = standing(view).get();
        if matches!(proposed.instances, Setting::Set(to) if history.instances.is_down(to.get(), standing))
        {
            review.instances(Setting::Keep, said);
        }
        let held = view.allocation;
        if matches!(proposed.cpu, Setting::Set(to) if history.cpu.is_down(to.get(), held.cpu.get()))
        {
            review.cpu(Setting::Keep, said);
        }
        if matches!(proposed.memory, Setting::Set(to) if history.memory.is_down(to.get(), held.memory.get()))
        {
            review.memory(Setting::Keep, said);
        }
        review.verdict()
    }

    fn carried_out(&mut self, seen: &Observation, plan: &Plan) {
        let keeps = 1.0 - (seen.window.as_secs_f64() / HOUR.as_secs_f64()).min(1.0);
        for (function, history) in &mut self.histories {
            let arrivals = seen.function(*function).map_or(0, |view| view.arrivals);
            history.calls = keeps * history.calls + f64::from(arrivals);
        }
        for target in plan.targets() {
            if let Some(view) = seen.function(target.function) {
                self.histories.entry(target.function).or_default().record(seen.now, view, target);
            }
        }
    }
}
