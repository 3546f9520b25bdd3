//! The simulator's model of a function, fitted to recorded calls of a real platform.
//!
//! ```text
//!   work(x)    = s · x^e               core-seconds for an input of x; CPU time is measured, so this is a regression.
//!                                      In steps where that is clearly closer (`work`)
//!   fixed(w)   = a + b · w             time in which no CPU is used
//!   run(w, c)  = fixed(w) + busy(w, min(c, p))
//!   memory(x)  = m + n · x
//! ```
//!
//! `busy` is the kernel's: a quota of `c` cores is a budget of `c · 100 ms` at the beginning of each period, used at
//! full speed. With 0.3 core-seconds on 4 threads and 2 cores (p = 2), a quota of 1 core takes 50 ms of work, 50 ms of
//! waiting, twice, then 50 ms: 250 ms, where a fluid share would take 300.
//!
//! Which parallelism `p` explains the run times best is found by trying all between 0.1 cores and the node; `a` and `b`
//! follow from it by least squares on relative errors. Calls whose size changed while they ran are left out. The error that
//! is reported is that of calls which were not used for the fit: every other call fits, the rest is predicted, and the other
//! way round.

mod fit;
mod replay;
mod text;
mod work;

use serde::Serialize;
use windfall_core::{Allocation, CallDemand, CallRecord, Duration, Mebibytes, MilliCpu};
use windfall_telemetry::journal::NamedFunction;

pub use replay::{ReplayCall, ReplayUnder, replay};
pub use text::{csv, table};

/// Length of a quota's period.
pub const PERIOD_SECONDS: f64 = 0.1;

/// Share of its fastest run after which a call is taken to hold its peak of memory; sensors do not show it.
const RISE_SHARE: f64 = 0.5;

/// One call that says something about its function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedCall {
    /// Its input size, 1 if it has none.
    pub input: f64,
    /// The most CPU it could use, cores.
    pub cores: f64,
    /// How long it ran, seconds.
    pub run: f64,
    /// CPU time it used, core-seconds.
    pub work: f64,
    /// The most memory it used, MiB, where that was seen.
    pub memory: Option<f64>,
}

impl ObservedCall {
    /// What a record says, on a node of `node_cores`. Nothing if the call's size changed, it was tried more than once,
    /// or nobody measured it.
    pub fn of(record: &CallRecord, node_cores: f64) -> Option<Self> {
        let is_constant = record.lowest_grant.cpu == record.highest_grant.cpu;
        let (run, work) = (record.run.as_secs_f64(), record.cpu_used as f64 * 1e-12);
        if !is_constant || record.attempts != 1 || run <= 0.0 || work <= 0.0 {
            return None;
        }
        let limit = record.cpu_ceiling.limit(record.first_grant.cpu);
        let cores = limit.map_or(node_cores, MilliCpu::cores).min(node_cores);
        let input = record.input.map_or(1.0, f64::from).max(1e-9);
        let memory = record.seen.map(|seen| f64::from(seen.memory_mib));
        (cores > 0.0).then_some(Self { input, cores, run, work, memory })
    }
}

/// How far predictions of held-out calls were off, as shares of what was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PredictionError {
    /// Calls that were predicted.
    pub calls: usize,
    /// Half of the calls are closer.
    pub median: f64,
    /// 95 % of the calls are closer.
    pub p95: f64,
}

/// From an input on, a function works so much.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorkStep {
    /// The input; the first step holds below its own too.
    pub from_input: f64,
    /// Core-seconds.
    pub work: f64,
}

/// A fitted function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionModel {
    /// Its name.
    pub name: String,
    /// What its user reserves.
    pub reservation: Allocation,
    /// Calls behind the fit.
    pub calls: usize,
    /// The middle of their inputs.
    pub median_input: f64,
    /// Core-seconds at an input of 1.
    pub work_scale: f64,
    /// How work grows with the input.
    pub work_exponent: f64,
    /// Work in steps, where no power of the input says how it grows; none otherwise.
    pub work_steps: Vec<WorkStep>,
    /// Most cores it can use.
    pub parallelism: f64,
    /// Waiting whatever the work, seconds.
    pub fixed_seconds: f64,
    /// Waiting per core-second of work.
    pub fixed_per_work: f64,
    /// Memory at an input of 0, MiB.
    pub memory_base: f64,
    /// Memory per unit of input, MiB.
    pub memory_per_input: f64,
    /// The least memory that a call was seen with, MiB.
    pub memory_least: f64,
    /// Run times of calls that were not used for the fit.
    pub error: PredictionError,
}

impl FunctionModel {
    /// Core-seconds for an input.
    pub fn work(&self, input: f64) -> f64 {
        let above = self.work_steps.partition_point(|step| step.from_input <= input);
        match self.work_steps.get(above.saturating_sub(1)) {
            Some(step) => step.work,
            None => self.work_scale * input.max(1e-9).powf(self.work_exponent),
        }
    }

    /// Time without CPU for so much work.
    pub fn fixed(&self, work: f64) -> f64 {
        self.fixed_seconds + self.fixed_per_work * work
    }

    /// Memory for an input, MiB.
    pub fn memory(&self, input: f64) -> f64 {
        (self.memory_base + self.memory_per_input * input).max(self.memory_least).max(1.0)
    }

    /// Run time of a call alone with at most `cores`.
    pub fn run(&self, input: f64, cores: f64) -> f64 {
        let work = self.work(input);
        self.fixed(work) + busy_seconds(work, cores, self.parallelism)
    }

    /// The call for the simulator.
    pub fn demand(&self, input: Option<f32>) -> CallDemand {
        let x = input.map_or(1.0, f64::from);
        let work = self.work(x);
        let demand = CallDemand {
            work: (work * 1e12) as u64,
            fixed: Duration::from_secs_f64(self.fixed(work)),
            parallelism: MilliCpu::new((self.parallelism * 1e3).round().max(1.0) as u32),
            memory_base: Mebibytes::new(self.memory_least.max(1.0) as u32),
            memory_peak: Mebibytes::new(self.memory(x).ceil() as u32),
            rise: Duration::ZERO,
            jumps: false,
            cycles: 1,
            shape: 0,
            input,
        };
        CallDemand { rise: demand.fastest().scaled(RISE_SHARE), ..demand }
    }
}

/// Time for `work` core-seconds under a quota of `cores` by a call that can use `parallelism`.
pub fn busy_seconds(work: f64, cores: f64, parallelism: f64) -> f64 {
    if parallelism <= cores {
        return work / parallelism;
    }
    let budget = cores * PERIOD_SECONDS;
    let whole = ((work / budget).ceil() - 1.0).max(0.0);
    whole * PERIOD_SECONDS + (work - whole * budget) / parallelism
}

/// What a calibration comes to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Calibration {
    /// Functions with enough calls, in the order of their ids.
    pub functions: Vec<FunctionModel>,
    /// Functions that were left out, with the number of their usable calls.
    pub left_out: Vec<(String, usize)>,
    /// Calls that were read.
    pub read: usize,
    /// Calls that could be used.
    pub used: usize,
    /// All functions together.
    pub error: PredictionError,
}

/// Fewer calls than this say nothing about a function.
pub const FEWEST_CALLS: usize = 4;

/// Fits every function to its calls among `records`, on a node of `node_cores`.
pub fn calibrate(
    functions: &[NamedFunction],
    records: &[CallRecord],
    node_cores: f64,
) -> Calibration {
    let mut calibration = Calibration { read: records.len(), ..Calibration::default() };
    let mut errors = Vec::new();
    for function in functions {
        let own = records.iter().filter(|record| record.function == function.id);
        let calls: Vec<ObservedCall> =
            own.filter_map(|record| ObservedCall::of(record, node_cores)).collect();
        calibration.used += calls.len();
        if calls.len() < FEWEST_CALLS {
            if !calls.is_empty() {
                calibration.left_out.push((function.name.clone(), calls.len()));
            }
            continue;
        }
        let mut model = fit::fit(function, &calls, node_cores);
        let held_out = fit::held_out_errors(function, &calls, node_cores);
        model.error = fit::summary(&held_out);
        errors.extend(held_out);
        calibration.functions.push(model);
    }
    calibration.error = fit::summary(&errors);
    calibration
}

impl Calibration {
    /// The model of a function.
    pub fn model(&self, name: &str) -> Option<&FunctionModel> {
        self.functions.iter().find(|model| model.name == name)
    }
}

#[cfg(test)]
mod tests;
