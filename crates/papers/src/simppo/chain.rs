//! A chain of functions with one objective end to end.
//!
//! The authors left this open. Here the objective is split over the stages so that all of them together hold as
//! little CPU as possible, and every stage staffs itself for the rate that the first one sees, before
//! the calls reach it:
//!
//! ```text
//!   for stage k with objective o_k at rate r:  fewest cores n x c with
//!       p99(n, c) = fixed + work e^(2.33 spread) / c + S / (n - a) ln(C(n, a) / 0.01)  <=  o_k
//!   split: the o_k (twentieths of the whole) with the fewest cores together
//! ```
//!
//! Ours works from estimates: work per call from CPU used, fixed time from run time, rate from the first
//! stage's arrivals. The oracle has the true law and the true rate of the coming minute. Sums of stage p99s are
//! above the p99 of sums, so both are on the safe side.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windfall_core::{Decision, FunctionView, Seed};
use windfall_env::classic::target_of;
use windfall_env::meter::quantile;
use windfall_env::moves::{CPU_STEP, Wish};
use windfall_env::pattern::{Pattern, Patterns};
use windfall_env::profile::{ServiceProfile, TWELVE};
use windfall_env::{FunctionSetup, Split, World, WorldSettings};
use windfall_policy::erlang_c;

/// What came of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainResult {
    /// End-to-end p99 with our split, milliseconds; mean over seeds.
    pub p99_ms: f64,
    /// The objective, milliseconds.
    pub objective_ms: f64,
    /// Core-seconds above the oracle split's, percent; mean over seeds.
    pub core_seconds_over_oracle_percent: f64,
    /// End-to-end p99 with the oracle split.
    pub oracle_p99_ms: f64,
    /// End-to-end p99 with equal parts for all stages.
    pub equal_split_p99_ms: f64,
    /// Core-seconds of equal parts above the oracle split's, percent.
    pub equal_split_over_oracle_percent: f64,
}

/// A stage's service law, known or estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Law {
    work: f64,
    fixed: f64,
    spread: f64,
}

impl Law {
    /// The 99th percentile with `count` instances of `cores` at `rate`; endless if they are overrun.
    fn p99(&self, count: u32, cores: f64, rate: f64) -> f64 {
        let mean = self.fixed + self.work / cores;
        let load = rate * mean;
        if load >= f64::from(count) {
            return f64::INFINITY;
        }
        let late = erlang_c(count, load);
        let wait =
            if late > 0.01 { mean / (f64::from(count) - load) * (late / 0.01).ln() } else { 0.0 };
        // The spread is one of work around its mean.
        let tail = (2.33 * self.spread - 0.5 * self.spread * self.spread).exp();
        self.fixed + self.work * tail / cores + wait
    }

    /// The fewest cores that keep the 99th percentile at or below `objective` seconds.
    fn staff(&self, objective: f64, rate: f64) -> Option<(u32, u32)> {
        let mut best: Option<(u32, u32)> = None;
        for step in 2..=8 {
            let cpu = step * CPU_STEP;
            let fits = |count: &u32| self.p99(*count, f64::from(cpu) * 1e-3, rate) <= objective;
            if let Some(count) = (1..=10).find(fits)
                && best.is_none_or(|(n, c)| count * cpu < n * c)
            {
                best = Some((count, cpu));
            }
        }
        best
    }
}

/// How the objective is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Splitting {
    Estimated,
    Oracle,
    Equal,
}

/// Parts of the objective are multiples of one in so many.
const PARTS: u32 = 20;

/// Instances and CPU of every stage: the split with the fewest cores, or all there is if none will do.
fn best_split(laws: &[Law; 3], rate: f64, objective: f64, is_equal: bool) -> [(u32, u32); 3] {
    let part = |parts: u32| objective * f64::from(parts) / f64::from(PARTS);
    let most = (10, 8 * CPU_STEP);
    if is_equal {
        return laws.map(|law| law.staff(objective / 3.0, rate).unwrap_or(most));
    }
    let tables: Vec<Vec<Option<(u32, u32)>>> = laws
        .iter()
        .map(|law| (0..=PARTS).map(|parts| law.staff(part(parts), rate)).collect())
        .collect();
    let cores = |staff: (u32, u32)| staff.0 * staff.1;
    let mut best = (u32::MAX, [most; 3]);
    for first in 1..PARTS - 1 {
        for second in 1..PARTS - first {
            let third = PARTS - first - second;
            let staffs =
                (tables[0][first as usize], tables[1][second as usize], tables[2][third as usize]);
            if let (Some(a), Some(b), Some(c)) = staffs {
                let total = cores(a) + cores(b) + cores(c);
                if total < best.0 {
                    best = (total, [a, b, c]);
                }
            }
        }
    }
    best.1
}

/// What our split knows of a stage.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    work: f64,
    run: f64,
    cores: f64,
}

impl Estimate {
    fn observe(&mut self, view: &FunctionView, window: f64) {
        let Some(run) = view.mean_run else { return };
        let work = view.cpu_used_cores * window / f64::from(view.completions.max(1));
        self.cores = view.allocation.cpu.cores();
        self.work += 0.1 * (work - self.work);
        self.run += 0.3 * (run.as_secs_f64() - self.run);
    }

    /// With the spread assumed that nobody can see from means.
    fn law(&self) -> Law {
        let fixed = (self.run - self.work / self.cores.min(1.0)).max(0.0);
        Law { work: self.work, fixed, spread: 0.3 }
    }
}

fn true_law(setup: &FunctionSetup) -> Law {
    let profile = &setup.profile;
    Law {
        work: profile.mean_work() / (f64::from(profile.parallelism) * 1e-3).min(1.0),
        fixed: profile.fixed_ms * 1e-3,
        spread: profile.spread,
    }
}

/// Rotate, find the face, blur it.
fn setups(pattern: &(Arc<Pattern>, usize)) -> Vec<FunctionSetup> {
    let stages = [10, 1, 9];
    let rate = FunctionSetup::busy(TWELVE[1], pattern.clone(), 1.5).rate;
    let stage = |(index, &profile): (usize, &usize)| {
        let setup = FunctionSetup::busy(TWELVE[profile], pattern.clone(), 1.0);
        FunctionSetup { rate, upstream: index.checked_sub(1), ..setup }
    };
    let mut all: Vec<FunctionSetup> = stages.iter().enumerate().map(stage).collect();
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

/// Runs the chain of `seed`: end-to-end p99 and core-seconds.
fn run(splitting: Splitting, seed: u64, objective_ms: f64, ticks: u64) -> (f64, f64) {
    let start = Seed::new(seed).stream("simppo-chain");
    let pattern =
        Patterns::generated().pick(Split::Test, start.get() >> 1, start.member(1).get() >> 1);
    let setups = setups(&pattern);
    let truth = [true_law(&setups[0]), true_law(&setups[1]), true_law(&setups[2])];
    let mut estimates = [0, 1, 2].map(|stage| {
        let run = setups[stage].profile.mean_run(1.0);
        Estimate { work: 0.8 * run, run, cores: 1.0 }
    });
    let mut rate = setups[0].rate;
    let head = setups[0].clone();
    let mut world =
        World::new(WorldSettings { nodes: 2, ..WorldSettings::default() }, setups, start);
    world.keep_latencies();
    for _ in 0..ticks {
        let (seen, tick) = (world.seen().clone(), world.settings().tick);
        for (estimate, view) in estimates.iter_mut().zip(&seen.functions) {
            estimate.observe(view, seen.window.as_secs_f64());
        }
        // A rise is believed at once, a fall over half a minute; one deviation of a ten-second count on top.
        let now = world.rates(0).0;
        rate = now.max(rate + 0.15 * (now - rate));
        let (laws, expected) = match splitting {
            Splitting::Oracle => {
                let ahead = (0..3).map(|ticks| head.rate_at(seen.now + tick * ticks));
                (truth, ahead.fold(0.0, f64::max))
            }
            Splitting::Estimated | Splitting::Equal => (estimates.map(|one| one.law()), rate),
        };
        let backlog: u32 = seen.functions.iter().map(|view| view.queued).sum();
        let expected = expected + f64::from(backlog) / 20.0;
        let is_equal = splitting == Splitting::Equal;
        let staffs = best_split(&laws, expected.max(0.1), objective_ms * 1e-3, is_equal);
        let mut decision = Decision::default();
        for (stage, (instances, cpu)) in staffs.into_iter().enumerate() {
            let memory = world.wish(stage).memory;
            decision.targets.push(target_of(stage, Wish { instances, cpu, memory }));
        }
        world.act(&decision);
    }
    let cores = (0..3).map(|stage| world.core_seconds(stage)).sum();
    (quantile(&mut world.chain_latencies(), 0.99), cores)
}

/// The chain over `seeds`, with an objective of three quarters of its stages' own objectives together.
pub fn chain(seeds: &[u64], ticks: u64, progress: &(dyn Fn(u64) + Sync)) -> ChainResult {
    let whole: f64 = [10, 1, 9].iter().map(|&profile: &usize| TWELVE[profile].slo_ms).sum();
    let objective_ms = (0.75 * whole).round();
    let mut result = ChainResult { objective_ms, ..ChainResult::default() };
    let share = 1.0 / seeds.len().max(1) as f64;
    for &seed in seeds {
        let (p99, cores) = run(Splitting::Estimated, seed, objective_ms, ticks);
        let (oracle_p99, oracle) = run(Splitting::Oracle, seed, objective_ms, ticks);
        let (equal_p99, equal) = run(Splitting::Equal, seed, objective_ms, ticks);
        result.p99_ms += share * p99;
        result.oracle_p99_ms += share * oracle_p99;
        result.equal_split_p99_ms += share * equal_p99;
        result.core_seconds_over_oracle_percent += share * 100.0 * (cores / oracle - 1.0);
        result.equal_split_over_oracle_percent += share * 100.0 * (equal / oracle - 1.0);
        progress(3);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGE: Law = Law { work: 0.6, fixed: 0.15, spread: 0.2 };

    #[test]
    fn a_looser_objective_never_takes_more_cores() {
        let cores = |objective| STAGE.staff(objective, 2.0).map(|(n, c)| n * c);
        assert_eq!(cores(0.5), None);
        let (tight, loose) = (cores(1.2).unwrap(), cores(3.0).unwrap());
        assert!(loose < tight, "{loose} {tight}");
        // Two calls a second of 0.6 core-seconds keep 1.2 cores busy whatever the objective.
        assert!(loose > 1200);
    }

    #[test]
    fn the_best_split_is_no_worse_than_equal_parts() {
        let short = Law { work: 0.06, fixed: 0.0, spread: 0.3 };
        let laws = [short, STAGE, STAGE];
        let cores = |is_equal| -> u32 {
            best_split(&laws, 2.0, 3.0, is_equal).iter().map(|(n, c)| n * c).sum()
        };
        assert!(cores(false) < cores(true), "{} {}", cores(false), cores(true));
    }
}
