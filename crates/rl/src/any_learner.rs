//! Any of the algorithms, chosen by name: its settings, its beginning, its going on from a file.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windfall_core::Seed;

use crate::algorithms::dqn::{Dqn, DqnSettings};
use crate::algorithms::ppo::{Ppo, PpoSettings};
use crate::algorithms::q_learning::{QLearning, QLearningSettings};
use crate::algorithms::reinforce::{Reinforce, ReinforceSettings};
use crate::checkpoint::{Checkpoint, CheckpointError, Header};
use crate::env::{Environment, Spec};
use crate::learner::Learner;
use crate::schedule::Schedule;

mod bounds;
pub use bounds::SettingsError;

/// Which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Proximal policy optimisation.
    Ppo,
    /// Deep Q-learning.
    Dqn,
    /// The policy gradient, with or without baseline.
    Reinforce,
    /// A table of values.
    QLearning,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ppo, Self::Dqn, Self::Reinforce, Self::QLearning];

    /// Its name, as in a checkpoint.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ppo => "ppo",
            Self::Dqn => "dqn",
            Self::Reinforce => "reinforce",
            Self::QLearning => "q-learning",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How many environments it plays at once: as many as asked for, or one because it learns step by
    /// step.
    pub fn environments(self, wanted: usize) -> usize {
        match self {
            Self::Ppo | Self::Reinforce => wanted.max(1),
            Self::Dqn | Self::QLearning => 1,
        }
    }
}

/// Settings of one of the algorithms.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnySettings {
    /// Of PPO.
    Ppo(PpoSettings),
    /// Of DQN.
    Dqn(DqnSettings),
    /// Of REINFORCE.
    Reinforce(ReinforceSettings),
    /// Of Q-learning.
    QLearning(QLearningSettings),
}

impl AnySettings {
    /// The default settings of an algorithm, in an environment with this description.
    pub fn usual(kind: Kind, spec: &Spec, iterations: u64) -> Self {
        match kind {
            Kind::Ppo => Self::Ppo(PpoSettings { iterations, ..PpoSettings::default() }),
            Kind::Dqn => Self::Dqn(DqnSettings { iterations, ..DqnSettings::default() }),
            Kind::Reinforce => {
                Self::Reinforce(ReinforceSettings { iterations, ..ReinforceSettings::default() })
            }
            Kind::QLearning => Self::QLearning(QLearningSettings {
                iterations,
                steps: 1000,
                discount: 0.95,
                epsilon: Schedule::Linear { from: 0.2, to: 0.0, until: 0.8 },
                learning_rate: Schedule::linear(0.5, 0.05),
                initial: 0.0,
                masks: true,
                // Eleven levels tell tenths of a range apart; with many features the table would never fill.
                levels: vec![if spec.features.len() <= 6 { 11 } else { 3 }; spec.features.len()],
            }),
        }
    }

    /// Of which algorithm they are.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Ppo(_) => Kind::Ppo,
            Self::Dqn(_) => Kind::Dqn,
            Self::Reinforce(_) => Kind::Reinforce,
            Self::QLearning(_) => Kind::QLearning,
        }
    }

    /// Iterations of the whole training.
    pub fn iterations(&self) -> u64 {
        match self {
            Self::Ppo(settings) => settings.iterations,
            Self::Dqn(settings) => settings.iterations,
            Self::Reinforce(settings) => settings.iterations,
            Self::QLearning(settings) => settings.iterations,
        }
    }

    /// These with some of them replaced, by name. A schedule may be given as a plain
    /// number, and nothing as `none`.
    pub fn with(&self, changes: &Map<String, Value>) -> Result<Self, SettingsError> {
        let mut all = serde_json::to_value(self).unwrap_or_default();
        let names = all.as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
        for (key, value) in changes {
            let Some(place) = all.get_mut(key) else {
                let allowed = names.unwrap_or_default().join(", ");
                return Err(SettingsError::Unknown { key: key.clone(), allowed });
            };
            let is_schedule = place.get("kind").is_some();
            *place = match (value.as_f64(), value.as_str()) {
                (Some(value), _) if is_schedule => {
                    serde_json::json!({ "kind": "constant", "value": value })
                }
                // Files have no word for nothing; where a word is expected it is one.
                (_, Some("none")) if !place.is_string() => Value::Null,
                _ => value.clone(),
            };
        }
        Self::read(self.kind(), &all)
    }

    /// Reads and checks settings of an algorithm, all of them.
    pub fn read(kind: Kind, all: &Value) -> Result<Self, SettingsError> {
        bounds::check(all)?;
        let settings = match kind {
            Kind::Ppo => PpoSettings::deserialize(all).map(Self::Ppo),
            Kind::Dqn => DqnSettings::deserialize(all).map(Self::Dqn),
            Kind::Reinforce => ReinforceSettings::deserialize(all).map(Self::Reinforce),
            Kind::QLearning => QLearningSettings::deserialize(all).map(Self::QLearning),
        };
        settings.map_err(|error| SettingsError::Unreadable { reason: error.to_string() })
    }

    /// Refuses settings that do not go with an environment.
    pub fn check_for(&self, spec: &Spec) -> Result<(), SettingsError> {
        match self {
            Self::QLearning(settings) => {
                bounds::check_levels(&settings.levels, spec.features.len())
            }
            Self::Ppo(_) | Self::Dqn(_) | Self::Reinforce(_) => Ok(()),
        }
    }

    /// Starts training on `environments` environments that `make` makes. The number of threads changes
    /// the time it takes and nothing else.
    ///
    /// # Panics
    ///
    /// If the settings were refused by [`AnySettings::check_for`].
    pub fn start(
        &self,
        make: &dyn Fn() -> Box<dyn Environment>,
        environments: usize,
        seed: Seed,
        threads: usize,
    ) -> Box<dyn Learner> {
        let several = || (0..environments.max(1)).map(|_| make()).collect::<Vec<_>>();
        match self.clone() {
            Self::Ppo(settings) => Box::new(Ppo::new(settings, several(), seed, threads)),
            Self::Dqn(settings) => Box::new(Dqn::new(settings, make(), seed)),
            Self::Reinforce(settings) => {
                Box::new(Reinforce::new(settings, several(), seed, threads))
            }
            Self::QLearning(settings) => Box::new(QLearning::new(settings, make(), seed)),
        }
    }
}

impl Header {
    /// Its algorithm and settings, checked.
    pub fn any_settings(&self) -> Result<AnySettings, CheckpointError> {
        let kind = Kind::from_name(&self.algorithm).ok_or_else(|| CheckpointError::Mismatch {
            what: "algorithm".to_owned(),
            found: self.algorithm.clone(),
            expected: Kind::ALL.map(Kind::name).join(", "),
        })?;
        AnySettings::read(kind, &self.settings)
            .map_err(|error| CheckpointError::Damaged { reason: format!("its settings: {error}") })
    }

    /// Whether its policy receives the mask of allowed actions.
    pub fn masks(&self) -> bool {
        self.settings.get("masks").and_then(Value::as_bool).unwrap_or(true)
    }
}

impl Checkpoint {
    /// How many environments its learner plays at once.
    pub fn environments(&self) -> usize {
        (0..)
            .take_while(|index| self.tensors.contains_key(&format!("player.{index}.episodes")))
            .count()
    }
}

/// Goes on from a checkpoint in environments that `make` makes.
pub fn resume(
    checkpoint: &Checkpoint,
    make: &dyn Fn() -> Box<dyn Environment>,
    threads: usize,
) -> Result<Box<dyn Learner>, CheckpointError> {
    let settings = checkpoint.header.any_settings()?;
    let spec = make().spec().clone();
    checkpoint.header.check_environment(&spec)?;
    settings
        .check_for(&spec)
        .map_err(|error| CheckpointError::Damaged { reason: format!("its settings: {error}") })?;
    let several = || (0..checkpoint.environments().max(1)).map(|_| make()).collect::<Vec<_>>();
    Ok(match settings.kind() {
        Kind::Ppo => Box::new(Ppo::resume(checkpoint, several(), threads)?),
        Kind::Dqn => Box::new(Dqn::resume(checkpoint, make())?),
        Kind::Reinforce => Box::new(Reinforce::resume(checkpoint, several(), threads)?),
        Kind::QLearning => Box::new(QLearning::resume(checkpoint, make())?),
    })
}

#[cfg(test)]
mod tests;
