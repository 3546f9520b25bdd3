//! State of one function under windfall scaling: costs of waiting, and which instances are worth holding.

use windfall_core::statistics::upper_median;
use windfall_core::{Duration, FunctionView, MilliCpu, Timestamp};

use super::WindfallScalingSettings;
use super::gap_history::GapHistory;
use super::gap_prior::{GapPrior, class_of};
use super::headroom::{Headroom, Stakes};
use super::level_plan::{Costs, LevelPlan, Programme};
use super::weighted_wait::{rarity, weighted_wait};
use crate::holt::weight;
use crate::level_track::{Gap, LevelTrack};

/// Half-life of the mean run time.
const RUN_HALF_LIFE: Duration = Duration::from_mins(10);
/// Half-life of the long-run rate of calls.
const RATE_HALF_LIFE: Duration = Duration::from_mins(120);
/// Number of gaps above which a new gap no longer triggers a new plan.
const MANY_GAPS: u32 = 50;
/// Mean concurrent calls and mean calls per second above which a function is busy. The headroom depends on one arrival
/// in thousands, and its table covers half an hour: 9,000 arrivals at 5 per second.
const BUSY: f64 = 1.5;
const BUSY_RATE: f64 = 5.0;
/// Maximum age of the plan of a level with many gaps, seconds.
const PLAN_SECONDS: f64 = 20.0;

/// History and plan of one level.
#[derive(Clone, Debug, Default)]
struct Level {
    history: GapHistory,
    plan: LevelPlan,
    planned_at: Option<Timestamp>,
    is_stale: bool,
}

/// State of one function.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScaledFunction {
    track: LevelTrack,
    levels: Vec<Level>,
    /// Mean run time, seconds.
    run_seconds: Option<f64>,
    /// Calls and elapsed time, decayed together: their ratio is the long-run rate.
    calls: f64,
    seconds: f64,
    /// Load statistics, once the function has been busy.
    headroom: Option<Headroom>,
    /// The shadow price at which plans were made.
    planned_factor: f64,
    /// Whether the platform reported when calls arrived.
    pub(crate) arrivals_known: bool,
}

/// What all functions share at a tick.
pub(crate) struct Shared<'a> {
    pub(crate) settings: &'a WindfallScalingSettings,
    pub(crate) prior: &'a GapPrior,
    pub(crate) programme: &'a mut Programme,
    pub(crate) now: Timestamp,
    pub(crate) window: Duration,
    /// Factor on the user's price while the pool is full.
    pub(crate) factor: f64,
}

/// The numbers behind the decision for one level, for the journal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reasons {
    pub(crate) level: usize,
    /// How long the gap has lasted, seconds.
    pub(crate) age: f64,
    /// Median of the last gaps, seconds.
    pub(crate) usual_gap: Option<f64>,
    /// Probability per second that the gap ends now.
    pub(crate) hazard: f64,
    pub(crate) costs: Costs,
}

/// Number of instances that a function should have, with its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) instances: usize,
    /// Instances needed by the calls in the system.
    pub(crate) needed: usize,
    /// Instances that pay for themselves by the load that arrivals find; 0 if the function is not busy.
    pub(crate) headroom: usize,
}

impl ScaledFunction {
    /// Processes one window.
    pub(crate) fn follow(&mut self, view: &FunctionView, shared: &Shared<'_>) {
        let Self { track, levels, .. } = self;
        self.arrivals_known = track.follow_on_nodes(view, shared.now, |gap: Gap| {
            if gap.level >= levels.len() {
                levels.resize_with(gap.level + 1, Level::default);
            }
            let level = &mut levels[gap.level];
            let prior = shared.prior.of(class_of(gap.level, &level.history));
            level.history.learn(gap.seconds, prior, shared.settings.prior_gaps as f32);
            level.is_stale = true;
        });
        if self.levels.len() < self.track.levels.len() {
            self.levels.resize_with(self.track.levels.len(), Level::default);
        }
        if let Some(run) = view.mean_run {
            let share = weight(shared.window, RUN_HALF_LIFE).max(1.0 / (1.0 + self.calls));
            let run = run.as_secs_f64();
            let known = self.run_seconds.unwrap_or(run);
            self.run_seconds = Some(known + share.min(1.0) * (run - known));
        }
        let keeps = 1.0 - weight(shared.window, RATE_HALF_LIFE);
        self.calls = keeps * self.calls + f64::from(view.arrivals);
        self.seconds = keeps * self.seconds + shared.window.as_secs_f64();
        if self.headroom.is_some() || self.is_busy() {
            let lead = view.cold_start + shared.window;
            self.headroom.get_or_insert_default().follow(view, shared.window, lead);
        }
    }

    /// Discards running clocks, because the clock has jumped.
    pub(crate) fn break_off(&mut self) {
        self.track.break_off();
        if let Some(headroom) = &mut self.headroom {
            headroom.break_off();
        }
    }

    /// Whether it was ever called.
    pub(crate) fn is_known(&self) -> bool {
        !self.levels.is_empty()
    }

    fn rate(&self) -> f64 {
        self.calls / self.seconds.max(1.0)
    }

    /// Whether the function is rarely idle, so that arrivals are more informative than gaps.
    fn is_busy(&self) -> bool {
        self.rate() > BUSY_RATE && self.rate() * self.run_seconds.unwrap_or(0.0) > BUSY
    }

    /// Weighted wait of one call without the instance of `level`, from 0 to 1: a wait of a tenth of the run
    /// time counts in full, and one that another instance ends sooner counts less.
    fn weighted_wait(&self, level: usize, view: &FunctionView) -> f64 {
        let (cold, run) = (view.cold_start.as_secs_f64(), self.run_seconds.unwrap_or(0.1));
        let others = level as f64 * f64::from(view.concurrency.max(1));
        // With per-call sizing every call brings its own instance, so none waits for another call to end.
        let wait = if level == 0 || view.sizes_calls() { cold } else { cold.min(run / others) };
        weighted_wait(wait, run)
    }

    /// Costs at `level`, in weighted waits.
    fn costs(&self, level: usize, view: &FunctionView, shared: &Shared<'_>) -> Costs {
        let settings = shared.settings;
        let usual = settings.price * view.idle_size().memory.mib();
        let hold = shared.factor * usual;
        let cold = view.cold_start.as_secs_f64();
        // Calls keep arriving until a new instance is ready. One of many instances would serve only its share of
        // them: at 100 calls per second of 50 ms it serves 20 per second, not all.
        let run = self.run_seconds.unwrap_or(0.1).max(1e-3);
        let (charge, missed) = match self.is_busy() {
            true => (
                settings.busy_start_charge_seconds,
                self.rate().min(f64::from(view.concurrency.max(1)) / run),
            ),
            false => (settings.start_charge_seconds, self.rate()),
        };
        // The charge covers CPU and churn, whose cost does not depend on the pool. With per-call sizing, other calls
        // compete for the cores of a start, so those have their own price: two cores for a second cost 0.6 waits.
        let cores = view.start_cpu.map_or(0.0, MilliCpu::cores);
        let start = hold * cold + usual * charge + settings.core_price * cores * cold;
        // Fairness applies only to the first instance of a rarely called function.
        let fairness = if level == 0 { rarity(self.rate(), settings.fairness) } else { 1.0 };
        let misses = 1.0 + cold * missed;
        let miss = self.weighted_wait(level, view) * fairness * misses + start;
        Costs { hold: hold as f32, start: start as f32, miss: miss as f32 }
    }

    /// Recomputes the plans of levels with new gaps, and all plans if the price of memory has moved.
    fn plan(&mut self, view: &FunctionView, shared: &mut Shared<'_>) {
        let moved = (shared.factor / self.planned_factor.max(1e-9) - 1.0).abs() > 0.1;
        if moved {
            self.planned_factor = shared.factor;
        }
        for level in 0..self.levels.len() {
            let state = &self.levels[level];
            let age =
                state.planned_at.map_or(f64::INFINITY, |at| shared.now.since(at).as_secs_f64());
            let is_due = state.history.count() <= MANY_GAPS || age >= PLAN_SECONDS;
            let is_needed = self.track.levels.get(level).is_some_and(|times| times.is_needed);
            // The plan of a level is not used while the level is needed.
            if is_needed || !((state.is_stale && is_due) || moved || age == f64::INFINITY) {
                continue;
            }
            let costs = self.costs(level, view, shared);
            let state = &mut self.levels[level];
            let prior = shared.prior.of(class_of(level, &state.history));
            let belief = shared.settings.prior_gaps as f32;
            state.plan = shared.programme.solve(&state.history, prior, belief, costs);
            state.planned_at = Some(shared.now);
            state.is_stale = false;
        }
    }

    /// Number of instances worth having until the next tick: those needed, plus one for each higher level that is worth
    /// holding, and for busy functions at least their headroom. Levels below the highest such level are not added
    /// automatically: hazards are estimates, and one of twenty estimates is usually too high.
    pub(crate) fn want(&mut self, view: &FunctionView, shared: &mut Shared<'_>) -> Want {
        self.plan(view, shared);
        let have = (view.ready + view.starting).get() as usize;
        let needed = self.track.needed();
        let lead = view.cold_start.as_secs_f64();
        let tick = shared.window.as_secs_f64();
        let is_worth = |&level: &usize| {
            let Some(times) = self.track.levels.get(level) else { return false };
            let age = times.age(level, shared.now);
            let plan = &self.levels[level].plan;
            (have > level && plan.holds(age)) || plan.begins(age + lead, age + lead + tick)
        };
        let worth = (needed..self.levels.len()).filter(is_worth).count();
        let headroom = self.headroom(have, view, shared);
        Want { instances: (needed + worth).max(headroom), needed, headroom }
    }

    fn headroom(&self, have: usize, view: &FunctionView, shared: &Shared<'_>) -> usize {
        let Some(headroom) = self.headroom.as_ref().filter(|_| self.is_busy()) else { return 0 };
        let hold = f64::from(self.costs(0, view, shared).hold);
        let stakes = Stakes { hold, have, places: f64::from(view.concurrency.max(1)) };
        headroom.instances(stakes, |k| self.weighted_wait(k - 1, view))
    }

    /// The numbers behind the current decision for `level`.
    pub(crate) fn reasons(
        &self,
        level: usize,
        view: &FunctionView,
        shared: &mut Shared<'_>,
    ) -> Option<Reasons> {
        let (state, times) = (self.levels.get(level)?, self.track.levels.get(level)?);
        let prior = shared.prior.of(class_of(level, &state.history));
        let belief = shared.settings.prior_gaps as f32;
        let age = times.age(level, shared.now);
        let mut recent = state.history.recent().to_vec();
        recent.sort_unstable_by(f32::total_cmp);
        Some(Reasons {
            level,
            age,
            usual_gap: upper_median(&recent).map(f64::from),
            hazard: shared.programme.hazard(&state.history, prior, belief, age),
            costs: self.costs(level, view, shared),
        })
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| level.history.heap_bytes()).sum();
        let headroom = self.headroom.as_ref().map_or(0, Headroom::heap_bytes);
        levels
            + headroom
            + self.levels.capacity() * size_of::<Level>()
            + self.track.levels.capacity() * size_of::<crate::level_track::LevelTimes>()
    }
}
