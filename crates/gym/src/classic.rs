//! Policies that need no training, in the same world and at the same pay.
//!
//! | name | rule |
//! | --- | --- |
//! | `fixed` | always four instances of the user's size |
//! | `hpa` | instances to keep CPU at 70 % of what they hold, with a tolerance of 10 % |
//! | `queueing` | M/M/c staffing one cold start ahead (`windfall-policy`) |
//! | `ensure` | square-root staffing, and CPU by latency: a step up 10 % above the best seen, a step down when the cluster is full |
//! | `windfall-scaling` | instances by the hazard of their next use and the price of memory (`windfall-policy`), never none; in a world whose observations list single calls |
//! | `random` | any allowed move |
//! | `oracle` | the best of all sizes for the load that comes ([`crate::oracle`]) |
//!
//! A policy may decide on any number; [`Stepwise`] makes it take one published move per tick towards it, which is
//! what a learner with these moves can do. None turns back at once ([`Steady`]).

use std::collections::BTreeMap;

use windfall_core::{Decision, FunctionId, FunctionView, Policy, Seed, Setting, Target};
use windfall_policy::{EnsureScaling, Queueing, QueueingSettings, WindfallScaling};
use windfall_rl::random::Draw;

use crate::moves::{CPU_STEP, Deployment, Moves};
use crate::oracle::best_deployment;
use crate::reward::RewardSettings;
pub use crate::scaling::{own_target, target_of};
use crate::world::World;

/// Decides on a whole world.
pub trait Driver: Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;
    /// What it decides.
    fn decide(&mut self, world: &World) -> Decision;
}

/// Names of the drivers that [`driver`] knows, in the order of reports.
pub const NAMES: [&str; 7] =
    ["fixed", "hpa", "queueing", "ensure", "windfall-scaling", "random", "oracle"];

/// The driver called `name`; nothing for other names.
pub fn driver(
    name: &str,
    moves: &Moves,
    reward: RewardSettings,
    seed: Seed,
) -> Option<Box<dyn Driver>> {
    let driver: Box<dyn Driver> = match name {
        "fixed" => Box::new(Fixed),
        "hpa" => Box::new(Hpa { target: 0.7, tolerance: 0.1 }),
        "queueing" => Box::new(Staffed::new()),
        "ensure" => Box::new(Ensure::default()),
        "windfall-scaling" => Box::new(Priced { policy: WindfallScaling::default() }),
        "random" => {
            Box::new(Random { moves: moves.clone(), draw: Draw::new(seed.stream("random")) })
        }
        "oracle" => Box::new(Oracle { reward }),
        _ => return None,
    };
    Some(if name == "random" { driver } else { Box::new(Steady::new(driver)) })
}

/// Four instances, whatever happens: the course's first state, held.
struct Fixed;

impl Driver for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decide(&mut self, world: &World) -> Decision {
        let present = (0..world.count()).filter(|&index| world.is_active(index));
        let four = |index: usize| Target {
            instances: Setting::Set(4.0),
            ..Target::keep(FunctionId(index as u32))
        };
        Decision { targets: present.map(four).collect(), ..Decision::default() }
    }
}

/// The HorizontalPodAutoscaler's ratio rule: `ceil(n x utilisation / target)`.
///
/// Four instances at 90 % with a target of 70 %: ceil(4 x 0.9 / 0.7) = 6.
struct Hpa {
    target: f64,
    tolerance: f64,
}

impl Driver for Hpa {
    fn name(&self) -> &'static str {
        "hpa"
    }

    fn decide(&mut self, world: &World) -> Decision {
        let mut decision = Decision::default();
        for index in (0..world.count()).filter(|&index| world.is_active(index)) {
            let standing = f64::from(world.standing(index));
            let ratio = world.earned(index).cpu_utilisation / self.target;
            let proposed =
                if (ratio - 1.0).abs() <= self.tolerance { standing } else { standing * ratio };
            decision.targets.push(Target {
                instances: Setting::Set(proposed.ceil().max(1.0)),
                ..Target::keep(FunctionId(index as u32))
            });
        }
        decision
    }
}

/// Staffing by Erlang's formula, never to zero.
pub struct Staffed {
    policy: Queueing,
}

impl Staffed {
    /// One that has seen nothing yet.
    pub fn new() -> Self {
        Self { policy: Queueing::new(QueueingSettings::default()) }
    }
}

impl Default for Staffed {
    fn default() -> Self {
        Self::new()
    }
}

impl Driver for Staffed {
    fn name(&self) -> &'static str {
        "queueing"
    }

    fn decide(&mut self, world: &World) -> Decision {
        let decision = self.policy.decide(world.seen()).unwrap_or_default();
        at_least_one(decision, world)
    }
}

/// Our own rule, with the parameters it was given elsewhere: nothing of it was fitted to this world.
struct Priced {
    policy: WindfallScaling,
}

impl Driver for Priced {
    fn name(&self) -> &'static str {
        "windfall-scaling"
    }

    fn decide(&mut self, world: &World) -> Decision {
        let decision = self.policy.decide(world.seen()).unwrap_or_default();
        at_least_one(decision, world)
    }
}

fn at_least_one(mut decision: Decision, world: &World) -> Decision {
    decision.targets.retain(|target| world.is_active(target.function.index()));
    for target in &mut decision.targets {
        if let Setting::Set(instances) = &mut target.instances {
            *instances = instances.max(1.0);
        }
    }
    decision
}

/// Both halves of ENSURE, by ticks.
#[derive(Default)]
struct Ensure {
    scaling: EnsureScaling,
    /// The fastest mean run seen of each function, seconds.
    best: BTreeMap<FunctionId, f64>,
}

impl Ensure {
    /// Latency regulation: slower than 1.10 times the best seen is answered with a step of CPU, of two steps
    /// where runs are short; a cluster without spare CPU takes one step back.
    fn cpu(&mut self, view: &FunctionView, is_full: bool) -> Setting<f64> {
        let Some(run) = view.mean_run.map(|run| run.as_secs_f64()) else { return Setting::Keep };
        let best = self.best.entry(view.function).or_insert(run);
        *best = best.min(run);
        let step = f64::from(if run > 5.0 { CPU_STEP } else { 2 * CPU_STEP }) * 1e-3;
        let now = view.allocation.cpu.cores();
        if is_full {
            Setting::Set((now - step).max(f64::from(CPU_STEP) * 1e-3))
        } else if run >= 1.10 * *best {
            Setting::Set(now + step)
        } else {
            Setting::Keep
        }
    }
}

impl Driver for Ensure {
    fn name(&self) -> &'static str {
        "ensure"
    }

    fn decide(&mut self, world: &World) -> Decision {
        let seen = world.seen();
        let decision = self.scaling.decide(seen).unwrap_or_default();
        let mut decision = at_least_one(decision, world);
        let is_full = world.room().0 < i64::from(2 * CPU_STEP);
        for target in &mut decision.targets {
            if let Some(view) = seen.function(target.function) {
                target.cpu_cores = self.cpu(view, is_full);
            }
        }
        decision
    }
}

/// Any allowed move.
struct Random {
    moves: Moves,
    draw: Draw,
}

impl Driver for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn decide(&mut self, world: &World) -> Decision {
        let mut decision = Decision::default();
        let range = world.settings().range;
        let mut allowed = vec![false; self.moves.count()];
        for index in (0..world.count()).filter(|&index| world.is_active(index)) {
            let deployment = world.deployment(index);
            self.moves.write_allowed(deployment, range, world.room(), &mut allowed);
            let open: Vec<usize> = (0..allowed.len()).filter(|&place| allowed[place]).collect();
            let step = self.moves.list()[open[self.draw.below(open.len())]];
            decision
                .targets
                .push(target_of(index, step.apply(deployment, range).unwrap_or(deployment)));
        }
        decision
    }
}

/// Knows what comes.
struct Oracle {
    reward: RewardSettings,
}

impl Driver for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn decide(&mut self, world: &World) -> Decision {
        let mut decision = Decision::default();
        let (now, tick) = (world.seen().now, world.settings().tick);
        for index in (0..world.count()).filter(|&index| world.is_active(index)) {
            let queued = world.seen().functions[index].queued;
            let setup = world.setup(index);
            let moment = (now, tick, queued);
            let deployment = best_deployment(&setup, moment, world.settings().range, &self.reward);
            decision.targets.push(target_of(index, deployment));
        }
        decision
    }
}

/// A driver whose numbers of instances never turn back at once: it holds for a tick first. The reward's
/// rule on reversals is not known to these policies, and the comparison is not to be about it.
pub struct Steady {
    inner: Box<dyn Driver>,
}

impl Steady {
    /// `inner` without reversals.
    pub fn new(inner: Box<dyn Driver>) -> Self {
        Self { inner }
    }
}

impl Driver for Steady {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn decide(&mut self, world: &World) -> Decision {
        let mut decision = self.inner.decide(world);
        for target in &mut decision.targets {
            let index = target.function.index();
            let now = f64::from(world.deployment(index).instances);
            let turned = f64::from(world.turned(index));
            if target.instances.value().is_some_and(|proposed| (proposed - now) * turned < 0.0) {
                target.instances = Setting::Keep;
            }
        }
        decision
    }
}

/// A driver that takes one move per tick towards what another driver decides.
pub struct Stepwise {
    inner: Box<dyn Driver>,
    moves: Moves,
}

impl Stepwise {
    /// `inner` in these moves.
    pub fn new(inner: Box<dyn Driver>, moves: Moves) -> Self {
        Self { inner, moves }
    }
}

impl Driver for Stepwise {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn decide(&mut self, world: &World) -> Decision {
        let proposed = self.inner.decide(world);
        let range = world.settings().range;
        let mut allowed = vec![false; self.moves.count()];
        let mut decision = Decision::default();
        for index in (0..world.count()).filter(|&index| world.is_active(index)) {
            let deployment = world.deployment(index);
            self.moves.write_allowed(deployment, range, world.room(), &mut allowed);
            for (step, allowed) in self.moves.list().iter().zip(&mut allowed) {
                *allowed &= step.instances * world.turned(index) >= 0;
            }
            let goal = goal_of(&own_target(&proposed, index), deployment);
            let place = self.moves.towards(deployment, goal, range, &allowed);
            let new = self.moves.list()[place].apply(deployment, range).unwrap_or(deployment);
            decision.targets.push(target_of(index, new));
        }
        decision
    }
}

/// Where a target leads from `deployment`, in whole units.
pub fn goal_of(target: &Target, deployment: Deployment) -> Deployment {
    let whole = |setting: Setting<f64>, unit: f64, now: u32| {
        setting.value().map_or(now, |value| (value * unit).round().max(0.0) as u32)
    };
    Deployment {
        instances: whole(target.instances, 1.0, deployment.instances),
        cpu: whole(target.cpu_cores, 1000.0, deployment.cpu),
        memory: whole(target.memory_mib, 1.0, deployment.memory),
    }
}

/// How one function fared over an episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Mean reward of a tick.
    pub reward: f64,
    /// Mean SLO preservation of a tick.
    pub preserved: f64,
    /// Mean CPU utilisation of a tick.
    pub utilisation: f64,
    /// 99th percentile of latency, milliseconds.
    pub p99_ms: f64,
    /// Core-seconds held.
    pub core_seconds: f64,
    /// Calls that were not answered.
    pub lost: u64,
    /// Calls.
    pub calls: u64,
}

/// Adds up outcomes tick by tick.
#[derive(Clone, Debug)]
pub struct Scores {
    sums: Vec<(f64, f64, f64, u64)>,
}

impl Scores {
    /// Of `count` functions; the world keeps latencies from now on.
    pub fn new(world: &mut World) -> Self {
        world.keep_latencies();
        Self { sums: vec![(0.0, 0.0, 0.0, 0); world.count()] }
    }

    /// Takes in the last tick.
    pub fn tick(&mut self, world: &World, reward: &RewardSettings) {
        for index in (0..world.count()).filter(|&index| world.is_active(index)) {
            let earned = world.earned(index);
            let sums = &mut self.sums[index];
            sums.0 += reward.pay(&earned).total();
            sums.1 += earned.preserved;
            sums.2 += earned.cpu_utilisation;
            sums.3 += 1;
        }
    }

    /// What came of it.
    pub fn outcomes(&self, world: &World) -> Vec<Outcome> {
        let of =
            |(index, &(reward, preserved, utilisation, ticks)): (usize, &(f64, f64, f64, u64))| {
                let ticks = ticks.max(1) as f64;
                let mut tally = world.tally(index);
                let calls = tally.latencies_ms.len() as u64;
                Outcome {
                    reward: reward / ticks,
                    preserved: preserved / ticks,
                    utilisation: utilisation / ticks,
                    p99_ms: crate::meter::quantile(&mut tally.latencies_ms, 0.99),
                    core_seconds: world.core_seconds(index),
                    lost: tally.lost,
                    calls,
                }
            };
        self.sums.iter().enumerate().map(of).collect()
    }
}

/// Lets `driver` run `world` for `ticks`.
pub fn drive(
    world: &mut World,
    driver: &mut dyn Driver,
    reward: &RewardSettings,
    ticks: u64,
) -> Vec<Outcome> {
    let mut scores = Scores::new(world);
    for _ in 0..ticks {
        let decision = driver.decide(world);
        world.act(&decision);
        scores.tick(world, reward);
    }
    scores.outcomes(world)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::{MultiScaling, MultiSettings};

    #[test]
    fn every_driver_runs_a_world_and_leaves_no_function_without_instances() {
        for name in NAMES {
            let mut settings = MultiSettings::new(4, Seed::new(3));
            settings.tells_presence = name == "windfall-scaling";
            let mut env = MultiScaling::new(settings.clone(), Seed::new(4));
            let mut chosen =
                driver(name, &Moves::paper(), settings.reward, Seed::new(5)).expect("it is named");
            let outcomes = drive(env.world_mut(), &mut *chosen, &settings.reward, 30);
            assert!(outcomes.iter().all(|one| one.calls > 0 && one.core_seconds > 0.0), "{name}");
            assert!((0..4).all(|index| env.world().deployment(index).instances >= 1), "{name}");
        }
    }
}
