//! One learner on one workload: what it picks, where it would settle, and how that is counted.

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics;
use windfall_rl::random::Draw;

use super::knative::LoadTestOutcome;
use super::sweep::WorkloadSweep;
use super::{LIMITS, LimitLearner};

/// Picks that are not held against a learner.
const FIRST_PICKS: usize = 3;
/// Equal picks at the end that make a learner still.
const STILL_FOR: usize = 10;

/// One run of a learner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The limit of each load test.
    pub picks: Vec<u32>,
    /// Where it would have stayed after each.
    pub settled: Vec<u32>,
}

impl Trial {
    /// Lets `learner` have `tests` load tests. Each is drawn from those made beforehand for its limit, in
    /// the order of [`LIMITS`]: a test does not depend on the one before it, so this changes nothing but the
    /// time it takes.
    pub fn play(
        learner: &mut dyn LimitLearner,
        made: &[Vec<LoadTestOutcome>],
        tests: usize,
        seed: Seed,
    ) -> Self {
        let mut draw = Draw::new(seed);
        let mut trial = Self { picks: Vec::new(), settled: Vec::new() };
        for _ in 0..tests {
            let limit = learner.next_limit();
            let level = LIMITS.iter().position(|other| *other == limit).unwrap_or(0);
            let outcomes = &made[level];
            learner.learn(&outcomes[draw.below(outcomes.len())]);
            trial.picks.push(limit);
            trial.settled.push(learner.settled());
        }
        trial
    }

    /// Whether it would settle within 5 % of the best after `tests` load tests.
    pub fn is_within_after(&self, tests: usize, sweep: &WorkloadSweep) -> bool {
        let last = self.settled.len().min(tests).checked_sub(1);
        last.is_some_and(|last| sweep.is_within_5_percent(self.settled[last]))
    }

    /// Load tests after which it would settle within 5 % of the best and never leave again; nothing if it is
    /// not there at the end.
    pub fn tests_to_within(&self, sweep: &WorkloadSweep) -> Option<usize> {
        let outside = self.settled.iter().rposition(|limit| !sweep.is_within_5_percent(*limit));
        let inside = outside.map_or(0, |last| last + 1);
        (inside < self.settled.len()).then_some(inside + 1)
    }

    /// Load tests after which it picks one limit and no other; nothing if it still changes at the end.
    pub fn tests_until_still(&self) -> Option<usize> {
        let last = self.picks.last()?;
        let before = self.picks.iter().rposition(|limit| limit != last);
        let still = before.map_or(0, |place| place + 1);
        (still + STILL_FOR <= self.picks.len()).then_some(still + 1)
    }

    /// Load tests after the third at a limit where more than 1 % fail.
    pub fn unsafe_picks_after_third(&self, sweep: &WorkloadSweep) -> usize {
        let picks = self.picks.iter().skip(FIRST_PICKS);
        picks.filter(|limit| sweep.is_unsafe(**limit)).count()
    }
}

/// A learner on a workload, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LearnerRow {
    /// The learner.
    pub name: String,
    /// The workload.
    pub workload: String,
    /// Share of runs that would settle within 5 % of the best throughput after so many load tests.
    pub within_5_percent_after_15: f64,
    /// The same.
    pub within_5_percent_after_30: f64,
    /// The same.
    pub within_5_percent_after_60: f64,
    /// The same.
    pub within_5_percent_after_150: f64,
    /// The same.
    pub within_5_percent_after_300: f64,
    /// The same.
    pub within_5_percent_after_600: f64,
    /// Median over runs of the load tests until it stays within 5 %; those that do not get there count as one
    /// more than there were.
    pub median_load_tests_to_within_5_percent: f64,
    /// Median over runs of the load tests until it picks one limit and no other, counted alike.
    pub median_load_tests_until_still: f64,
    /// Load tests after the third at limits where more than 1 % fail, all runs together.
    pub unsafe_picks_after_third: usize,
    /// Where each run would settle in the end.
    pub settled_limits: Vec<u32>,
    /// After each load test, the mean over runs of the throughput where it would settle, as a share of the best.
    pub curve: Vec<(u32, f64)>,
}

impl LearnerRow {
    /// What `trials` of the learner `name` come to.
    pub fn new(name: &str, sweep: &WorkloadSweep, trials: &[Trial]) -> Self {
        let share = |tests: usize| {
            let within = trials.iter().filter(|trial| trial.is_within_after(tests, sweep)).count();
            within as f64 / trials.len().max(1) as f64
        };
        let length = trials.first().map_or(0, |trial| trial.picks.len());
        let tests = trials.iter().map(|trial| trial.tests_to_within(sweep).unwrap_or(length + 1));
        let still = trials.iter().map(|trial| trial.tests_until_still().unwrap_or(length + 1));
        let limits = trials.iter().filter_map(|trial| trial.settled.last().copied());
        Self {
            name: name.to_owned(),
            workload: sweep.workload.name.to_owned(),
            within_5_percent_after_15: share(15),
            within_5_percent_after_30: share(30),
            within_5_percent_after_60: share(60),
            within_5_percent_after_150: share(150),
            within_5_percent_after_300: share(300),
            within_5_percent_after_600: share(600),
            median_load_tests_to_within_5_percent: median(tests.map(|tests| tests as f64)),
            median_load_tests_until_still: median(still.map(|tests| tests as f64)),
            unsafe_picks_after_third: trials
                .iter()
                .map(|trial| trial.unsafe_picks_after_third(sweep))
                .sum(),
            settled_limits: limits.collect(),
            curve: curve(sweep, trials, length),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    statistics::median(&values.collect::<Vec<_>>()).unwrap_or(0.0)
}

/// Points closer together at the beginning, where things happen.
fn curve(sweep: &WorkloadSweep, trials: &[Trial], length: usize) -> Vec<(u32, f64)> {
    let best = sweep.points.iter().map(|point| point.throughput).fold(1e-9, f64::max);
    let throughput = |limit: u32| {
        sweep.points.iter().find(|point| point.limit == limit).map_or(0.0, |it| it.throughput)
    };
    let is_shown = |test: usize| test <= 30 || test.is_multiple_of(10);
    (1..=length)
        .filter(|test| is_shown(*test))
        .map(|test| {
            let shares = trials.iter().map(|trial| throughput(trial.settled[test - 1]) / best);
            (test as u32, statistics::mean(shares).unwrap_or(0.0))
        })
        .collect()
}
