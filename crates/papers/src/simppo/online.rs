//! Training, and the table of online performance: every policy on hours that nobody trained on.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics;
use windfall_gym::Split;
use windfall_gym::classic::{Outcome, Scores};
use windfall_gym::multi::{MultiScaling, MultiSettings};
use windfall_gym::profile::TWELVE;

use super::faults::FaultSettings;
use super::team::{Team, TeamSettings};

/// One function under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnlineRow {
    /// Which policy.
    pub policy: String,
    /// Which function.
    pub function: String,
    /// Which seed.
    pub seed: u64,
    /// Sum of rewards of an episode, mean over the test episodes.
    pub reward: f64,
    /// 99th percentile of latency, milliseconds, mean over the test episodes.
    pub p99_ms: f64,
    /// Its objective, milliseconds.
    pub slo_ms: f64,
    /// Mean SLO preservation.
    pub slo_preserved: f64,
    /// Mean CPU utilisation.
    pub utilisation: f64,
    /// Core-seconds held in an episode.
    pub core_seconds_granted: f64,
    /// GiB-seconds held in an episode; 0 where nobody counts them.
    #[serde(default)]
    pub gib_seconds_granted: f64,
    /// Calls of an episode with an objective, and those of them that missed it; 0 where nobody counts them.
    #[serde(default)]
    pub judged_calls: f64,
    /// See above.
    #[serde(default)]
    pub violations: f64,
}

impl OnlineRow {
    /// What is held, in core-seconds: a GiB costs a tenth of a core, about what providers charge.
    pub fn cost(&self) -> f64 {
        self.core_seconds_granted + 0.1 * self.gib_seconds_granted
    }
}

/// A policy's reward as training went on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Which policy.
    pub policy: String,
    /// Which seed.
    pub seed: u64,
    /// Mean over agents of an episode's sum of rewards, episode by episode.
    pub rewards: Vec<f64>,
}

/// Sizes of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Functions.
    pub functions: usize,
    /// Episodes of training.
    pub episodes: u64,
    /// Episodes of the test.
    pub tests: u64,
}

/// What a policy is tested on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exam {
    /// Whose hours.
    pub split: Split,
    /// Mean load of the cluster's cores.
    pub load: f64,
    /// Episodes.
    pub episodes: u64,
}

/// The world that is trained in, or tested.
pub fn world_of(seed: u64, functions: Vec<u64>, split: Split, load: f64) -> MultiSettings {
    let settings = MultiSettings::new(0, Seed::new(seed));
    // A function alone has a whole node.
    let nodes = (functions.len() == 1).then_some(1);
    MultiSettings { functions, split, load, nodes, ..settings }
}

/// Mean load of the cluster in the test, unless a sweep says otherwise.
pub const LOAD: f64 = 0.6;

/// Loads of the training, episode by episode in turn. Where clusters are never full, nobody learns what to do in one, and
/// some hours of the test are heavier than the mean. A function alone knows no load.
const TRAINING_LOADS: [f64; 4] = [0.6, 0.7, 0.8, 0.9];

/// Trains a team and keeps its curve.
pub fn trained(
    name: &str,
    team: TeamSettings,
    (seed, functions): (u64, Vec<u64>),
    episodes: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> (Team, Curve) {
    let count = functions.len();
    let world = world_of(seed, functions, Split::Training, LOAD);
    let stream = Seed::new(seed).stream("simppo-training");
    let mut env = MultiScaling::new(world, stream);
    let mut team = Team::new(team, count, Seed::new(seed).stream(name));
    let mut rewards = Vec::new();
    for episode in 0..episodes {
        env.set_load(TRAINING_LOADS[episode as usize % TRAINING_LOADS.len()]);
        let play = team.train(&mut env, stream.member(episode), FaultSettings::NONE);
        rewards.push(play.mean());
        progress(count as u64);
    }
    (team, Curve { policy: name.to_owned(), seed, rewards })
}

/// Every function of `seed` alone on its own node, with an agent of its own.
pub fn isolated(
    team: &TeamSettings,
    (seed, exam): (u64, Exam),
    sizes: Sizes,
    progress: &(dyn Fn(u64) + Sync),
) -> (Vec<OnlineRow>, Curve) {
    let mut rows = Vec::new();
    let mut mean = vec![0.0; sizes.episodes as usize];
    for number in 0..sizes.functions as u64 {
        let (mut team, curve) =
            trained("isolated", team.clone(), (seed, vec![number]), sizes.episodes, progress);
        for (mean, reward) in mean.iter_mut().zip(&curve.rewards) {
            *mean += reward / sizes.functions as f64;
        }
        rows.extend(tested("isolated", &mut team, (seed, vec![number]), exam));
    }
    (rows, Curve { policy: "isolated".to_owned(), seed, rewards: mean })
}

/// The seed of a test episode; every policy meets the same ones.
fn test_episode(seed: u64, episode: u64) -> Seed {
    Seed::new(seed).stream("simppo-test").member(episode)
}

/// What a trained team does in an exam, without trying things out.
pub fn tested(
    name: &str,
    team: &mut Team,
    (seed, functions): (u64, Vec<u64>),
    exam: Exam,
) -> Vec<OnlineRow> {
    let world = world_of(seed, functions, exam.split, exam.load);
    let mut all = Vec::new();
    for episode in 0..exam.episodes {
        let mut env = MultiScaling::new(world.clone(), test_episode(seed, episode));
        let mut scores = Scores::new(env.world_mut());
        let reward = world.reward;
        team.play(&mut env, None, FaultSettings::NONE, |env| scores.tick(env.world(), &reward));
        all.push(scores.outcomes(env.world()));
    }
    rows_of(name, seed, &world, &all)
}

fn rows_of(
    name: &str,
    seed: u64,
    world: &MultiSettings,
    episodes: &[Vec<Outcome>],
) -> Vec<OnlineRow> {
    let row = |(index, &number): (usize, &u64)| {
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            statistics::mean(episodes.iter().map(|one| of(&one[index]))).unwrap_or(0.0)
        };
        let profile = &TWELVE[(number % TWELVE.len() as u64) as usize];
        OnlineRow {
            policy: name.to_owned(),
            function: profile.name.to_owned(),
            seed,
            reward: mean(&|outcome| outcome.reward) * world.ticks as f64,
            p99_ms: mean(&|outcome| outcome.p99_ms),
            slo_ms: profile.slo_ms,
            slo_preserved: mean(&|outcome| outcome.preserved),
            utilisation: mean(&|outcome| outcome.utilisation),
            core_seconds_granted: mean(&|outcome| outcome.core_seconds),
            gib_seconds_granted: 0.0,
            judged_calls: 0.0,
            violations: 0.0,
        }
    };
    world.functions.iter().enumerate().map(row).collect()
}

/// Mean reward of an episode over rows.
pub fn mean_reward<'a>(rows: impl Iterator<Item = &'a OnlineRow>) -> f64 {
    statistics::mean(rows.map(|row| row.reward)).unwrap_or(0.0)
}

/// The published ratios on our numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// SIMPPO's reward over isolated S-RL's; the paper: above 0.908.
    pub simppo_to_isolated_reward: f64,
    /// SIMPPO's p99 over isolated S-RL's; the paper: below 1.092.
    pub simppo_to_isolated_p99: f64,
    /// S-RL's p99 among others over SIMPPO's; the paper: 2 to 4.4.
    pub together_to_simppo_p99: f64,
    /// ENSURE's loss of p99 against isolated S-RL over SIMPPO's; the paper: 21.4.
    pub ensure_to_simppo_degradation: f64,
}

impl Ratios {
    /// From the rows of all policies. p99s are compared function by function and seed by seed, and the
    /// ratios averaged geometrically, so that no single slow function decides.
    pub fn of(rows: &[OnlineRow]) -> Self {
        let reward = |policy: &str| mean_reward(rows.iter().filter(|row| row.policy == policy));
        let against = |policy: &str| p99_ratio(rows, policy, "isolated");
        let degradation = |policy: &str| (against(policy) - 1.0).max(0.001);
        Self {
            simppo_to_isolated_reward: reward("simppo") / reward("isolated"),
            simppo_to_isolated_p99: against("simppo"),
            together_to_simppo_p99: p99_ratio(rows, "s-rl", "simppo"),
            ensure_to_simppo_degradation: degradation("ensure") / degradation("simppo"),
        }
    }
}

/// Geometric mean of the ratio of two policies' p99s over functions and seeds that have both; 1 if none has.
pub fn p99_ratio(rows: &[OnlineRow], policy: &str, base: &str) -> f64 {
    let mut ratios = Vec::new();
    for row in rows.iter().filter(|row| row.policy == policy) {
        let twin = rows.iter().find(|other| {
            other.policy == base && other.function == row.function && other.seed == row.seed
        });
        if let Some(twin) = twin
            && twin.p99_ms > 0.0
            && row.p99_ms > 0.0
        {
            ratios.push(row.p99_ms / twin.p99_ms);
        }
    }
    statistics::geometric_mean(&ratios).unwrap_or(1.0)
}

/// A row for tests: an hour of `ocr` in which nothing was lost.
#[cfg(test)]
pub(crate) fn blank_row(policy: &str) -> OnlineRow {
    OnlineRow {
        policy: policy.to_owned(),
        function: "ocr".to_owned(),
        seed: 1,
        reward: 0.0,
        p99_ms: 0.0,
        slo_ms: 1000.0,
        slo_preserved: 1.0,
        utilisation: 0.5,
        core_seconds_granted: 1.0,
        gib_seconds_granted: 0.0,
        judged_calls: 0.0,
        violations: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, seed: u64, reward: f64, p99_ms: f64) -> OnlineRow {
        OnlineRow { seed, reward, p99_ms, ..blank_row(policy) }
    }

    #[test]
    fn ratios_by_hand() {
        let rows = [
            row("isolated", 1, 100.0, 100.0),
            row("isolated", 2, 100.0, 400.0),
            row("simppo", 1, 95.0, 110.0),
            row("simppo", 2, 95.0, 440.0),
            row("s-rl", 1, 50.0, 220.0),
            row("s-rl", 2, 50.0, 1760.0),
            row("ensure", 1, 50.0, 200.0),
            row("ensure", 2, 50.0, 800.0),
        ];
        let ratios = Ratios::of(&rows);
        assert!((ratios.simppo_to_isolated_reward - 0.95).abs() < 1e-9);
        assert!((ratios.simppo_to_isolated_p99 - 1.1).abs() < 1e-9);
        assert!((ratios.together_to_simppo_p99 - 8f64.sqrt()).abs() < 1e-9);
        assert!((ratios.ensure_to_simppo_degradation - 10.0).abs() < 1e-6);
    }
}
