//! PPO beside the classic policies in `windfall/Scaling-v0`, on functions and hours that no training saw.
//!
//! ```text
//!   for each seed:  train on the training part ─► the policy that is best on the validation part
//!                   ─► that policy, random moves and every classic policy on the same episodes of the test part
//! ```
//!
//! A seed gives the training its randomness and the test its episodes, so all policies of a seed are compared
//! on the same calls.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_rl::parallel::Workers;
use windfall_rl::training::{Best, CurvePoint, Random, Training};
use windfall_rl::{Kind, Split, Spread};

use crate::entries::ENTRIES;
use crate::rivals::{Episode, learner_episodes, rival_episodes};

/// What to train and to play.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Iterations of each training.
    pub iterations: u64,
    /// Iterations between two evaluations on the validation part.
    pub evaluate_every: u64,
    /// The first seed; the others follow it.
    pub first_seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Threads; the results do not depend on it.
    pub threads: usize,
}

impl Plan {
    /// Five seeds.
    pub fn full(threads: usize) -> Self {
        Self { iterations: 60, evaluate_every: 10, first_seed: 1, seeds: 5, threads }
    }

    /// The same page in a fraction of the time.
    pub fn quick(threads: usize) -> Self {
        Self { iterations: 10, seeds: 2, ..Self::full(threads) }
    }
}

/// One training: its curve, and which of its policies was played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    /// Its seed.
    pub seed: u64,
    /// The best evaluation on the validation part.
    pub best: Option<Best>,
    /// Iteration by iteration.
    pub curve: Vec<CurvePoint>,
}

/// How a policy did on the test part: mean over the episodes of a seed, spread over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Return of an episode of 200 ticks.
    #[serde(flatten)]
    pub total: Spread,
    /// SLO preservation.
    pub preserved: Spread,
    /// CPU utilisation.
    pub utilisation: Spread,
    /// Core-seconds held.
    pub core_seconds: Spread,
    /// Mean return of each seed.
    pub seeds: Vec<f64>,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// All policies, the best first.
    pub standings: Vec<Standing>,
    /// The trainings.
    pub trained: Vec<Trained>,
}

/// Trains and plays. `progress` is called after every iteration, from several threads.
pub fn contest(plan: &Plan, progress: &(dyn Fn(&CurvePoint) + Sync)) -> Contest {
    let seeds: Vec<u64> = (plan.first_seed..plan.first_seed + plan.seeds.max(1)).collect();
    let workers = Workers::new(plan.threads);
    let (trained, played): (Vec<Trained>, Vec<Played>) =
        workers.map(&seeds, |seed| one_seed(plan, *seed, progress)).into_iter().unzip();
    let count = played.first().map_or(0, Vec::len);
    let mut standings: Vec<Standing> = (0..count)
        .map(|place| standing(&played.iter().map(|seed| &seed[place]).collect::<Vec<_>>()))
        .collect();
    standings.sort_by(|one, other| other.total.mean.total_cmp(&one.total.mean));
    Contest { standings, trained }
}

/// Episodes by policy, in the same order for every seed.
type Played = Vec<(&'static str, Vec<Episode>)>;

fn one_seed(plan: &Plan, seed: u64, progress: &(dyn Fn(&CurvePoint) + Sync)) -> (Trained, Played) {
    let entry = &ENTRIES[0];
    let make = || (entry.make)(Split::Training);
    let settings = entry.settings(Kind::Ppo, plan.iterations);
    let learner = settings.start(&make, entry.environments, Seed::new(seed), 1);
    let mut training = Training::new(learner, entry, plan.iterations, plan.evaluate_every, &[]);
    let mut kept = training.checkpoint();
    let mut curve = Vec::new();
    while training.iteration() < plan.iterations {
        let (point, is_best) = training.iterate();
        if is_best {
            kept = training.checkpoint();
        }
        progress(&point);
        curve.push(point);
    }
    let mut policy = kept.policy().expect("a checkpoint that was just made");
    let test = Seed::new(seed);
    let mut played = vec![
        ("ppo", learner_episodes(&mut policy, Split::Test, test)),
        ("random", learner_episodes(&mut Random::new(test), Split::Test, test)),
    ];
    played.extend(rival_episodes(Split::Test, test));
    (Trained { seed, best: training.best(), curve }, played)
}

fn standing(seeds: &[&(&'static str, Vec<Episode>)]) -> Standing {
    let means = |of: fn(&Episode) -> f64| -> Vec<f64> {
        let mean = |(_, episodes): &&(&str, Vec<Episode>)| {
            Spread::of(&episodes.iter().map(of).collect::<Vec<_>>()).mean
        };
        seeds.iter().map(mean).collect()
    };
    let totals = means(|episode| episode.total);
    Standing {
        name: seeds.first().map_or("", |(name, _)| *name).to_owned(),
        total: Spread::of(&totals),
        preserved: Spread::of(&means(|episode| episode.preserved)),
        utilisation: Spread::of(&means(|episode| episode.utilisation)),
        core_seconds: Spread::of(&means(|episode| episode.core_seconds)),
        seeds: totals,
    }
}

#[test]
fn a_standing_is_a_mean_of_seeds() {
    let with = |total| Episode { total, ..Episode::default() };
    let one = ("ppo", vec![with(1.0), with(3.0)]);
    let other = ("ppo", vec![with(4.0), with(8.0)]);
    let found = standing(&[&one, &other]);
    assert_eq!((found.total.mean, found.total.low, found.total.high), (4.0, 2.0, 6.0));
    assert_eq!(found.seeds, [2.0, 6.0]);
}
