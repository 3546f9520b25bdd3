//! FaaSRM's OpenWhisk experiment: ten applications, 268 calls in 60 seconds, under several managers in turn.
//!
//! ```text
//!   calibrate: each call alone at half a core, and at the whole node
//!   repetition 1: each call alone at the user's size; fixed, greedy, .., windfall
//!   repetition 2: each call alone at the user's size; windfall, .., greedy, fixed         (A B B A)
//! ```
//!
//! Every run has the same calls, fresh processes and a policy that knows nothing of the runs before. The baseline of a call
//! is the median of its times alone. What is simulated afterwards has the same calls, with demands from models that were
//! fitted to the calls alone.

mod alone;
mod files;
mod run;

use std::sync::Arc;

use windfall_core::statistics::median;
use windfall_core::{
    Allocation, CallRecord, Duration, FunctionId, FunctionProfile, Seed, Timestamp,
};
use windfall_functions::{Builtin, ExperimentCall, ExperimentInputs, builtins, experiment_calls};
use windfall_sandbox::Host;
use windfall_studies::calibration::{
    Calibration, FunctionModel, ReplayCall, ReplayUnder, calibrate, replay,
};
use windfall_studies::capacity::contestants::{Contestant, Role};
use windfall_studies::reproduce::faasrm_kernel::{KernelExperiment, KernelRow, PUBLISHED, Setup};
use windfall_studies::reproduce::{Reproduced, Request, Stage, Watcher};
use windfall_telemetry::journal::NamedFunction;

use crate::error::ExperimentError;
use crate::host::host;
use crate::policy::control_of;
pub(crate) use alone::{Alone, Size, sleep_until};
use run::Played;
pub(crate) use run::Ticks;

/// The managers of the experiment.
pub const POLICIES: [&str; 7] =
    ["fixed", "greedy", "ensure", "histogram", "libra", "faasrm", "windfall"];

/// Memory of the node, MiB: what four of the published invokers have for functions.
pub(crate) const NODE_MEMORY: u32 = 8192;
/// Time between two calls of the simulated baseline, longer than any call takes.
const APART: Duration = Duration::from_mins(5);

/// How the experiment is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Only so many of the first calls.
    pub calls: Option<usize>,
    /// How much faster than published calls arrive.
    pub speed: f64,
    /// Input sizes.
    pub inputs: ExperimentInputs,
    /// Draws arrival times within their seconds, and inputs.
    pub seed: u64,
    /// How often everything is repeated.
    pub repetitions: u32,
    /// Who manages.
    pub policies: Vec<String>,
    /// Whether to add repetitions to what the folder has.
    pub appends: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            calls: None,
            speed: 1.0,
            inputs: ExperimentInputs::default(),
            seed: 1,
            repetitions: 5,
            policies: POLICIES.map(str::to_owned).to_vec(),
            appends: false,
        }
    }
}

impl Settings {
    /// Forty calls four times as fast, with small inputs and once: shows that everything works.
    pub fn quick() -> Self {
        let inputs = ExperimentInputs { scale: 0.2, ..ExperimentInputs::default() };
        Self { calls: Some(40), speed: 4.0, inputs, repetitions: 1, ..Self::default() }
    }

    fn check(&self) -> Result<(), ExperimentError> {
        let refuse = |name, value: f64, allowed| {
            Err(ExperimentError::Setting { name, value: value.to_string(), allowed })
        };
        match self {
            _ if !(0.1..=100.0).contains(&self.speed) => {
                refuse("--speed", self.speed, "0.1 to 100")
            }
            _ if !(0.01..=100.0).contains(&self.inputs.scale) => {
                refuse("--scale", self.inputs.scale, "0.01 to 100")
            }
            // With what earlier runs have left, no repetition draws the page anew.
            _ if !(u32::from(!self.appends)..=100).contains(&self.repetitions) => {
                refuse("--repetitions", self.repetitions.into(), "1 to 100, or 0 with --append")
            }
            _ if self.calls == Some(0) => refuse("--calls", 0.0, "1 to 268"),
            _ => Ok(()),
        }
    }
}

/// A manager as it is published, first come first served.
pub(crate) fn incumbent(policy: &str) -> Contestant {
    Contestant::new(policy, Role::Incumbent)
}

/// One call with its moment in the schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    /// From the beginning of a run.
    pub(crate) at: Duration,
    pub(crate) call: ExperimentCall,
}

/// What every part of the experiment needs.
pub(crate) struct Plan {
    pub(crate) calls: Vec<Planned>,
    /// The ten applications, in the order of their ids.
    pub(crate) functions: Vec<&'static Builtin>,
    pub(crate) node: Allocation,
}

impl Plan {
    fn new(settings: &Settings) -> Self {
        let mut calls = experiment_calls(Seed::new(settings.seed), settings.inputs);
        calls.truncate(settings.calls.unwrap_or(usize::MAX));
        let mut before = Duration::ZERO;
        let calls = calls.into_iter().map(|call| {
            // No two at the same moment, because the moment says which call a record is about.
            let at = call.at.scaled(1.0 / settings.speed).max(before + Duration::from_nanos(1000));
            before = at;
            Planned { at, call }
        });
        let cores = std::thread::available_parallelism().map_or(2, usize::from) as u32;
        Self {
            calls: calls.collect(),
            functions: builtins().iter().filter(|one| one.published_as.is_some()).collect(),
            node: Allocation::new(cores * 1000, NODE_MEMORY),
        }
    }

    /// The id of a call's function.
    pub(crate) fn function(&self, call: &ExperimentCall) -> FunctionId {
        let place = self.functions.iter().position(|one| one.name == call.builtin.name);
        FunctionId(place.unwrap_or_default() as u32)
    }

    fn schedule_seconds(&self) -> f64 {
        self.calls.last().map_or(0.0, |last| last.at.as_secs_f64())
    }
}

/// Makes the experiment. Call it before any thread exists.
pub fn reproduce(
    request: &Request<'_>,
    settings: &Settings,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ExperimentError> {
    settings.check()?;
    let controls: Result<Vec<_>, _> =
        settings.policies.iter().map(|policy| control_of(&incumbent(policy), 0)).collect();
    drop(controls?);
    let before = if settings.appends { files::read(request.folder, settings)? } else { None };
    let host = host("FaaSRM's experiment")?;
    let plan = Plan::new(settings);
    let runs = settings.repetitions * (1 + settings.policies.len() as u32);
    watcher.begin(Stage::Runs(u64::from(runs) + if before.is_some() { 0 } else { 2 }));
    let measured = measure(&host, &plan, settings, before, watcher)?;
    watcher.end();
    let driver = host.capabilities().driver.to_owned();
    drop(host);
    files::write(request, settings, &plan, &measured)?;
    let experiment = evaluate(&plan, settings, &measured, driver)?;
    Ok(Reproduced::new(experiment.page(request), experiment.text(), &experiment)?)
}

/// What the kernel showed.
pub(crate) struct Measured {
    pub(crate) profiles: Vec<FunctionProfile>,
    pub(crate) alone: Alone,
    pub(crate) runs: Vec<Played>,
}

impl Measured {
    /// Run time of each call alone at the user's size, seconds.
    pub(crate) fn baselines(&self) -> Vec<f64> {
        self.alone.at_users.iter().map(|times| median(times).unwrap_or(f64::NAN)).collect()
    }

    fn repetitions(&self) -> u32 {
        self.runs.iter().map(|run| run.repetition).max().unwrap_or(0)
    }
}

fn measure(
    host: &Arc<Host>,
    plan: &Plan,
    settings: &Settings,
    before: Option<Measured>,
    watcher: &dyn Watcher,
) -> Result<Measured, ExperimentError> {
    let mut measured = match before {
        Some(before) => before,
        None => calibrating(host, plan, watcher)?,
    };
    let first = measured.repetitions() + 1;
    for repetition in first..first + settings.repetitions {
        watcher.describe(&format!("{repetition}: alone at the user's size"));
        measured.alone.play(host, plan, Size::Users)?;
        watcher.advance(1);
        let mut order: Vec<&String> = settings.policies.iter().collect();
        if repetition % 2 == 0 {
            order.reverse();
        }
        for policy in order {
            watcher.describe(&format!("{repetition}: {policy}"));
            measured.runs.push(run::play(host, plan, policy, repetition)?);
            watcher.advance(1);
        }
    }
    if measured.profiles.is_empty() {
        measured.profiles = measured.alone.profiles.clone();
    }
    Ok(measured)
}

/// Calls alone at other sizes than the user's, for the models.
fn calibrating(
    host: &Arc<Host>,
    plan: &Plan,
    watcher: &dyn Watcher,
) -> Result<Measured, ExperimentError> {
    let mut alone = Alone::new(plan.calls.len());
    for (size, what) in [(Size::Half, "alone at half a core"), (Size::Node, "alone on the node")] {
        watcher.describe(what);
        alone.play(host, plan, size)?;
        watcher.advance(1);
    }
    Ok(Measured { profiles: alone.profiles.clone(), alone, runs: Vec::new() })
}

fn evaluate(
    plan: &Plan,
    settings: &Settings,
    measured: &Measured,
    driver: String,
) -> Result<KernelExperiment, ExperimentError> {
    let baselines = measured.baselines();
    let functions = NamedFunction::list(FunctionId(0), &measured.profiles);
    let calibration = calibrate(&functions, &measured.alone.records, plan.node.cpu.cores());
    let rows = measured.runs.iter().map(|run| {
        KernelRow::new(&run.policy, run.repetition, &run.calls, &baselines, Some(run.conditions))
    });
    let kernel: Vec<KernelRow> = rows.collect();
    let simulated = simulate(plan, settings, measured, &calibration)?;
    let reserved: f64 = (plan.calls.iter().zip(&baselines))
        .map(|(planned, seconds)| planned.call.builtin.reservation.cpu.cores() * seconds)
        .sum();
    let capacity = plan.node.cpu.cores() * plan.schedule_seconds().max(1e-9);
    let setup = Setup {
        calls: plan.calls.len(),
        schedule_s: plan.schedule_seconds(),
        speed: settings.speed,
        scale: settings.inputs.scale,
        seed: settings.seed,
        repetitions: measured.repetitions(),
        cores: plan.node.cpu.cores(),
        memory_mib: plan.node.memory.get(),
        reserved_load: reserved / capacity,
        driver,
        baseline_passes: measured.repetitions(),
    };
    let mut experiment = KernelExperiment {
        setup,
        published: PUBLISHED.to_vec(),
        kernel,
        simulated: simulated.rows,
        prediction: Vec::new(),
        calibration,
    };
    experiment.compare(&simulated.call_errors);
    Ok(experiment)
}

struct Simulated {
    rows: Vec<KernelRow>,
    /// Median error of single run times, by policy.
    call_errors: Vec<(String, f64)>,
}

/// The same calls in the simulator, baselines first.
fn simulate(
    plan: &Plan,
    settings: &Settings,
    measured: &Measured,
    calibration: &Calibration,
) -> Result<Simulated, ExperimentError> {
    // A function with too few calls is left out of the prediction; ids must stay without gaps.
    let models: Vec<(FunctionProfile, FunctionModel)> = (measured.profiles.iter())
        .filter_map(|profile| Some((profile.clone(), calibration.model(&profile.name)?.clone())))
        .collect();
    let place = |planned: &Planned| {
        let profile = &measured.profiles[plan.function(&planned.call).index()];
        let place = models.iter().position(|(known, _)| known.name == profile.name)?;
        Some((FunctionId(place as u32), planned.call.builtin.input.map(|_| planned.call.input)))
    };
    let calls = |at: &dyn Fn(usize, &Planned) -> Duration| -> Vec<(usize, ReplayCall)> {
        let known = plan.calls.iter().enumerate().filter_map(|(number, planned)| {
            let (function, input) = place(planned)?;
            let at = Timestamp::ZERO + at(number, planned);
            Some((number, ReplayCall { at, function, input: input.map(|size| size as f32) }))
        });
        known.collect()
    };
    let play = |calls: &[(usize, ReplayCall)], policy: &str, seed: u64| {
        let bare: Vec<ReplayCall> = calls.iter().map(|(_, call)| *call).collect();
        let found = replay(&models, &bare, plan.node, &ReplayUnder::policy(policy, seed))?;
        let mut all: Vec<Option<CallRecord>> = vec![None; plan.calls.len()];
        for ((number, _), record) in calls.iter().zip(found) {
            all[*number] = record;
        }
        Ok::<_, ExperimentError>(all)
    };
    let apart = calls(&|number, _| Duration::from_nanos(APART.as_nanos() * (number as u64 + 1)));
    let run_of = |record: &Option<CallRecord>| {
        record.as_ref().map_or(f64::NAN, |record| record.run.as_secs_f64())
    };
    let baselines: Vec<f64> = play(&apart, "fixed", 1)?.iter().map(run_of).collect();
    let scheduled = calls(&|_, planned| planned.at);
    let (mut rows, mut call_errors) = (Vec::new(), Vec::new());
    for policy in &settings.policies {
        let mut runs = Vec::new();
        for repetition in 1..=measured.repetitions() {
            let records = play(&scheduled, policy, repetition.into())?;
            rows.push(KernelRow::new(policy, repetition, &records, &baselines, None));
            runs.push(records);
        }
        let kernel: Vec<&Vec<Option<CallRecord>>> = (measured.runs.iter())
            .filter(|run| run.policy == *policy)
            .map(|run| &run.calls)
            .collect();
        call_errors.push((policy.clone(), call_error(&kernel, &runs.iter().collect::<Vec<_>>())));
    }
    Ok(Simulated { rows, call_errors })
}

/// Median over the calls of the relative error of a call's median run time.
fn call_error(kernel: &[&Vec<Option<CallRecord>>], simulated: &[&Vec<Option<CallRecord>>]) -> f64 {
    let middle = |runs: &[&Vec<Option<CallRecord>>], number: usize| {
        let times: Vec<f64> = (runs.iter())
            .filter_map(|run| run.get(number)?.as_ref())
            .map(|record| record.run.as_secs_f64())
            .collect();
        median(&times)
    };
    let count = kernel.first().map_or(0, |run| run.len());
    let errors: Vec<f64> = (0..count)
        .filter_map(|number| {
            Some((middle(simulated, number)? / middle(kernel, number)?.max(1e-9) - 1.0).abs())
        })
        .collect();
    median(&errors).unwrap_or(f64::NAN)
}
