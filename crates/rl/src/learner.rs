//! What all algorithms have in common: they are asked to take one more iteration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::policy::Decide;

/// What an iteration did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationReport {
    /// Iterations done, this one included.
    pub iteration: u64,
    /// Environment steps done so far.
    pub steps: u64,
    /// Mean sum of rewards of the episodes that ended in it; nothing if none did.
    pub mean_return: Option<f64>,
    /// Mean of each feature over its steps, as the environment gave them.
    pub feature_means: Vec<f64>,
    /// Losses, entropy and the like, by name.
    pub metrics: BTreeMap<String, f64>,
}

/// An algorithm in the middle of its training.
///
/// Settings say how many iterations there are; schedules depend on it. Going on longer keeps the values
/// schedules end with.
pub trait Learner {
    /// Gathers experience and learns from it.
    fn iterate(&mut self) -> IterationReport;

    /// Iterations done.
    fn iteration(&self) -> u64;

    /// The policy as it would be used now: no exploration.
    fn policy(&self) -> Box<dyn Decide>;

    /// Everything needed to go on bit for bit.
    fn checkpoint(&self) -> Checkpoint;
}

/// Sums up an iteration.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    features: Vec<f64>,
    rows: u64,
    returns: f64,
    episodes: u64,
    metrics: BTreeMap<String, f64>,
}

impl Tally {
    pub(crate) fn new(features: usize) -> Self {
        let metrics = BTreeMap::new();
        Self { features: vec![0.0; features], rows: 0, returns: 0.0, episodes: 0, metrics }
    }

    pub(crate) fn rows(&mut self, rows: &[f32]) {
        for row in rows.chunks_exact(self.features.len()) {
            self.rows += 1;
            self.features.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
        }
    }

    pub(crate) fn episode(&mut self, total: f64) {
        self.returns += total;
        self.episodes += 1;
    }

    pub(crate) fn metric(&mut self, name: &str, value: impl Into<f64>) {
        self.metrics.insert(name.to_owned(), value.into());
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of one iteration")]
    pub(crate) fn report(self, iteration: u64, steps: u64) -> IterationReport {
        let rows = self.rows.max(1) as f64;
        IterationReport {
            iteration,
            steps,
            mean_return: (self.episodes > 0).then(|| self.returns / self.episodes as f64),
            feature_means: self.features.iter().map(|sum| sum / rows).collect(),
            metrics: self.metrics,
        }
    }
}
