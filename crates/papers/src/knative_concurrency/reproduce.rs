//! The whole experiment: sweep, best limits, learners.

use rayon::prelude::*;
use serde::Serialize;
use windfall_core::Seed;

use super::knative::{KnativeSettings, LoadTestOutcome};
use super::sweep::{Best, SweepPoint, WorkloadSweep};
use super::trial::{LearnerRow, Trial};
use super::workloads::{MOST_TELLING, WORKLOADS, Workload};
use super::{BracketSearch, DEFAULT_LIMIT, LIMITS, LimitLearner, QLearner, test_limit};

/// Load tests that the paper's learner gets.
pub const Q_LEARNER_TESTS: usize = 600;

/// How much is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Load tests per limit.
    pub repetitions: u32,
    /// Runs per learner.
    pub seeds: u32,
    /// Load tests that each learner gets.
    pub tests: usize,
    /// Workloads that are swept and learned.
    pub workloads: Vec<Workload>,
}

impl Plan {
    /// As in the paper: ten repetitions, and ten runs of each learner.
    pub fn full() -> Self {
        Self { repetitions: 10, seeds: 10, tests: Q_LEARNER_TESTS, workloads: WORKLOADS.to_vec() }
    }

    /// Three repetitions, three runs, and the three most telling workloads.
    pub fn quick() -> Self {
        let is_telling = |workload: &&Workload| MOST_TELLING.contains(&workload.name);
        let workloads = WORKLOADS.iter().filter(is_telling).copied().collect();
        Self { repetitions: 3, seeds: 3, workloads, ..Self::full() }
    }

    /// Load tests that will be simulated.
    pub fn load_tests(&self) -> u64 {
        let limits = LIMITS.len() as u64 + 1;
        2 * self.workloads.len() as u64 * limits * u64::from(self.repetitions)
    }
}

/// Everything that came out.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// Every limit of every workload.
    pub sweep: Vec<SweepPoint>,
    /// The best limit of each.
    pub best: Vec<Best>,
    /// Learners on workloads.
    pub learners: Vec<LearnerRow>,
    /// The workloads' knobs.
    pub workloads: Vec<Workload>,
    /// The platform.
    pub platform: KnativeSettings,
    /// Load tests that each run of a learner had.
    pub load_tests_per_run: usize,
    /// Mean time that one iteration takes, roll-out included, seconds.
    pub seconds_per_load_test: f64,
}

/// Load tests of one workload, made beforehand: for each limit of the sweep and then for the default, so many.
#[derive(Clone, Debug)]
pub struct WorkloadTests {
    /// Which workload.
    pub workload: Workload,
    /// Tests that say which limit is best.
    pub judging: Vec<Vec<LoadTestOutcome>>,
    /// Tests that learners draw from; other ones than those that judge, where there are enough.
    pub learning: Vec<Vec<LoadTestOutcome>>,
}

/// The limits that are tested: those of the sweep, then the default.
pub fn tested_limits() -> Vec<u32> {
    LIMITS.into_iter().chain([DEFAULT_LIMIT]).collect()
}

/// Runs the experiment in simulation. `progress` is called after every load test.
pub fn reproduce(plan: &Plan, progress: &(dyn Fn() + Sync)) -> Reproduction {
    let tests = plan.workloads.iter().map(|workload| WorkloadTests {
        workload: *workload,
        judging: simulate(workload, plan.repetitions, "sweep", progress),
        learning: simulate(workload, plan.repetitions, "learning", progress),
    });
    conclude(plan, KnativeSettings::default(), &tests.collect::<Vec<_>>())
}

/// What load tests come to that were made beforehand: best limits, and what learners do with such tests.
pub fn conclude(plan: &Plan, platform: KnativeSettings, tests: &[WorkloadTests]) -> Reproduction {
    let sweeps: Vec<WorkloadSweep> = tests.iter().map(sweep_of).collect();
    let learners = sweeps.iter().zip(tests).flat_map(|(sweep, own)| {
        let limits = own.learning.len().min(LIMITS.len());
        learn(sweep, &own.learning[..limits], plan)
    });
    let learners = learners.collect();
    let all = || tests.iter().flat_map(|own| own.judging.iter().flatten());
    let seconds: f64 = all().map(|test| test.took.as_secs_f64()).sum();
    Reproduction {
        sweep: sweeps.iter().flat_map(|sweep| sweep.points.clone()).collect(),
        best: sweeps.iter().map(WorkloadSweep::summary).collect(),
        learners,
        workloads: plan.workloads.clone(),
        platform,
        load_tests_per_run: plan.tests,
        seconds_per_load_test: seconds / all().count().max(1) as f64,
    }
}

/// Tests every limit of a workload, and the default, in simulation.
fn simulate(
    workload: &Workload,
    repetitions: u32,
    stream: &str,
    progress: &(dyn Fn() + Sync),
) -> Vec<Vec<LoadTestOutcome>> {
    let seed = Seed::new(1).stream(stream).stream(workload.name);
    let jobs: Vec<(u32, u32)> = tested_limits()
        .iter()
        .flat_map(|limit| (0..repetitions).map(move |repetition| (*limit, repetition)))
        .collect();
    let outcomes: Vec<LoadTestOutcome> = jobs
        .par_iter()
        .with_max_len(1)
        .map(|(limit, repetition)| {
            let own = seed.member(u64::from(*limit)).member(u64::from(*repetition));
            let outcome = test_limit(workload, *limit, own);
            progress();
            outcome
        })
        .collect();
    outcomes.chunks(repetitions.max(1) as usize).map(<[_]>::to_vec).collect()
}

fn sweep_of(tests: &WorkloadTests) -> WorkloadSweep {
    let workload = &tests.workload;
    let mut points: Vec<SweepPoint> = (tested_limits().iter().zip(&tests.judging))
        .map(|(limit, tests)| SweepPoint::new(workload, *limit, tests))
        .collect();
    let default = points.pop().unwrap_or_else(|| SweepPoint::new(workload, DEFAULT_LIMIT, &[]));
    WorkloadSweep { workload: *workload, points, default }
}

/// All learners on one workload.
fn learn(sweep: &WorkloadSweep, made: &[Vec<LoadTestOutcome>], plan: &Plan) -> Vec<LearnerRow> {
    let seed = Seed::new(1).stream("learners").stream(sweep.workload.name);
    let trials = |fresh: &dyn Fn(Seed) -> Box<dyn LimitLearner>| -> Vec<Trial> {
        (0..u64::from(plan.seeds))
            .map(|run| {
                let own = seed.member(run);
                let mut learner = fresh(own.stream("learner"));
                Trial::play(learner.as_mut(), made, plan.tests, own.stream("tests"))
            })
            .collect()
    };
    let q_learner = trials(&|seed| Box::new(QLearner::new(seed)));
    let bracket = trials(&|_| Box::new(BracketSearch::default()));
    vec![
        LearnerRow::new("q-learning", sweep, &q_learner),
        LearnerRow::new("bracket-search", sweep, &bracket),
    ]
}

#[cfg(test)]
mod tests;
