//! What faults cost: a trained team goes on twice from where it is, with faults and without.
//!
//! Both runs meet the same hours and the same calls, so that the difference is the faults and what agents make of them.

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics::mean;
use windfall_gym::Split;
use windfall_gym::multi::MultiScaling;

use super::faults::FaultSettings;
use super::online::{LOAD, world_of};
use super::team::{Play, Team};

/// What happened to one team.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FaultRow {
    /// Its seed.
    pub seed: u64,
    /// Mean reward of an episode without faults.
    pub reward: f64,
    /// The same with faults.
    pub reward_with_faults: f64,
    /// Reward lost, percent.
    pub reward_loss_percent: f64,
}

/// What happened under faults, all teams together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FaultResult {
    /// Reward lost against the same runs without faults, percent; mean over seeds.
    pub reward_loss_percent: f64,
    /// Most ticks in a row in which a function had no decision-maker.
    pub longest_gap_ticks: u64,
    /// Choices that were not allowed.
    pub illegal_actions: u64,
    /// Seed by seed.
    pub seeds: Vec<FaultRow>,
}

impl FaultResult {
    /// One team's run without faults and the same with them.
    pub fn of(seed: u64, whole: &[Play], faulty: &[Play]) -> Self {
        let reward_of = |plays: &[Play]| mean(plays.iter().map(Play::mean)).unwrap_or(0.0);
        let (reward, reward_with_faults) = (reward_of(whole), reward_of(faulty));
        let reward_loss_percent = 100.0 * (reward - reward_with_faults) / reward.abs().max(1e-9);
        Self {
            reward_loss_percent,
            longest_gap_ticks: faulty.iter().map(|play| play.longest_gap).max().unwrap_or(0),
            illegal_actions: faulty.iter().map(|play| play.illegal).sum(),
            seeds: vec![FaultRow { seed, reward, reward_with_faults, reward_loss_percent }],
        }
    }

    /// The same with another team's.
    pub fn and(mut self, other: Self) -> Self {
        self.seeds.extend(other.seeds);
        let losses = self.seeds.iter().map(|row| row.reward_loss_percent);
        self.reward_loss_percent = mean(losses).unwrap_or(0.0);
        self.longest_gap_ticks = self.longest_gap_ticks.max(other.longest_gap_ticks);
        self.illegal_actions += other.illegal_actions;
        self
    }
}

/// Hours that a team goes on in.
#[derive(Clone, Copy, Debug)]
pub struct FaultRun {
    /// Decides which functions, hours and faults.
    pub seed: u64,
    /// Whose hours.
    pub split: Split,
    /// How many episodes.
    pub episodes: u64,
    /// Whether the team goes on learning.
    pub learns: bool,
}

impl FaultRun {
    /// A copy of `team` goes on with `faults`; every episode ends with a word to `progress`.
    pub fn play(&self, team: &Team, faults: FaultSettings, progress: &dyn Fn(u64)) -> Vec<Play> {
        let functions: Vec<u64> = (0..team.count() as u64).collect();
        let agents = functions.len() as u64;
        let stream = Seed::new(self.seed).stream("simppo-faults");
        let world = world_of(self.seed, functions, self.split, LOAD);
        let mut env = MultiScaling::new(world, stream);
        let mut team = team.clone();
        let episode = |number| {
            let start = stream.member(number);
            env.reset(start);
            let play = team.play(&mut env, Some(start), faults, |_| {});
            if self.learns {
                team.learn(&play);
            }
            progress(agents);
            play
        };
        (0..self.episodes).map(episode).collect()
    }

    /// With and without the published faults.
    pub fn compare(&self, team: &Team, progress: &dyn Fn(u64)) -> FaultResult {
        let whole = self.play(team, FaultSettings::NONE, progress);
        let faulty = self.play(team, FaultSettings::PUBLISHED, progress);
        FaultResult::of(self.seed, &whole, &faulty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_averaged_gaps_are_not() {
        let play = |reward, longest_gap, illegal| {
            let mut play = Play::default();
            (play.rewards, play.longest_gap, play.illegal) = (vec![reward], longest_gap, illegal);
            play
        };
        let one = FaultResult::of(1, &[play(100.0, 0, 0)], &[play(98.0, 2, 1)]);
        let two = FaultResult::of(2, &[play(50.0, 0, 0)], &[play(48.0, 1, 0)]);
        let both = one.and(two);
        assert!((both.reward_loss_percent - 3.0).abs() < 1e-9);
        assert_eq!((both.longest_gap_ticks, both.illegal_actions, both.seeds.len()), (2, 1, 2));
    }
}
