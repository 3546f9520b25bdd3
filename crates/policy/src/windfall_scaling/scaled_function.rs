//! One function under windfall scaling: what it costs to wait, and which instances are worth holding.

use windfall_core::statistics::upper_median;
use windfall_core::{Duration, FunctionView, MilliCpu, Timestamp};

use super::WindfallScalingSettings;
use super::felt::{felt, rarity};
use super::gap_history::GapHistory;
use super::gap_prior::{GapPrior, class_of};
use super::headroom::{Headroom, Stakes};
use super::level_plan::{Costs, LevelPlan, Programme};
use crate::holt::weight;
use crate::level_track::{Gap, LevelTrack};

/// Half-life of the mean run time.
const RUN_HALF_LIFE: Duration = Duration::from_mins(10);
/// Half-life of the long-run rate of calls.
const RATE_HALF_LIFE: Duration = Duration::from_mins(120);
/// Gaps above which a plan is not made anew for every one.
const MANY_GAPS: u32 = 50;
/// Calls at once and calls per second, on average, above which a function is busy. Its rule is about one arrival in
/// thousands, and the table remembers half an hour: 9,000 arrivals at 5 per second.
const BUSY: f64 = 1.5;
const BUSY_RATE: f64 = 5.0;
/// How old a plan of a level with many gaps may become, seconds.
const PLAN_SECONDS: f64 = 20.0;

/// One level with what it has learned.
#[derive(Clone, Debug, Default)]
struct Level {
    history: GapHistory,
    plan: LevelPlan,
    planned_at: Option<Timestamp>,
    is_stale: bool,
}

/// What is known of one function.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScaledFunction {
    track: LevelTrack,
    levels: Vec<Level>,
    /// Mean run time, seconds.
    run_seconds: Option<f64>,
    /// Calls and time they came in, decayed together: their ratio is the long-run rate.
    calls: f64,
    seconds: f64,
    /// What arrivals find, once the function was busy.
    headroom: Option<Headroom>,
    /// The shadow price at which plans were made.
    planned_factor: f64,
    /// Whether the platform told when calls came.
    pub(crate) is_told: bool,
}

/// What all functions share at a tick.
pub(crate) struct Shared<'a> {
    pub(crate) settings: &'a WindfallScalingSettings,
    pub(crate) prior: &'a GapPrior,
    pub(crate) programme: &'a mut Programme,
    pub(crate) now: Timestamp,
    pub(crate) window: Duration,
    /// What the user's price is multiplied by because the pool is full.
    pub(crate) factor: f64,
}

/// What a level has to say about itself, for the journal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reasons {
    pub(crate) level: usize,
    /// How long the gap has lasted, seconds.
    pub(crate) age: f64,
    /// The middle of the last gaps, seconds.
    pub(crate) usual_gap: Option<f64>,
    /// The chance per second that it ends now.
    pub(crate) hazard: f64,
    pub(crate) costs: Costs,
}

/// What a function should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) instances: usize,
    /// How many are needed at this moment.
    pub(crate) needed: usize,
    /// How many what arrivals find above the mean is worth; none if the function is not busy.
    pub(crate) headroom: usize,
}

impl ScaledFunction {
    /// Takes in a window.
    pub(crate) fn follow(&mut self, view: &FunctionView, shared: &Shared<'_>) {
        let Self { track, levels, .. } = self;
        self.is_told = track.follow_on_nodes(view, shared.now, |gap: Gap| {
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

    /// Forgets running clocks, because time jumped.
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

    /// Whether it hardly ever rests, so that what arrivals find says more than gaps do.
    fn is_busy(&self) -> bool {
        self.rate() > BUSY_RATE && self.rate() * self.run_seconds.unwrap_or(0.0) > BUSY
    }

    /// What the lack of the instance of `level` costs one call, from 0 to 1 and more for rare functions:
    /// a wait of a tenth of the run time is felt whole, and one that another instance ends sooner less.
    fn felt(&self, level: usize, view: &FunctionView) -> f64 {
        let (cold, run) = (view.cold_start.as_secs_f64(), self.run_seconds.unwrap_or(0.1));
        let others = level as f64 * f64::from(view.concurrency.max(1));
        // Where every call brings its own instance none waits for another to end.
        let wait = if level == 0 || view.sizes_calls() { cold } else { cold.min(run / others) };
        felt(wait, run)
    }

    /// What things cost at `level`, in felt waits.
    fn costs(&self, level: usize, view: &FunctionView, shared: &Shared<'_>) -> Costs {
        let settings = shared.settings;
        let usual = settings.price * view.idle_size().memory.mib();
        let hold = shared.factor * usual;
        let cold = view.cold_start.as_secs_f64();
        // Until an instance is there calls come at their rate. One of many would have served no more of them than
        // it can: at 100 calls per second of 50 ms 20 of them, not all.
        let run = self.run_seconds.unwrap_or(0.1).max(1e-3);
        let (charge, missed) = match self.is_busy() {
            true => (
                settings.busy_start_charge_seconds,
                self.rate().min(f64::from(view.concurrency.max(1)) / run),
            ),
            false => (settings.start_charge_seconds, self.rate()),
        };
        // The charge stands for CPU and churn, which a full pool makes no dearer. Where others want the cores that a
        // start holds they have a price of their own: two cores for a second are felt by 0.6 calls.
        let cores = view.start_cpu.map_or(0.0, MilliCpu::cores);
        let start = hold * cold + usual * charge + settings.core_price * cores * cold;
        // A rare function waits for its first instance; what comes after is like any other's.
        let fairness = if level == 0 { rarity(self.rate(), settings.fairness) } else { 1.0 };
        let misses = 1.0 + cold * missed;
        let miss = self.felt(level, view) * fairness * misses + start;
        Costs { hold: hold as f32, start: start as f32, miss: miss as f32 }
    }

    /// Makes plans anew where gaps were added or the price of memory moved.
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
            // While a level is needed nothing is asked of its plan.
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

    /// How many instances are worth having until the next tick: those needed, and one for each level above that is
    /// worth it, for busy functions no less than their headroom. Not all below the highest such level: hazards are
    /// guesses, and of twenty guesses one is always too high.
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
        headroom.instances(stakes, |k| self.felt(k - 1, view))
    }

    /// What decides at `level` now.
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
