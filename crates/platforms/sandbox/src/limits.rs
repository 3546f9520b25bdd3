//! Limits of one instance: what is asked for, and what is in force.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windfall_core::{Mebibytes, MilliCpu};

/// CPU time that is never exceeded, even while cores are idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Cores on average over a period.
    pub cpu: MilliCpu,
    /// How often the budget is refilled. 100 ms is the kernel's default; 20 ms is smoother and costs a few percent.
    pub period: Duration,
    /// Unused time of earlier periods that may be used on top, at most.
    pub burst: Duration,
}

impl Quota {
    /// `cpu` cores per period of 100 ms, without burst.
    pub const fn new(cpu: MilliCpu) -> Self {
        Self { cpu, period: Duration::from_millis(100), burst: Duration::ZERO }
    }
}

/// Limits of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Share of the CPU while cores are short: 1024 shares per core, so 500m and 1500m get 1:3.
    pub weight: MilliCpu,
    /// Ceiling; none lets the instance use whatever is idle.
    pub quota: Option<Quota>,
    /// Run only on what nobody else wants (`cpu.idle`), whatever the weight.
    pub idle: bool,
    /// Memory that may be used before the kernel kills the instance.
    pub memory: Mebibytes,
    /// Processes and threads that may exist.
    pub pids: u32,
}

impl Limits {
    /// `cpu` as weight without a ceiling, `memory`, and 64 processes and threads.
    pub const fn new(cpu: MilliCpu, memory: Mebibytes) -> Self {
        Self { weight: cpu, quota: None, idle: false, memory, pids: 64 }
    }

    /// With a ceiling of `cpu` per 100 ms.
    #[must_use]
    pub const fn with_quota(mut self, cpu: MilliCpu) -> Self {
        self.quota = Some(Quota::new(cpu));
        self
    }
}

/// One limit after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// What is in force now.
    pub value: T,
    /// Why it differs from what was asked for; nothing if it does not.
    pub refused: Option<String>,
}

impl<T> Setting<T> {
    /// In force as asked for.
    pub const fn applied(value: T) -> Self {
        Self { value, refused: None }
    }

    /// `value` stays in force because of `reason`.
    pub fn refused(value: T, reason: impl Into<String>) -> Self {
        Self { value, refused: Some(reason.into()) }
    }
}

/// The limits in force after a change, each with the reason if it is not what was asked for.
///
/// Example: lowering the memory limit of an instance that holds 300 MiB to 256 MiB is refused by cgroup v1 with EBUSY;
/// `memory` then has the old limit as `value` and the reason in `refused`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// CPU weight.
    pub weight: Setting<MilliCpu>,
    /// CPU ceiling.
    pub quota: Setting<Option<Quota>>,
    /// Whether the instance runs on idle CPU time only.
    pub idle: Setting<bool>,
    /// Memory limit.
    pub memory: Setting<Mebibytes>,
    /// Limit of processes and threads.
    pub pids: Setting<u32>,
}

impl InForce {
    /// Everything as asked for.
    pub const fn all(limits: &Limits) -> Self {
        Self {
            weight: Setting::applied(limits.weight),
            quota: Setting::applied(limits.quota),
            idle: Setting::applied(limits.idle),
            memory: Setting::applied(limits.memory),
            pids: Setting::applied(limits.pids),
        }
    }

    /// The values alone.
    pub const fn limits(&self) -> Limits {
        Limits {
            weight: self.weight.value,
            quota: self.quota.value,
            idle: self.idle.value,
            memory: self.memory.value,
            pids: self.pids.value,
        }
    }

    /// Whether everything is as asked for.
    pub fn is_complete(&self) -> bool {
        self.reasons().next().is_none()
    }

    /// The reasons of everything that is not as asked for.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        [
            &self.weight.refused,
            &self.quota.refused,
            &self.idle.refused,
            &self.memory.refused,
            &self.pids.refused,
        ]
        .into_iter()
        .filter_map(|reason| reason.as_deref())
    }
}
