//! What a policy decides at a tick. Plain numbers with their unit in the name: a learned policy can
//! return anything, and only the safeguard chain turns a decision into quantities.

use serde::{Deserialize, Serialize};

use crate::time::Duration;
use crate::units::CpuCeiling;
use crate::workload::FunctionId;

/// Leave a knob alone or turn it; there is no magic number for either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting<T> {
    /// As it is.
    #[default]
    Keep,
    /// To this value.
    Set(T),
}

impl<T> Setting<T> {
    /// Whether it stays as it is.
    pub const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// The value, if it is to be changed.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Keep => None,
            Self::Set(value) => Some(value),
        }
    }

    /// The later of two settings, as far as it changes anything.
    pub fn followed_by(self, later: Self) -> Self {
        if later.is_keep() { self } else { later }
    }

    /// The same setting in other terms, or the first error.
    pub fn try_map<U, E>(self, change: impl FnOnce(T) -> Result<U, E>) -> Result<Setting<U>, E> {
        match self {
            Self::Keep => Ok(Setting::Keep),
            Self::Set(value) => change(value).map(Setting::Set),
        }
    }
}

/// What a policy proposes for one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Which function.
    pub function: FunctionId,
    /// Instances that should stand ready.
    pub instances: Setting<f64>,
    /// CPU that each instance is guaranteed, cores.
    pub cpu_cores: Setting<f64>,
    /// CPU that each instance can use at most, cores.
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub cpu_ceiling: Setting<CpuCeiling<f64>>,
    /// Memory of each instance, MiB.
    pub memory_mib: Setting<f64>,
    /// Calls that one instance serves at once.
    pub concurrency: Setting<f64>,
    /// How long an idle instance above the target number stays.
    pub keep_alive: Setting<Duration>,
    /// What the function's idle instance that would go next is worth per MiB, in any unit that all
    /// functions share. Where a call needs room the least worth goes first.
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub worth: Setting<f64>,
    /// One phrase for `explain`; empty if the reason of the whole decision says enough.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Target {
    /// A target that changes nothing of `function`.
    pub fn keep(function: FunctionId) -> Self {
        Self { function, ..Self::default() }
    }
}

/// What a policy decides at one tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// One entry per function that should change.
    pub targets: Vec<Target>,
    /// One sentence for the journal.
    pub reason: String,
}
