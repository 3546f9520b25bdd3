//! Rules with their parameters swept on training hours.
//!
//! A rule that nobody tuned says little about learning. Every combination of a rule's grid is played on training hours; the
//! one of the highest mean reward is its calibrated form, and is tested beside its usual parameters on hours it has not
//! seen. A tower is not swept: it plays training hours before the test.

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics::mean;
use windfall_gym::Split;
use windfall_gym::shared_nodes::function_load::Workload;
use windfall_gym::shared_nodes::rules::{CALIBRATED, Rule, RuleSettings, Staffing};
use windfall_rl::parallel::Workers;

use super::trial::Trial;
use crate::simppo::online::{OnlineRow, mean_reward};

/// A rule with what it was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibratedRule {
    /// Which rule.
    pub rule: String,
    /// On which workload.
    pub workload: String,
    /// The parameters that were found.
    pub settings: RuleSettings,
    /// Mean reward on training hours.
    pub training_reward: f64,
    /// The same with its usual parameters.
    pub usual_training_reward: f64,
    /// Combinations that were tried.
    pub tried: usize,
}

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibrationSizes {
    /// Functions.
    pub functions: usize,
    /// Training episodes of each seed.
    pub episodes: u64,
    /// Episodes in which a tower learns.
    pub tower_episodes: u64,
}

/// Calibrates every rule on one workload.
pub fn calibrate(
    workload: Workload,
    seeds: &[u64],
    sizes: CalibrationSizes,
    workers: &Workers,
) -> Vec<CalibratedRule> {
    let mut jobs: Vec<(&str, RuleSettings)> = Vec::new();
    for name in CALIBRATED {
        jobs.extend(RuleSettings::grid(name).into_iter().map(|settings| (name, settings)));
    }
    let rewards = workers.map(&jobs, |(name, settings)| {
        let of = |&seed: &u64| {
            let trial = Trial::new(seed, sizes.functions, workload);
            let part = (Split::Training, sizes.episodes);
            mean_reward(trial.rule_with(name, *settings, part).iter())
        };
        mean(seeds.iter().map(of)).unwrap_or(0.0)
    });
    let found = |name: &str| {
        let own: Vec<(RuleSettings, f64)> = jobs
            .iter()
            .zip(&rewards)
            .filter(|((rule, _), _)| *rule == name)
            .map(|((_, settings), reward)| (*settings, *reward))
            .collect();
        let best = own.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(CalibratedRule {
            rule: name.to_owned(),
            workload: workload.name().to_owned(),
            settings: best.0,
            training_reward: best.1,
            usual_training_reward: own[0].1,
            tried: own.len(),
        })
    };
    CALIBRATED.into_iter().filter_map(found).collect()
}

impl CalibratedRule {
    /// Its name in tables.
    pub fn label(&self) -> String {
        format!("{}, calibrated", self.rule)
    }

    /// How it does on another part.
    pub fn test(
        &self,
        trial: &Trial,
        part: (Split, u64),
        sizes: CalibrationSizes,
    ) -> Vec<OnlineRow> {
        let reward = trial.settings(part.0).reward;
        let mut rule = Rule::new(self.settings, reward, Seed::new(trial.seed));
        if self.settings.staffing == Staffing::Tower {
            trial.rule(&self.label(), &mut rule, (Split::Training, sizes.tower_episodes));
        }
        trial.rule(&self.label(), &mut rule, part)
    }
}

/// The calibrated rule of the highest reward on training hours.
pub fn best(rules: &[CalibratedRule]) -> Option<&CalibratedRule> {
    rules.iter().max_by(|one, other| one.training_reward.total_cmp(&other.training_reward))
}

/// The same among those that a learner can correct: rules that leave the world as it is.
pub fn best_to_correct(rules: &[CalibratedRule]) -> Option<&CalibratedRule> {
    let plain =
        |rule: &&CalibratedRule| ["hpa", "queueing", "ensure"].contains(&rule.rule.as_str());
    rules
        .iter()
        .filter(plain)
        .max_by(|one, other| one.training_reward.total_cmp(&other.training_reward))
}
