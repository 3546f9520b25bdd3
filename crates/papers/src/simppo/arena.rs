//! What a [`Team`](super::Team) needs of the world that it plays in: `MultiScaling-v0`, or the shared nodes of v1.
//!
//! In [`SharedArena`] all agents share one set of nodes, or each has such a set to itself (`is_isolated`): the same
//! functions, hours, networks and learner either way, so that a difference is the neighbours' doing.

use std::collections::VecDeque;

use windfall_core::Seed;
use windfall_gym::classic::{Driver, Staffed, Steady, goal_of, own_target, target_of};
use windfall_gym::moves::{Deployment, Range};
use windfall_gym::multi::MultiScaling;
use windfall_gym::profile::ServiceProfile;
use windfall_gym::shared_nodes::rules::{Rule, RuleSettings};
use windfall_gym::{SharedScaling, SharedSettings};

/// Numbers of an agent's past.
pub const HISTORY: usize = 4;
/// Ticks that are remembered: two minutes.
const REMEMBERED: usize = 24;

/// A world with agents.
pub trait Arena {
    /// A rule that needs no training.
    type Rule;

    /// One that has seen nothing.
    fn new_rule(&self) -> Self::Rule;
    /// What it would have every function have.
    fn propose(&self, rule: &mut Self::Rule) -> Vec<Deployment>;
    /// Number of agents.
    fn agents(&self) -> usize;
    /// Ticks of an episode.
    fn episode_ticks(&self) -> u64;
    /// Ticks that have passed.
    fn ticks(&self) -> u64;
    /// Whether an agent's function is there.
    fn is_active(&self, agent: usize) -> bool;
    /// What it has.
    fn deployment(&self, agent: usize) -> Deployment;
    /// Which way its instances went last.
    fn turned(&self, agent: usize) -> i32;
    /// Memory below which calls were seen to need more.
    fn memory_floor(&self, agent: usize) -> f64;
    /// Least and most of each knob.
    fn range(&self) -> Range;
    /// Cores of all nodes.
    fn cores(&self) -> f64;
    /// What its calls need.
    fn profile(&self, agent: usize) -> ServiceProfile;
    /// Writes what it sees of itself.
    fn write_row(&self, agent: usize, row: &mut [f32]);
    /// Writes what it may do.
    fn write_mask(&self, agent: usize, allowed: &mut [bool]);
    /// What the last tick paid it.
    fn reward(&self, agent: usize) -> f64;
    /// Carries deployments out and lets a tick pass.
    fn act(&mut self, wanted: &[Deployment]);
    /// Begins another episode.
    fn reset(&mut self, seed: Seed);
    /// Writes what is remembered of its past; a world without memory leaves zeros.
    fn write_history(&self, _: usize, out: &mut [f32]) {
        out.fill(0.0);
    }
    /// Whether the episode is over.
    fn is_over(&self) -> bool {
        self.ticks() >= self.episode_ticks()
    }
}

impl Arena for MultiScaling {
    type Rule = Steady;

    fn new_rule(&self) -> Steady {
        Steady::new(Box::new(Staffed::new()))
    }

    fn propose(&self, rule: &mut Steady) -> Vec<Deployment> {
        let decision = rule.decide(self.world());
        let goal = |agent| goal_of(&own_target(&decision, agent), self.world().deployment(agent));
        (0..self.agents()).map(goal).collect()
    }

    fn agents(&self) -> usize {
        self.agents()
    }

    fn episode_ticks(&self) -> u64 {
        self.settings().ticks
    }

    fn ticks(&self) -> u64 {
        self.world().ticks()
    }

    fn is_active(&self, agent: usize) -> bool {
        self.world().is_active(agent)
    }

    fn deployment(&self, agent: usize) -> Deployment {
        self.world().deployment(agent)
    }

    fn turned(&self, agent: usize) -> i32 {
        self.world().turned(agent)
    }

    fn memory_floor(&self, agent: usize) -> f64 {
        self.world().memory_floor(agent)
    }

    fn range(&self) -> Range {
        self.world().settings().range
    }

    fn cores(&self) -> f64 {
        f64::from(self.world().settings().nodes) * self.world().settings().node.cpu.cores()
    }

    fn profile(&self, agent: usize) -> ServiceProfile {
        self.world().setup(agent).profile
    }

    fn write_row(&self, agent: usize, row: &mut [f32]) {
        self.write_row(agent, row);
    }

    fn write_mask(&self, agent: usize, allowed: &mut [bool]) {
        self.write_mask(agent, allowed);
    }

    fn reward(&self, agent: usize) -> f64 {
        if self.world().is_active(agent) {
            self.settings().reward.pay(&self.world().earned(agent)).total()
        } else {
            0.0
        }
    }

    fn act(&mut self, wanted: &[Deployment]) {
        let targets = wanted.iter().enumerate().map(|(agent, &it)| target_of(agent, it)).collect();
        self.step_freely(&windfall_core::Decision { targets, ..Default::default() });
    }

    fn reset(&mut self, seed: Seed) {
        self.reset(seed);
    }
}

/// What is remembered of one agent.
#[derive(Clone, Debug, Default)]
struct Past {
    rates: VecDeque<f64>,
    preserved: f64,
}

/// `MultiScaling-v1`, shared or each agent alone.
pub struct SharedArena {
    worlds: Vec<SharedScaling>,
    /// World and place of every agent.
    places: Vec<(usize, usize)>,
    rule: RuleSettings,
    pasts: Vec<Past>,
}

impl SharedArena {
    /// An arena at the beginning of the episode `seed`, with the rule that residual learners correct.
    pub fn new(
        settings: &SharedSettings,
        is_isolated: bool,
        rule: RuleSettings,
        seed: Seed,
    ) -> Self {
        let parts: Vec<SharedSettings> = if is_isolated {
            settings.functions.iter().map(|&number| settings.alone(number)).collect()
        } else {
            vec![settings.clone()]
        };
        let place = |agent| if is_isolated { (agent, 0) } else { (0, agent) };
        Self {
            worlds: parts.into_iter().map(|part| SharedScaling::new(part, seed)).collect(),
            places: (0..settings.functions.len()).map(place).collect(),
            rule,
            pasts: vec![Past::default(); settings.functions.len()],
        }
    }

    /// The world of `agent` and its place there.
    pub fn home(&self, agent: usize) -> (&SharedScaling, usize) {
        let (world, place) = self.places[agent];
        (&self.worlds[world], place)
    }

    /// From now on latencies are kept.
    pub fn keep_latencies(&mut self) {
        self.worlds.iter_mut().for_each(|one| one.world_mut().keep_latencies());
    }

    fn remember(&mut self) {
        for agent in 0..self.places.len() {
            let (env, place) = self.home(agent);
            let (rate, preserved) =
                (env.world().rates(place).now, env.world().earned(place).preserved);
            let past = &mut self.pasts[agent];
            past.rates.push_back(rate);
            if past.rates.len() > REMEMBERED {
                past.rates.pop_front();
            }
            past.preserved += 0.1 * (preserved - past.preserved);
        }
    }
}

impl Arena for SharedArena {
    type Rule = Vec<Rule>;

    fn new_rule(&self) -> Vec<Rule> {
        let make = |env: &SharedScaling| {
            let mut rule = Rule::new(self.rule, env.settings().reward, Seed::new(0));
            rule.expect_functions(env.agents());
            rule
        };
        self.worlds.iter().map(make).collect()
    }

    fn propose(&self, rule: &mut Vec<Rule>) -> Vec<Deployment> {
        let parts = self.worlds.iter().zip(rule);
        parts.flat_map(|(env, rule)| rule.propose(env.world())).collect()
    }

    fn agents(&self) -> usize {
        self.places.len()
    }

    fn episode_ticks(&self) -> u64 {
        self.worlds[0].settings().ticks
    }

    fn ticks(&self) -> u64 {
        self.worlds[0].world().ticks()
    }

    fn is_active(&self, agent: usize) -> bool {
        let (env, place) = self.home(agent);
        env.world().is_active(place)
    }

    fn deployment(&self, agent: usize) -> Deployment {
        let (env, place) = self.home(agent);
        env.world().deployment(place)
    }

    fn turned(&self, agent: usize) -> i32 {
        let (env, place) = self.home(agent);
        env.world().turned(place)
    }

    fn memory_floor(&self, agent: usize) -> f64 {
        let (env, place) = self.home(agent);
        env.world().memory_floor(place)
    }

    fn range(&self) -> Range {
        self.worlds[0].world().range()
    }

    fn cores(&self) -> f64 {
        self.worlds[0].world().cores()
    }

    fn profile(&self, agent: usize) -> ServiceProfile {
        let (env, place) = self.home(agent);
        env.world().profile(place)
    }

    fn write_row(&self, agent: usize, row: &mut [f32]) {
        let (env, place) = self.home(agent);
        env.write_row(place, row);
    }

    fn write_mask(&self, agent: usize, allowed: &mut [bool]) {
        let (env, place) = self.home(agent);
        env.write_mask(place, allowed);
    }

    fn reward(&self, agent: usize) -> f64 {
        let (env, place) = self.home(agent);
        env.paid(place).total()
    }

    fn act(&mut self, wanted: &[Deployment]) {
        let mut rest = wanted;
        for env in &mut self.worlds {
            let (own, others) = rest.split_at(env.agents());
            env.step_freely(own);
            rest = others;
        }
        self.remember();
    }

    fn reset(&mut self, seed: Seed) {
        self.worlds.iter_mut().for_each(|env| env.reset(seed));
        self.pasts.fill(Past::default());
    }

    /// How the rate compares with the mean and the highest of two minutes, calls waiting per instance, and SLO
    /// preservation over the last minute.
    fn write_history(&self, agent: usize, out: &mut [f32]) {
        let (env, place) = self.home(agent);
        let past = &self.pasts[agent];
        let mean = past.rates.iter().sum::<f64>() / past.rates.len().max(1) as f64;
        let highest = past.rates.iter().copied().fold(0.0, f64::max);
        let view = &env.world().seen().functions[place];
        let over = |value: f64, of: f64| if of > 0.0 { value / of } else { 0.0 };
        let waiting = f64::from(view.queued) / env.world().standing(place).max(1) as f64;
        let now = env.world().rates(place).now;
        let numbers =
            [over(now, mean).min(4.0), over(now, highest), waiting.min(10.0), past.preserved];
        for (out, value) in out.iter_mut().zip(numbers) {
            *out = value as f32;
        }
    }
}
