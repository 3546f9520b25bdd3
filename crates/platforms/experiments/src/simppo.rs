//! SIMPPO's agents on real processes: teams that were trained on `windfall/MultiScaling-v1` decide about functions of this
//! machine.
//!
//! ```text
//!   training hours, simulated ─► team ─┬─► test hours, simulated
//!                                      └─► the same calls, real processes: weights, quotas, memory limits, instances
//! ```
//!
//! The environment is one node of 8 cores with six functions, one agent each. Here a core of it is a quarter of a real
//! one and time runs five times as fast: a call that works 500 ms on a core there takes 25 ms of CPU here, in 100 ms. Both
//! get the same calls at the same moments ([`CallStream`]); what they find is another matter.
//!
//! [`CallStream`]: windfall_gym::shared_nodes::function_load::CallStream

mod arena;
mod report;
mod tally;

use std::sync::Arc;

use serde::Serialize;
use windfall_gym::Split;
use windfall_gym::shared_nodes::NodeSettings;
use windfall_gym::shared_nodes::function_load::Workload;
use windfall_gym::shared_nodes::rules::RuleSettings;
use windfall_papers::simppo::Team;
use windfall_papers::simppo::arena::Arena;
use windfall_papers::simppo::faults::FaultSettings;
use windfall_papers::simppo::online::OnlineRow;
use windfall_papers::simppo::shared::arms::{Arm, Block, Learner, Networks, USUAL};
use windfall_papers::simppo::shared::trial::Trial;
use windfall_sandbox::Host;
use windfall_studies::reproduce::{Reproduced, Request, Stage, Watcher};

use crate::error::ExperimentError;
use crate::host::host;
use arena::LiveArena;

/// Decides functions, hours and networks.
const SEED: u64 = 1;
/// The rule that stands for all: M/M/c staffing with its usual parameters.
const RULE: &str = "queueing";

/// How the experiment is made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Functions, one agent each.
    pub functions: usize,
    /// Episodes of training in simulation.
    pub training: u64,
    /// Episodes on the machine, and the same ones in simulation.
    pub episodes: u64,
    /// Ticks of such an episode.
    pub ticks: u64,
    /// Real seconds of a tick.
    pub tick_seconds: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { functions: 6, training: 40, episodes: 2, ticks: 48, tick_seconds: 1.0 }
    }
}

impl Settings {
    /// A few ticks after a few episodes: shows that everything works.
    pub fn quick() -> Self {
        Self { training: 2, episodes: 1, ticks: 4, tick_seconds: 0.5, ..Self::default() }
    }

    fn check(&self) -> Result<(), ExperimentError> {
        let refuse =
            |name, value: String, allowed| Err(ExperimentError::Setting { name, value, allowed });
        match self {
            _ if !(1..=100).contains(&self.episodes) => {
                refuse("--live-episodes", self.episodes.to_string(), "1 to 100")
            }
            _ if !(1..=1000).contains(&self.ticks) => {
                refuse("--ticks", self.ticks.to_string(), "1 to 1000")
            }
            _ if !(0.2..=5.0).contains(&self.tick_seconds) => {
                refuse("--tick-seconds", self.tick_seconds.to_string(), "0.2 to 5")
            }
            _ => Ok(()),
        }
    }

    /// The environment that teams are trained in.
    fn training_trial(&self) -> Trial {
        let nodes = NodeSettings { count: 1, ..NodeSettings::default() };
        Trial { nodes, ..Trial::new(SEED, self.functions, Workload::Azure) }
    }

    /// The one that everybody is judged in.
    fn test_trial(&self) -> Trial {
        Trial { ticks: self.ticks, ..self.training_trial() }
    }
}

/// Who decides.
enum Player {
    Team(Team),
    Rule(RuleSettings),
}

/// One policy, on the machine or in simulation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Its name.
    pub policy: String,
    /// Mean sum of rewards of a function in an episode.
    pub reward: f64,
    /// The same, episode by episode.
    pub rewards: Vec<f64>,
    /// Mean SLO preservation.
    pub slo_preserved: f64,
    /// Mean CPU utilisation.
    pub utilisation: f64,
    /// Share of the calls that missed their objective.
    pub late_share: f64,
    /// Core-seconds of the environment held in an episode, all functions.
    pub core_seconds: f64,
    /// Calls of an episode that ended.
    pub calls: f64,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct SimppoOnKernel {
    /// How it was made.
    pub settings: Settings,
    /// Which cgroup driver set the limits.
    pub driver: String,
    /// Load average of the machine, at the end.
    pub load_average: f64,
    /// On the machine.
    pub kernel: Vec<Row>,
    /// In simulation.
    pub simulated: Vec<Row>,
    /// Every function of every episode on the machine.
    pub functions: Vec<OnlineRow>,
}

/// Makes the experiment. Call it before any thread exists.
pub fn reproduce(
    request: &Request<'_>,
    settings: &Settings,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ExperimentError> {
    settings.check()?;
    let host = host("SIMPPO on this machine")?;
    let mut players = players(settings, watcher);
    let trial = settings.test_trial();
    let simulated: Vec<Row> = players
        .iter_mut()
        .map(|(name, player)| {
            let part = (Split::Test, settings.episodes);
            let rows = match player {
                Player::Team(team) => trial.test(name, team, part.0, part.1),
                Player::Rule(rule) => trial.rule_with(name, *rule, part),
            };
            Row::of(name, &[rows])
        })
        .collect();
    let driver = host.capabilities().driver.to_owned();
    let episodes = play_all(&host, settings, &trial, &mut players, watcher)?;
    let kernel = (players.iter().zip(&episodes)).map(|((name, _), own)| Row::of(name, own));
    let found = SimppoOnKernel {
        settings: *settings,
        driver,
        load_average: crate::machine::load_average(),
        kernel: kernel.collect(),
        simulated,
        functions: episodes.into_iter().flatten().flatten().collect(),
    };
    Ok(Reproduced::new(report::page(request, &found), report::text(&found), &found)?)
}

/// Trains teams in simulation; rules need no training.
fn players(settings: &Settings, watcher: &dyn Watcher) -> Vec<(String, Player)> {
    let trial = settings.training_trial();
    let own = |block, learner| Arm { block, networks: Networks::Own, learner };
    let arms = [
        own(Block::Published, Learner::Simppo(USUAL)),
        own(Block::Ours, Learner::Simppo(USUAL)),
        own(Block::Ours, Learner::Together),
    ];
    let count = arms.len() as u64 * settings.training * settings.functions as u64;
    watcher.begin(Stage::AgentEpisodes(count));
    let mut players: Vec<(String, Player)> = Vec::new();
    for arm in arms {
        let team = arm.team(settings.training);
        let (team, _) =
            trial.train(&arm.name(), team, settings.training, &|steps| watcher.advance(steps));
        players.push((arm.name(), Player::Team(team)));
    }
    watcher.end();
    for name in [RULE, "fixed"] {
        players.extend(RuleSettings::usual(name).map(|it| (name.to_owned(), Player::Rule(it))));
    }
    players
}

/// The rows of every player and episode; players take turns in A B B A.
fn play_all(
    host: &Arc<Host>,
    settings: &Settings,
    trial: &Trial,
    players: &mut [(String, Player)],
    watcher: &dyn Watcher,
) -> Result<Vec<Vec<Vec<OnlineRow>>>, ExperimentError> {
    watcher.begin(Stage::Runs(players.len() as u64 * settings.episodes));
    let mut played: Vec<Vec<Vec<OnlineRow>>> = vec![Vec::new(); players.len()];
    for episode in 0..settings.episodes {
        let mut order: Vec<usize> = (0..players.len()).collect();
        if episode % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let (name, player) = &mut players[place];
            watcher.describe(&format!("{}: {name}", episode + 1));
            let rows = play(host, settings, (trial, episode), (name, player))?;
            played[place].push(rows);
            watcher.advance(1);
        }
    }
    watcher.end();
    Ok(played)
}

/// One episode on the machine.
fn play(
    host: &Arc<Host>,
    settings: &Settings,
    (trial, episode): (&Trial, u64),
    (name, player): (&str, &mut Player),
) -> Result<Vec<OnlineRow>, ExperimentError> {
    let rule = match player {
        Player::Rule(rule) => *rule,
        Player::Team(_) => trial.rule,
    };
    let world = trial.settings(Split::Test);
    let mut live = LiveArena::new(Arc::clone(host), world, rule, settings.tick_seconds);
    live.reset(trial.episode(Split::Test, episode));
    let rewards = match player {
        Player::Team(team) => team.play(&mut live, None, FaultSettings::NONE, |_| {}).rewards,
        Player::Rule(_) => follow(&mut live),
    };
    if let Some(problem) = &live.problem {
        let (during, first) = (format!("episode {} of {name}", episode + 1), problem.clone());
        return Err(ExperimentError::Calls { during, failed: 1, calls: 1, first });
    }
    let row = |(agent, reward): (usize, f64)| {
        live.tally.row((name, episode + 1), agent, &live.profile(agent), reward)
    };
    Ok(rewards.into_iter().enumerate().map(row).collect())
}

/// An episode under the arena's rule; the sum of rewards of every function.
fn follow(live: &mut LiveArena) -> Vec<f64> {
    let mut rule = live.new_rule();
    let mut rewards = vec![0.0; live.agents()];
    while !live.is_over() {
        let wanted = live.propose(&mut rule);
        live.act(&wanted);
        for (agent, sum) in rewards.iter_mut().enumerate() {
            *sum += live.reward(agent);
        }
    }
    rewards
}

impl Row {
    /// Means over episodes and functions.
    fn of(policy: &str, episodes: &[Vec<OnlineRow>]) -> Self {
        let all = || episodes.iter().flatten();
        let mean = |of: &dyn Fn(&OnlineRow) -> f64| {
            windfall_core::statistics::mean(all().map(of)).unwrap_or(0.0)
        };
        let sum = |of: &dyn Fn(&OnlineRow) -> f64| all().map(of).sum::<f64>();
        let count = episodes.len().max(1) as f64;
        let rewards = episodes.iter().map(|rows| {
            windfall_core::statistics::mean(rows.iter().map(|row| row.reward)).unwrap_or(0.0)
        });
        Self {
            policy: policy.to_owned(),
            reward: mean(&|row| row.reward),
            rewards: rewards.collect(),
            slo_preserved: mean(&|row| row.slo_preserved),
            utilisation: mean(&|row| row.utilisation),
            late_share: sum(&|row| row.violations) / sum(&|row| row.judged_calls).max(1.0),
            core_seconds: sum(&|row| row.core_seconds_granted) / count,
            calls: sum(&|row| row.judged_calls) / count,
        }
    }
}
