//! One learner or one rule on the shared nodes: trained on training hours, tested on others.

use windfall_core::{Seed, statistics};
use windfall_gym::profile::TWELVE;
use windfall_gym::shared_nodes::NodeSettings;
use windfall_gym::shared_nodes::function_load::Workload;
use windfall_gym::shared_nodes::rules::{Rule, RuleSettings};
use windfall_gym::shared_nodes::world::Fared;
use windfall_gym::{SharedSettings, Split};
use windfall_rl::random::Draw;

use crate::simppo::arena::{Arena, SharedArena};
use crate::simppo::faults::FaultSettings;
use crate::simppo::online::{Curve, OnlineRow};
use crate::simppo::team::{Team, TeamSettings};

/// Where something is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Decides functions and hours.
    pub seed: u64,
    /// Functions.
    pub functions: usize,
    /// Shape of the load.
    pub workload: Workload,
    /// Mean load of the cores.
    pub load: f64,
    /// The machines.
    pub nodes: NodeSettings,
    /// Ticks of an episode.
    pub ticks: u64,
    /// Every function has the nodes to itself.
    pub is_isolated: bool,
    /// The rule that residual learners correct.
    pub rule: RuleSettings,
}

impl Trial {
    /// The usual load among others.
    pub fn new(seed: u64, functions: usize, workload: Workload) -> Self {
        let rule = RuleSettings::usual("queueing").expect("it is named");
        let SharedSettings { nodes, ticks, .. } = SharedSettings::new(functions, Seed::new(seed));
        let load = workload.load();
        Self { seed, functions, workload, load, nodes, ticks, is_isolated: false, rule }
    }

    /// The world of a part.
    pub fn settings(&self, split: Split) -> SharedSettings {
        let usual = SharedSettings::new(self.functions, Seed::new(self.seed));
        let Self { workload, load, nodes, ticks, .. } = *self;
        SharedSettings { workload, load, nodes, ticks, split, ..usual }
    }

    fn arena(&self, split: Split) -> SharedArena {
        let start = Seed::new(self.seed).stream("shared-first");
        SharedArena::new(&self.settings(split), self.is_isolated, self.rule, start)
    }

    /// The seed of an episode; everybody meets the same ones.
    pub fn episode(&self, split: Split, number: u64) -> Seed {
        let name = match split {
            Split::Training => "shared-training",
            Split::Validation => "shared-validation",
            Split::Test => "shared-test",
        };
        Seed::new(self.seed).stream(name).member(number)
    }

    /// Trains a team on training hours and keeps its curve.
    pub fn train(
        &self,
        name: &str,
        team: TeamSettings,
        episodes: u64,
        progress: &(dyn Fn(u64) + Sync),
    ) -> (Team, Curve) {
        let mut team = Team::new(team, self.functions, Seed::new(self.seed).stream(name));
        let mut arena = self.arena(Split::Training);
        let mut rewards = Vec::new();
        for number in 0..episodes {
            let seed = self.episode(Split::Training, number);
            rewards.push(team.train(&mut arena, seed, FaultSettings::NONE).mean());
            progress(self.functions as u64);
        }
        (team, Curve { policy: name.to_owned(), seed: self.seed, rewards })
    }

    /// What a trained team does, without trying things out.
    pub fn test(&self, name: &str, team: &mut Team, split: Split, episodes: u64) -> Vec<OnlineRow> {
        let mut arena = self.arena(split);
        let mut tests = Vec::new();
        for number in 0..episodes {
            arena.reset(self.episode(split, number));
            arena.keep_latencies();
            let mut sums = Sums::new(self.functions);
            team.play(&mut arena, None, FaultSettings::NONE, |arena| sums.tick(arena));
            tests.push(sums.fared(&arena));
        }
        self.rows(name, &tests)
    }

    /// What `decide` does, which is asked in every tick.
    fn drive(
        &self,
        name: &str,
        (split, episodes): (Split, u64),
        mut begin: impl FnMut(&mut windfall_gym::shared_nodes::SharedWorld),
        mut decide: impl FnMut(&mut windfall_gym::SharedScaling) -> Vec<windfall_gym::moves::Deployment>,
    ) -> Vec<OnlineRow> {
        let settings = self.settings(split);
        let mut tests = Vec::new();
        for number in 0..episodes {
            let start = self.episode(split, number);
            let mut env = windfall_gym::SharedScaling::new(settings.clone(), start);
            begin(env.world_mut());
            env.world_mut().keep_latencies();
            let mut sums = Sums::new(self.functions);
            while !env.is_over() {
                let wanted = decide(&mut env);
                env.step_freely(&wanted);
                for agent in 0..self.functions {
                    let earned = env.world().earned(agent);
                    sums.add(
                        agent,
                        env.paid(agent).total(),
                        earned.preserved,
                        earned.cpu_utilisation,
                    );
                }
            }
            let fared = |agent| env.world().fared(agent);
            tests.push(sums.with((0..self.functions).map(fared).collect()));
        }
        self.rows(name, &tests)
    }

    /// What a rule does. A tower goes on learning from where it is.
    pub fn rule(&self, name: &str, rule: &mut Rule, part: (Split, u64)) -> Vec<OnlineRow> {
        let rule = std::cell::RefCell::new(rule);
        let begin = |world: &mut _| rule.borrow_mut().begin(world);
        self.drive(name, part, begin, |env| rule.borrow_mut().decide(env.world_mut()))
    }

    /// What a rule with these parameters does.
    pub fn rule_with(&self, name: &str, rule: RuleSettings, part: (Split, u64)) -> Vec<OnlineRow> {
        let reward = self.settings(part.0).reward;
        self.rule(name, &mut Rule::new(rule, reward, Seed::new(self.seed)), part)
    }

    /// What allowed moves at random do.
    pub fn random(&self, part: (Split, u64)) -> Vec<OnlineRow> {
        let mut draw = Draw::new(Seed::new(self.seed).stream("shared-random"));
        self.drive(
            "random",
            part,
            |_| {},
            |env| {
                let moves = env.settings().moves.clone();
                let mut allowed = vec![false; moves.count()];
                let mut one = |agent: usize| {
                    env.write_mask(agent, &mut allowed);
                    let now = env.world().deployment(agent);
                    let step = moves.list()[draw.among(&allowed)];
                    step.apply(now, env.world().range()).unwrap_or(now)
                };
                (0..env.agents()).map(&mut one).collect()
            },
        )
    }

    fn rows(&self, name: &str, tests: &[Vec<Tested>]) -> Vec<OnlineRow> {
        let ticks = self.ticks as f64;
        let row = |agent: usize| {
            let mean = |of: &dyn Fn(&Tested) -> f64| {
                statistics::mean(tests.iter().map(|one| of(&one[agent]))).unwrap_or(0.0)
            };
            let profile = &TWELVE[agent % TWELVE.len()];
            OnlineRow {
                policy: name.to_owned(),
                function: profile.name.to_owned(),
                seed: self.seed,
                reward: mean(&|one| one.reward),
                p99_ms: mean(&|one| one.fared.p99_ms),
                slo_ms: profile.slo_ms,
                slo_preserved: mean(&|one| one.preserved / ticks),
                utilisation: mean(&|one| one.utilisation / ticks),
                core_seconds_granted: mean(&|one| one.fared.core_seconds),
                gib_seconds_granted: mean(&|one| one.fared.gib_seconds),
                judged_calls: mean(&|one| one.fared.judged as f64),
                violations: mean(&|one| one.fared.violations as f64),
            }
        };
        (0..self.functions).map(row).collect()
    }
}

/// One function in one episode.
#[derive(Clone, Debug, Default)]
struct Tested {
    reward: f64,
    preserved: f64,
    utilisation: f64,
    fared: Fared,
}

/// Adds up ticks.
struct Sums(Vec<Tested>);

impl Sums {
    fn new(count: usize) -> Self {
        Self(vec![Tested::default(); count])
    }

    fn add(&mut self, agent: usize, reward: f64, preserved: f64, utilisation: f64) {
        let own = &mut self.0[agent];
        own.reward += reward;
        own.preserved += preserved;
        own.utilisation += utilisation;
    }

    fn tick(&mut self, arena: &SharedArena) {
        for agent in 0..self.0.len() {
            let (env, place) = arena.home(agent);
            let earned = env.world().earned(place);
            self.add(agent, arena.reward(agent), earned.preserved, earned.cpu_utilisation);
        }
    }

    fn fared(self, arena: &SharedArena) -> Vec<Tested> {
        let fared = |agent| {
            let (env, place) = arena.home(agent);
            env.world().fared(place)
        };
        let all = (0..self.0.len()).map(fared).collect();
        self.with(all)
    }

    fn with(mut self, fared: Vec<Fared>) -> Vec<Tested> {
        self.0.iter_mut().zip(fared).for_each(|(one, fared)| one.fared = fared);
        self.0
    }
}
