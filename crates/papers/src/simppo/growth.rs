//! From few functions to many: what is lost when newcomers arrive, and how long it takes to make it good.
//!
//! ```text
//!   trained among N ─► newcomers take over a neighbour's weights ─► test before any learning: FIRST
//!                   ─► episodes of training until the reward is stable ─► test again: STABLE
//!   drop = (STABLE - FIRST) / STABLE, on the same test episodes
//! ```
//!
//! The nodes stay the same; so does their load, which more functions share. Stable: the mean reward of the last five episodes is within 1 % of that of the five before. The drop is
//! measured against what the team can have at its new size, since other functions have other rewards.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics;
use windfall_gym::Split;
use windfall_gym::shared_nodes::function_load::Workload;

use super::arena::SharedArena;
use super::faults::FaultSettings;
use super::shared::trial::Trial;
use super::team::{Team, TeamSettings};

/// One step of growth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrowthStep {
    /// Functions after it.
    pub functions: usize,
    /// Reward lost at the moment of growth, percent.
    pub drop_percent: f64,
    /// The same of the functions that were there before, against before, percent.
    pub incumbents_drop_percent: f64,
    /// Episodes of training until stable.
    pub episodes: u64,
    /// Whether it became stable within the episodes that were allowed.
    pub is_stable: bool,
    /// Test reward right after growth.
    pub first: f64,
    /// Test reward once stable.
    pub stable: f64,
}

/// Episodes that are compared for stability.
const WINDOW: usize = 5;
/// How far two windows may be apart.
const TOLERANCE: f64 = 0.01;

/// How much of growth is tried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowthSettings {
    /// Numbers of functions, the first one to be trained from nothing.
    pub sizes: Vec<usize>,
    /// Episodes of the first training.
    pub episodes: u64,
    /// Most episodes of a retraining.
    pub most: u64,
    /// Test episodes.
    pub tests: u64,
}

/// Grows a team through all sizes.
pub fn grow(
    team: TeamSettings,
    settings: &GrowthSettings,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<GrowthStep> {
    let mut steps = Vec::new();
    let Some((&first, rest)) = settings.sizes.split_first() else { return steps };
    let stream = Seed::new(seed).stream("simppo-growth");
    let mut team = Team::new(team, first, Seed::new(seed).stream("growth"));
    let mut episode = 0;
    let arena = |count: usize, start| {
        let trial = Trial::new(seed, count, Workload::Azure);
        SharedArena::new(&trial.settings(Split::Training), false, trial.rule, start)
    };
    let mut env = arena(first, stream);
    for _ in 0..settings.episodes {
        team.train(&mut env, stream.member(episode), FaultSettings::NONE);
        episode += 1;
        progress(first as u64);
    }
    for &count in rest {
        let before = test(&mut team, seed, settings.tests);
        team.grow(count);
        let after = test(&mut team, seed, settings.tests);
        let mut env = arena(count, stream.member(episode));
        let mut rewards = Vec::new();
        while !is_stable(&rewards) && (rewards.len() as u64) < settings.most {
            let play = team.train(&mut env, stream.member(episode), FaultSettings::NONE);
            rewards.push(play.mean());
            episode += 1;
            progress(count as u64);
        }
        let stable = mean(&test(&mut team, seed, settings.tests));
        let (incumbents, first) = (mean(&after[..before.len()]), mean(&after));
        steps.push(GrowthStep {
            functions: count,
            drop_percent: 100.0 * (stable - first) / stable.abs().max(1e-9),
            incumbents_drop_percent: 100.0 * (mean(&before) - incumbents)
                / mean(&before).abs().max(1e-9),
            episodes: rewards.len() as u64,
            is_stable: is_stable(&rewards),
            first,
            stable,
        });
    }
    steps
}

/// Rewards of all agents on the test episodes, mean over these.
fn test(team: &mut Team, seed: u64, tests: u64) -> Vec<f64> {
    let trial = Trial::new(seed, team.count(), Workload::Azure);
    trial.test("simppo", team, Split::Test, tests).into_iter().map(|row| row.reward).collect()
}

/// Means over seeds, step by step.
pub fn mean_steps(seeds: &[Vec<GrowthStep>]) -> Vec<GrowthStep> {
    let count = seeds.iter().map(Vec::len).min().unwrap_or(0);
    let step = |place: usize| {
        let of = |pick: &dyn Fn(&GrowthStep) -> f64| {
            statistics::mean(seeds.iter().map(|steps| pick(&steps[place]))).unwrap_or(0.0)
        };
        GrowthStep {
            functions: seeds[0][place].functions,
            drop_percent: of(&|step| step.drop_percent),
            incumbents_drop_percent: of(&|step| step.incumbents_drop_percent),
            episodes: of(&|step| step.episodes as f64).round() as u64,
            is_stable: seeds.iter().all(|steps| steps[place].is_stable),
            first: of(&|step| step.first),
            stable: of(&|step| step.stable),
        }
    };
    (0..count).map(step).collect()
}

fn mean(values: &[f64]) -> f64 {
    statistics::mean(values).unwrap_or(0.0)
}

fn is_stable(rewards: &[f64]) -> bool {
    let Some(from) = rewards.len().checked_sub(2 * WINDOW) else { return false };
    let (before, last) = rewards[from..].split_at(WINDOW);
    (mean(last) - mean(before)).abs() <= TOLERANCE * mean(before).abs()
}

#[test]
fn stable_means_two_windows_alike() {
    assert!(!is_stable(&[1.0; 9]));
    assert!(is_stable(&[1.0; 10]));
    let rising: Vec<f64> = (0..10).map(f64::from).collect();
    assert!(!is_stable(&rising));
}
