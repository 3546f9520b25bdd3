//! `windfall/MultiScaling-v0`: functions on shared nodes, one agent each.
//!
//! Every agent sees its own function (seven numbers), makes one move per tick, and is paid for its own function.
//! What the others do reaches it through shared cores, shared room, and whatever its learner observes of them.
//! Functions can join, leave and change while the world runs; an absent function has no agent.

use windfall_core::{Decision, Seed};
use windfall_rl::Split;

use crate::moves::{Deployment, Moves, Range};
use crate::pattern::Patterns;
use crate::profile::TWELVE;
use crate::reward::{Earned, Paid, RewardSettings};
use crate::scaling::{change, target_of};
use crate::traffic::FunctionSetup;
use crate::world::{Rates, World, WorldSettings};

/// Name and version.
pub const ID: &str = "windfall/MultiScaling-v0";

/// What an agent sees of its function.
pub const FEATURES: [&str; 7] = [
    "slo_preservation",
    "cpu_utilisation",
    "memory_utilisation",
    "arrival_change",
    "cpu_limit",
    "memory_limit",
    "instances",
];

/// What the seven [`FEATURES`] are made of.
#[derive(Clone, Copy, Debug)]
pub struct FunctionRow {
    /// What the last tick is paid for.
    pub earned: Earned,
    /// What the function has.
    pub deployment: Deployment,
    /// Least and most of each knob.
    pub range: Range,
    /// How often it was called lately.
    pub rates: Rates,
}

impl FunctionRow {
    /// Writes them.
    pub fn write(&self, row: &mut [f32]) {
        let Self { earned, deployment, range, rates } = self;
        let values = [
            earned.preserved,
            earned.cpu_utilisation,
            earned.memory_utilisation,
            change(rates.now, rates.before),
            f64::from(deployment.cpu) / f64::from(range.cpu.1),
            f64::from(deployment.memory) / f64::from(range.memory.1),
            f64::from(deployment.instances) / f64::from(range.instances.1),
        ];
        for (out, value) in row.iter_mut().zip(values) {
            *out = value as f32;
        }
    }
}

/// Settings of [`MultiScaling`].
#[derive(Clone, Debug)]
pub struct MultiSettings {
    /// What may be seen.
    pub split: Split,
    /// The functions, by number: number `k` is always the same function ([`function`]).
    pub functions: Vec<u64>,
    /// Mean load of the cluster's cores.
    pub load: f64,
    /// Nodes; as many as the load says if nothing is said.
    pub nodes: Option<u32>,
    /// Ticks of an episode.
    pub ticks: u64,
    /// What agents can do.
    pub moves: Moves,
    /// What a tick pays.
    pub reward: RewardSettings,
    /// Decides which functions the numbers mean.
    pub seed: Seed,
    /// Whether drivers observe single calls.
    pub tells_presence: bool,
}

impl MultiSettings {
    /// The first `count` functions of `seed`, everything else as usual.
    pub fn new(count: usize, seed: Seed) -> Self {
        Self {
            split: Split::Training,
            functions: (0..count as u64).collect(),
            load: 0.6,
            nodes: None,
            ticks: 200,
            moves: Moves::paper(),
            reward: RewardSettings { memory_counts: true, ..RewardSettings::default() },
            seed,
            tells_presence: false,
        }
    }
}

/// Function number `k` of `seed`: one of the twelve in turn, with a mean load and a pattern of its own, from
/// a minute that the episode decides.
pub fn function(seed: Seed, number: u64, split: Split, episode: Seed) -> FunctionSetup {
    let own = seed.stream("multi-functions").member(number);
    let mut draw = windfall_rl::random::Draw::new(own);
    let instances = 0.6 + 1.8 * draw.unit();
    let index = draw.below(1 << 20) as u64;
    let minute = episode.stream("minutes").member(number).get() >> 1;
    let pattern = Patterns::generated().pick(split, index, minute);
    let profile = TWELVE[(number % TWELVE.len() as u64) as usize];
    FunctionSetup::busy(profile, pattern, instances)
}

/// What a tick brought one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AgentStep {
    /// Its reward, term by term.
    pub paid: Paid,
    /// The move that was carried out, which the safeguards may have changed.
    pub done: usize,
    /// Whether the move it chose was not allowed; it then held.
    pub is_illegal: bool,
}

/// The environment.
pub struct MultiScaling {
    settings: MultiSettings,
    world: World,
    steps: Vec<AgentStep>,
}

impl MultiScaling {
    /// An environment at the beginning of the episode `seed`.
    pub fn new(settings: MultiSettings, seed: Seed) -> Self {
        let world = make_world(&settings, seed);
        let steps = vec![AgentStep::default(); settings.functions.len()];
        Self { settings, world, steps }
    }

    /// Begins another episode.
    pub fn reset(&mut self, seed: Seed) {
        self.world = make_world(&self.settings, seed);
        self.steps.fill(AgentStep::default());
    }

    /// From the next episode on, the cluster is sized for another mean load of its cores.
    pub fn set_load(&mut self, load: f64) {
        self.settings.load = load;
    }

    /// Number of agents, absent ones included.
    pub fn agents(&self) -> usize {
        self.world.count()
    }

    /// Its settings.
    pub fn settings(&self) -> &MultiSettings {
        &self.settings
    }

    /// The world inside.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world inside, to change it.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Whether the episode is over.
    pub fn is_over(&self) -> bool {
        self.world.ticks() >= self.settings.ticks
    }

    /// Writes what `agent` sees; zeros if its function is absent.
    pub fn write_row(&self, agent: usize, row: &mut [f32]) {
        if !self.world.is_active(agent) {
            return row.fill(0.0);
        }
        let function = FunctionRow {
            earned: self.world.earned(agent),
            deployment: self.world.deployment(agent),
            range: self.world.settings().range,
            rates: self.world.rates(agent),
        };
        function.write(row);
    }

    /// Writes which moves `agent` may make. Turning back at once is not among them: the row does not say
    /// which way the last move went, so that its price could not be learned. Neither is a memory limit below
    /// what calls were seen with ([`World::memory_floor`]).
    pub fn write_mask(&self, agent: usize, allowed: &mut [bool]) {
        let range = self.world.settings().range;
        let (deployment, room) = (self.world.deployment(agent), self.world.room());
        self.settings.moves.write_allowed(deployment, range, room, allowed);
        let (turned, floor) = (self.world.turned(agent), self.world.memory_floor(agent));
        for (step, allowed) in self.settings.moves.list().iter().zip(allowed) {
            *allowed &= step.instances * turned >= 0 && step.keeps_memory(deployment, floor);
        }
    }

    /// Lets every present agent move (nothing for those that have no decision: they hold) and one tick pass.
    pub fn step(&mut self, chosen: &[Option<usize>]) -> &[AgentStep] {
        let range = self.world.settings().range;
        let mut allowed = vec![false; self.settings.moves.count()];
        let mut decision = Decision::default();
        let before: Vec<Deployment> =
            (0..self.agents()).map(|agent| self.world.deployment(agent)).collect();
        for (agent, choice) in chosen.iter().enumerate() {
            self.steps[agent].is_illegal = false;
            let Some(place) = *choice else { continue };
            if !self.world.is_active(agent) {
                continue;
            }
            self.write_mask(agent, &mut allowed);
            if !allowed.get(place).copied().unwrap_or(false) {
                self.steps[agent].is_illegal = true;
                continue;
            }
            let step = self.settings.moves.list()[place];
            let deployment = step.apply(before[agent], range).unwrap_or(before[agent]);
            decision.targets.push(target_of(agent, deployment));
        }
        self.step_freely(&decision);
        for (agent, before) in before.into_iter().enumerate() {
            let after = self.world.deployment(agent);
            self.steps[agent].done = self.settings.moves.between(before, after, range);
        }
        &self.steps
    }

    /// Lets one tick pass with any decision: the way of policies that know no moves.
    pub fn step_freely(&mut self, decision: &Decision) -> &[AgentStep] {
        self.world.act(decision);
        for (agent, step) in self.steps.iter_mut().enumerate() {
            step.paid = if self.world.is_active(agent) {
                self.settings.reward.pay(&self.world.earned(agent))
            } else {
                Paid::default()
            };
        }
        &self.steps
    }
}

/// The world of an episode. Nodes are sized for the mean load, so that an episode's own hours load
/// them more or less than that.
fn make_world(settings: &MultiSettings, episode: Seed) -> World {
    let make = |&number: &u64| function(settings.seed, number, settings.split, episode);
    let setups: Vec<FunctionSetup> = settings.functions.iter().map(make).collect();
    let range = Range { instances: (1, 10), ..Range::default() };
    let tells_presence = settings.tells_presence;
    let world = WorldSettings { range, tells_presence, ..WorldSettings::default() };
    let world = match settings.nodes {
        Some(nodes) => WorldSettings { nodes, ..world },
        None => world.sized_for(&setups, settings.load),
    };
    World::new(world, setups, episode.stream("world"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(count: usize) -> MultiScaling {
        MultiScaling::new(MultiSettings::new(count, Seed::new(1)), Seed::new(2))
    }

    #[test]
    fn the_same_seed_gives_the_same_episode() {
        let play = || {
            let mut env = env(5);
            let mut rows = Vec::new();
            for tick in 0..30 {
                let moves: Vec<Option<usize>> = (0..5).map(|a| Some((a + tick) % 7)).collect();
                env.step(&moves);
                for agent in 0..5 {
                    let mut row = [0.0; 7];
                    env.write_row(agent, &mut row);
                    rows.extend(row);
                }
            }
            rows
        };
        assert_eq!(play(), play());
    }

    #[test]
    fn moves_have_their_effect_and_illegal_ones_none() {
        let mut env = env(2);
        let before = env.world().deployment(0);
        let steps = env.step(&[Some(1), None]).to_vec();
        assert_eq!(env.world().deployment(0).instances, before.instances + 1);
        assert_eq!((steps[0].done, steps[1].done), (1, 0));
        for _ in 0..20 {
            env.step(&[Some(2), Some(0)]);
        }
        assert_eq!(env.world().deployment(0).instances, 1);
        assert!(env.step(&[Some(2), Some(0)])[0].is_illegal);
    }

    #[test]
    fn memory_is_never_taken_that_a_call_was_seen_with() {
        let mut env = env(12);
        env.world_mut().keep_latencies();
        let less = Moves::paper().names().iter().position(|name| name == "memory-down");
        for _ in 0..60 {
            env.step(&[less; 12]);
        }
        for agent in 0..12 {
            let deployment = env.world().deployment(agent);
            let profile = env.world().setup(agent).profile;
            assert!(deployment.memory > profile.memory_mib, "{}: {deployment:?}", profile.name);
        }
        assert!((0..12).any(|agent| {
            env.world().deployment(agent).memory < env.world().setup(agent).profile.reserved_mib
        }));
    }

    #[test]
    fn functions_join_leave_and_change() {
        let mut env = env(3);
        env.world_mut().leave(1);
        for _ in 0..10 {
            env.step(&[Some(0); 3]);
        }
        let mut row = [1.0; 7];
        env.write_row(1, &mut row);
        assert_eq!(row, [0.0; 7]);
        assert_eq!(env.world().standing(1), 0);
        env.world_mut().join(1);
        env.world_mut().replace(2, TWELVE[10], 2.0);
        let mut rates = 0.0;
        for _ in 0..60 {
            env.step(&[Some(0); 3]);
            rates += env.world().rates(1).now;
        }
        assert_eq!(env.world().standing(1), 2);
        assert!(rates > 0.0, "calls come again");
    }
}
