//! Every learner like for like: one PPO, one set of settings per block, one switch at a time.
//!
//! ```text
//!   settings    published: discount 0.99, returns, batches of 5, nothing normalised      ours: GAE, discount 0.8, normalised
//!   networks    own: one for each function                                               shared: one for all
//!   method      S-RL isolated, S-RL among others, MAPPO, SIMPPO with each auxiliary state
//! ```
//!
//! All 28 combinations are trained on the same hours of the same functions. What the auxiliary state is worth is SIMPPO
//! less S-RL among others with the same settings and networks.

use serde::Serialize;
use windfall_core::statistics::mean;
use windfall_gym::Split;
use windfall_gym::shared_nodes::function_load::Workload;

use super::paired::Pairs;
use super::trial::Trial;
use crate::simppo::auxiliary::Auxiliary;
use crate::simppo::online::{Curve, OnlineRow, mean_reward};
use crate::simppo::team::{Method, Team, TeamSettings};

/// The auxiliary states that the authors' constants name. `set` is ours and no part of this comparison.
pub const LISTED: [Auxiliary; 4] = [
    Auxiliary::Global,
    Auxiliary::GlobalVariance,
    Auxiliary::MeanField,
    Auxiliary::MeanFieldActions,
];

/// The auxiliary state that stands for SIMPPO in ratios.
pub const USUAL: Auxiliary = Auxiliary::MeanField;

/// Which PPO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// As the authors published it for single agents.
    Published,
    /// With the details of `windfall-rl` on.
    Ours,
}

/// Whose networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Networks {
    /// One for each function.
    Own,
    /// One for all.
    Shared,
}

/// Which learner, where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learner {
    /// S-RL, every function with the nodes to itself.
    Isolated,
    /// S-RL on the same nodes.
    Together,
    /// A critic that sees everybody.
    Mappo,
    /// A virtual agent.
    Simppo(Auxiliary),
}

/// One combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Which PPO.
    pub block: Block,
    /// Whose networks.
    pub networks: Networks,
    /// Which learner.
    pub learner: Learner,
}

/// The combination that is as published: what ratios and growth are of.
pub const AS_PUBLISHED: (Block, Networks) = (Block::Published, Networks::Own);

impl Arm {
    /// All 28.
    pub fn all() -> Vec<Self> {
        let mut learners = vec![Learner::Isolated, Learner::Together, Learner::Mappo];
        learners.extend(LISTED.map(Learner::Simppo));
        let mut all = Vec::new();
        for block in [Block::Published, Block::Ours] {
            for networks in [Networks::Own, Networks::Shared] {
                all.extend(learners.iter().map(|&learner| Self { block, networks, learner }));
            }
        }
        all
    }

    /// Its short name: those as published have the names that tables always had.
    pub fn name(&self) -> String {
        let learner = match self.learner {
            Learner::Isolated => "isolated".to_owned(),
            Learner::Together => "s-rl".to_owned(),
            Learner::Mappo => "mappo".to_owned(),
            Learner::Simppo(auxiliary) if auxiliary == USUAL => "simppo".to_owned(),
            Learner::Simppo(auxiliary) => format!("simppo ({})", auxiliary.name()),
        };
        if (self.block, self.networks) == AS_PUBLISHED {
            return learner;
        }
        let block = if self.block == Block::Published { "published PPO" } else { "our PPO" };
        let networks = if self.networks == Networks::Own { "own" } else { "shared" };
        format!("{learner}, {block}, {networks} networks")
    }

    /// How its agents learn.
    pub fn team(&self, episodes: u64) -> TeamSettings {
        let method = match self.learner {
            Learner::Isolated | Learner::Together => Method::Single,
            Learner::Mappo => Method::Mappo,
            Learner::Simppo(auxiliary) => Method::Simppo(auxiliary),
        };
        let ours = TeamSettings::new(method, episodes).heard();
        let team = if self.networks == Networks::Shared { ours.shared() } else { ours };
        match self.block {
            Block::Ours => team,
            Block::Published => team.with_published_ppo(),
        }
    }

    /// Where it learns.
    pub fn trial(&self, seed: u64, functions: usize) -> Trial {
        let is_isolated = self.learner == Learner::Isolated;
        Trial { is_isolated, ..Trial::new(seed, functions, Workload::Azure) }
    }

    /// Trains it.
    pub fn train(
        &self,
        seed: u64,
        functions: usize,
        episodes: u64,
        progress: &(dyn Fn(u64) + Sync),
    ) -> (Team, Curve) {
        self.trial(seed, functions).train(&self.name(), self.team(episodes), episodes, progress)
    }

    /// Tests it on hours nobody trained on.
    pub fn test(&self, team: &mut Team, (seed, load): (u64, f64), episodes: u64) -> Vec<OnlineRow> {
        let trial = Trial { load, ..self.trial(seed, team.count()) };
        trial.test(&self.name(), team, Split::Test, episodes)
    }
}

/// One combination in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmRow {
    /// Its name.
    pub name: String,
    /// Which PPO.
    pub settings: Block,
    /// Whose networks.
    pub networks: Networks,
    /// Which learner.
    pub learner: Learner,
    /// Mean reward of an episode on test hours.
    pub reward: f64,
    /// Less isolated S-RL's with the same settings and networks.
    pub to_isolated: f64,
    /// Interval of that difference.
    pub low: f64,
    /// See above.
    pub high: f64,
    /// Geometric mean of p99 over isolated S-RL's with the same settings and networks.
    pub p99_to_isolated: f64,
    /// Share of calls beyond their objective, percent.
    pub violation_percent: f64,
    /// Mean reward of the first fifth of training.
    pub early_training: f64,
    /// Mean reward of the last fifth of training.
    pub late_training: f64,
}

/// What one auxiliary state is worth with one set of settings and networks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Worth {
    /// SIMPPO with it.
    pub arm: String,
    /// Against S-RL among others.
    pub without: String,
    /// Reward of an episode.
    pub reward_difference: f64,
    /// Interval of the difference.
    pub low: f64,
    /// See above.
    pub high: f64,
    /// Geometric mean of p99 over that without.
    pub p99_ratio: f64,
}

/// The answer, for the arms as published, and all pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AuxiliaryWorth {
    /// Reward of an episode that the usual auxiliary state adds as published.
    pub reward_difference: f64,
    /// Interval of the difference.
    pub low: f64,
    /// See above.
    pub high: f64,
    /// Every auxiliary state with every set of settings and networks.
    pub pairs: Vec<Worth>,
}

/// Rows of one arm.
pub fn of<'a>(rows: &'a [OnlineRow], arm: &Arm) -> Vec<OnlineRow> {
    let name = arm.name();
    rows.iter().filter(|row: &&'a OnlineRow| row.policy == name).cloned().collect()
}

/// The table.
pub fn table(rows: &[OnlineRow], curves: &[Curve]) -> Vec<ArmRow> {
    let row = |arm: &Arm| {
        let (own, alone) = (of(rows, arm), of(rows, &Arm { learner: Learner::Isolated, ..*arm }));
        let pairs = Pairs::new(&own, &alone);
        let difference = pairs.difference(&|row| row.reward);
        let sum = |of: &dyn Fn(&OnlineRow) -> f64| own.iter().map(of).sum::<f64>();
        let name = arm.name();
        let trained = || curves.iter().filter(|curve| curve.policy == name).map(|c| &c.rewards);
        // A fifth of 12 episodes is 3: the first three, the last three.
        let early = trained().flat_map(|all| &all[..all.len().div_ceil(5)]);
        let late = trained().flat_map(|all| &all[all.len() - all.len().div_ceil(5)..]);
        ArmRow {
            settings: arm.block,
            networks: arm.networks,
            learner: arm.learner,
            reward: mean_reward(own.iter()),
            to_isolated: difference.value,
            low: difference.low,
            high: difference.high,
            p99_to_isolated: pairs.p99_ratio().value,
            violation_percent: 100.0 * sum(&|row| row.violations)
                / sum(&|row| row.judged_calls).max(1.0),
            early_training: mean(early).unwrap_or(0.0),
            late_training: mean(late).unwrap_or(0.0),
            name,
        }
    };
    Arm::all().iter().map(row).collect()
}

/// What the auxiliary states are worth.
pub fn auxiliary_worth(rows: &[OnlineRow]) -> AuxiliaryWorth {
    let mut worth = AuxiliaryWorth::default();
    for arm in Arm::all() {
        let Learner::Simppo(auxiliary) = arm.learner else { continue };
        let without = Arm { learner: Learner::Together, ..arm };
        let (with_it, without_it) = (of(rows, &arm), of(rows, &without));
        let pairs = Pairs::new(&with_it, &without_it);
        let difference = pairs.difference(&|row| row.reward);
        if (arm.block, arm.networks) == AS_PUBLISHED && auxiliary == USUAL {
            worth.reward_difference = difference.value;
            (worth.low, worth.high) = (difference.low, difference.high);
        }
        worth.pairs.push(Worth {
            arm: arm.name(),
            without: without.name(),
            reward_difference: difference.value,
            low: difference.low,
            high: difference.high,
            p99_ratio: pairs.p99_ratio().value,
        });
    }
    worth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_has_a_name_of_its_own() {
        let mut names: Vec<String> = Arm::all().iter().map(Arm::name).collect();
        assert_eq!(names.len(), 28);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 28);
        assert!(
            ["simppo", "s-rl", "mappo", "isolated"]
                .iter()
                .all(|name| { names.iter().any(|other| other == name) })
        );
    }

    #[test]
    fn arms_of_a_block_differ_in_nothing_but_their_switch() {
        let ppo = |arm: &Arm| arm.team(10).ppo;
        for arm in Arm::all() {
            let twin = Arm { learner: Learner::Together, ..arm };
            assert_eq!(ppo(&arm), ppo(&twin), "{}", arm.name());
        }
    }
}
