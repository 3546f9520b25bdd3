//! State that survives a restart of the recommender, per container name.
//!
//! ```text
//!  merged state ─► minus the peaks of windows still open ─► integers 1 to 10000 per bucket ─► saved
//!  saved ─► weight = integer · total / sum of integers ─► kept separate, merged at every tick
//! ```
//!
//! Weights 0.4, 1.0, 0.1 are saved as 4000, 10000, 1000 with their total 1.5, and are restored as
//! 4000 · 1.5 / 15000 = 0.4 and so on. The peak of an open window is left out because its container still runs after the
//! restart and will report it again.

use std::collections::BTreeMap;

/// Checkpoint of one histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramCheckpoint {
    /// `referenceTimestamp`, Unix seconds; `None` if no sample was ever added.
    pub reference: Option<i64>,
    /// `totalWeight`.
    pub total_weight: f64,
    /// `bucketWeights`.
    pub bucket_weights: BTreeMap<usize, u32>,
}

/// Checkpoint of one container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// `cpuHistogram`.
    pub cpu: HistogramCheckpoint,
    /// `memoryHistogram`.
    pub memory: HistogramCheckpoint,
    /// `firstSampleStart`, Unix seconds.
    pub first_sample: Option<i64>,
    /// `lastSampleStart`, Unix seconds.
    pub last_sample: Option<i64>,
    /// `totalSamplesCount`.
    pub samples: u64,
}
