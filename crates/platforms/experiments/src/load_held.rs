//! How much load this machine holds under each manager while an objective holds: real functions, the same calls for
//! everybody, load raised step by step until service breaks.
//!
//! ```text
//!   alone: every kind of call on as many cores as its user reserves                             baselines
//!          and at the user's size, at half a core, and at the whole node                        models
//!   repetition 1: fixed, weights, histogram, .., ours        each a fresh platform and one ramp
//!   repetition 2: ours, .., histogram, weights, fixed        (A B B A)
//!   simulator: the same ramps on the fitted models, with the kernel's CPU
//! ```
//!
//! Load is what users reserve per second over what the machine has, cores times seconds, from the run times of calls
//! alone. Manager, gateway and load generator run on the same cores as the functions, so what a manager uses is missing for
//! its calls. A ramp ends with the first step that breaks the objective, which is seen one step later. One during which
//! other programs used more than 5 % of the machine is made again. What was measured is
//! kept in `measured.json`; further repetitions can be added to it by later runs.

mod evaluate;
mod files;
mod ramp;
mod schedule;

use std::path::Path;
use std::sync::Arc;

use windfall_core::statistics::median;
use windfall_core::{Allocation, CallRecord, Duration, FunctionId, FunctionProfile};
use windfall_functions::{Builtin, builtins};
use windfall_sandbox::Host;
use windfall_studies::capacity::contestants::Contestant;
use windfall_studies::capacity::kernel::{CallKind, KernelCapacity, Ramp, RampSetup};
use windfall_studies::capacity::objective::Objective;
use windfall_studies::reproduce::{Stage, Watcher};

use crate::error::ExperimentError;
use crate::faasrm::{Alone, NODE_MEMORY, Plan, Planned, Size};
use crate::host::host;
use schedule::kinds;

/// Passes over all kinds of calls alone on the cores that users reserve; each later run adds one.
const FIRST_PASSES: u32 = 5;

/// A ramp during which other programs used a larger share of the machine's CPU time is made again,
pub(crate) const MOST_OTHERS: f64 = 0.05;
/// so often at most; a repetition that has such a ramp all the same does not count.
const ATTEMPTS: u32 = 2;

/// How the measurement is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who takes part, at each of its over-commits.
    pub contestants: Vec<Contestant>,
    /// What service has to be like.
    pub objective: Objective,
    /// How ramps are made.
    pub setup: RampSetup,
    /// How often everything is repeated.
    pub repetitions: u32,
    /// Whether to add to what the folder has.
    pub appends: bool,
}

/// The usual ramp: nine steps of 2.5 s from a load of 0.35, a quarter more each, with a quarter of the default inputs.
///
/// A store answers within 13 ms, so that users reserve 2.4 times what their calls use, as in Azure's trace of 500
/// functions.
pub fn usual_setup() -> RampSetup {
    RampSetup {
        first_load: 0.35,
        ratio: 1.25,
        steps: 9,
        step_seconds: 2.5,
        scale: 0.25,
        store_millis: 13.0,
        seed: 1,
    }
}

/// What service has to be like here. Calls of a real machine scatter and a step has some fifty of them, so the shares are
/// wider than in simulation: 5 % of calls may be slow, and 10 % may run more than half longer than alone.
pub fn usual_objective() -> Objective {
    Objective {
        slow_share: 0.05,
        violation_share: 0.1,
        violation_above: 1.5,
        ..Objective::default()
    }
}

impl Settings {
    fn check(&self) -> Result<(), ExperimentError> {
        let refuse = |name, value: f64, allowed| {
            Err(ExperimentError::Setting { name, value: value.to_string(), allowed })
        };
        let setup = &self.setup;
        match self {
            _ if !(0.01..=10.0).contains(&setup.first_load) => {
                refuse("--first-load", setup.first_load, "0.01 to 10")
            }
            _ if !(1.01..=4.0).contains(&setup.ratio) => {
                refuse("--ratio", setup.ratio, "1.01 to 4")
            }
            _ if !(1..=100).contains(&setup.steps) => {
                refuse("--steps", setup.steps.into(), "1 to 100")
            }
            _ if !(0.5..=600.0).contains(&setup.step_seconds) => {
                refuse("--step-seconds", setup.step_seconds, "0.5 to 600")
            }
            _ if !(0.01..=100.0).contains(&setup.scale) => {
                refuse("--scale", setup.scale, "0.01 to 100")
            }
            // With what earlier runs have left, no repetition judges it anew.
            _ if !(u32::from(!self.appends)..=100).contains(&self.repetitions) => {
                refuse("--repetitions", self.repetitions.into(), "1 to 100, or 0 with --append")
            }
            _ => Ok(()),
        }
    }

    /// Every contestant at every over-commit.
    fn runs(&self) -> Vec<(&Contestant, f64)> {
        let mut runs = Vec::new();
        for one in &self.contestants {
            runs.extend(one.over_commits.iter().map(|factor| (one, *factor)));
        }
        runs
    }
}

/// What the kernel showed, in this run and in earlier ones.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Measured {
    pub(crate) setup: RampSetup,
    /// Core-seconds that the user of a call reserves, mean over the schedule: what makes a load of a rate.
    pub(crate) reserved_per_call: f64,
    pub(crate) profiles: Vec<FunctionProfile>,
    /// Run times of each kind of call alone on as many cores as its user reserves, seconds.
    pub(crate) on_cores: Vec<Vec<f64>>,
    /// Records of calls alone, at all sizes.
    pub(crate) alone: Vec<CallRecord>,
    pub(crate) ramps: Vec<Ramp>,
}

/// Kinds of calls, and the machine.
pub(crate) struct World {
    pub(crate) plan: Plan,
    /// How often each kind is drawn.
    pub(crate) weights: Vec<f64>,
}

impl World {
    fn new(setup: &RampSetup) -> Self {
        let kinds = kinds(setup.scale, setup.store_millis);
        let cores = std::thread::available_parallelism().map_or(2, usize::from) as u32;
        let functions: Vec<&'static Builtin> =
            builtins().iter().filter(|one| one.published_as.is_some()).collect();
        let weights = kinds.iter().map(|kind| kind.weight).collect();
        let calls = kinds.into_iter().map(|kind| Planned { at: Duration::ZERO, call: kind.call });
        let plan = Plan {
            calls: calls.collect(),
            functions,
            node: Allocation::new(cores * 1000, NODE_MEMORY),
        };
        Self { plan, weights }
    }

    /// The function of a kind.
    pub(crate) fn function(&self, kind: usize) -> FunctionId {
        self.plan.function(&self.plan.calls[kind].call)
    }

    /// Every kind with its run time alone.
    pub(crate) fn kinds(&self, baselines: &[f64]) -> Vec<CallKind> {
        let kind = |(place, &baseline): (usize, &f64)| CallKind {
            function: self.function(place),
            baseline,
        };
        baselines.iter().enumerate().map(kind).collect()
    }

    /// Mean over the schedule of cores that a user reserves times `seconds` of each kind.
    pub(crate) fn mean(&self, amount: impl Fn(usize) -> f64) -> f64 {
        let all: f64 = self.weights.iter().sum();
        let sum: f64 =
            self.weights.iter().enumerate().map(|(place, weight)| weight * amount(place)).sum();
        sum / all.max(1e-9)
    }
}

impl Measured {
    /// Run time of each kind alone, seconds.
    pub(crate) fn baselines(&self) -> Vec<f64> {
        self.on_cores.iter().map(|times| median(times).unwrap_or(f64::NAN)).collect()
    }

    fn last_repetition(&self) -> u32 {
        self.ramps.iter().map(|ramp| ramp.repetition).max().unwrap_or(0)
    }
}

/// Measures and predicts. Call it before any thread exists.
pub fn measure(
    settings: &Settings,
    folder: &Path,
    watcher: &dyn Watcher,
) -> Result<KernelCapacity, ExperimentError> {
    settings.check()?;
    for (contestant, _) in settings.runs() {
        drop(crate::policy::control_of(contestant, 0)?);
    }
    let before = if settings.appends { files::read(folder, &settings.setup)? } else { None };
    let world = World::new(&settings.setup);
    let runs = settings.runs();
    if settings.repetitions == 0 {
        let nothing = || ExperimentError::Setting {
            name: "--repetitions",
            value: "0".to_owned(),
            allowed: "1 to 100 where nothing was measured yet",
        };
        return evaluate::evaluate(settings, &world, before.ok_or_else(nothing)?);
    }
    let host = host("a measurement of load held")?;
    watcher.begin(Stage::Runs(u64::from(settings.repetitions) * runs.len() as u64 + 1));
    let mut measured = alone(&host, &world, settings, before, watcher)?;
    let first = measured.last_repetition() + 1;
    for repetition in first..first + settings.repetitions {
        let mut order = runs.clone();
        if repetition % 2 == 0 {
            order.reverse();
        }
        for (contestant, over_commit) in order {
            watcher.describe(&format!("{repetition}: {} at {over_commit}", contestant.label));
            let run = ramp::Run { contestant, over_commit, repetition };
            let mut ramp = ramp::play(&host, &world, settings, &measured, &run)?;
            for _ in 1..ATTEMPTS {
                if ramp.others_cpu_share <= MOST_OTHERS {
                    break;
                }
                ramp = ramp::play(&host, &world, settings, &measured, &run)?;
            }
            measured.ramps.push(ramp);
            watcher.advance(1);
            // A run that is cut off loses no more than one ramp.
            files::write(folder, &measured)?;
        }
    }
    watcher.end();
    drop(host);
    evaluate::evaluate(settings, &world, measured)
}

/// Every kind of call alone.
fn alone(
    host: &Arc<Host>,
    world: &World,
    settings: &Settings,
    before: Option<Measured>,
    watcher: &dyn Watcher,
) -> Result<Measured, ExperimentError> {
    watcher.describe("every kind of call alone");
    let is_first = before.is_none();
    let mut measured = before.unwrap_or_else(|| Measured {
        setup: settings.setup.clone(),
        on_cores: vec![Vec::new(); world.plan.calls.len()],
        ..Measured::default()
    });
    let mut alone = Alone::of_every_call(world.plan.calls.len());
    let passes = if is_first { FIRST_PASSES } else { 1 };
    for _ in 0..passes {
        alone.play(host, &world.plan, Size::Cores)?;
    }
    if is_first {
        for size in [Size::Users, Size::Users, Size::Half, Size::Node] {
            alone.play(host, &world.plan, size)?;
        }
        measured.profiles = std::mem::take(&mut alone.profiles);
    }
    for (known, new) in measured.on_cores.iter_mut().zip(alone.on_cores) {
        known.extend(new);
    }
    measured.alone.extend(alone.records);
    if is_first {
        let baselines = measured.baselines();
        let reserved = |kind: usize| world.plan.calls[kind].call.builtin.reservation.cpu.cores();
        measured.reserved_per_call = world.mean(|kind| reserved(kind) * baselines[kind]);
    }
    watcher.advance(1);
    Ok(measured)
}
