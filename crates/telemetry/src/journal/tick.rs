//! A tick as it is read back. A `Plan` is permission to act and only the safeguard chain makes one, so a
//! journal gives its contents in other clothes.

use serde::{Deserialize, Serialize};
use windfall_core::{
    Amendment, CpuCeiling, DecidedBy, Duration, FunctionId, Instances, Mebibytes, MilliCpu,
    Observation, PlanId, Receipt, Setting,
};

/// One tick: what was seen, wanted, allowed and done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TickEntry {
    /// What was seen.
    pub observation: Observation,
    /// What was wanted.
    pub decision: JournalDecision,
    /// By whom.
    pub decided_by: DecidedBy,
    /// What was allowed.
    pub plan: Allowed,
    /// What the platform accepted and refused.
    pub receipt: Receipt,
    /// What a second policy would have wanted.
    pub shadow: Option<JournalDecision>,
    /// Why there was no observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a policy wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JournalDecision {
    /// Per function.
    pub targets: Vec<JournalTarget>,
    /// In one sentence.
    pub reason: String,
}

/// What a policy wanted for one function. A number that is missing was not a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JournalTarget {
    /// Which function.
    pub function: FunctionId,
    /// Instances.
    pub instances: Setting<Option<f64>>,
    /// CPU, cores.
    pub cpu_cores: Setting<Option<f64>>,
    /// CPU at most, cores.
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub cpu_ceiling: Setting<CpuCeiling<Option<f64>>>,
    /// Memory, MiB.
    pub memory_mib: Setting<Option<f64>>,
    /// Calls per instance.
    pub concurrency: Setting<Option<f64>>,
    /// How long idle instances stay.
    pub keep_alive: Setting<Duration>,
    /// Why, in one phrase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// What the safeguards allowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allowed {
    /// The plan's number.
    #[serde(default)]
    pub id: PlanId,
    /// Per function.
    pub targets: Vec<AllowedTarget>,
    /// Where they stepped in.
    pub amendments: Vec<Amendment>,
}

/// What was allowed for one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllowedTarget {
    /// Which function.
    pub function: FunctionId,
    /// Instances.
    pub instances: Setting<Instances>,
    /// CPU.
    pub cpu: Setting<MilliCpu>,
    /// CPU at most.
    #[serde(default, skip_serializing_if = "Setting::is_keep")]
    pub cpu_ceiling: Setting<CpuCeiling>,
    /// Memory.
    pub memory: Setting<Mebibytes>,
    /// Calls per instance.
    pub concurrency: Setting<Instances>,
    /// How long idle instances stay.
    pub keep_alive: Setting<Duration>,
}
