//! Rules for the shared nodes with parameters that can be calibrated.
//!
//! | rule | instances | parameters |
//! | --- | --- | --- |
//! | `fixed` | four | |
//! | `hpa` | `ceil(n x use / target)`, tolerance 10 %; down to the highest of a window of recommendations | target, window |
//! | `queueing` | M/M/c staffing one cold start ahead (`windfall-policy`) | share that may wait, half-life of the rate |
//! | `ensure` | square-root staffing; shares up where runs are slower than the best seen, down where cores are short | headroom, half-life, slowness |
//! | `windfall-scaling` | hazard of the next use against the price of memory (`windfall-policy`), never none | price, charge of a start |
//! | `autothrottle` | captains with one target for all, as many instances as their quota needs | target |
//! | `autothrottle-tower` | the same with the targets of [`super::tower`] | (it learns) |
//! | `oracle` | [`super::planner`] | |
//!
//! Each has two sizes beside: shares as reserved, another constant, or following what an instance uses; memory as reserved
//! or trimmed to a tenth above the highest call. Defaults leave both as reserved; a calibration tries all. Nobody turns
//! back at once.

use serde::Serialize;
use windfall_core::{Policy, Seed, Setting};
use windfall_policy::{
    EnsureScaling, EnsureScalingSettings, Queueing, QueueingSettings, WindfallScaling,
    WindfallScalingSettings,
};

use super::captains::Captains;
use super::planner::{plan, steady};
use super::tower::{TARGETS, Tower};
use super::world::SharedWorld;
use crate::moves::{CPU_STEP, Deployment, MEMORY_STEP, Range};
use crate::profile::RESERVED_CPU;
use crate::reward::RewardSettings;

/// How instances are counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Staffing {
    /// Four.
    Fixed,
    /// By use of shares.
    Hpa {
        /// Use that is aimed at.
        target: f64,
        /// Ticks of recommendations whose highest counts on the way down.
        window: usize,
    },
    /// By Erlang's formula.
    Queueing {
        /// Share of calls that may wait.
        wait_share: f64,
        /// Half-life of the rate, seconds.
        half_life: f64,
    },
    /// By the square root of the load.
    Ensure {
        /// Headroom in square roots.
        beta: f64,
        /// Half-life of a falling load, seconds.
        half_life: f64,
        /// Slower than so many times the best is answered with shares.
        slowness: f64,
    },
    /// By the hazard of the next use.
    Windfall {
        /// Of a MiB-second in weighted waits.
        price: f64,
        /// Cost of a start, seconds of holding.
        start_charge: f64,
    },
    /// Captains with one target.
    Autothrottle {
        /// Share of throttled periods.
        target: f64,
    },
    /// Captains and the tower.
    Tower,
    /// Knows the load.
    Oracle,
}

/// Shares of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shares {
    /// So many.
    Constant(u32),
    /// What an instance uses on average, over this.
    Following(f64),
}

/// A rule with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RuleSettings {
    /// How many instances.
    pub staffing: Staffing,
    /// Shares of each.
    pub shares: Shares,
    /// Memory a tenth above the highest call seen, instead of what is reserved.
    pub trims_memory: bool,
}

/// Names of the rules that are calibrated, in the order of tables.
pub const CALIBRATED: [&str; 6] =
    ["hpa", "queueing", "ensure", "windfall-scaling", "autothrottle", "autothrottle-tower"];

impl RuleSettings {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self.staffing {
            Staffing::Fixed => "fixed",
            Staffing::Hpa { .. } => "hpa",
            Staffing::Queueing { .. } => "queueing",
            Staffing::Ensure { .. } => "ensure",
            Staffing::Windfall { .. } => "windfall-scaling",
            Staffing::Autothrottle { .. } => "autothrottle",
            Staffing::Tower => "autothrottle-tower",
            Staffing::Oracle => "oracle",
        }
    }

    /// The rule called `name` with its usual parameters.
    pub fn usual(name: &str) -> Option<Self> {
        let queueing = QueueingSettings::default();
        let ensure = EnsureScalingSettings::default();
        let windfall = WindfallScalingSettings::default();
        let staffing = match name {
            "fixed" => Staffing::Fixed,
            // Kubernetes: five minutes of stabilisation on the way down.
            "hpa" => Staffing::Hpa { target: 0.7, window: 60 },
            "queueing" => Staffing::Queueing {
                wait_share: queueing.wait_share,
                half_life: queueing.rate_half_life_seconds,
            },
            "ensure" => Staffing::Ensure {
                beta: ensure.beta,
                half_life: ensure.half_life_seconds,
                slowness: 1.1,
            },
            "windfall-scaling" => Staffing::Windfall {
                price: windfall.price,
                start_charge: windfall.start_charge_seconds,
            },
            "autothrottle" => Staffing::Autothrottle { target: 0.02 },
            "autothrottle-tower" => Staffing::Tower,
            "oracle" => Staffing::Oracle,
            _ => return None,
        };
        let shares = Shares::Constant(RESERVED_CPU);
        Some(Self { staffing, shares, trims_memory: false })
    }

    /// Everything that a calibration of `name` tries; its usual parameters are the first.
    pub fn grid(name: &str) -> Vec<Self> {
        let mut staffings = Vec::new();
        match name {
            "hpa" => {
                for target in [0.3, 0.5, 0.7, 0.9, 1.2] {
                    staffings.extend([1, 12].map(|window| Staffing::Hpa { target, window }));
                }
            }
            "queueing" => {
                for wait_share in [0.01, 0.05, 0.15, 0.4] {
                    let with = |half_life| Staffing::Queueing { wait_share, half_life };
                    staffings.extend([10.0, 30.0].map(with));
                }
            }
            "ensure" => {
                for (beta, half_life) in [(0.5, 30.0), (1.0, 30.0), (1.0, 90.0), (2.0, 30.0)] {
                    let with = |slowness| Staffing::Ensure { beta, half_life, slowness };
                    staffings.extend([1.1, 2.0].map(with));
                }
            }
            "windfall-scaling" => {
                for price in [3e-6, 3e-5, 3e-4, 3e-3] {
                    let with = |start_charge| Staffing::Windfall { price, start_charge };
                    staffings.extend([10.0, 52.0].map(with));
                }
            }
            "autothrottle" => {
                staffings.extend(TARGETS.map(|target| Staffing::Autothrottle { target }));
            }
            "autothrottle-tower" => staffings.push(Staffing::Tower),
            _ => {}
        }
        let sizes = [
            Shares::Constant(RESERVED_CPU),
            Shares::Constant(384),
            Shares::Following(1.0),
            Shares::Following(0.7),
        ];
        // Captains decide on CPU themselves, and so does ENSURE.
        let sizes = match name {
            "autothrottle" | "autothrottle-tower" => &sizes[..1],
            "ensure" => &sizes[..2],
            _ => &sizes[..],
        };
        let mut grid: Vec<Self> = Self::usual(name).into_iter().collect();
        for staffing in staffings {
            let with = |&shares| Self { staffing, shares, trims_memory: true };
            grid.extend(sizes.iter().map(with));
        }
        grid
    }
}

/// A rule at work.
pub struct Rule {
    settings: RuleSettings,
    engine: Engine,
    reward: RewardSettings,
    sizes: Vec<Sizes>,
}

enum Engine {
    None,
    Recommended(Vec<Vec<u32>>),
    Policy(Box<dyn Policy>),
    Tower(Box<Tower>),
}

/// What is remembered of a function for its sizes.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    /// Cores it used, smoothed.
    used: f64,
    /// Calls that were answered.
    calls: u32,
    /// Mean run of the fastest tick, seconds.
    best_run: Option<f64>,
}

impl Rule {
    /// A rule that has seen nothing.
    pub fn new(settings: RuleSettings, reward: RewardSettings, seed: Seed) -> Self {
        let engine = match settings.staffing {
            Staffing::Hpa { .. } => Engine::Recommended(Vec::new()),
            Staffing::Queueing { wait_share, half_life } => {
                Engine::Policy(Box::new(Queueing::new(QueueingSettings {
                    wait_share,
                    rate_half_life_seconds: half_life,
                    ..QueueingSettings::default()
                })))
            }
            Staffing::Ensure { beta, half_life, .. } => {
                let usual = EnsureScalingSettings::default();
                let own = EnsureScalingSettings { beta, half_life_seconds: half_life, ..usual };
                Engine::Policy(Box::new(EnsureScaling::new(own)))
            }
            Staffing::Windfall { price, start_charge } => {
                let usual = WindfallScalingSettings::default();
                Engine::Policy(Box::new(WindfallScaling::new(WindfallScalingSettings {
                    price,
                    start_charge_seconds: start_charge,
                    ..usual
                })))
            }
            Staffing::Tower => Engine::Tower(Box::new(Tower::new(seed))),
            Staffing::Fixed | Staffing::Autothrottle { .. } | Staffing::Oracle => Engine::None,
        };
        Self { settings, engine, reward, sizes: Vec::new() }
    }

    /// Begins anew with so many functions.
    pub fn expect_functions(&mut self, count: usize) {
        self.sizes = vec![Sizes::default(); count];
        if let Engine::Recommended(all) = &mut self.engine {
            *all = vec![Vec::new(); count];
        }
    }

    /// Prepares a fresh world; what a tower has learned stays.
    pub fn begin(&mut self, world: &mut SharedWorld) {
        self.expect_functions(world.count());
        match (self.settings.staffing, &mut self.engine) {
            (Staffing::Windfall { .. }, _) => world.list_calls(),
            (Staffing::Autothrottle { target }, _) => {
                world.cap(Captains::new(world.count(), target, world.range()));
            }
            (_, Engine::Tower(tower)) => tower.begin(world),
            _ => {}
        }
    }

    /// What every function is to have in the next tick.
    pub fn decide(&mut self, world: &mut SharedWorld) -> Vec<Deployment> {
        if let Engine::Tower(tower) = &mut self.engine {
            tower.tick(world);
        }
        self.propose(world)
    }

    /// The same for a rule that changes nothing in the world: every one but the tower.
    pub fn propose(&mut self, world: &SharedWorld) -> Vec<Deployment> {
        self.remember(world);
        if self.settings.staffing == Staffing::Oracle {
            return plan(world, &self.reward);
        }
        let counts = self.counts(world);
        let sized = |(function, count): (usize, u32)| {
            let instances = steady(world, function, count);
            let wanted = Deployment { instances, ..world.deployment(function) };
            self.sized(world, function, wanted)
        };
        counts.into_iter().enumerate().map(sized).collect()
    }

    fn remember(&mut self, world: &SharedWorld) {
        for (own, view) in self.sizes.iter_mut().zip(&world.seen().functions) {
            own.used += 0.3 * (view.cpu_used_cores - own.used);
            own.calls += view.completions;
            let run = view.mean_run.map(|run| run.as_secs_f64());
            own.best_run = match (own.best_run, run) {
                (Some(best), Some(run)) => Some(best.min(run)),
                (best, run) => best.or(run),
            };
        }
    }

    fn counts(&mut self, world: &SharedWorld) -> Vec<u32> {
        let now = |function: usize| world.deployment(function).instances;
        let count = world.count();
        match (&mut self.engine, self.settings.staffing) {
            (Engine::Policy(policy), _) => {
                let decision = policy.decide(world.seen()).unwrap_or_default();
                let mut counts: Vec<u32> = (0..count).map(now).collect();
                for target in &decision.targets {
                    if let (Some(out), Setting::Set(instances)) =
                        (counts.get_mut(target.function.index()), target.instances)
                    {
                        *out = instances.ceil().max(1.0) as u32;
                    }
                }
                counts
            }
            (Engine::Recommended(all), Staffing::Hpa { target, window }) => all
                .iter_mut()
                .enumerate()
                .map(|(function, own)| hpa(world, function, target, window, own))
                .collect(),
            (_, Staffing::Fixed) => vec![4; count],
            _ => (0..count).map(now).collect(),
        }
    }

    /// The deployment with the rule's sizes.
    fn sized(&self, world: &SharedWorld, function: usize, wanted: Deployment) -> Deployment {
        let (own, range) = (self.sizes[function], world.range());
        let cpu = match (self.settings.staffing, self.settings.shares) {
            (Staffing::Ensure { slowness, .. }, _) => ensured(world, function, own, slowness),
            (_, Shares::Constant(shares)) => shares,
            (_, Shares::Following(ratio)) => following(own.used, wanted.instances, ratio, range),
        };
        let memory = if self.settings.trims_memory && own.calls >= 20 {
            trimmed(world.memory_floor(function), range)
        } else {
            world.profile(function).reserved_mib
        };
        Deployment { cpu, memory, ..wanted }
    }
}

/// Shares for `used` cores on so many instances, in whole steps.
pub fn following(used: f64, instances: u32, ratio: f64, range: Range) -> u32 {
    let each = 1024.0 * used / (ratio * f64::from(instances.max(1)));
    ((each / f64::from(CPU_STEP)).ceil() as u32 * CPU_STEP).clamp(range.cpu.0, range.cpu.1)
}

/// Memory for calls up to `floor`, in whole steps.
pub fn trimmed(floor: f64, range: Range) -> u32 {
    let steps = (floor / f64::from(MEMORY_STEP)).ceil() as u32;
    (steps * MEMORY_STEP).clamp(range.memory.0, range.memory.1)
}

fn hpa(
    world: &SharedWorld,
    function: usize,
    target: f64,
    window: usize,
    own: &mut Vec<u32>,
) -> u32 {
    let now = world.deployment(function).instances;
    let ratio = world.use_of_shares(function) / target;
    let proposed = if (ratio - 1.0).abs() <= 0.1 { f64::from(now) } else { f64::from(now) * ratio };
    own.push(proposed.ceil().clamp(1.0, 100.0) as u32);
    if own.len() > window.max(1) {
        own.remove(0);
    }
    let newest = *own.last().unwrap_or(&now);
    if newest >= now { newest } else { own.iter().copied().max().unwrap_or(newest).min(now) }
}

/// ENSURE's latency regulation: slower than `slowness` times the best gets two steps of shares (one where runs are long);
/// where less than half a core is idle, one step is taken back.
fn ensured(world: &SharedWorld, function: usize, own: Sizes, slowness: f64) -> u32 {
    let now = world.deployment(function).cpu;
    let seen = world.seen();
    let used: f64 = seen.functions.iter().map(|view| view.cpu_used_cores).sum();
    let run = seen.functions[function].mean_run.map(|run| run.as_secs_f64());
    let (Some(run), Some(best)) = (run, own.best_run) else { return now };
    let step = if run > 5.0 { CPU_STEP } else { 2 * CPU_STEP };
    if used > world.cores() - 0.5 {
        now.saturating_sub(step).max(CPU_STEP)
    } else if run >= slowness * best {
        now + step
    } else {
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_nodes::SharedSettings;

    #[test]
    fn every_rule_runs_and_leaves_no_function_without_instances() {
        for name in CALIBRATED.into_iter().chain(["fixed", "oracle"]) {
            let settings = SharedSettings::new(6, Seed::new(3));
            let mut world = settings.world(Seed::new(4));
            let usual = RuleSettings::usual(name).unwrap();
            assert_eq!(usual.name(), name);
            let mut rule = Rule::new(usual, settings.reward, Seed::new(5));
            rule.begin(&mut world);
            for _ in 0..30 {
                let wanted = rule.decide(&mut world);
                world.act(&wanted);
            }
            assert!((0..6).all(|function| world.standing(function) >= 1), "{name}");
        }
    }

    #[test]
    fn a_calibration_tries_the_usual_parameters_first_and_nothing_twice() {
        for name in CALIBRATED {
            let grid = RuleSettings::grid(name);
            assert_eq!(Some(grid[0]), RuleSettings::usual(name));
            for (place, one) in grid.iter().enumerate() {
                assert!(!grid[..place].contains(one), "{one:?}");
            }
        }
    }

    #[test]
    fn sizes_by_hand() {
        // 1.5 cores on 3 instances: 512 shares each; at 70 % of use 732, six steps of 128.
        assert_eq!(following(1.5, 3, 1.0, Range::default()), 512);
        assert_eq!(following(1.5, 3, 0.7, Range::default()), 768);
        assert_eq!(trimmed(137.5, Range::default()), 192);
    }
}
