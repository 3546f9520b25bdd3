//! `windfall/Concurrency-v0`: which concurrency limit a Knative service should have, one load test per step.
//!
//! The agent walks along the limits of the sweep (10, 30, .. 310), by one or by four levels. Every step is a load test
//! of a fresh revision at the new limit: 500 requests/s for 30 s under Knative's autoscaler. The reward is the
//! paper's, throughput over the best so far of the episode and exactly 1 within 5 % of it, less 1 if more than 1 %
//! of the requests failed: a limit that is fast and kills containers pays at most 0.
//!
//! The workload is drawn per episode: five of the nine for training, one for validation, and the three that the
//! paper shows for the test.

use windfall_core::Seed;
use windfall_rl::any_learner::{AnySettings, Kind};
use windfall_rl::catalogue::{Entry, twenty};
use windfall_rl::random::Draw;
use windfall_rl::{End, Environment, Spec, Split, Step};

use super::knative::LoadTestOutcome;
use super::workloads::{MOST_TELLING, WORKLOADS, Workload};
use super::{LIMITS, limit_at, test_limit};

/// Name and version.
pub const ID: &str = "windfall/Concurrency-v0";

/// Load tests of an episode: what the learner of ours needs to settle.
pub const TESTS: u32 = 30;

/// For the lists of environments.
pub const ENTRIES: [Entry; 1] = [Entry {
    id: ID,
    summary: "the concurrency limit of a Knative service, one load test per step",
    make: concurrency,
    panel: |split| twenty(concurrency, split),
    suggested: |_: Kind, _| None::<AnySettings>,
    environments: 8,
}];

fn concurrency(split: Split) -> Box<dyn Environment> {
    Box::new(Concurrency::new(split))
}

/// Levels that each action moves by.
const MOVES: [(&str, isize); 5] =
    [("down-4", -4), ("down", -1), ("hold", 0), ("up", 1), ("up-4", 4)];
/// Requests per second of a load test.
const OFFERED: f64 = 500.0;
/// Share of the best throughput so far that counts as the best.
const CLOSE: f64 = 0.95;
/// Share of failed requests above which a limit is unsafe.
const UNSAFE: f64 = 0.01;

/// The environment.
#[derive(Clone, Debug)]
pub struct Concurrency {
    split: Split,
    spec: Spec,
    workload: Workload,
    seed: Seed,
    level: usize,
    tests: u32,
    best: f64,
    last: LoadTestOutcome,
}

impl Concurrency {
    /// An environment whose first episode has not begun.
    pub fn new(split: Split) -> Self {
        let features = [
            ("limit", 0.0, 1.0),
            ("throughput", 0.0, 1.0),
            ("best_throughput", 0.0, 1.0),
            ("success", 0.0, 1.0),
            ("mean_seconds", 0.0, 1.0),
            ("p95_seconds", 0.0, 1.0),
            ("cpu_utilisation", 0.0, 1.0),
            ("memory_utilisation", 0.0, 1.0),
            ("pods", 0.0, 1.0),
            ("in_service_per_limit", 0.0, 1.0),
            ("tests_left", 0.0, 1.0),
        ];
        Self {
            split,
            spec: Spec::new(ID, &features, &MOVES.map(|(name, _)| name)),
            workload: WORKLOADS[0],
            seed: Seed::new(0),
            level: 0,
            tests: 0,
            best: 0.0,
            last: LoadTestOutcome::default(),
        }
    }

    fn test(&mut self) {
        let seed = self.seed.member(u64::from(self.tests));
        self.last = test_limit(&self.workload, limit_at(self.level), seed);
        self.best = self.best.max(self.last.throughput);
    }

    fn write_row(&self, row: &mut [f32]) {
        let LoadTestOutcome { throughput, success, mean_ms, p95_ms, .. } = self.last;
        let limit = f64::from(limit_at(self.level));
        let values = [
            self.level as f64 / (LIMITS.len() - 1) as f64,
            throughput / OFFERED,
            self.best / OFFERED,
            success,
            mean_ms / (1000.0 + mean_ms),
            p95_ms / (1000.0 + p95_ms),
            self.last.cpu_utilisation,
            self.last.memory_utilisation,
            self.last.mean_pods / (10.0 + self.last.mean_pods),
            self.last.in_service_per_pod / limit,
            f64::from(TESTS - self.tests.min(TESTS)) / f64::from(TESTS),
        ];
        for (out, value) in row.iter_mut().zip(values) {
            *out = value.clamp(0.0, 1.0) as f32;
        }
    }
}

impl Environment for Concurrency {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: Seed, observation: &mut [f32]) {
        let mut draw = Draw::new(seed.stream("concurrency"));
        let is_of_split = |workload: &&Workload| {
            let is_for_test = MOST_TELLING.contains(&workload.name);
            match self.split {
                Split::Training => !is_for_test && workload.name != "#16",
                Split::Validation => workload.name == "#16",
                Split::Test => is_for_test,
            }
        };
        let workloads: Vec<&Workload> = WORKLOADS.iter().filter(is_of_split).collect();
        self.workload = *workloads[draw.below(workloads.len())];
        self.level = draw.below(LIMITS.len());
        (self.seed, self.tests, self.best) = (seed.stream("load-tests"), 0, 0.0);
        self.test();
        self.write_row(observation);
    }

    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        let by = MOVES[action].1;
        self.level = self.level.saturating_add_signed(by).min(LIMITS.len() - 1);
        self.tests += 1;
        self.test();
        self.write_row(observation);
        let ratio = self.last.throughput / self.best.max(1e-9);
        let mut reward = if ratio >= CLOSE { 1.0 } else { ratio };
        if self.last.success < 1.0 - UNSAFE {
            reward -= 1.0;
        }
        let end = if self.tests >= TESTS { End::Truncated } else { End::Continues };
        Step { reward: reward as f32, end }
    }

    /// A move beyond the first or the last limit is a move to it, so that only moves away from there make sense.
    fn mask(&self, allowed: &mut [bool]) {
        for (allowed, (_, by)) in allowed.iter_mut().zip(MOVES) {
            *allowed = match by {
                0 => true,
                ..0 => self.level > 0,
                1.. => self.level + 1 < LIMITS.len(),
            };
        }
    }

    fn info(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("concurrency_limit", f64::from(limit_at(self.level))),
            ("throughput_per_s", self.last.throughput),
            ("success", self.last.success),
            ("mean_ms", self.last.mean_ms),
            ("p95_ms", self.last.p95_ms),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_rl::env::check_environment;

    #[test]
    fn the_contract_is_kept() {
        check_environment(|| Concurrency::new(Split::Training), 35);
    }

    #[test]
    fn a_limit_that_kills_containers_pays_less_than_one_that_does_not() {
        let mut env = Concurrency::new(Split::Test);
        let mut row = [0.0; 11];
        env.reset(Seed::new(1), &mut row);
        // 50 MiB a request: from 90 at once on, containers run out of memory.
        env.workload = WORKLOADS[8];
        (env.level, env.best) = (15, 0.0);
        let high = env.step(2, &mut row).reward;
        env.level = 0;
        let low = env.step(2, &mut row).reward;
        assert!(high <= 0.0 && low > 0.5, "{high} {low}");
    }
}
