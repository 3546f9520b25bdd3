//! A chain of functions with one objective end to end.
//!
//! The authors left this open. Here the objective is split over the stages so that all of them together hold as
//! little CPU as possible, and every stage staffs itself for the rate that the first one sees, before
//! the calls reach it:
//!
//! ```text
//!   for stage k with objective o_k at rate r:  fewest cores n x c with
//!       p99(n, c) = fixed + work e^(2.33 spread) / c + S / (n - a) ln(C(n, a) / 0.01)  <=  o_k
//!   split: the o_k (fortieths of the whole) with the fewest cores together
//! ```
//!
//! Ours works from estimates (`chain::estimates`) and corrects the objective it plans for by the latency of callers end to
//! end. The oracle split has the true law and the true rate of the coming quarter of a minute. Sums of stage p99s
//! are above the p99 of sums, so both begin on the safe side.

mod estimates;
mod stage_law;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windfall_core::{Decision, Duration, Seed};
use windfall_gym::classic::target_of;
use windfall_gym::meter::quantile;
use windfall_gym::moves::Deployment;
use windfall_gym::pattern::{Pattern, Patterns};
use windfall_gym::profile::{ServiceProfile, TWELVE};
use windfall_gym::{FunctionSetup, Split, World, WorldSettings};

use self::estimates::{Demand, StageEstimate, Steering};
use self::stage_law::{Staff, StageLaw, best_split, equal_split};

/// What came of a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainResult {
    /// End-to-end p99 with our split, milliseconds; mean over seeds.
    pub p99_ms: f64,
    /// The objective, milliseconds.
    pub objective_ms: f64,
    /// Core-seconds above the oracle split's, percent; mean over seeds.
    pub core_seconds_over_oracle_percent: f64,
    /// Every way to split, ours first.
    pub splits: Vec<ChainRow>,
}

/// One way to split the objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainRow {
    /// Which.
    pub split: String,
    /// End-to-end p99, milliseconds; mean over seeds.
    pub p99_ms: f64,
    /// The same of the worst seed.
    pub worst_p99_ms: f64,
    /// Core-seconds held; mean over seeds.
    pub core_seconds: f64,
    /// The same above the oracle split's, percent; mean over seeds.
    pub over_oracle_percent: f64,
}

/// Who splits the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Splitting {
    /// From estimates, steered.
    Ours,
    /// From estimates, unsteered.
    Unsteered,
    /// With true laws and the rate to come.
    Oracle,
    /// In equal parts, from estimates.
    Equal,
}

/// Decides on the stages of one chain.
struct Planner {
    splitting: Splitting,
    objective_ms: f64,
    truth: [StageLaw; 3],
    head: FunctionSetup,
    estimates: [StageEstimate; 3],
    demand: Demand,
    steering: Steering,
}

impl Planner {
    fn new(splitting: Splitting, objective_ms: f64, setups: &[FunctionSetup]) -> Self {
        Self {
            splitting,
            objective_ms,
            truth: [0, 1, 2].map(|stage| true_law(&setups[stage])),
            head: setups[0].clone(),
            estimates: [StageEstimate::new(); 3],
            demand: Demand::default(),
            steering: Steering::new(),
        }
    }

    fn observe(&mut self, world: &World) {
        let seen = world.seen();
        let window = seen.window.as_secs_f64();
        for (estimate, view) in self.estimates.iter_mut().zip(&seen.functions) {
            estimate.observe(view, window);
        }
        self.demand.observe(world.rates(0).now, window);
        if self.splitting == Splitting::Ours {
            self.steering.observe(&world.chain_latencies(), self.objective_ms);
        }
    }

    /// Instances and CPU of every stage.
    fn staffs(&self, world: &World) -> [Staff; 3] {
        let (seen, tick) = (world.seen(), world.settings().tick);
        let mut laws = self.truth;
        let mut rate = self.demand.rate();
        if self.splitting == Splitting::Oracle {
            let ahead = (0..4).map(|ticks| self.head.rate_at(seen.now + tick * ticks));
            rate = ahead.fold(0.0, f64::max);
        } else {
            laws = self.estimates.map(|estimate| estimate.law());
        }
        // What waits before a stage will come to it and to those after it.
        let mut waiting = 0;
        let rates = [0, 1, 2].map(|stage: usize| {
            waiting += seen.functions[stage].queued;
            (rate + f64::from(waiting) / DRAIN.as_secs_f64()).max(0.1)
        });
        let objective = self.objective_ms * 1e-3 * self.steering.factor();
        match self.splitting {
            Splitting::Equal => equal_split(&laws, rates, objective),
            _ => best_split(&laws, rates, objective),
        }
    }
}

/// Within what time waiting calls are to be worked off.
const DRAIN: Duration = Duration::from_secs(10);

fn true_law(setup: &FunctionSetup) -> StageLaw {
    let profile = &setup.profile;
    StageLaw {
        work: profile.mean_work(),
        fixed: profile.fixed_ms * 1e-3,
        spread: profile.spread,
        parallelism: f64::from(profile.parallelism) * 1e-3,
    }
}

/// Rotate, find the face, blur it: places among the twelve.
const STAGES: [usize; 3] = [10, 1, 9];

fn setups(pattern: &(Arc<Pattern>, usize)) -> Vec<FunctionSetup> {
    let rate = FunctionSetup::busy(TWELVE[1], pattern.clone(), 1.5).rate;
    let stage = |(index, &profile): (usize, &usize)| {
        let setup = FunctionSetup::busy(TWELVE[profile], pattern.clone(), 1.0);
        FunctionSetup { rate, upstream: index.checked_sub(1), ..setup }
    };
    let mut all: Vec<FunctionSetup> = STAGES.iter().enumerate().map(stage).collect();
    all.push(clock());
    all
}

/// Messages between stages arrive with the next call of anybody; this one comes every 20 ms and does nothing, so
/// that they take no longer than that.
fn clock() -> FunctionSetup {
    let profile = ServiceProfile { name: "clock", work_ms: 0.001, fixed_ms: 0.0, ..TWELVE[4] };
    let pattern = (Arc::new(Pattern::steady()), 0);
    FunctionSetup { rate: 50.0, ..FunctionSetup::busy(profile, pattern, 1.0) }
}

/// What one run of the chain came to.
struct ChainRun {
    /// End to end.
    p99_ms: f64,
    core_seconds: f64,
}

/// Runs the chain of `seed`.
fn run(
    splitting: Splitting,
    (seed, split): (u64, Split),
    objective_ms: f64,
    ticks: u64,
) -> ChainRun {
    let start = Seed::new(seed).stream("simppo-chain");
    let pattern = Patterns::generated().pick(split, start.get() >> 1, start.member(1).get() >> 1);
    let setups = setups(&pattern);
    let mut planner = Planner::new(splitting, objective_ms, &setups);
    // A chain is deployed with room: what two instances leave behind in the first ten seconds is nobody's split.
    let settings = WorldSettings { nodes: 2, first_instances: 6, ..WorldSettings::default() };
    let mut world = World::new(settings, setups, start);
    world.keep_latencies();
    for _ in 0..ticks {
        planner.observe(&world);
        let mut decision = Decision::default();
        for (stage, (instances, cpu)) in planner.staffs(&world).into_iter().enumerate() {
            let memory = world.deployment(stage).memory;
            decision.targets.push(target_of(stage, Deployment { instances, cpu, memory }));
        }
        world.act(&decision);
    }
    ChainRun {
        p99_ms: quantile(&mut world.chain_latencies_with_open(), 0.99),
        core_seconds: (0..3).map(|stage| world.core_seconds(stage)).sum(),
    }
}

/// The ways to split, in the order of the table.
const SPLITS: [(&str, Splitting); 4] = [
    ("ours", Splitting::Ours),
    ("ours without steering", Splitting::Unsteered),
    ("equal parts", Splitting::Equal),
    ("oracle split", Splitting::Oracle),
];

/// The chain over `seeds`, with an objective of three quarters of its stages' own objectives together.
pub fn chain(
    seeds: &[u64],
    split: Split,
    ticks: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> ChainResult {
    let whole: f64 = STAGES.iter().map(|&profile| TWELVE[profile].slo_ms).sum();
    let objective_ms = (0.75 * whole).round();
    let share = 1.0 / seeds.len().max(1) as f64;
    let mut rows =
        SPLITS.map(|(name, _)| ChainRow { split: name.to_owned(), ..Default::default() });
    for &seed in seeds {
        let runs = SPLITS.map(|(_, how)| run(how, (seed, split), objective_ms, ticks));
        let oracle = runs[SPLITS.len() - 1].core_seconds;
        for (row, ChainRun { p99_ms, core_seconds }) in rows.iter_mut().zip(runs) {
            row.p99_ms += share * p99_ms;
            row.worst_p99_ms = row.worst_p99_ms.max(p99_ms);
            row.core_seconds += share * core_seconds;
            row.over_oracle_percent += share * 100.0 * (core_seconds / oracle - 1.0);
        }
        progress(3);
    }
    ChainResult {
        p99_ms: rows[0].p99_ms,
        objective_ms,
        core_seconds_over_oracle_percent: rows[0].over_oracle_percent,
        splits: rows.to_vec(),
    }
}
