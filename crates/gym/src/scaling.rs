//! `windfall/Scaling-v0`: one function is scaled, its neighbours follow a rule.
//!
//! State and actions are those of the ECE 471 course, but here they have effect: a larger share makes calls
//! faster up to their parallelism, neighbours take CPU away, a new instance starts cold, and the load changes
//! by the minute. An episode is 200 ticks of 5 s of one function, drawn with its load and its
//! neighbours from the part for training, validation or test ([`Split`]).

use windfall_core::{Decision, FunctionId, Policy, Seed, Setting, Target};
use windfall_policy::{Queueing, QueueingSettings};
use windfall_rl::random::Draw;
use windfall_rl::{End, Environment, Spec, Split, Step};

use crate::moves::{Deployment, Moves, Range};
use crate::pattern::Patterns;
use crate::profile::TWELVE;
use crate::reward::{Paid, RewardSettings};
use crate::traffic::FunctionSetup;
use crate::world::Rates;
use crate::world::{World, WorldSettings};

/// Name and version.
pub const ID: &str = "windfall/Scaling-v0";

/// Settings of [`Scaling`].
#[derive(Clone, Debug)]
pub struct ScalingSettings {
    /// What may be seen.
    pub split: Split,
    /// Functions on the cluster: the one that is scaled and its neighbours.
    pub functions: usize,
    /// Mean load of the cluster's cores.
    pub load: f64,
    /// Ticks of an episode.
    pub ticks: u64,
    /// What a tick pays.
    pub reward: RewardSettings,
    /// Where load comes from; the generator if nothing is said.
    pub patterns: Option<Patterns>,
}

impl Default for ScalingSettings {
    fn default() -> Self {
        Self {
            split: Split::Training,
            functions: 4,
            load: 0.6,
            ticks: 200,
            reward: RewardSettings::default(),
            patterns: None,
        }
    }
}

/// The environment.
pub struct Scaling {
    settings: ScalingSettings,
    spec: Spec,
    moves: Moves,
    world: World,
    neighbours: Queueing,
    paid: Paid,
}

impl Scaling {
    /// An environment whose first episode has not begun.
    pub fn new(settings: ScalingSettings) -> Self {
        let moves = Moves::course();
        let names = moves.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let world = draw_world(&settings, Seed::new(0));
        let spec = Spec::new(
            ID,
            &[
                ("cpu_utilisation", 0.0, 1.0),
                ("slo_preservation", 0.0, 1.0),
                ("own_cpu_limit", 0.0, 1.0),
                ("others_share", 0.0, 4.0),
                ("instances", 0.0, 1.0),
                ("arrival_rate", 0.0, 8.0),
                ("arrival_change", -1.0, 1.0),
            ],
            &names,
        );
        let neighbours = Queueing::new(QueueingSettings::default());
        Self { settings, spec, moves, world, neighbours, paid: Paid::default() }
    }

    /// The world inside, for policies that decide on all of it.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world inside, to measure it.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// What the last tick paid, term by term.
    pub fn paid(&self) -> Paid {
        self.paid
    }

    /// Lets one tick pass with any deployment of the function, for policies that are not limited to moves.
    pub fn step_freely(&mut self, own: Target, observation: &mut [f32]) -> Step {
        let mut decision = self.neighbours.decide(self.world.seen()).unwrap_or_default();
        let least = f64::from(self.world.settings().range.instances.0.max(1));
        for target in &mut decision.targets {
            if let Setting::Set(instances) = &mut target.instances {
                *instances = instances.max(least);
            }
        }
        decision.targets.retain(|target| target.function != FunctionId(0));
        decision.targets.push(own);
        self.world.act(&decision);
        self.paid = self.settings.reward.pay(&self.world.earned(0));
        self.write_row(observation);
        let is_over = self.world.ticks() >= self.settings.ticks;
        let end = if is_over { End::Truncated } else { End::Continues };
        Step { reward: self.paid.total() as f32, end }
    }

    fn write_row(&self, row: &mut [f32]) {
        let world = &self.world;
        let (earned, deployment, range) =
            (world.earned(0), world.deployment(0), world.settings().range);
        let cores = world.settings().node.cpu.cores() * f64::from(world.settings().nodes);
        let own = f64::from(deployment.instances * deployment.cpu);
        let others: u32 =
            (1..world.count()).map(|i| world.deployment(i)).map(|w| w.instances * w.cpu).sum();
        let Rates { now: rate, before } = world.rates(0);
        let values = [
            earned.cpu_utilisation,
            earned.preserved,
            own / f64::from(range.instances.1 * range.cpu.1),
            (f64::from(others) * 1e-3 / cores).min(4.0),
            f64::from(world.standing(0)) / f64::from(range.instances.1),
            (rate / 10.0).min(8.0),
            change(rate, before),
        ];
        for (out, value) in row.iter_mut().zip(values) {
            *out = value as f32;
        }
        row[4] = row[4].min(1.0);
    }
}

/// How a rate changed, from -1 (gone) over 0 (the same) to 1 (came from nothing).
pub(crate) fn change(rate: f64, before: f64) -> f64 {
    if rate + before > 0.0 { (rate - before) / (rate + before) } else { 0.0 }
}

/// A target that leads `function` to `deployment`.
pub fn target_of(function: usize, deployment: Deployment) -> Target {
    Target {
        instances: Setting::Set(f64::from(deployment.instances)),
        cpu_cores: Setting::Set(f64::from(deployment.cpu) * 1e-3),
        memory_mib: Setting::Set(f64::from(deployment.memory)),
        ..Target::keep(FunctionId(function as u32))
    }
}

/// Functions of the split with loads of their own, on as many nodes as they need.
fn draw_world(settings: &ScalingSettings, seed: Seed) -> World {
    let mut draw = Draw::new(seed.stream("functions"));
    let patterns = settings.patterns.as_ref().unwrap_or(Patterns::generated());
    let profiles = match settings.split {
        Split::Training => &TWELVE[..6],
        Split::Validation => &TWELVE[6..8],
        Split::Test => &TWELVE[8..],
    };
    let mut setups = Vec::with_capacity(settings.functions);
    for _ in 0..settings.functions.max(1) {
        let profile = profiles[draw.below(profiles.len())];
        let (index, minute) = (draw.below(1 << 20) as u64, draw.below(1 << 20) as u64);
        let pattern = patterns.pick(settings.split, index, minute);
        setups.push(FunctionSetup::busy(profile, pattern, 0.6 + 1.8 * draw.unit()));
    }
    let range = Range { instances: (0, 10), ..Range::default() };
    let world = WorldSettings { range, ..WorldSettings::default() };
    // A function alone has a whole node.
    let world = if setups.len() > 1 { world.sized_for(&setups, settings.load) } else { world };
    World::new(world, setups, seed.stream("world"))
}

impl Environment for Scaling {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: Seed, observation: &mut [f32]) {
        self.world = draw_world(&self.settings, seed);
        self.neighbours = Queueing::new(QueueingSettings::default());
        self.paid = Paid::default();
        self.write_row(observation);
    }

    /// A move that is not allowed pays -1 and changes nothing, as in the course.
    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        let deployment = self.world.deployment(0);
        let mut allowed = vec![false; self.moves.count()];
        let range = self.world.settings().range;
        self.moves.write_allowed(deployment, range, self.world.room(), &mut allowed);
        let is_legal = allowed.get(action).copied().unwrap_or(false);
        let new = self.moves.list().get(action).and_then(|step| step.apply(deployment, range));
        let new = if is_legal { new.unwrap_or(deployment) } else { deployment };
        let mut step = self.step_freely(target_of(0, new), observation);
        if !is_legal {
            step.reward = -1.0;
        }
        step
    }

    fn info(&self) -> Vec<(&'static str, f64)> {
        let view = &self.world.seen().functions[0];
        vec![
            ("latency_ms", self.world.service_level(0).latency_ms),
            ("waiting", f64::from(view.queued)),
            ("cold_starts", f64::from(view.cold_starts)),
            ("core_seconds", self.world.core_seconds(0)),
            ("reward_slo", self.paid.slo),
            ("reward_utilisation", self.paid.utilisation),
            ("reward_no_instances", self.paid.no_instances),
            ("reward_reversal", self.paid.reversal),
        ]
    }

    /// Turning back at once is legal and pays -1; the row does not say which way the last move went, so the
    /// mask does.
    fn mask(&self, allowed: &mut [bool]) {
        let range = self.world.settings().range;
        self.moves.write_allowed(self.world.deployment(0), range, self.world.room(), allowed);
        for (step, allowed) in self.moves.list().iter().zip(allowed) {
            *allowed &= step.instances * self.world.turned(0) >= 0;
        }
    }
}

/// The decision of one function out of a policy's for all.
pub fn own_target(decision: &Decision, function: usize) -> Target {
    let id = FunctionId(function as u32);
    let found = decision.targets.iter().find(|target| target.function == id);
    found.cloned().unwrap_or_else(|| Target::keep(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_rl::env::check_environment;

    fn play(action: impl Fn(u64) -> usize, seed: u64) -> (f64, Vec<f32>) {
        let mut env = Scaling::new(ScalingSettings::default());
        let mut row = [0.0; 7];
        env.reset(Seed::new(seed), &mut row);
        let (mut total, mut used) = (0.0, Vec::new());
        for tick in 0..40 {
            let step = env.step(action(tick), &mut row);
            total += f64::from(step.reward);
            used.push(row[0]);
        }
        (total, used)
    }

    #[test]
    fn the_contract_is_kept() {
        check_environment(|| Scaling::new(ScalingSettings::default()), 250);
    }

    #[test]
    fn vertical_scaling_has_an_effect() {
        // Half the CPU per instance: what is held is used more.
        let (_, kept) = play(|_| 0, 5);
        let (_, smaller) = play(|tick| if tick < 4 { 4 } else { 0 }, 5);
        let late = |used: &[f32]| used[20..].iter().sum::<f32>();
        assert!(late(&smaller) > 1.2 * late(&kept), "{} {}", late(&smaller), late(&kept));
    }

    #[test]
    fn one_function_alone_has_no_neighbours() {
        let mut env = Scaling::new(ScalingSettings { functions: 1, ..ScalingSettings::default() });
        let mut row = [0.0; 7];
        env.reset(Seed::new(1), &mut row);
        env.step(1, &mut row);
        assert_eq!(row[3], 0.0);
        assert_eq!(env.world().deployment(0).instances, 3);
    }

    #[test]
    fn flapping_costs() {
        let (calm, _) = play(|_| 0, 3);
        let (flaps, _) = play(|tick| 1 + (tick % 2) as usize, 3);
        assert!(flaps < calm - 30.0, "{flaps} {calm}");
    }
}
