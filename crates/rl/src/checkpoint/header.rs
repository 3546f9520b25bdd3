//! What a checkpoint says about itself.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use windfall_core::Seed;

use super::CheckpointError;
use crate::env::Spec;
use crate::net::Shape;

/// Name and version of the format; files of another version are refused.
pub const FORMAT: &str = "windfall-checkpoint/1";

/// What a checkpoint is and where its learner stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// Which algorithm, such as `ppo`.
    pub algorithm: String,
    /// What it was trained in: versioned id, features with ranges, actions.
    pub environment: Spec,
    /// Shape of the network that decides; nothing if a table does.
    pub network: Option<Shape>,
    /// The run's seed.
    pub seed: Seed,
    /// Iterations done.
    pub iteration: u64,
    /// Environment steps done.
    pub steps: u64,
    /// All settings of the algorithm.
    pub settings: serde_json::Value,
}

impl Header {
    /// Of a learner at `done` iterations and environment steps, its settings still missing.
    pub(crate) fn new(
        algorithm: &str,
        environment: &Spec,
        network: Option<&Shape>,
        seed: Seed,
        done: (u64, u64),
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            algorithm: algorithm.to_owned(),
            environment: environment.clone(),
            network: network.cloned(),
            seed,
            iteration: done.0,
            steps: done.1,
            settings: serde_json::Value::Null,
        }
    }

    /// The same with all settings of the algorithm.
    pub(crate) fn with_settings(self, settings: &impl Serialize) -> Self {
        Self { settings: serde_json::json!(settings), ..self }
    }

    pub(super) fn parse(text: &str) -> Result<Self, CheckpointError> {
        let damaged = |error: serde_json::Error| CheckpointError::Damaged {
            reason: format!("its header does not parse: {error}"),
        };
        // The format first: another version may well have other fields.
        let any: serde_json::Value = serde_json::from_str(text).map_err(damaged)?;
        let format = any.get("format").and_then(serde_json::Value::as_str).unwrap_or("missing");
        expect("format", format, FORMAT)?;
        serde_json::from_value(any).map_err(damaged)
    }

    /// Refuses a checkpoint of another algorithm or of an environment that shows or accepts something
    /// else, and returns the settings.
    pub fn settings_for<S: DeserializeOwned>(
        &self,
        algorithm: &str,
        environment: &Spec,
    ) -> Result<S, CheckpointError> {
        expect("algorithm", &self.algorithm, algorithm)?;
        self.check_environment(environment)?;
        S::deserialize(&self.settings).map_err(|error| CheckpointError::Damaged {
            reason: format!("its settings do not parse: {error}"),
        })
    }

    /// Refuses an environment other than the one trained in.
    pub fn check_environment(&self, environment: &Spec) -> Result<(), CheckpointError> {
        expect("environment", &self.environment.id, &environment.id)?;
        let names = |spec: &Spec| {
            let ranges = spec.features.iter().map(|f| format!("{} {}..{}", f.name, f.low, f.high));
            ranges.collect::<Vec<_>>().join(", ")
        };
        expect("list of features", &names(&self.environment), &names(environment))?;
        let actions = |spec: &Spec| spec.actions.join(", ");
        expect("list of actions", &actions(&self.environment), &actions(environment))
    }
}

pub(super) fn expect(what: &str, found: &str, expected: &str) -> Result<(), CheckpointError> {
    if found == expected {
        return Ok(());
    }
    Err(CheckpointError::Mismatch {
        what: what.to_owned(),
        found: found.to_owned(),
        expected: expected.to_owned(),
    })
}
