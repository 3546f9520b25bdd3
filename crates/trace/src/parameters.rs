//! Parameters of the demand model and the generator; `params/` has each one with its source.

use std::sync::LazyLock;

use rand::{Rng, RngExt};
use serde::Deserialize;

/// Parameters of the demand model, from `params/demand.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemandParameters {
    /// Limits of run times, and cycles of waiting and computing.
    pub duration: DurationParameters,
    /// Run times of functions whose trace has none.
    pub assigned_duration: AssignedDuration,
    /// Memory peaks of functions whose trace has none.
    pub assigned_memory: AssignedMemory,
    /// How many cores calls can use.
    pub parallelism: Parallelism,
    /// Share of the run time that does not depend on CPU.
    pub idle: Idle,
    /// How memory use develops.
    pub memory: MemoryParameters,
    /// Visible input sizes.
    pub input: Input,
    /// What users reserve.
    pub reservation: Reservation,
    /// Time until an instance is ready.
    pub cold_start: ColdStartParameters,
    /// Language runtimes.
    pub runtime: Vec<Runtime>,
}

/// Limits of run times, and cycles of waiting and computing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationParameters {
    /// Shortest run.
    pub low_ms: f64,
    /// Longest run.
    pub high_ms: f64,
    /// Run time per cycle.
    pub cycle_seconds: f64,
    /// Maximum number of cycles.
    pub max_cycles: u8,
}

/// Run times of functions whose trace has none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssignedDuration {
    /// Mean run time of a function.
    pub mean_ms: Span,
    /// Spread of its calls.
    pub sigma: Span,
}

/// Memory peaks of functions whose trace has none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssignedMemory {
    /// Median over functions.
    pub median_mib: f64,
    /// Spread over functions.
    pub sigma: f64,
}

/// How many cores calls can use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallelism {
    /// Share of functions that can use more than one core.
    pub parallel_share: f64,
    /// Cores of a parallel function.
    pub parallel_cores: Vec<f64>,
    /// Spread of its calls: narrow and wide.
    pub parallel_sigma: [f64; 2],
    /// Share of parallel functions with the narrow spread.
    pub narrow_share: f64,
    /// Cores of a serial function.
    pub serial_cores: Span,
    /// Spread of its calls.
    pub serial_sigma: f64,
}

/// Share of the run time that does not depend on CPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// Values for serial functions.
    pub serial_shares: Vec<f64>,
    /// Range for parallel functions.
    pub parallel_share: Span,
    /// Value for functions that only wait ("sleepers").
    pub sleeper_share: f64,
    /// Lower bound of a sleeper's first percentile.
    pub sleeper_p1_ms: f64,
    /// Upper bound of the ratio of a sleeper's 99th to its first percentile.
    pub sleeper_p99_over_p1: f64,
}

/// How memory use develops.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryParameters {
    /// Smallest peak.
    pub low_mib: f64,
    /// Largest peak.
    pub high_mib: f64,
    /// Use at the start over the peak.
    pub base_share: Span,
    /// Time to the peak over the fastest run.
    pub rise_share: Span,
    /// Share of functions whose memory jumps to the peak.
    pub jump_share: f64,
}

/// Visible input sizes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Share of functions, except timers, without a visible input.
    pub invisible_share: f64,
    /// Share of the variance of the demand's normal score that the input explains.
    pub explained: Span,
    /// Median input of a function.
    pub median_kib: Span,
    /// Exponent of run time over input size.
    pub duration_exponent: Span,
}

/// What users reserve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// Share of users who reserve too much CPU.
    pub over_share: f64,
    /// Share of users who reserve too little.
    pub under_share: f64,
    /// Too much: times the 95th percentile of parallelism.
    pub over_factor: Span,
    /// Too little: times the parallelism.
    pub under_factor: Span,
    /// About right: times the 95th percentile of parallelism.
    pub right_factor: f64,
    /// Times the 99th percentile of the memory peak.
    pub memory_factor: Span,
    /// Maximum CPU that a user can reserve.
    pub max_cores: f64,
    /// CPU sizes that users set.
    pub cpu_millicores: Vec<u32>,
    /// Memory sizes that users set.
    pub memory_mib: Vec<u32>,
}

/// Time until an instance is ready, without the runtime's own init.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColdStartParameters {
    /// Median time to create a sandbox.
    pub sandbox_ms: f64,
    /// Its spread.
    pub sandbox_sigma: f64,
    /// Ratio of a function's init to that of hello-world.
    pub import_factor: Span,
}

/// A language runtime.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// Its name.
    pub name: String,
    /// Share of functions.
    pub share: f64,
    /// Median init of hello-world.
    pub init_ms: f64,
    /// Its spread.
    pub init_sigma: f64,
}

/// A range from low to high.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub struct Span([f64; 2]);

impl Span {
    /// Creates the range from `low` to `high`.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        Self([low, high])
    }

    /// Draws a value uniformly.
    pub(crate) fn draw(self, rng: &mut impl Rng) -> f64 {
        let [low, high] = self.0;
        low + (high - low) * rng.random::<f64>()
    }

    /// Draws a value log-uniformly.
    pub(crate) fn draw_log_uniform(self, rng: &mut impl Rng) -> f64 {
        let [low, high] = self.0;
        low * (high / low).powf(rng.random::<f64>())
    }
}

/// Draws one of `values` in proportion to its weight.
pub(crate) fn weighted<'a, T>(
    values: &'a [T],
    weight: impl Fn(&T) -> f64,
    rng: &mut impl Rng,
) -> &'a T {
    let total: f64 = values.iter().map(&weight).sum();
    let mut left = rng.random::<f64>() * total;
    for value in values {
        left -= weight(value);
        if left < 0.0 {
            return value;
        }
    }
    values.last().expect("the parameter files list at least one of each; a test reads them")
}

/// The parameters in `params/demand.toml`.
pub fn demand() -> &'static DemandParameters {
    static PARAMETERS: LazyLock<DemandParameters> = LazyLock::new(|| {
        toml::from_str(include_str!("../params/demand.toml"))
            .expect("the file is part of the program and a test reads it")
    });
    &PARAMETERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_parameters_can_be_parsed() {
        let parameters = demand();
        let shares: f64 = parameters.runtime.iter().map(|runtime| runtime.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        assert!(parameters.reservation.cpu_millicores.is_sorted());
        assert!(parameters.reservation.memory_mib.is_sorted());
    }
}
