//! The samples of one update.

use super::AdvantageNormalisation;
use crate::advantages::{ValuedStep, advantages};
use crate::normalise::standardise;

/// Samples of all environments or agents, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// What the actor saw, normalised, row after row.
    pub(super) rows: Vec<f32>,
    /// What the critic saw; nothing where it sees what the actor sees.
    pub(super) critic_rows: Option<Vec<f32>>,
    /// Which actions were allowed, sample after sample.
    pub(super) allowed: Vec<bool>,
    pub(super) actions: Vec<usize>,
    /// Of the actions, when they were taken.
    pub(super) log_probabilities: Vec<f32>,
    /// What the critic thought before the update.
    pub(super) values: Vec<f32>,
    pub(super) advantages: Vec<f32>,
    /// What the critic is to predict: value plus advantage.
    pub(super) returns: Vec<f32>,
}

impl Batch {
    /// Appends values and advantages of consecutive steps.
    pub(super) fn push_valued(&mut self, steps: &[ValuedStep], discount: f32, lambda: f32) {
        let start = self.values.len();
        self.values.extend(steps.iter().map(|step| step.value));
        self.advantages.resize(start + steps.len(), 0.0);
        advantages(steps, discount, lambda, &mut self.advantages[start..]);
    }

    /// Works out the returns, and normalises the advantages if that is done over the whole batch.
    pub(super) fn close(&mut self, normalisation: AdvantageNormalisation) {
        self.returns = self.values.iter().zip(&self.advantages).map(|(v, a)| v + a).collect();
        if normalisation == AdvantageNormalisation::Batch {
            standardise(&mut self.advantages);
        }
    }

    /// Samples.
    pub(super) fn len(&self) -> usize {
        self.actions.len()
    }
}
