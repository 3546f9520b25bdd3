//! Task 3: what policies do that are paid by each of the four reward designs.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics;
use windfall_rl::Spread;
use windfall_rl::parallel::Workers;

use super::{Algorithm, Experiment, Plan, Progress, train};
use crate::ece471::RATES;
use crate::ece471::environment::{Features, Settings};
use crate::ece471::exploration::{total, trajectory};
use crate::ece471::rewards::Design;

/// Task 3: one reward design and what a policy trained for it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesignResult {
    /// The design.
    pub design: Design,
    /// The course's ranking check; nothing where there is none.
    pub ranks: Option<bool>,
    /// Utilisation of the trained policies, over all rates.
    pub util: Spread,
    /// SLO preservation of the trained policies.
    pub slo: Spread,
    /// Return under its own design.
    pub total: Spread,
}

/// Trains PPO for a design on every seed and lets it act at all rates.
pub fn train_design(
    plan: &Plan,
    design: Design,
    workers: &Workers,
    progress: &(dyn Fn(&Progress) + Sync),
) -> DesignResult {
    let experiment = Experiment {
        algorithm: Algorithm::Ppo,
        features: Features::WithDirection,
        design,
        iterations: plan.design_iterations,
    };
    let seeds: Vec<u64> = (plan.first_seed..plan.first_seed + plan.seeds).collect();
    let found = workers.map(&seeds, |seed| conduct(plan, experiment, *seed, progress));
    let over = |place: usize| Spread::of(&found.iter().map(|one| one[place]).collect::<Vec<_>>());
    DesignResult {
        design,
        ranks: design.ranks_as_the_course_asks(),
        util: over(0),
        slo: over(1),
        total: over(2),
    }
}

/// Mean utilisation, mean SLO preservation and mean return of the policy of one seed.
fn conduct(
    plan: &Plan,
    experiment: Experiment,
    seed: u64,
    progress: &(dyn Fn(&Progress) + Sync),
) -> [f64; 3] {
    let Experiment { features, design, .. } = experiment;
    let (learner, _) = train(plan, experiment, seed, progress);
    let mut policy = learner.policy();
    let mut visits = Vec::new();
    for rate in RATES {
        let settings = Settings { features, design, rate: Some(rate), ..Settings::default() };
        let steps = settings.horizon;
        visits.extend(trajectory(settings, policy.as_mut(), true, steps, Seed::new(0)));
    }
    let mean = |feature: usize| {
        statistics::mean(visits.iter().map(|visit| f64::from(visit.state[feature]))).unwrap_or(0.0)
    };
    [mean(0), mean(1), total(&visits) / f64::from(RATES.end() - RATES.start() + 1)]
}
