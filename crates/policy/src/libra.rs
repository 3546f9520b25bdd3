//! Libra: size a call by its input, lend the unused part of its reservation, restore it under pressure.
//!
//! ```text
//!   predicted = profile(input) x 1.10                                      per resource
//!   predicted < reservation    the call is a donor: it starts small, with its predicted end
//!   predicted > reservation    the call borrows, from the harvest pool only
//!
//!   every 100 ms, a harvested call:   usage >= 0.95 of a harvested limit  ->  restore the reservation
//! ```
//!
//! Reserved 4 cores and 512 MiB, predicted 1.5 cores and 300 MiB: it starts with 1.65 cores and 330 MiB.
//! At the first look it uses 1.6 cores, 97 % of its limit: it gets 4 cores and 512 MiB back.
//!
//! A function whose calls have to be restored often is not harvested until enough further calls have run
//! at the user's size. The harvest pool itself (loans, lenders, expiry) belongs to the per-call loop.

use serde::{Deserialize, Serialize};
use windfall_core::call::Beyond;
use windfall_core::{
    CallDecision, CallOutcome, CallPolicy, CallView, CpuCeiling, Duration, FunctionId, PolicyError,
    RunningCall,
};

use crate::demand_profile::{DemandProfile, Trust};
use crate::peak_reading::PeakReading;
use crate::per_function::PerFunction;

/// Settings of [`Libra`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LibraSettings {
    /// Calls at the user's size before predictions are used.
    pub profiling_calls: u32,
    /// Minimum share of the variance that a line on the input must explain to be used.
    pub least_r2: f64,
    /// Minimum number of calls for a line to be used.
    pub least_points: u32,
    /// Factor by which each new point reduces the weight of a line's earlier points.
    pub forgetting: f64,
    /// Number of recent calls that the quantiles are computed from.
    pub window: usize,
    /// Quantile of the peaks if no line is used.
    pub peak_quantile: f64,
    /// Quantile of the run times if no line is used.
    pub run_quantile: f64,
    /// Added to predicted peaks, as a share of them.
    pub margin: f64,
    /// Usage, as a share of a harvested limit, at which the reservation is restored; 0.8 in the paper.
    pub safeguard_threshold: f64,
    /// Time between two looks at a harvested call, milliseconds.
    pub look_millis: u64,
    /// Share of restored calls among recent ones above which a function is not harvested.
    pub distrust_share: f64,
    /// Weight of one call in that share.
    pub distrust_weight: f64,
    /// Minimum CPU of a call, cores.
    pub floor_cpu_cores: f64,
    /// Minimum memory of a call, MiB.
    pub floor_memory_mib: f64,
    /// How measured peaks are corrected for censoring.
    pub peaks: PeakReading,
}

impl Default for LibraSettings {
    fn default() -> Self {
        Self {
            profiling_calls: 5,
            least_r2: 0.9,
            least_points: 10,
            forgetting: 0.998,
            window: 512,
            peak_quantile: 0.99,
            run_quantile: 0.05,
            margin: 0.10,
            safeguard_threshold: 0.95,
            look_millis: 100,
            distrust_share: 0.5,
            distrust_weight: 0.1,
            floor_cpu_cores: 0.05,
            floor_memory_mib: 16.0,
            peaks: PeakReading::default(),
        }
    }
}

/// Profile of one function.
#[derive(Clone, Debug)]
struct Profiled {
    cpu: DemandProfile,
    memory: DemandProfile,
    run: DemandProfile,
    finished: u32,
    /// Exponentially weighted share of calls that were restored or killed.
    restored_share: f64,
    /// Lower bound on memory from killed calls: their limit scaled up, MiB.
    memory_floor: f64,
}

/// Predicted peaks in cores and MiB, and run time in seconds.
struct Prediction {
    cpu: f64,
    memory: f64,
    run: Option<f64>,
}

/// Input-aware sizes, a harvest pool, and a safeguard while calls run.
#[derive(Clone, Debug, Default)]
pub struct Libra {
    settings: LibraSettings,
    functions: PerFunction<Option<Profiled>>,
}

impl Libra {
    /// Creates a policy without history.
    pub fn new(settings: LibraSettings) -> Self {
        Self { settings, functions: PerFunction::default() }
    }

    fn function(&mut self, function: FunctionId) -> &mut Profiled {
        let LibraSettings { window, forgetting, .. } = self.settings;
        let profile = || DemandProfile::new(window, forgetting);
        self.functions.state(function).get_or_insert_with(|| Profiled {
            cpu: profile(),
            memory: profile(),
            run: profile(),
            finished: 0,
            restored_share: 0.0,
            memory_floor: 0.0,
        })
    }
}

impl Profiled {
    fn predict(&self, input: Option<f32>, settings: &LibraSettings) -> Option<Prediction> {
        let trust = Trust { least_r2: settings.least_r2, least_points: settings.least_points };
        let cpu = self.cpu.predict(input, settings.peak_quantile, trust)?;
        let memory = self.memory.predict(input, settings.peak_quantile, trust)?;
        let run = self.run.predict(input, settings.run_quantile, trust);
        let margin = 1.0 + settings.margin;
        Some(Prediction {
            cpu: (cpu * margin).max(settings.floor_cpu_cores),
            memory: (memory * margin).max(settings.floor_memory_mib).max(self.memory_floor),
            run,
        })
    }

    /// Updates the share of restored calls with one call.
    fn record_restored(&mut self, was_restored: bool, weight: f64) {
        self.restored_share += weight * (f64::from(was_restored) - self.restored_share);
    }
}

impl CallPolicy for Libra {
    fn name(&self) -> &str {
        "libra"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let settings = self.settings;
        let function = self.function(call.function);
        let user = call.reservation;
        let prediction = function
            .predict(call.input, &settings)
            .filter(|_| function.finished >= settings.profiling_calls);
        let Some(Prediction { mut cpu, mut memory, run }) = prediction else {
            return Ok(CallDecision::exactly(user, "profiled at the user's size"));
        };
        let is_distrusted = function.restored_share > settings.distrust_share;
        if is_distrusted {
            (cpu, memory) = (cpu.max(user.cpu.cores()), memory.max(user.memory.mib()));
        }
        let cpu_cores = cpu.min(call.ceiling.cpu.cores());
        let memory_mib = memory.min(call.ceiling.memory.mib());
        let is_harvested = cpu_cores < user.cpu.cores() || memory_mib < user.memory.mib();
        Ok(CallDecision {
            cpu_cores,
            cpu_ceiling: CpuCeiling::AtGrant,
            memory_mib,
            beyond: Beyond::HarvestPool,
            demand: None,
            expected_run: run.map(Duration::from_secs_f64),
            look_after: is_harvested.then_some(Duration::from_millis(settings.look_millis)),
            why: match (is_distrusted, is_harvested) {
                (true, _) => "restored too often to be harvested",
                (false, true) => "predicted to need less",
                (false, false) => "predicted to need it all",
            },
        })
    }

    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        let LibraSettings { safeguard_threshold, look_millis, distrust_weight, .. } = self.settings;
        let RunningCall { grant, reservation: user, sensed, .. } = *running;
        // A reading of NaN counts as pressure: if in doubt, restore the user's size.
        let presses = |used: f64, limit: f64| used.is_nan() || used >= safeguard_threshold * limit;
        let cpu_pressed = grant.cpu < user.cpu && presses(sensed.cpu_used_cores, grant.cpu.cores());
        let memory_pressed =
            grant.memory < user.memory && presses(sensed.memory_mib, grant.memory.mib());
        let hold = CallDecision {
            beyond: Beyond::HarvestPool,
            ..CallDecision::exactly(grant.max(user), "the user's size is restored")
        };
        if cpu_pressed || memory_pressed {
            self.function(running.function).record_restored(true, distrust_weight);
            return Ok(hold);
        }
        if user.fits(grant) {
            return Ok(CallDecision { why: "not harvested", ..hold });
        }
        Ok(CallDecision {
            cpu_cores: grant.cpu.cores(),
            memory_mib: grant.memory.mib(),
            look_after: Some(Duration::from_millis(look_millis)),
            why: "harvested and at ease",
            ..hold
        })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let LibraSettings { peaks, distrust_weight, .. } = self.settings;
        let function = self.function(outcome.function);
        if let Some(cpu) = peaks.cpu_cores(outcome) {
            function.cpu.push(outcome.input, cpu);
        }
        if let Some(memory) = peaks.memory_mib(outcome) {
            if outcome.was_killed {
                // A censored value would bias the line; as a floor it applies to every input.
                function.memory_floor = function.memory_floor.max(memory);
                function.record_restored(true, distrust_weight);
                return;
            }
            function.memory.push(outcome.input, memory);
        }
        function.run.push(outcome.input, outcome.run().as_secs_f64());
        function.finished = function.finished.saturating_add(1);
        let was_restored = !outcome.reservation.fits(outcome.first_grant)
            && outcome.reservation.fits(outcome.last_grant);
        if !was_restored {
            function.record_restored(false, distrust_weight);
        }
    }
}

#[cfg(test)]
#[path = "libra_story.rs"]
mod story;
