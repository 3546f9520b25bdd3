//! Environments by their ids: what `train`, `evaluate` and `env` choose from.
//!
//! A crate that has environments offers a list of [`Entry`]; the command line joins the lists.

use serde::{Deserialize, Serialize};

use crate::any_learner::{AnySettings, Kind};
use crate::env::{Environment, Spec};

/// Which part of its world an environment shows. One without held-out parts is the same in all three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// What learners learn from.
    #[default]
    Training,
    /// What the best checkpoint is chosen by.
    Validation,
    /// What is reported: seen by nobody before.
    Test,
}

/// One environment.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name and version, as in its description.
    pub id: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Makes one.
    pub make: fn(Split) -> Box<dyn Environment>,
    /// Those in which one evaluation plays an episode each, such as one for every load there can be.
    pub panel: fn(Split) -> Vec<Box<dyn Environment>>,
    /// Settings that are known to work, for so many iterations; nothing takes the usual ones.
    pub suggested: fn(Kind, u64) -> Option<AnySettings>,
    /// Environments to play in parallel by default.
    pub environments: usize,
}

impl Entry {
    /// Its description.
    pub fn spec(&self) -> Spec {
        (self.make)(Split::Training).spec().clone()
    }

    /// Settings of an algorithm in it.
    pub fn settings(&self, kind: Kind, iterations: u64) -> AnySettings {
        (self.suggested)(kind, iterations)
            .unwrap_or_else(|| AnySettings::usual(kind, &self.spec(), iterations))
    }
}

/// Twenty copies of an environment whose episodes differ by their seeds alone.
pub fn twenty(make: fn(Split) -> Box<dyn Environment>, split: Split) -> Vec<Box<dyn Environment>> {
    (0..20).map(|_| make(split)).collect()
}
