//! Task 4.2, a checkpoint continued, and task 4.3, trained against random.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_rl::any_learner::resume;
use windfall_rl::checkpoint::Checkpoint;
use windfall_rl::env::Environment;
use windfall_rl::learner::Learner;

use super::{Algorithm, Experiment, Plan, Progress, greedy_return, train};
use crate::ece471::environment::{Ece471, Features, Settings};
use crate::ece471::exploration::{Random, total, trajectory};
use crate::ece471::rewards::Design;

/// Task 4.2: a training that was kept half-way, read back and continued, beside one in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Continued {
    /// Iterations of both.
    pub iterations: u64,
    /// Where the second was interrupted.
    pub interrupted_at: u64,
    /// Bytes of its file.
    pub bytes: usize,
    /// Greedy return of the one in a piece.
    pub whole: f64,
    /// Greedy return of the continued one.
    pub continued: f64,
    /// Whether both end in the same bytes.
    pub identical: bool,
}

/// Task 4.3: totals over 2,000 steps at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Duel {
    /// The arrival rate, the same for both.
    pub rate: u32,
    /// Steps.
    pub steps: u32,
    /// Of the trained policy.
    pub trained: f64,
    /// Of random actions.
    pub random: f64,
}

fn experiment(iterations: u64) -> Experiment {
    let (algorithm, features) = (Algorithm::Ppo, Features::WithDirection);
    Experiment { algorithm, features, design: Design::Authors, iterations }
}

/// Trains twice, once through a file.
pub fn continued(plan: &Plan, progress: &(dyn Fn(&Progress) + Sync)) -> Continued {
    let iterations = plan.continued_iterations;
    let interrupted_at = iterations / 2;
    let experiment = experiment(iterations);
    let (whole, _) = train(plan, experiment, plan.first_seed, progress);
    let settings = Settings { features: experiment.features, ..Settings::default() };
    let mut first = experiment.algorithm.start(settings, iterations, Seed::new(plan.first_seed));
    while first.iteration() < interrupted_at {
        first.iterate();
    }
    let bytes = bytes(first.as_ref());
    let make = || Box::new(Ece471::new(settings)) as Box<dyn Environment>;
    let read = Checkpoint::from_bytes(&bytes).expect("what was just written reads back");
    let mut second = resume(&read, &make, 1).expect("made for the same environment");
    while second.iteration() < iterations {
        second.iterate();
    }
    Continued {
        iterations,
        interrupted_at,
        bytes: bytes.len(),
        whole: greedy_return(whole.as_ref(), settings, true),
        continued: greedy_return(second.as_ref(), settings, true),
        identical: self::bytes(whole.as_ref()) == self::bytes(second.as_ref()),
    }
}

fn bytes(learner: &dyn Learner) -> Vec<u8> {
    learner.checkpoint().to_bytes().expect("a checkpoint of ours has a form")
}

/// The first seed's PPO against random actions, both at the rate PPO's first episode draws.
pub fn duel(plan: &Plan, progress: &(dyn Fn(&Progress) + Sync)) -> Duel {
    const STEPS: u32 = 2000;
    let experiment = experiment(plan.design_iterations);
    let (learner, _) = train(plan, experiment, plan.first_seed, progress);
    let seed = Seed::new(plan.first_seed);
    let mut environment = Ece471::new(Settings::default());
    environment.start(seed);
    let rate = environment.rate();
    let play = |features, policy: &mut dyn windfall_rl::Decide, masks| {
        let settings = Settings { features, rate: Some(rate), ..Settings::default() };
        total(&trajectory(settings, policy, masks, STEPS, seed))
    };
    Duel {
        rate,
        steps: STEPS,
        trained: play(experiment.features, learner.policy().as_mut(), true),
        random: play(Features::Course, &mut Random::new(seed), false),
    }
}
